// SPDX-License-Identifier: MIT
#include "test.h"

#include "fake_ring.h"
#include <perfscope/ring.h>

static struct ps_ring ring;
static struct perf_event_mmap_page *page;

static void open_ring(uint64_t size, uint64_t start)
{
	page = fake_ring_create(size, start);
	ASSERT_TRUE(ps_ring_init(&ring, page, size, 3));
}

static void close_ring(void)
{
	ps_ring_deinit(&ring);
	free(page);
}

TEST(ring, an_empty_ring_gives_nothing)
{
	open_ring(4096, 0);
	ps_ring_load_head(&ring);
	ASSERT_NULL(ps_ring_peek(&ring));
	ASSERT_EQ(ring.nr_bad, 0);
	ASSERT_EQ(ring.cpu, 3);
	close_ring();
}

TEST(ring, records_come_in_the_order_they_were_written)
{
	open_ring(4096, 0);
	for (uint32_t type = 1; type <= 3; type++)
		fake_ring_record(page, type, 8 * type);
	ps_ring_load_head(&ring);
	for (uint32_t type = 1; type <= 3; type++) {
		const struct perf_event_header *header = ps_ring_peek(&ring);
		ASSERT_NOT_NULL(header);
		ASSERT_EQ(header->type, type);
		ASSERT_EQ(header->size, 8 * type);
		ps_ring_advance(&ring, header);
	}
	ASSERT_NULL(ps_ring_peek(&ring));
	close_ring();
}

TEST(ring, what_is_written_after_the_head_was_read_waits)
{
	open_ring(4096, 0);
	ps_ring_load_head(&ring);
	fake_ring_record(page, 1, 8);
	ASSERT_NULL(ps_ring_peek(&ring));
	ps_ring_load_head(&ring);
	ASSERT_NOT_NULL(ps_ring_peek(&ring));
	close_ring();
}

TEST(ring, a_record_that_wraps_is_whole)
{
	open_ring(4096, 4096 * 7 - 16);
	fake_ring_record(page, 5, 48);
	fake_ring_record(page, 6, 8);
	ps_ring_load_head(&ring);
	const struct perf_event_header *header = ps_ring_peek(&ring);
	ASSERT_EQ(header->type, 5);
	ASSERT_EQ(header->size, 48);
	for (uint8_t i = 0; i < 40; i++)
		ASSERT_EQ(((const uint8_t *)header)[8 + i], i);
	ps_ring_advance(&ring, header);
	ASSERT_EQ(ps_ring_peek(&ring)->type, 6);
	close_ring();
}

TEST(ring, the_largest_record_is_whole_when_it_wraps)
{
	open_ring(128 << 10, (128 << 10) - 32768);
	fake_ring_record(page, 9, 65528);
	ps_ring_load_head(&ring);
	const struct perf_event_header *header = ps_ring_peek(&ring);
	ASSERT_EQ(header->size, 65528);
	for (size_t i = 0; i < 65520; i++)
		ASSERT_EQ(((const uint8_t *)header)[8 + i], i & 0xff);
	ps_ring_advance(&ring, header);
	ASSERT_NULL(ps_ring_peek(&ring));
	close_ring();
}

TEST(ring, a_ring_exactly_full_is_read_to_its_end)
{
	open_ring(4096, 64);
	for (int i = 0; i < 64; i++)
		fake_ring_record(page, 1, 64);
	ps_ring_load_head(&ring);
	unsigned int nr = 0;
	for (const struct perf_event_header *header; (header = ps_ring_peek(&ring)); nr++)
		ps_ring_advance(&ring, header);
	ASSERT_EQ(nr, 64);
	ASSERT_EQ(ring.nr_bad, 0);
	ASSERT_EQ(ring.tail, page->data_head);
	close_ring();
}

/** A record of @size is dropped with all that follows, counted once, and what is written then is read. */
static void check_impossible_size(uint16_t size)
{
	open_ring(4096, 0);
	fake_ring_record(page, 1, 16);
	struct perf_event_header bad = { .type = 2, .size = size };
	fake_ring_write(page, &bad, sizeof(bad));
	fake_ring_record(page, 3, 16);
	ps_ring_load_head(&ring);
	const struct perf_event_header *header = ps_ring_peek(&ring);
	ASSERT_EQ(header->type, 1);
	ps_ring_advance(&ring, header);
	ASSERT_NULL(ps_ring_peek(&ring));
	ASSERT_EQ(ring.nr_bad, 1);
	ASSERT_EQ(page->data_tail, page->data_head);
	fake_ring_record(page, 4, 16);
	ps_ring_load_head(&ring);
	ASSERT_EQ(ps_ring_peek(&ring)->type, 4);
	close_ring();
}

TEST(ring, a_record_of_size_zero_is_dropped)
{
	check_impossible_size(0);
}

TEST(ring, a_record_shorter_than_its_header_is_dropped)
{
	check_impossible_size(7);
}

TEST(ring, a_record_that_reaches_beyond_the_head_is_dropped)
{
	check_impossible_size(32);
	check_impossible_size(65535);
}

TEST(ring, a_size_that_is_no_multiple_of_eight_is_dropped)
{
	check_impossible_size(12);
}

TEST(ring, a_head_in_the_middle_of_a_header_is_dropped)
{
	open_ring(4096, 0);
	page->data_head = 4;
	ps_ring_load_head(&ring);
	ASSERT_NULL(ps_ring_peek(&ring));
	ASSERT_EQ(ring.nr_bad, 1);
	close_ring();
}

TEST(ring, a_head_further_than_the_ring_is_large_is_dropped)
{
	open_ring(4096, 0);
	fake_ring_record(page, 1, 16);
	page->data_head = 4096 + 8;
	ps_ring_load_head(&ring);
	ASSERT_NULL(ps_ring_peek(&ring));
	ASSERT_EQ(ring.nr_bad, 1);
	ASSERT_EQ(page->data_tail, 4096 + 8);
	close_ring();
}

TEST(ring, room_is_given_back_in_sixteenths)
{
	open_ring(4096, 0);
	for (int i = 0; i < 5; i++)
		fake_ring_record(page, 1, 64);
	ps_ring_load_head(&ring);
	for (int i = 0; i < 3; i++)
		ps_ring_advance(&ring, ps_ring_peek(&ring));
	ASSERT_EQ(page->data_tail, 0);
	ps_ring_advance(&ring, ps_ring_peek(&ring));
	ASSERT_EQ(page->data_tail, 256);
	ps_ring_advance(&ring, ps_ring_peek(&ring));
	ASSERT_EQ(page->data_tail, 256);
	ps_ring_publish(&ring);
	ASSERT_EQ(page->data_tail, 320);
	close_ring();
}

TEST(ring, positions_pass_the_end_of_32_bits)
{
	open_ring(4096, (1ULL << 32) - 8);
	fake_ring_record(page, 1, 24);
	ps_ring_load_head(&ring);
	const struct perf_event_header *header = ps_ring_peek(&ring);
	ASSERT_EQ(header->size, 24);
	ps_ring_advance(&ring, header);
	ASSERT_EQ(ring.tail, (1ULL << 32) + 16);
	close_ring();
}
