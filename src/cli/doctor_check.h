// SPDX-License-Identifier: MIT
/**
 * What the checks of `perfscope doctor` share, and those of the hardware.
 */
#ifndef PERFSCOPE_DOCTOR_CHECK_H
#define PERFSCOPE_DOCTOR_CHECK_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <sys/types.h>

/** What a check found. */
struct finding {
	bool is_able;
	char *detail; // owned; NULL: no memory
};

struct finding __attribute__((format(printf, 2, 3))) found(bool is_able, const char *format, ...);
#define YES(...) found(true, __VA_ARGS__)
#define NO(...) found(false, __VA_ARGS__)

/** Open @attr, disabled; the descriptor, or -1 and errno. */
int open_event(struct perf_event_attr *attr, pid_t pid, int cpu);

/** Why perf_event_open failed with @os_errno; a perf_event_paranoid of @wanted would do. */
struct finding explain_open(int os_errno, int wanted);

/** The type of the PMU @name of sysfs; -1: there is none. */
int read_pmu_type(const char *name);

struct finding check_pmu(void);
struct finding check_precise(void);
struct finding check_branches(void);
struct finding check_memory(void);
struct finding check_breakpoints(void);
struct finding check_tsc(void);

#endif
