// SPDX-License-Identifier: MIT
#include "test.h"

#include "fake_ring.h"
#include <perfscope/merge.h>

#define RING_SIZE 65536
#define MAX_RINGS 300
#define NOW_NS 10000000000ULL
#define SLACK PS_MERGE_SLACK_NS

static uint64_t now_ns;

// The merge's only clock, so that a test says what time it is.
uint64_t ps_clock_now_ns(const struct ps_clock *clock)
{
	return now_ns;
}

static struct ps_session session;
static struct ps_ring rings[MAX_RINGS];
static struct perf_event_mmap_page *pages[MAX_RINGS];
static struct ps_stream streams[MAX_RINGS];
static struct ps_stream *by_id[MAX_RINGS];
static struct ps_merge *merge;

/** @nr rings; ring i has the stream of id 100 + i. */
static void open_merge(size_t nr, bool is_ordered)
{
	struct perf_event_attr attr = { .sample_type = PS_SAMPLE_BASE, .sample_id_all = 1 };
	for (size_t i = 0; i < nr; i++) {
		pages[i] = fake_ring_create(RING_SIZE, 0);
		ASSERT_TRUE(ps_ring_init(&rings[i], pages[i], RING_SIZE, i));
		streams[i] = (struct ps_stream){ .id = 100 + i, .ring = i };
		ps_sample_layout_init(&streams[i].layout, &attr);
		by_id[i] = &streams[i];
	}
	session = (struct ps_session){
		.streams = streams,
		.nr_streams = nr,
		.rings = rings,
		.nr_rings = nr,
		.max_rings = nr,
		.id_base = 100,
		.by_id = by_id,
		.nr_by_id = nr,
	};
	now_ns = NOW_NS;
	ASSERT_OK(ps_merge_create(&session, is_ordered, &merge));
}

static void close_merge(void)
{
	ps_merge_destroy(merge);
	for (size_t i = 0; i < session.nr_rings; i++) {
		ps_ring_deinit(&rings[i]);
		free(pages[i]);
	}
}

static void put(uint32_t ring, uint64_t time_ns)
{
	fake_ring_sample(pages[ring], 100 + ring, time_ns);
}

/** The next record is of @ring and @time_ns. */
static void expect(uint32_t ring, uint64_t time_ns)
{
	const struct ps_record *record = ps_merge_next(merge);
	ASSERT_NOT_NULL(record);
	ASSERT_EQ(record->time_ns, time_ns);
	ASSERT_EQ(record->ring, ring);
	ASSERT_EQ(record->stream->id, 100 + ring);
	ASSERT_EQ(((const struct fake_sample *)record->header)->time_ns, time_ns);
}

TEST(merge, records_of_two_rings_come_in_the_order_of_time)
{
	open_merge(2, true);
	put(0, 10);
	put(0, 30);
	put(0, 31);
	put(1, 20);
	put(1, 40);
	ps_merge_begin(merge);
	expect(0, 10);
	expect(1, 20);
	expect(0, 30);
	expect(0, 31);
	expect(1, 40);
	ASSERT_NULL(ps_merge_next(merge));
	ASSERT_NULL(ps_merge_next(merge));
	ASSERT_FALSE(ps_merge_has_waiting(merge));
	ASSERT_EQ(ps_merge_counts(merge).nr_late, 0);
	close_merge();
}

/** Many rings, each with records at pseudo-random steps: every one comes out, in order. */
static void check_many(size_t nr)
{
	open_merge(nr, true);
	uint32_t random = 1;
	size_t nr_put = 0;
	for (size_t i = 0; i < nr; i++) {
		uint64_t time_ns = 1000;
		for (size_t j = 0; j < (i * 7) % 101; j++, nr_put++) {
			random = random * 1664525 + 1013904223;
			time_ns += random >> 20;
			put(i, time_ns);
		}
	}
	ps_merge_begin(merge);
	uint64_t last_ns = 0;
	size_t nr_got = 0;
	for (const struct ps_record *record; (record = ps_merge_next(merge)); nr_got++) {
		ASSERT_TRUE(record->time_ns >= last_ns);
		last_ns = record->time_ns;
	}
	ASSERT_EQ(nr_got, nr_put);
	ASSERT_EQ(ps_merge_counts(merge).nr_late, 0);
	for (size_t i = 0; i < nr; i++)
		ASSERT_EQ(rings[i].tail, pages[i]->data_head);
	close_merge();
}

