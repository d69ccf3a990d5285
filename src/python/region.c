// SPDX-License-Identifier: MIT
/** region(): a named stretch of execution as context manager and decorator. */
#include <perfscope/docstrings.h>
#include <perfscope/python_types.h>

/** One for each name and module; kept for as long as the module. */
typedef struct {
	PyObject_HEAD
	PyObject *module; // owned
	PyObject *name;	  // str, owned
	struct ps_region *region;
} Region;

static int Region_traverse(Region *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	Py_VISIT(self->module);
	return 0;
}

static int Region_clear(Region *self)
{
	Py_CLEAR(self->module);
	return 0;
}

static void Region_dealloc(Region *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyObject_GC_UnTrack(self);
	Region_clear(self);
	Py_XDECREF(self->name);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyObject *Region_enter(Region *self, PyObject *unused)
{
	if (ps_regions_are_active() && ps_region_frames_enter(self->module, self->region) < 0)
		return NULL;
	Py_INCREF(self);
	return (PyObject *)self;
}

static PyObject *Region_exit(Region *self, PyObject *const *args, Py_ssize_t nr)
{
	if (ps_regions_are_active())
		ps_region_frames_leave(self->module, self->region);
	Py_RETURN_NONE;
}

static PyObject *Region_call(Region *self, PyObject *args, PyObject *kwargs)
{
	PyObject *function;
	if (!PyArg_UnpackTuple(args, "region", 1, 1, &function))
		return NULL;
	if (!PyCallable_Check(function) || (kwargs && PyDict_GET_SIZE(kwargs))) {
		PyErr_SetString(PyExc_TypeError, "region(name) decorates a function");
		return NULL;
	}
	_cleanup_pydecref_ PyObject *wrap = ps_region_tool(self->module, "wrap");
	return wrap ? PyObject_CallFunctionObjArgs(wrap, (PyObject *)self, function, NULL) : NULL;
}

static PyObject *Region_get_name(Region *self, void *unused)
{
	Py_INCREF(self->name);
	return self->name;
}

static PyObject *Region_repr(Region *self)
{
	return PyUnicode_FromFormat("region(%R)", self->name);
}

static PyMethodDef Region_methods[] = {
	{ "__enter__", (PyCFunction)Region_enter, METH_NOARGS, NULL },
	{ "__exit__", (PyCFunction)(void (*)(void))Region_exit, METH_FASTCALL, NULL },
	{ NULL },
};

static PyGetSetDef Region_getset[] = {
	{ "name", (getter)Region_get_name, NULL, DOC_Region_name, NULL },
	{ NULL },
};

static PyType_Slot Region_slots[] = {
	{ Py_tp_dealloc, Region_dealloc },
	{ Py_tp_traverse, Region_traverse },
	{ Py_tp_clear, Region_clear },
	{ Py_tp_call, Region_call },
	{ Py_tp_repr, Region_repr },
	{ Py_tp_methods, Region_methods },
	{ Py_tp_getset, Region_getset },
	{ Py_tp_doc, (void *)DOC_Region },
	{ 0, NULL },
};

PyType_Spec Region_spec = {
	.name = "perfscope.Region",
	.basicsize = sizeof(Region),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | PS_TYPE_NOT_CALLABLE | PS_TYPE_IMMUTABLE,
	.slots = Region_slots,
};

/** A new one of @name, kept under it. New reference. */
static PyObject *make_region(PyObject *module, PyObject *name)
{
	struct ps_module_state *state = ps_module_state(module);
	_cleanup_pydecref_ PyObject *bytes =
		PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape");
	char *text;
	if (!bytes || PyBytes_AsStringAndSize(bytes, &text, NULL) < 0)
		return NULL;
	struct ps_region *region = NULL;
	struct ps_error *error = ps_region_find(text, &region);
	if (error)
		return ps_raise_error(PyExc_ValueError, error);
	_cleanup_pydecref_ PyObject *object = state->region->tp_alloc(state->region, 0);
	if (!object)
		return NULL;
	Region *self = (Region *)object;
	Py_INCREF(module);
	self->module = module;
	Py_INCREF(name);
	self->name = name;
	self->region = region;
	if (PyDict_SetItem(state->regions, name, object) < 0)
		return NULL;
	return_ptr(object);
}

PyObject *ps_region_get(PyObject *module, PyObject *name)
{
	if (!PyUnicode_Check(name)) {
		PyErr_Format(PyExc_TypeError, "the name of a region is a str, not %.100s",
			     Py_TYPE(name)->tp_name);
		return NULL;
	}
	PyObject *region = PyDict_GetItemWithError(ps_module_state(module)->regions, name);
	if (!region)
		return PyErr_Occurred() ? NULL : make_region(module, name);
	Py_INCREF(region);
	return region;
}
