// SPDX-License-Identifier: MIT
#include "../../src/stream/internal.h"
#include "test.h"

#define MS 1000000ULL
#define MAX_STREAMS 8

static struct ps_source first = { .index = 0 }, second = { .index = 1 };
static struct ps_source *source_pointers[] = { &first, &second };
static struct ps_source_list sources = { .sources = source_pointers, .nr_sources = 2 };

/** What a descriptor of a thread on a CPU tells. */
struct told {
	int cpu;
	pid_t tid;
	struct ps_source *source; // NULL: the session's own
	uint64_t value, enabled_ns, running_ns;
};

static struct ps_stream streams[MAX_STREAMS];
static struct ps_stream *by_id[MAX_STREAMS];
static struct ps_session session;

static int words_fd(const uint64_t *words, size_t size)
{
	char path[] = "/tmp/perfscope-words-XXXXXX";
	int fd = mkstemp(path);
	ASSERT_TRUE(fd >= 0);
	unlink(path);
	ASSERT_EQ(write(fd, words, size), size);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/** Streams that read what is @told, of a machine with @nr_cpus CPUs. */
static void build(const struct told *told, size_t nr, size_t nr_cpus)
{
	session = (struct ps_session){
		.streams = streams,
		.nr_streams = nr,
		.sources = &sources,
		.by_id = by_id,
		.nr_by_id = nr,
		.id_base = 1,
	};
	for (size_t i = 0; i < nr; i++) {
		const uint64_t words[] = { told[i].value, told[i].enabled_ns, told[i].running_ns,
					   i + 1 };
		streams[i] = (struct ps_stream){
			.source = told[i].source,
			.id = i + 1,
			.cpu = told[i].cpu,
			.tid = told[i].tid,
			.is_leader = true,
			.fd = words_fd(words, sizeof(words)),
		};
		by_id[i] = &streams[i];
	}
	ps_coverage_prepare(&session, nr_cpus);
}

static void forget(void)
{
	for (size_t i = 0; i < session.nr_streams; i++)
		close(streams[i].fd);
	first.group = second.group = 0;
}

static struct ps_count count_of(const struct ps_source *source)
{
	struct ps_count count;
	for (size_t i = 0; i < session.nr_streams; i++)
		lseek(streams[i].fd, 0, SEEK_SET);
	ps_session_count(&session, source, &count);
	return count;
}

#define BUILD(nr_cpus, ...)                                                                        \
	build((const struct told[]){ __VA_ARGS__ },                                                \
	      sizeof((const struct told[]){ __VA_ARGS__ }) / sizeof(struct told), nr_cpus)

/** The count of a thread that ran for so long on each of two CPUs, where it was enabled for so long. */
static struct ps_count count_two(uint64_t enabled_0, uint64_t running_0, uint64_t enabled_1,
				 uint64_t running_1)
{
	BUILD(2, { 0, 7, &first, 10, enabled_0, running_0 },
	      { 1, 7, &first, 20, enabled_1, running_1 });
	struct ps_count count = count_of(&first);
	ASSERT_TRUE(count.is_valid);
	ASSERT_EQ(count.value, 30);
	ASSERT_EQ(count.running_ns, running_0 + running_1);
	forget();
	return count;
}

TEST(coverage, a_thread_ran_on_all_cpus_together_for_as_long_as_on_each_it_was_enabled)
{
	struct ps_count count = count_two(5701600, 4437168, 5701600, 1264432);
	ASSERT_EQ(count.enabled_ns, 5701600);
	ASSERT_EQ(count.slack_ns, 0);
}

TEST(coverage, each_nanosecond_that_is_missing_is_told)
{
	struct ps_count count = count_two(5701600, 4437167, 5701600, 1264432);
	ASSERT_EQ(count.running_ns, 5701599);
	ASSERT_EQ(count.enabled_ns, 5701600);
	count = count_two(10000 * MS, 9000 * MS, 10000 * MS, 910 * MS);
	ASSERT_EQ(count.enabled_ns - count.running_ns, 90 * MS);
	ASSERT_EQ(count.slack_ns, 0);
}

/** The one on CPU 1 was read 100 ns later. */
TEST(coverage, what_runs_while_it_is_read_could_count_for_as_long_as_what_was_read_first)
{
	struct ps_count count = count_two(1000, 400, 1100, 650);
	ASSERT_EQ(count.enabled_ns, 1050);
	ASSERT_EQ(count.slack_ns, 50);
	count = count_two(1000, 400, 1100, 590);
	ASSERT_EQ(count.enabled_ns, 1000);
	ASSERT_EQ(count.slack_ns, 100);
}

/** Those on CPU 0 were enabled while the thread ran there for 30 ns more. */
TEST(coverage, what_ran_before_all_were_enabled_is_not_missing)
{
	BUILD(2, { 0, 7, &first, 1, 1030, 130 }, { 1, 7, &first, 1, 1000, 870 });
	streams[0].ahead_ns = 30;
	struct ps_count count = count_of(&first);
	ASSERT_EQ(count.enabled_ns, 1000);
	ASSERT_EQ(count.running_ns, 1000);
	ASSERT_EQ(count.slack_ns, 30);
	forget();
}

TEST(coverage, how_long_one_was_enabled_before_the_others_is_read_from_it)
{
	BUILD(2, { 0, 7, &first, 1, 30, 30 }, { 1, 7, &first, 1, 20, 0 });
	ps_coverage_enabled(&session);
	ASSERT_EQ(streams[0].ahead_ns, 30);
	ASSERT_EQ(streams[1].ahead_ns, 0);
	forget();
}

TEST(coverage, of_several_threads_it_is_their_sum)
{
	BUILD(2, { 0, 7, &first, 1, 100, 60 }, { 0, 8, &first, 2, 1000, 0 },
	      { 1, 7, &first, 3, 100, 40 }, { 1, 8, &first, 4, 1000, 850 });
	ASSERT_EQ(streams[1].span, PS_SPAN_ALL | PS_SPAN_FIRST);
	ASSERT_EQ(streams[2].span, PS_SPAN_ALL | PS_SPAN_LAST);
	struct ps_count count = count_of(&first);
	ASSERT_EQ(count.value, 10);
	ASSERT_EQ(count.enabled_ns, 1100);
	ASSERT_EQ(count.running_ns, 950);
	forget();
}

TEST(coverage, of_one_cpu_the_kernel_tells_it)
{
	BUILD(1, { 0, 7, &first, 1, 100, 60 });
	struct ps_count count = count_of(&first);
	ASSERT_EQ(count.enabled_ns, 100);
	ASSERT_EQ(count.slack_ns, 0);
	forget();
}

TEST(coverage, members_of_a_group_have_that_of_their_leader)
{
	BUILD(2, { 0, 7, &first, 0, 0, 0 }, { 1, 7, &first, 0, 0, 0 }, { 0, 7, &second, 0, 0, 0 },
	      { 1, 7, &second, 0, 0, 0 });
	forget();
	first.group = second.group = 1;
	for (size_t cpu = 0; cpu < 2; cpu++) {
		// How many, enabled, running, value and id of each.
		const uint64_t words[] = { 2, 100, cpu ? 30 : 60, 5, cpu + 1, 6, cpu + 3 };
		streams[cpu].fd = words_fd(words, sizeof(words));
		streams[cpu].layout.read_format = PERF_FORMAT_GROUP;
		streams[cpu + 2].is_leader = false;
		streams[cpu + 2].fd = -1;
	}
	struct ps_count counts[2];
	ps_session_count_all(&session, counts);
	for (size_t i = 0; i < 2; i++) {
		ASSERT_TRUE(counts[i].is_valid);
		ASSERT_EQ(counts[i].value, i ? 12 : 10);
		ASSERT_EQ(counts[i].enabled_ns, 100);
		ASSERT_EQ(counts[i].running_ns, 90);
	}
	forget();
}

static bool is_marked(void)
{
	bool is_marked = false;
	for (size_t i = 0; i < session.nr_streams; i++)
		is_marked |= streams[i].span;
	forget();
	return is_marked;
}

TEST(coverage, is_summed_only_where_each_thread_is_followed_to_each_cpu)
{
	BUILD(2, { 0, 7, &first, 0, 0, 0 }, { 1, 7, &first, 0, 0, 0 });
	ASSERT_TRUE(is_marked());
	BUILD(3, { 0, 7, &first, 0, 0, 0 }, { 1, 7, &first, 0, 0, 0 });
	ASSERT_FALSE(is_marked());
	// Thread 8 ended before it was opened on CPU 1.
	BUILD(2, { 0, 7, &first, 0, 0, 0 }, { 0, 8, &first, 0, 0, 0 }, { 1, 7, &first, 0, 0, 0 });
	ASSERT_FALSE(is_marked());
	BUILD(2, { 0, 7, &first, 0, 0, 0 }, { 0, 8, &first, 0, 0, 0 }, { 0, 9, &first, 0, 0, 0 },
	      { 1, 7, &first, 0, 0, 0 });
	ASSERT_FALSE(is_marked());
	// CPUs themselves, and threads on any; the session's own.
	BUILD(2, { 0, -1, &first, 0, 0, 0 }, { 1, -1, &first, 0, 0, 0 });
	ASSERT_FALSE(is_marked());
	BUILD(1, { -1, 7, &first, 0, 0, 0 });
	ASSERT_FALSE(is_marked());
	BUILD(1, { 0, 7, NULL, 0, 0, 0 });
	ASSERT_FALSE(is_marked());
}

/** Two threads on two CPUs of more, each enabled for as long as its thread ran, wherever that was. */
TEST(coverage, of_some_cpus_it_is_of_the_time_in_which_the_own_event_ran)
{
	// The session's own were enabled 10 ms earlier, or are read 10 ms later.
	BUILD(4, { 0, 1, NULL, 0, 910 * MS, 610 * MS }, { 0, 2, NULL, 0, 1010 * MS, 710 * MS },
	      { 1, 1, NULL, 0, 910 * MS, 300 * MS }, { 1, 2, NULL, 0, 1010 * MS, 300 * MS },
	      // Half of its time; thread 1 was gone.
	      { 0, 2, &first, 70, 1000 * MS, 350 * MS }, { 1, 2, &first, 30, 1000 * MS, 150 * MS },
	      // All of it.
	      { 0, 1, &second, 5, 900 * MS, 600 * MS }, { 1, 1, &second, 6, 900 * MS, 300 * MS });
	struct ps_count count = count_of(&first);
	ASSERT_EQ(count.value, 100);
	ASSERT_EQ(count.running_ns, 500 * MS);
	// Whether the thread ran on CPU 1 in those 10 ms is not known; it is right to them.
	ASSERT_EQ(count.enabled_ns, (700 + 290) * MS);
	count = count_of(&second);
	ASSERT_EQ(count.value, 11);
	ASSERT_EQ(count.running_ns, 900 * MS);
	ASSERT_EQ(count.enabled_ns, 900 * MS);
	forget();
}

/** What the coverage is enabled for where a counter ran for @running_ns of @could_ns on one CPU of two. */
static uint64_t enabled_of(uint64_t could_ns, uint64_t running_ns)
{
	BUILD(2, { 0, 1, NULL, 0, 2000 * MS, could_ns },
	      { 0, 1, &first, 7, 2000 * MS, running_ns });
	struct ps_count count = count_of(&first);
	forget();
	return count.enabled_ns;
}

/** The kernel starts and stops two events of one thread some microseconds apart. */
TEST(coverage, short_gap_is_no_turn_of_another_counter)
{
	ASSERT_EQ(enabled_of(100 * MS, 99 * MS), 99 * MS);
	ASSERT_EQ(enabled_of(100 * MS, 99 * MS - 1), 100 * MS);
	ASSERT_EQ(enabled_of(MS, MS - 50000), MS - 50000);
	ASSERT_EQ(enabled_of(MS, MS - 50001), MS);
}

TEST(coverage, what_is_between_two_reads_is_never_covered_more_than_wholly)
{
	const struct ps_count before = { 10, 1000, 500, 0, 1, 0, true };
	const struct ps_count later = { 30, 1600, 800, 0, 5, 0, true };
	struct ps_count between = ps_count_between(&before, &later);
	ASSERT_EQ(between.value, 20);
	ASSERT_EQ(between.enabled_ns, 600);
	ASSERT_EQ(between.running_ns, 300);
	ASSERT_EQ(between.lost, 4);
	ASSERT_TRUE(between.is_valid);
	const struct ps_count shorter = { 10, 990, 500, 0, 1, 0, true };
	between = ps_count_between(&before, &shorter);
	ASSERT_EQ(between.enabled_ns, 0);
	ASSERT_EQ(between.running_ns, 0);
}

TEST(coverage, what_may_have_been_missing_before_is_not_missing_since)
{
	const struct ps_count before = { .enabled_ns = 1000, .running_ns = 1000, .slack_ns = 50 };
	const struct ps_count later = { .enabled_ns = 2060, .running_ns = 2000, .slack_ns = 5 };
	struct ps_count between = ps_count_between(&before, &later);
	ASSERT_EQ(between.running_ns, 1000);
	ASSERT_EQ(between.enabled_ns, 1010);
	const struct ps_count whole = { .enabled_ns = 2040, .running_ns = 2000 };
	between = ps_count_between(&before, &whole);
	ASSERT_EQ(between.enabled_ns, 1000);
}

/** What is held back does not count, and the kernel does not say what it would have counted. */
TEST(coverage, what_was_held_back_is_no_count)
{
	BUILD(2, { 0, 7, &first, 5, 100, 60 }, { 1, 7, &first, 6, 100, 40 });
	const struct ps_count before = count_of(&first);
	struct ps_count now = count_of(&first);
	ASSERT_TRUE(ps_count_between(&before, &now).is_valid);
	streams[1].throttled = 3;
	now = count_of(&first);
	ASSERT_EQ(now.throttled, 3);
	ASSERT_FALSE(ps_count_between(&before, &now).is_valid);
	ASSERT_TRUE(ps_count_between(&now, &now).is_valid);
	forget();
}
