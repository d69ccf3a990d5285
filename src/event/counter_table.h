// SPDX-License-Identifier: MIT
/**
 * The counters that the kernel itself names: hardware, cache and software. No system call is made
 * here.
 */
#ifndef PERFSCOPE_COUNTER_TABLE_H
#define PERFSCOPE_COUNTER_TABLE_H

#include <perfscope/pmu.h>

/**
 * Set type and config of @attr to the counter called @name; false where no counter is called so.
 */
bool ps_counter_find(const char *name, struct perf_event_attr *attr);

/**
 * Visit each name once, the cache counters by their first spelling; false when @visit ended the
 * walk.
 */
bool ps_counter_table_walk(ps_counter_visit visit, void *argument);

#endif
