// SPDX-License-Identifier: MIT
#include <perfscope/docstrings.h>
#include <perfscope/nearest.h>
#include <perfscope/python_types.h>

const char *const ps_common_names[PS_NR_COMMON_SLOTS] = {
	[PS_SLOT_PID] = "_pid",
	[PS_SLOT_TID] = "_tid",
	[PS_SLOT_TIME] = "_time",
	[PS_SLOT_CPU] = "_cpu",
	[PS_SLOT_PERIOD] = "_period",
	[PS_SLOT_EVENT] = "_event",
	[PS_SLOT_REALTIME] = "_realtime",
	[PS_SLOT_COMM] = "_comm",
	[PS_SLOT_CALLCHAIN] = "_callchain",
	[PS_SLOT_COUNTERS] = "_counters",
	[PS_SLOT_RAW] = "_raw",
};

static void EventType_dealloc(EventType *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Py_XDECREF(self->free);
	ps_schema_unref(self->schema);
	free(self->key_slots);
	free(self->loaders);
	free(self->samples);
	Py_XDECREF(self->name);
	Py_XDECREF(self->by_dot);
	Py_XDECREF(self->by_key);
	Py_XDECREF(self->keys);
	Py_XDECREF(self->empty);
	Py_XDECREF(self->counters);
	Py_XDECREF(self->missing);
	Py_XDECREF(self->module);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyType_Slot EventType_slots[] = {
	{ Py_tp_dealloc, EventType_dealloc },
	{ 0, NULL },
};

// Not offered to scripts. It holds str, int and the module, never an event that is in use: no cycle.
PyType_Spec EventType_spec = {
	.name = "perfscope._EventType",
	.basicsize = sizeof(EventType),
	.flags = Py_TPFLAGS_DEFAULT | PS_TYPE_NOT_CALLABLE | PS_TYPE_IMMUTABLE,
	.slots = EventType_slots,
};

/** The slot of @name in @dict, or -1. */
static Py_ssize_t find_slot(PyObject *dict, PyObject *name)
{
	PyObject *slot = PyUnicode_Check(name) ? PyDict_GetItemWithError(dict, name) : NULL;
	if (slot)
		return PyLong_AsSsize_t(slot);
	PyErr_Clear(); // a str subclass whose __hash__ raised: not found
	return -1;
}

Py_ssize_t EventType_find_dot(EventType *type, PyObject *name)
{
	return find_slot(type->by_dot, name);
}

Py_ssize_t EventType_find_key(EventType *type, PyObject *name)
{
	return find_slot(type->by_key, name);
}

void EventType_raise_missing(EventType *type, PyObject *exception, PyObject *name)
{
	const char *wanted = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
	PyErr_Clear();
	_cleanup_free_ char *nearest_text = NULL;
	if (wanted) {
		struct ps_nearest nearest;
		ps_nearest_init(&nearest, wanted);
		for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->keys); i++) {
			const char *key = PyUnicode_AsUTF8(PyTuple_GET_ITEM(type->keys, i));
			if (key)
				ps_nearest_add(&nearest, key);
		}
		PyErr_Clear();
		nearest_text = ps_nearest_text(&nearest);
		ps_nearest_deinit(&nearest);
	}
	PyErr_Format(exception, "%U has no field %R%s", type->name, name,
		     nearest_text ? nearest_text : "");
}

/** dict[name] = slot, where @replace or @name is not there yet. */
static int add_name(PyObject *dict, PyObject *name, Py_ssize_t slot, bool replace)
{
	if (!replace && PyDict_Contains(dict, name))
		return PyErr_Occurred() ? -1 : 0;
	_cleanup_pydecref_ PyObject *number = PyLong_FromSsize_t(slot);
	return number ? PyDict_SetItem(dict, name, number) : -1;
}

static int is_keyword(PyObject *name)
{
	_cleanup_pydecref_ PyObject *module = PyImport_ImportModule("keyword");
	_cleanup_pydecref_ PyObject *answer =
		module ? PyObject_CallMethod(module, "iskeyword", "O", name) : NULL;
	return answer ? PyObject_IsTrue(answer) : -1;
}

