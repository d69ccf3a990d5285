// SPDX-License-Identifier: MIT
/** Samples of events that begin and end a region, read, cut and passed over. */
#include "test.h"

#include "../../src/stream/internal.h"
#include <perfscope/boundary.h>

enum { BEGIN = 1, END, FAULTS, NR_STREAMS = FAULTS };
#define ID(boundary) (100 + (boundary)-1)

/** A sample of the group whose third member counts. */
struct sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t nr, enabled_ns, running_ns;
	struct {
		uint64_t value, id;
	} members[1];
};

static struct ps_source sources[NR_STREAMS];
static struct ps_source *source_pointers[NR_STREAMS];
static struct ps_stream streams[NR_STREAMS], *by_id[NR_STREAMS];
static struct ps_region_spec region = { .name = "one", .begin = BEGIN, .end = END };
static struct ps_region_spec_list regions = { .regions = &region, .nr_regions = 1 };
static struct ps_source_list list = { source_pointers, NR_STREAMS, .regions = &regions };
static struct ps_opened opened;
static struct ps_session session;
static struct ps_boundaries *boundaries;
static uint64_t nr_calls, nr_faults;

static void open_boundaries(void)
{
	for (size_t i = 0; i < NR_STREAMS; i++) {
		bool is_boundary = i + 1 != FAULTS;
		sources[i] = (struct ps_source){ .index = i, .is_sampling = is_boundary };
		sources[i].boundary = is_boundary ? i + 1 : 0;
		sources[i].attr.sample_type = PS_SAMPLE_BASE & ~(uint64_t)PERF_SAMPLE_PERIOD;
		sources[i].attr.sample_type |= PERF_SAMPLE_READ;
		sources[i].attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
					      PERF_FORMAT_TOTAL_TIME_ENABLED |
					      PERF_FORMAT_TOTAL_TIME_RUNNING;
		source_pointers[i] = &sources[i];
		streams[i] = (struct ps_stream){ .source = &sources[i], .tid = -1, .cpu = 1 };
		ps_sample_layout_init(&streams[i].layout, &sources[i].attr);
		by_id[i] = &streams[i];
	}
	session = (struct ps_session){ .sources = &list,
				       .streams = streams,
				       .nr_streams = NR_STREAMS,
				       .nr_rings = 1,
				       .max_rings = 2,
				       .id_base = ID(BEGIN),
				       .by_id = by_id,
				       .nr_by_id = NR_STREAMS,
				       .priv = &opened };
	nr_calls = nr_faults = 0;
	ASSERT_OK(ps_boundaries_create(&session, &boundaries));
}

static void count_pass(void *argument, const struct ps_pass *pass)
{
	(void)argument;
	nr_calls += pass->calls;
	nr_faults += pass->counts[PS_PASS_NR_TIMES];
}

static struct sample make_sample(unsigned int boundary, uint64_t value)
{
	return (struct sample){
		.header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(struct sample) },
		.id = ID(boundary),
		.pid = 7,
		.tid = 7,
		.time_ns = value,
		.cpu = 1,
		.nr = 1,
		.members = { { value, ID(FAULTS) } },
	};
}

static struct ps_record record_of(const struct sample *sample, unsigned int boundary)
{
	return (struct ps_record){ .header = &sample->header,
				   .stream = &streams[boundary - 1],
				   .time_ns = sample->time_ns };
}

static void take(const struct sample *sample, unsigned int boundary)
{
	struct ps_record record = record_of(sample, boundary);
	ps_boundaries_sample(boundaries, &record, count_pass, NULL);
}

static void take_whole(unsigned int boundary, uint64_t value)
{
	struct sample sample = make_sample(boundary, value);
	take(&sample, boundary);
}

static void drop(unsigned int boundary)
{
	struct sample sample = make_sample(boundary, 1);
	struct ps_record record = record_of(&sample, boundary);
	ps_boundaries_drop(boundaries, &record);
}

static uint64_t nr_incomplete(void)
{
	return ps_boundaries_sums(boundaries, 0)->incomplete;
}

TEST(boundary, pass_counts_what_the_group_told_at_both_ends)
{
	open_boundaries();
	take_whole(BEGIN, 10);
	take_whole(END, 25);
	ASSERT_EQ(nr_calls, 1);
	ASSERT_EQ(nr_faults, 15);
	ASSERT_EQ(nr_incomplete(), 0);
	ps_boundaries_destroy(boundaries);
}

TEST(boundary, sample_that_cannot_be_read_is_incomplete_and_a_gap)
{
	open_boundaries();
	take_whole(BEGIN, 10);
	struct sample sample = make_sample(END, 20);
	sample.members[0].id = 0;
	sample.nr = 2; // more than there are
	take(&sample, END);
	ASSERT_EQ(nr_incomplete(), 2);
	sample = make_sample(BEGIN, 30);
	sample.cpu = 2; // no CPU of this session
	take(&sample, BEGIN);
	ASSERT_EQ(nr_incomplete(), 3);
	take_whole(END, 40);
	ASSERT_EQ(nr_incomplete(), 4);
	ASSERT_EQ(nr_calls, 0);
	ps_boundaries_destroy(boundaries);
}

TEST(boundary, begins_and_ends_that_are_passed_over_are_incomplete)
{
	open_boundaries();
	take_whole(BEGIN, 10);
	drop(END);
	ASSERT_EQ(nr_incomplete(), 2);
	drop(BEGIN);
	drop(END);
	ASSERT_EQ(nr_incomplete(), 4);
	take_whole(BEGIN, 20);
	// A counter of the user's is none of either.
	sources[FAULTS - 1].is_sampling = true;
	drop(FAULTS);
	take_whole(END, 30);
	ASSERT_EQ(nr_incomplete(), 4);
	ASSERT_EQ(nr_calls, 1);
	ps_boundaries_destroy(boundaries);
}

TEST(boundary, pass_over_a_gap_of_a_ring_is_incomplete)
{
	open_boundaries();
	take_whole(BEGIN, 10);
	ps_boundaries_gap(boundaries, 1); // a ring that comes later
	take_whole(END, 20);
	ASSERT_EQ(nr_calls, 1);
	take_whole(BEGIN, 30);
	ps_boundaries_gap(boundaries, 0);
	take_whole(END, 1); // the new descriptor counts from 0
	ASSERT_EQ(nr_incomplete(), 2);
	take_whole(BEGIN, 2);
	take_whole(END, 5);
	ASSERT_EQ(nr_faults, 10 + 3);
	ps_boundaries_destroy(boundaries);
}
