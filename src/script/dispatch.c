// SPDX-License-Identifier: MIT
#include "dispatch_internal.h"

#include <perfscope/child.h>

/** stop() of the script: unlike a signal it wants nothing that happened before it any more. */
static void host_stop(void *argument)
{
	struct ps_dispatch *dispatch = argument;
	dispatch->policy.is_over = true;
}

static void host_print_stat(void *argument)
{
	struct ps_dispatch *dispatch = argument;
	if (dispatch->print)
		dispatch->print(dispatch->print_argument);
}

static PyObject *host_make_regions(void *argument, bool by_thread)
{
	_cleanup_pydecref_ PyObject *dict = PyDict_New();
	if (!dict || !ps_dispatch_add_regions(argument, dict, by_thread))
		return NULL;
	return_ptr(dict);
}

static PyObject *host_make_region_events(void *argument)
{
	const struct ps_dispatch *dispatch = argument;
	return ps_program_regions_make_events(&dispatch->program_regions);
}

static PyObject *host_make_region_reasons(void *argument)
{
	const struct ps_dispatch *dispatch = argument;
	return ps_program_regions_make_reasons(&dispatch->program_regions);
}

static struct ps_error *bind_sources(struct ps_dispatch *dispatch)
{
	const struct ps_source_list *sources = dispatch->session->sources;
	struct ps_script *script = dispatch->script;
	dispatch->bindings = calloc(sources->nr_sources + 1, sizeof(*dispatch->bindings));
	if (!dispatch->bindings)
		return &ps_enomem;
	for (size_t i = 0; i < ps_sources_nr_shown(sources); i++) {
		const struct ps_source *source = sources->sources[i];
		struct binding *binding = &dispatch->bindings[i];
		binding->handler = script->handlers[i];
		binding->name = binding->handler == script->callbacks[PS_CALLBACK_SAMPLE]
					? ps_callbacks[PS_CALLBACK_SAMPLE].name
					: source->handler;
		binding->event_type =
			ps_event_type_create(script->perfscope, dispatch->session, source);
		if (!binding->event_type)
			return ps_python_take_error(source->name);
		dispatch->nr_bindings = i + 1;
	}
	return NULL;
}

struct ps_error *ps_dispatch_create(struct ps_session *session, struct ps_merge *merge,
				    const struct ps_lookup *lookup, struct ps_script *script,
				    const struct ps_dispatch_options *options,
				    struct ps_dispatch **ret)
{
	struct ps_dispatch *dispatch = calloc(1, sizeof(*dispatch));
	if (!dispatch)
		return &ps_enomem;
	dispatch->session = session;
	dispatch->merge = merge;
	dispatch->lookup = *lookup;
	dispatch->script = script;
	dispatch->max_events = options->max_events ? options->max_events : UINT64_MAX;
	dispatch->budget = 1;
	dispatch->host = (struct ps_host){
		.argument = dispatch,
		.lookup = *lookup,
		.stop = host_stop,
		.print_stat = host_print_stat,
		.regions = options->regions,
		.make_regions = host_make_regions,
		.make_region_events = host_make_region_events,
		.make_region_reasons = host_make_region_reasons,
	};
	dispatch->program_regions = (struct ps_program_regions){ .table = options->regions,
								 .sources = session->sources };
	struct ps_error *error = ps_losses_init(&dispatch->losses, session->max_rings);
	if (!error)
		error = ps_run_totals_init(&dispatch->totals, session);
	if (!error && !ps_policy_init(&dispatch->policy, options->stop_on_error))
		error = &ps_enomem;
	if (!error)
		error = bind_sources(dispatch);
	if (!error)
		error = ps_dispatch_bind_regions(dispatch);
	if (!error)
		error = ps_child_watch(&dispatch->is_stopped);
	if (error) {
		ps_dispatch_destroy(dispatch);
		return error;
	}
	ps_python_set_host(script->perfscope, &dispatch->host);
	*ret = dispatch;
	return NULL;
}

void ps_dispatch_destroy(struct ps_dispatch *dispatch)
{
	if (!dispatch)
		return;
	ps_python_set_host(dispatch->script->perfscope, NULL);
	ps_child_watch(NULL);
	for (size_t i = 0; i < dispatch->nr_bindings; i++)
		Py_XDECREF(dispatch->bindings[i].event_type);
	free(dispatch->bindings);
	ps_policy_deinit(&dispatch->policy);
	ps_dispatch_unbind_regions(dispatch);
	ps_run_totals_deinit(&dispatch->totals);
	ps_losses_deinit(&dispatch->losses);
	free(dispatch);
}

void ps_dispatch_begin(struct ps_dispatch *dispatch)
{
	ps_run_totals_begin(&dispatch->totals);
}

/** Let the events of all sources know their counters by the ids that these have now. */
static struct ps_error *name_counters(struct ps_dispatch *dispatch)
{
	const struct ps_source_list *sources = dispatch->session->sources;
	for (size_t i = 0; i < dispatch->nr_bindings; i++) {
		const struct ps_source *source = sources->sources[i];
		if (ps_event_type_name_counters(dispatch->bindings[i].event_type, dispatch->session,
						source) < 0)
			return ps_python_take_error(source->name);
	}
	return NULL;
}

struct ps_error *ps_dispatch_cpu_back(struct ps_dispatch *dispatch, int cpu,
				      struct ps_cpu_back *ret)
{
	struct ps_error *error = ps_session_cpu_back(dispatch->session, cpu, ret);
	if (!ret->is_open)
		return error;
	if (ret->has_samples)
		ps_losses_gap(&dispatch->losses, ret->ring, ret->start_ns);
	if (dispatch->boundaries)
		ps_boundaries_gap(dispatch->boundaries, ret->ring);
	struct ps_error *name_error = name_counters(dispatch);
	if (!error)
		return name_error;
	ps_error_destroy(name_error);
	return error;
}

void ps_dispatch_flush(struct ps_dispatch *dispatch)
{
	ps_policy_flush(&dispatch->policy);
}

void ps_dispatch_set_print_stat(struct ps_dispatch *dispatch, void (*print)(void *argument),
				void *argument)
{
	dispatch->print = print;
	dispatch->print_argument = argument;
}

void ps_dispatch_stop(struct ps_dispatch *dispatch)
{
	dispatch->is_stopped = true;
}

bool ps_dispatch_is_stuck(struct ps_dispatch *dispatch)
{
	uint64_t now = dispatch->nr_events + dispatch->nr_calls;
	bool is_stuck = dispatch->is_in_script && dispatch->watched == now;
	dispatch->watched = now;
	return is_stuck;
}

int ps_dispatch_status(const struct ps_dispatch *dispatch)
{
	if (dispatch->policy.is_exit)
		return dispatch->policy.exit_status;
	return dispatch->policy.nr_raised ? 1 : 0;
}

struct ps_dispatch_counts ps_dispatch_counts(const struct ps_dispatch *dispatch)
{
	return (struct ps_dispatch_counts){
		.nr_events = dispatch->nr_events,
		.nr_lost = dispatch->losses.nr_told,
		.nr_left = dispatch->nr_left,
		.nr_raised = dispatch->policy.nr_raised,
		.nr_throttled = dispatch->losses.nr_throttled,
		.is_enough = ps_dispatch_is_enough(dispatch),
	};
}
