// SPDX-License-Identifier: MIT
/**
 * Passes: from events that begin and end regions, and the counters' values at each, to what each region counted.
 *
 * Matching is per thread. What began and did not end, ended and did not begin, or may have lost a record in between
 * counts as incomplete, and nothing of it is added up. Each begin and each end is part of a call that counts, or of
 * what is incomplete, once; so is what is open before the end.
 */
#ifndef PERFSCOPE_PASSES_H
#define PERFSCOPE_PASSES_H

#include <perfscope/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** The most counters of a region: each has a bit in `invalid`. */
#define PS_PASS_MAX_COUNTERS 64

/** What the counters that samples tell of count. */
enum ps_pass_scope {
	PS_PASS_THREAD,	    // one thread, on any CPU
	PS_PASS_THREAD_CPU, // one thread while it is on one CPU
	PS_PASS_CPU,	    // one CPU, whoever runs on it
};

/** What stands in front of the values of counters wherever there is an array of them. */
enum { PS_PASS_ENABLED_NS, PS_PASS_RUNNING_NS, PS_PASS_NR_TIMES };

struct ps_pass_options {
	enum ps_pass_scope scope;
	size_t nr_regions, nr_counters;
	size_t nr_cpus; // highest CPU + 1
	size_t nr_rings;
	bool sees_all;	    // all that run on a CPU have samples when they leave it (PS_PASS_CPU)
	bool sees_switches; // each thread that leaves a CPU has a sample there
	size_t max_threads; // known at a time; 0: as many as 64 MiB have room for
};

/** An event of a thread: a begin, an end, or, where counters are of a CPU, that the thread leaves it. */
struct ps_pass_sample {
	uint64_t time_ns;
	pid_t pid, tid; // -1: the thread is gone, or it is not known which it is
	uint32_t cpu, ring;
	bool is_switch;		// the thread leaves this CPU
	pid_t next;		// who comes after a switch, 0: the idle thread; -1: not told
	uint64_t invalid;	// bit of each counter that has no value here
	const uint64_t *counts; // times, then each counter, as they are; borrowed
};

/** A pass that ended. */
struct ps_pass {
	size_t region;
	pid_t pid, tid;
	uint32_t cpu; // of the end
	uint64_t begin_ns, end_ns;
	uint64_t calls;	  // 1, more with recursion
	uint64_t invalid; // bit of each counter without a value
	const uint64_t *
		counts; // times, then each counter, from begin to end; borrowed until the next call
};

/** What a region added up. */
struct ps_pass_sums {
	uint64_t calls, incomplete;
	uint64_t open; // passes that have begun, and are in none of the others yet
	uint64_t elapsed_ns; // from begins to ends
	uint64_t invalid;    // bit of each counter that had no value in some pass
	uint64_t *counts;    // times, then each counter
};

struct ps_passes;

struct ps_error *ps_passes_create(const struct ps_pass_options *options, struct ps_passes **ret);
void ps_passes_destroy(struct ps_passes *passes); // takes NULL

/**
 * Take the counters' values at @sample. To be called once for each record, before what begins or ends there. Hot:
 * allocates only when a thread is new and no more were known at a time so far.
 */
void ps_passes_sample(struct ps_passes *passes, const struct ps_pass_sample *sample);

/** @region begins at the sample last taken. */
void ps_passes_begin(struct ps_passes *passes, size_t region, const struct ps_pass_sample *sample);

/** @region ends at the sample last taken; whether a pass is over: not within a recursion, nor without a begin. */
bool ps_passes_end(struct ps_passes *passes, size_t region, const struct ps_pass_sample *sample,
		   struct ps_pass *ret);

/** Thread @tid ended: what it has open is incomplete, and it is forgotten. */
void ps_passes_exit(struct ps_passes *passes, pid_t tid);

/** Records of @ring were lost: what may have been in them is incomplete. */
void ps_passes_lost(struct ps_passes *passes, uint32_t ring);

/** A begin or an end of @region is known of that could not be read: it is incomplete. ps_passes_lost tells the gap. */
void ps_passes_miss(struct ps_passes *passes, size_t region);

/** Nothing comes any more: what is open is incomplete. */
void ps_passes_finish(struct ps_passes *passes);

/** What @region added up so far. Borrowed; it changes with the next pass. */
const struct ps_pass_sums *ps_passes_sums(const struct ps_passes *passes, size_t region);

/** Number of threads known now, and that were not followed for want of room. */
size_t ps_passes_nr_threads(const struct ps_passes *passes);
uint64_t ps_passes_nr_missed(const struct ps_passes *passes);

#endif
