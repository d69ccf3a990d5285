// SPDX-License-Identifier: MIT
/**
 * How the regions of this process stand: what is counted for whom, and what each thread has.
 */
#ifndef PERFSCOPE_COUNT_ENGINE_H
#define PERFSCOPE_COUNT_ENGINE_H

#include "table.h"
#include <perfscope/monotonic.h>
#include <perfscope/regions.h>

struct ps_region {
	uint32_t id; // from 0, without gaps
	char name[PS_REGION_NAME_SIZE];
};

/** A table and which of the counters are its. */
struct sink {
	struct ps_region_table *table;
	size_t nr;
	uint8_t indexes[PS_MAX_COUNTERS];
};

enum sink_index {
	SINK_OWN,
	SINK_ATTACHED, // perfscope's
	NR_SINKS,
};

/** What is counted, from one configure to the next. Threads hold it until they see another. */
struct setup {
	size_t nr_refs;	 // under engine_lock
	uint64_t number; // of all setups of this process and, after a fork, of the child; not 0
	size_t nr_counters, nr_sinks;
	unsigned int group_flags;
	struct ps_counter counters[PS_MAX_COUNTERS]; // of all sinks, without doubles
	struct sink sinks[NR_SINKS];
	bool is_cost_subtracted;
	struct ps_region_sums cost; // of an empty pass, under engine_lock
};

/** What one thread has of one region. */
struct pass {
	struct ps_region_slot *slots[NR_SINKS]; // NULL: its table is full
	uint32_t depth;
	uint32_t nr_inner; // ended inside the one that is open: their values come with its end
	uint32_t failed;   // bits of counters that could not be read at the start
	uint64_t start_ns;
	struct ps_region_parts
		*held; // of those of nr_inner that were paused; NULL: there are none. Owned
	struct ps_counter_reading start[PS_MAX_COUNTERS];
};

#define NR_QUICK_NAMES 64

struct thread {
	struct setup *setup;
	struct ps_counter_group *group; // NULL: nothing could be opened
	struct pass **passes;		// by the region's id
	size_t nr_passes;
	struct {
		const char *address;
		struct ps_region *region;
	} names[NR_QUICK_NAMES];
	struct thread *next, **link; // of all threads, under engine_lock
};

// Initial-exec: one load, also in an extension module, of the little static room that every loader keeps.
extern __thread struct thread *engine_thread __attribute__((tls_model("initial-exec")));
extern struct setup *_Atomic engine_setup; // NULL: nobody looks
extern pthread_mutex_t engine_lock;	   // of threads, setups and names
/** Not 0 in the process that the rest is of: 0 in a child that was made without the handlers of fork (clone, _Fork). */
extern uint32_t *engine_mark;

/** Bring the calling thread up to engine_setup; NULL: nobody looks, or there is no memory. */
struct thread *thread_renew(void);
/** Let @thread have a place for @region; false: no memory. */
bool thread_make_room(struct thread *thread, const struct ps_region *region);
/** Make what @thread has of @region; NULL: no memory. */
struct pass *thread_make_pass(struct thread *thread, const struct ps_region *region);
/** Of a thread that ends, or of the parent's in a child of fork: then nothing is written. With engine_lock held. */
void thread_destroy(struct thread *thread, bool is_of_parent);

/** Count @counters for this process, and what @outer asks for too unless it is NULL. One reference is the caller's. */
struct ps_error *setup_new(const struct ps_counter *counters, size_t nr, unsigned int group_flags,
			   struct ps_region_table *outer, struct setup **ret);
/** With engine_lock held, or where nobody else knows @setup. */
void setup_unref(struct setup *setup);
/** The refusals of @group, as an error: of any counter of the process's own where @is_strict, or of all of them. */
struct ps_error *setup_refused_error(const struct setup *setup,
				     const struct ps_counter_group *group, bool is_strict);
/** Tell the tables what @group was refused, and into how many its counters are split. */
void setup_tell_group(const struct setup *setup, const struct ps_counter_group *group);

PS_DEFINE_CLEANUP(struct setup *, setup_unref, setup_unref)
#define _cleanup_setup_ _cleanup_(setup_unref_p)

/** The setup of now, which the caller gives back by setup_put; NULL: nobody looks. */
struct setup *setup_get(void);
void setup_put(struct setup *setup);

/** The calling thread, ready to count; NULL: nobody looks. */
static inline struct thread *thread_ready(void)
{
	struct thread *thread = engine_thread;
	const struct setup *setup = atomic_load_explicit(&engine_setup, memory_order_acquire);
	if (PS_UNLIKELY(!setup))
		return NULL;
	bool is_ready =
		thread && thread->setup == setup && __atomic_load_n(engine_mark, __ATOMIC_RELAXED);
	return PS_LIKELY(is_ready) ? thread : thread_renew();
}

static inline struct pass *thread_pass(struct thread *thread, const struct ps_region *region)
{
	struct pass *pass = region->id < thread->nr_passes ? thread->passes[region->id] : NULL;
	return PS_LIKELY(pass) ? pass : thread_make_pass(thread, region);
}

/** A number for a setup that no other has had. */
uint64_t setup_next_number(void);

/** Count @nr passes as incomplete, of which @nr_opened were open. */
void pass_count_incomplete(const struct pass *pass, uint32_t nr, int nr_opened);

#endif
