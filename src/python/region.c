// SPDX-License-Identifier: MIT
/** region(): a named stretch of execution as context manager and decorator. */
#include "region.h"

#include <perfscope/docstrings.h>
#include <structmember.h>

static int Region_traverse(Region *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	Py_VISIT(self->module);
	Py_VISIT(self->enter);
	Py_VISIT(self->exit);
	return 0;
}

static int Region_clear(Region *self)
{
	self->state = NULL;
	Py_CLEAR(self->module);
	Py_CLEAR(self->enter);
	Py_CLEAR(self->exit);
	return 0;
}

static void Region_dealloc(Region *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyObject_GC_UnTrack(self);
	Region_clear(self);
	Py_XDECREF(self->name);
	Py_XDECREF(self->plain);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyObject *Region_enter(Region *self, PyObject *unused)
{
	Py_INCREF(self); // nothing is left to do when the pass has begun
	if (!ps_regions_are_active() || !self->state || region_enter(self) == 0)
		return (PyObject *)self;
	Py_DECREF(self);
	return NULL;
}

static PyObject *Region_exit(Region *self, PyObject *const *args, Py_ssize_t nr)
{
	if (ps_regions_are_active() && self->state)
		region_leave(self);
	Py_RETURN_NONE;
}

static PyObject *Region_call(Region *self, PyObject *args, PyObject *kwargs)
{
	PyObject *function;
	if (!PyArg_UnpackTuple(args, "region", 1, 1, &function))
		return NULL;
	if (kwargs && PyDict_GET_SIZE(kwargs)) {
		PyErr_SetString(PyExc_TypeError, "region(name) decorates one function");
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

/*
 * What `with` finds under __enter__ and __exit__. Asked of a region, it is the method bound to it, which the region keeps:
 * to make and drop both for each pass would cost a tenth of what Python does for it.
 */

typedef struct {
	PyObject_HEAD
	PyObject *method;  // as all types have them, owned
	PyTypeObject *of;  // Region, borrowed from @method
	Py_ssize_t offset; // in a Region, where the bound one is kept
} KeptMethod;

static int KeptMethod_traverse(KeptMethod *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	Py_VISIT(self->method);
	return 0;
}

static int KeptMethod_clear(KeptMethod *self)
{
	Py_CLEAR(self->method);
	return 0;
}

static void KeptMethod_dealloc(KeptMethod *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyObject_GC_UnTrack(self);
	KeptMethod_clear(self);
	type->tp_free(self);
	Py_DECREF(type);
}

/** As method descriptors do it, which checks what @object is. */
static PyObject *bind(const KeptMethod *self, PyObject *object, PyObject *type)
{
	if (self->method)
		return Py_TYPE(self->method)->tp_descr_get(self->method, object, type);
	PyErr_SetString(PyExc_RuntimeError, "perfscope is being taken down");
	return NULL;
}

static PyObject *KeptMethod_get(KeptMethod *self, PyObject *object, PyObject *type)
{
	if (PS_UNLIKELY(!object || Py_TYPE(object) != self->of || !((Region *)object)->state))
		return bind(self, object, type);
	PyObject **kept = (PyObject **)((char *)object + self->offset);
	if (PS_UNLIKELY(!*kept))
		*kept = bind(self, object, type);
	Py_XINCREF(*kept);
	return *kept;
}

static PyType_Slot KeptMethod_slots[] = {
	{ Py_tp_dealloc, KeptMethod_dealloc },
	{ Py_tp_traverse, KeptMethod_traverse },
	{ Py_tp_clear, KeptMethod_clear },
	{ Py_tp_descr_get, KeptMethod_get },
	{ 0, NULL },
};

PyType_Spec KeptMethod_spec = {
	.name = "perfscope.KeptMethod",
	.basicsize = sizeof(KeptMethod),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | PS_TYPE_NOT_CALLABLE | PS_TYPE_IMMUTABLE,
	.slots = KeptMethod_slots,
};

static int keep_method(struct ps_module_state *state, const char *name, Py_ssize_t offset)
{
	PyObject *dict = state->region->tp_dict;
	PyObject *method = PyDict_GetItemString(dict, name); // borrowed
	_cleanup_pydecref_ PyObject *object =
		method ? state->kept_method->tp_alloc(state->kept_method, 0) : NULL;
	if (!object)
		return -1;
	KeptMethod *kept = (KeptMethod *)object;
	Py_INCREF(method);
	kept->method = method;
	kept->of = state->region;
	kept->offset = offset;
	return PyDict_SetItemString(dict, name, object);
}

int ps_region_keep_methods(struct ps_module_state *state)
{
	if (keep_method(state, "__enter__", offsetof(Region, enter)) < 0 ||
	    keep_method(state, "__exit__", offsetof(Region, exit)) < 0)
		return -1;
	PyType_Modified(state->region);
	return 0;
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
	self->state = state;
	Py_INCREF(name);
	self->name = name;
	self->region = region;
	if (PyDict_SetItem(state->regions, name, object) < 0)
		return NULL;
	return_ptr(object);
}

/** The same as ps_region_get(), where @name is not at hand. */
static PyObject *look_up(PyObject *module, PyObject *name, Region **quick)
{
	if (!PyUnicode_Check(name)) {
		PyErr_Format(PyExc_TypeError, "the name of a region is a str, not %.100s",
			     Py_TYPE(name)->tp_name);
		return NULL;
	}
	PyObject *regions = ps_module_state(module)->regions;
	if (!regions) {
		PyErr_SetString(PyExc_RuntimeError, "perfscope is being taken down");
		return NULL;
	}
	PyObject *region = PyDict_GetItemWithError(regions, name);
	if (region)
		Py_INCREF(region);
	else
		region = PyErr_Occurred() ? NULL : make_region(module, name);
	if (region && ((Region *)region)->name == name)
		*quick = (Region *)region;
	return region;
}

PyObject *ps_region_get(PyObject *module, PyObject *name)
{
	Region **quick = (Region **)&ps_module_state(module)
				 ->quick_regions[((uintptr_t)name >> 4) % PS_NR_QUICK_REGIONS];
	// Where it is the same object, it is the same text.
	if (PS_UNLIKELY(!*quick || (*quick)->name != name))
		return look_up(module, name, quick);
	Py_INCREF(*quick);
	return (PyObject *)*quick;
}
