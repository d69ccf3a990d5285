// SPDX-License-Identifier: MIT
#include "dispatch_internal.h"

#include <perfscope/log.h>

/** Names of regions and counters, made once for all passes. False with an exception set. */
static bool name_regions(struct ps_dispatch *dispatch)
{
	const struct ps_region_spec_list *regions = dispatch->session->sources->regions;
	size_t nr_counters = ps_boundaries_nr_counters(dispatch->boundaries);
	dispatch->region_names = PyTuple_New((Py_ssize_t)regions->nr_regions);
	dispatch->region_counters = PyTuple_New((Py_ssize_t)nr_counters);
	if (!dispatch->region_names || !dispatch->region_counters)
		return false;
	for (size_t i = 0; i < regions->nr_regions; i++) {
		PyObject *name = PyUnicode_FromString(regions->regions[i].name);
		if (!name)
			return false;
		PyTuple_SET_ITEM(dispatch->region_names, (Py_ssize_t)i, name);
	}
	for (size_t i = 0; i < nr_counters; i++) {
		const struct ps_source *source = ps_boundaries_counter(dispatch->boundaries, i);
		PyObject *label = PyUnicode_FromString(source->label);
		if (!label)
			return false;
		PyTuple_SET_ITEM(dispatch->region_counters, (Py_ssize_t)i, label);
	}
	return true;
}

struct ps_error *ps_dispatch_bind_regions(struct ps_dispatch *dispatch)
{
	const struct ps_session *session = dispatch->session;
	struct ps_error *error = ps_boundaries_create(session, &dispatch->boundaries);
	if (!error)
		error = ps_region_totals_init(&dispatch->region_totals, dispatch->boundaries,
					      session->sources->regions);
	if (!error && dispatch->boundaries && !name_regions(dispatch))
		error = ps_python_take_error("regions");
	return error;
}

bool ps_dispatch_add_regions(struct ps_dispatch *dispatch, PyObject *dict, bool by_thread)
{
	PyObject *module = dispatch->script->perfscope;
	return ps_region_totals_add_whole(&dispatch->region_totals, module, dict, by_thread) &&
	       ps_program_regions_add_whole(&dispatch->program_regions, module, dict, by_thread,
					    dispatch->is_exited);
}

void ps_dispatch_unbind_regions(struct ps_dispatch *dispatch)
{
	Py_XDECREF(dispatch->region_names);
	Py_XDECREF(dispatch->region_counters);
	ps_region_totals_deinit(&dispatch->region_totals);
	ps_boundaries_destroy(dispatch->boundaries);
	free(dispatch->program_regions.last);
}

void ps_dispatch_call_region(void *argument, const struct ps_pass *pass)
{
	struct ps_dispatch *dispatch = argument;
	PyObject *handler = dispatch->script->region_handlers[pass->region];
	if (!handler)
		return;
	const struct ps_time_view *view = &dispatch->session->clock.view;
	struct ps_tasks *tasks = dispatch->lookup.tasks;
	struct ps_region_pass given = {
		.name = PyTuple_GET_ITEM(dispatch->region_names, (Py_ssize_t)pass->region),
		.counters = dispatch->region_counters,
		.pass = pass,
		.comm = tasks ? ps_tasks_comm(tasks, pass->tid) : NULL,
		.begin = ps_time_view(view, pass->begin_ns),
		.end = ps_time_view(view, pass->end_ns),
	};
	_cleanup_pydecref_ PyObject *region =
		ps_region_pass_create(dispatch->script->perfscope, &given);
	PyObject *result = region ? PyObject_CallFunctionObjArgs(handler, region, NULL) : NULL;
	if (!result)
		ps_policy_take(&dispatch->policy,
			       dispatch->session->sources->regions->regions[pass->region].handler);
	Py_XDECREF(result);
}

static void tell_waited(const struct ps_boundaries *boundaries)
{
	struct ps_count count;
	ps_boundaries_count(boundaries, &count);
	if (count.running_ns < count.enabled_ns)
		ps_log(PS_LOG_WARNING,
		       "-r: the counters had the PMU for %.1f%% of the time, and passes are seen "
		       "in that time alone (count fewer, here and elsewhere)",
		       100.0 * count.running_ns / count.enabled_ns);
}

const struct ps_boundaries *ps_dispatch_finish_regions(struct ps_dispatch *dispatch)
{
	struct ps_boundaries *boundaries = dispatch->boundaries;
	if (!boundaries || dispatch->are_regions_finished)
		return boundaries;
	dispatch->are_regions_finished = true;
	ps_boundaries_finish(boundaries);
	tell_waited(boundaries);
	if (ps_boundaries_nr_missed(boundaries))
		ps_log(PS_LOG_WARNING, "-r: too many threads at a time to follow all; their passes "
				       "count as incomplete "
				       "(observe fewer: -p, -t, -C)");
	return boundaries;
}
