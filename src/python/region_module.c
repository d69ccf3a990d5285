// SPDX-License-Identifier: MIT
/** The module's functions of regions: region, configure, regions, reset, report. */
#include <perfscope/docstrings.h>
#include <perfscope/python_types.h>
#include <perfscope/region_tools.h>

PyObject *ps_region_tool(PyObject *module, const char *name)
{
	struct ps_module_state *state = ps_module_state(module);
	if (!state->region_tools) {
		_cleanup_pydecref_ PyObject *code = Py_CompileString(
			PS_REGION_TOOLS, "perfscope/region_tools.py", Py_file_input);
		PyObject *tools =
			code ? PyImport_ExecCodeModule("perfscope.region_tools", code) : NULL;
		if (!tools)
			return NULL;
		state->region_tools = tools;
	}
	return PyObject_GetAttrString(state->region_tools, name);
}

static PyObject *raise_error(PyObject *module, struct ps_error *error)
{
	return ps_raise_error(ps_module_state(module)->perf_event_error, error);
}

/** A `with` statement of Python around nothing. */
static bool pass_empty(struct ps_region *region, void *arguments)
{
	PyObject **function_and_region = arguments;
	_cleanup_pydecref_ PyObject *result =
		PyObject_CallFunctionObjArgs(function_and_region[0], function_and_region[1], NULL);
	return result;
}

/** False with an exception set; where there is no memory the cost stays unknown. */
static bool measure_overhead(PyObject *module)
{
	_cleanup_pydecref_ PyObject *name = PyUnicode_FromString("(empty)");
	_cleanup_pydecref_ PyObject *object = name ? ps_region_get(module, name) : NULL;
	_cleanup_pydecref_ PyObject *function =
		object ? ps_region_tool(module, "pass_empty") : NULL;
	if (!function)
		return false;
	struct ps_region *region;
	struct ps_error *error = ps_region_find("(empty)", &region);
	if (error)
		return raise_error(module, error);
	ps_regions_calibrate(region, pass_empty, (PyObject *[]){ function, object });
	return !PyErr_Occurred();
}

/** What perfscope observes with, where regions() tells of its run; NULL: this process's own is read. */
static const struct ps_host *host_of(PyObject *module)
{
	const struct ps_host *host = ps_module_state(module)->host;
	return host && host->regions ? host : NULL;
}

/** Whether this is a script of perfscope, also while it is loaded and there is no host yet. */
static bool is_of_run(PyObject *module)
{
	return host_of(module) || ps_regions_are_of_run();
}

static PyObject *refuse_configure(PyObject *module, const struct ps_counter *counters, size_t nr)
{
	_cleanup_pydecref_ PyObject *names = ps_counters_to_python(counters, nr);
	_cleanup_pydecref_ PyObject *comma = PyUnicode_FromString(",");
	_cleanup_pydecref_ PyObject *text = names && comma ? PyUnicode_Join(comma, names) : NULL;
	if (text)
		PyErr_Format(ps_module_state(module)->perf_event_error,
			     "configure: in a script of perfscope the regions count what -e of the "
			     "run names: perfscope python -e %U",
			     text);
	return NULL;
}

PyObject *ps_regions_configure_python(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "events", "user_only", "strict", "inherit", "subtract", NULL };
	PyObject *events;
	int user_only = 0, strict = 0, inherit = 0, subtract = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pppp:configure", names, &events,
					 &user_only, &strict, &inherit, &subtract))
		return NULL;
	struct ps_counter counters[PS_MAX_COUNTERS];
	size_t nr;
	if (!ps_counters_from_python(events, counters, &nr))
		return NULL;
	if (is_of_run(module))
		return refuse_configure(module, counters, nr);
	for (size_t i = 0; user_only && i < nr; i++)
		counters[i].exclude = PS_EXCLUDE_KERNEL | PS_EXCLUDE_HV;
	struct ps_error *error = ps_regions_configure(
		counters, nr, (strict ? PS_GROUP_STRICT : 0) | (inherit ? PS_GROUP_INHERIT : 0),
		subtract);
	if (error)
		return raise_error(module, error);
	if (!measure_overhead(module))
		return NULL;
	Py_RETURN_NONE;
}

