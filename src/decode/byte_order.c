// SPDX-License-Identifier: MIT
#include <perfscope/byte_order.h>

#include "swap.h"

#include <perfscope/cleanup.h>

// Types that younger kernels know and the headers of older ones do not.
#define RECORD_AUX_OUTPUT_HW_ID 21   // Linux 5.16
#define RECORD_CALLCHAIN_DEFERRED 22 // Linux 6.19

/**
 * What stands between header and trailer, by linux/perf_event.h: bytes of each integer; '.' is 8 bytes that stay, '*'
 * words of 8 up to the trailer. What follows the last part is text.
 */
static const struct {
	uint32_t type;
	const char *parts;
} records[] = {
	{ PERF_RECORD_MMAP, "44888" },	      { PERF_RECORD_LOST, "88" },
	{ PERF_RECORD_COMM, "44" },	      { PERF_RECORD_EXIT, "44448" },
	{ PERF_RECORD_THROTTLE, "888" },      { PERF_RECORD_UNTHROTTLE, "888" },
	{ PERF_RECORD_FORK, "44448" },	      { PERF_RECORD_READ, "44*" },
	{ PERF_RECORD_MMAP2, "44888448844" }, { PERF_RECORD_AUX, "888" },
	{ PERF_RECORD_ITRACE_START, "44" },   { PERF_RECORD_LOST_SAMPLES, "8" },
	{ PERF_RECORD_SWITCH, "" },	      { PERF_RECORD_SWITCH_CPU_WIDE, "44" },
	{ PERF_RECORD_NAMESPACES, "44*" },    { PERF_RECORD_KSYMBOL, "8422" },
	{ PERF_RECORD_BPF_EVENT, "224" },     { PERF_RECORD_CGROUP, "8" },
	{ PERF_RECORD_TEXT_POKE, "822" },     { RECORD_AUX_OUTPUT_HW_ID, "8" },
	{ RECORD_CALLCHAIN_DEFERRED, "*" },
};

static const char *parts_of(const struct perf_event_header *header)
{
	// Where the file's device, inode and generation were, its build-id stands.
	if (header->type == PERF_RECORD_MMAP2 && header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		return "44888...44";
	for (size_t i = 0; i < PS_ARRAY_SIZE(records); i++) {
		if (records[i].type == header->type)
			return records[i].parts;
	}
	return NULL;
}

/** Turn the words from @at to @end, which must be whole. */
static bool swap_rest(uint8_t *at, const uint8_t *end)
{
	if ((end - at) % 8)
		return false;
	swap_words(at, (end - at) / 8);
	return true;
}

/** Turn @parts from @at on; false: they go beyond @end. */
static bool swap_parts(const char *parts, uint8_t *at, const uint8_t *end)
{
	for (; *parts; parts++) {
		if (*parts == '*')
			return swap_rest(at, end);
		ptrdiff_t size = *parts == '.' ? 8 : *parts - '0';
		if (size > end - at)
			return false;
		if (*parts != '.')
			swap_at(at, size);
		at += size;
	}
	return true;
}

void ps_header_swap(struct perf_event_header *header)
{
	header->type = __builtin_bswap32(header->type);
	header->misc = __builtin_bswap16(header->misc);
	header->size = __builtin_bswap16(header->size);
}

bool ps_record_swapped_id(const struct perf_event_header *header, uint64_t *ret)
{
	const uint8_t *start = (const uint8_t *)header;
	uint64_t id;
	if (header->size < sizeof(*header) + sizeof(id))
		return false;
	bool is_sample = header->type == PERF_RECORD_SAMPLE;
	memcpy(&id, start + (is_sample ? sizeof(*header) : header->size - sizeof(id)), sizeof(id));
	*ret = __builtin_bswap64(id);
	return true;
}

bool ps_record_swap(const struct ps_sample_layout *layout, struct perf_event_header *header)
{
	if (header->type == PERF_RECORD_SAMPLE)
		return layout && sample_swap(layout, header);
	const char *parts = parts_of(header);
	size_t trailer_size = layout ? layout->trailer_size : 0;
	if (!parts || header->size < sizeof(*header) + trailer_size)
		return false;
	uint8_t *start = (uint8_t *)header, *end = start + header->size;
	if (layout)
		trailer_swap(layout, end);
	return swap_parts(parts, start + sizeof(*header), end - trailer_size);
}
