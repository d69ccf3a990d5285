// SPDX-License-Identifier: MIT
/**
 * Regions that programs and the script passed, as __exit__ and __interval__ get them beside the run's totals.
 */
#ifndef PERFSCOPE_PROGRAM_REGIONS_H
#define PERFSCOPE_PROGRAM_REGIONS_H

#include <perfscope/region_table.h>
#include <perfscope/source.h>

/**
 * The counters of @sources that regions count too, each for the thread that is in one: neither samples nor what is
 * bound to a CPU, nor what this machine lacks. At most PS_MAX_COUNTERS; returns how many more there would be.
 */
size_t ps_program_regions_counters(const struct ps_source_list *sources,
				   struct ps_counter ret[PS_MAX_COUNTERS], size_t *ret_nr);

struct ps_program_regions {
	struct ps_region_table *table;	      // of those counters, borrowed; NULL: no regions
	const struct ps_source_list *sources; // borrowed
	struct ps_region_total *last;	      // what the last interval ended with, owned
	size_t nr_last;
};

/**
 * Put a PerfEventTotals for each region into @dict (a PyObject), since the last such call. A name that is taken there gets
 * "#2". False with an exception set. Wants the GIL.
 */
bool ps_program_regions_add_interval(struct ps_program_regions *regions, void *module, void *dict);

/**
 * The same of the whole run so far, with @by_thread as dicts of thread id to PerfEventTotals. @at_end: passes that are open
 * count as incomplete.
 */
bool ps_program_regions_add_whole(const struct ps_program_regions *regions, void *module,
				  void *dict, bool by_thread, bool at_end);

/** The names of the run's counters, a tuple. New reference (a PyObject), or NULL with an exception set. */
void *ps_program_regions_make_events(const struct ps_program_regions *regions);

/** A dict: counter to the reason why it has no value. New reference (a PyObject), or NULL with an exception set. */
void *ps_program_regions_make_reasons(const struct ps_program_regions *regions);

#endif
