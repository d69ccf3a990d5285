// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/sample.h>

#define ALL_FORMATS                                                                                \
	(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID |        \
	 PERF_FORMAT_LOST)

/** A sample under construction: words behind a header. */
struct sample {
	struct perf_event_header header;
	uint64_t words[64];
	size_t nr;
};

static void add(struct sample *sample, size_t nr, const uint64_t *words)
{
	memcpy(&sample->words[sample->nr], words, nr * sizeof(*words));
	sample->nr += nr;
	sample->header = (struct perf_event_header){ .type = PERF_RECORD_SAMPLE,
						     .size = 8 + 8 * sample->nr };
}

#define ADD(sample, ...)                                                                           \
	add(sample, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8, (uint64_t[]){ __VA_ARGS__ })

static struct ps_sample_layout layout_of(struct perf_event_attr attr)
{
	struct ps_sample_layout layout;
	ps_sample_layout_init(&layout, &attr);
	return layout;
}

TEST(sample, fixed_parts_stand_in_the_order_of_the_kernel)
{
	struct ps_sample_layout layout = layout_of((struct perf_event_attr){
		.sample_type = PS_SAMPLE_BASE | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
			       PERF_SAMPLE_STREAM_ID,
		.sample_id_all = 1,
	});
	ASSERT_EQ(layout.id, 8);
	ASSERT_EQ(layout.ip, 16);
	ASSERT_EQ(layout.tid, 24);
	ASSERT_EQ(layout.time, 32);
	ASSERT_EQ(layout.addr, 40);
	ASSERT_EQ(layout.stream_id, 56);
	ASSERT_EQ(layout.cpu, 64);
	ASSERT_EQ(layout.period, 72);
	ASSERT_EQ(layout.variable, 80);
	ASSERT_EQ(layout.trailer_size, 48);
	ASSERT_EQ(layout.trailer_time, 40);
	ASSERT_EQ(layout.trailer_cpu, 16);
}

TEST(sample, the_base_has_its_places)
{
	struct ps_sample_layout layout = layout_of(
		(struct perf_event_attr){ .sample_type = PS_SAMPLE_BASE, .sample_id_all = 1 });
	ASSERT_EQ(layout.id, 8);
	ASSERT_EQ(layout.tid, 16);
	ASSERT_EQ(layout.time, 24);
	ASSERT_EQ(layout.cpu, 32);
	ASSERT_EQ(layout.period, 40);
	ASSERT_EQ(layout.variable, 48);
	ASSERT_EQ(layout.trailer_size, 32);
	ASSERT_EQ(layout.trailer_time, 24);
	ASSERT_EQ(layout.trailer_cpu, 16);
}

TEST(sample, without_sample_id_all_there_is_no_trailer)
{
	struct ps_sample_layout layout =
		layout_of((struct perf_event_attr){ .sample_type = PERF_SAMPLE_ID });
	ASSERT_EQ(layout.id, 8);
	ASSERT_EQ(layout.variable, 16);
	ASSERT_EQ(layout.trailer_size, 0);
	ASSERT_EQ(layout.trailer_time, 0);
}

TEST(sample, raw_data_of_a_tracepoint_is_found)
{
	struct ps_sample_layout layout = layout_of(
		(struct perf_event_attr){ .sample_type = PS_SAMPLE_BASE | PERF_SAMPLE_RAW });
	struct sample sample = { 0 };
	ADD(&sample, 1, 2, 3, 4, 5);
	ADD(&sample, 12 | 7ULL << 32, 8);
	struct ps_sample_parts parts;
	ASSERT_TRUE(ps_sample_walk(&layout, &sample.header, &parts));
	ASSERT_EQ(parts.raw, 48);
	ASSERT_EQ(parts.raw_size, 12);
	ASSERT_EQ(parts.read, 0);
	ASSERT_EQ(parts.callchain, 0);
}

