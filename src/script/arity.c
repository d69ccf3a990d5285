// SPDX-License-Identifier: MIT
/**
 * How many positional arguments a callable takes.
 *
 * From the code object where there is one: `inspect` takes longer to import than Python to start, and is asked only for
 * what has none (classes, partial, instances with `__call__`).
 */
#include <perfscope/binding.h>

#include <limits.h>

/** The attribute @name as an int, @fallback where there is none. */
static long get_long(PyObject *object, const char *name, long fallback)
{
	_cleanup_pydecref_ PyObject *value = PyObject_GetAttrString(object, name);
	long result = value && PyLong_Check(value) ? PyLong_AsLong(value) : fallback;
	PyErr_Clear();
	return result;
}

static long get_size(PyObject *object, const char *name)
{
	_cleanup_pydecref_ PyObject *value = PyObject_GetAttrString(object, name);
	Py_ssize_t size = value && value != Py_None ? PyObject_Size(value) : 0;
	PyErr_Clear();
	return size > 0 ? size : 0;
}

/** Of what has a code object: a function of Python or of Cython. */
static bool read_code(PyObject *function, struct ps_arity *ret)
{
	_cleanup_pydecref_ PyObject *code = PyObject_GetAttrString(function, "__code__");
	PyErr_Clear();
	long nr_args = code ? get_long(code, "co_argcount", -1) : -1;
	if (nr_args < 0)
		return false;
	long flags = get_long(code, "co_flags", 0);
	long nr_keywords = get_long(code, "co_kwonlyargcount", 0);
	_cleanup_pydecref_ PyObject *file = PyObject_GetAttrString(code, "co_filename");
	*ret = (struct ps_arity){
		.min = nr_args - get_size(function, "__defaults__"),
		.max = flags & CO_VARARGS ? UINT_MAX : nr_args,
		.is_known = true,
		.is_lazy = flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR),
		.needs_keywords = nr_keywords > get_size(function, "__kwdefaults__"),
		// The function keeps its code, and the code its file name.
		.file = file && PyUnicode_Check(file) ? PyUnicode_AsUTF8(file) : NULL,
		.line = get_long(code, "co_firstlineno", 0),
	};
	PyErr_Clear();
	return true;
}

static bool read_builtin(PyObject *function, struct ps_arity *ret)
{
	int flags = PyCFunction_GetFlags(function);
	if (!(flags & (METH_NOARGS | METH_O)))
		return false;
	unsigned int nr = flags & METH_O ? 1 : 0;
	*ret = (struct ps_arity){ .min = nr, .max = nr, .is_known = true };
	return true;
}

/** Add one of inspect's parameters to @ret. */
static bool add_parameter(PyObject *parameter, struct ps_arity *ret)
{
	enum { POSITIONAL_ONLY, POSITIONAL_OR_KEYWORD, VAR_POSITIONAL, KEYWORD_ONLY };
	_cleanup_pydecref_ PyObject *kind = PyObject_GetAttrString(parameter, "kind");
	_cleanup_pydecref_ PyObject *preset = PyObject_GetAttrString(parameter, "default");
	_cleanup_pydecref_ PyObject *empty = PyObject_GetAttrString(parameter, "empty");
	long number = kind ? PyLong_AsLong(kind) : -1;
	if (!preset || !empty || PyErr_Occurred())
		return false;
	bool is_required = preset == empty;
	if (number == VAR_POSITIONAL)
		ret->max = UINT_MAX;
	else if (number == KEYWORD_ONLY)
		ret->needs_keywords |= is_required;
	else if (number == POSITIONAL_ONLY || number == POSITIONAL_OR_KEYWORD) {
		ret->min += is_required;
		ret->max += ret->max != UINT_MAX;
	}
	return true;
}

static PyObject *signature_parameters(PyObject *callable)
{
	_cleanup_pydecref_ PyObject *inspect = PyImport_ImportModule("inspect");
	_cleanup_pydecref_ PyObject *signature =
		inspect ? PyObject_CallMethod(inspect, "signature", "O", callable) : NULL;
	_cleanup_pydecref_ PyObject *parameters =
		signature ? PyObject_GetAttrString(signature, "parameters") : NULL;
	_cleanup_pydecref_ PyObject *values =
		parameters ? PyObject_CallMethod(parameters, "values", NULL) : NULL;
	return values ? PySequence_List(values) : NULL;
}

static bool read_signature(PyObject *callable, struct ps_arity *ret)
{
	*ret = (struct ps_arity){ 0 };
	_cleanup_pydecref_ PyObject *parameters = signature_parameters(callable);
	if (!parameters) {
		// What has no signature may be called with anything.
		if (!PyErr_ExceptionMatches(PyExc_ValueError) &&
		    !PyErr_ExceptionMatches(PyExc_TypeError))
			return false;
		PyErr_Clear();
		return true;
	}
	ret->is_known = true;
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parameters); i++) {
		if (!add_parameter(PyList_GET_ITEM(parameters, i), ret))
			return false;
	}
	return true;
}

bool ps_arity_read(PyObject *callable, struct ps_arity *ret)
{
	bool is_method = PyMethod_Check(callable);
	PyObject *function = is_method ? PyMethod_GET_FUNCTION(callable) : callable; // borrowed
	bool is_read = read_code(function, ret) ||
		       (PyCFunction_Check(callable) && read_builtin(callable, ret));
	if (!is_read)
		return read_signature(callable, ret);
	if (is_method) {
		ret->min -= ret->min > 0;
		ret->max -= ret->max > 0 && ret->max != UINT_MAX;
	}
	return true;
}
