// SPDX-License-Identifier: MIT
#include "regions.h"

#include <perfscope/monotonic.h>
#include <perfscope/region.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

TEST(regions, nobody_looks_until_configured)
{
	ASSERT_FALSE(ps_regions_are_active());
	ps_region_enter(find("x"));
	ps_region_leave(find("x"));
	perfscope_region_begin("x");
	perfscope_region_end("x");
	ASSERT_NULL(sums_of("x"));
	ASSERT_OK(ps_regions_reset());
	ASSERT_EQ(reading.nr_counters, 0);
	ASSERT_NULL(ps_regions_reading_reason(&reading, 0));
	configure("page-faults", 0);
	ASSERT_TRUE(ps_regions_are_active());
	ASSERT_NULL(sums_of("x"));
}

TEST(regions, one_name_is_one_region_and_some_are_refused)
{
	char name[] = "same";
	ASSERT_TRUE(find("same") == find(name));
	struct ps_region *region;
	char longest[64], longer[65];
	memset(longest, 'n', 63);
	memset(longer, 'n', 64);
	longest[63] = longer[64] = '\0';
	ASSERT_OK(ps_region_find(longest, &region));
	ASSERT_ERROR(ps_region_find(longer, &region), PS_ERROR_USAGE, "longer than 63 bytes");
	ASSERT_ERROR(ps_region_find("", &region), PS_ERROR_USAGE, "a region needs a name");
	ASSERT_ERROR(ps_region_find("run", &region), PS_ERROR_USAGE, "the whole run");
}

TEST(regions, fresh_pages_are_counted_exactly)
{
	configure("page-faults,task-clock,context-switches", 0);
	struct ps_region *region = warm("x");
	for (int i = 0; i < 100; i++) {
		ps_region_enter(region);
		fault(7);
		ps_region_leave(region);
		fault(1);
	}
	assert_faults("x", 100, 700);
}

TEST(regions, an_inner_region_counts_in_the_outer_too)
{
	configure("page-faults", 0);
	struct ps_region *outer = warm("outer"), *inner = warm("inner");
	ps_region_enter(outer);
	fault(3);
	ps_region_enter(inner);
	fault(5);
	ps_region_leave(inner);
	fault(2);
	ps_region_leave(outer);
	assert_faults("outer", 1, 10);
	assert_faults("inner", 1, 5);
}

static void recurse(struct ps_region *region, int depth)
{
	ps_region_enter(region);
	fault(1);
	if (depth > 1)
		recurse(region, depth - 1);
	ps_region_leave(region);
}

TEST(regions, recursion_counts_once_in_values_and_each_time_in_calls)
{
	configure("page-faults", 0);
	recurse(warm("r"), 20);
	assert_faults("r", 20, 20);
}

TEST(regions, many_names_are_kept_apart)
{
	configure("page-faults", 0);
	char name[16];
	for (int i = 0; i < 300; i++) {
		sprintf(name, "n%d", i);
		warm(name);
	}
	for (int i = 0; i < 300; i++) {
		sprintf(name, "n%d", i);
		ps_region_enter(find(name));
		fault(i % 5);
		ps_region_leave(find(name));
	}
	for (int i = 0; i < 300; i++) {
		sprintf(name, "n%d", i);
		assert_faults(name, 1, i % 5);
	}
}

static void *fault_in_thread(void *argument)
{
	struct ps_region *region = find("t");
	ps_region_enter(region);
	ps_region_leave(region); // the thread's own first pages of stack
	for (int i = 0; i < 50; i++) {
		ps_region_enter(region);
		fault(4);
		ps_region_leave(region);
	}
	return argument;
}

TEST(regions, threads_count_their_own)
{
	configure("page-faults", 0);
	warm("t");
	pthread_t threads[8];
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, fault_in_thread, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	const struct ps_region_sums *sums = sums_of("t");
	ASSERT_EQ(sums->calls, 8 * 51);
	// Each thread may fault in one page of its own stack beside.
	ASSERT_TRUE(sums->counted[0].value >= 8 * 200);
	ASSERT_TRUE(sums->counted[0].value <= 8 * 202 ||
		    are_faults(sums->counted[0].value, 8 * 200));
}

static void *touch_in_thread(void *argument)
{
	fault(500);
	return argument;
}

