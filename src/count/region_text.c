// SPDX-License-Identifier: MIT
#include <perfscope/region_text.h>

#include <inttypes.h>

void ps_region_text_add_value(struct ps_text_table *table, const struct ps_counter_reading *counted,
			      bool is_valid)
{
	if (!is_valid || (counted->enabled_ns && !counted->running_ns))
		ps_text_table_add(table, "-");
	else if (counted->running_ns < counted->enabled_ns)
		ps_text_table_add(table, "~%.0f",
				  (double)counted->value * counted->enabled_ns /
					  counted->running_ns);
	else
		ps_text_table_add(table, "%" PRIu64, counted->value);
}
