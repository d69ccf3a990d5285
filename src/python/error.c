// SPDX-License-Identifier: MIT
#include <perfscope/python_types.h>

/** The traceback as Python prints it, or NULL with an exception set. */
static PyObject *format_exception(PyObject *type, PyObject *value, PyObject *traceback)
{
	_cleanup_pydecref_ PyObject *module = PyImport_ImportModule("traceback");
	if (!module)
		return NULL;
	_cleanup_pydecref_ PyObject *lines =
		PyObject_CallMethod(module, "format_exception", "OOO", type,
				    value ? value : Py_None, traceback ? traceback : Py_None);
	if (!lines)
		return NULL;
	_cleanup_pydecref_ PyObject *empty = PyUnicode_FromString("");
	return empty ? PyUnicode_Join(empty, lines) : NULL;
}

/** "ValueError: text" of an exception; never NULL unless memory is out. */
static PyObject *summarize_exception(PyObject *type, PyObject *value)
{
	_cleanup_pydecref_ PyObject *text = value ? PyObject_Str(value) : NULL;
	PyErr_Clear();
	const char *name = PyExceptionClass_Check(type) ? PyExceptionClass_Name(type) : "exception";
	if (text && PyUnicode_GetLength(text) > 0)
		return PyUnicode_FromFormat("%s: %U", name, text);
	return PyUnicode_FromString(name);
}

/** The bytes of @text for a terminal, lone surrogates escaped; NULL: not possible. */
static char *copy_text(PyObject *text)
{
	_cleanup_pydecref_ PyObject *bytes =
		text ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace") : NULL;
	char *copy = bytes ? strdup(PyBytes_AS_STRING(bytes)) : NULL;
	PyErr_Clear();
	return copy;
}

struct ps_error *ps_python_take_error(const char *what)
{
	_cleanup_pydecref_ PyObject *type = NULL;
	_cleanup_pydecref_ PyObject *value = NULL;
	_cleanup_pydecref_ PyObject *traceback = NULL;
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	if (!type)
		return ps_error_format(PS_ERROR_SCRIPT, "%s failed", what);
	_cleanup_pydecref_ PyObject *summary = summarize_exception(type, value);
	_cleanup_free_ char *line = copy_text(summary);
	struct ps_error *error = ps_error_format(PS_ERROR_SCRIPT, "%s raised %s", what,
						 line ? line : "an exception");
	_cleanup_pydecref_ PyObject *text = format_exception(type, value, traceback);
	if (error != &ps_enomem)
		error->detail = copy_text(text);
	PyErr_Clear();
	return error;
}