TEST(merge, many_rings_keep_the_order)
{
	check_many(3);
	check_many(64);
	check_many(257);
}

TEST(merge, what_is_younger_than_the_horizon_waits)
{
	open_merge(2, true);
	put(0, NOW_NS - SLACK);
	put(0, NOW_NS - SLACK + 1);
	put(1, NOW_NS - 1);
	ps_merge_begin(merge);
	expect(0, NOW_NS - SLACK);
	ASSERT_NULL(ps_merge_next(merge));
	ASSERT_TRUE(ps_merge_has_waiting(merge));
	now_ns = NOW_NS + SLACK;
	// It turned up late in its ring, and still in its place.
	put(1, NOW_NS + 1);
	ps_merge_begin(merge);
	expect(0, NOW_NS - SLACK + 1);
	expect(1, NOW_NS - 1);
	ASSERT_NULL(ps_merge_next(merge));
	ASSERT_TRUE(ps_merge_has_waiting(merge));
	close_merge();
}

TEST(merge, one_ring_has_no_horizon)
{
	open_merge(1, true);
	put(0, NOW_NS + 5);
	ps_merge_begin(merge);
	expect(0, NOW_NS + 5);
	ASSERT_NULL(ps_merge_next(merge));
	close_merge();
}

TEST(merge, flush_lets_everything_through)
{
	open_merge(2, true);
	put(0, NOW_NS + 7);
	put(1, NOW_NS + 6);
	ps_merge_begin(merge);
	ASSERT_NULL(ps_merge_next(merge));
	ps_merge_flush(merge);
	ps_merge_begin(merge);
	expect(1, NOW_NS + 6);
	expect(0, NOW_NS + 7);
	ASSERT_NULL(ps_merge_next(merge));
	close_merge();
}

TEST(merge, a_ring_more_than_half_full_gets_no_slack)
{
	open_merge(2, true);
	size_t nr = RING_SIZE / 2 / sizeof(struct fake_sample) + 1;
	for (size_t i = 0; i < nr; i++)
		put(0, NOW_NS - 1000 + i / 2);
	put(1, NOW_NS + 1);
	ps_merge_begin(merge);
	for (size_t i = 0; i < nr; i++)
		expect(0, NOW_NS - 1000 + i / 2);
	ASSERT_NULL(ps_merge_next(merge));
	ASSERT_TRUE(ps_merge_has_waiting(merge));
	close_merge();
}

TEST(merge, a_time_far_in_the_future_does_not_stall_its_ring)
{
	open_merge(2, true);
	put(0, 100);
	put(0, NOW_NS * 1000);
	put(0, 200);
	put(1, 150);
	ps_merge_begin(merge);
	expect(0, 100);
	expect(0, NOW_NS * 1000);
	expect(1, 150);
	expect(0, 200);
	ASSERT_NULL(ps_merge_next(merge));
	ASSERT_EQ(ps_merge_counts(merge).nr_late, 1);
	close_merge();
}

TEST(merge, a_time_that_goes_back_stays_in_the_order_of_its_ring)
{
	open_merge(2, true);
	put(0, 100);
	put(0, 90);
	put(0, 110);
	put(1, 105);
	ps_merge_begin(merge);
	expect(0, 100);
	expect(0, 90);
	expect(1, 105);
	expect(0, 110);
	ASSERT_EQ(ps_merge_counts(merge).nr_late, 1);
	close_merge();
}

TEST(merge, unknown_ids_and_short_records_are_counted_and_skipped)
{
	open_merge(2, true);
	fake_ring_sample(pages[0], 99, 1);
	fake_ring_record(pages[0], PERF_RECORD_SAMPLE, 8);
	put(0, 50);
	fake_ring_sample(pages[0], UINT64_MAX, 2);
	struct perf_event_header bad = { .size = 0 };
	put(1, 40);
	fake_ring_write(pages[1], &bad, sizeof(bad));
	ps_merge_begin(merge);
	expect(1, 40);
	expect(0, 50);
	ASSERT_NULL(ps_merge_next(merge));
	struct ps_merge_counts counts = ps_merge_counts(merge);
	ASSERT_EQ(counts.nr_unknown, 2);
	ASSERT_EQ(counts.nr_bad, 2);
	ASSERT_EQ(rings[0].tail, pages[0]->data_head);
	close_merge();
}

