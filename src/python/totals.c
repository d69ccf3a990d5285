// SPDX-License-Identifier: MIT
#include <perfscope/docstrings.h>
#include <perfscope/python_types.h>
#include <structmember.h>

typedef struct {
	PyObject_HEAD
	unsigned long long calls, incomplete, open;
	PyObject *values, *scaled, *coverage; // dicts, owned
	double seconds;
} PerfEventTotals;

/** @given, or a new dict where it is NULL or None. New reference. */
static PyObject *dict_or_new(PyObject *given)
{
	if (!given || given == Py_None)
		return PyDict_New();
	Py_INCREF(given);
	return given;
}

/** A converter of arguments: "K" takes a negative number for one of 2^64. */
static int to_count(PyObject *object, void *ret)
{
	_cleanup_pydecref_ PyObject *number = PyNumber_Index(object);
	unsigned long long count = number ? PyLong_AsUnsignedLongLong(number) : 0;
	if (!number || PyErr_Occurred())
		return 0;
	*(unsigned long long *)ret = count;
	return 1;
}

static PyObject *PerfEventTotals_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "calls",   "values",	  "scaled", "coverage",
				 "seconds", "incomplete", "open",   NULL };
	unsigned long long calls = 0, incomplete = 0, open = 0;
	PyObject *values = NULL, *scaled = NULL, *coverage = NULL;
	double seconds = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O&OOOdO&O&", names, to_count, &calls,
					 &values, &scaled, &coverage, &seconds, to_count,
					 &incomplete, to_count, &open))
		return NULL;
	_cleanup_pydecref_ PyObject *object = type->tp_alloc(type, 0);
	if (!object)
		return NULL;
	PerfEventTotals *self = (PerfEventTotals *)object;
	self->calls = calls;
	self->seconds = seconds;
	self->incomplete = incomplete;
	self->open = open;
	self->values = dict_or_new(values);
	self->scaled = dict_or_new(scaled);
	self->coverage = dict_or_new(coverage);
	if (!self->values || !self->scaled || !self->coverage)
		return NULL;
	return_ptr(object);
}

static int PerfEventTotals_traverse(PerfEventTotals *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	Py_VISIT(self->values);
	Py_VISIT(self->scaled);
	Py_VISIT(self->coverage);
	return 0;
}

static int PerfEventTotals_clear(PerfEventTotals *self)
{
	Py_CLEAR(self->values);
	Py_CLEAR(self->scaled);
	Py_CLEAR(self->coverage);
	return 0;
}

static void PerfEventTotals_dealloc(PerfEventTotals *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyObject_GC_UnTrack(self);
	PerfEventTotals_clear(self);
	type->tp_free(self);
	Py_DECREF(type);
}

/** ", name=count", or nothing where @count is 0. New reference. */
static PyObject *part_of_repr(const char *name, unsigned long long count)
{
	return count ? PyUnicode_FromFormat(", %s=%llu", name, count) : PyUnicode_FromString("");
}

/** Passes without an end are shown where there are any: without them, 0 calls would look like the whole. */
static PyObject *PerfEventTotals_repr(PerfEventTotals *self)
{
	_cleanup_pydecref_ PyObject *seconds = PyFloat_FromDouble(self->seconds);
	_cleanup_pydecref_ PyObject *incomplete = part_of_repr("incomplete", self->incomplete);
	_cleanup_pydecref_ PyObject *open = part_of_repr("open", self->open);
	if (!seconds || !incomplete || !open)
		return NULL;
	return PyUnicode_FromFormat("PerfEventTotals(calls=%llu, values=%R, seconds=%R%U%U)",
				    self->calls, self->values, seconds, incomplete, open);
}

