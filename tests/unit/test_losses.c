// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/losses.h>

static struct perf_event_header *lost_record(uint64_t id, uint64_t nr)
{
	static struct {
		struct perf_event_header header;
		uint64_t id, lost;
	} record;
	record.header = (struct perf_event_header){ PERF_RECORD_LOST, 0, sizeof(record) };
	record.id = id;
	record.lost = nr;
	return &record.header;
}

static void follow(struct ps_losses *losses, uint32_t ring, uint64_t nr)
{
	struct ps_record record = { .header = lost_record(1, nr), .ring = ring };
	ps_losses_follow(losses, &record);
}

TEST(losses, gap_reaches_from_the_sample_before_to_the_sample_after)
{
	struct ps_losses losses;
	struct ps_loss loss;
	ASSERT_OK(ps_losses_init(&losses, 2));
	ASSERT_FALSE(ps_losses_sample(&losses, 1, 100, &loss));
	follow(&losses, 1, 7);
	follow(&losses, 1, 5);
	ASSERT_FALSE(ps_losses_sample(&losses, 0, 150, &loss));
	ASSERT_TRUE(ps_losses_sample(&losses, 1, 200, &loss));
	ASSERT_EQ(loss.start_ns, 100);
	ASSERT_EQ(loss.end_ns, 200);
	ASSERT_EQ(loss.nr, 12);
	ASSERT_FALSE(ps_losses_sample(&losses, 1, 201, &loss));
	ASSERT_EQ(losses.nr_told, 12);
	ps_losses_deinit(&losses);
}

TEST(losses, lost_samples_record_counts_too)
{
	struct {
		struct perf_event_header header;
		uint64_t lost;
	} bytes = { { PERF_RECORD_LOST_SAMPLES, 0, sizeof(bytes) }, 9 };
	struct ps_record record = { .header = &bytes.header };
	struct ps_losses losses;
	struct ps_loss loss;
	ASSERT_OK(ps_losses_init(&losses, 1));
	ps_losses_follow(&losses, &record);
	ASSERT_TRUE(ps_losses_sample(&losses, 0, 5, &loss));
	ASSERT_EQ(loss.nr, 9);
	ps_losses_deinit(&losses);
}

TEST(losses, each_stretch_that_the_kernel_holds_back_is_counted_where_it_was)
{
	struct ps_stream streams[2] = { 0 };
	struct {
		struct perf_event_header header;
		uint64_t time, id, stream_id;
	} bytes = { { PERF_RECORD_THROTTLE, 0, sizeof(bytes) }, 100, 7, 7 };
	struct ps_record record = { .header = &bytes.header, .stream = &streams[1] };
	struct ps_losses losses;
	struct ps_loss loss;
	ASSERT_OK(ps_losses_init(&losses, 1));
	for (int i = 0; i < 3; i++) {
		bytes.header.type = PERF_RECORD_THROTTLE;
		ps_losses_throttle(&losses, &record);
		bytes.header.type = PERF_RECORD_UNTHROTTLE;
		ps_losses_throttle(&losses, &record);
	}
	// Of an event of nobody here.
	bytes.header.type = PERF_RECORD_THROTTLE;
	record.stream = NULL;
	ps_losses_throttle(&losses, &record);
	ASSERT_EQ(losses.nr_throttled, 3);
	ASSERT_EQ(streams[0].throttled, 0);
	ASSERT_EQ(streams[1].throttled, 3);
	// How many samples it would have been is not known: nothing is told as lost.
	ASSERT_FALSE(ps_losses_sample(&losses, 0, 200, &loss));
	ps_losses_deinit(&losses);
}

TEST(losses, cut_record_counts_nothing)
{
	struct perf_event_header header = { PERF_RECORD_LOST, 0, sizeof(header) };
	struct ps_record record = { .header = &header };
	struct ps_losses losses;
	struct ps_loss loss;
	ASSERT_OK(ps_losses_init(&losses, 1));
	ps_losses_follow(&losses, &record);
	ASSERT_FALSE(ps_losses_sample(&losses, 0, 5, &loss));
	ps_losses_deinit(&losses);
}

