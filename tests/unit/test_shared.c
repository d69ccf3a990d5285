// SPDX-License-Identifier: MIT
/** Samples of software events that the kernel made for another event. */
#include "test.h"

#include "fake_ring.h"
#include <perfscope/record.h>

#define NOW_NS 10000000000ULL
#define FOREIGN_ID 7
#define RING_SIZE 65536

static uint64_t now_ns;

uint64_t ps_clock_now_ns(const struct ps_clock *clock)
{
	return now_ns;
}

/** A sample of a source that is alone, as the kernel writes it. */
struct lone_sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t period;
	uint64_t value, enabled_ns, running_ns, own_id, lost;
};

/** The same without a period, as of sources that count up to one. */
struct counted_sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t value, enabled_ns, running_ns, own_id, lost;
};

/** That of a member of a group of two. */
struct group_sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t period;
	uint64_t nr, enabled_ns, running_ns;
	struct {
		uint64_t value, id, lost;
	} members[2];
};

enum { FAULTS, MORE_FAULTS, COUNTED_FAULTS, LEADER, SWITCHES, GROUP_FAULTS, NR_STREAMS };

static struct ps_source sources[NR_STREAMS];
static struct ps_stream streams[NR_STREAMS];
static struct ps_stream *by_id[NR_STREAMS];
static struct perf_event_mmap_page *page;
static struct ps_ring ring;
static struct ps_session session;
static struct ps_record record;

/** The stream @index, of id 100 + @index, with what the session finds out of it. */
static void add_stream(size_t index, uint64_t config, uint64_t sample_type, uint64_t more_format,
		       uint16_t named_at)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.sample_type = sample_type | PERF_SAMPLE_READ,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			       PERF_FORMAT_ID | PERF_FORMAT_LOST | more_format,
		.sample_id_all = 1,
	};
	sources[index] = (struct ps_source){ .attr = attr };
	streams[index] = (struct ps_stream){
		.source = &sources[index], .id = 100 + index, .fd = -1, .named_at = named_at
	};
	ps_sample_layout_init(&streams[index].layout, &attr);
	by_id[index] = &streams[index];
}

static void link_member(struct ps_stream *leader, struct ps_stream *stream)
{
	stream->next_member = leader->first_member;
	leader->first_member = stream;
}

static void open_session(void)
{
	uint64_t counted = PS_SAMPLE_BASE & ~(uint64_t)PERF_SAMPLE_PERIOD;
	uint16_t lone_at = offsetof(struct lone_sample, own_id);
	uint16_t counted_at = offsetof(struct counted_sample, own_id);
	uint16_t group_at = offsetof(struct group_sample, members[0].id);
	add_stream(FAULTS, PERF_COUNT_SW_PAGE_FAULTS, PS_SAMPLE_BASE, 0, lone_at);
	add_stream(MORE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS, PS_SAMPLE_BASE, 0, lone_at);
	add_stream(COUNTED_FAULTS, PERF_COUNT_SW_PAGE_FAULTS, counted, 0, counted_at);
	add_stream(LEADER, PERF_COUNT_SW_TASK_CLOCK, PS_SAMPLE_BASE, PERF_FORMAT_GROUP, 0);
	add_stream(SWITCHES, PERF_COUNT_SW_CONTEXT_SWITCHES, PS_SAMPLE_BASE, PERF_FORMAT_GROUP,
		   group_at);
	add_stream(GROUP_FAULTS, PERF_COUNT_SW_PAGE_FAULTS, PS_SAMPLE_BASE, PERF_FORMAT_GROUP,
		   group_at);
	for (size_t i = FAULTS; i <= COUNTED_FAULTS; i++)
		link_member(&streams[i], &streams[i]);
	link_member(&streams[LEADER], &streams[SWITCHES]);
	link_member(&streams[LEADER], &streams[GROUP_FAULTS]);
	page = fake_ring_create(RING_SIZE, 0);
	ASSERT_TRUE(ps_ring_init(&ring, page, RING_SIZE, 0));
	session = (struct ps_session){
		.streams = streams,
		.nr_streams = NR_STREAMS,
		.rings = &ring,
		.nr_rings = 1,
		.id_base = 100,
		.by_id = by_id,
		.nr_by_id = NR_STREAMS,
		.named_at = { counted_at, lone_at, group_at },
		.nr_named_at = 3,
	};
	record = (struct ps_record){ 0 };
	now_ns = NOW_NS;
}

static void close_session(void)
{
	ps_ring_deinit(&ring);
	free(page);
}

static struct lone_sample lone_sample(uint64_t id, uint64_t own_id, uint64_t time_ns)
{
	return (struct lone_sample){
		.header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(struct lone_sample) },
		.id = id,
		.time_ns = time_ns,
		.period = 1,
		.value = 102, // as large as an id
		.enabled_ns = 5000,
		.running_ns = 5000,
		.own_id = own_id,
	};
}

static struct group_sample group_sample(uint64_t id)
{
	return (struct group_sample){
		.header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(struct group_sample) },
		.id = id,
		.time_ns = NOW_NS - 10,
		.nr = 2,
		.members = { { 1, 100 + LEADER, 0 }, { 2, 100 + GROUP_FAULTS, 0 } },
	};
}

/** The sample @header is of the stream @index, and was made at @time_ns; both stand in what readers get. */
static void expect(const void *header, size_t index, uint64_t time_ns)
{
	ASSERT_TRUE(ps_record_read(&session, header, 0, &record));
	ASSERT_EQ(record.stream - streams, index);
	ASSERT_EQ(record.time_ns, time_ns);
	const struct lone_sample *sample = (const void *)record.header;
	ASSERT_EQ(sample->id, 100 + index);
	ASSERT_EQ(sample->time_ns, time_ns);
}

