// SPDX-License-Identifier: MIT
/**
 * Totals of regions, as __exit__ and __interval__ get them beside the run's. For src/script/ alone.
 */
#ifndef PERFSCOPE_REGION_TOTALS_H
#define PERFSCOPE_REGION_TOTALS_H

#include <perfscope/boundary.h>
#include <perfscope/python.h>

struct ps_region_totals {
	const struct ps_boundaries *boundaries;	   // borrowed; NULL: there are no regions
	const struct ps_region_spec_list *regions; // borrowed
	uint64_t *last; // the sums of all regions when __interval__ last got them, owned
	struct ps_count last_count; // of their counters, at that time
};

/** @boundaries may be NULL. */
struct ps_error *ps_region_totals_init(struct ps_region_totals *totals,
				       const struct ps_boundaries *boundaries,
				       const struct ps_region_spec_list *regions);
void ps_region_totals_deinit(struct ps_region_totals *totals);

/** Put a PerfEventTotals of each region into @dict: since the last such call. False with an exception set. */
bool ps_region_totals_add_interval(struct ps_region_totals *totals, PyObject *module,
				   PyObject *dict);

/** The same of the whole run so far; with @by_thread it stands in a dict, under thread id 0. */
bool ps_region_totals_add_whole(struct ps_region_totals *totals, PyObject *module, PyObject *dict,
				bool by_thread);

#endif
