// SPDX-License-Identifier: MIT
/** An event as a line, in the manner of the kernel's trace. */
#include <perfscope/python_types.h>
#include <time.h>

// common_flags, from the kernel's enum trace_flag_type (include/linux/trace_events.h); 0x02 is LAZY since 6.13.
#define FLAG_IRQS_OFF 0x01
#define FLAG_NEED_RESCHED_LAZY 0x02
#define FLAG_NEED_RESCHED 0x04
#define FLAG_HARDIRQ 0x08
#define FLAG_SOFTIRQ 0x10
#define FLAG_PREEMPT_RESCHED 0x20
#define FLAG_NMI 0x40
#define FLAG_BH_OFF 0x80

static char irqs_letter(unsigned int flags)
{
	if (flags & FLAG_IRQS_OFF)
		return flags & FLAG_BH_OFF ? 'D' : 'd';
	return flags & FLAG_BH_OFF ? 'b' : '.';
}

static char resched_letter(unsigned int flags)
{
	// By bits: need, preempt, lazy.
	static const char letters[] = { '.', 'n', 'p', 'N', 'l', 'b', 'L', 'B' };
	return letters[(flags & FLAG_NEED_RESCHED ? 1 : 0) |
		       (flags & FLAG_PREEMPT_RESCHED ? 2 : 0) |
		       (flags & FLAG_NEED_RESCHED_LAZY ? 4 : 0)];
}

static char context_letter(unsigned int flags)
{
	if (flags & FLAG_NMI)
		return flags & FLAG_HARDIRQ ? 'Z' : 'z';
	if (flags & FLAG_HARDIRQ)
		return flags & FLAG_SOFTIRQ ? 'H' : 'h';
	return flags & FLAG_SOFTIRQ ? 's' : '.';
}

static char count_digit(unsigned int count)
{
	return count ? "0123456789abcdef"[count & 0xf] : '.';
}

/** The value of the event's own field @name as a number, 0 where it has none. */
static unsigned int field_number(PerfEvent *self, const char *name)
{
	const struct ps_schema *schema = self->type->schema;
	struct ps_bytes raw;
	for (size_t i = 0; i < schema->nr_fields && PerfEvent_find_raw(self, &raw); i++) {
		struct ps_value value;
		if (!strcmp(schema->fields[i].name, name) &&
		    ps_field_decode(&schema->fields[i], raw, &value) && value.kind == PS_FIELD_INT)
			return value.u64;
	}
	return 0;
}

/** As the latency columns of the kernel's trace: irqs off, need-resched, context, preempt and migrate depth. */
static void write_flags(PerfEvent *self, FILE *stream)
{
	unsigned int flags = field_number(self, "common_flags");
	unsigned int preempt = field_number(self, "common_preempt_count");
	fprintf(stream, "%c%c%c%c%c", irqs_letter(flags), resched_letter(flags),
		context_letter(flags), count_digit(preempt & 0xf), count_digit(preempt >> 4));
}

static void write_wall_clock(uint64_t realtime_ns, FILE *stream)
{
	time_t seconds = realtime_ns / 1000000000;
	struct tm local;
	char date[32] = "";
	if (localtime_r(&seconds, &local))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &local);
	fprintf(stream, "%s.%06u ", date, (unsigned int)(realtime_ns % 1000000000 / 1000));
}

