// SPDX-License-Identifier: MIT
/**
 * Session: the opened sources, their descriptors and rings.
 */
#ifndef PERFSCOPE_SESSION_H
#define PERFSCOPE_SESSION_H

#include <perfscope/machine.h>
#include <perfscope/clock.h>
#include <perfscope/ring.h>
#include <perfscope/sample.h>
#include <perfscope/source.h>
#include <perfscope/target.h>

/** What a descriptor counted, as read from it. */
struct ps_reading {
	uint64_t value, enabled_ns, running_ns, lost;
};

/** Samples that came with the time of another program's event (ps_record_read_shared). */
struct ps_foreign {
	uint64_t
		nr_timed; // those whose own time was worked out from the enabled time of their event
	uint64_t nr_guessed; // those of threads, where that is not known
	bool has_ahead;
	int64_t ahead_ns;	   // how far the other's clock seems to be ahead of the session's
	uint64_t begin_ns, now_ns; // the session's clock, at the start and as last read for these
};

/** Bits of ps_stream.span, of an event of a thread on one CPU. */
enum ps_span {
	PS_SPAN_ALL = 1 << 0,	// its source stands on all other CPUs too
	PS_SPAN_FIRST = 1 << 1, // on the one that is enabled and read first
	PS_SPAN_LAST = 1 << 2,	// on the last one
};

/** One source on one CPU or thread: a descriptor and its id. */
struct ps_stream {
	struct ps_source *source; // NULL: the session's own side-band (COMM, FORK, EXIT)
	struct ps_sample_layout layout;
	uint64_t id;	    // 0: none
	int fd;		    // -1: its CPU has been offline so far
	int cpu;	    // -1: any
	pid_t tid;	    // -1: all of the CPU
	uint32_t ring;	    // index
	bool is_leader;	    // alone, or the first of its group at its place
	uint64_t delivered; // samples handed out, as dispatch counts them
	uint64_t lost;	    // told by PERF_FORMAT_LOST when last read
	uint64_t throttled; // stretches in which the kernel made no samples, to keep to its limit
	struct ps_reading kept; // of descriptors before this one: the CPU went and came back
	bool is_kept_short;	// one of those could not be read
	uint8_t span;		// enum ps_span; 0: not of a thread on a CPU, or not on all
	uint64_t ahead_ns;	// of PS_SPAN_FIRST: enabled before those on other CPUs were
	// Of sources whose samples may come with the id of another event (ps_attr_shares_samples):
	uint16_t
		named_at; // where they say whose they are, in bytes from the header; 0: the id in front is right
	bool is_clock;	      // the enabled time goes on without a pause
	uint64_t anchored_ns; // the enabled time when anchor_ns was measured, 0: never
	uint64_t anchor_ns;   // the session's clock less the enabled time
	struct ps_stream
		*first_member; // of a leader: those of its group with named_at, by next_member
	struct ps_stream *next_member;
};

#define PS_MAX_NAMED_AT 8

/** A stream by one of the ids that it has had. */
struct ps_stream_id {
	uint64_t id;
	struct ps_stream *stream;
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
	struct ps_source_list *sources;	  // borrowed
	const struct ps_machine *machine; // that wrote the records, borrowed; NULL: this one
	struct ps_stream *streams;
	size_t nr_streams;
	struct ps_ring *rings;
	size_t nr_rings; // grows when a CPU that was offline comes
	size_t max_rings;
	int *ring_fds; // to poll, one a ring; ps_session_is_over changes them, -1: its threads are gone
	bool has_stacks;	  // of a source: records tell what is mapped where, too
	bool has_lost_count;	  // PERF_FORMAT_LOST is there (Linux 6.0)
	bool has_reopened;	  // a descriptor: its CPU came, or came back
	uint64_t id_base;	  // ids are dense: by_id[id - id_base]
	struct ps_stream **by_id; // holes are NULL
	size_t nr_by_id;
	struct ps_stream_id *far; // those whose ids are too far from id_base, by id
	size_t nr_far;
	struct ps_stream_id *ids; // all, by id; far is its end
	size_t nr_ids;
	uint16_t named_at[PS_MAX_NAMED_AT]; // of all streams, ascending
	size_t nr_named_at;
	struct ps_foreign foreign;
	void *priv; // libperf's objects
};

