// SPDX-License-Identifier: MIT
#include "source_resolve.h"

#include <perfscope/sample.h>

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

// Every register that the kernel gives by number (asm/perf_regs.h).
#if defined(__x86_64__)
#define REGISTERS 0xff0fffULL // without ds, es, fs and gs, which it refuses
#elif defined(__aarch64__)
#define REGISTERS 0x1ffffffffULL
#else
#define REGISTERS 0ULL
#endif

#define STACK_USER_BYTES 8192 // of the stack that stack-user copies

/** Add the parts of samples that the spec asks for. */
static void set_parts(const struct ps_spec *spec, struct perf_event_attr *attr)
{
	attr->sample_type |= spec->sample_type;
	if (spec->sample_type & PERF_SAMPLE_REGS_USER)
		attr->sample_regs_user = REGISTERS;
	if (spec->sample_type & PERF_SAMPLE_REGS_INTR)
		attr->sample_regs_intr = REGISTERS;
	if (spec->sample_type & PERF_SAMPLE_STACK_USER)
		attr->sample_stack_user = STACK_USER_BYTES;
	if (spec->sample_type & PERF_SAMPLE_BRANCH_STACK)
		attr->branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
}

void source_attr_init(const struct resolver *resolver, struct perf_event_attr *attr)
{
	const struct ps_spec *spec = resolver->spec;
	const struct ps_source_options *options = resolver->options;
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.sample_type = PS_SAMPLE_BASE,
		.read_format = TIMES | PERF_FORMAT_ID,
		.disabled = 1,
		.sample_id_all = 1,
		.precise_ip = spec->precise_ip,
		.exclude_user = spec->exclude_user || options->exclude_user,
		.exclude_kernel = spec->exclude_kernel || options->exclude_kernel,
		.exclude_hv = spec->exclude_hv,
		.exclude_host = spec->exclude_host || options->exclude_host,
		.exclude_guest = spec->exclude_guest || options->exclude_guest,
	};
	set_parts(spec, attr);
}

/**
 * The kernel gives each occurrence of these its sample where samples are to tell their period, whatever the period
 * (perf_swevent_event() in kernel/events/core.c); without that part it counts up to the period.
 */
static void tell_period_once(struct perf_event_attr *attr, bool is_software)
{
	bool is_timer =
		attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
						     attr->config == PERF_COUNT_SW_TASK_CLOCK);
	if (is_software && !is_timer && !attr->freq && attr->sample_period > 1)
		attr->sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
}

void source_set_stack(const struct resolver *resolver, struct ps_source *source)
{
	const struct ps_source_options *options = resolver->options;
	const struct ps_spec *spec = resolver->spec;
	struct perf_event_attr *attr = &source->attr;
	if (!source->is_sampling || (!spec->has_stack && !options->stack))
		return;
	attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	attr->sample_max_stack = spec->max_stack ? spec->max_stack : options->max_stack;
	attr->exclude_callchain_user = options->without_user_stack;
	attr->exclude_callchain_kernel = options->without_kernel_stack;
	if (options->stack == PS_STACK_LBR && !options->without_user_stack) {
		attr->sample_type |= PERF_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK;
	}
	if (options->stack != PS_STACK_DWARF || options->without_user_stack)
		return;
	attr->exclude_callchain_user = 1;
	attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = REGISTERS;
	uint32_t bytes = options->stack_bytes ? options->stack_bytes : STACK_USER_BYTES;
	// stack-user promised its own.
	if (bytes > attr->sample_stack_user)
		attr->sample_stack_user = bytes;
}

// profile samples so many times a second where it says nothing else: no whole divisor of what other timers do.
#define PROFILE_FREQ 997

bool source_set_sampling(const struct resolver *resolver, struct perf_event_attr *attr)
{
	const struct ps_spec *spec = resolver->spec;
	uint64_t freq = spec->freq, period = spec->period;
	if (!freq && !period) {
		freq = resolver->options->freq;
		period = freq ? 0 : resolver->options->period;
	}
	if (!freq && !period && spec->kind == PS_SPEC_PROFILE)
		freq = PROFILE_FREQ;
	if (!freq && !period)
		return false;
	attr->freq = freq != 0;
	attr->sample_period = freq ? freq : period; // one field with sample_freq
	attr->sample_type |= PERF_SAMPLE_IP;
	tell_period_once(attr,
			 attr->type == PERF_TYPE_SOFTWARE || attr->type == PERF_TYPE_BREAKPOINT);
	return true;
}

/** Where @source begins or ends regions: when, whose and the counters are read of it, and of a switch who is next. */
static void make_boundary(const struct resolver *resolver, struct ps_source *source)
{
	source->boundary = resolver->spec->boundary;
	if (!source->boundary)
		return;
	source->attr.sample_type = PS_SAMPLE_BASE & ~(uint64_t)PERF_SAMPLE_PERIOD;
	if (source->boundary == resolver->options->regions->switches)
		source->attr.sample_type |= PERF_SAMPLE_RAW;
}

/** The bytes of raw data that each record of @schema has. */
static size_t fixed_size(const struct ps_schema *schema)
{
	size_t size = 0;
	for (size_t i = 0; i < schema->nr_fields; i++) {
		const struct ps_field *field = &schema->fields[i];
		size_t end =
			field->offset + (field->place == PS_PLACE_REST ? (size_t)0 : field->size);
		if (end > size)
			size = end;
	}
	return size;
}

void source_make_records(const struct resolver *resolver, struct ps_source *source)
{
	const struct ps_spec *spec = resolver->spec;
	source->attr.freq = spec->freq != 0;
	source->attr.sample_period = spec->freq ? spec->freq : spec->period ? spec->period : 1;
	source->attr.sample_type |= PERF_SAMPLE_RAW;
	tell_period_once(&source->attr, true);
	source->is_sampling = true;
	source->raw_size = fixed_size(source->schema);
	source_set_stack(resolver, source);
	make_boundary(resolver, source);
}
