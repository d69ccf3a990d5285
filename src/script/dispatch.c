// SPDX-License-Identifier: MIT
#include <perfscope/binding.h>
#include <perfscope/boundary.h>
#include <perfscope/child.h>
#include <perfscope/dispatch.h>
#include <perfscope/log.h>
#include <perfscope/losses.h>
#include <perfscope/monotonic.h>
#include <perfscope/policy.h>
#include <perfscope/program_regions.h>
#include <perfscope/region_totals.h>
#include <perfscope/run_totals.h>
#include <signal.h>

// A turn ends after this long, so that signals, timers and the other rings get theirs; how many events that is
// follows from how long the handlers take.
#define TURN_NS 1000000
#define MAX_BUDGET 4096

/** What the events of one source go to. */
struct binding {
	PyObject *handler;    // borrowed from the script; NULL: none
	PyObject *event_type; // owned
	const char *name;     // of the handler, for messages
};

struct ps_dispatch {
	struct ps_session *session;
	struct ps_merge *merge;
	struct ps_lookup lookup;
	struct ps_script *script;
	struct ps_policy policy;
	struct ps_losses losses;
	struct ps_run_totals totals;
	struct ps_boundaries *boundaries; // NULL: no regions
	struct ps_region_totals region_totals;
	PyObject *region_names;	   // tuple of str, by region
	PyObject *region_counters; // tuple of str
	struct ps_program_regions program_regions;
	struct ps_host host;
	struct binding *bindings; // by source index
	size_t nr_bindings;
	uint64_t max_events, nr_events;
	uint64_t nr_left; // in the rings at the end
	uint64_t budget;  // events of the next turn
	uint64_t synced_ns;
	void (*print)(void *argument);
	void *print_argument;
	volatile sig_atomic_t is_stopped, is_in_script;
	volatile uint64_t nr_calls; // of script code other than handlers
	uint64_t watched;	    // nr_events + nr_calls when ps_dispatch_is_stuck last looked
	bool is_exited;
};

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

static PyObject *host_make_region_totals(void *argument, const struct ps_region_sums *sums)
{
	const struct ps_dispatch *dispatch = argument;
	return ps_program_regions_make_totals(&dispatch->program_regions,
					      dispatch->script->perfscope, sums);
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

static struct ps_error *bind_regions(struct ps_dispatch *dispatch)
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
		.make_region_totals = host_make_region_totals,
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
		error = bind_regions(dispatch);
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
	Py_XDECREF(dispatch->region_names);
	Py_XDECREF(dispatch->region_counters);
	ps_region_totals_deinit(&dispatch->region_totals);
	ps_boundaries_destroy(dispatch->boundaries);
	ps_run_totals_deinit(&dispatch->totals);
	free(dispatch->program_regions.last);
	ps_losses_deinit(&dispatch->losses);
	free(dispatch);
}

static bool is_over(const struct ps_dispatch *dispatch)
{
	return dispatch->is_stopped || dispatch->policy.is_over;
}

static void enter_script(struct ps_dispatch *dispatch)
{
	dispatch->nr_calls++;
	dispatch->is_in_script = true;
}

static void leave_script(struct ps_dispatch *dispatch)
{
	dispatch->is_in_script = false;
	// An interrupt that came too late for the code it was meant for must not hit what is called next.
	if (PS_UNLIKELY(dispatch->is_stopped) && PyErr_CheckSignals() < 0)
		PyErr_Clear();
	if (PS_UNLIKELY(ps_child_is_here()))
		ps_child_end(ps_dispatch_status(dispatch));
}

/** Call the script's @which with @nr arguments; steals @argument, which may be NULL where @nr is 0. */
static void call_back(struct ps_dispatch *dispatch, enum ps_callback which, PyObject *argument)
{
	PyObject *function = dispatch->script->callbacks[which];
	_cleanup_pydecref_ PyObject *owned = argument;
	// __exit__ may take its time after a stop: it is not to be interrupted by the first signal.
	if (which != PS_CALLBACK_EXIT)
		enter_script(dispatch);
	PyObject *result = owned ? PyObject_CallFunctionObjArgs(function, owned, NULL)
				 : PyObject_CallNoArgs(function);
	if (!result)
		ps_policy_take(&dispatch->policy, ps_callbacks[which].name);
	Py_XDECREF(result);
	leave_script(dispatch);
}

static bool has_callback(const struct ps_dispatch *dispatch, enum ps_callback which)
{
	return dispatch->script->callbacks[which] != NULL;
}

