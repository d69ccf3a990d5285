// SPDX-License-Identifier: MIT
/**
 * What regions counted as text.
 */
#ifndef PERFSCOPE_REGION_TEXT_H
#define PERFSCOPE_REGION_TEXT_H

#include <perfscope/counter.h>
#include <perfscope/text_table.h>

/**
 * Append what was counted to @table: "~" stands before an estimate, where counters had to take turns, and "-" for what
 * is not known (not @is_valid).
 */
void ps_region_text_add_value(struct ps_text_table *table, const struct ps_counter_reading *counted,
			      bool is_valid);

#endif
