// SPDX-License-Identifier: MIT
/**
 * Totals of a run and of an interval, as __exit__ and __interval__ get them. For src/script/ alone.
 */
#ifndef PERFSCOPE_RUN_TOTALS_H
#define PERFSCOPE_RUN_TOTALS_H

#include <perfscope/python.h>

struct ps_run_totals {
	const struct ps_session *session; // borrowed
	struct ps_count *start, *last;	  // by source, owned
	uint64_t start_ns, last_ns;	  // CLOCK_MONOTONIC
};

struct ps_error *ps_run_totals_init(struct ps_run_totals *totals, const struct ps_session *session);
void ps_run_totals_deinit(struct ps_run_totals *totals);

/** Count from now. */
void ps_run_totals_begin(struct ps_run_totals *totals);

/** {"run": PerfEventTotals} since the last call. New reference, or NULL with an exception set. */
PyObject *ps_run_totals_interval(struct ps_run_totals *totals, PyObject *module);

/** {"run": PerfEventTotals} of the whole run. New reference, or NULL with an exception set. */
PyObject *ps_run_totals_whole(struct ps_run_totals *totals, PyObject *module);

#endif
