// SPDX-License-Identifier: MIT
/** A plugin with regions of its own copy of the library. */
#include <perfscope/region.h>

int plugin_configure(void)
{
	return perfscope_region_configure("task-clock", 0);
}

void plugin_pass(void)
{
	PERFSCOPE_REGION("plugin");
}

int plugin_calls(void)
{
	struct perfscope_region_total total;
	return perfscope_region_totals("plugin", &total) ? -1 : (int)total.calls;
}
