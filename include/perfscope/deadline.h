// SPDX-License-Identifier: MIT
/**
 * Deadline: a thing that is due every so often, by the monotonic clock.
 */
#ifndef PERFSCOPE_DEADLINE_H
#define PERFSCOPE_DEADLINE_H

#include <perfscope/monotonic.h>
#include <stdbool.h>

struct ps_deadline {
	uint64_t period_ns; // 0: never due
	uint64_t next_ns;
};

/** Due for the first time one period after @now_ns. */
static inline struct ps_deadline ps_deadline_start(uint64_t period_ns, uint64_t now_ns)
{
	return (struct ps_deadline){ .period_ns = period_ns, .next_ns = now_ns + period_ns };
}

/**
 * Whether it is due at @now_ns; it is then set to the next period.
 *
 * Periods that were missed are passed over, so that it never fires twice for one, and the phase is kept, so that it
 * does not drift.
 */
static inline bool ps_deadline_take(struct ps_deadline *deadline, uint64_t now_ns)
{
	if (!deadline->period_ns || now_ns < deadline->next_ns)
		return false;
	uint64_t missed = (now_ns - deadline->next_ns) / deadline->period_ns;
	deadline->next_ns += (missed + 1) * deadline->period_ns;
	return true;
}

/** The earlier one of @wake_ns and the deadline. */
static inline uint64_t ps_deadline_limit(const struct ps_deadline *deadline, uint64_t wake_ns)
{
	if (!deadline->period_ns || deadline->next_ns > wake_ns)
		return wake_ns;
	return deadline->next_ns;
}

#endif
