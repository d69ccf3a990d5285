// SPDX-License-Identifier: MIT
/**
 * What the files of a session share: where sources are opened, and the sentences of refusals.
 */
#ifndef PERFSCOPE_STREAM_INTERNAL_H
#define PERFSCOPE_STREAM_INTERNAL_H

#include <perfscope/session.h>
#include <sys/resource.h>

struct perf_evsel;
struct perf_cpu_map;
struct perf_thread_map;

/** One CPU, thread or both, at which each source has a descriptor; those of one ring share it. */
struct ps_place {
	int cpu;	  // -1: any
	pid_t tid;	  // -1: all of the CPU
	int cgroup_fd;	  // -1: none
	uint32_t ring;	  // places of one number share a ring
	uint32_t mapped;  // that ring's index in the session, once it is mapped
	bool is_gone;	  // the thread has ended or the CPU is offline
	bool is_given_up; // it is online, but its events could not be opened again
	uint64_t gone_ns; // when it went, by CLOCK_MONOTONIC; 0: before the start, or not known
	struct perf_cpu_map *cpu_map;	    // owned
	struct perf_thread_map *thread_map; // owned
};

struct ps_places {
	struct ps_place *places;
	size_t nr_places;
	size_t nr_rings;
};

/** Lay out the places of @target for @sources; no system call is made. The caller frees places. */
struct ps_error *ps_places_plan(const struct ps_target *target,
				const struct ps_source_list *sources, struct ps_places *ret);

/** What the session sets in the attr of every event. */
struct ps_attr_context {
	const struct ps_clock *clock;
	const struct ps_target *target;
	uint32_t watermark_bytes;
	bool has_lost_count;
	bool has_ksymbol;	 // attr.ksymbol is there (Linux 5.1)
	bool can_read_inherited; // PERF_SAMPLE_READ of events that are inherited (Linux 6.12)
};

/** @attr, all bits of the session set, of an event that leads its group or is alone (@is_leader), or follows. */
struct perf_event_attr ps_attr_prepare(const struct perf_event_attr *attr, bool is_sampling,
				       bool is_leader, const struct ps_attr_context *context);

/** Whether only the kernel makes @attr's events: without the kernel it would read 0 for ever, so it is never excluded. */
bool ps_attr_is_kernel_only(const struct perf_event_attr *attr);

/**
 * The attr of the session's own event, which owns the rings and tells of names, births and deaths (@want_tasks), and
 * of what is mapped and of functions that the kernel makes (@want_maps), as far as this kernel can.
 */
struct perf_event_attr ps_attr_side_band(bool want_tasks, bool want_maps,
					 const struct ps_attr_context *context);

/** What session.h does not show: ps_session.priv. */
struct ps_opened {
	struct ps_places places;
	struct perf_evsel **evsels; // of each stream; NULL: not opened by libperf
	size_t max_streams;
	uint64_t ring_bytes;
	struct ps_attr_context context;
	struct ps_target target; // without its lists, which are the caller's
	struct rlimit saved_nofile;
	bool is_nofile_raised;
	bool is_enabled_by_exec;
	bool is_enabled;
	size_t nr_open; // streams of sources that have a descriptor
	bool is_threads;
	bool want_tasks;
	bool strict;
	bool (*is_stopping)(void);
	unsigned int watermark_percent;
};

static inline struct ps_opened *ps_opened_of(const struct ps_session *session)
{
	return session->priv;
}

/** Make libperf's objects of @place. */
struct ps_error *ps_place_make_maps(struct ps_place *place);
void ps_place_deinit(struct ps_place *place);

/** Open @attr at @place as the next stream, in the group of @leader (NULL: none). 0 or -errno. */
int ps_stream_open(struct ps_session *session, struct ps_source *source,
		   struct perf_event_attr *attr, const struct ps_place *place,
		   const struct ps_stream *leader);

/** Add a stream at @place, whose CPU is offline, without a descriptor. */
void ps_stream_add_away(struct ps_session *session, struct ps_source *source,
			const struct perf_event_attr *attr, const struct ps_place *place);

/** A descriptor that is not yet a stream's. */
struct ps_descriptor {
	int fd;
	uint64_t id;
	struct perf_evsel *evsel; // NULL: not opened by libperf
};

