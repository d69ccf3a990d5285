// SPDX-License-Identifier: MIT
#include <perfscope/docstrings.h>
#include <perfscope/python_types.h>

static PerfEvent *PerfEvent_alloc(EventType *type)
{
	PyTypeObject *class = ps_module_state(type->module)->perf_event;
	PerfEvent *self = PyObject_NewVar(PerfEvent, class, type->nr_slots);
	if (!self)
		return NULL;
	self->is_owner = false;
	self->loaded = 0;
	memset(self->slots, 0, type->nr_slots * sizeof(self->slots[0]));
	return self;
}

PyObject *ps_event_wrap(PyObject *event_type, const struct ps_record *record)
{
	EventType *type = (EventType *)event_type;
	PerfEvent *self = type->free;
	if (PS_LIKELY(self != NULL))
		type->free = NULL;
	else if (!(self = PerfEvent_alloc(type)))
		return NULL;
	Py_INCREF(type);
	self->type = type;
	self->header = record->header;
	return (PyObject *)self;
}

#define LAST_BIT 63

static void drop_slots(PerfEvent *self)
{
	while (self->loaded) {
		int slot = __builtin_ctzll(self->loaded);
		self->loaded &= self->loaded - 1;
		Py_ssize_t end = slot < LAST_BIT ? slot + 1 : Py_SIZE(self);
		for (Py_ssize_t i = slot; i < end; i++)
			Py_CLEAR(self->slots[i]);
	}
}

/** Copy the record, which goes back to the ring; what is known only now is read now. */
static void PerfEvent_detach(PerfEvent *self)
{
	PyObject *type, *value, *traceback; // the handler's exception, if it raised
	PyErr_Fetch(&type, &value, &traceback);
	_cleanup_pydecref_ PyObject *comm = PerfEvent_load(self, PS_SLOT_COMM);
	_cleanup_pydecref_ PyObject *realtime = PerfEvent_load(self, PS_SLOT_REALTIME);
	_cleanup_pydecref_ PyObject *stack = PerfEvent_load(self, PS_SLOT_CALLCHAIN);
	PyErr_Restore(type, value, traceback);
	size_t size = self->header->size;
	void *copy = malloc(size);
	if (copy)
		memcpy(copy, self->header, size);
	self->header = copy; // NULL: expired
	self->is_owner = copy != NULL;
}

void ps_event_release(PyObject *event)
{
	PerfEvent *self = (PerfEvent *)event;
	EventType *type = self->type;
	if (PS_UNLIKELY(Py_REFCNT(self) > 1)) {
		PerfEvent_detach(self);
		Py_DECREF(self);
		return;
	}
	if (PS_UNLIKELY(type->free != NULL)) {
		Py_DECREF(self);
		return;
	}
	if (self->loaded)
		drop_slots(self);
	self->type = NULL;
	type->free = self;
	Py_DECREF(type);
}

static void PerfEvent_dealloc(PerfEvent *self)
{
	PyTypeObject *class = Py_TYPE(self);
	drop_slots(self);
	if (self->is_owner)
		free((void *)self->header);
	Py_XDECREF(self->type);
	PyObject_Free(self);
	Py_DECREF(class);
}

/**
 * The integer of @loader. NULL, without an exception: it is to be decoded the long way.
 *
 * Of a little-endian integer of any size the 8 bytes from its start are read, and what is too much is shifted out:
 * one way for all, where there are as many left in the record.
 */
static inline PyObject *load_int(const PerfEvent *self, const struct ps_loader *loader)
{
	struct ps_bytes bytes = { (const uint8_t *)self->header, self->header->size };
	struct ps_bytes record = bytes;
	uint64_t word;
	if (loader->is_in_raw && !ps_sample_raw(&self->type->layout, self->header, &bytes))
		return NULL;
	const uint8_t *data = bytes.data + loader->offset;
	if (PS_UNLIKELY(loader->end > bytes.size ||
			record.data + record.size - data < (ptrdiff_t)sizeof(word)))
		return NULL;
	memcpy(&word, data, sizeof(word));
	word <<= loader->shift;
	return loader->is_signed ? ps_int_to_python((int64_t)word >> loader->shift)
				 : ps_unsigned_to_python(word >> loader->shift);
}

static PyObject *decode_field(PerfEvent *self, size_t index)
{
	const struct ps_field *field = &self->type->schema->fields[index];
	struct ps_bytes raw;
	struct ps_value value;
	if (PerfEvent_find_raw(self, &raw) && ps_field_decode(field, raw, &value))
		return ps_value_to_python(&value);
	PyErr_Format(ps_module_state(self->type->module)->decode_error,
		     "%U: field %s (%s at offset %u) lies outside its record", self->type->name,
		     field->name, field->type_name, (unsigned int)field->offset);
	return NULL;
}

