// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <perfscope/docstrings.h>
#include <perfscope/python_types.h>
#include <sys/syscall.h>

typedef struct {
	PyObject_HEAD
	PyObject *events; // tuple of str, owned
	size_t nr;
	struct ps_counter counters[PS_MAX_COUNTERS];
	struct ps_counter_group *group; // NULL: not open
	pid_t pid, tid;			// whose the group is
	bool is_running, is_closed, is_user_only;
	struct ps_counter_reading start[PS_MAX_COUNTERS];
} CounterGroup;

static pid_t own_tid(void)
{
	return syscall(SYS_gettid);
}

static PyObject *raise_error(CounterGroup *self, struct ps_error *error)
{
	return ps_raise_error(ps_state_of(self)->perf_event_error, error);
}

static PyObject *raise_text(CounterGroup *self, const char *text)
{
	PyErr_SetString(ps_state_of(self)->perf_event_error, text);
	return NULL;
}

static void close_group(CounterGroup *self)
{
	ps_counter_group_close(take_ptr(self->group));
	self->is_running = false;
}

static PyObject *CounterGroup_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "events", NULL };
	PyObject *events;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:PerfEventGroup", names, &events))
		return NULL;
	_cleanup_pydecref_ PyObject *object = type->tp_alloc(type, 0);
	if (!object)
		return NULL;
	CounterGroup *self = (CounterGroup *)object;
	if (!ps_counters_from_python(events, self->counters, &self->nr))
		return NULL;
	self->events = ps_counters_to_python(self->counters, self->nr);
	if (!self->events)
		return NULL;
	return_ptr(object);
}

static void CounterGroup_dealloc(CounterGroup *self)
{
	PyTypeObject *type = Py_TYPE(self);
	close_group(self);
	Py_XDECREF(self->events);
	type->tp_free(self);
	Py_DECREF(type);
}

static struct ps_error *open_with(CounterGroup *self, uint32_t exclude)
{
	for (size_t i = 0; i < self->nr; i++)
		self->counters[i].exclude = exclude;
	self->is_user_only = exclude;
	return ps_counter_group_open(self->counters, self->nr, PS_GROUP_STRICT, &self->group);
}

/** Open for the calling thread; a user who may not count in the kernel gets what is counted outside. */
static struct ps_error *open_group(CounterGroup *self)
{
	struct ps_error *error = open_with(self, 0);
	if (!error || error->kind != PS_ERROR_PERMISSION)
		return error;
	ps_error_destroy(error);
	return open_with(self, PS_EXCLUDE_KERNEL | PS_EXCLUDE_HV);
}

static bool is_of_this_thread(const CounterGroup *self)
{
	return self->pid == getpid() && self->tid == own_tid();
}

static struct ps_error *make_ready(CounterGroup *self)
{
	if (self->group && is_of_this_thread(self))
		return NULL;
	close_group(self);
	self->pid = getpid();
	self->tid = own_tid();
	return open_group(self);
}

/** The name of the first counter in @bits. */
static const char *name_of(const CounterGroup *self, uint32_t bits)
{
	return self->counters[__builtin_ctz(bits)].name;
}

static PyObject *CounterGroup_start(CounterGroup *self, PyObject *unused)
{
	if (self->is_closed)
		return raise_text(self, "this group of counters is closed");
	if (self->is_running && self->pid == getpid())
		return raise_text(self, "these counters are started already");
	struct ps_error *error = make_ready(self);
	if (error)
		return raise_error(self, error);
	uint32_t failed = ps_counter_group_read_bits(self->group, self->start);
	if (failed) {
		const char *name = name_of(self, failed);
		close_group(self);
		return PyErr_Format(ps_state_of(self)->perf_event_error, "%s: could not be read",
				    name);
	}
	self->is_running = true;
	Py_RETURN_NONE;
}

/** Set an exception where counter @index did not count all the time from start to @now. */
static bool check_whole(CounterGroup *self, size_t index, const struct ps_counter_reading *now)
{
	const struct ps_counter_reading *start = &self->start[index];
	uint64_t enabled_ns = now->enabled_ns - start->enabled_ns;
	uint64_t running_ns = now->running_ns - start->running_ns;
	if (running_ns >= enabled_ns)
		return true;
	struct ps_error *error = ps_error_format(
		PS_ERROR_LIMIT,
		"%s: counted only %" PRIu64 " of %" PRIu64
		" ns, since counters take turns on the PMU (ask for fewer, or use regions)",
		self->counters[index].name, running_ns, enabled_ns);
	raise_error(self, error);
	return false;
}

