// SPDX-License-Identifier: MIT
#include "counter_table.h"

#include <perfscope/cleanup.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct counter {
	const char *name;
	const char *alias;
	uint32_t type;
	uint64_t config;
};

#define HARDWARE(name, alias, config)                                                              \
	{                                                                                          \
		name, alias, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config                            \
	}
#define SOFTWARE(name, alias, config)                                                              \
	{                                                                                          \
		name, alias, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config                            \
	}

static const struct counter counters[] = {
	HARDWARE("branch-instructions", "branches", BRANCH_INSTRUCTIONS),
	HARDWARE("branch-misses", NULL, BRANCH_MISSES),
	HARDWARE("bus-cycles", NULL, BUS_CYCLES),
	HARDWARE("cache-misses", NULL, CACHE_MISSES),
	HARDWARE("cache-references", NULL, CACHE_REFERENCES),
	HARDWARE("cpu-cycles", "cycles", CPU_CYCLES),
	HARDWARE("instructions", NULL, INSTRUCTIONS),
	HARDWARE("ref-cycles", NULL, REF_CPU_CYCLES),
	HARDWARE("stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND),
	HARDWARE("stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND),
	SOFTWARE("alignment-faults", NULL, ALIGNMENT_FAULTS),
	SOFTWARE("bpf-output", NULL, BPF_OUTPUT),
	SOFTWARE("cgroup-switches", NULL, CGROUP_SWITCHES),
	SOFTWARE("context-switches", "cs", CONTEXT_SWITCHES),
	SOFTWARE("cpu-clock", NULL, CPU_CLOCK),
	SOFTWARE("cpu-migrations", "migrations", CPU_MIGRATIONS),
	SOFTWARE("dummy", NULL, DUMMY),
	SOFTWARE("emulation-faults", NULL, EMULATION_FAULTS),
	SOFTWARE("major-faults", NULL, PAGE_FAULTS_MAJ),
	SOFTWARE("minor-faults", NULL, PAGE_FAULTS_MIN),
	SOFTWARE("page-faults", "faults", PAGE_FAULTS),
	SOFTWARE("task-clock", NULL, TASK_CLOCK),
};

// A cache counter is named cache[-operation][-result]. The first spelling is the one shown; of an
// operation, the first stands before a result, the second alone.
#define MAX_SPELLINGS 5

static const char *const caches[PERF_COUNT_HW_CACHE_MAX][MAX_SPELLINGS] = {
	[PERF_COUNT_HW_CACHE_L1D] = { "L1-dcache", "l1-d", "l1d", "L1-data" },
	[PERF_COUNT_HW_CACHE_L1I] = { "L1-icache", "l1-i", "l1i", "L1-instruction" },
	[PERF_COUNT_HW_CACHE_LL] = { "LLC", "L2" },
	[PERF_COUNT_HW_CACHE_DTLB] = { "dTLB", "d-tlb", "Data-TLB" },
	[PERF_COUNT_HW_CACHE_ITLB] = { "iTLB", "i-tlb", "Instruction-TLB" },
	[PERF_COUNT_HW_CACHE_BPU] = { "branch", "branches", "bpu", "btb", "bpc" },
	[PERF_COUNT_HW_CACHE_NODE] = { "node" },
};

static const char *const operations[PERF_COUNT_HW_CACHE_OP_MAX][MAX_SPELLINGS] = {
	[PERF_COUNT_HW_CACHE_OP_READ] = { "load", "loads", "read" },
	[PERF_COUNT_HW_CACHE_OP_WRITE] = { "store", "stores", "write" },
	[PERF_COUNT_HW_CACHE_OP_PREFETCH] = { "prefetch", "prefetches", "speculative-read",
					      "speculative-load" },
};

static const char *const results[PERF_COUNT_HW_CACHE_RESULT_MAX][MAX_SPELLINGS] = {
	[PERF_COUNT_HW_CACHE_RESULT_ACCESS] = { "refs", "Reference", "ops", "access" },
	[PERF_COUNT_HW_CACHE_RESULT_MISS] = { "misses", "miss" },
};

/** Instructions are not written, and jumps neither written nor fetched ahead. */
static bool cache_has_operation(unsigned int cache, unsigned int operation)
{
	switch (cache) {
	case PERF_COUNT_HW_CACHE_L1I:
		return operation != PERF_COUNT_HW_CACHE_OP_WRITE;
	case PERF_COUNT_HW_CACHE_ITLB:
	case PERF_COUNT_HW_CACHE_BPU:
		return operation == PERF_COUNT_HW_CACHE_OP_READ;
	default:
		return true;
	}
}

/** Take one of the @nr words of @table off the front of *@name; its row, or -1. */
static int take_word(const char *const table[][MAX_SPELLINGS], int nr, const char **name)
{
	for (int row = 0; row < nr; row++) {
		for (int i = 0; i < MAX_SPELLINGS && table[row][i]; i++) {
			size_t length = strlen(table[row][i]);
			if (strncasecmp(*name, table[row][i], length))
				continue;
			char next = (*name)[length];
			if (next && next != '-')
				continue;
			*name += length + (next == '-' && (*name)[length + 1]);
			return row;
		}
	}
	return -1;
}

static bool cache_find(const char *name, uint64_t *ret)
{
	int cache = take_word(caches, PERF_COUNT_HW_CACHE_MAX, &name);
	if (cache < 0)
		return false;
	int operation = -1, result = -1;
	while (*name) {
		int row;
		if (operation < 0 &&
		    (row = take_word(operations, PERF_COUNT_HW_CACHE_OP_MAX, &name)) >= 0)
			operation = row;
		else if (result < 0 &&
			 (row = take_word(results, PERF_COUNT_HW_CACHE_RESULT_MAX, &name)) >= 0)
			result = row;
		else
			return false;
	}
	if (operation < 0)
		operation = PERF_COUNT_HW_CACHE_OP_READ;
	if (result < 0)
		result = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
	if (!cache_has_operation(cache, operation))
		return false;
	*ret = cache | operation << 8 | result << 16;
	return true;
}

bool ps_counter_find(const char *name, struct perf_event_attr *attr)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(counters); i++) {
		const struct counter *counter = &counters[i];
		if (strcmp(name, counter->name) &&
		    (!counter->alias || strcmp(name, counter->alias)))
			continue;
		attr->type = counter->type;
		attr->config = counter->config;
		return true;
	}
	uint64_t config;
	if (!cache_find(name, &config))
		return false;
	attr->type = PERF_TYPE_HW_CACHE;
	attr->config = config;
	return true;
}