/** What stands before the event's fields. False with an exception set. */
static bool write_head(PerfEvent *self, bool timestamp, FILE *stream)
{
	_cleanup_pydecref_ PyObject *comm = PerfEvent_load(self, PS_SLOT_COMM);
	_cleanup_pydecref_ PyObject *tid = comm ? PerfEvent_load(self, PS_SLOT_TID) : NULL;
	_cleanup_pydecref_ PyObject *cpu = tid ? PerfEvent_load(self, PS_SLOT_CPU) : NULL;
	_cleanup_pydecref_ PyObject *time = cpu ? PerfEvent_load(self, PS_SLOT_TIME) : NULL;
	_cleanup_pydecref_ PyObject *realtime =
		time ? PerfEvent_load(self, PS_SLOT_REALTIME) : NULL;
	_cleanup_pydecref_ PyObject *comm_bytes =
		realtime ? PyUnicode_AsEncodedString(comm, "utf-8", "surrogateescape") : NULL;
	const char *name = comm_bytes ? PyUnicode_AsUTF8(self->type->name) : NULL;
	if (!name)
		return false;
	if (timestamp)
		write_wall_clock(PyLong_AsUnsignedLongLong(realtime), stream);
	uint64_t time_ns = PyLong_AsUnsignedLongLong(time);
	fprintf(stream, "%16s %7ld ", PyBytes_AS_STRING(comm_bytes), PyLong_AsLong(tid));
	write_flags(self, stream);
	fprintf(stream, " [%03ld] %6llu.%06llu: %s:", PyLong_AsLong(cpu),
		(unsigned long long)(time_ns / 1000000000),
		(unsigned long long)(time_ns % 1000000000 / 1000), name);
	return true;
}

/** The fields as name=value, where the kernel's print format cannot be evaluated. */
static bool write_fields(PerfEvent *self, FILE *stream)
{
	const struct ps_schema *schema = self->type->schema;
	for (size_t i = 0; i < schema->nr_fields; i++) {
		if (!strncmp(schema->fields[i].name, "common_", strlen("common_")))
			continue;
		_cleanup_pydecref_ PyObject *value = PerfEvent_load(self, PS_NR_COMMON_SLOTS + i);
		_cleanup_pydecref_ PyObject *text = value ? PyObject_Str(value) : NULL;
		_cleanup_pydecref_ PyObject *bytes =
			text ? PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape") : NULL;
		if (!bytes)
			return false;
		fprintf(stream, " %s=%s", schema->fields[i].name, PyBytes_AS_STRING(bytes));
	}
	return true;
}

/** Numbers of a sample that are not in its head: in words where there are some, addresses in hex. */
static bool write_sample(PerfEvent *self, FILE *stream)
{
	const uint64_t in_head = PS_SAMPLE_BASE;
	const uint64_t addresses = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR;
	Py_ssize_t slot = PS_NR_COMMON_SLOTS + self->type->schema->nr_fields;
	for (size_t i = 0; i < self->type->nr_samples; i++, slot++) {
		const struct ps_sample_field *field = self->type->samples[i];
		if (field->kind != PS_SAMPLE_U64 || field->bits & in_head)
			continue;
		_cleanup_pydecref_ PyObject *value = PerfEvent_load(self, slot);
		if (!value)
			return false;
		if (field->write) {
			fprintf(stream, " %s=", field->name);
			PerfEvent_write_sample(self, field, stream);
			continue;
		}
		unsigned long long number = PyLong_AsUnsignedLongLong(value);
		fprintf(stream, field->bits & addresses ? " %s=%#llx" : " %s=%llu", field->name,
			number);
	}
	return true;
}

static bool write_body(PerfEvent *self, FILE *stream)
{
	struct ps_format *format = self->type->schema->format;
	struct ps_bytes raw;
	_cleanup_free_ char *text = NULL;
	if (format && PerfEvent_find_raw(self, &raw))
		text = ps_format_print(format, raw);
	if (!text && !write_fields(self, stream))
		return false;
	if (text)
		fprintf(stream, " %s", text);
	return write_sample(self, stream);
}

PyObject *PerfEvent_line(PerfEvent *self, bool timestamp)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&line, &size);
	if (!stream)
		return PyErr_NoMemory();
	bool is_written = write_head(self, timestamp, stream) && write_body(self, stream);
	if (fclose(stream) && is_written)
		return PyErr_NoMemory();
	return is_written ? ps_text_to_python(line, size) : NULL;
}
