// SPDX-License-Identifier: MIT
/*
 * The floor: the least that handing a kernel event to a Python function can cost, for bench.py to compare with.
 *
 *	floor MODE [--cpu N] [--pages N] [--items N] [--stack 0|1] [--handlers FOLDER]
 *
 *	walk     step over the records
 *	count    also call the handler with a fresh small object
 *	fields   the handler reads two fields, by getset
 *	to_dict  the handler calls to_dict(), which fills a dict of --items
 *
 * The records are those that perfscope asks for: raw_syscalls:sys_enter of getppid on one CPU, with --stack 1 the call
 * stack too, which only walk and count can step over. The handlers are the functions of that name in handlers.py. Prints "ready", ends at SIGINT, prints one line of JSON.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#define SAMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |           \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW)
#define MAX_ITEMS 64

/** A sample of SAMPLE_TYPE. */
struct sample {
	struct perf_event_header header;
	uint64_t identifier;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t period;
	uint32_t raw_size;
	uint8_t raw[]; // of raw_syscalls:sys_enter: 8 bytes of common fields, id, args
} __attribute__((packed));

/** The smallest object that a handler can read fields from. */
struct event {
	PyObject_HEAD
	const struct sample *sample;
};

static struct {
	bool has_handler, has_stack;
	int cpu;
	uint64_t ring_bytes;
	long nr_items;
	const char *mode, *folder;
} options = { .ring_bytes = 1024 * 4096, .nr_items = 17, .folder = "tests/bench" };

static PyTypeObject *event_type;
static PyObject *handler;
static PyObject *item_names[MAX_ITEMS];
static PyObject *event_name;
static struct event *free_event; // a freelist of one
static volatile sig_atomic_t is_stopped;
static uint64_t nr_samples, nr_lost;

static void die(const char *what)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void die_python(void)
{
	PyErr_Print();
	exit(1);
}

static uint64_t cpu_time_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static PyObject *event_get_id(PyObject *self, void *closure)
{
	int64_t id;
	memcpy(&id, ((struct event *)self)->sample->raw + 8, sizeof(id));
	return PyLong_FromLongLong(id);
}

static PyObject *event_get_pid(PyObject *self, void *closure)
{
	return PyLong_FromLong((int32_t)((struct event *)self)->sample->pid);
}

static PyObject *make_args(const struct sample *sample)
{
	uint64_t args[6];
	memcpy(args, sample->raw + 16, sizeof(args));
	PyObject *tuple = PyTuple_New(6);
	for (int i = 0; tuple && i < 6; i++)
		PyTuple_SET_ITEM(tuple, i, PyLong_FromUnsignedLongLong(args[i]));
	return tuple;
}

/** The item at @index, of the kinds that perfscope's to_dict() has for this event; more are numbers of the sample. */
static PyObject *make_item(const struct sample *sample, long index)
{
	switch (index) {
	case 0:
		Py_INCREF(event_name);
		return event_name;
	case 1:
		return PyUnicode_FromStringAndSize("load", 4); // the name of the thread
	case 2:
		return PyList_New(0); // a call stack
	case 3:
		return PyDict_New(); // counters
	case 4:
		return PyBytes_FromStringAndSize((const char *)sample->raw, sample->raw_size);
	case 5:
		return make_args(sample);
	case 6:
	case 7:
		return PyLong_FromUnsignedLongLong(sample->time_ns);
	default:
		return PyLong_FromLong(index % 2 ? sample->pid : sample->cpu);
	}
}

static PyObject *event_to_dict(PyObject *self, PyObject *unused)
{
	PyObject *dict = PyDict_New();
	if (!dict)
		return NULL;
	for (long i = 0; i < options.nr_items; i++) {
		PyObject *item = make_item(((struct event *)self)->sample, i);
		if (!item || PyDict_SetItem(dict, item_names[i], item) < 0)
			die_python();
		Py_DECREF(item);
	}
	return dict;
}

static void event_dealloc(PyObject *self)
{
	if (!free_event)
		free_event = (struct event *)self;
	else
		PyObject_Free(self);
}

static PyGetSetDef event_getset[] = {
	{ "id", event_get_id, NULL, NULL, NULL },
	{ "_pid", event_get_pid, NULL, NULL, NULL },
	{ 0 },
};

static PyMethodDef event_methods[] = {
	{ "to_dict", event_to_dict, METH_NOARGS, NULL },
	{ 0 },
};

static PyTypeObject event_type_object = {
	PyVarObject_HEAD_INIT(NULL, 0).tp_name = "floor.Event",
	.tp_basicsize = sizeof(struct event),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_dealloc = event_dealloc,
	.tp_getset = event_getset,
	.tp_methods = event_methods,
};

static void start_python(void)
{
	Py_InitializeEx(0);
	event_type = &event_type_object;
	PyObject *path = PySys_GetObject("path"); // borrowed
	PyObject *folder = PyUnicode_FromString(options.folder);
	if (PyType_Ready(event_type) < 0 || !folder || PyList_Insert(path, 0, folder) < 0)
		die_python();
	PyObject *handlers = PyImport_ImportModule("handlers");
	handler = handlers ? PyObject_GetAttrString(handlers, options.mode) : NULL;
	if (!handler)
		die_python();
	event_name = PyUnicode_InternFromString("raw_syscalls:sys_enter");
	for (long i = 0; i < options.nr_items; i++) {
		char name[32];
		snprintf(name, sizeof(name), "item_%ld", i);
		item_names[i] = PyUnicode_InternFromString(name);
	}
}