/**
 * Open all @sources on @target, disabled (a workload's enable at exec).
 *
 * Counters that this machine lacks are marked is_missing, with the reason, and logged once; with strict they are an
 * error. Where nothing remains, an error. A ring that the locked-memory quota refuses is tried smaller, with a
 * warning that names the knob. The soft limit of descriptors is raised to the hard one where it is too low, until the
 * session is destroyed. The cgroup of @target must stay open until then too.
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
	uint64_t slack_ns;  // could count for at most so much more: not all is read at one moment
	uint64_t lost;	    // samples that found no room (0 without PERF_FORMAT_LOST)
	uint64_t throttled; // stretches in which the kernel held it back, or one of its group
	bool is_valid;	    // false: missing, or a read failed, so that the sum would be too small
};

/**
 * Read the counts of @source now. They are not scaled. A pinned event that the PMU could not take for good makes them
 * invalid.
 */
void ps_session_count(const struct ps_session *session, const struct ps_source *source,
		      struct ps_count *ret);

/**
 * The same of all sources, into @ret by their index. Each group is read at once, so that its counts belong to one moment
 * also while it counts.
 */
void ps_session_count_all(const struct ps_session *session, struct ps_count *ret);

/**
 * What was counted from @before to @now, two reads of one source. Coverage never comes out above 1, and is less where a
 * part is missing for sure: what @before leaves open may have been missing then. Not valid where the kernel held the event
 * back in between, as far as is known: it does not count then either.
 */
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

/** What became of a CPU since it was last looked at. */
enum ps_cpu_change {
	PS_CPU_SAME, // also where it is not observed as such: events of threads follow them
	PS_CPU_LOST,
	PS_CPU_BACK, // perhaps it was away for a moment only, between two looks
};

/**
 * Compare @cpu as it is now with the session's descriptors. The kernel silences those for good when the CPU goes offline.
 *
 * @is_told: somebody says that it came online. For a cgroup, whose events are silent too while nothing of it runs, it
 * then counts as having been away.
 */
enum ps_cpu_change ps_session_cpu_look(const struct ps_session *session, int cpu, bool is_told);

/** The CPU @at, from 0 on, of those whose events are those of the CPU; false: there are no more. */
bool ps_session_nth_cpu(const struct ps_session *session, size_t at, int *ret);

/** Whether threads are observed on the CPUs that were online at the start, and @cpu, which is now, was not. */
bool ps_session_misses_cpu(const struct ps_session *session, int cpu);

/** @cpu went offline. Its ring is still read, and what its descriptors counted stays in the counts. */
void ps_session_cpu_lost(struct ps_session *session, int cpu);

/** What came of opening the events of a CPU again. */
struct ps_cpu_back {
	uint64_t away_ns; // how long it was away, 0: not known
	bool is_open;	  // not where its ring could not be had
	bool has_samples; // of a source
	bool is_first;	  // it was offline from the start
	uint32_t ring;	  // the index of its ring
	uint64_t
		start_ns; // records from here on, by the session's clock, are of the new descriptors
	size_t nr_failed; // sources that could not be opened again; their counts stand still
};

/**
 * @cpu is back: open its events again, with all that they had, and enable them where the session is enabled.
 *
 * Records of the old descriptors stay in the ring, which the new ones write into. An error is that of the first source
 * that was refused, with nr_failed set in @ret, or of them all, where the ring itself could not be had.
 */
struct ps_error *ps_session_cpu_back(struct ps_session *session, int cpu, struct ps_cpu_back *ret);

#endif
