// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <perfscope/docstrings.h>
#include <perfscope/python_types.h>
#include <perfscope/syscalls.h>
#include <perfscope/version.h>

struct ps_module_state *ps_module_state(PyObject *module)
{
	return PyModule_GetState(module);
}

void ps_python_set_host(PyObject *module, const struct ps_host *host)
{
	ps_module_state(module)->host = host;
}

static PyObject *module_syscall_name(PyObject *module, PyObject *number)
{
	long long nr = PyLong_AsLongLong(number);
	if (nr == -1 && PyErr_Occurred())
		return NULL;
	const char *name = ps_syscall_name(nr);
	if (!name)
		Py_RETURN_NONE;
	return PyUnicode_FromString(name);
}

/** The name of @tid from /proc. New reference: str or None. */
static PyObject *read_comm(int tid)
{
	char path[64], comm[PS_COMM_SIZE + 1];
	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, comm, sizeof(comm));
	if (size <= 0)
		Py_RETURN_NONE;
	return ps_text_to_python(comm, comm[size - 1] == '\n' ? size - 1 : size);
}

static PyObject *module_comm(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "", "time", NULL };
	const struct ps_host *host = ps_module_state(module)->host;
	PyObject *time = NULL;
	int tid;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i|O:comm", names, &tid, &time))
		return NULL;
	if (!host || !host->lookup.tasks)
		return read_comm(tid);
	const char *comm = ps_tasks_comm(host->lookup.tasks, tid);
	if (!comm)
		Py_RETURN_NONE;
	return ps_text_to_python(comm, strlen(comm));
}

/** The host, or NULL with an exception where no run is going on. */
static const struct ps_host *need_host(PyObject *module)
{
	const struct ps_host *host = ps_module_state(module)->host;
	if (!host)
		PyErr_SetString(ps_module_state(module)->perf_event_error,
				"this works only in a script that perfscope runs");
	return host;
}

static PyObject *module_stop(PyObject *module, PyObject *unused)
{
	const struct ps_host *host = need_host(module);
	if (!host)
		return NULL;
	host->stop(host->argument);
	Py_RETURN_NONE;
}

static PyObject *module_print_stat(PyObject *module, PyObject *unused)
{
	const struct ps_host *host = need_host(module);
	if (!host)
		return NULL;
	host->print_stat(host->argument);
	Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
	{ "syscall_name", module_syscall_name, METH_O, DOC_syscall_name },
	{ "comm", (PyCFunction)(void (*)(void))module_comm, METH_VARARGS | METH_KEYWORDS,
	  DOC_comm },
	{ "stop", module_stop, METH_NOARGS, DOC_stop },
	{ "print_stat", module_print_stat, METH_NOARGS, DOC_print_stat },
	{ "region", ps_region_get, METH_O, DOC_region },
	{ "configure", (PyCFunction)(void (*)(void))ps_regions_configure_python,
	  METH_VARARGS | METH_KEYWORDS, DOC_configure },
	{ "regions", (PyCFunction)(void (*)(void))ps_regions_python, METH_VARARGS | METH_KEYWORDS,
	  DOC_regions },
	{ "reset", ps_regions_reset_python, METH_NOARGS, DOC_reset },
	{ "report", (PyCFunction)(void (*)(void))ps_regions_report_python,
	  METH_VARARGS | METH_KEYWORDS, DOC_report },
	{ "validate_events", module_validate_events, METH_O, DOC_validate_events },
	{ NULL },
};

/** Make the type of @spec and, with a @name, offer it in @module. */
static int add_type(PyObject *module, PyType_Spec *spec, const char *name, PyTypeObject **ret)
{
	PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
	if (!type)
		return -1;
	*ret = (PyTypeObject *)type;
#if PY_VERSION_HEX < 0x030A0000
	if (spec != &PerfEventTotals_spec && spec != &CounterGroup_spec)
		(*ret)->tp_new = NULL;
#endif
	return name ? PyModule_AddObjectRef(module, name, type) : 0;
}

