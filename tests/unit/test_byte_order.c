// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/byte_order.h>
#include <perfscope/cleanup.h>
#include <perfscope/maps.h>
#include <perfscope/tasks.h>
#include <sys/mman.h>

/** A record of the other byte order under construction. */
struct other {
	union {
		struct perf_event_header header;
		uint8_t bytes[512];
	};
	size_t size;
};

static void put(struct other *record, uint64_t value, size_t size)
{
	bool is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	for (size_t i = 0; i < size; i++)
		record->bytes[record->size++] = value >> 8 * (is_big ? i : size - 1 - i);
}

static void put_bytes(struct other *record, const char *bytes, size_t size)
{
	memcpy(record->bytes + record->size, bytes, size);
	record->size += size;
}

/** TID, TIME, CPU, IDENTIFIER. */
static void put_trailer(struct other *record)
{
	put(record, 71, 4);
	put(record, 72, 4);
	put(record, 73, 8);
	put(record, 3, 4);
	put(record, 0, 4);
	put(record, 75, 8);
}

static struct ps_sample_layout layout_of(uint64_t sample_type)
{
	struct perf_event_attr attr = { .sample_type = sample_type, .sample_id_all = 1 };
	struct ps_sample_layout layout;
	ps_sample_layout_init(&layout, &attr);
	return layout;
}

#define TRAILER (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

static struct other begin(uint32_t type, uint16_t misc)
{
	struct other record = { .size = 0 };
	put(&record, type, 4);
	put(&record, misc, 2);
	put(&record, 0, 2);
	return record;
}

/** Write the trailer and the size, turn the record, and check header, id and trailer. */
static void end(struct other *record)
{
	struct ps_sample_layout layout = layout_of(TRAILER);
	put_trailer(record);
	size_t size = record->size;
	record->size = 6;
	put(record, size, 2);
	record->size = size;
	ps_header_swap(&record->header);
	ASSERT_EQ(record->header.size, size);
	uint64_t id;
	ASSERT_TRUE(ps_record_swapped_id(&record->header, &id));
	ASSERT_EQ(id, 75);
	ASSERT_TRUE(ps_record_swap(&layout, &record->header));
	struct {
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, reserved;
		uint64_t id;
	} trailer;
	memcpy(&trailer, record->bytes + size - sizeof(trailer), sizeof(trailer));
	ASSERT_EQ(trailer.pid, 71);
	ASSERT_EQ(trailer.tid, 72);
	ASSERT_EQ(trailer.time, 73);
	ASSERT_EQ(trailer.cpu, 3);
	ASSERT_EQ(trailer.id, 75);
}

static struct other task(uint32_t type, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid)
{
	struct other record = begin(type, 0);
	put(&record, pid, 4);
	put(&record, ppid, 4);
	put(&record, tid, 4);
	put(&record, ptid, 4);
	put(&record, 1234, 8);
	end(&record);
	return record;
}

static struct other comm(uint32_t tid, const char *name)
{
	struct other record = begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put(&record, tid, 4);
	put(&record, tid, 4);
	put_bytes(&record, name, 16);
	end(&record);
	return record;
}

// Ids that no process of this machine has.
#define PARENT 2000000001
#define CHILD 2000000002

TEST(byte_order, names_follow_records_of_the_other_order)
{
	struct ps_tasks *tasks;
	ASSERT_OK(ps_tasks_create(&tasks));
	struct other record = comm(PARENT, "abcdefgh\0\0\0\0\0\0\0");
	ASSERT_EQ(record.header.misc, PERF_RECORD_MISC_COMM_EXEC);
	ps_tasks_follow(tasks, &record.header, 1);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, PARENT), "abcdefgh");
	record = task(PERF_RECORD_FORK, CHILD, PARENT, CHILD, PARENT);
	ps_tasks_follow(tasks, &record.header, 2);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, CHILD), "abcdefgh");
	ASSERT_EQ(ps_tasks_size(tasks), 2);
	record = task(PERF_RECORD_EXIT, CHILD, PARENT, CHILD, PARENT);
	ASSERT_EQ(record.header.type, PERF_RECORD_EXIT);
	ps_tasks_follow(tasks, &record.header, 3);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, CHILD), "abcdefgh");
	ps_tasks_destroy(tasks);
}

