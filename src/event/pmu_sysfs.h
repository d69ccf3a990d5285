// SPDX-License-Identifier: MIT
/**
 * PMUs as sysfs describes them: their types, terms and named events.
 */
#ifndef PERFSCOPE_PMU_SYSFS_H
#define PERFSCOPE_PMU_SYSFS_H

#include <perfscope/pmu.h>

/** The folder of PMUs; PERFSCOPE_PMUS names another one. */
const char *ps_pmu_folder(void);

/**
 * Encode the PMU and the terms of @spec into @attr. PS_ERROR_NOT_FOUND where the PMU is unknown.
 */
struct ps_error *ps_pmu_encode(const struct ps_spec *spec, struct perf_event_attr *attr);

/** Visit the named events of all PMUs, as "msr/tsc/"; false when @visit ended the walk. */
bool ps_pmu_walk(ps_counter_visit visit, void *argument);

/** PS_ERROR_NOT_FOUND for the PMU @name, with the nearest. */
struct ps_error *ps_pmu_unknown(const char *name);

#endif