/** A PerfEventTotals of @total. New reference, or NULL with an exception set. */
static PyObject *make_totals(PyObject *module, const struct ps_regions_reading *reading,
			     const struct ps_region_total *total)
{
	const struct ps_region_sums *sums = &total->sums;
	struct ps_total values[PS_MAX_COUNTERS];
	for (size_t i = 0; i < reading->nr_counters; i++) {
		const struct ps_counter_reading *counted = &sums->counted[i];
		values[i] = (struct ps_total){
			.name = reading->counters[i].name,
			.value = counted->value,
			.enabled_ns = counted->enabled_ns,
			.running_ns = counted->running_ns,
			.is_valid = !(sums->invalid >> i & 1),
		};
	}
	struct ps_totals_head head = {
		.calls = sums->calls,
		.incomplete = sums->incomplete,
		.open = total->open,
		.seconds = sums->elapsed_ns / 1e9,
	};
	return ps_totals_create(module, &head, values, reading->nr_counters);
}

/** The dict of @name in @dict, made where there is none. Borrowed, or NULL with an exception set. */
static PyObject *dict_of(PyObject *dict, PyObject *name)
{
	_cleanup_pydecref_ PyObject *empty = PyDict_New();
	return empty ? PyDict_SetDefault(dict, name, empty) : NULL;
}

static bool add_total(PyObject *module, PyObject *dict, const struct ps_regions_reading *reading,
		      const struct ps_region_total *total, bool by_thread)
{
	_cleanup_pydecref_ PyObject *name = ps_text_to_python(total->name, strlen(total->name));
	_cleanup_pydecref_ PyObject *totals = name ? make_totals(module, reading, total) : NULL;
	if (!totals)
		return false;
	if (!by_thread)
		return PyDict_SetItem(dict, name, totals) == 0;
	PyObject *threads = dict_of(dict, name);
	_cleanup_pydecref_ PyObject *tid = threads ? PyLong_FromLong(total->tid) : NULL;
	return tid && PyDict_SetItem(threads, tid, totals) == 0;
}

static PyObject *make_regions(PyObject *module, const struct ps_regions_reading *reading,
			      bool by_thread)
{
	_cleanup_pydecref_ PyObject *dict = PyDict_New();
	for (size_t i = 0; dict && i < reading->nr; i++) {
		if (!add_total(module, dict, reading, &reading->totals[i], by_thread))
			return NULL;
	}
	return_ptr(dict);
}

PyObject *ps_regions_python(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "by_thread", NULL };
	int by_thread = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:regions", names, &by_thread))
		return NULL;
	const struct ps_host *host = host_of(module);
	if (host)
		return host->make_regions(host->argument, by_thread);
	_cleanup_regions_reading_ struct ps_regions_reading reading;
	struct ps_error *error = ps_regions_read(by_thread, &reading);
	if (error)
		return raise_error(module, error);
	return make_regions(module, &reading, by_thread);
}

PyObject *ps_regions_reset_python(PyObject *module, PyObject *unused)
{
	if (is_of_run(module)) {
		PyErr_SetString(
			ps_module_state(module)->perf_event_error,
			"reset: the totals of a run are perfscope's, and cannot start anew");
		return NULL;
	}
	struct ps_error *error = ps_regions_reset();
	if (error)
		return raise_error(module, error);
	Py_RETURN_NONE;
}

/** {name: reason} of counters without a value. */
static PyObject *make_reasons(PyObject *module, const struct ps_regions_reading *reading)
{
	_cleanup_pydecref_ PyObject *reasons = PyDict_New();
	for (size_t i = 0; reasons && i < reading->nr_counters; i++) {
		const char *reason = ps_regions_reading_reason(reading, i);
		_cleanup_pydecref_ PyObject *text = reason ? PyUnicode_FromString(reason) : NULL;
		if (reason &&
		    (!text || PyDict_SetItemString(reasons, reading->counters[i].name, text) < 0))
			return NULL;
	}
	return_ptr(reasons);
}

