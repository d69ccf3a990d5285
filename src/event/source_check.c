// SPDX-License-Identifier: MIT
#include "source_check.h"

#include <perfscope/log.h>

#define WEIGHTS (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)

struct ps_error *source_check_parts(const struct ps_spec *spec, const struct ps_source *source)
{
	bool is_both = source->attr.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK;
	if (is_both && spec->sample_type & PERF_SAMPLE_BRANCH_STACK)
		return ps_error_format(PS_ERROR_USAGE,
				       "%s: a sample has the last branches or those of its call "
				       "stack, not both (leave out branch or --call-graph=lbr)",
				       spec->text);
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
	static const struct {
		uint64_t bits;
		const char *name, *said;
	} parts[] = {
		{ WEIGHTS, "weight", "0" },
		{ PERF_SAMPLE_TRANSACTION, "transaction", "0" },
		{ PERF_SAMPLE_DATA_SRC, "data-src", "N/A" },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(parts); i++) {
		if (spec->sample_type & parts[i].bits)
			ps_log(PS_LOG_WARNING,
			       "%s: only a hardware PMU tells %s; without one %s is all it says "
			       "(leave it out)",
			       source->label, parts[i].name, parts[i].said);
	}
}

static bool has_calls(const struct ps_source *source)
{
	return source->attr.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK;
}

void source_settle_calls(const struct ps_source_list *list)
{
	bool is_known = false;
	for (size_t i = 0; i < list->nr_sources; i++)
		is_known |= has_calls(list->sources[i]) && !is_software(list->sources[i]);
	const struct ps_spec *told = NULL;
	for (size_t i = 0; is_known && i < list->nr_sources; i++) {
		struct ps_source *source = list->sources[i];
		if (!has_calls(source) || !is_software(source))
			continue;
		source->attr.sample_type &= ~(uint64_t)PERF_SAMPLE_BRANCH_STACK;
		source->attr.branch_sample_type = 0;
		if (source->spec != told)
			ps_log(PS_LOG_WARNING,
			       "%s: only a PMU records calls: its stacks follow frame pointers",
			       source->label);
		told = source->spec;
	}
}

bool ps_attr_shares_samples(const struct perf_event_attr *attr)
{
	// The two clocks are timers of their own; the others of this type make no samples, or one at a time.
	static const uint64_t shared =
		1 << PERF_COUNT_SW_PAGE_FAULTS | 1 << PERF_COUNT_SW_CONTEXT_SWITCHES |
		1 << PERF_COUNT_SW_CPU_MIGRATIONS | 1 << PERF_COUNT_SW_PAGE_FAULTS_MIN |
		1 << PERF_COUNT_SW_PAGE_FAULTS_MAJ | 1 << PERF_COUNT_SW_ALIGNMENT_FAULTS |
		1 << PERF_COUNT_SW_EMULATION_FAULTS | 1 << PERF_COUNT_SW_CGROUP_SWITCHES;
	return attr->type == PERF_TYPE_SOFTWARE && attr->config < 64 && shared >> attr->config & 1;
}

/** Whether the kernel would write the same into samples of @source and @other, of one group. */
static bool is_alike(const struct ps_source *source, const struct ps_source *other)
{
	return source->is_sampling && other->is_sampling && source->group == other->group &&
	       ps_attr_shares_samples(&source->attr) && other->attr.type == PERF_TYPE_SOFTWARE &&
	       source->attr.config == other->attr.config;
}

struct ps_error *source_check_group(const struct ps_source_list *list, unsigned int group)
{
	for (size_t i = 0; i < list->nr_sources; i++) {
		for (size_t j = 0; list->sources[i]->group == group && j < i; j++) {
			if (is_alike(list->sources[i], list->sources[j]))
				return ps_error_format(
					PS_ERROR_USAGE,
					"%s and %s sample the same event in one group, and the "
					"kernel does not say which of them a sample is of (let one "
					"count, or put it outside of the group)",
					list->sources[j]->label, list->sources[i]->label);
		}
	}
	return NULL;
}
