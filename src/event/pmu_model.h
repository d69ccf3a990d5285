// SPDX-License-Identifier: MIT
/**
 * Names of a processor model's own counters, through libpfm4. It is set up at the first call that
 * needs it.
 */
#ifndef PERFSCOPE_PMU_MODEL_H
#define PERFSCOPE_PMU_MODEL_H

#include <perfscope/pmu.h>

/**
 * Encode @name into @attr; @ret tells whether libpfm4 knows it. An error: it does, but not this
 * unit mask.
 */
struct ps_error *ps_model_encode(const char *name, struct perf_event_attr *attr, bool *ret);

/** Visit the names of the models found here; false when @visit ended the walk. */
bool ps_model_walk(ps_counter_visit visit, void *argument);

#endif