/** What an empty pass counts of counter @index, None where that has no value. New reference. */
static PyObject *cost_to_python(const struct ps_region_sums *cost, size_t index)
{
	if (cost->invalid >> index & 1)
		Py_RETURN_NONE;
	return ps_unsigned_to_python(cost->counted[index].value);
}

/** {name: count or None} of an empty pass; empty where it was not measured. */
static PyObject *make_overhead(PyObject *module, const struct ps_regions_reading *reading)
{
	const struct ps_region_sums *cost = &reading->cost;
	_cleanup_pydecref_ PyObject *counts = PyDict_New();
	for (size_t i = 0; counts && cost->calls && i < reading->nr_counters; i++) {
		_cleanup_pydecref_ PyObject *count = cost_to_python(cost, i);
		if (!count || PyDict_SetItemString(counts, reading->counters[i].name, count) < 0)
			return NULL;
	}
	return_ptr(counts);
}

/** All that report() shows, as a dict. Steals all objects, any of which may be NULL with an exception set. */
static PyObject *make_told(PyObject *events, PyObject *regions, PyObject *reasons,
			   PyObject *overhead, bool is_subtracted, size_t nr_groups,
			   uint64_t missed)
{
	PyObject *told = NULL;
	if (events && regions && reasons && overhead)
		told = Py_BuildValue("{sOsOsOsOsOsnsK}", "events", events, "regions", regions,
				     "reasons", reasons, "overhead", overhead, "is_subtracted",
				     is_subtracted ? Py_True : Py_False, "groups",
				     (Py_ssize_t)nr_groups, "missed", (unsigned long long)missed);
	Py_XDECREF(events);
	Py_XDECREF(regions);
	Py_XDECREF(reasons);
	Py_XDECREF(overhead);
	return told;
}

/** Whether a program or the script had a region, and not -r alone. */
static bool has_program_regions(const struct ps_host *host)
{
	_cleanup_free_ struct ps_region_total *totals = NULL;
	size_t nr = 0;
	ps_error_destroy(ps_region_table_read(host->regions, false, false, &totals, &nr));
	return nr;
}

/** What an empty pass in this process, which counts what programs do, costs. The same each time: it is measured once. */
static PyObject *make_overhead_of_run(PyObject *module, const struct ps_host *host)
{
	_cleanup_regions_reading_ struct ps_regions_reading reading = { 0 };
	if (!has_program_regions(host))
		return PyDict_New();
	struct ps_error *error = ps_regions_read(false, &reading);
	if (!error && !reading.cost.calls) {
		ps_regions_reading_release(&reading);
		if (!measure_overhead(module))
			return NULL;
		error = ps_regions_read(false, &reading);
	}
	if (error)
		return raise_error(module, error);
	return make_overhead(module, &reading);
}

static PyObject *tell_of_run(PyObject *module, const struct ps_host *host)
{
	return make_told(host->make_region_events(host->argument),
			 host->make_regions(host->argument, false),
			 host->make_region_reasons(host->argument),
			 make_overhead_of_run(module, host), false,
			 ps_region_table_nr_groups(host->regions),
			 ps_region_table_nr_missed(host->regions));
}

static PyObject *tell_of_process(PyObject *module)
{
	_cleanup_regions_reading_ struct ps_regions_reading reading;
	struct ps_error *error = ps_regions_read(false, &reading);
	if (error)
		return raise_error(module, error);
	return make_told(ps_counters_to_python(reading.counters, reading.nr_counters),
			 make_regions(module, &reading, false), make_reasons(module, &reading),
			 make_overhead(module, &reading), reading.is_cost_subtracted,
			 reading.nr_groups, reading.nr_missed);
}

PyObject *ps_regions_report_python(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "file", "format", NULL };
	PyObject *file = Py_None;
	const char *format = "table";
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Os:report", names, &file, &format))
		return NULL;
	const struct ps_host *host = host_of(module);
	_cleanup_pydecref_ PyObject *told =
		host ? tell_of_run(module, host) : tell_of_process(module);
	_cleanup_pydecref_ PyObject *report = told ? ps_region_tool(module, "report") : NULL;
	bool is_active = host || ps_regions_are_active();
	return report ? PyObject_CallFunction(report, "OOsO", told, file, format,
					      is_active ? Py_True : Py_False)
		      : NULL;
}