static int add_exception(PyObject *module, const char *name, const char *doc, PyObject *base,
			 PyObject **ret)
{
	char full_name[64];
	snprintf(full_name, sizeof(full_name), "perfscope.%s", name);
	*ret = PyErr_NewExceptionWithDoc(full_name, doc, base, NULL);
	return *ret ? PyModule_AddObjectRef(module, name, *ret) : -1;
}

static int module_exec(PyObject *module)
{
	struct ps_module_state *state = ps_module_state(module);
	if (add_type(module, &EventType_spec, NULL, &state->event_type) < 0 ||
	    add_type(module, &PerfEvent_spec, "PerfEvent", &state->perf_event) < 0 ||
	    add_type(module, &PerfEventTotals_spec, "PerfEventTotals", &state->totals) < 0 ||
	    add_type(module, &RegionPass_spec, "RegionPass", &state->region_pass) < 0 ||
	    add_type(module, &Region_spec, "Region", &state->region) < 0 ||
	    add_type(module, &KeptMethod_spec, NULL, &state->kept_method) < 0 ||
	    ps_region_keep_methods(state) < 0 ||
	    add_type(module, &CounterGroup_spec, "PerfEventGroup", &state->counter_group) < 0)
		return -1;
	if (add_exception(module, "PerfEventError", DOC_PerfEventError, PyExc_RuntimeError,
			  &state->perf_event_error) < 0 ||
	    add_exception(module, "DecodeError", DOC_DecodeError, PyExc_ValueError,
			  &state->decode_error) < 0)
		return -1;
	_cleanup_pydecref_ PyObject *events = ps_known_counters_to_python();
	if (PyModule_AddObjectRef(module, "EVENTS", events) < 0 || ps_perf_events_add(module) < 0)
		return -1;
	state->regions = PyDict_New();
	ps_regions_attach_environment();
	return state->regions ? PyModule_AddStringConstant(module, "__version__", PS_VERSION) : -1;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
	struct ps_module_state *state = ps_module_state(module);
	Py_VISIT(state->event_type);
	Py_VISIT(state->perf_event);
	Py_VISIT(state->totals);
	Py_VISIT(state->region_pass);
	Py_VISIT(state->region);
	Py_VISIT(state->kept_method);
	Py_VISIT(state->counter_group);
	Py_VISIT(state->regions);
	Py_VISIT(state->region_tools);
	Py_VISIT(state->perf_event_error);
	Py_VISIT(state->decode_error);
	return ps_region_frames_traverse(state->region_frames, visit, arg);
}

static int module_clear(PyObject *module)
{
	struct ps_module_state *state = ps_module_state(module);
	Py_CLEAR(state->event_type);
	Py_CLEAR(state->perf_event);
	Py_CLEAR(state->totals);
	Py_CLEAR(state->region_pass);
	Py_CLEAR(state->region);
	Py_CLEAR(state->kept_method);
	memset(state->quick_regions, 0, sizeof(state->quick_regions));
	Py_CLEAR(state->counter_group);
	Py_CLEAR(state->regions);
	Py_CLEAR(state->region_tools);
	ps_region_frames_destroy(take_ptr(state->region_frames));
	Py_CLEAR(state->perf_event_error);
	Py_CLEAR(state->decode_error);
	ps_stack_frames_clear(state);
	for (size_t i = 0; i < PS_NR_COMM_STRINGS; i++)
		Py_CLEAR(state->comms[i].text);
	return 0;
}

static void module_free(void *module)
{
	module_clear(module);
}

static PyModuleDef_Slot module_slots[] = {
	{ Py_mod_exec, module_exec },
#ifdef Py_mod_multiple_interpreters
	// libtraceevent and the session are one for the process.
	{ Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED },
#endif
	{ 0, NULL },
};

static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,	       .m_name = "perfscope",
	.m_doc = DOC_module,	       .m_size = sizeof(struct ps_module_state),
	.m_methods = module_methods,   .m_slots = module_slots,
	.m_traverse = module_traverse, .m_clear = module_clear,
	.m_free = module_free,
};

PyMODINIT_FUNC PyInit_perfscope(void)
{
	return PyModuleDef_Init(&module_def);
}
