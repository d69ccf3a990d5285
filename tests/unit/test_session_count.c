// SPDX-License-Identifier: MIT
/** Sessions: what counters count, and where one is missing. */
#include "test.h"

#include "session_records.h"

TEST(session, a_counter_that_is_not_there_leaves_the_rest_of_its_group)
{
	clear_sources();
	struct ps_source *missing = add_source("cycles", PERF_TYPE_HARDWARE, 99);
	// Leads in its place; the one that is asked for below is a member.
	struct ps_source *other =
		add_source("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	struct ps_source *counted = add_tracepoint("sys_enter_getppid");
	counted->is_sampling = false;
	counted->attr.sample_type = counted->attr.sample_period = 0;
	for (size_t i = 0; i < list.nr_sources; i++) {
		sources[i].group = 1;
		sources[i].attr.read_format = PERF_FORMAT_GROUP;
	}
	struct ps_target target = own_thread();
	open_session(&target, 0);
	ASSERT_TRUE(missing->is_missing);
	ASSERT_STR_EQ(missing->missing_reason, "no hardware PMU here; nearest: task-clock");
	ASSERT_FALSE(counted->is_missing);
	ASSERT_OK(ps_session_enable(session));
	call_getppid(123);
	drain();
	struct ps_count count, other_count;
	ps_session_count(session, missing, &count);
	ASSERT_FALSE(count.is_valid);
	ps_session_count(session, counted, &count);
	ASSERT_TRUE(count.is_valid);
	ASSERT_EQ(count.value, 123);
	ps_session_count(session, other, &other_count);
	ASSERT_TRUE(other_count.is_valid);
	// One read of one group: on and off together.
	ASSERT_EQ(other_count.enabled_ns, count.enabled_ns);
	close_session();
}

/** A descriptor from which @nr words are read. */
static int words_fd(size_t nr, const uint64_t *words)
{
	int fd = memfd_create("words", MFD_CLOEXEC);
	ASSERT_EQ(write(fd, words, nr * sizeof(*words)), nr * sizeof(*words));
	lseek(fd, 0, SEEK_SET);
	return fd;
}

#define MS 1000000ULL
#define WORDS_FD(...) words_fd(sizeof((uint64_t[]){ __VA_ARGS__ }) / 8, (uint64_t[]){ __VA_ARGS__ })

TEST(session, counts_are_summed_and_one_that_fails_makes_them_invalid)
{
	clear_sources();
	struct ps_source *source = add_source("cycles", PERF_TYPE_HARDWARE, 0);
	struct ps_sample_layout single = { .read_format = PERF_FORMAT_LOST };
	struct ps_sample_layout group = { .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_LOST };
	struct ps_stream streams[] = {
		{ .fd = -1 }, // the session's own
		{ .source = source, .id = 4, .layout = single },
		{ .source = source, .id = 5, .layout = group },
	};
	struct ps_session counted = { .streams = streams, .nr_streams = 3, .has_lost_count = true };
	streams[1].fd = WORDS_FD(10, 100, 50, 4, 1); // value, enabled, running, id, lost
	streams[2].fd = WORDS_FD(2, 200, 200, 99, 8, 0, 1ULL << 63, 5, 2);
	struct ps_count count;
	ps_session_count(&counted, source, &count);
	ASSERT_TRUE(count.is_valid);
	ASSERT_TRUE(count.value == (1ULL << 63) + 10);
	ASSERT_EQ(count.enabled_ns, 300);
	ASSERT_EQ(count.running_ns, 250);
	ASSERT_EQ(count.lost, 3);
	// A second read is at the end and gives 0 bytes, as a pinned event that failed for good.
	lseek(streams[1].fd, 0, SEEK_SET);
	ps_session_count(&counted, source, &count);
	ASSERT_EQ(count.value, 10);
	ASSERT_FALSE(count.is_valid);
	close(streams[1].fd);
	close(streams[2].fd);
	clear_sources();
}

/** Each descriptor can be read once: who reads a group for each of its members finds nothing the second time. */
TEST(session, group_is_read_at_once)
{
	clear_sources();
	struct ps_source *cycles = add_source("cycles", PERF_TYPE_HARDWARE, 0);
	struct ps_source *faults = add_source("faults", PERF_TYPE_SOFTWARE, 0);
	struct ps_source *alone = add_source("alone", PERF_TYPE_SOFTWARE, 0);
	cycles->group = faults->group = 1;
	struct ps_sample_layout group = { .read_format = PERF_FORMAT_GROUP };
	// cycles are not on CPU 1: faults lead there.
	struct ps_stream streams[] = {
		{ .source = cycles,
		  .id = 1,
		  .cpu = 0,
		  .tid = -1,
		  .layout = group,
		  .is_leader = true },
		{ .source = faults, .id = 2, .cpu = 0, .tid = -1, .layout = group, .fd = -1 },
		{ .source = faults,
		  .id = 3,
		  .cpu = 1,
		  .tid = -1,
		  .layout = group,
		  .is_leader = true },
		{ .source = alone, .id = 4, .cpu = 0, .tid = -1, .is_leader = true },
	};
	struct ps_stream *by_id[] = { &streams[0], &streams[1], &streams[2], &streams[3] };
	struct ps_session counted = { .sources = &list,
				      .streams = streams,
				      .nr_streams = 4,
				      .by_id = by_id,
				      .nr_by_id = 4,
				      .id_base = 1 };
	streams[0].fd =
		WORDS_FD(2, 100, 90, 70, 1, 7, 2); // nr, enabled, running, value and id of each
	streams[2].fd = WORDS_FD(1, 200, 200, 5, 3);
	streams[3].fd = WORDS_FD(9, 300, 300, 4);
	struct ps_count counts[3];
	ps_session_count_all(&counted, counts);
	ASSERT_TRUE(counts[0].is_valid && counts[1].is_valid && counts[2].is_valid);
	ASSERT_EQ(counts[0].value, 70);
	ASSERT_EQ(counts[0].running_ns, 90);
	ASSERT_EQ(counts[1].value, 12);
	ASSERT_EQ(counts[1].enabled_ns, 300);
	ASSERT_EQ(counts[2].value, 9);
	// A leader that tells nothing leaves no member of its group whole.
	lseek(streams[0].fd, 0, SEEK_SET);
	ps_session_count_all(&counted, counts);
	ASSERT_FALSE(counts[0].is_valid || counts[1].is_valid || counts[2].is_valid);
	close(streams[0].fd);
	close(streams[2].fd);
	close(streams[3].fd);
	clear_sources();
}

TEST(session, what_the_kernel_alone_makes_is_counted_in_the_kernel)
{
	clear_sources();
	struct ps_source *source =
		add_source("context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
	source->attr.exclude_kernel = 1;
	struct ps_target target = own_thread();
	open_session(&target, 0);
	ASSERT_OK(ps_session_enable(session));
	for (int i = 0; i < 5; i++)
		usleep(1000);
	ps_session_disable(session);
	struct ps_count count;
	ps_session_count(session, source, &count);
	// Each sleep is a switch; on a busy machine there are others.
	ASSERT_TRUE(count.value >= 5);
	close_session();
}

TEST(session, a_thread_that_changes_its_cpu_is_covered_wholly)
{
	clear_sources();
	struct ps_source *source =
		add_source("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	struct ps_target target = own_thread();
	int cpus[] = { 0, 1 };
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP("needs two CPUs");
	target.cpus = cpus;
	target.nr_cpus = 2;
	target.inherit = true;
	cpu_set_t before;
	sched_getaffinity(0, sizeof(before), &before);
	open_session(&target, 0);
	ASSERT_OK(ps_session_enable(session));
	struct ps_count first, count;
	for (int cpu = 0; cpu < 2; cpu++) {
		pin_to(cpu);
		call_getppid(10000);
		if (cpu == 0)
			ps_session_count(session, source, &first);
	}
	ps_session_count(session, source, &count);
	sched_setaffinity(0, sizeof(before), &before);
	ASSERT_EQ(first.enabled_ns, first.running_ns);
	ASSERT_EQ(count.enabled_ns, count.running_ns);
	close_session();
}
