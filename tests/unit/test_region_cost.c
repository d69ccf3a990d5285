// SPDX-License-Identifier: MIT
/** What an empty pass counts by itself. */
#include "regions.h"

#include <perfscope/monotonic.h>

/** An empty pass, and beside it others, of which nothing is measured. */
static bool pass_empty(struct ps_region *region, void *other)
{
	ps_region_enter(other);
	ps_region_enter(region);
	ps_region_leave(region);
	ps_region_leave(other);
	return true;
}

static bool pass_nothing(struct ps_region *region, void *unused)
{
	return true;
}

static bool fail_to_pass(struct ps_region *region, void *unused)
{
	return false;
}

/** Every pass is of another thread record. */
static bool configure_within(struct ps_region *region, void *unused)
{
	configure("page-faults", 0);
	return pass_empty(region, find("other"));
}

TEST(region_cost, the_cost_of_an_empty_pass_is_measured)
{
	configure("task-clock,page-faults", 0);
	ASSERT_EQ(read_anew()->cost.calls, 0);
	ASSERT_TRUE(ps_regions_calibrate(find("(empty)"), pass_empty, find("other")));
	const struct ps_region_sums *cost = &read_anew()->cost;
	ASSERT_EQ(cost->calls, 1001);
	ASSERT_TRUE(cost->counted[0].value > 0 && cost->counted[0].value < 100000);
	ASSERT_EQ(cost->counted[1].value, 0);
	ASSERT_TRUE(cost->elapsed_ns > 0);
	ASSERT_NULL(sums_of("(empty)"));
	ASSERT_EQ(sums_of("other")->calls, 1001);
}

TEST(region_cost, a_region_that_is_measured_keeps_its_own_passes)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("kept");
	ps_region_enter(region);
	ASSERT_TRUE(ps_regions_calibrate(region, pass_empty, find("other")));
	fault(3);
	ps_region_leave(region);
	ASSERT_EQ(sums_of("kept")->calls, 1);
	// The measurement's own memory is of the pass that is open meanwhile.
	ASSERT_TRUE(sums_of("kept")->counted[0].value >= 3);
}

TEST(region_cost, what_is_no_empty_pass_leaves_the_cost_unknown)
{
	ps_region_pass_function *functions[] = { pass_nothing, fail_to_pass, configure_within };
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		configure("task-clock", 0);
		ASSERT_FALSE(ps_regions_calibrate(find("(empty)"), functions[i], NULL));
		ASSERT_EQ(read_anew()->cost.calls, 0);
	}
}

TEST(region_cost, the_cost_is_taken_off_for_each_call)
{
	struct ps_region_sums cost = { .elapsed_ns = 100, .counted = { { 7 }, { 10 }, { 20 } } };
	struct ps_region_sums sums = { .calls = 10,
				       .elapsed_ns = 5000,
				       .counted = {
					       { 75, 50, 50 }, { 90, 50, 50 }, { 150, 40, 10 } } };
	ps_regions_take_off(&sums, &cost);
	ASSERT_EQ(sums.elapsed_ns, 4000);
	ASSERT_EQ(sums.counted[0].value, 5);
	ASSERT_EQ(sums.counted[1].value, 0);
	ASSERT_EQ(sums.counted[2].value, 100);
}
