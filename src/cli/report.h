// SPDX-License-Identifier: MIT
#ifndef PERFSCOPE_CLI_REPORT_H
#define PERFSCOPE_CLI_REPORT_H

#include <perfscope/dispatch.h>
#include <perfscope/merge.h>
#include <perfscope/region_table.h>
#include <perfscope/symbol.h>

/** Tell at the end of a run what did not come, or not as it should; @symbolizer may be NULL. */
void ps_report(const struct ps_session *session, const struct ps_merge *merge,
	       const struct ps_dispatch *dispatch, const struct ps_symbolizer *symbolizer);

/** What keeps the totals of regions in @table from being whole. */
void ps_report_regions(const struct ps_region_table *table);

#endif