static struct other mmap2(uint16_t misc)
{
	struct other record = begin(PERF_RECORD_MMAP2, misc);
	put(&record, PARENT, 4);
	put(&record, PARENT, 4);
	put(&record, 0x7f0000001000, 8);
	put(&record, 0x3000, 8);
	put(&record, 0x2000, 8);
	return record;
}

static void end_mmap2(struct other *record)
{
	put(record, PROT_READ | PROT_EXEC, 4);
	put(record, MAP_PRIVATE, 4);
	put_bytes(record, "/lib/libx.so\0\0\0\0", 16);
	end(record);
}

static const struct ps_map *find_map(struct ps_maps *maps, const struct other *record)
{
	ps_maps_follow(maps, &record->header, 1);
	const struct ps_map *map = ps_maps_find(maps, PARENT, 0x7f0000003fff);
	assert_non_null(map);
	ASSERT_EQ(map->start, 0x7f0000001000);
	ASSERT_EQ(map->end, 0x7f0000004000);
	ASSERT_EQ(map->offset, 0x2000);
	ASSERT_STR_EQ(map->file->path, "/lib/libx.so");
	return map;
}

TEST(byte_order, maps_follow_records_of_the_other_order)
{
	struct ps_maps *maps;
	ASSERT_OK(ps_maps_create(&maps));
	struct other record = mmap2(0);
	put(&record, 8, 4);
	put(&record, 1, 4);
	put(&record, 0x123456789a, 8);
	put(&record, 77, 8);
	end_mmap2(&record);
	const struct ps_map *map = find_map(maps, &record);
	ASSERT_EQ(map->file->dev_major, 8);
	ASSERT_EQ(map->file->dev_minor, 1);
	ASSERT_EQ(map->file->inode, 0x123456789a);
	ASSERT_EQ(map->file->generation, 77);
	ps_maps_destroy(maps);
}

TEST(byte_order, a_build_id_keeps_its_bytes)
{
	struct ps_maps *maps;
	ASSERT_OK(ps_maps_create(&maps));
	ps_maps_believe_build_ids(maps);
	struct other record = mmap2(PERF_RECORD_MISC_MMAP_BUILD_ID);
	put_bytes(&record, "\x14\0\0\0abcdefghijklmnopqrst", 24);
	end_mmap2(&record);
	const struct ps_map *map = find_map(maps, &record);
	ASSERT_EQ(map->file->build_id_size, 20);
	assert_memory_equal(map->file->build_id, "abcdefghijklmnopqrst", 20);
	ps_maps_destroy(maps);
}

TEST(byte_order, the_old_record_of_a_map_is_followed_too)
{
	struct ps_maps *maps;
	ASSERT_OK(ps_maps_create(&maps));
	struct other record = mmap2(0);
	record.bytes[__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 0 : 3] = PERF_RECORD_MMAP;
	put_bytes(&record, "/lib/libx.so\0\0\0\0", 16);
	end(&record);
	find_map(maps, &record);
	ps_maps_destroy(maps);
}

/** What stands between header and trailer of a record of @type, by the sizes of its integers. */
static void check_integers(uint32_t type, const char *sizes)
{
	struct other record = begin(type, 0);
	for (size_t i = 0; sizes[i]; i++)
		put(&record, 0x1122334455667700 + i, sizes[i] - '0');
	end(&record);
	const uint8_t *at = record.bytes + 8;
	for (size_t i = 0; sizes[i]; at += sizes[i++] - '0') {
		uint64_t want = 0x1122334455667700 + i, got = 0;
		size_t size = sizes[i] - '0';
		bool is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
		memcpy((uint8_t *)&got + (is_big ? 8 - size : 0), at, size);
		ASSERT_TRUE(got == (size == 8 ? want : want & ((UINT64_C(1) << 8 * size) - 1)));
	}
}

TEST(byte_order, integers_of_every_record_are_turned)
{
	static const struct {
		uint32_t type;
		const char *sizes;
	} rows[] = {
		{ PERF_RECORD_LOST, "88" },
		{ PERF_RECORD_THROTTLE, "888" },
		{ PERF_RECORD_UNTHROTTLE, "888" },
		{ PERF_RECORD_READ, "448888" },
		{ PERF_RECORD_AUX, "888" },
		{ PERF_RECORD_ITRACE_START, "44" },
		{ PERF_RECORD_LOST_SAMPLES, "8" },
		{ PERF_RECORD_SWITCH, "" },
		{ PERF_RECORD_SWITCH_CPU_WIDE, "44" },
		{ PERF_RECORD_NAMESPACES, "4488888" },
		{ PERF_RECORD_KSYMBOL, "8422" },
		{ PERF_RECORD_BPF_EVENT, "224" },
		{ PERF_RECORD_CGROUP, "8" },
		{ PERF_RECORD_TEXT_POKE, "822" },
		{ 21, "8" },	// PERF_RECORD_AUX_OUTPUT_HW_ID
		{ 22, "8888" }, // PERF_RECORD_CALLCHAIN_DEFERRED
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(rows); i++)
		check_integers(rows[i].type, rows[i].sizes);
}