/** By dot a method wins, and a keyword can be written with an underscore behind it. */
static int add_dot_name(EventType *self, PyTypeObject *event_class, PyObject *name, Py_ssize_t slot)
{
	if (PyObject_HasAttr((PyObject *)event_class, name))
		return 0;
	int keyword = is_keyword(name);
	if (keyword < 0 || add_name(self->by_dot, name, slot, false) < 0)
		return -1;
	if (!keyword)
		return 0;
	_cleanup_pydecref_ PyObject *spelled = PyUnicode_FromFormat("%U_", name);
	if (!spelled)
		return -1;
	PyUnicode_InternInPlace(&spelled);
	return add_name(self->by_dot, spelled, slot, false);
}

static PyObject *intern_text(const char *text)
{
	PyObject *name = ps_text_to_python(text, strlen(text));
	if (name)
		PyUnicode_InternInPlace(&name);
	return name;
}

/** Enter the common fields, then the event's own, which win by key. */
static int add_names(EventType *self, PyTypeObject *event_class)
{
	for (Py_ssize_t slot = 0; slot < PS_NR_COMMON_SLOTS; slot++) {
		_cleanup_pydecref_ PyObject *name = intern_text(ps_common_names[slot]);
		if (!name || add_name(self->by_key, name, slot, true) < 0 ||
		    add_name(self->by_dot, name, slot, true) < 0)
			return -1;
	}
	for (size_t i = 0; i < self->schema->nr_fields; i++) {
		Py_ssize_t slot = PS_NR_COMMON_SLOTS + i;
		_cleanup_pydecref_ PyObject *name = intern_text(self->schema->fields[i].name);
		if (!name || add_name(self->by_key, name, slot, true) < 0 ||
		    add_dot_name(self, event_class, name, slot) < 0)
			return -1;
	}
	return 0;
}

/** Enter the parts of the sample; a field of the event's own with the same name wins. */
static int add_sample_names(EventType *self)
{
	for (size_t i = 0; i < self->nr_samples; i++) {
		Py_ssize_t slot = PS_NR_COMMON_SLOTS + self->schema->nr_fields + i;
		_cleanup_pydecref_ PyObject *name = intern_text(self->samples[i]->name);
		if (!name || add_name(self->by_key, name, slot, false) < 0 ||
		    add_name(self->by_dot, name, slot, false) < 0)
			return -1;
	}
	return 0;
}

/** Which parts of the sample have names. */
static int choose_samples(EventType *self, const struct ps_source *source)
{
	uint64_t sample_type = self->layout.sample_type;
	// The session reads more for itself.
	if (!(source->attr.sample_type & PERF_SAMPLE_READ))
		sample_type &= ~(uint64_t)PERF_SAMPLE_READ;
	self->samples = calloc(ps_nr_sample_fields, sizeof(*self->samples));
	if (!self->samples) {
		PyErr_NoMemory();
		return -1;
	}
	for (size_t i = 0; i < ps_nr_sample_fields; i++) {
		if (ps_sample_has_field(sample_type, self->schema->nr_fields, &ps_sample_fields[i]))
			self->samples[self->nr_samples++] = &ps_sample_fields[i];
	}
	return 0;
}

/** keys(), the slot of each, and the dict that to_dict copies. */
static int list_keys(EventType *self)
{
	self->keys = PySequence_Tuple(self->by_key);
	self->empty = PyDict_New();
	if (!self->keys || !self->empty)
		return -1;
	Py_ssize_t nr = PyTuple_GET_SIZE(self->keys);
	self->key_slots = calloc(nr, sizeof(*self->key_slots));
	if (!self->key_slots) {
		PyErr_NoMemory();
		return -1;
	}
	for (Py_ssize_t i = 0; i < nr; i++) {
		PyObject *name = PyTuple_GET_ITEM(self->keys, i);
		self->key_slots[i] = EventType_find_key(self, name);
		// What is the same for every event of the type stands there already.
		bool is_name = self->key_slots[i] == PS_SLOT_EVENT;
		if (PyDict_SetItem(self->empty, name, is_name ? self->name : Py_None) < 0)
			return -1;
	}
	return 0;
}