/** The kernel's own count of a ring is 20: 12 were told by a record, 8 by none. */
TEST(losses, what_no_record_told_is_told_at_the_end)
{
	struct ps_source source = { .name = (char *)"x" };
	struct ps_stream streams[] = {
		{ .source = &source, .ring = 0, .lost = 15 },
		{ .source = &source, .ring = 0, .lost = 5 },
		{ .source = NULL, .ring = 0, .lost = 1000 }, // the side-band's are no samples
		{ .source = &source, .ring = 1, .lost = 0 },
	};
	struct ps_session session = { .streams = streams, .nr_streams = 4 };
	struct ps_losses losses;
	struct ps_loss loss;
	ASSERT_OK(ps_losses_init(&losses, 2));
	follow(&losses, 0, 12);
	ASSERT_TRUE(ps_losses_sample(&losses, 0, 50, &loss));
	ASSERT_TRUE(ps_losses_finish(&losses, &session, 0, 99, &loss));
	ASSERT_EQ(loss.nr, 8);
	ASSERT_EQ(loss.start_ns, 50);
	ASSERT_EQ(loss.end_ns, 99);
	ASSERT_FALSE(ps_losses_finish(&losses, &session, 1, 99, &loss));
	ASSERT_EQ(losses.nr_told, 20);
	ps_losses_deinit(&losses);
}

TEST(losses, samples_left_in_the_ring_add_to_the_kernels_count)
{
	struct ps_source source = { .name = (char *)"x" };
	struct ps_stream stream = { .source = &source, .ring = 0, .lost = 3 };
	struct ps_session session = { .streams = &stream, .nr_streams = 1 };
	struct ps_losses losses;
	struct ps_loss loss;
	ASSERT_OK(ps_losses_init(&losses, 1));
	follow(&losses, 0, 2);
	ps_losses_drop(&losses, 0);
	ps_losses_drop(&losses, 0);
	ASSERT_TRUE(ps_losses_finish(&losses, &session, 0, 1, &loss));
	ASSERT_EQ(loss.nr, 5);
	ps_losses_deinit(&losses);
}

/** The CPU was away until 150: nobody knows how many, and it is told once, behind what was counted. */
TEST(losses, a_gap_that_nobody_counted_ends_with_the_first_sample_behind_it)
{
	struct ps_losses losses;
	struct ps_loss loss;
	ASSERT_OK(ps_losses_init(&losses, 1));
	ps_losses_gap(&losses, 0, 150);
	ASSERT_FALSE(ps_losses_sample(&losses, 0, 100, &loss)); // still in the ring from before
	ASSERT_TRUE(ps_losses_sample(&losses, 0, 180, &loss));
	ASSERT_TRUE(loss.is_unknown);
	ASSERT_EQ(loss.start_ns, 100);
	ASSERT_EQ(loss.end_ns, 180);
	ASSERT_EQ(loss.nr, 0);
	ASSERT_FALSE(ps_losses_sample(&losses, 0, 180, &loss));
	ps_losses_gap(&losses, 0, 200);
	follow(&losses, 0, 4);
	ASSERT_TRUE(ps_losses_sample(&losses, 0, 210, &loss));
	ASSERT_FALSE(loss.is_unknown);
	ASSERT_EQ(loss.start_ns, 180);
	ASSERT_EQ(loss.nr, 4);
	ASSERT_TRUE(ps_losses_sample(&losses, 0, 210, &loss));
	ASSERT_TRUE(loss.is_unknown);
	ASSERT_EQ(loss.start_ns, 180);
	ASSERT_FALSE(ps_losses_sample(&losses, 0, 210, &loss));
	ASSERT_EQ(losses.nr_told, 4);
	ps_losses_deinit(&losses);
}

TEST(losses, a_gap_without_a_sample_behind_it_reaches_to_the_end)
{
	struct ps_session session = { 0 };
	struct ps_losses losses;
	struct ps_loss loss;
	ASSERT_OK(ps_losses_init(&losses, 1));
	ASSERT_FALSE(ps_losses_sample(&losses, 0, 100, &loss));
	ps_losses_gap(&losses, 0, 150);
	follow(&losses, 0, 2);
	ASSERT_TRUE(ps_losses_finish(&losses, &session, 0, 300, &loss));
	ASSERT_EQ(loss.nr, 2);
	ASSERT_TRUE(ps_losses_finish(&losses, &session, 0, 300, &loss));
	ASSERT_TRUE(loss.is_unknown);
	ASSERT_EQ(loss.start_ns, 100);
	ASSERT_EQ(loss.end_ns, 300);
	ASSERT_FALSE(ps_losses_finish(&losses, &session, 0, 300, &loss));
	ps_losses_deinit(&losses);
}