TEST(merge, other_records_are_known_by_their_trailer)
{
	open_merge(1, true);
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
		uint32_t pid, tid;
		uint64_t time_ns, cpu, identifier;
	} lost = {
		.header = { .type = PERF_RECORD_LOST, .size = sizeof(lost) },
		.time_ns = 77,
		.identifier = 100,
	};
	fake_ring_write(pages[0], &lost, sizeof(lost));
	ps_merge_begin(merge);
	const struct ps_record *record = ps_merge_next(merge);
	ASSERT_EQ(record->header->type, PERF_RECORD_LOST);
	ASSERT_EQ(record->time_ns, 77);
	ASSERT_EQ(record->stream->id, 100);
	close_merge();
}

TEST(merge, room_is_given_back_only_after_the_next_call)
{
	open_merge(2, true);
	put(0, 10);
	put(0, 20);
	ps_merge_begin(merge);
	expect(0, 10);
	ASSERT_EQ(rings[0].tail, 0);
	expect(0, 20);
	ASSERT_EQ(rings[0].tail, sizeof(struct fake_sample));
	ASSERT_EQ(pages[0]->data_tail, 0);
	ps_merge_release(merge);
	ASSERT_EQ(pages[0]->data_tail, 2 * sizeof(struct fake_sample));
	ASSERT_NULL(ps_merge_next(merge));
	close_merge();
}

TEST(merge, a_round_goes_on_after_a_release)
{
	open_merge(2, true);
	put(0, 10);
	put(0, 30);
	put(1, 20);
	ps_merge_begin(merge);
	expect(0, 10);
	ps_merge_release(merge);
	ASSERT_TRUE(ps_merge_has_waiting(merge));
	expect(1, 20);
	ps_merge_begin(merge);
	expect(0, 30);
	ASSERT_NULL(ps_merge_next(merge));
	close_merge();
}

TEST(merge, an_overrun_ring_goes_on_with_what_follows)
{
	open_merge(2, true);
	put(0, NOW_NS);
	ps_merge_begin(merge); // reads it ahead
	ASSERT_NULL(ps_merge_next(merge));
	pages[0]->data_head += RING_SIZE;
	ps_merge_begin(merge);
	ASSERT_NULL(ps_merge_next(merge));
	put(0, 60);
	ps_merge_begin(merge);
	expect(0, 60);
	ASSERT_EQ(ps_merge_counts(merge).nr_bad, 1);
	close_merge();
}

TEST(merge, without_order_rings_take_turns_of_64)
{
	open_merge(2, false);
	for (uint64_t i = 0; i < 130; i++)
		put(0, 1000 + i);
	for (uint64_t i = 0; i < 3; i++)
		put(1, i);
	ps_merge_begin(merge);
	for (uint64_t i = 0; i < 64; i++)
		expect(0, 1000 + i);
	for (uint64_t i = 0; i < 3; i++)
		expect(1, i);
	for (uint64_t i = 64; i < 130; i++)
		expect(0, 1000 + i);
	ASSERT_NULL(ps_merge_next(merge));
	ASSERT_EQ(ps_merge_counts(merge).nr_late, 0);
	close_merge();
}

TEST(merge, without_order_short_rounds_begin_with_each_ring_in_turn)
{
	open_merge(3, false);
	for (uint32_t ring = 0; ring < 3; ring++) {
		put(ring, 10);
		put(ring, 20);
	}
	for (uint64_t time_ns = 10; time_ns <= 20; time_ns += 10) {
		for (uint32_t ring = 0; ring < 3; ring++) {
			ps_merge_begin(merge);
			expect(ring, time_ns);
			ps_merge_release(merge);
		}
	}
	close_merge();
}

TEST(merge, a_session_without_rings_gives_nothing)
{
	open_merge(0, true);
	ps_merge_begin(merge);
	ASSERT_NULL(ps_merge_next(merge));
	ps_merge_release(merge);
	close_merge();
	ps_merge_destroy(NULL);
}
