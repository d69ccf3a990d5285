// SPDX-License-Identifier: MIT
/**
 * Monotonic: the clock by which perfscope itself measures how long something takes.
 */
#ifndef PERFSCOPE_MONOTONIC_H
#define PERFSCOPE_MONOTONIC_H

#include <stdint.h>
#include <time.h>

#define PS_NS_PER_MS 1000000ULL
#define PS_NS_PER_SECOND 1000000000ULL

/** @id's time now, ns. Safe in a signal handler. */
static inline uint64_t ps_clock_gettime_ns(clockid_t id)
{
	struct timespec now;
	clock_gettime(id, &now);
	return now.tv_sec * PS_NS_PER_SECOND + now.tv_nsec;
}

/** CLOCK_MONOTONIC now, ns. Safe in a signal handler. */
static inline uint64_t ps_monotonic_ns(void)
{
	return ps_clock_gettime_ns(CLOCK_MONOTONIC);
}

#endif
