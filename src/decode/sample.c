// SPDX-License-Identifier: MIT
#include <perfscope/sample.h>

#include <perfscope/cleanup.h>
#include <perfscope/sample_text.h>

// Bits that younger kernels know and the headers of older ones do not.
#define BRANCH_COUNTERS (1ULL << 19) // PERF_SAMPLE_BRANCH_COUNTERS, Linux 6.8

#define FIXED_BITS                                                                                 \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |             \
	 PERF_SAMPLE_PERIOD)

/** A part of fixed size at the start of a sample; in the kernel's order. */
static const struct {
	uint64_t bit;
	size_t member; // of ps_sample_layout
} fixed_parts[] = {
	{ PERF_SAMPLE_IDENTIFIER, offsetof(struct ps_sample_layout, id) },
	{ PERF_SAMPLE_IP, offsetof(struct ps_sample_layout, ip) },
	{ PERF_SAMPLE_TID, offsetof(struct ps_sample_layout, tid) },
	{ PERF_SAMPLE_TIME, offsetof(struct ps_sample_layout, time) },
	{ PERF_SAMPLE_ADDR, offsetof(struct ps_sample_layout, addr) },
	{ PERF_SAMPLE_ID, offsetof(struct ps_sample_layout, id) },
	{ PERF_SAMPLE_STREAM_ID, offsetof(struct ps_sample_layout, stream_id) },
	{ PERF_SAMPLE_CPU, offsetof(struct ps_sample_layout, cpu) },
	{ PERF_SAMPLE_PERIOD, offsetof(struct ps_sample_layout, period) },
};

// The parts of the trailer, struct sample_id, from its end.
static const uint64_t trailer_bits[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_CPU,  PERF_SAMPLE_STREAM_ID,
	PERF_SAMPLE_ID,		PERF_SAMPLE_TIME, PERF_SAMPLE_TID,
};

static void init_trailer(struct ps_sample_layout *layout)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(trailer_bits); i++) {
		if (!(layout->sample_type & trailer_bits[i]))
			continue;
		layout->trailer_size += 8;
		if (trailer_bits[i] == PERF_SAMPLE_TIME)
			layout->trailer_time = layout->trailer_size;
		if (trailer_bits[i] == PERF_SAMPLE_CPU)
			layout->trailer_cpu = layout->trailer_size;
	}
}

void ps_sample_layout_init(struct ps_sample_layout *layout, const struct perf_event_attr *attr)
{
	*layout = (struct ps_sample_layout){
		.sample_type = attr->sample_type,
		.read_format = attr->read_format,
		.has_branch_hw_index = attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX,
		.has_branch_counters = attr->branch_sample_type & BRANCH_COUNTERS,
		.regs_user_mask = attr->sample_regs_user,
		.regs_intr_mask = attr->sample_regs_intr,
	};
	uint16_t at = sizeof(struct perf_event_header);
	for (size_t i = 0; i < PS_ARRAY_SIZE(fixed_parts); i++) {
		if (!(attr->sample_type & fixed_parts[i].bit))
			continue;
		uint16_t *offset = (uint16_t *)((char *)layout + fixed_parts[i].member);
		if (!*offset)
			*offset = at;
		at += 8;
	}
	layout->variable = at;
	if ((attr->sample_type & PERF_SAMPLE_RAW) &&
	    !(attr->sample_type & (PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN)))
		layout->raw = at;
	if ((attr->sample_type & PERF_SAMPLE_RAW) && (attr->sample_type & PERF_SAMPLE_CALLCHAIN) &&
	    !(attr->sample_type & PERF_SAMPLE_READ))
		layout->chain = at;
	if (attr->sample_id_all)
		init_trailer(layout);
}

/** Where a walk stands: the record, and the offset of the next part. */
struct walk {
	const struct ps_sample_layout *layout;
	struct ps_bytes record;
	uint64_t at;
	struct ps_sample_parts *parts;
};

/** Step over @size bytes; false: they are not all inside. */
static bool step(struct walk *walk, uint64_t size)
{
	if (size > walk->record.size - walk->at)
		return false;
	walk->at += size;
	return true;
}

/** Step over @nr things of @size bytes (less than 64 KiB). */
static bool step_array(struct walk *walk, uint64_t nr, uint64_t size)
{
	return nr <= UINT16_MAX && step(walk, nr * size);
}

/** Read 8 bytes and step over them. */
static bool read_u64(struct walk *walk, uint64_t *ret)
{
	return ps_bytes_u64(walk->record, walk->at, ret) && step(walk, sizeof(*ret));
}

static bool step_u64(struct walk *walk)
{
	return step(walk, sizeof(uint64_t));
}