TEST(shared, an_own_sample_is_read_in_place)
{
	open_session();
	struct lone_sample sample = lone_sample(100 + FAULTS, 100 + FAULTS, NOW_NS - 10);
	expect(&sample, FAULTS, NOW_NS - 10);
	ASSERT_TRUE(record.header == &sample.header);
	close_session();
}

TEST(shared, the_second_of_two_equal_events_gets_its_own_sample)
{
	open_session();
	struct lone_sample sample = lone_sample(100 + FAULTS, 100 + MORE_FAULTS, NOW_NS - 10);
	expect(&sample, MORE_FAULTS, NOW_NS - 10);
	ASSERT_EQ(sample.id, 100 + FAULTS); // the ring is not written to
	ASSERT_EQ(session.foreign.nr_guessed, 0);
	close_session();
}

TEST(shared, one_of_another_layout_is_found)
{
	open_session();
	struct counted_sample sample = {
		.header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(sample) },
		.id = 100 + FAULTS,
		.time_ns = NOW_NS - 10,
		.enabled_ns = 5000,
		.running_ns = 5000,
		.own_id = 100 + COUNTED_FAULTS,
		.lost = 100 + MORE_FAULTS, // stands where the other layout has its id
	};
	expect(&sample, COUNTED_FAULTS, NOW_NS - 10);
	close_session();
}

TEST(shared, in_a_group_the_kind_of_the_first_event_decides)
{
	open_session();
	struct group_sample sample = group_sample(100 + FAULTS);
	expect(&sample, GROUP_FAULTS, NOW_NS - 10);
	sample = group_sample(100 + SWITCHES);
	expect(&sample, SWITCHES, NOW_NS - 10);
	// Of another program's event nothing tells which of the two it was.
	sample = group_sample(FOREIGN_ID);
	ASSERT_FALSE(ps_record_read(&session, &sample.header, 0, &record));
	close_session();
}

TEST(shared, what_names_nobody_is_refused)
{
	open_session();
	struct lone_sample sample = lone_sample(FOREIGN_ID, FOREIGN_ID, NOW_NS);
	ASSERT_FALSE(ps_record_read(&session, &sample.header, 0, &record));
	sample = lone_sample(100 + FAULTS, FOREIGN_ID, NOW_NS);
	ASSERT_FALSE(ps_record_read(&session, &sample.header, 0, &record));
	sample = lone_sample(FOREIGN_ID, 100 + FAULTS, NOW_NS);
	streams[FAULTS].ring = 1;
	ASSERT_FALSE(ps_record_read(&session, &sample.header, 0, &record));
	struct fake_sample cut = { .header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(cut) },
				   .id = 100 + FAULTS };
	ASSERT_FALSE(ps_record_read(&session, &cut.header, 0, &record));
	close_session();
}

TEST(shared, the_time_of_a_cpu_follows_from_the_enabled_time)
{
	open_session();
	struct ps_stream *stream = &streams[FAULTS];
	stream->is_clock = true;
	stream->anchored_ns = 4000;
	stream->anchor_ns = NOW_NS - 1000000;
	struct lone_sample sample = lone_sample(FOREIGN_ID, 100 + FAULTS, 77);
	expect(&sample, FAULTS, NOW_NS - 1000000 + 5000);
	ASSERT_EQ(session.foreign.nr_timed, 1);
	// The first event can leave out the id, so that it is ours, and not the time.
	sample = lone_sample(100 + FAULTS, 100 + FAULTS, NOW_NS + 3000000);
	expect(&sample, FAULTS, NOW_NS - 1000000 + 5000);
	ASSERT_EQ(session.foreign.nr_timed, 2);
	// Of the same clock it is taken as it is.
	sample = lone_sample(FOREIGN_ID, 100 + FAULTS, NOW_NS - 995007);
	expect(&sample, FAULTS, NOW_NS - 995007);
	ASSERT_EQ(session.foreign.nr_timed, 2);
	close_session();
}

TEST(shared, the_time_of_a_thread_is_taken_where_it_can_be)
{
	open_session();
	record.time_ns = NOW_NS - 50000000; // of the record before
	struct lone_sample sample = lone_sample(FOREIGN_ID, 100 + FAULTS, NOW_NS - 10);
	expect(&sample, FAULTS, NOW_NS - 10);
	ASSERT_EQ(session.foreign.nr_guessed, 1);
	close_session();
}

TEST(shared, the_time_of_a_thread_by_another_clock_goes_on_as_that_does)
{
	open_session();
	record.time_ns = NOW_NS - 50000000;
	uint64_t ahead_ns = 700000000;
	struct lone_sample sample = lone_sample(FOREIGN_ID, 100 + FAULTS, NOW_NS + ahead_ns);
	expect(&sample, FAULTS, NOW_NS);
	// Read 3 ms after it was made: the first one says more of how far the clocks are apart.
	now_ns += 5000000;
	sample = lone_sample(FOREIGN_ID, 100 + FAULTS, NOW_NS + ahead_ns + 2000000);
	expect(&sample, FAULTS, NOW_NS + 2000000);
	ASSERT_EQ(session.foreign.nr_guessed, 2);
	// A time before that of the record before it is none.
	sample = lone_sample(FOREIGN_ID, 100 + FAULTS, NOW_NS + ahead_ns - 100000000);
	now_ns = NOW_NS + 400000000;
	expect(&sample, FAULTS, NOW_NS + 2000000);
	close_session();
}