static struct event *new_event(const struct sample *sample)
{
	struct event *event = free_event;
	if (event) {
		free_event = NULL;
		Py_SET_REFCNT((PyObject *)event, 1);
	} else {
		event = PyObject_New(struct event, event_type);
		if (!event)
			die_python();
	}
	event->sample = sample;
	return event;
}

static inline void take_sample(const struct sample *sample)
{
	nr_samples++;
	if (!options.has_handler)
		return;
	struct event *event = new_event(sample);
	PyObject *arguments[] = { NULL, (PyObject *)event };
	PyObject *result = PyObject_Vectorcall(handler, arguments + 1,
					       1 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
	if (!result)
		die_python();
	Py_DECREF(result);
	Py_DECREF((PyObject *)event);
}

static void take_record(const struct perf_event_header *header)
{
	if (header->type == PERF_RECORD_SAMPLE)
		take_sample((const struct sample *)header);
	else if (header->type == PERF_RECORD_LOST)
		nr_lost += ((const uint64_t *)(header + 1))[1];
}

/** Take all records up to the head as it is now; the tail is published each sixteenth of the ring. */
static void drain(struct perf_event_mmap_page *page)
{
	static uint8_t wrapped[65536];
	const uint8_t *data = (const uint8_t *)page + page->data_offset;
	uint64_t mask = options.ring_bytes - 1, step = options.ring_bytes / 16;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = page->data_tail, published = tail;

	while (tail < head) {
		const struct perf_event_header *header = (const void *)(data + (tail & mask));
		uint64_t left = options.ring_bytes - (tail & mask);
		uint64_t size = header->size;
		if (size > left) {
			memcpy(wrapped, header, left);
			memcpy(wrapped + left, data, size - left);
			header = (const void *)wrapped;
		}
		take_record(header);
		tail += size;
		if (tail - published >= step) {
			__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
			published = tail;
		}
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

static uint64_t read_tracepoint_id(void)
{
	unsigned long id;
	FILE *file = fopen("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id", "re");
	if (!file || fscanf(file, "%lu", &id) != 1)
		die("raw_syscalls:sys_enter");
	fclose(file);
	return id;
}

static int open_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = read_tracepoint_id(),
		.sample_period = 1,
		.sample_type = SAMPLE_TYPE | (options.has_stack ? PERF_SAMPLE_CALLCHAIN : 0),
		.sample_id_all = 1,
		.disabled = 1,
		.watermark = 1,
		.wakeup_watermark = options.ring_bytes / 4,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, options.cpu, -1, PERF_FLAG_FD_CLOEXEC);
	char filter[32];
	snprintf(filter, sizeof(filter), "id==%d", SYS_getppid);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter))
		die("perf_event_open");
	return fd;
}

static void on_interrupt(int number)
{
	is_stopped = 1;
}

static void run(void)
{
	int fd = open_event();
	struct perf_event_mmap_page *page = mmap(NULL, sysconf(_SC_PAGESIZE) + options.ring_bytes,
						 PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		die("mmap");
	struct sigaction action = { .sa_handler = on_interrupt };
	sigaction(SIGINT, &action, NULL);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	puts("ready");
	fflush(stdout);

	uint64_t start_ns = cpu_time_ns();
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	while (!is_stopped) {
		poll(&readable, 1, 100);
		drain(page);
	}
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	drain(page);
	printf("{\"n\": %llu, \"lost\": %llu, \"cpu_ns\": %llu}\n", (unsigned long long)nr_samples,
	       (unsigned long long)nr_lost, (unsigned long long)(cpu_time_ns() - start_ns));
}

static void parse_options(int argc, char **argv)
{
	if (argc < 2 || argc % 2) {
		fputs("usage: floor MODE [--cpu N] [--pages N] [--items N] [--stack 0|1] "
		      "[--handlers FOLDER]\n",
		      stderr);
		exit(2);
	}
	options.mode = argv[1];
	options.has_handler = strcmp(argv[1], "walk");
	for (int i = 2; i < argc; i += 2) {
		if (!strcmp(argv[i], "--cpu"))
			options.cpu = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--pages"))
			options.ring_bytes =
				strtoull(argv[i + 1], NULL, 10) * sysconf(_SC_PAGESIZE);
		else if (!strcmp(argv[i], "--items"))
			options.nr_items = atol(argv[i + 1]);
		else if (!strcmp(argv[i], "--stack"))
			options.has_stack = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--handlers"))
			options.folder = argv[i + 1];
	}
	if (options.nr_items > MAX_ITEMS || options.ring_bytes & (options.ring_bytes - 1)) {
		fputs("floor: --pages must be a power of two, --items at most 64\n", stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	parse_options(argc, argv);
	if (options.has_handler)
		start_python();
	run();
	return 0;
}
