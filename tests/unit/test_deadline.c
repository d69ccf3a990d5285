// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/deadline.h>

TEST(deadline, is_due_one_period_after_the_start)
{
	struct ps_deadline deadline = ps_deadline_start(100, 1000);
	ASSERT_FALSE(ps_deadline_take(&deadline, 1099));
	ASSERT_TRUE(ps_deadline_take(&deadline, 1100));
	ASSERT_FALSE(ps_deadline_take(&deadline, 1100));
}

TEST(deadline, does_not_drift_when_taken_late)
{
	struct ps_deadline deadline = ps_deadline_start(100, 1000);
	ASSERT_TRUE(ps_deadline_take(&deadline, 1190));
	ASSERT_FALSE(ps_deadline_take(&deadline, 1199));
	ASSERT_TRUE(ps_deadline_take(&deadline, 1200));
	ASSERT_EQ(deadline.next_ns, 1300);
}

TEST(deadline, missed_periods_are_passed_over_and_keep_the_phase)
{
	struct ps_deadline deadline = ps_deadline_start(100, 1000);
	ASSERT_TRUE(ps_deadline_take(&deadline, 1555));
	ASSERT_FALSE(ps_deadline_take(&deadline, 1599));
	ASSERT_TRUE(ps_deadline_take(&deadline, 1600));
}

TEST(deadline, without_a_period_is_never_due)
{
	struct ps_deadline deadline = ps_deadline_start(0, 1000);
	ASSERT_FALSE(ps_deadline_take(&deadline, UINT64_MAX));
	ASSERT_EQ(ps_deadline_limit(&deadline, 5000), 5000);
}

TEST(deadline, limits_a_wake_up_that_is_later)
{
	struct ps_deadline deadline = ps_deadline_start(100, 1000);
	ASSERT_EQ(ps_deadline_limit(&deadline, 5000), 1100);
	ASSERT_EQ(ps_deadline_limit(&deadline, 1050), 1050);
}
