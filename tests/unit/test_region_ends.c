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