TEST(byte_order, text_behind_the_integers_stays)
{
	struct other record = begin(PERF_RECORD_CGROUP, 0);
	put(&record, 1, 8);
	put_bytes(&record, "/user/x\0", 8);
	end(&record);
	assert_memory_equal(record.bytes + 16, "/user/x\0", 8);
	record = begin(PERF_RECORD_BPF_EVENT, 0);
	put(&record, 1, 2);
	put(&record, 2, 2);
	put(&record, 3, 4);
	put_bytes(&record, "tagtagta", 8);
	end(&record);
	assert_memory_equal(record.bytes + 16, "tagtagta", 8);
}

TEST(byte_order, a_record_without_trailer_needs_no_layout)
{
	struct {
		struct perf_event_header header;
		uint64_t words[2];
	} record = { { PERF_RECORD_LOST, 0, 24 }, { __builtin_bswap64(5), __builtin_bswap64(6) } };
	ASSERT_TRUE(ps_record_swap(NULL, &record.header));
	ASSERT_EQ(record.words[0], 5);
	ASSERT_EQ(record.words[1], 6);
}

/** Turn a copy that is as long as it says, so that a step beyond it is one beyond its memory. */
static bool swap_copy(const struct ps_sample_layout *layout, const struct other *record,
		      uint16_t size)
{
	struct perf_event_header *copy = malloc(size);
	memcpy(copy, record, size);
	copy->size = size;
	bool is_turned = ps_record_swap(layout, copy);
	free(copy);
	return is_turned;
}

TEST(byte_order, a_record_cut_anywhere_is_refused)
{
	struct ps_sample_layout layout = layout_of(TRAILER);
	struct other record = { .header = { .type = PERF_RECORD_FORK } };
	for (uint16_t size = 8; size < 8 + 24 + layout.trailer_size; size++)
		ASSERT_FALSE(swap_copy(&layout, &record, size));
	ASSERT_TRUE(swap_copy(&layout, &record, 8 + 24 + layout.trailer_size));
}

TEST(byte_order, unknown_types_and_samples_without_a_layout_are_refused)
{
	struct other record = { .header = { .type = 63 } };
	ASSERT_FALSE(swap_copy(NULL, &record, 64));
	record.header.type = PERF_RECORD_SAMPLE;
	ASSERT_FALSE(swap_copy(NULL, &record, 64));
	record.header.size = 15;
	uint64_t id = 7;
	ASSERT_FALSE(ps_record_swapped_id(&record.header, &id));
	ASSERT_EQ(id, 7);
}

TEST(byte_order, a_sample_that_lies_or_is_cut_is_refused)
{
	struct ps_sample_layout layout = layout_of(TRAILER | PERF_SAMPLE_CALLCHAIN |
						   PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK);
	struct other record = begin(PERF_RECORD_SAMPLE, 0);
	put(&record, 75, 8);
	put(&record, 71, 4);
	put(&record, 72, 4);
	put(&record, 73, 8);
	put(&record, 3, 8);
	put(&record, 2, 8); // call chain
	put(&record, 10, 8);
	put(&record, 11, 8);
	put(&record, 4, 4); // raw data
	put_bytes(&record, "abcd", 4);
	put(&record, 1, 8); // branches
	for (int i = 0; i < 3; i++)
		put(&record, i, 8);
	size_t size = record.size;
	ps_header_swap(&record.header);
	for (uint16_t cut = 8; cut < size; cut++)
		ASSERT_FALSE(swap_copy(&layout, &record, cut));
	ASSERT_TRUE(swap_copy(&layout, &record, size));
	record.bytes[40 + 3] = 1; // the length of the call chain, were it read in our order or not
	ASSERT_FALSE(swap_copy(&layout, &record, size));
}