static bool walk_counters(uint32_t type, const char *kind, ps_counter_visit visit, void *argument)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(counters); i++) {
		const struct counter *counter = &counters[i];
		if (counter->type != type)
			continue;
		struct ps_counter_name name = {
			.kind = kind,
			.name = counter->name,
			.alias = counter->alias,
			.attr = { .type = type,
				  .size = sizeof(name.attr),
				  .config = counter->config },
		};
		if (!visit(&name, argument))
			return false;
	}
	return true;
}

static bool visit_cache(unsigned int cache, unsigned int operation, unsigned int result,
			ps_counter_visit visit, void *argument)
{
	char text[64];
	if (result == PERF_COUNT_HW_CACHE_RESULT_ACCESS)
		snprintf(text, sizeof(text), "%s-%s", caches[cache][0], operations[operation][1]);
	else
		snprintf(text, sizeof(text), "%s-%s-%s", caches[cache][0], operations[operation][0],
			 results[result][0]);
	struct ps_counter_name name = {
		.kind = "cache",
		.name = text,
		.attr = { .type = PERF_TYPE_HW_CACHE,
			  .size = sizeof(name.attr),
			  .config = cache | operation << 8 | result << 16 },
	};
	return visit(&name, argument);
}

static bool walk_caches(ps_counter_visit visit, void *argument)
{
	for (unsigned int cache = 0; cache < PERF_COUNT_HW_CACHE_MAX; cache++) {
		for (unsigned int op = 0; op < PERF_COUNT_HW_CACHE_OP_MAX; op++) {
			if (!cache_has_operation(cache, op))
				continue;
			for (unsigned int i = 0; i < PERF_COUNT_HW_CACHE_RESULT_MAX; i++) {
				if (!visit_cache(cache, op, i, visit, argument))
					return false;
			}
		}
	}
	return true;
}

bool ps_counter_table_walk(ps_counter_visit visit, void *argument)
{
	return walk_counters(PERF_TYPE_HARDWARE, "hardware", visit, argument) &&
	       walk_caches(visit, argument) &&
	       walk_counters(PERF_TYPE_SOFTWARE, "software", visit, argument);
}
