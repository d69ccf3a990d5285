// SPDX-License-Identifier: MIT
#include <perfscope/python_types.h>
#include <string.h>

PyObject *ps_raise_error(PyObject *exception, struct ps_error *error)
{
	if (error == &ps_enomem)
		return PyErr_NoMemory();
	PyErr_SetString(exception, error->message);
	ps_error_destroy(error);
	return NULL;
}

/** Add @item to the list of names @texts. */
static int add_name(PyObject *texts, PyObject *item)
{
	if (PyUnicode_Check(item))
		return PyList_Append(texts, item);
	PyErr_Format(PyExc_TypeError, "an event is named by a str, not %.100s",
		     Py_TYPE(item)->tp_name);
	return -1;
}

/** The names in @events, by commas. New reference: str. */
static PyObject *join_names(PyObject *events)
{
	if (PyUnicode_Check(events))
		return PyUnicode_FromObject(events);
	_cleanup_pydecref_ PyObject *iterator = PyObject_GetIter(events);
	_cleanup_pydecref_ PyObject *texts = PyList_New(0);
	if (!iterator || !texts)
		return NULL;
	PyObject *item;
	while ((item = PyIter_Next(iterator)) != NULL) {
		int status = add_name(texts, item);
		Py_DECREF(item);
		if (status < 0)
			return NULL;
	}
	_cleanup_pydecref_ PyObject *comma = PyErr_Occurred() ? NULL : PyUnicode_FromString(",");
	return comma ? PyUnicode_Join(comma, texts) : NULL;
}

const char *ps_text_from_python(PyObject *text)
{
	Py_ssize_t size;
	const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);
	if (!bytes || strlen(bytes) == (size_t)size)
		return bytes;
	PyErr_SetString(PyExc_ValueError, "embedded null character");
	return NULL;
}

bool ps_counters_from_python(PyObject *events, struct ps_counter counters[PS_MAX_COUNTERS],
			     size_t *ret_nr)
{
	_cleanup_pydecref_ PyObject *names = join_names(events);
	const char *text = names ? ps_text_from_python(names) : NULL;
	if (!text)
		return false;
	struct ps_error *error = ps_counters_parse(text, counters, ret_nr);
	if (error)
		ps_raise_error(PyExc_ValueError, error);
	return !error;
}

PyObject *ps_counters_to_python(const struct ps_counter *counters, size_t nr)
{
	_cleanup_pydecref_ PyObject *names = PyTuple_New(nr);
	for (size_t i = 0; names && i < nr; i++) {
		PyObject *name = PyUnicode_FromString(counters[i].name);
		if (!name)
			return NULL;
		PyTuple_SET_ITEM(names, i, name);
	}
	return_ptr(names);
}

PyObject *module_validate_events(PyObject *module, PyObject *events)
{
	struct ps_counter counters[PS_MAX_COUNTERS];
	size_t nr;
	if (!ps_counters_from_python(events, counters, &nr))
		return NULL;
	return ps_counters_to_python(counters, nr);
}

PyObject *ps_known_counters_to_python(void)
{
	_cleanup_pydecref_ PyObject *events = PyDict_New();
	for (const struct ps_known_counter *known = ps_counter_names; events && known->name;
	     known++) {
		_cleanup_pydecref_ PyObject *pair =
			Py_BuildValue("(IK)", known->type, (unsigned long long)known->config);
		if (!pair || PyDict_SetItemString(events, known->name, pair) < 0)
			return NULL;
	}
	return events ? PyDictProxy_New(events) : NULL;
}
