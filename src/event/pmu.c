// SPDX-License-Identifier: MIT
#include <perfscope/pmu.h>

#include "counter_table.h"
#include "pmu_model.h"
#include "pmu_sysfs.h"

#include <perfscope/nearest.h>
#include <perfscope/tracepoint.h>
#include <string.h>

static bool is_processor(const char *pmu)
{
	return !strncmp(pmu, "cpu", 3) || !strncmp(pmu, "armv8", 5);
}

/**
 * Whether @pmu is what processors' PMUs are called, so that it may be meant where there is none.
 */
static bool is_processor_name(const char *pmu)
{
	return !strcmp(pmu, "cpu") || !strcmp(pmu, "cpu_core") || !strcmp(pmu, "cpu_atom") ||
	       !strncmp(pmu, "armv8", 5);
}

bool ps_pmu_has_hardware(void)
{
	_cleanup_closedir_ DIR *folder = opendir(ps_pmu_folder());
	if (!folder)
		return false;
	for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		if (is_processor(entry->d_name))
			return true;
	}
	return false;
}

static bool offer_counter(const struct ps_counter_name *name, void *nearest)
{
	ps_nearest_add(nearest, name->name);
	if (name->alias)
		ps_nearest_add(nearest, name->alias);
	return true;
}

static struct ps_error *offer_tracepoint(const char *system, const char *name, void *nearest)
{
	ps_nearest_add(nearest, name);
	return NULL;
}

/** Ends the walk at the first tracepoint: writes "system:name" to @argument. */
static struct ps_error *take_full_name(const char *system, const char *name, void *argument)
{
	char **ret = argument;
	if (!*ret && asprintf(ret, "%s:%s", system, name) < 0)
		*ret = NULL;
	return NULL;
}

/**
 * Offer the names of tracepoints without their systems, and put the systems to those that were
 * near.
 */
static void offer_tracepoints(struct ps_nearest *nearest)
{
	const char *tracefs;
	struct ps_error *error = ps_tracefs_path(&tracefs);
	if (!error)
		error = ps_tracepoint_glob(tracefs, "*", "*", offer_tracepoint, nearest);
	for (size_t i = 0; i < nearest->nr && !error; i++) {
		struct perf_event_attr attr;
		if (ps_counter_find(nearest->names[i], &attr) || strchr(nearest->names[i], '/'))
			continue;
		_cleanup_free_ char *full = NULL;
		ps_error_destroy(
			ps_tracepoint_glob(tracefs, "*", nearest->names[i], take_full_name, &full));
		if (!full)
			continue;
		free(nearest->names[i]);
		nearest->names[i] = take_ptr(full);
	}
	ps_error_destroy(error);
}

static struct ps_error *unknown_counter(const char *name)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, name);
	ps_error_destroy(ps_counter_walk(offer_counter, &nearest));
	ps_nearest_add(&nearest, "profile");
	offer_tracepoints(&nearest);
	_cleanup_free_ char *text = ps_nearest_text(&nearest);
	ps_nearest_deinit(&nearest);
	return ps_error_format(PS_ERROR_NOT_FOUND, "%s: no event is called so here%s", name,
			       text ? text : "");
}

static struct ps_error *resolve_counter(const char *name, struct perf_event_attr *attr)
{
	if (ps_counter_find(name, attr))
		return NULL;
	bool is_known;
	struct ps_error *error = ps_model_encode(name, attr, &is_known);
	if (error || is_known)
		return error;
	return unknown_counter(name);
}

static struct ps_error *resolve_pmu(const struct ps_spec *spec, struct perf_event_attr *attr)
{
	if (ps_pmu_exists(spec->system))
		return ps_pmu_encode(spec, attr);
	// A virtual machine may lack the processor's PMU: opening a raw counter then says so.
	if (is_processor_name(spec->system) && !ps_pmu_has_hardware()) {
		attr->type = PERF_TYPE_RAW;
		return NULL;
	}
	// RETIRED_INSTRUCTIONS/alias=x/ looks like a PMU without terms.
	return spec->nr_terms ? ps_pmu_unknown(spec->system) : resolve_counter(spec->system, attr);
}

static void resolve_breakpoint(const struct ps_spec *spec, struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_BREAKPOINT;
	attr->bp_type = spec->breakpoint_type;
	attr->bp_addr = spec->config;
	attr->bp_len = spec->breakpoint_size;
}

static void resolve_profile(struct perf_event_attr *attr)
{
	bool has_cycles = ps_pmu_has_hardware();
	attr->type = has_cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
	attr->config = has_cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK;
}

struct ps_error *ps_pmu_resolve(const struct ps_spec *spec, struct perf_event_attr *attr)
{
	attr->precise_ip = spec->precise_ip;
	switch (spec->kind) {
	case PS_SPEC_COUNTER:
		return resolve_counter(spec->name, attr);
	case PS_SPEC_PMU:
		return resolve_pmu(spec, attr);
	case PS_SPEC_RAW:
		attr->type = PERF_TYPE_RAW;
		attr->config = spec->config;
		return NULL;
	case PS_SPEC_BREAKPOINT:
		resolve_breakpoint(spec, attr);
		return NULL;
	case PS_SPEC_PROFILE:
		resolve_profile(attr);
		return NULL;
	case PS_SPEC_TRACEPOINT:
	case PS_SPEC_PROBE:
		break;
	}
	return ps_error_format(PS_ERROR_USAGE, "%s: this is no counter", spec->text);
}

struct ps_error *ps_counter_walk(ps_counter_visit visit, void *argument)
{
	if (ps_counter_table_walk(visit, argument) && ps_pmu_walk(visit, argument) &&
	    ps_pmu_has_hardware())
		ps_model_walk(visit, argument);
	return NULL;
}