static __attribute__((noinline)) PyObject *decode_slot(PerfEvent *self, Py_ssize_t slot)
{
	if (slot < PS_NR_COMMON_SLOTS)
		return PerfEvent_decode_common(self, (enum ps_common_slot)slot);
	size_t index = slot - PS_NR_COMMON_SLOTS, nr_fields = self->type->schema->nr_fields;
	return index < nr_fields
		       ? decode_field(self, index)
		       : PerfEvent_decode_sample(self, self->type->samples[index - nr_fields]);
}

/** Decode what stands in @slot. New reference. */
static inline __attribute__((always_inline)) PyObject *PerfEvent_decode(PerfEvent *self,
									Py_ssize_t slot)
{
	if (PS_UNLIKELY(!self->header)) {
		PyErr_SetString(ps_module_state(self->type->module)->perf_event_error,
				"the event has expired: there was no memory to keep it");
		return NULL;
	}
	const struct ps_loader *loader = &self->type->loaders[slot];
	if (!loader->is_int)
		return decode_slot(self, slot);
	PyObject *value = load_int(self, loader);
	if (PS_UNLIKELY(!value && !PyErr_Occurred()))
		return decode_slot(self, slot);
	return value;
}

PyObject *PerfEvent_load(PerfEvent *self, Py_ssize_t slot)
{
	PyObject *value = self->slots[slot];
	if (!value) {
		value = PerfEvent_decode(self, slot);
		if (PS_UNLIKELY(!value))
			return NULL;
		// Decoding can run Python code, which may have read the same field.
		if (PS_UNLIKELY(self->slots[slot] != NULL))
			Py_DECREF(self->slots[slot]);
		self->slots[slot] = value;
		self->loaded |= 1ULL << (slot < LAST_BIT ? slot : LAST_BIT);
	}
	Py_INCREF(value);
	return value;
}

/** The value in @slot for one that takes all: kept only where it was before. New reference. */
static PyObject *PerfEvent_peek(PerfEvent *self, Py_ssize_t slot)
{
	PyObject *value = self->slots[slot];
	if (!value)
		return PerfEvent_decode(self, slot);
	Py_INCREF(value);
	return value;
}

static PyObject *get_by_generic(PerfEvent *self, PyObject *name)
{
	PyObject *value = PyObject_GenericGetAttr((PyObject *)self, name);
	if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) {
		PyErr_Clear();
		EventType_raise_missing(self->type, PyExc_AttributeError, name);
	}
	return value;
}

static PyObject *PerfEvent_getattro(PerfEvent *self, PyObject *name)
{
	const struct ps_attribute *entry = EventType_find_attribute(self->type, name);
	Py_ssize_t slot =
		PS_LIKELY(entry != NULL) ? entry->slot : EventType_find_dot(self->type, name);
	return slot >= 0 ? PerfEvent_load(self, slot) : get_by_generic(self, name);
}

static int PerfEvent_setattro(PerfEvent *self, PyObject *name, PyObject *value)
{
	PyErr_Format(PyExc_AttributeError, "%U: an event's fields cannot be %s (%R)",
		     self->type->name, value ? "set" : "deleted", name);
	return -1;
}

static PyObject *PerfEvent_subscript(PerfEvent *self, PyObject *name)
{
	Py_ssize_t slot = EventType_find_key(self->type, name);
	if (slot >= 0)
		return PerfEvent_load(self, slot);
	EventType_raise_missing(self->type, PyExc_KeyError, name);
	return NULL;
}

static Py_ssize_t PerfEvent_length(PerfEvent *self)
{
	return PyTuple_GET_SIZE(self->type->keys);
}

static int PerfEvent_contains(PerfEvent *self, PyObject *name)
{
	return EventType_find_key(self->type, name) >= 0;
}

static PyObject *PerfEvent_get(PerfEvent *self, PyObject *const *args, Py_ssize_t nargs)
{
	if (nargs < 1 || nargs > 2)
		return PyErr_Format(PyExc_TypeError,
				    "get() takes a name and a default, not %zd arguments", nargs);
	Py_ssize_t slot = EventType_find_key(self->type, args[0]);
	if (slot >= 0)
		return PerfEvent_load(self, slot);
	PyObject *value = nargs == 2 ? args[1] : Py_None;
	Py_INCREF(value);
	return value;
}

static PyObject *PerfEvent_keys(PerfEvent *self, PyObject *unused)
{
	Py_INCREF(self->type->keys);
	return self->type->keys;
}

