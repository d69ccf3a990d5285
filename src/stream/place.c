// SPDX-License-Identifier: MIT
#include "internal.h"

#include <perfscope/target.h>

/** The places of each of @target's CPUs for each of @nr_tids threads (or one of all threads): a ring per CPU. */
static void plan_cpus(const struct ps_target *target, size_t nr_tids, struct ps_places *places)
{
	bool is_cgroup = target->kind == PS_TARGET_CGROUP;
	for (size_t i = 0; i < target->nr_cpus; i++) {
		for (size_t j = 0; j < nr_tids; j++) {
			places->places[places->nr_places++] = (struct ps_place){
				.cpu = target->cpus[i],
				.tid = target->kind == PS_TARGET_THREADS ? target->tids[j] : -1,
				.cgroup_fd = is_cgroup ? target->cgroup_fd : -1,
				.ring = i,
			};
		}
	}
	places->nr_rings = target->nr_cpus;
}

/** The places of CPUs that are offline now, for when they come. */
static void plan_offline(const struct ps_target *target, struct ps_places *places)
{
	for (size_t i = 0; i < target->nr_offline; i++) {
		places->places[places->nr_places++] = (struct ps_place){
			.cpu = target->offline_cpus[i],
			.tid = -1,
			.cgroup_fd = target->kind == PS_TARGET_CGROUP ? target->cgroup_fd : -1,
			.ring = places->nr_rings++,
			.is_gone = true,
		};
	}
}

/** The places of each thread on any CPU: a ring per thread. */
static void plan_threads(const struct ps_target *target, struct ps_places *places)
{
	for (size_t i = 0; i < target->nr_tids; i++) {
		places->places[places->nr_places++] = (struct ps_place){
			.cpu = -1,
			.tid = target->tids[i],
			.cgroup_fd = -1,
			.ring = i,
		};
	}
	places->nr_rings = target->nr_tids;
}

static bool needs_cpus(const struct ps_target *target, const struct ps_source_list *sources)
{
	if (target->kind != PS_TARGET_THREADS || target->is_cpu_list)
		return true;
	// The kernel refuses to map the ring of an inherited event without a CPU: every child would write into it.
	if (target->inherit || target->inherit_threads)
		return true;
	// An event of one CPU cannot write into the ring of one of any.
	for (size_t i = 0; i < sources->nr_sources; i++) {
		if (sources->sources[i]->cpus)
			return true;
	}
	return false;
}

struct ps_error *ps_places_plan(const struct ps_target *target,
				const struct ps_source_list *sources, struct ps_places *ret)
{
	bool is_threads = target->kind == PS_TARGET_THREADS;
	size_t nr_tids = is_threads ? target->nr_tids : 1;
	struct ps_places places = {
		.places = calloc(nr_tids * (target->nr_cpus + target->nr_offline + 1),
				 sizeof(*places.places)),
	};
	if (!places.places)
		return &ps_enomem;
	if (needs_cpus(target, sources))
		plan_cpus(target, nr_tids, &places);
	else
		plan_threads(target, &places);
	if (!is_threads)
		plan_offline(target, &places);
	*ret = places;
	return NULL;
}

bool ps_attr_is_kernel_only(const struct perf_event_attr *attr)
{
	if (attr->type != PERF_TYPE_SOFTWARE)
		return false;
	return attr->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
	       attr->config == PERF_COUNT_SW_CPU_MIGRATIONS ||
	       attr->config == PERF_COUNT_SW_CGROUP_SWITCHES;
}

struct perf_event_attr ps_attr_prepare(const struct perf_event_attr *attr, bool is_sampling,
				       bool is_leader, const struct ps_attr_context *context)
{
	struct perf_event_attr prepared = *attr;
	bool is_workload =
		context->target->is_workload && context->target->kind == PS_TARGET_THREADS;
	prepared.size = sizeof(prepared);
	if (ps_attr_is_kernel_only(attr))
		prepared.exclude_kernel = 0;
	prepared.read_format |=
		PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (context->has_lost_count)
		prepared.read_format |= PERF_FORMAT_LOST;
	// Members run when their leader does: they must be on before it is enabled.
	prepared.disabled = is_leader;
	prepared.enable_on_exec = is_leader && is_workload;
	prepared.inherit = context->target->inherit || context->target->inherit_threads;
	prepared.inherit_thread = context->target->inherit_threads && !context->target->inherit;
	if (is_sampling) {
		// All but the period, which a source may leave out.
		prepared.sample_type |= PS_SAMPLE_BASE & ~(uint64_t)PERF_SAMPLE_PERIOD;
		prepared.sample_id_all = 1;
		prepared.watermark = 1;
		prepared.wakeup_watermark = context->watermark_bytes;
		// The only part that says whose the sample is whatever came before it.
		if (ps_attr_shares_samples(attr) &&
		    (!prepared.inherit || context->can_read_inherited))
			prepared.sample_type |= PERF_SAMPLE_READ;
	}
	// All events of a ring must have one clock, also those of a group that only count.
	ps_clock_apply(context->clock, &prepared);
	return prepared;
}

struct perf_event_attr ps_attr_side_band(bool want_tasks, bool want_maps,
					 const struct ps_attr_context *context)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.comm = want_tasks,
		.comm_exec = want_tasks,
		.task = want_tasks,
		.mmap = want_maps,
		.mmap2 = want_maps,
		// Not build_id: the kernel would mark the records of other tools' events as if they had one too (maps.h).
		.ksymbol = want_maps && context->has_ksymbol,
		// It counts nothing, so this excludes nothing, and users who may not see the kernel can open it.
		.exclude_kernel = 1,
	};
	return ps_attr_prepare(&attr, true, true, context);
}
