// SPDX-License-Identifier: MIT
/**
 * Session: the opened sources, their descriptors and rings.
 */
#ifndef PERFSCOPE_SESSION_H
#define PERFSCOPE_SESSION_H

#include <perfscope/clock.h>
#include <perfscope/ring.h>
#include <perfscope/sample.h>
#include <perfscope/source.h>
#include <perfscope/target.h>

/** One source on one CPU or thread: a descriptor and its id. */
struct ps_stream {
	struct ps_source *source; // NULL: the session's own side-band (COMM, FORK, EXIT)
	struct ps_sample_layout layout;
	uint64_t id;
	int fd;
	int cpu;	    // -1: any
	pid_t tid;	    // -1: all of the CPU
	uint32_t ring;	    // index
	uint64_t delivered; // samples handed out, as dispatch counts them
	uint64_t lost;	    // told by PERF_FORMAT_LOST when last read
};

struct ps_session_options {
	uint64_t ring_bytes;		// per ring, a power of two; 0: the default of 4 MiB
	bool is_ring_bytes_given;	// -m: refuse nothing silently
	unsigned int watermark_percent; // 0: the default of 25
	enum ps_clock_kind clock;
	bool strict;		   // a missing counter is an error
	bool want_tasks;	   // side-band records of names, births and deaths
	bool (*is_stopping)(void); // asked before each source, as thousands take long; NULL: never
};

struct ps_session {
	struct ps_clock clock;
	struct ps_source_list *sources; // borrowed
	struct ps_stream *streams;
	size_t nr_streams;
	struct ps_ring *rings;
	size_t nr_rings;
	int *ring_fds; // to poll, one a ring; ps_session_is_over changes them, -1: its threads are gone
	bool has_stacks;	  // of a source: records tell what is mapped where, too
	bool has_lost_count;	  // PERF_FORMAT_LOST is there (Linux 6.0)
	uint64_t id_base;	  // ids are dense: by_id[id - id_base]
	struct ps_stream **by_id; // holes are NULL
	size_t nr_by_id;
	struct ps_stream **far; // those whose ids are too far from id_base, by id
	size_t nr_far;
	void *priv; // libperf's objects
};

/**
 * Open all @sources on @target, disabled (a workload's enable at exec).
 *
 * Counters that this machine lacks are marked is_missing, with the reason, and logged once; with strict they are an
 * error. Where nothing remains, an error. A ring that the locked-memory quota refuses is tried smaller, with a
 * warning that names the knob. The soft limit of descriptors is raised to the hard one where it is too low, until the
 * session is destroyed.
 */
struct ps_error *ps_session_open(struct ps_source_list *sources, const struct ps_target *target,
				 const struct ps_session_options *options, struct ps_session **ret);
void ps_session_destroy(struct ps_session *session);

/**
 * Let processes that are forked from now on read the records that are at hand, as the parent does; the rings themselves
 * they cannot. For one session at a time, until it is destroyed.
 */
struct ps_error *ps_session_follow_forks(struct ps_session *session);

struct ps_error *ps_session_enable(struct ps_session *session);
void ps_session_disable(struct ps_session *session);

struct ps_stream *ps_session_find_far(const struct ps_session *session, uint64_t id);

/** The stream of @id, NULL where unknown. */
static inline struct ps_stream *ps_session_find(const struct ps_session *session, uint64_t id)
{
	uint64_t at = id - session->id_base;
	if (PS_LIKELY(at < session->nr_by_id))
		return session->by_id[at];
	return PS_UNLIKELY(session->nr_far) ? ps_session_find_far(session, id) : NULL;
}

/** A source's counts over all its descriptors. */
struct ps_count {
	uint64_t value;
	uint64_t enabled_ns,
		running_ns; // sums: could count, and did; running < enabled: multiplexed
	uint64_t lost;	    // samples that found no room (0 without PERF_FORMAT_LOST)
	bool is_valid;	    // false: missing, or a read failed, so that the sum would be too small
};

/**
 * Read the counts of @source now. They are not scaled. A pinned event that the PMU could not take for good makes them
 * invalid.
 */
void ps_session_count(const struct ps_session *session, const struct ps_source *source,
		      struct ps_count *ret);

/** What was counted from @before to @now, two reads of one source; coverage never comes out above 1. */
struct ps_count ps_count_between(const struct ps_count *before, const struct ps_count *now);

/** Read the lost count of each stream into it. */
void ps_session_read_lost(struct ps_session *session);

/**
 * Whether nothing can come any more: every target thread is gone (POLLHUP on all rings). False for other targets.
 *
 * To be called when poll tells POLLHUP: a ring that several threads share then gets the descriptor of one that lives
 * in ring_fds, or -1, which poll passes over, so that poll does not return for a thread that is gone.
 */
bool ps_session_is_over(const struct ps_session *session);

#endif