/** `_read` is `read`: a second name, which keys() does not list. */
static int add_read_alias(EventType *self)
{
	_cleanup_pydecref_ PyObject *name = intern_text("read");
	_cleanup_pydecref_ PyObject *alias = intern_text("_read");
	if (!name || !alias)
		return -1;
	Py_ssize_t slot = EventType_find_key(self, name);
	if (slot < (Py_ssize_t)(PS_NR_COMMON_SLOTS + self->schema->nr_fields))
		return 0; // not there, or a field of the event's own
	return add_name(self->by_key, alias, slot, false) < 0
		       ? -1
		       : add_name(self->by_dot, alias, slot, false);
}

/** Enter @name into the pointer table where there is room for it. */
static void add_attribute(EventType *self, PyObject *name, Py_ssize_t slot)
{
	struct ps_attribute *places = EventType_places(self, name);
	for (int i = 0; i < PS_NR_PROBES; i++) {
		if (!places[i].name) {
			places[i] = (struct ps_attribute){ name, slot };
			return;
		}
	}
}

static void fill_attributes(EventType *self, PyTypeObject *event_class)
{
	PyObject *name, *slot;
	Py_ssize_t position = 0;
	while (PyDict_Next(self->by_dot, &position, &name, &slot))
		add_attribute(self, name, PyLong_AsSsize_t(slot));
	// The class lives as long as the module, which this type owns.
	position = 0;
	while (PyDict_Next(event_class->tp_dict, &position, &name, &slot))
		add_attribute(self, name, -1);
}

static struct ps_loader make_loader(uint32_t offset, uint32_t size, bool is_signed)
{
	return (struct ps_loader){
		.is_int = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
		.is_signed = is_signed,
		.shift = 64 - 8 * size,
		.offset = offset,
		.end = offset + size,
	};
}

/** The common fields that are plain integers in the record. */
static void make_common_loaders(EventType *self)
{
	const struct ps_sample_layout *layout = &self->layout;
	self->loaders[PS_SLOT_PID] = make_loader(layout->tid, 4, true);
	self->loaders[PS_SLOT_TID] = make_loader(layout->tid + 4, 4, true);
	self->loaders[PS_SLOT_CPU] = make_loader(layout->cpu, 4, false);
	if (layout->period)
		self->loaders[PS_SLOT_PERIOD] = make_loader(layout->period, 8, false);
	if (!self->time_view.is_tsc && !self->time_view.offset_ns)
		self->loaders[PS_SLOT_TIME] = make_loader(layout->time, 8, false);
}

/** The loader of a field of the raw data. */
static struct ps_loader make_field_loader(const struct ps_field *field)
{
	if (field->kind != PS_FIELD_INT || field->place != PS_PLACE_FIXED ||
	    field->element_size > field->size || field->is_swapped)
		return (struct ps_loader){ .is_int = false };
	struct ps_loader loader = make_loader(field->offset, field->element_size, field->is_signed);
	loader.is_in_raw = true;
	loader.end = field->offset + field->size;
	return loader;
}

/** The loader of a part of the sample; those of fixed place are integers. */
static struct ps_loader make_sample_loader(const struct ps_sample_layout *layout,
					   const struct ps_sample_field *field)
{
	if (field->layout_member == PS_SAMPLE_NO_MEMBER)
		return (struct ps_loader){ .is_int = false };
	uint16_t offset;
	memcpy(&offset, (const char *)layout + field->layout_member, sizeof(offset));
	return make_loader(offset + field->delta, field->kind == PS_SAMPLE_U64 ? 8 : 4,
			   field->kind == PS_SAMPLE_S32);
}

static int make_loaders(EventType *self)
{
	self->loaders = calloc(self->nr_slots, sizeof(*self->loaders));
	if (!self->loaders) {
		PyErr_NoMemory();
		return -1;
	}
	make_common_loaders(self);
	for (size_t i = 0; i < self->nr_samples; i++)
		self->loaders[PS_NR_COMMON_SLOTS + self->schema->nr_fields + i] =
			make_sample_loader(&self->layout, self->samples[i]);
	for (size_t i = 0; i < self->schema->nr_fields; i++)
		self->loaders[PS_NR_COMMON_SLOTS + i] = make_field_loader(&self->schema->fields[i]);
	return 0;
}

