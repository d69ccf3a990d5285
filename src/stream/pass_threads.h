// SPDX-License-Identifier: MIT
/**
 * The threads whose passes are followed: found by number, kept in a pool that only grows.
 */
#ifndef PERFSCOPE_STREAM_PASS_THREADS_H
#define PERFSCOPE_STREAM_PASS_THREADS_H

#include <perfscope/passes.h>

/** A thread. Its account, what it has open and counters as last seen stand behind it. */
struct ps_pass_thread {
	int64_t key;
	struct ps_pass_thread *next; // in its bucket, or of those that are free
	uint32_t ring, cpu;	     // of its last sample
	bool is_out;		     // which was that it leaves its CPU
	uint32_t nr_open;	     // regions
};

/** A region that a thread is in. */
struct ps_open_pass {
	uint32_t depth;	   // begins without end; 0: not open
	uint64_t nr_ended; // ends within the outermost
	uint64_t begin_ns;
	uint64_t invalid;
	uint64_t counts[]; // the account at the begin
};

/** Counters of a thread, on one CPU where they are of one, as last seen. */
struct ps_last_counts {
	uint64_t nr_losses;	 // of the ring, at that time
	uint64_t all_running_ns; // of the thread's counters on all CPUs, at that time
	bool is_seen;
	uint64_t counts[];
};

struct ps_pass_threads;

/** NULL: no memory. */
struct ps_pass_threads *ps_pass_threads_create(const struct ps_pass_options *options);
void ps_pass_threads_destroy(struct ps_pass_threads *threads); // takes NULL

/** The thread of @key, NULL: not known. */
struct ps_pass_thread *ps_pass_threads_find(const struct ps_pass_threads *threads, int64_t key);

/** A new thread, all zero. NULL: no room, which is counted. */
struct ps_pass_thread *ps_pass_threads_add(struct ps_pass_threads *threads, int64_t key);
void ps_pass_threads_remove(struct ps_pass_threads *threads, struct ps_pass_thread *thread);

/** Call @call for each, which may remove it. */
void ps_pass_threads_each(struct ps_pass_threads *threads,
			  void (*call)(struct ps_pass_thread *thread, void *argument,
				       uint32_t ring),
			  void *argument, uint32_t ring);

uint64_t *ps_pass_thread_account(const struct ps_pass_threads *threads,
				 struct ps_pass_thread *thread);
struct ps_open_pass *ps_pass_thread_open(const struct ps_pass_threads *threads,
					 struct ps_pass_thread *thread, size_t region);
struct ps_last_counts *ps_pass_thread_last(const struct ps_pass_threads *threads,
					   struct ps_pass_thread *thread, size_t cpu);

size_t ps_pass_threads_nr(const struct ps_pass_threads *threads);
uint64_t ps_pass_threads_nr_missed(const struct ps_pass_threads *threads);

#endif
