// SPDX-License-Identifier: MIT
#include "pmu_model.h"

#include <perfmon/pfmlib_perf_event.h>
#include <string.h>

/** Set libpfm4 up once: it takes milliseconds, most runs do without. */
static bool is_ready(void)
{
	static enum { UNTRIED, READY, BROKEN } state;
	if (state == UNTRIED)
		state = pfm_initialize() == PFM_SUCCESS ? READY : BROKEN;
	return state == READY;
}

struct ps_error *ps_model_encode(const char *name, struct perf_event_attr *attr, bool *ret)
{
	*ret = false;
	if (!is_ready())
		return NULL;
	struct perf_event_attr encoded = { .size = sizeof(encoded) };
	pfm_perf_encode_arg_t argument = { .attr = &encoded, .size = sizeof(argument) };
	int status =
		pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &argument);
	if (status == PFM_ERR_NOTFOUND)
		return NULL;
	if (status != PFM_SUCCESS)
		return ps_error_format(PS_ERROR_USAGE, "%s: %s (libpfm4)", name,
				       pfm_strerror(status));
	// It knows the kernel's own names and tracepoints too; here case matters in those.
	if (encoded.type < PERF_TYPE_RAW || encoded.type == PERF_TYPE_BREAKPOINT)
		return NULL;
	attr->type = encoded.type;
	attr->config = encoded.config;
	attr->config1 = encoded.config1;
	attr->config2 = encoded.config2;
	*ret = true;
	return NULL;
}

static bool visit_event(int index, ps_counter_visit visit, void *argument)
{
	pfm_event_info_t info = { .size = sizeof(info) };
	if (pfm_get_event_info(index, PFM_OS_PERF_EVENT, &info) != PFM_SUCCESS)
		return true;
	struct ps_counter_name name = {
		.kind = "libpfm4",
		.name = info.name,
		.attr = { .size = sizeof(name.attr) },
	};
	// Those that need a unit mask are named all the same, so that they can be found.
	bool is_known;
	ps_error_destroy(ps_model_encode(info.name, &name.attr, &is_known));
	return visit(&name, argument);
}

/** Whether @pmu is a processor's, and not libpfm4's picture of the kernel's own names. */
static bool is_model(pfm_pmu_t pmu)
{
	pfm_pmu_info_t info = { .size = sizeof(info) };
	return pmu != PFM_PMU_PERF_EVENT && pmu != PFM_PMU_PERF_EVENT_RAW &&
	       pfm_get_pmu_info(pmu, &info) == PFM_SUCCESS && info.is_present;
}

bool ps_model_walk(ps_counter_visit visit, void *argument)
{
	if (!is_ready())
		return true;
	for (pfm_pmu_t pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX; pmu++) {
		pfm_pmu_info_t info = { .size = sizeof(info) };
		if (!is_model(pmu) || pfm_get_pmu_info(pmu, &info) != PFM_SUCCESS)
			continue;
		for (int i = info.first_event; i != -1; i = pfm_get_event_next(i)) {
			if (!visit_event(i, visit, argument))
				return false;
		}
	}
	return true;
}