static uint64_t count_born(unsigned int flags)
{
	configure("page-faults", flags);
	struct ps_region *region = warm("born");
	ps_region_enter(region);
	pthread_t thread;
	pthread_create(&thread, NULL, touch_in_thread, NULL);
	pthread_join(thread, NULL);
	ps_region_leave(region);
	return sums_of("born")->counted[0].value;
}

TEST(regions, threads_born_in_a_region_count_when_inherited)
{
	ASSERT_TRUE(count_born(0) < 100);
	ASSERT_TRUE(count_born(PS_GROUP_INHERIT) >= 500);
}

/** A child as clone() makes it, of which no handler of fork is told. */
static pid_t fork_unnoticed(void)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void check_child(pid_t (*make_child)(void))
{
	configure("page-faults,task-clock", 0);
	struct ps_region *region = warm("f");
	ps_region_enter(region);
	ps_region_leave(region);
	ps_region_enter(region);
	fault(3);
	int nr_descriptors = count_descriptors();
	pid_t child = make_child();
	if (!child) {
		ps_region_leave(region); // its begin is the parent's
		// Those of the parent are closed, and two of its own are there.
		if (count_descriptors() != nr_descriptors)
			_exit(1);
		if (sums_of("f")->calls || sums_of("f")->incomplete != 1)
			_exit(3);
		warm("f");
		ps_region_enter(region);
		fault(20);
		ps_region_leave(region);
		const struct ps_region_sums *sums = sums_of("f");
		_exit(sums->calls == 1 && sums->counted[0].value == 20 ? 0 : 2);
	}
	int status;
	waitpid(child, &status, 0);
	ASSERT_EQ(status, 0);
	ps_region_leave(region);
	ASSERT_EQ(sums_of("f")->calls, 2);
	ASSERT_EQ(sums_of("f")->incomplete, 0);
	// What the fork left to be copied is behind us.
	ASSERT_OK(ps_regions_reset());
	ps_region_enter(region);
	fault(3);
	ps_region_leave(region);
	assert_faults("f", 1, 3);
}

TEST(regions, a_child_of_fork_counts_its_own_alone)
{
	check_child(fork);
}

TEST(regions, a_child_that_no_handler_is_told_of_counts_its_own_alone)
{
	check_child(fork_unnoticed);
}

TEST(regions, another_configuration_starts_from_zero)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("c");
	ps_region_enter(region);
	ps_region_leave(region);
	configure("task-clock,page-faults", 0);
	ASSERT_NULL(sums_of("c"));
	ps_region_enter(region);
	fault(2);
	ps_region_leave(region);
	ASSERT_EQ(sums_of("c")->counted[1].value, 2);
	ASSERT_STR_EQ(reading.counters[0].name, "task-clock");
	ASSERT_EQ(reading.nr_counters, 2);
}

TEST(regions, a_refused_counter_is_invalid_and_strict_makes_it_an_error)
{
	ASSERT_OK(ps_counters_parse("page-faults,task-clock", counters, &nr_counters));
	counters[1].config = 4711;
	ASSERT_ERROR(ps_regions_configure(counters, 2, PS_GROUP_STRICT, false),
		     PS_ERROR_UNSUPPORTED, "task-clock: this kernel has no such counter");
	ASSERT_OK(ps_regions_configure(counters, 2, 0, false));
	ASSERT_NULL(ps_regions_reading_reason(read_anew(), 0));
	ASSERT_STR_EQ(ps_regions_reading_reason(&reading, 1), "this kernel has no such counter");
	struct ps_region *region = warm("s");
	ps_region_enter(region);
	fault(2);
	ps_region_leave(region);
	ASSERT_EQ(sums_of("s")->invalid, 2);
	ASSERT_FAULTS(sums_of("s")->counted[0].value, 2);
}

TEST(regions, task_clock_and_time_are_those_of_the_thread)
{
	configure("task-clock", 0);
	struct ps_region *region = warm("clock");
	ps_region_enter(region);
	usleep(20000);
	ps_region_leave(region);
	const struct ps_region_sums *sums = sums_of("clock");
	ASSERT_TRUE(sums->elapsed_ns >= 20 * PS_NS_PER_MS);
	ASSERT_TRUE(sums->counted[0].value < 10 * PS_NS_PER_MS);
}
