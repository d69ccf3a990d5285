// SPDX-License-Identifier: MIT
/** The fields that every event has, decoded from its record. */
#include <perfscope/python_types.h>

/** 4 or 8 bytes at @offset of the record, which the layout of its sample_type names; 0: cut or not there. */
static uint32_t read_u32(const PerfEvent *self, uint16_t offset)
{
	struct ps_bytes record = { (const uint8_t *)self->header, self->header->size };
	uint32_t value = 0;
	if (offset)
		ps_bytes_u32(record, offset, &value);
	return value;
}

static uint64_t read_u64(const PerfEvent *self, uint16_t offset)
{
	struct ps_bytes record = { (const uint8_t *)self->header, self->header->size };
	uint64_t value = 0;
	if (offset)
		ps_bytes_u64(record, offset, &value);
	return value;
}

bool PerfEvent_find_raw(PerfEvent *self, struct ps_bytes *ret)
{
	return self->header && ps_sample_raw(&self->type->layout, self->header, ret);
}

/** The string of @comm, a name of @tid; the one made last time where the name is still the same. */
static PyObject *comm_to_python(struct ps_module_state *state, int32_t tid, const char *comm)
{
	struct ps_comm_string *last = &state->comms[(uint32_t)tid % PS_NR_COMM_STRINGS];
	if (!last->text || memcmp(last->comm, comm, PS_COMM_SIZE)) {
		PyObject *text = ps_text_to_python(comm, strnlen(comm, PS_COMM_SIZE));
		if (!text)
			return NULL;
		Py_XDECREF(last->text);
		last->text = text;
		memcpy(last->comm, comm, PS_COMM_SIZE);
	}
	Py_INCREF(last->text);
	return last->text;
}

static PyObject *decode_comm(PerfEvent *self)
{
	int32_t tid = read_u32(self, self->type->layout.tid + 4);
	if (tid == 0) // as the kernel calls the idle thread of each CPU
		return PyUnicode_FromFormat("swapper/%u", read_u32(self, self->type->layout.cpu));
	struct ps_module_state *state = ps_module_state(self->type->module);
	const struct ps_host *host = state->host;
	const char *comm =
		host && host->lookup.tasks ? ps_tasks_comm(host->lookup.tasks, tid) : NULL;
	return comm ? comm_to_python(state, tid, comm) : PyUnicode_FromFormat(":%d", tid);
}

static PyObject *decode_raw(PerfEvent *self)
{
	struct ps_bytes raw;
	if (!PerfEvent_find_raw(self, &raw))
		return PyBytes_FromStringAndSize(NULL, 0);
	return PyBytes_FromStringAndSize((const char *)raw.data, raw.size);
}

/** Add the values of the group at @read, which ps_sample_walk found to be whole. */
static int read_group(EventType *type, const uint8_t *read, PyObject *counters)
{
	uint64_t format = type->layout.read_format;
	uint64_t nr;
	memcpy(&nr, read, sizeof(nr));
	read += 8 + 8 * !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
		8 * !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t value, id;
		memcpy(&value, read, sizeof(value));
		memcpy(&id, read + 8, sizeof(id));
		read += 16 + 8 * !!(format & PERF_FORMAT_LOST);
		_cleanup_pydecref_ PyObject *key = PyLong_FromUnsignedLongLong(id);
		_cleanup_pydecref_ PyObject *count = PyLong_FromUnsignedLongLong(value);
		if (!key || !count)
			return -1;
		PyObject *label = PyDict_GetItemWithError(type->counters, key); // borrowed
		if (!label && PyErr_Occurred())
			return -1;
		if (label && PyDict_SetItem(counters, label, count) < 0)
			return -1;
	}
	return 0;
}

static PyObject *decode_counters(PerfEvent *self)
{
	EventType *type = self->type;
	if (!type->counters)
		return PyDict_New();
	_cleanup_pydecref_ PyObject *counters = PyDict_Copy(type->missing);
	if (!counters)
		return NULL;
	struct ps_sample_parts parts;
	ps_sample_walk(&type->layout, self->header, &parts);
	uint64_t wanted = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	if (parts.read && (type->layout.read_format & wanted) == wanted &&
	    read_group(type, (const uint8_t *)self->header + parts.read, counters) < 0)
		return NULL;
	return_ptr(counters);
}

PyObject *PerfEvent_decode_common(PerfEvent *self, enum ps_common_slot slot)
{
	EventType *type = self->type;
	const struct ps_sample_layout *layout = &type->layout;
	switch (slot) {
	case PS_SLOT_PID:
		return PyLong_FromLong((int32_t)read_u32(self, layout->tid));
	case PS_SLOT_TID:
		return PyLong_FromLong((int32_t)read_u32(self, layout->tid + 4));
	case PS_SLOT_CPU:
		return PyLong_FromUnsignedLong(read_u32(self, layout->cpu));
	case PS_SLOT_PERIOD:
		return ps_unsigned_to_python(layout->period ? read_u64(self, layout->period)
							    : type->period);
	case PS_SLOT_TIME:
		return ps_unsigned_to_python(
			ps_time_view(&type->time_view, read_u64(self, layout->time)));
	case PS_SLOT_EVENT:
		Py_INCREF(type->name);
		return type->name;
	case PS_SLOT_REALTIME:
		return ps_unsigned_to_python(read_u64(self, layout->time) +
					     type->realtime_offset_ns);
	case PS_SLOT_COMM:
		return decode_comm(self);
	case PS_SLOT_CALLCHAIN:
		return layout->sample_type & PERF_SAMPLE_CALLCHAIN
			       ? PerfEvent_decode_callchain(self)
			       : PyList_New(0);
	case PS_SLOT_COUNTERS:
		return decode_counters(self);
	case PS_SLOT_RAW:
		return decode_raw(self);
	case PS_NR_COMMON_SLOTS:
		break;
	}
	Py_UNREACHABLE();
}