static bool walk_read(struct walk *walk)
{
	uint64_t format = walk->layout->read_format;
	uint64_t nr_times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			    !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint64_t nr_words = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
	uint64_t nr = 1;
	if (format & PERF_FORMAT_GROUP && !read_u64(walk, &nr))
		return false;
	return step(walk, nr_times * 8) && step_array(walk, nr, nr_words * 8);
}

static bool walk_callchain(struct walk *walk)
{
	uint64_t nr;
	return read_u64(walk, &nr) && step_array(walk, nr, 8);
}

static bool walk_raw(struct walk *walk)
{
	uint32_t size;
	// The size and the data together fill up to a multiple of 8.
	if (!ps_bytes_u32(walk->record, walk->at, &size) ||
	    !step(walk, (sizeof(size) + (uint64_t)size + 7) & ~7ULL))
		return false;
	walk->parts->raw_size = size;
	return true;
}

static bool walk_branch_stack(struct walk *walk)
{
	uint64_t nr;
	if (!read_u64(walk, &nr))
		return false;
	if (walk->layout->has_branch_hw_index && !step_u64(walk))
		return false;
	if (!step_array(walk, nr, PS_BRANCH_SIZE))
		return false;
	return !walk->layout->has_branch_counters || step_array(walk, nr, 8);
}

static bool step_regs(struct walk *walk, unsigned int nr)
{
	uint64_t abi;
	if (!read_u64(walk, &abi))
		return false;
	return abi == PERF_SAMPLE_REGS_ABI_NONE || step_array(walk, nr, 8);
}

static bool walk_regs_user(struct walk *walk)
{
	return step_regs(walk, __builtin_popcountll(walk->layout->regs_user_mask));
}

static bool walk_regs_intr(struct walk *walk)
{
	return step_regs(walk, __builtin_popcountll(walk->layout->regs_intr_mask));
}

static bool walk_stack_user(struct walk *walk)
{
	uint64_t size;
	if (!read_u64(walk, &size))
		return false;
	// The number of bytes that were filled follows, unless there is no stack.
	return !size || (step(walk, size) && step_u64(walk));
}

static bool walk_aux(struct walk *walk)
{
	uint64_t size;
	return read_u64(walk, &size) && step(walk, size);
}

#define PART(name) offsetof(struct ps_sample_parts, name)

/**
 * A part of variable size, or behind one; in the order in which the kernel writes them (the comment in its header
 * differs).
 */
static const struct {
	uint64_t bits;
	bool (*walk)(struct walk *walk);
	size_t member; // of ps_sample_parts: where it starts
} variable_parts[] = {
	{ PERF_SAMPLE_READ, walk_read, PART(read) },
	{ PERF_SAMPLE_CALLCHAIN, walk_callchain, PART(callchain) },
	{ PERF_SAMPLE_RAW, walk_raw, PART(raw) },
	{ PERF_SAMPLE_BRANCH_STACK, walk_branch_stack, PART(branch_stack) },
	{ PERF_SAMPLE_REGS_USER, walk_regs_user, PART(regs_user) },
	{ PERF_SAMPLE_STACK_USER, walk_stack_user, PART(stack_user) },
	{ PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT, step_u64, PART(weight) },
	{ PERF_SAMPLE_DATA_SRC, step_u64, PART(data_src) },
	{ PERF_SAMPLE_TRANSACTION, step_u64, PART(transaction) },
	{ PERF_SAMPLE_REGS_INTR, walk_regs_intr, PART(regs_intr) },
	{ PERF_SAMPLE_PHYS_ADDR, step_u64, PART(phys_addr) },
	{ PERF_SAMPLE_CGROUP, step_u64, PART(cgroup) },
	{ PERF_SAMPLE_DATA_PAGE_SIZE, step_u64, PART(data_page_size) },
	{ PERF_SAMPLE_CODE_PAGE_SIZE, step_u64, PART(code_page_size) },
	{ PERF_SAMPLE_AUX, walk_aux, PART(aux) },
};

bool ps_sample_walk(const struct ps_sample_layout *layout, const struct perf_event_header *header,
		    struct ps_sample_parts *ret)
{
	struct walk walk = {
		.layout = layout,
		.record = { (const uint8_t *)header, header->size },
		.at = layout->variable,
		.parts = ret,
	};
	*ret = (struct ps_sample_parts){ 0 };
	if (walk.at > walk.record.size)
		return false;
	uint64_t left = layout->sample_type & ~(uint64_t)FIXED_BITS;
	for (size_t i = 0; left && i < PS_ARRAY_SIZE(variable_parts); i++) {
		if (!(left & variable_parts[i].bits))
			continue;
		uint32_t start = walk.at;
		if (!variable_parts[i].walk(&walk))
			return false;
		*(uint32_t *)((char *)ret + variable_parts[i].member) = start;
		left &= ~variable_parts[i].bits;
	}
	return true;
}