/** counters[id] = label for the streams of @source's group, missing[label] = None for those not there. */
int ps_event_type_name_counters(PyObject *event_type, const struct ps_session *session,
				const struct ps_source *source)
{
	EventType *self = (EventType *)event_type;
	if (!source->group)
		return 0;
	// Ids that were known stay: events of theirs may be kept.
	if (!self->counters)
		self->counters = PyDict_New();
	if (!self->missing)
		self->missing = PyDict_New();
	if (!self->counters || !self->missing)
		return -1;
	for (size_t i = 0; i < session->sources->nr_sources; i++) {
		const struct ps_source *member = session->sources->sources[i];
		if (member->group == source->group && member->is_missing &&
		    PyDict_SetItemString(self->missing, member->label, Py_None) < 0)
			return -1;
	}
	for (size_t i = 0; i < session->nr_streams; i++) {
		const struct ps_stream *stream = &session->streams[i];
		if (!stream->source || stream->source->group != source->group || !stream->id)
			continue;
		_cleanup_pydecref_ PyObject *id = PyLong_FromUnsignedLongLong(stream->id);
		_cleanup_pydecref_ PyObject *label = intern_text(stream->source->label);
		if (!id || !label || PyDict_SetItem(self->counters, id, label) < 0)
			return -1;
	}
	return 0;
}

/** The layout that the session opened @source with; a missing one has that of its attr. */
static void copy_layout(EventType *self, const struct ps_session *session,
			const struct ps_source *source)
{
	for (size_t i = 0; i < session->nr_streams; i++) {
		if (session->streams[i].source == source) {
			self->layout = session->streams[i].layout;
			return;
		}
	}
	ps_sample_layout_init(&self->layout, &source->attr);
}

PyObject *ps_event_type_create(PyObject *module, const struct ps_session *session,
			       const struct ps_source *source)
{
	struct ps_module_state *state = ps_module_state(module);
	_cleanup_pydecref_ PyObject *object = state->event_type->tp_alloc(state->event_type, 0);
	if (!object)
		return NULL;
	EventType *self = (EventType *)object;
	Py_INCREF(module);
	self->module = module;
	self->schema = ps_schema_ref(source->schema);
	self->arch = ps_machine_or_this(session->machine)->arch;
	self->time_view = session->clock.view;
	self->period = source->attr.sample_period;
	self->is_unwound = source->attr.exclude_callchain_user &&
			   source->attr.sample_type & PERF_SAMPLE_STACK_USER;
	self->has_branch_calls = source->attr.sample_type & PERF_SAMPLE_BRANCH_STACK &&
				 source->attr.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK;
	self->has_no_user_stack = source->attr.exclude_callchain_user;
	self->has_no_kernel_stack = source->attr.exclude_callchain_kernel;
	self->realtime_offset_ns = session->clock.realtime_offset_ns;
	copy_layout(self, session, source);
	if (choose_samples(self, source) < 0)
		return NULL;
	self->nr_slots = PS_NR_COMMON_SLOTS + self->schema->nr_fields + self->nr_samples;
	self->name = intern_text(source->name);
	self->by_dot = PyDict_New();
	self->by_key = PyDict_New();
	if (!self->name || !self->by_dot || !self->by_key)
		return NULL;
	if (add_names(self, state->perf_event) < 0 || add_sample_names(self) < 0 ||
	    list_keys(self) < 0 || add_read_alias(self) < 0 || make_loaders(self) < 0 ||
	    ps_event_type_name_counters(object, session, source) < 0)
		return NULL;
	fill_attributes(self, state->perf_event);
	return_ptr(object);
}

void ps_event_type_set_realtime_offset(PyObject *event_type, int64_t offset_ns)
{
	((EventType *)event_type)->realtime_offset_ns = offset_ns;
}