/** Open @attr at @place as ps_stream_open does, but for itself. 0 or -errno. */
int ps_descriptor_open(struct ps_session *session, struct perf_event_attr *attr,
		       const struct ps_place *place, const struct ps_stream *leader,
		       struct ps_descriptor *ret);
void ps_descriptor_close(struct ps_descriptor *descriptor);

/** Give @stream @descriptor in the place of its own, which is closed; what that counted is kept. */
void ps_stream_replace(struct ps_session *session, struct ps_stream *stream,
		       const struct ps_descriptor *descriptor);

void ps_streams_close(struct ps_session *session);

/** What @stream has counted, over all descriptors that it had; false: one could not be read. */
bool ps_stream_read(const struct ps_stream *stream, struct ps_reading *ret);

/** Mark the streams of sources that stand on all CPUs, of which there are @nr_cpus, for each of their threads. */
void ps_coverage_prepare(struct ps_session *session, size_t nr_cpus);

/** Note how long the first of these were enabled before the last was. Right after they all were, one after the other. */
void ps_coverage_enabled(struct ps_session *session);

/**
 * What the session's own event at the place of @stream counted, where it tells more than the stream. *@at: 0 before the
 * first stream of a source.
 */
bool ps_coverage_read_side_band(const struct ps_session *session, const struct ps_stream *stream,
				size_t *at, struct ps_reading *ret);

/** Add what @stream counted to @count; @side_band: what the session's own event at its place did, or NULL. */
void ps_coverage_add(const struct ps_stream *stream, const struct ps_reading *reading,
		     const struct ps_reading *side_band, struct ps_count *count);

/** After the last stream of a source that stands on all CPUs. */
void ps_coverage_finish(struct ps_count *count);

/** Map a ring on @fd, of @cpu, as the next one; 0 or an errno. */
int ps_ring_map(struct ps_session *session, int fd, int cpu, uint32_t *ret);

/** Put the soft limit of descriptors back to where it was. */
void ps_nofile_restore(struct ps_opened *opened);

/** Let @stream write into the ring @index; 0 or an errno. */
int ps_stream_share_ring(struct ps_session *session, struct ps_stream *stream, uint32_t index);

bool ps_cpu_is_online(int cpu);

/** What a descriptor of @source needs beside being open: the ring @index, and its filter. */
struct ps_error *ps_descriptor_finish(struct ps_session *session, const struct ps_source *source,
				      int fd, uint32_t index);

/**
 * Whether @place itself is no more, as @os_errno tells: its thread ended, or its CPU is offline. It is then left out of
 * all that follows.
 */
bool ps_place_is_gone(struct ps_place *place, int os_errno);

/** Open all sources at all places; an error where not one can be opened. */
struct ps_error *ps_sources_open(struct ps_session *session);

/**
 * Whether @os_errno, with which the kernel refused to open @attr, means that this machine lacks the counter, and why:
 * "no hardware PMU here". @ret_nearest: the substitute's name, or NULL.
 */
bool ps_refusal_is_missing(int os_errno, const struct perf_event_attr *attr,
			   const char **ret_reason, const char **ret_nearest);

/** The sentence of a refusal to open @name with @attr at @place; @nr_wanted descriptors in all. */
struct ps_error *ps_refusal_error(int os_errno, const char *name,
				  const struct perf_event_attr *attr, const struct ps_place *place,
				  uint64_t nr_wanted);

/** The same for a probe. */
struct ps_error *ps_refusal_probe_error(int os_errno, const char *name,
					const struct perf_event_attr *attr,
					const struct ps_place *place, uint64_t nr_wanted);

/** Set the filter of @source on @fd; the error says what is wrong in it. */
struct ps_error *ps_filter_apply(const struct ps_source *source, int fd);

/** Build by_id and far from the streams' ids. Those known before stay known: records of them may still be in a ring. */
struct ps_error *ps_ids_build(struct ps_session *session);
void ps_ids_deinit(struct ps_session *session);

/** Find out which streams' samples are to be read by ps_record_read_shared. */
void ps_shared_build(struct ps_session *session);

/** Undo ps_session_follow_forks where it was for @session. */
void ps_session_forget_forks(const struct ps_session *session);

#endif