static PyObject *make_counts(CounterGroup *self, const struct ps_counter_reading *now)
{
	_cleanup_pydecref_ PyObject *counts = PyDict_New();
	for (size_t i = 0; counts && i < self->nr; i++) {
		if (!check_whole(self, i, &now[i]))
			return NULL;
		_cleanup_pydecref_ PyObject *count =
			ps_unsigned_to_python(now[i].value - self->start[i].value);
		if (!count || PyDict_SetItem(counts, PyTuple_GET_ITEM(self->events, i), count) < 0)
			return NULL;
	}
	return_ptr(counts);
}

static PyObject *CounterGroup_stop(CounterGroup *self, PyObject *unused)
{
	struct ps_counter_reading now[PS_MAX_COUNTERS];
	if (self->is_closed)
		return raise_text(self, "this group of counters is closed");
	if (!self->is_running)
		return raise_text(self, "these counters are not started");
	if (self->pid != getpid())
		return raise_text(self,
				  "these counters are the parent's; start them in this process");
	if (self->tid != own_tid())
		return raise_text(self, "these counters are another thread's, which started them");
	uint32_t failed = ps_counter_group_read_bits(self->group, now);
	self->is_running = false;
	if (failed)
		return PyErr_Format(ps_state_of(self)->perf_event_error,
				    "%s: could not be read, or never got onto the PMU",
				    name_of(self, failed));
	return make_counts(self, now);
}

static PyObject *CounterGroup_close(CounterGroup *self, PyObject *unused)
{
	close_group(self);
	self->is_closed = true;
	Py_RETURN_NONE;
}

static PyObject *CounterGroup_enter(CounterGroup *self, PyObject *unused)
{
	if (self->is_closed)
		return raise_text(self, "this group of counters is closed");
	Py_INCREF(self);
	return (PyObject *)self;
}

static PyObject *CounterGroup_exit(CounterGroup *self, PyObject *args)
{
	return CounterGroup_close(self, NULL);
}

static PyObject *CounterGroup_fds(CounterGroup *self, void *closure)
{
	_cleanup_pydecref_ PyObject *fds = PyList_New(0);
	for (size_t i = 0; fds && self->group && i < self->nr; i++) {
		_cleanup_pydecref_ PyObject *fd =
			PyLong_FromLong(ps_counter_group_fd(self->group, i));
		if (!fd || PyList_Append(fds, fd) < 0)
			return NULL;
	}
	return_ptr(fds);
}

static PyObject *CounterGroup_events(CounterGroup *self, void *closure)
{
	Py_INCREF(self->events);
	return self->events;
}

static PyObject *CounterGroup_user_only(CounterGroup *self, void *closure)
{
	return PyBool_FromLong(self->is_user_only);
}

static PyObject *CounterGroup_repr(CounterGroup *self)
{
	const char *state = self->is_closed ? "closed" : self->is_running ? "started" : "stopped";
	return PyUnicode_FromFormat("<PerfEventGroup %R %s>", self->events, state);
}

static PyMethodDef CounterGroup_methods[] = {
	{ "start", (PyCFunction)CounterGroup_start, METH_NOARGS, DOC_PerfEventGroup_start },
	{ "stop", (PyCFunction)CounterGroup_stop, METH_NOARGS, DOC_PerfEventGroup_stop },
	{ "close", (PyCFunction)CounterGroup_close, METH_NOARGS, DOC_PerfEventGroup_close },
	{ "__enter__", (PyCFunction)CounterGroup_enter, METH_NOARGS, NULL },
	{ "__exit__", (PyCFunction)CounterGroup_exit, METH_VARARGS, NULL },
	{ NULL },
};

static PyGetSetDef CounterGroup_getset[] = {
	{ "events", (getter)CounterGroup_events, NULL, DOC_PerfEventGroup_events, NULL },
	{ "fds", (getter)CounterGroup_fds, NULL, DOC_PerfEventGroup_fds, NULL },
	{ "user_only", (getter)CounterGroup_user_only, NULL, DOC_PerfEventGroup_user_only, NULL },
	{ NULL },
};

static PyType_Slot CounterGroup_slots[] = {
	{ Py_tp_new, CounterGroup_new },
	{ Py_tp_dealloc, CounterGroup_dealloc },
	{ Py_tp_methods, CounterGroup_methods },
	{ Py_tp_getset, CounterGroup_getset },
	{ Py_tp_repr, CounterGroup_repr },
	{ Py_tp_doc, (void *)DOC_PerfEventGroup },
	{ 0, NULL },
};

// It holds names alone: no cycle.
PyType_Spec CounterGroup_spec = {
	.name = "perfscope.PerfEventGroup",
	.basicsize = sizeof(CounterGroup),
	.flags = Py_TPFLAGS_DEFAULT | PS_TYPE_IMMUTABLE,
	.slots = CounterGroup_slots,
};
