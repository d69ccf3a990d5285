// SPDX-License-Identifier: MIT
#include <perfscope/docstrings.h>
#include <perfscope/python_types.h>
#include <structmember.h>

typedef struct {
	PyObject_VAR_HEAD
	PyObject *name;	    // str, owned
	PyObject *counters; // tuple of str, owned
	PyObject *values;   // dict, owned; NULL: not read yet
	char comm[PS_COMM_SIZE];
	int pid, tid, cpu;
	unsigned long long begin, end, calls;
	uint64_t elapsed_ns, invalid;
	uint64_t counts[]; // one for each of counters
} RegionPass;

PyObject *ps_region_pass_create(PyObject *module, const struct ps_region_pass *given)
{
	PyTypeObject *type = ps_module_state(module)->region_pass;
	const struct ps_pass *pass = given->pass;
	Py_ssize_t nr = PyTuple_GET_SIZE(given->counters);
	RegionPass *self = (RegionPass *)type->tp_alloc(type, nr);
	if (!self)
		return NULL;
	Py_INCREF(given->name);
	self->name = given->name;
	Py_INCREF(given->counters);
	self->counters = given->counters;
	if (given->comm)
		memcpy(self->comm, given->comm, sizeof(self->comm));
	self->pid = pass->pid;
	self->tid = pass->tid;
	self->cpu = (int)pass->cpu;
	self->begin = given->begin;
	self->end = given->end;
	self->calls = pass->calls;
	self->elapsed_ns = pass->end_ns - pass->begin_ns;
	self->invalid = pass->invalid;
	memcpy(self->counts, pass->counts + PS_PASS_NR_TIMES, nr * sizeof(*self->counts));
	return (PyObject *)self;
}

static int RegionPass_traverse(RegionPass *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	// The dict is the script's to change: it may lead back here.
	Py_VISIT(self->values);
	return 0;
}

static int RegionPass_clear(RegionPass *self)
{
	Py_CLEAR(self->values);
	return 0;
}

static void RegionPass_dealloc(RegionPass *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyObject_GC_UnTrack(self);
	RegionPass_clear(self);
	Py_XDECREF(self->name);
	Py_XDECREF(self->counters);
	type->tp_free(self);
	Py_DECREF(type);
}

/** dict[name] of counter @index. */
static int add_value(const RegionPass *self, PyObject *values, Py_ssize_t index)
{
	PyObject *name = PyTuple_GET_ITEM(self->counters, index);
	if (self->invalid >> index & 1)
		return PyDict_SetItem(values, name, Py_None);
	_cleanup_pydecref_ PyObject *value = ps_unsigned_to_python(self->counts[index]);
	return value ? PyDict_SetItem(values, name, value) : -1;
}

static PyObject *RegionPass_values(RegionPass *self, void *unused)
{
	if (!self->values) {
		_cleanup_pydecref_ PyObject *values = PyDict_New();
		if (!values)
			return NULL;
		for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->counters); i++) {
			if (add_value(self, values, i) < 0)
				return NULL;
		}
		self->values = take_ptr(values);
	}
	Py_INCREF(self->values);
	return self->values;
}

static PyObject *RegionPass_comm(RegionPass *self, void *unused)
{
	if (!self->comm[0])
		return PyUnicode_FromFormat(":%d", self->tid);
	return ps_text_to_python(self->comm, strnlen(self->comm, sizeof(self->comm)));
}

static PyObject *RegionPass_seconds(RegionPass *self, void *unused)
{
	return PyFloat_FromDouble(self->elapsed_ns / 1e9);
}

static PyObject *RegionPass_repr(RegionPass *self)
{
	return PyUnicode_FromFormat("<RegionPass %U cpu=%d pid=%d tid=%d begin=%llu end=%llu>",
				    self->name, self->cpu, self->pid, self->tid, self->begin,
				    self->end);
}

#define MEMBER(name, type)                                                                         \
	{                                                                                          \
#name, type, offsetof(RegionPass, name), READONLY, DOC_RegionPass_##name           \
	}

static PyMemberDef RegionPass_members[] = {
	MEMBER(name, T_OBJECT_EX),  MEMBER(pid, T_INT),
	MEMBER(tid, T_INT),	    MEMBER(cpu, T_INT),
	MEMBER(begin, T_ULONGLONG), MEMBER(end, T_ULONGLONG),
	MEMBER(calls, T_ULONGLONG), { NULL },
};

static PyGetSetDef RegionPass_getset[] = {
	{ "comm", (getter)RegionPass_comm, NULL, DOC_RegionPass_comm, NULL },
	{ "seconds", (getter)RegionPass_seconds, NULL, DOC_RegionPass_seconds, NULL },
	{ "values", (getter)RegionPass_values, NULL, DOC_RegionPass_values, NULL },
	{ NULL },
};

static PyType_Slot RegionPass_slots[] = {
	{ Py_tp_dealloc, RegionPass_dealloc }, { Py_tp_traverse, RegionPass_traverse },
	{ Py_tp_clear, RegionPass_clear },     { Py_tp_repr, RegionPass_repr },
	{ Py_tp_members, RegionPass_members }, { Py_tp_getset, RegionPass_getset },
	{ Py_tp_doc, (void *)DOC_RegionPass }, { 0, NULL },
};

PyType_Spec RegionPass_spec = {
	.name = "perfscope.RegionPass",
	.basicsize = offsetof(RegionPass, counts),
	.itemsize = sizeof(uint64_t),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | PS_TYPE_NOT_CALLABLE | PS_TYPE_IMMUTABLE,
	.slots = RegionPass_slots,
};