static PyObject *PerfEvent_values(PerfEvent *self, PyObject *unused)
{
	Py_ssize_t nr = PerfEvent_length(self);
	_cleanup_pydecref_ PyObject *list = PyList_New(nr);
	for (Py_ssize_t i = 0; list && i < nr; i++) {
		PyObject *value = PerfEvent_peek(self, self->type->key_slots[i]);
		if (!value)
			return NULL;
		PyList_SET_ITEM(list, i, value);
	}
	return_ptr(list);
}

static PyObject *PerfEvent_items(PerfEvent *self, PyObject *unused)
{
	Py_ssize_t nr = PerfEvent_length(self);
	_cleanup_pydecref_ PyObject *list = PyList_New(nr);
	for (Py_ssize_t i = 0; list && i < nr; i++) {
		_cleanup_pydecref_ PyObject *value = PerfEvent_peek(self, self->type->key_slots[i]);
		if (!value)
			return NULL;
		PyObject *pair = PyTuple_Pack(2, PyTuple_GET_ITEM(self->type->keys, i), value);
		if (!pair)
			return NULL;
		PyList_SET_ITEM(list, i, pair);
	}
	return_ptr(list);
}

static PyObject *PerfEvent_to_dict(PerfEvent *self, PyObject *unused)
{
	// A copy of a dict with all keys has its final size from the start.
	_cleanup_pydecref_ PyObject *dict = PyDict_Copy(self->type->empty);
	Py_ssize_t nr = PerfEvent_length(self);
	for (Py_ssize_t i = 0; dict && i < nr; i++) {
		if (self->type->key_slots[i] == PS_SLOT_EVENT)
			continue;
		_cleanup_pydecref_ PyObject *value = PerfEvent_peek(self, self->type->key_slots[i]);
		if (!value ||
		    PyDict_SetItem(dict, PyTuple_GET_ITEM(self->type->keys, i), value) < 0)
			return NULL;
	}
	return_ptr(dict);
}

static PyObject *PerfEvent_iter(PerfEvent *self)
{
	_cleanup_pydecref_ PyObject *items = PerfEvent_items(self, NULL);
	return items ? PyObject_GetIter(items) : NULL;
}

static PyObject *PerfEvent_dir(PerfEvent *self, PyObject *unused)
{
	_cleanup_pydecref_ PyObject *names =
		PyObject_CallMethod((PyObject *)&PyBaseObject_Type, "__dir__", "O", self);
	_cleanup_pydecref_ PyObject *fields = names ? PySequence_List(self->type->by_dot) : NULL;
	return fields ? PySequence_InPlaceConcat(names, fields) : NULL;
}

static PyObject *PerfEvent_repr(PerfEvent *self)
{
	_cleanup_pydecref_ PyObject *cpu = PerfEvent_load(self, PS_SLOT_CPU);
	_cleanup_pydecref_ PyObject *pid = cpu ? PerfEvent_load(self, PS_SLOT_PID) : NULL;
	_cleanup_pydecref_ PyObject *time = pid ? PerfEvent_load(self, PS_SLOT_TIME) : NULL;
	if (!time)
		return NULL;
	return PyUnicode_FromFormat("<PerfEvent %U cpu=%S pid=%S time=%S>", self->type->name, cpu,
				    pid, time);
}

static PyObject *PerfEvent_str(PerfEvent *self)
{
	return PerfEvent_line(self, true);
}

