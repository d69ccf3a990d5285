// SPDX-License-Identifier: MIT
/** The parts of a sample as Python values. Layouts: linux/perf_event.h, comment at PERF_RECORD_SAMPLE. */
#include <perfscope/python_types.h>
#include <perfscope/sample_text.h>

/** dict[name] = value, which is taken over; false with an exception set. */
static bool set_steal(PyObject *dict, const char *name, PyObject *value)
{
	_cleanup_pydecref_ PyObject *owned = value;
	return owned && PyDict_SetItemString(dict, name, owned) == 0;
}

static bool set_u64(PyObject *dict, const char *name, struct ps_bytes bytes, size_t *at)
{
	uint64_t value = 0;
	ps_bytes_u64(bytes, *at, &value);
	*at += sizeof(value);
	return set_steal(dict, name, ps_unsigned_to_python(value));
}

static PyObject *make_number(const struct ps_sample_field *field, struct ps_bytes bytes,
			     bool *is_cut)
{
	uint64_t number;
	uint32_t word;
	if (field->kind == PS_SAMPLE_U64 ? !ps_bytes_u64(bytes, 0, &number)
					 : !ps_bytes_u32(bytes, 0, &word)) {
		*is_cut = true;
		return NULL;
	}
	if (field->kind == PS_SAMPLE_U64)
		return ps_unsigned_to_python(number);
	return ps_int_to_python(field->kind == PS_SAMPLE_S32 ? (int64_t)(int32_t)word : word);
}

static PyObject *make_addresses(struct ps_bytes bytes)
{
	uint64_t nr = 0;
	ps_bytes_u64(bytes, 0, &nr);
	_cleanup_pydecref_ PyObject *tuple = PyTuple_New(nr);
	for (uint64_t i = 0; tuple && i < nr; i++) {
		uint64_t address = 0;
		ps_bytes_u64(bytes, 8 + 8 * i, &address);
		PyObject *number = ps_unsigned_to_python(address);
		if (!number)
			return NULL;
		PyTuple_SET_ITEM(tuple, i, number);
	}
	return_ptr(tuple);
}

/** The bytes behind a size of @width bytes, of which the last @width tell how many are filled where @is_stack. */
static PyObject *make_bytes(struct ps_bytes bytes, size_t width, bool is_stack)
{
	uint64_t size = 0, filled;
	uint32_t short_size;
	if (width == sizeof(short_size)) {
		if (ps_bytes_u32(bytes, 0, &short_size))
			size = short_size;
	} else {
		ps_bytes_u64(bytes, 0, &size);
	}
	if (is_stack && size && ps_bytes_u64(bytes, width + size, &filled) && filled < size)
		size = filled;
	struct ps_bytes data = { bytes.data, 0 };
	ps_bytes_slice(bytes, width, size, &data);
	return PyBytes_FromStringAndSize((const char *)data.data, data.size);
}

/** One counter of a group: {'value', 'id', 'lost', 'name'}. */
static PyObject *make_group_member(EventType *type, struct ps_bytes bytes, size_t *at)
{
	_cleanup_pydecref_ PyObject *dict = PyDict_New();
	if (!dict || !set_u64(dict, "value", bytes, at))
		return NULL;
	if (type->layout.read_format & PERF_FORMAT_ID && !set_u64(dict, "id", bytes, at))
		return NULL;
	if (type->layout.read_format & PERF_FORMAT_LOST && !set_u64(dict, "lost", bytes, at))
		return NULL;
	PyObject *id = PyDict_GetItemString(dict, "id"); // borrowed
	PyObject *name = id && type->counters ? PyDict_GetItemWithError(type->counters, id) : NULL;
	if (PyErr_Occurred() || PyDict_SetItemString(dict, "name", name ? name : Py_None) < 0)
		return NULL;
	return_ptr(dict);
}

static bool set_times(EventType *type, PyObject *dict, struct ps_bytes bytes, size_t *at)
{
	uint64_t format = type->layout.read_format;
	return (!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) ||
		set_u64(dict, "time_enabled", bytes, at)) &&
	       (!(format & PERF_FORMAT_TOTAL_TIME_RUNNING) ||
		set_u64(dict, "time_running", bytes, at));
}

static PyObject *make_group(EventType *type, struct ps_bytes bytes)
{
	_cleanup_pydecref_ PyObject *dict = PyDict_New();
	_cleanup_pydecref_ PyObject *list = PyList_New(0);
	size_t at = 0;
	uint64_t nr = 0;
	ps_bytes_u64(bytes, 0, &nr);
	if (!dict || !list || !set_u64(dict, "nr", bytes, &at) ||
	    !set_times(type, dict, bytes, &at))
		return NULL;
	for (uint64_t i = 0; i < nr; i++) {
		_cleanup_pydecref_ PyObject *member = make_group_member(type, bytes, &at);
		if (!member || PyList_Append(list, member) < 0)
			return NULL;
	}
	if (PyDict_SetItemString(dict, "cntr", list) < 0)
		return NULL;
	return_ptr(dict);
}

static PyObject *make_counts(EventType *type, struct ps_bytes bytes)
{
	uint64_t format = type->layout.read_format;
	if (format & PERF_FORMAT_GROUP)
		return make_group(type, bytes);
	_cleanup_pydecref_ PyObject *dict = PyDict_New();
	size_t at = 0;
	if (!dict || !set_u64(dict, "value", bytes, &at) || !set_times(type, dict, bytes, &at))
		return NULL;
	if (format & PERF_FORMAT_ID && !set_u64(dict, "id", bytes, &at))
		return NULL;
	if (format & PERF_FORMAT_LOST && !set_u64(dict, "lost", bytes, &at))
		return NULL;
	return_ptr(dict);
}

