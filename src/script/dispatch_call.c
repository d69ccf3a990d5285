// SPDX-License-Identifier: MIT
#include "dispatch_internal.h"

#include <perfscope/child.h>

void ps_dispatch_enter_script(struct ps_dispatch *dispatch)
{
	dispatch->nr_calls++;
	dispatch->is_in_script = true;
}

void ps_dispatch_leave_script(struct ps_dispatch *dispatch)
{
	dispatch->is_in_script = false;
	// An interrupt that came too late for the code it was meant for must not hit what is called next.
	if (PS_UNLIKELY(dispatch->is_stopped) && PyErr_CheckSignals() < 0)
		PyErr_Clear();
	if (PS_UNLIKELY(ps_child_is_here()))
		ps_child_end(ps_dispatch_status(dispatch));
}

static bool has_callback(const struct ps_dispatch *dispatch, enum ps_callback which)
{
	return dispatch->script->callbacks[which] != NULL;
}

/** Call the script's @which with @nr arguments; steals @argument, which may be NULL where @nr is 0. */
static void call_back(struct ps_dispatch *dispatch, enum ps_callback which, PyObject *argument)
{
	PyObject *function = dispatch->script->callbacks[which];
	_cleanup_pydecref_ PyObject *owned = argument;
	// __exit__ may take its time after a stop: it is not to be interrupted by the first signal.
	if (which != PS_CALLBACK_EXIT)
		ps_dispatch_enter_script(dispatch);
	PyObject *result = owned ? PyObject_CallFunctionObjArgs(function, owned, NULL)
				 : PyObject_CallNoArgs(function);
	if (!result)
		ps_policy_take(&dispatch->policy, ps_callbacks[which].name);
	Py_XDECREF(result);
	ps_dispatch_leave_script(dispatch);
}

void ps_dispatch_call_lost(struct ps_dispatch *dispatch, const struct ps_loss *loss)
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

enum ps_dispatch_state ps_dispatch_init(struct ps_dispatch *dispatch)
{
	if (has_callback(dispatch, PS_CALLBACK_INIT))
		call_back(dispatch, PS_CALLBACK_INIT, NULL);
	return ps_dispatch_is_over(dispatch) ? PS_DISPATCH_STOP : PS_DISPATCH_IDLE;
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
	if (!totals || !ps_dispatch_add_regions(dispatch, totals, false))
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

void ps_dispatch_exit(struct ps_dispatch *dispatch)
{
	if (dispatch->is_exited)
		return;
	dispatch->is_exited = true;
	ps_dispatch_finish_regions(dispatch);
	if (has_callback(dispatch, PS_CALLBACK_EXIT))
		call_with_totals(dispatch, PS_CALLBACK_EXIT, make_whole_totals);
	ps_policy_flush(&dispatch->policy);
	ps_policy_report(&dispatch->policy);
}
