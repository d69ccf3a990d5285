// SPDX-License-Identifier: MIT
/**
 * Names of counters to perf_event_attr's type and config: generic, cache and software counters by perf's names and
 * aliases, PMUs of sysfs with their terms and named events, model-specific names through libpfm4.
 */
#ifndef PERFSCOPE_PMU_H
#define PERFSCOPE_PMU_H

#include <linux/perf_event.h>
#include <perfscope/spec.h>

/**
 * Fill type, config* and precise bits of @attr for a PS_SPEC_COUNTER, _RAW, _PMU, _BREAKPOINT or _PROFILE.
 *
 * Errors: PS_ERROR_NOT_FOUND with the nearest names, PS_ERROR_USAGE for a term's value. A counter that can be named
 * and not opened here is no error. PERFSCOPE_PMUS names another folder than sysfs' of PMUs.
 */
struct ps_error *ps_pmu_resolve(const struct ps_spec *spec, struct perf_event_attr *attr);

/** A counter that can be named here, for `perfscope list`. */
struct ps_counter_name {
	const char *kind; // "hardware", "cache", "software", "pmu", "libpfm4"
	const char *name;
	const char *alias; // other name, or NULL
	struct perf_event_attr attr;
};

/** Called for each name; false ends the walk. */
typedef bool (*ps_counter_visit)(const struct ps_counter_name *name, void *argument);
struct ps_error *ps_counter_walk(ps_counter_visit visit, void *argument);

/** Whether sysfs has the PMU @name. */
bool ps_pmu_exists(const char *name);

/** Whether a PMU of the processor is there (a "cpu*" or "armv8*" PMU in sysfs). */
bool ps_pmu_has_hardware(void);

#endif
