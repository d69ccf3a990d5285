// SPDX-License-Identifier: MIT
/**
 * What regions counted as text.
 */
#ifndef PERFSCOPE_REGION_TEXT_H
#define PERFSCOPE_REGION_TEXT_H

#include <perfscope/counter.h>
#include <perfscope/text_table.h>

/** Of counters that stand in %zu groups of the kernel, more than 1. */
#define PS_REGION_TEXT_SPLIT                                                                       \
	"the counters do not fit on the PMU together: they are counted in %zu groups, each read "  \
	"at a moment of its own"

/**
 * Append what was counted to @table: "~" stands before an estimate, where counters had to take turns, and "-" for what
 * is not known (not @is_valid).
 */
void ps_region_text_add_value(struct ps_text_table *table, const struct ps_counter_reading *counted,
			      bool is_valid);

#endif