static PyObject *make_branch(struct ps_bytes bytes, size_t at)
{
	struct ps_branch branch = { 0 };
	ps_branch_read(bytes, at, &branch);
	return Py_BuildValue("{sKsKsOsOsOsOsIsI}", "from", (unsigned long long)branch.from, "to",
			     (unsigned long long)branch.to, "mispred",
			     branch.mispred ? Py_True : Py_False, "predicted",
			     branch.predicted ? Py_True : Py_False, "in_tx",
			     branch.in_tx ? Py_True : Py_False, "abort",
			     branch.abort ? Py_True : Py_False, "cycles",
			     (unsigned int)branch.cycles, "type", (unsigned int)branch.type);
}

uint64_t EventType_find_branches(const EventType *type, struct ps_bytes bytes, size_t *ret_at)
{
	uint64_t nr = 0;
	ps_bytes_u64(bytes, 0, &nr);
	*ret_at = type->layout.has_branch_hw_index ? 16 : 8;
	return nr;
}

static PyObject *make_branches(EventType *type, struct ps_bytes bytes)
{
	size_t at;
	uint64_t nr = EventType_find_branches(type, bytes, &at);
	_cleanup_pydecref_ PyObject *list = PyList_New(0);
	for (uint64_t i = 0; list && i < nr; i++, at += PS_BRANCH_SIZE) {
		_cleanup_pydecref_ PyObject *branch = make_branch(bytes, at);
		if (!branch || PyList_Append(list, branch) < 0)
			return NULL;
	}
	return_ptr(list);
}

static PyObject *make_registers(EventType *type, struct ps_bytes bytes, uint64_t mask)
{
	_cleanup_pydecref_ PyObject *dict = PyDict_New();
	size_t at = 0;
	uint64_t abi = 0;
	ps_bytes_u64(bytes, 0, &abi);
	if (!dict || !set_u64(dict, "abi", bytes, &at))
		return NULL;
	for (unsigned int i = 0; abi && i < 64; i++) {
		if (!(mask >> i & 1))
			continue;
		char number[16];
		snprintf(number, sizeof(number), "r%u", i);
		const char *name = ps_register_name(type->arch, i);
		if (!set_u64(dict, name ? name : number, bytes, &at))
			return NULL;
	}
	return_ptr(dict);
}

/** The value of @field at the start of @bytes, which ps_sample_walk found to be whole. */
static PyObject *make_value(EventType *type, const struct ps_sample_field *field,
			    struct ps_bytes bytes, bool *is_cut)
{
	switch (field->kind) {
	case PS_SAMPLE_U64:
	case PS_SAMPLE_U32:
	case PS_SAMPLE_S32:
		return make_number(field, bytes, is_cut);
	case PS_SAMPLE_ADDRESSES:
		return make_addresses(bytes);
	case PS_SAMPLE_RAW_BYTES:
		return make_bytes(bytes, sizeof(uint32_t), false);
	case PS_SAMPLE_BYTES:
		return make_bytes(bytes, sizeof(uint64_t), false);
	case PS_SAMPLE_STACK:
		return make_bytes(bytes, sizeof(uint64_t), true);
	case PS_SAMPLE_COUNTS:
		return make_counts(type, bytes);
	case PS_SAMPLE_BRANCHES:
		return make_branches(type, bytes);
	case PS_SAMPLE_REGISTERS:
		return make_registers(type, bytes,
				      field->bits & PERF_SAMPLE_REGS_USER
					      ? type->layout.regs_user_mask
					      : type->layout.regs_intr_mask);
	}
	Py_UNREACHABLE();
}

PyObject *PerfEvent_decode_sample(PerfEvent *self, const struct ps_sample_field *field)
{
	struct ps_bytes bytes;
	bool is_cut = !ps_sample_find_field(&self->type->layout, self->header, field, &bytes);
	PyObject *value = is_cut ? NULL : make_value(self->type, field, bytes, &is_cut);
	if (is_cut)
		PyErr_Format(ps_module_state(self->type->module)->decode_error,
			     "%U: the record is cut before its part %s", self->type->name,
			     field->name);
	return value;
}

static void write_branches(EventType *type, struct ps_bytes bytes, FILE *stream)
{
	size_t at;
	uint64_t nr = EventType_find_branches(type, bytes, &at);
	struct ps_branch branch;
	for (uint64_t i = 0; i < nr && ps_branch_read(bytes, at, &branch); i++) {
		fputs(i ? " " : "", stream);
		ps_write_branch(&branch, stream);
		at += PS_BRANCH_SIZE;
	}
}

bool PerfEvent_write_sample(PerfEvent *self, const struct ps_sample_field *field, FILE *stream)
{
	struct ps_bytes bytes;
	uint64_t value;
	if ((!field->write && field->kind != PS_SAMPLE_BRANCHES) ||
	    !ps_sample_find_field(&self->type->layout, self->header, field, &bytes))
		return false;
	if (field->kind == PS_SAMPLE_BRANCHES)
		write_branches(self->type, bytes, stream);
	else if (ps_bytes_u64(bytes, 0, &value))
		field->write(value, stream);
	return true;
}
