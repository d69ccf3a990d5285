// SPDX-License-Identifier: MIT
/** Passes that do not end as they should. */
#include "regions.h"

#include <pthread.h>

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
	ps_region_abandon(region);
	ps_region_enter(region);
	fault(2);
	ps_region_leave(region);
	assert_faults("b", 1, 2);
	ASSERT_EQ(sums_of("b")->incomplete, 2);
}

TEST(region_ends, a_paused_pass_does_not_count_and_goes_on_in_another_thread)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("p");
	ps_region_enter(region);
	fault(1);
	ps_region_pause(region);
	fault(10);
	ps_region_resume(region);
	fault(2);
	ps_region_leave(region);
	assert_faults("p", 1, 3);
}

TEST(region_ends, passes_of_one_name_that_interleave_are_each_a_call)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("task");
	for (int i = 0; i < 3; i++) {
		ps_region_enter(region);
		fault(1);
		ps_region_pause(region);
	}
	for (int i = 0; i < 3; i++) {
		ps_region_resume(region);
		fault(1);
		ps_region_leave(region);
	}
	assert_faults("task", 3, 6);
	ASSERT_EQ(sums_of("task")->incomplete, 0);
}

TEST(region_ends, what_is_abandoned_is_incomplete_and_counts_nothing)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("a");
	ps_region_enter(region);
	fault(5);
	ps_region_abandon(region);
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
