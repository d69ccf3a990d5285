// SPDX-License-Identifier: MIT
#include <perfscope/stand_in.h>

#include <linux/perf_event.h>
#include <stddef.h>

static const char *of_hardware(uint64_t config)
{
	switch (config & UINT32_MAX) {
	case PERF_COUNT_HW_CPU_CYCLES:
	case PERF_COUNT_HW_REF_CPU_CYCLES:
	case PERF_COUNT_HW_BUS_CYCLES:
		return "cpu-clock";
	case PERF_COUNT_HW_CACHE_REFERENCES:
	case PERF_COUNT_HW_CACHE_MISSES:
		return "page-faults";
	default:
		return "task-clock";
	}
}

const char *ps_stand_in(uint32_t type, uint64_t config)
{
	switch (type) {
	case PERF_TYPE_HARDWARE:
		return of_hardware(config);
	case PERF_TYPE_HW_CACHE:
		return "page-faults";
	case PERF_TYPE_RAW:
		return "task-clock";
	default:
		return NULL;
	}
}