TEST(sample, raw_data_behind_a_call_chain_is_found)
{
	struct ps_sample_layout layout = layout_of((struct perf_event_attr){
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW });
	struct sample sample = { 0 };
	ADD(&sample, 1, 3, 10, 11, 12);
	ADD(&sample, 12 | 7ULL << 32, 8);
	struct ps_bytes raw;
	ASSERT_TRUE(ps_sample_raw(&layout, &sample.header, &raw));
	ASSERT_TRUE(raw.data == (const uint8_t *)&sample + 52);
	ASSERT_EQ(raw.size, 12);
	for (uint16_t size = 8; size < 64; size++) {
		struct perf_event_header *cut = malloc(size);
		sample.header.size = size;
		memcpy(cut, &sample, size);
		ASSERT_FALSE(ps_sample_raw(&layout, cut, &raw));
		free(cut);
	}
}

TEST(sample, raw_data_behind_a_call_chain_that_lies_is_none)
{
	const uint64_t lies[] = { 4, 1ULL << 29, 1ULL << 61, (1ULL << 61) - 1, UINT64_MAX };
	struct ps_sample_layout layout = layout_of(
		(struct perf_event_attr){ .sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW });
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct sample sample = { 0 };
		ADD(&sample, lies[i], 4, 4, 4);
		struct ps_bytes raw;
		ASSERT_FALSE(ps_sample_raw(&layout, &sample.header, &raw));
	}
}

/** The read part of @format, @nr_words long, stands before raw data, which is found. */
static void check_read(uint64_t format, uint64_t first, size_t nr_words)
{
	struct ps_sample_layout layout = layout_of((struct perf_event_attr){
		.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_RAW, .read_format = format });
	struct sample sample = { 0 };
	ADD(&sample, first);
	for (size_t i = 1; i < nr_words; i++)
		ADD(&sample, UINT64_MAX);
	ADD(&sample, 4);
	struct ps_sample_parts parts;
	ASSERT_TRUE(ps_sample_walk(&layout, &sample.header, &parts));
	ASSERT_EQ(parts.read, 8);
	ASSERT_EQ(parts.raw, 8 + 8 * nr_words);
	ASSERT_EQ(parts.raw_size, 4);
}

TEST(sample, every_read_format_has_its_size)
{
	for (uint64_t format = 0; format < PERF_FORMAT_MAX; format++) {
		uint64_t nr_times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
				    !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
		uint64_t nr_each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
		if (format & PERF_FORMAT_GROUP)
			check_read(format, 5, 1 + nr_times + 5 * nr_each);
		else
			check_read(format, 5, nr_times + nr_each);
	}
}

// All parts, in the order of perf_output_sample().
#define ALL_PARTS                                                                                  \
	(PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK |   \
	 PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT_STRUCT |              \
	 PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR |                  \
	 PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE |                 \
	 PERF_SAMPLE_CODE_PAGE_SIZE | PERF_SAMPLE_AUX)

static const struct perf_event_attr all_attr = {
	.sample_type = PS_SAMPLE_BASE | ALL_PARTS,
	.read_format = ALL_FORMATS,
	.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX,
	.sample_regs_user = 0x7,
	.sample_regs_intr = 0x100000001,
};

static struct sample all_sample(void)
{
	struct sample sample = { 0 };
	ADD(&sample, 1, 2, 3, 4, 5);		 // the base
	ADD(&sample, 10, 11, 12, 13, 14);	 // read
	ADD(&sample, 2, 0xa, 0xb);		 // callchain
	ADD(&sample, 12 | 1ULL << 32, 0);	 // raw
	ADD(&sample, 1, 99, 0x1, 0x2, 0);	 // branch stack
	ADD(&sample, 2, 1, 2, 3);		 // user registers
	ADD(&sample, 16, 0, 0, 8);		 // user stack
	ADD(&sample, 1, 2, 3);			 // weight, data source, transaction
	ADD(&sample, PERF_SAMPLE_REGS_ABI_NONE); // registers at the interrupt
	ADD(&sample, 1, 2, 3, 4);		 // physical address, cgroup, page sizes
	ADD(&sample, 8, 0);			 // AUX
	return sample;
}

TEST(sample, all_parts_are_walked_to_the_last_byte)
{
	struct ps_sample_layout layout = layout_of(all_attr);
	struct sample sample = all_sample();
	struct ps_sample_parts parts;
	ASSERT_TRUE(ps_sample_walk(&layout, &sample.header, &parts));
	ASSERT_EQ(parts.read, 48);
	ASSERT_EQ(parts.callchain, 88);
	ASSERT_EQ(parts.raw, 112);
	ASSERT_EQ(parts.raw_size, 12);
}

