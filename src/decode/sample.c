// SPDX-License-Identifier: MIT
#include <perfscope/sample.h>

#include "branch.h"
#include "swap.h"

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

void trailer_swap(const struct ps_sample_layout *layout, uint8_t *end)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(trailer_bits); i++) {
		if (!layout->trailer_size || !(layout->sample_type & trailer_bits[i]))
			continue;
		end -= 8;
		if (trailer_bits[i] & SWAP_PAIRS)
			swap_pair(end);
		else
			swap_words(end, 1);
	}
}

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
	uint8_t *
		turned; // the record, where its parts are to be turned into our byte order, else NULL
};

/** Step over @size bytes; false: they are not all inside. */
static bool step(struct walk *walk, uint64_t size)
{
	if (size > walk->record.size - walk->at)
		return false;
	walk->at += size;
	return true;
}

/** Step over @nr words of 8 bytes, and turn them where that is asked for. */
static bool step_words(struct walk *walk, uint64_t nr)
{
	uint64_t at = walk->at;
	if (nr > UINT16_MAX || !step(walk, nr * 8))
		return false;
	if (PS_UNLIKELY(walk->turned != NULL))
		swap_words(walk->turned + at, nr);
	return true;
}

/** Step over 8 bytes and read them. */
static bool read_u64(struct walk *walk, uint64_t *ret)
{
	uint64_t at = walk->at;
	return step_words(walk, 1) && ps_bytes_u64(walk->record, at, ret);
}

static bool step_u64(struct walk *walk)
{
	return step_words(walk, 1);
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
	return nr <= UINT16_MAX && step_words(walk, nr_times) && step_words(walk, nr * nr_words);
}

static bool walk_callchain(struct walk *walk)
{
	uint64_t nr;
	return read_u64(walk, &nr) && step_words(walk, nr);
}

static bool walk_raw(struct walk *walk)
{
	uint32_t size;
	if (PS_UNLIKELY(walk->turned != NULL) && walk->at + sizeof(size) <= walk->record.size)
		swap_at(walk->turned + walk->at, sizeof(size));
	// The size and the data together fill up to a multiple of 8.
	if (!ps_bytes_u32(walk->record, walk->at, &size) ||
	    !step(walk, (sizeof(size) + (uint64_t)size + 7) & ~7ULL))
		return false;
	walk->parts->raw_size = size;
	return true;
}

static bool step_branches(struct walk *walk, uint64_t nr)
{
	uint64_t at = walk->at;
	if (nr > UINT16_MAX || !step_words(walk, nr * (PS_BRANCH_SIZE / 8)))
		return false;
	for (uint64_t i = 0; PS_UNLIKELY(walk->turned != NULL) && i < nr; i++)
		branch_flags_turn(walk->turned + at + i * PS_BRANCH_SIZE + 16);
	return true;
}

static bool walk_branch_stack(struct walk *walk)
{
	uint64_t nr;
	if (!read_u64(walk, &nr))
		return false;
	if (walk->layout->has_branch_hw_index && !step_u64(walk))
		return false;
	if (!step_branches(walk, nr))
		return false;
	return !walk->layout->has_branch_counters || step_words(walk, nr);
}

static bool step_regs(struct walk *walk, unsigned int nr)
{
	uint64_t abi;
	if (!read_u64(walk, &abi))
		return false;
	return abi == PERF_SAMPLE_REGS_ABI_NONE || step_words(walk, nr);
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

/** Walk the parts behind the fixed ones. */
static bool walk_parts(struct walk *walk)
{
	*walk->parts = (struct ps_sample_parts){ 0 };
	if (walk->at > walk->record.size)
		return false;
	uint64_t left = walk->layout->sample_type & ~(uint64_t)FIXED_BITS;
	for (size_t i = 0; left && i < PS_ARRAY_SIZE(variable_parts); i++) {
		if (!(left & variable_parts[i].bits))
			continue;
		uint32_t start = walk->at;
		if (!variable_parts[i].walk(walk))
			return false;
		*(uint32_t *)((char *)walk->parts + variable_parts[i].member) = start;
		left &= ~variable_parts[i].bits;
	}
	return true;
}

bool ps_sample_walk(const struct ps_sample_layout *layout, const struct perf_event_header *header,
		    struct ps_sample_parts *ret)
{
	struct walk walk = {
		.layout = layout,
		.record = { (const uint8_t *)header, header->size },
		.at = layout->variable,
		.parts = ret,
	};
	return walk_parts(&walk);
}

bool sample_swap(const struct ps_sample_layout *layout, struct perf_event_header *header)
{
	struct ps_sample_parts parts;
	struct walk walk = {
		.layout = layout,
		.record = { (const uint8_t *)header, header->size },
		.at = sizeof(*header),
		.parts = &parts,
		.turned = (uint8_t *)header,
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(fixed_parts); i++) {
		if (!(layout->sample_type & fixed_parts[i].bit))
			continue;
		uint8_t *part = walk.turned + walk.at;
		if (!step(&walk, 8))
			return false;
		if (fixed_parts[i].bit & SWAP_PAIRS)
			swap_pair(part);
		else
			swap_words(part, 1);
	}
	return walk_parts(&walk);
}
