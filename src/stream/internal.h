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
	int cpu;	 // -1: any
	pid_t tid;	 // -1: all of the CPU
	int cgroup_fd;	 // -1: none
	uint32_t ring;	 // places of one number share a ring
	uint32_t mapped; // that ring's index in the session, once it is mapped
	bool is_gone;	 // the thread ended or the CPU went offline before it was opened
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
};

/** @attr, all bits of the session set, of an event that leads its group or is alone (@is_leader), or follows. */
struct perf_event_attr ps_attr_prepare(const struct perf_event_attr *attr, bool is_sampling,
				       bool is_leader, const struct ps_attr_context *context);

/** Whether only the kernel makes @attr's events: without the kernel it would read 0 for ever, so it is never excluded. */
bool ps_attr_is_kernel_only(const struct perf_event_attr *attr);

/**
 * The attr of the session's own event, which owns the rings and tells of names, births and deaths (@want_tasks), and
 * of what is mapped (@want_maps).
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
	struct rlimit saved_nofile;
	bool is_nofile_raised;
	bool is_enabled_by_exec;
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

/** Open @attr at @place as the next stream, in the group of @leader (NULL: none). 0 or -errno. */
int ps_stream_open(struct ps_session *session, struct ps_source *source,
		   struct perf_event_attr *attr, const struct ps_place *place,
		   const struct ps_stream *leader);

/** Let @stream write into the ring @index; 0 or an errno. */
int ps_stream_share_ring(struct ps_session *session, struct ps_stream *stream, uint32_t index);

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

/** Build by_id and far from the streams' ids. */
struct ps_error *ps_ids_build(struct ps_session *session);
void ps_ids_deinit(struct ps_session *session);

/** Undo ps_session_follow_forks where it was for @session. */
void ps_session_forget_forks(const struct ps_session *session);

#endif
