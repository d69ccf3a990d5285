// SPDX-License-Identifier: MIT
/**
 * For tests: events from built records, without a kernel. `call` does to a function what dispatch does to a handler:
 * the record lies in a buffer that is overwritten as soon as the function has returned.
 */
#include <perfscope/byte_order.h>
#include <perfscope/python_types.h>

static PyObject *new_perfscope(void)
{
	PyObject *def = PyInit_perfscope(); // borrowed: a static PyModuleDef
	_cleanup_pydecref_ PyObject *machinery = PyImport_ImportModule("importlib.machinery");
	_cleanup_pydecref_ PyObject *spec =
		machinery ? PyObject_CallMethod(machinery, "ModuleSpec", "sO", "perfscope", Py_None)
			  : NULL;
	if (!spec)
		return NULL;
	_cleanup_pydecref_ PyObject *module = PyModule_FromDefAndSpec((PyModuleDef *)def, spec);
	if (!module || PyModule_ExecDef(module, (PyModuleDef *)def) < 0)
		return NULL;
	return_ptr(module);
}

static struct ps_source_list no_sources;
static struct ps_session no_session = { .sources = &no_sources };

/** ValueError with the message of @error, which is taken over. */
static PyObject *raise_error(struct ps_error *error)
{
	PyErr_SetString(PyExc_ValueError, error->message);
	ps_error_destroy(error);
	return NULL;
}

/** event_type(perfscope, system, name, format_text, machine=this, is_swapped=False) */
static PyObject *make_event_type(PyObject *self, PyObject *args)
{
	PyObject *module;
	const char *system, *name, *text;
	Py_ssize_t size;
	const char *machine_name = NULL;
	int is_swapped = false;
	if (!PyArg_ParseTuple(args, "Osss#|zp", &module, &system, &name, &text, &size,
			      &machine_name, &is_swapped))
		return NULL;
	struct ps_machine machine =
		machine_name ? ps_machine_of(machine_name, is_swapped) : ps_this_machine;
	struct ps_source source = {
		.name = (char *)name,
		.label = (char *)name,
		.attr = { .sample_type = PS_SAMPLE_BASE | PERF_SAMPLE_RAW },
	};
	struct ps_error *error =
		ps_schema_create_tracepoint_of(&machine, system, text, size, &source.schema);
	if (error)
		return raise_error(error);
	PyObject *type = ps_event_type_create(module, &no_session, &source);
	ps_schema_unref(source.schema);
	return type;
}

/** counter_type(perfscope, name, sample_type, read_format, branch_sample_type, regs_user, regs_intr, machine=this) */
static PyObject *make_counter_type(PyObject *self, PyObject *args)
{
	PyObject *module;
	const char *name;
	const char *machine_name = NULL;
	unsigned long long sample_type, read_format, branch_sample_type, regs_user, regs_intr;
	if (!PyArg_ParseTuple(args, "OsKKKKK|z", &module, &name, &sample_type, &read_format,
			      &branch_sample_type, &regs_user, &regs_intr, &machine_name))
		return NULL;
	struct ps_machine machine =
		machine_name ? ps_machine_of(machine_name, false) : ps_this_machine;
	struct ps_session session = { .sources = &no_sources, .machine = &machine };
	struct ps_source source = {
		.name = (char *)name,
		.label = (char *)name,
		.attr = {
			.sample_type = sample_type,
			.read_format = read_format,
			.branch_sample_type = branch_sample_type,
			.sample_regs_user = regs_user,
			.sample_regs_intr = regs_intr,
		},
	};
	struct ps_error *error = ps_schema_create_counter(name, &source.schema);
	if (error)
		return raise_error(error);
	PyObject *type = ps_event_type_create(module, &session, &source);
	ps_schema_unref(source.schema);
	return type;
}

/** call(event_type, record, function, is_swapped=False): function's result; the record may be of the other byte order. */
static PyObject *call(PyObject *self, PyObject *args)
{
	PyObject *type, *function;
	const char *bytes;
	Py_ssize_t size;
	int is_swapped = false;
	if (!PyArg_ParseTuple(args, "Oy#O|p", &type, &bytes, &size, &function, &is_swapped))
		return NULL;
	_cleanup_free_ char *ring = malloc(size);
	if (!ring)
		return PyErr_NoMemory();
	memcpy(ring, bytes, size);
	if (is_swapped) {
		ps_header_swap((struct perf_event_header *)ring);
		if (!ps_record_swap(&((EventType *)type)->layout, (void *)ring))
			return PyErr_Format(PyExc_ValueError, "the record cannot be turned");
	}
	struct ps_record record = { .header = (const void *)ring };
	PyObject *event = ps_event_wrap(type, &record);
	if (!event)
		return NULL;
	PyObject *result = PyObject_CallFunctionObjArgs(function, event, NULL);
	ps_event_release(event);
	memset(ring, 0xee, size);
	return result;
}

static PyMethodDef methods[] = {
	{ "event_type", make_event_type, METH_VARARGS, NULL },
	{ "counter_type", make_counter_type, METH_VARARGS, NULL },
	{ "call", call, METH_VARARGS, NULL },
	{ NULL },
};

static struct PyModuleDef def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "eventmaker",
	.m_size = -1,
	.m_methods = methods,
};

PyMODINIT_FUNC PyInit_eventmaker(void)
{
	_cleanup_pydecref_ PyObject *module = PyModule_Create(&def);
	PyObject *perfscope = module ? new_perfscope() : NULL;
	if (!perfscope || PyModule_AddObject(module, "perfscope", perfscope) < 0) {
		Py_XDECREF(perfscope);
		return NULL;
	}
	return_ptr(module);
}
