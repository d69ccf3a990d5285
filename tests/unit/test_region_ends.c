// SPDX-License-Identifier: MIT
/** Passes that do not end as they should. */
#include "regions.h"

#include <pthread.h>
#include <sys/wait.h>

static uint64_t faults_so_far(const char *name)
{
	const struct ps_region_sums *sums = sums_of(name);
	return sums ? sums->counted[0].value : 0;
}

static void *pass_after_lost_end(void *region)
{
	ps_region_enter(region); // as if left by longjmp
	for (int i = 0; i < 5; i++) {
		ps_region_enter(region);
		fault(1);
		ps_region_leave(region);
	}
	return NULL;
}

TEST(region_ends, passes_after_a_lost_end_are_incomplete_and_no_calls_of_nothing)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("l");
	pthread_t thread;
	pthread_create(&thread, NULL, pass_after_lost_end, region);
	pthread_join(thread, NULL);
	ASSERT_EQ(sums_of("l")->calls, 0);
	ASSERT_EQ(sums_of("l")->incomplete, 6);
}

TEST(region_ends, what_is_abandoned_takes_its_inner_passes_along)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("b");
	ps_region_enter(region);
	ps_region_enter(region);
	fault(3);
	ps_region_leave(region);
	ps_region_abandon(region, NULL);
	ps_region_enter(region);
	fault(2);
	ps_region_leave(region);
	assert_faults("b", 1, 2);
	ASSERT_EQ(sums_of("b")->incomplete, 2);
}

TEST(region_ends, a_paused_pass_counts_when_it_ends_and_not_what_ran_between)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("p");
	struct ps_region_parts parts = { 0 };
	ps_region_enter(region);
	fault(1);
	ps_region_pause(region, &parts);
	fault(10);
	ps_region_resume(region);
	fault(2);
	ps_region_pause(region, &parts);
	ASSERT_EQ(faults_so_far("p"), 0);
	ps_region_resume(region);
	ps_region_leave_with(region, &parts);
	assert_faults("p", 1, 3);
}

TEST(region_ends, passes_of_one_name_that_interleave_are_each_a_call)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("task");
	struct ps_region_parts parts[3] = { 0 };
	for (int i = 0; i < 3; i++) {
		ps_region_enter(region);
		fault(1);
		ps_region_pause(region, &parts[i]);
	}
	for (int i = 0; i < 3; i++) {
		ps_region_resume(region);
		fault(1);
		ps_region_leave_with(region, &parts[i]);
		assert_faults("task", i + 1, 2 * (i + 1));
	}
	ASSERT_EQ(sums_of("task")->incomplete, 0);
}

TEST(region_ends, a_paused_pass_that_ends_inside_another_is_told_with_that)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("within");
	struct ps_region_parts parts = { 0 };
	ps_region_enter(region);
	fault(3);
	ps_region_pause(region, &parts);
	ps_region_enter(region);
	ps_region_resume(region);
	fault(1);
	ps_region_leave_with(region, &parts);
	ASSERT_EQ(faults_so_far("within"), 0);
	ps_region_leave(region);
	assert_faults("within", 2, 4);
}

TEST(region_ends, what_is_abandoned_after_a_pause_adds_nothing_but_incomplete)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("never");
	struct ps_region_parts parts = { 0 };
	ps_region_enter(region);
	ps_region_enter(region);
	ps_region_leave(region);
	fault(3);
	ps_region_pause(region, &parts);
	ps_region_resume(region);
	fault(2);
	ps_region_abandon(region, &parts);
	const struct ps_region_sums *sums = sums_of("never");
	ASSERT_EQ(sums->calls, 0);
	ASSERT_EQ(sums->incomplete, 2);
	ASSERT_EQ(sums->elapsed_ns, 0);
	ASSERT_FAULTS(sums->counted[0].value, 0);
}

TEST(region_ends, what_began_before_a_configure_is_incomplete_after_it)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("old");
	struct ps_region_parts parts = { 0 };
	ps_region_enter(region);
	ps_region_pause(region, &parts);
	configure("task-clock,page-faults", 0);
	ps_region_resume(region);
	ps_region_leave_with(region, &parts);
	ASSERT_EQ(sums_of("old")->calls, 0);
	ASSERT_EQ(sums_of("old")->incomplete, 1);
	ASSERT_EQ(sums_of("old")->elapsed_ns, 0);
}

TEST(region_ends, what_a_parent_paused_is_incomplete_in_a_child)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("forked");
	struct ps_region_parts parts = { 0 };
	ps_region_enter(region);
	ps_region_pause(region, &parts);
	pid_t child = fork();
	ps_region_resume(region);
	ps_region_leave_with(region, &parts);
	const struct ps_region_sums *sums = sums_of("forked");
	if (!child)
		_exit(!(sums && sums->incomplete == 1 && !sums->calls));
	int status;
	waitpid(child, &status, 0);
	ASSERT_EQ(status, 0);
	ASSERT_EQ(sums->calls, 1);
	ASSERT_EQ(sums->incomplete, 0);
}

TEST(region_ends, what_is_abandoned_is_incomplete_and_counts_nothing)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("a");
	ps_region_enter(region);
	fault(5);
	ps_region_abandon(region, NULL);
	ps_region_enter(region);
	fault(1);
	ps_region_leave(region);
	assert_faults("a", 1, 1);
	ASSERT_EQ(sums_of("a")->incomplete, 1);
}

static void *begin_in_thread(void *region)
{
	ps_region_enter(region);
	return NULL;
}

TEST(region_ends, ends_without_begins_and_begins_without_ends_are_incomplete)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("i");
	ps_region_leave(region);
	pthread_t thread;
	pthread_create(&thread, NULL, begin_in_thread, region);
	pthread_join(thread, NULL);
	ASSERT_EQ(sums_of("i")->calls, 0);
	ASSERT_EQ(sums_of("i")->incomplete, 2);
}