static PyMemberDef PerfEventTotals_members[] = {
	{ "calls", T_ULONGLONG, offsetof(PerfEventTotals, calls), 0, DOC_PerfEventTotals_calls },
	{ "values", T_OBJECT, offsetof(PerfEventTotals, values), 0, DOC_PerfEventTotals_values },
	{ "scaled", T_OBJECT, offsetof(PerfEventTotals, scaled), 0, DOC_PerfEventTotals_scaled },
	{ "coverage", T_OBJECT, offsetof(PerfEventTotals, coverage), 0,
	  DOC_PerfEventTotals_coverage },
	{ "seconds", T_DOUBLE, offsetof(PerfEventTotals, seconds), 0, DOC_PerfEventTotals_seconds },
	{ "incomplete", T_ULONGLONG, offsetof(PerfEventTotals, incomplete), 0,
	  DOC_PerfEventTotals_incomplete },
	{ "open", T_ULONGLONG, offsetof(PerfEventTotals, open), 0, DOC_PerfEventTotals_open },
	{ NULL },
};

static PyType_Slot PerfEventTotals_slots[] = {
	{ Py_tp_new, PerfEventTotals_new },	      { Py_tp_dealloc, PerfEventTotals_dealloc },
	{ Py_tp_traverse, PerfEventTotals_traverse }, { Py_tp_clear, PerfEventTotals_clear },
	{ Py_tp_repr, PerfEventTotals_repr },	      { Py_tp_members, PerfEventTotals_members },
	{ Py_tp_doc, (void *)DOC_PerfEventTotals },   { 0, NULL },
};

PyType_Spec PerfEventTotals_spec = {
	.name = "perfscope.PerfEventTotals",
	.basicsize = sizeof(PerfEventTotals),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | PS_TYPE_IMMUTABLE,
	.slots = PerfEventTotals_slots,
};

/** dict[name] = value, which is taken over; NULL passes the failure on. */
static int set_item_steal(PyObject *dict, PyObject *name, PyObject *value)
{
	_cleanup_pydecref_ PyObject *owned = value;
	return owned ? PyDict_SetItem(dict, name, owned) : -1;
}

static PyObject *none_or(bool is_valid, PyObject *(*make)(const struct ps_total *),
			 const struct ps_total *total)
{
	if (!is_valid)
		Py_RETURN_NONE;
	return make(total);
}

static PyObject *make_value(const struct ps_total *total)
{
	return PyLong_FromUnsignedLongLong(total->value);
}

static double coverage_of(const struct ps_total *total)
{
	if (!total->is_valid)
		return 0;
	return total->enabled_ns ? (double)total->running_ns / total->enabled_ns : 1;
}

static PyObject *make_scaled(const struct ps_total *total)
{
	return PyFloat_FromDouble(total->value / coverage_of(total));
}

static int totals_add(PerfEventTotals *self, const struct ps_total *total)
{
	_cleanup_pydecref_ PyObject *name = PyUnicode_FromString(total->name);
	if (!name)
		return -1;
	// Enabled and never on the PMU: nothing was counted, which is not a count of 0. There for a part of the time: what was
	// counted is too small, and only an estimate can be had.
	bool is_valid = total->is_valid && (total->running_ns || !total->enabled_ns);
	bool is_whole = is_valid && total->running_ns >= total->enabled_ns;
	if (set_item_steal(self->values, name, none_or(is_whole, make_value, total)) < 0)
		return -1;
	if (set_item_steal(self->scaled, name, none_or(is_valid, make_scaled, total)) < 0)
		return -1;
	return set_item_steal(self->coverage, name, PyFloat_FromDouble(coverage_of(total)));
}

PyObject *ps_totals_create(PyObject *module, const struct ps_totals_head *head,
			   const struct ps_total *totals, size_t nr)
{
	PyTypeObject *type = ps_module_state(module)->totals;
	_cleanup_pydecref_ PyObject *object = PyObject_CallObject((PyObject *)type, NULL);
	if (!object)
		return NULL;
	PerfEventTotals *self = (PerfEventTotals *)object;
	self->calls = head->calls;
	self->incomplete = head->incomplete;
	self->open = head->open;
	self->seconds = head->seconds;
	for (size_t i = 0; i < nr; i++) {
		if (totals_add(self, &totals[i]) < 0)
			return NULL;
	}
	return_ptr(object);
}