static void call_lost(struct ps_dispatch *dispatch, const struct ps_loss *loss)
{
	if (!has_callback(dispatch, PS_CALLBACK_LOST))
		return;
	const struct ps_time_view *view = &dispatch->session->clock.view;
	unsigned long long start = loss->start_ns ? ps_time_view(view, loss->start_ns) : 0;
	unsigned long long end = ps_time_view(view, loss->end_ns);
	PyObject *function = dispatch->script->callbacks[PS_CALLBACK_LOST];
	// A number that nobody knows is None: 0 would say that nothing was lost.
	_cleanup_pydecref_ PyObject *nr = Py_None;
	if (loss->is_unknown)
		Py_INCREF(nr);
	else
		nr = PyLong_FromUnsignedLongLong(loss->nr);
	PyObject *result = NULL;
	if (nr)
		result = dispatch->script->nr_args[PS_CALLBACK_LOST] == 2
				 ? PyObject_CallFunction(function, "KK", start, end)
				 : PyObject_CallFunction(function, "KKO", start, end, nr);
	if (!result)
		ps_policy_take(&dispatch->policy, ps_callbacks[PS_CALLBACK_LOST].name);
	Py_XDECREF(result);
}

static inline void call_handler(struct ps_dispatch *dispatch, const struct binding *binding,
				const struct ps_record *record)
{
	PyObject *arguments[2] = { NULL, ps_event_wrap(binding->event_type, record) };
	if (PS_UNLIKELY(!arguments[1])) {
		ps_policy_take(&dispatch->policy, binding->name);
		return;
	}
	PyObject *result = PyObject_Vectorcall(binding->handler, arguments + 1,
					       1 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
	if (PS_LIKELY(result != NULL))
		Py_DECREF(result);
	else
		ps_policy_take(&dispatch->policy, binding->name);
	ps_event_release(arguments[1]);
}

/** A pass ended: call region__NAME(region), where the script has it. */
static void call_region(void *argument, const struct ps_pass *pass)
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

static inline void take_sample(struct ps_dispatch *dispatch, const struct ps_record *record)
{
	struct ps_loss loss;
	struct ps_stream *stream = record->stream;
	while (PS_UNLIKELY(
		ps_losses_sample(&dispatch->losses, record->ring, record->time_ns, &loss)))
		call_lost(dispatch, &loss);
	if (PS_UNLIKELY(!stream->source))
		return;
	stream->delivered++;
	if (PS_UNLIKELY(stream->source->boundary)) {
		dispatch->nr_calls++; // progress, as ps_dispatch_is_stuck asks for it
		ps_boundaries_sample(dispatch->boundaries, record, call_region, dispatch);
		return;
	}
	dispatch->nr_events++;
	const struct binding *binding = &dispatch->bindings[stream->source->index];
	if (PS_LIKELY(binding->handler != NULL))
		call_handler(dispatch, binding, record);
}

/** Records that are no samples: names, births, deaths, maps, losses. */
static void take_other(struct ps_dispatch *dispatch, const struct ps_record *record)
{
	ps_losses_follow(&dispatch->losses, record);
	ps_losses_throttle(&dispatch->losses, record);
	if (dispatch->boundaries)
		ps_boundaries_follow(dispatch->boundaries, record);
	if (dispatch->lookup.tasks)
		ps_tasks_follow(dispatch->lookup.tasks, record->header, record->time_ns);
	if (dispatch->lookup.maps)
		ps_maps_follow(dispatch->lookup.maps, record->header, record->time_ns);
	if (dispatch->lookup.symbolizer)
		ps_symbolizer_follow(dispatch->lookup.symbolizer, record->header);
}

static void log_record(const struct ps_record *record)
{
	ps_log(PS_LOG_DEBUG, "record type=%u misc=%#x size=%u time=%llu ring=%u %s",
	       record->header->type, record->header->misc, record->header->size,
	       (unsigned long long)record->time_ns, record->ring,
	       record->stream && record->stream->source ? record->stream->source->name : "-");
}

/** Hand out up to @budget records; how many it was. */
static uint64_t take_records(struct ps_dispatch *dispatch, uint64_t budget)
{
	const struct ps_record *record;
	uint64_t nr = 0;
	while (nr < budget && (record = ps_merge_next(dispatch->merge))) {
		nr++;
		if (PS_UNLIKELY(ps_log_level() >= PS_LOG_DEBUG))
			log_record(record);
		if (PS_LIKELY(record->header->type == PERF_RECORD_SAMPLE))
			take_sample(dispatch, record);
		else
			take_other(dispatch, record);
		if (PS_UNLIKELY(dispatch->nr_events >= dispatch->max_events || is_over(dispatch)))
			break;
	}
	return nr;
}

/** Twice as many the next time where this turn was short, fewer where it was long. */
static void adapt_budget(struct ps_dispatch *dispatch, uint64_t elapsed_ns)
{
	if (elapsed_ns < TURN_NS / 2 && dispatch->budget < MAX_BUDGET)
		dispatch->budget *= 2;
	else if (elapsed_ns > TURN_NS && dispatch->budget > 1)
		dispatch->budget = elapsed_ns > 8 * TURN_NS ? 1 : dispatch->budget / 2;
}

// The wall clock can be set while the run goes on; its offset is measured again this often.
#define SYNC_NS 1000000000ull

static void sync_clock(struct ps_dispatch *dispatch, uint64_t now_ns)
{
	if (now_ns - dispatch->synced_ns < SYNC_NS)
		return;
	dispatch->synced_ns = now_ns;
	ps_clock_sync(&dispatch->session->clock);
	for (size_t i = 0; i < dispatch->nr_bindings; i++)
		ps_event_type_set_realtime_offset(dispatch->bindings[i].event_type,
						  dispatch->session->clock.realtime_offset_ns);
}

enum ps_dispatch_state ps_dispatch_turn(struct ps_dispatch *dispatch)
{
	if (is_over(dispatch) || dispatch->nr_events >= dispatch->max_events)
		return PS_DISPATCH_STOP;
	uint64_t start_ns = ps_monotonic_ns();
	sync_clock(dispatch, start_ns);
	uint64_t budget = dispatch->budget;
	ps_merge_begin(dispatch->merge);
	enter_script(dispatch);
	uint64_t nr = take_records(dispatch, budget);
	leave_script(dispatch);
	ps_merge_release(dispatch->merge);
	adapt_budget(dispatch, ps_monotonic_ns() - start_ns);
	if (is_over(dispatch) || dispatch->nr_events >= dispatch->max_events)
		return PS_DISPATCH_STOP;
	if (nr == budget)
		return PS_DISPATCH_MORE;
	// What was printed is seen now, also on a pipe; while events stream in, the buffer decides.
	if (nr)
		ps_policy_flush(&dispatch->policy);
	return is_over(dispatch) ? PS_DISPATCH_STOP : PS_DISPATCH_IDLE;
}

/** What is still in the rings counts as lost. */
static void drop_records(struct ps_dispatch *dispatch)
{
	const struct ps_record *record;
	uint64_t nr = 0;
	while ((record = ps_merge_next(dispatch->merge))) {
		if (record->header->type != PERF_RECORD_SAMPLE) {
			take_other(dispatch, record);
		} else if (record->stream->source) {
			ps_losses_drop(&dispatch->losses, record->ring);
			if (dispatch->boundaries)
				ps_boundaries_drop(dispatch->boundaries, record);
			nr++;
		}
	}
	dispatch->nr_left = nr;
	if (nr)
		ps_log(PS_LOG_WARNING,
		       "%llu events were still waiting when the run had to end; they count as lost",
		       (unsigned long long)nr);
}

static void tell_final_losses(struct ps_dispatch *dispatch)
{
	uint64_t now_ns = ps_clock_now_ns(&dispatch->session->clock);
	struct ps_loss loss;
	ps_session_read_lost(dispatch->session);
	enter_script(dispatch);
	for (uint32_t ring = 0; ring < dispatch->session->nr_rings; ring++) {
		while (ps_losses_finish(&dispatch->losses, dispatch->session, ring, now_ns, &loss))
			call_lost(dispatch, &loss);
	}
	leave_script(dispatch);
}

/** The script or -N ended the run: what comes after is not lost, it is not wanted. */
static bool is_enough(const struct ps_dispatch *dispatch)
{
	return dispatch->nr_events >= dispatch->max_events ||
	       (dispatch->policy.is_over && !dispatch->policy.is_interrupted);
}

void ps_dispatch_drain(struct ps_dispatch *dispatch, uint64_t limit_ns)
{
	// -N, stop() and SystemExit want no further event; a signal wants those that happened before it.
	if (is_enough(dispatch))
		return;
	bool is_done = dispatch->policy.is_interrupted;
	uint64_t end_ns = ps_monotonic_ns() + limit_ns;
	dispatch->is_stopped = false;
	ps_merge_flush(dispatch->merge);
	ps_merge_begin(dispatch->merge);
	while (!is_done) {
		enter_script(dispatch);
		uint64_t nr = take_records(dispatch, dispatch->budget);
		leave_script(dispatch);
		is_done = nr < dispatch->budget || is_over(dispatch) ||
			  ps_monotonic_ns() >= end_ns || is_enough(dispatch);
	}
	if (is_enough(dispatch))
		return;
	drop_records(dispatch);
	ps_merge_release(dispatch->merge);
	tell_final_losses(dispatch);
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

enum ps_dispatch_state ps_dispatch_init(struct ps_dispatch *dispatch)
{
	if (has_callback(dispatch, PS_CALLBACK_INIT))
		call_back(dispatch, PS_CALLBACK_INIT, NULL);
	return is_over(dispatch) ? PS_DISPATCH_STOP : PS_DISPATCH_IDLE;
}

void ps_dispatch_begin(struct ps_dispatch *dispatch)
{
	ps_run_totals_begin(&dispatch->totals);
}

/** The totals of the run and of all regions since the last call. New reference, or NULL with an exception set. */
static PyObject *make_interval_totals(struct ps_dispatch *dispatch)
{
	PyObject *module = dispatch->script->perfscope;
	_cleanup_pydecref_ PyObject *totals = ps_run_totals_interval(&dispatch->totals, module);
	if (!totals || !ps_region_totals_add_interval(&dispatch->region_totals, module, totals) ||
	    !ps_program_regions_add_interval(&dispatch->program_regions, module, totals))
		return NULL;
	return_ptr(totals);
}

/** The same of the whole run. */
static PyObject *make_whole_totals(struct ps_dispatch *dispatch)
{
	PyObject *module = dispatch->script->perfscope;
	_cleanup_pydecref_ PyObject *totals = ps_run_totals_whole(&dispatch->totals, module);
	if (!totals || !ps_region_totals_add_whole(&dispatch->region_totals, module, totals) ||
	    !ps_program_regions_add_whole(&dispatch->program_regions, module, totals))
		return NULL;
	return_ptr(totals);
}

/** Call @which, which takes totals where it wants them. */
static void call_with_totals(struct ps_dispatch *dispatch, enum ps_callback which,
			     PyObject *(*make)(struct ps_dispatch *dispatch))
{
	PyObject *totals = NULL;
	if (dispatch->script->nr_args[which]) {
		totals = make(dispatch);
		if (!totals) {
			ps_policy_take(&dispatch->policy, ps_callbacks[which].name);
			return;
		}
	}
	call_back(dispatch, which, totals);
}

bool ps_dispatch_has_interval(const struct ps_dispatch *dispatch)
{
	return has_callback(dispatch, PS_CALLBACK_INTERVAL);
}

void ps_dispatch_interval(struct ps_dispatch *dispatch)
{
	call_with_totals(dispatch, PS_CALLBACK_INTERVAL, make_interval_totals);
	ps_policy_flush(&dispatch->policy);
}

bool ps_dispatch_print_stat(struct ps_dispatch *dispatch)
{
	if (!has_callback(dispatch, PS_CALLBACK_PRINT_STAT))
		return false;
	call_back(dispatch, PS_CALLBACK_PRINT_STAT, PyLong_FromLong(0));
	ps_policy_flush(&dispatch->policy);
	return true;
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

static void finish_regions(struct ps_boundaries *boundaries)
{
	ps_boundaries_finish(boundaries);
	if (ps_boundaries_nr_missed(boundaries))
		ps_log(PS_LOG_WARNING, "-r: too many threads at a time to follow all; their passes "
				       "count as incomplete "
				       "(observe fewer: -p, -t, -C)");
}

void ps_dispatch_exit(struct ps_dispatch *dispatch)
{
	if (dispatch->is_exited)
		return;
	dispatch->is_exited = true;
	if (dispatch->boundaries)
		finish_regions(dispatch->boundaries);
	if (has_callback(dispatch, PS_CALLBACK_EXIT))
		call_with_totals(dispatch, PS_CALLBACK_EXIT, make_whole_totals);
	ps_policy_flush(&dispatch->policy);
	ps_policy_report(&dispatch->policy);
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
	};
}