TEST(sample, a_sample_cut_anywhere_is_refused)
{
	struct ps_sample_layout layout = layout_of(all_attr);
	struct sample sample = all_sample();
	for (uint16_t size = 8; size < 8 + 8 * sample.nr; size++) {
		// A copy of this size, so that a read beyond it is one beyond its memory.
		struct perf_event_header *cut = malloc(size);
		sample.header.size = size;
		memcpy(cut, &sample, size);
		struct ps_sample_parts parts;
		ASSERT_FALSE(ps_sample_walk(&layout, cut, &parts));
		ASSERT_EQ(parts.read, size >= 88 ? 48 : 0);
		ASSERT_EQ(parts.callchain, size >= 112 ? 88 : 0);
		ASSERT_EQ(parts.raw, size >= 128 ? 112 : 0);
		free(cut);
	}
}

/** A part whose first word is @lie is refused. */
static void check_lie(uint64_t sample_type, uint64_t lie)
{
	struct ps_sample_layout layout = layout_of((struct perf_event_attr){
		.sample_type = sample_type,
		.read_format = PERF_FORMAT_GROUP,
	});
	struct sample sample = { 0 };
	ADD(&sample, lie, 0, 0);
	struct ps_sample_parts parts;
	ASSERT_FALSE(ps_sample_walk(&layout, &sample.header, &parts));
	ASSERT_EQ(parts.read | parts.callchain | parts.raw | parts.raw_size, 0);
}

TEST(sample, counts_that_lie_are_refused)
{
	const uint64_t lies[] = { 3, 1ULL << 16, 1ULL << 29, 1ULL << 61, UINT64_MAX };
	for (size_t i = 0; i < PS_ARRAY_SIZE(lies); i++) {
		check_lie(PERF_SAMPLE_READ, lies[i]);
		check_lie(PERF_SAMPLE_CALLCHAIN, lies[i]);
		check_lie(PERF_SAMPLE_BRANCH_STACK, lies[i]);
	}
	check_lie(PERF_SAMPLE_RAW, UINT32_MAX);
	check_lie(PERF_SAMPLE_RAW, 21);
	check_lie(PERF_SAMPLE_STACK_USER, 16);
	check_lie(PERF_SAMPLE_STACK_USER, UINT64_MAX);
	check_lie(PERF_SAMPLE_AUX, 17);
}

/** @nr_words words of @attr's part are one sample to the last word. */
static void check_exact(struct perf_event_attr attr, size_t nr_words, const uint64_t *words)
{
	struct ps_sample_layout layout = layout_of(attr);
	struct sample sample = { 0 };
	add(&sample, nr_words, words);
	struct ps_sample_parts parts;
	ASSERT_TRUE(ps_sample_walk(&layout, &sample.header, &parts));
	sample.header.size -= 8;
	ASSERT_FALSE(ps_sample_walk(&layout, &sample.header, &parts));
}

TEST(sample, parts_that_depend_on_more_than_their_bit_have_their_size)
{
	const uint64_t words[] = { 1, 2, 3, 4, 5, 6 };
	struct perf_event_attr attr = { .sample_type = PERF_SAMPLE_BRANCH_STACK };
	check_exact(attr, 4, words);
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX;
	check_exact(attr, 5, words);
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX | 1ULL << 19; // counters
	check_exact(attr, 6, words);
	attr = (struct perf_event_attr){ .sample_type = PERF_SAMPLE_REGS_INTR,
					 .sample_regs_intr = 0xf0 };
	check_exact(attr, 5, words);
	attr = (struct perf_event_attr){ .sample_type = PERF_SAMPLE_STACK_USER };
	check_exact(attr, 1, (uint64_t[]){ 0 });
	attr.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_AUX;
	check_exact(attr, 4, (uint64_t[]){ 5, 0, 8, 0 }); // raw data is filled up
	attr.sample_type = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC;
	check_exact(attr, 2, words);
}
