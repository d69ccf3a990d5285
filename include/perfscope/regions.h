// SPDX-License-Identifier: MIT
/**
 * Regions of this process: names, and for each thread what it has open and what the table shall add up.
 *
 * A region adds up what its thread's counters counted from the outermost enter to the last leave of its name. Each
 * thread opens its counters when it first enters a region, and closes them when it ends.
 */
#ifndef PERFSCOPE_REGIONS_H
#define PERFSCOPE_REGIONS_H

#include <perfscope/region_table.h>

/** A name. It lives as long as the process. */
struct ps_region;

/** The region of @name for the calling thread, quickest for a @name at the same address as before; longer names are cut. */
struct ps_error *ps_region_find_quickly(const char *name, struct ps_region **ret);

/** The one region of @name, made where it is new. Errors: empty, reserved ("run"), too long. */
struct ps_error *ps_region_find(const char *name, struct ps_region **ret);

/**
 * Count @counters for the regions of this process from now on, in a table of its own; sums start at zero.
 *
 * @is_cost_subtracted: what is read has the cost of its passes taken off.
 * The calling thread's counters are opened here, so that what is refused is told by this error (PS_GROUP_STRICT; else
 * where nothing is left). In a program that perfscope observes, its events come first and these are added;
 * perfscope's table gets its own alone. Whoever offers this measures the cost of a pass then: ps_regions_calibrate.
 */
struct ps_error *ps_regions_configure(const struct ps_counter *counters, size_t nr,
				      unsigned int group_flags, bool is_cost_subtracted);

/** Write to @table from now on, which is kept by the caller for as long as the process lives. */
struct ps_error *ps_regions_attach(struct ps_region_table *table);

/** Write to the table that the environment names (PS_REGION_TABLE_VARIABLE); false: it names none that can be opened. */
bool ps_regions_attach_environment(void);

/** Whether this process made the table that it writes to: it is perfscope, which decides what regions count. */
bool ps_regions_are_of_run(void);

/** Whether someone looks: without, enter and leave do nothing. */
bool ps_regions_are_active(void);

/** A pass begins, in the calling thread. Allocates only when the thread enters this region for the first time. */
void ps_region_enter(struct ps_region *region);

/** Whether the calling thread is in a pass of @region, which is not paused. */
bool ps_region_is_open(struct ps_region *region);

/** A pass ends: calls + 1. One that has no begin in this thread counts as incomplete. */
void ps_region_leave(struct ps_region *region);

/** What a pass counted until it was paused, kept by who has the pass. Only count/ looks inside. */
struct ps_region_parts {
	uint64_t setup; // number of what was counted; 0: nothing yet
	uint32_t nr_inner;
	uint32_t failed; // bits of counters that could not be read
	uint64_t elapsed_ns;
	struct ps_counter_reading counted[PS_MAX_COUNTERS];
};

/**
 * The pass goes on later, or in another thread, a suspended coroutine's: nothing is counted until it is resumed.
 *
 * @parts, whose setup is 0 when the pass begins, takes what it counted: none of that is in the sums before the pass ends.
 * It may never be resumed, and is incomplete then.
 */
void ps_region_pause(struct ps_region *region, struct ps_region_parts *parts);
void ps_region_resume(struct ps_region *region);

/** A pass that was paused meanwhile ends, with its @parts: as ps_region_leave(). */
void ps_region_leave_with(struct ps_region *region, const struct ps_region_parts *parts);

/**
 * A pass will not end: it counts as incomplete, and what it counted is left out, with its @parts (NULL: it was never
 * paused). A paused one is resumed first.
 */
void ps_region_abandon(struct ps_region *region, const struct ps_region_parts *parts);

/** What the regions of this process counted, all of it under one configure; it stays whole beside another. */
struct ps_regions_reading {
	const struct ps_counter *counters; // of the sums, in their order
	size_t nr_counters;
	struct ps_region_total *totals; // as of ps_region_table_read
	size_t nr;
	struct ps_region_sums cost; // of an empty pass, by ps_regions_calibrate; calls 0: not known
	bool is_cost_subtracted;    // from totals
	size_t nr_groups;	    // of the kernel, as ps_region_table_nr_groups
	uint64_t nr_missed;  // so often a thread found no room for a region: its passes are missing
	struct setup *setup; // what the pointers are of; NULL: nobody looks, and all is 0
};

struct ps_error *ps_regions_read(bool by_thread, struct ps_regions_reading *ret);
void ps_regions_reading_release(struct ps_regions_reading *reading);
/** Why counter @index has no value; NULL: it has. */
const char *ps_regions_reading_reason(const struct ps_regions_reading *reading, size_t index);

static inline void ps_regions_reading_release_p(struct ps_regions_reading *reading)
{
	ps_regions_reading_release(reading);
}
#define _cleanup_regions_reading_ _cleanup_(ps_regions_reading_release_p)

/** Sums start from zero again. */
struct ps_error *ps_regions_reset(void);

/** One empty pass of @region, made as users make theirs; false: it failed. */
typedef bool ps_region_pass_function(struct ps_region *region, void *argument);

/**
 * Measure what an empty pass counts by itself in the calling thread, as @pass makes it, with nothing of it in the totals:
 * the median of many, for what is read from now on.
 *
 * False: there is no memory, nobody looks, @pass failed, or another thread configured meanwhile. Then nothing is known.
 */
bool ps_regions_calibrate(struct ps_region *region, ps_region_pass_function *pass, void *argument);

/** Take what @cost says of a pass off the values and the time of @sums for each of its calls, never below 0. */
void ps_regions_take_off(struct ps_region_sums *sums, const struct ps_region_sums *cost);

#endif