static PyObject *PerfEvent_print(PerfEvent *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "timestamp", "callchain", NULL };
	int timestamp = true, callchain = true;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pp:print", names, &timestamp, &callchain))
		return NULL;
	_cleanup_pydecref_ PyObject *line = PerfEvent_line(self, timestamp);
	if (!line)
		return NULL;
	PyObject *file = PySys_GetObject("stdout"); // borrowed
	if (!file || file == Py_None)
		Py_RETURN_NONE;
	_cleanup_pydecref_ PyObject *stack =
		callchain ? PerfEvent_stack_lines(self) : PyUnicode_FromString("");
	if (!stack)
		return NULL;
	_cleanup_pydecref_ PyObject *text = PyUnicode_FromFormat("%U\n%U", line, stack);
	if (!text || PyFile_WriteObject(text, file, Py_PRINT_RAW) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static bool is_own_field(const PerfEvent *self, Py_ssize_t slot)
{
	return slot >= PS_NR_COMMON_SLOTS &&
	       (size_t)slot < PS_NR_COMMON_SLOTS + self->type->schema->nr_fields;
}

/** What the event's own field or part of the sample in @slot says in words; the caller frees it; NULL: nothing. */
static char *symbolic_text(PerfEvent *self, Py_ssize_t slot)
{
	const struct ps_schema *schema = self->type->schema;
	struct ps_bytes raw;
	if (is_own_field(self, slot))
		return schema->format && PerfEvent_find_raw(self, &raw)
			       ? ps_format_symbolic(schema->format,
						    schema->fields[slot - PS_NR_COMMON_SLOTS].name,
						    raw)
			       : NULL;
	if (slot < PS_NR_COMMON_SLOTS)
		return NULL;
	_cleanup_free_ char *text = NULL;
	size_t size, index = slot - PS_NR_COMMON_SLOTS - schema->nr_fields;
	FILE *stream = open_memstream(&text, &size);
	bool is_written =
		stream && PerfEvent_write_sample(self, self->type->samples[index], stream);
	if (stream && fclose(stream))
		is_written = false;
	return is_written ? take_ptr(text) : NULL;
}

static PyObject *PerfEvent_symbolic(PerfEvent *self, PyObject *name)
{
	Py_ssize_t slot = EventType_find_key(self->type, name);
	if (slot < 0) {
		EventType_raise_missing(self->type, PyExc_KeyError, name);
		return NULL;
	}
	// The value first: it raises where the field lies outside its record.
	_cleanup_pydecref_ PyObject *value = PerfEvent_load(self, slot);
	if (!value)
		return NULL;
	_cleanup_free_ char *text = symbolic_text(self, slot);
	return text ? ps_text_to_python(text, strlen(text)) : PyObject_Str(value);
}

static PyObject *PerfEvent_richcompare(PyObject *left, PyObject *right, int op)
{
	if ((op != Py_EQ && op != Py_NE) || !Py_IS_TYPE(right, Py_TYPE(left)))
		Py_RETURN_NOTIMPLEMENTED;
	const PerfEvent *a = (PerfEvent *)left, *b = (PerfEvent *)right;
	bool is_equal = a == b;
	if (!is_equal && a->header && b->header)
		is_equal = a->header->size == b->header->size &&
			   !memcmp(a->header, b->header, a->header->size);
	return PyBool_FromLong(is_equal == (op == Py_EQ));
}

static Py_hash_t PerfEvent_hash(PerfEvent *self)
{
	if (!self->header)
		return (Py_hash_t)((uintptr_t)self >> 4);
	_cleanup_pydecref_ PyObject *bytes =
		PyBytes_FromStringAndSize((const char *)self->header, self->header->size);
	return bytes ? PyObject_Hash(bytes) : -1;
}

static PyMethodDef PerfEvent_methods[] = {
	{ "symbolic", (PyCFunction)PerfEvent_symbolic, METH_O, DOC_PerfEvent_symbolic },
	{ "print", (PyCFunction)(void (*)(void))PerfEvent_print, METH_VARARGS | METH_KEYWORDS,
	  DOC_PerfEvent_print },
	{ "get", (PyCFunction)(void (*)(void))PerfEvent_get, METH_FASTCALL, DOC_PerfEvent_get },
	{ "keys", (PyCFunction)PerfEvent_keys, METH_NOARGS, DOC_PerfEvent_keys },
	{ "values", (PyCFunction)PerfEvent_values, METH_NOARGS, DOC_PerfEvent_values },
	{ "items", (PyCFunction)PerfEvent_items, METH_NOARGS, DOC_PerfEvent_items },
	{ "to_dict", (PyCFunction)PerfEvent_to_dict, METH_NOARGS, DOC_PerfEvent_to_dict },
	{ "__dir__", (PyCFunction)PerfEvent_dir, METH_NOARGS, NULL },
	{ NULL },
};

static PyType_Slot PerfEvent_slots[] = {
	{ Py_tp_dealloc, PerfEvent_dealloc },
	{ Py_tp_getattro, PerfEvent_getattro },
	{ Py_tp_setattro, PerfEvent_setattro },
	{ Py_tp_repr, PerfEvent_repr },
	{ Py_tp_str, PerfEvent_str },
	{ Py_tp_hash, PerfEvent_hash },
	{ Py_tp_richcompare, PerfEvent_richcompare },
	{ Py_tp_iter, PerfEvent_iter },
	{ Py_tp_methods, PerfEvent_methods },
	{ Py_mp_subscript, PerfEvent_subscript },
	{ Py_mp_length, PerfEvent_length },
	{ Py_sq_contains, PerfEvent_contains },
	{ Py_tp_doc, (void *)DOC_PerfEvent },
	{ 0, NULL },
};

PyType_Spec PerfEvent_spec = {
	.name = "perfscope.PerfEvent",
	.basicsize = offsetof(PerfEvent, slots),
	.itemsize = sizeof(PyObject *),
	// Slots hold int, str, bytes, tuples of them and dicts and lists made of such by us: a cycle would need a
	// script that puts an event into its own _counters or _callchain.
	.flags = Py_TPFLAGS_DEFAULT | PS_TYPE_NOT_CALLABLE | PS_TYPE_IMMUTABLE,
	.slots = PerfEvent_slots,
};
