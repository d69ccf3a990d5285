// SPDX-License-Identifier: MIT
#include "source_check.h"

#include <perfscope/log.h>

#define WEIGHTS (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)

struct ps_error *source_check_parts(const struct ps_spec *spec, const struct ps_source *source)
{
	if (source->is_sampling || (!spec->sample_type && !spec->has_stack))
		return NULL;
	return ps_error_format(PS_ERROR_USAGE,
			       "%s: a counter that only counts has no samples (add freq=HZ or "
			       "period=N, or give -F or -c)",
			       spec->text);
}

/** Whether the kernel makes the samples, not a PMU. */
static bool is_software(const struct ps_source *source)
{
	uint32_t type = source->attr.type;
	return source->probe || type == PERF_TYPE_SOFTWARE || type == PERF_TYPE_TRACEPOINT ||
	       type == PERF_TYPE_BREAKPOINT;
}

void source_tell_without_pmu(const struct ps_spec *spec, const struct ps_source *source)
{
	// A modifier behind the brace of a group is for those that know it.
	if (!is_software(source) || spec->kind == PS_SPEC_PROFILE)
		return;
	if (source->is_sampling && spec->precise_ip && !spec->group)
		ps_log(PS_LOG_WARNING,
		       "%s: only a hardware PMU places samples precisely; p changes nothing here "
		       "(leave it out)",
		       source->label);
	bool has_weight = spec->sample_type & WEIGHTS;
	bool has_source = spec->sample_type & PERF_SAMPLE_DATA_SRC;
	if (has_weight || has_source)
		ps_log(PS_LOG_WARNING,
		       "%s: only a hardware PMU tells %s%s%s; without one %s (leave it out)",
		       source->label, has_weight ? "weight" : "",
		       has_weight && has_source ? " and " : "", has_source ? "data-src" : "",
		       has_weight ? "0 is all it says" : "N/A is all it says");
}
