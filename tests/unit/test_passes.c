// SPDX-License-Identifier: MIT
#include "test.h"

#include "pass_samples.h"
#include <stdlib.h>

TEST(passes, pass_counts_from_its_begin_to_its_end)
{
	create(PS_PASS_THREAD, 1, 0);
	struct ps_pass pass;
	begin(7, 0, 100);
	ASSERT_TRUE(end(7, 2, 130, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 30);
	ASSERT_EQ(pass.counts[PS_PASS_RUNNING_NS], 300);
	ASSERT_EQ(pass.begin_ns, 10000);
	ASSERT_EQ(pass.end_ns, 13000);
	ASSERT_EQ(pass.tid, 7);
	ASSERT_EQ(pass.cpu, 2);
	ASSERT_EQ(pass.calls, 1);
	begin(7, 0, 200);
	ASSERT_TRUE(end(7, 0, 205, &pass));
	const struct ps_pass_sums *sums = ps_passes_sums(passes, 0);
	ASSERT_EQ(sums->calls, 2);
	ASSERT_EQ(sums->incomplete, 0);
	ASSERT_EQ(sums->counts[COUNTER], 35);
	ASSERT_EQ(sums->elapsed_ns, 3500);
	ps_passes_destroy(passes);
}

TEST(passes, recursion_counts_once_and_calls_each_time)
{
	create(PS_PASS_THREAD, 1, 0);
	struct ps_pass pass;
	begin(7, 0, 10);
	begin(7, 0, 20);
	begin(7, 0, 30);
	ASSERT_FALSE(end(7, 0, 40, &pass));
	ASSERT_FALSE(end(7, 0, 50, &pass));
	ASSERT_EQ(ps_passes_sums(passes, 0)->calls, 0);
	ASSERT_EQ(ps_passes_sums(passes, 0)->open, 3);
	ASSERT_TRUE(end(7, 0, 60, &pass));
	ASSERT_EQ(pass.calls, 3);
	ASSERT_EQ(pass.counts[COUNTER], 50);
	ASSERT_EQ(ps_passes_sums(passes, 0)->calls, 3);
	ASSERT_EQ(ps_passes_sums(passes, 0)->open, 0);
	ps_passes_destroy(passes);
}

TEST(passes, end_without_begin_is_incomplete)
{
	create(PS_PASS_THREAD, 1, 0);
	struct ps_pass pass;
	begin(7, 0, 10);
	ASSERT_FALSE(end(8, 0, 20, &pass));
	ASSERT_EQ(nr_incomplete(), 1);
	ASSERT_TRUE(end(7, 0, 30, &pass));
	ASSERT_FALSE(end(7, 0, 40, &pass));
	ASSERT_EQ(nr_incomplete(), 2);
	ASSERT_EQ(ps_passes_sums(passes, 0)->calls, 1);
	ps_passes_destroy(passes);
}

TEST(passes, exit_makes_what_is_open_incomplete)
{
	create(PS_PASS_THREAD_CPU, 1, 0);
	struct ps_pass pass;
	begin(7, 0, 10);
	begin(7, 0, 20);
	ASSERT_FALSE(end(7, 0, 25, &pass));
	ASSERT_EQ(ps_passes_sums(passes, 0)->open, 2);
	ps_passes_exit(passes, 7);
	ASSERT_EQ(nr_incomplete(), 2);
	ASSERT_EQ(ps_passes_sums(passes, 0)->open, 0);
	ASSERT_EQ(ps_passes_nr_threads(passes), 0);
	// A new thread of the same number starts from nothing.
	begin(7, 0, 3);
	ASSERT_TRUE(end(7, 0, 5, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 2);
	ps_passes_destroy(passes);
}

TEST(passes, finish_makes_what_is_open_incomplete)
{
	create(PS_PASS_CPU, 1, 0);
	begin(7, 0, 10);
	begin(8, 1, 10);
	ASSERT_EQ(ps_passes_sums(passes, 0)->open, 2);
	ps_passes_finish(passes);
	ASSERT_EQ(nr_incomplete(), 2);
	ASSERT_EQ(ps_passes_sums(passes, 0)->open, 0);
	ps_passes_finish(passes);
	ASSERT_EQ(nr_incomplete(), 2);
	ps_passes_destroy(passes);
}

TEST(passes, counter_of_a_cpu_counts_for_who_runs_there)
{
	create(PS_PASS_CPU, 1, 0);
	struct ps_pass pass;
	leave(9, 0, 50); // 9 ran until here
	begin(7, 0, 60);
	leave(7, 0, 65);
	begin(8, 0, 70);
	leave(8, 0, 170);
	ASSERT_TRUE(end(7, 0, 171, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 6);
	leave(7, 0, 200);
	ASSERT_TRUE(end(8, 0, 210, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 110);
	ASSERT_EQ(ps_passes_nr_threads(passes), 0);
	ps_passes_destroy(passes);
}

TEST(passes, counter_of_a_cpu_follows_a_thread_to_another)
{
	create(PS_PASS_CPU, 1, 0);
	struct ps_pass pass;
	begin(7, 0, 60);
	leave(7, 0, 65);
	leave(9, 1, 1000);
	leave(7, 1, 1020);
	leave(0, 0, 900);
	ASSERT_TRUE(end(7, 0, 903, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 5 + 20 + 3);
	ps_passes_destroy(passes);
}

TEST(passes, idle_threads_of_two_cpus_are_two)
{
	create(PS_PASS_CPU, 1, 0);
	struct ps_pass pass;
	begin(0, 0, 10);
	begin(0, 1, 500);
	ASSERT_TRUE(end(0, 0, 11, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 1);
	ASSERT_TRUE(end(0, 1, 507, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 7);
	ps_passes_destroy(passes);
}

TEST(passes, counter_of_a_thread_on_a_cpu_is_added_over_cpus)
{
	create(PS_PASS_THREAD_CPU, 1, 0);
	struct ps_pass pass;
	leave(7, 1, 40); // before the pass, on the CPU to which it comes back in it
	begin(7, 0, 10);
	leave(7, 0, 12);
	leave(7, 1, 43);
	ASSERT_TRUE(end(7, 0, 17, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 2 + 3 + 5);
	ASSERT_EQ(pass.counts[PS_PASS_RUNNING_NS], 100);
	ps_passes_destroy(passes);
}

TEST(passes, loss_makes_what_was_on_the_ring_incomplete)
{
	create(PS_PASS_CPU, 1, 0);
	struct ps_pass pass;
	begin(7, 0, 10); // on the CPU that loses
	begin(8, 1, 10); // runs elsewhere
	begin(9, 1, 20); // left its CPU, and may have come to the one that loses
	leave(9, 1, 30);
	begin(8, 1, 40);
	ps_passes_lost(passes, 0);
	ASSERT_EQ(nr_incomplete(), 2);
	ASSERT_FALSE(end(8, 1, 50, &pass));
	ASSERT_TRUE(end(8, 1, 60, &pass));
	ASSERT_FALSE(end(7, 0, 70, &pass));
	ASSERT_EQ(nr_incomplete(), 3);
	ps_passes_destroy(passes);
}

TEST(passes, pass_that_comes_to_a_cpu_after_its_gap_is_incomplete)
{
	create(PS_PASS_THREAD_CPU, 1, 0);
	struct ps_pass pass;
	leave(7, 0, 100);
	begin(7, 1, 10);
	ps_passes_lost(passes, 0);
	ASSERT_EQ(nr_incomplete(), 0);
	leave(7, 1, 20);
	// What was counted between 100 and 150 may have been before the begin.
	leave(7, 0, 150);
	ASSERT_EQ(nr_incomplete(), 1);
	begin(7, 0, 160);
	ASSERT_TRUE(end(7, 0, 165, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 5);
	ps_passes_destroy(passes);
}

TEST(passes, pass_after_an_end_of_idling_that_was_not_told_is_incomplete)
{
	create(PS_PASS_CPU, 1, 0);
	struct ps_pass pass;
	begin(7, 0, 10);
	leave_to(0, 7, 0, 20);
	leave(0, 0, 50);
	ASSERT_TRUE(end(7, 0, 55, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 15);
	begin(7, 0, 60);
	leave_to(0, 7, 0, 70);
	ASSERT_FALSE(end(7, 0, 90, &pass));
	ASSERT_EQ(nr_incomplete(), 2);
	ps_passes_destroy(passes);
}

TEST(passes, pass_after_a_thread_of_which_nothing_is_told_is_incomplete)
{
	create(PS_PASS_CPU, 1, 0);
	struct ps_pass pass;
	begin(7, 0, 10);
	leave_to(8, 7, 0, 20);
	leave_to(7, 8, 0, 30);
	ASSERT_TRUE(end(7, 0, 40, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 20);
	begin(7, 0, 50);
	leave_to(8, 7, 0, 60);
	// 8 ran, and its end is not told: what it counted would be taken for 7's.
	ASSERT_FALSE(end(7, 0, 80, &pass));
	ASSERT_EQ(nr_incomplete(), 2);
	begin(7, 0, 90);
	leave_to(8, 7, 0, 100);
	leave_to(7, 9, 0, 120); // has the counts of 8
	ASSERT_TRUE(end(7, 0, 125, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 15);
	ps_passes_destroy(passes);
}

TEST(passes, thread_that_was_not_seen_to_leave_is_not_guessed)
{
	enum ps_pass_scope scopes[] = { PS_PASS_THREAD_CPU, PS_PASS_CPU };
	for (int i = 0; i < 2; i++) {
		create(scopes[i], 1, 0);
		struct ps_pass pass;
		begin(7, 0, 10);
		// Its switch on CPU 0 is lost, which is told when something else happens there.
		ASSERT_FALSE(end(7, 1, 20, &pass));
		ASSERT_EQ(nr_incomplete(), 2);
		begin(7, 1, 30);
		leave(7, 1, 35);
		leave(7, 0, 40);
		ASSERT_TRUE(end(7, 1, 45, &pass));
		ASSERT_EQ(ps_passes_sums(passes, 0)->calls, 1);
		ps_passes_destroy(passes);
	}
}

TEST(passes, boundary_that_could_not_be_read_is_incomplete)
{
	create(PS_PASS_THREAD, 2, 0);
	ps_passes_miss(passes, 1);
	ASSERT_EQ(nr_incomplete(), 0);
	ASSERT_EQ(ps_passes_sums(passes, 1)->incomplete, 1);
	ps_passes_destroy(passes);
}

TEST(passes, loss_of_one_threads_ring_leaves_others_alone)
{
	create(PS_PASS_THREAD, 1, 0);
	struct ps_pass pass;
	begin(7, 0, 10);
	begin(8, 1, 10);
	ps_passes_lost(passes, 0);
	ASSERT_TRUE(end(8, 1, 20, &pass));
	ASSERT_EQ(nr_incomplete(), 1);
	ps_passes_destroy(passes);
}

TEST(passes, counter_without_a_value_in_between_is_invalid)
{
	create(PS_PASS_CPU, 1, 0);
	struct ps_pass pass;
	begin(7, 0, 10);
	struct ps_pass_sample sample = at(7, 0, 20);
	sample.is_switch = true;
	sample.invalid = 1;
	ps_passes_sample(passes, &sample);
	ASSERT_TRUE(end(7, 0, 30, &pass));
	ASSERT_EQ(pass.invalid, 1);
	begin(7, 0, 40);
	ASSERT_TRUE(end(7, 0, 45, &pass));
	ASSERT_EQ(pass.invalid, 0);
	ASSERT_EQ(ps_passes_sums(passes, 0)->invalid, 1);
	ps_passes_destroy(passes);
}

TEST(passes, what_waited_for_the_pmu_is_incomplete)
{
	static const enum ps_pass_scope scopes[] = { PS_PASS_THREAD, PS_PASS_CPU };
	struct ps_pass pass;
	for (size_t i = 0; i < PS_ARRAY_SIZE(scopes); i++) {
		create(scopes[i], 1, 0);
		begin(7, 0, 10);
		waited_ns = 1; // an end and a begin may have been there
		ASSERT_FALSE(end(7, 0, 20, &pass));
		ASSERT_EQ(nr_incomplete(), 2);
		begin(7, 0, 30);
		ASSERT_TRUE(end(7, 0, 50, &pass));
		ASSERT_EQ(pass.counts[COUNTER], 20);
		ASSERT_EQ(nr_incomplete(), 2);
		ps_passes_destroy(passes);
	}
}

TEST(passes, who_was_away_while_a_cpu_waited_may_have_been_there)
{
	create(PS_PASS_CPU, 1, 0);
	struct ps_pass pass;
	leave_to(7, 9, 0, 1);
	begin(7, 0, 10);
	leave_to(0, 7, 0, 20);
	waited_ns = 1;
	leave_to(0, 0, 1, 30);
	waited_ns = 0;
	leave_to(7, 0, 0, 40);
	ASSERT_FALSE(end(7, 0, 50, &pass));
	ASSERT_EQ(nr_incomplete(), 2);
	ps_passes_destroy(passes);
}

/** A pass of thread 7 that goes from CPU 0 to CPU 1 and back, while the counters of CPU 0 were enabled @away_ns. */
static bool pass_with_a_stay(uint64_t away_ns)
{
	struct ps_pass pass;
	create(PS_PASS_THREAD_CPU, 1, 0);
	begin(7, 0, 100000);
	leave(7, 0, 200000);
	leave(7, 1, 50000); // which ran 500000 ns
	waited_ns = away_ns;
	bool is_whole = end(7, 0, 300000, &pass);
	ASSERT_EQ(nr_incomplete(), is_whole ? 0 : 2);
	ASSERT_EQ(ps_passes_sums(passes, 0)->counts[COUNTER], is_whole ? 250000 : 0);
	ps_passes_destroy(passes);
	return is_whole;
}

TEST(passes, counters_of_a_cpu_wait_where_the_thread_was_nowhere_counted)
{
	ASSERT_TRUE(pass_with_a_stay(500000));
	ASSERT_TRUE(pass_with_a_stay(600000)); // a switch takes its time
	ASSERT_FALSE(pass_with_a_stay(600001));
}

TEST(passes, counters_of_a_cpu_that_wait_in_one_stay_are_seen_to_the_ns)
{
	struct ps_pass pass;
	create(PS_PASS_THREAD_CPU, 1, 0);
	begin(7, 0, 10);
	waited_ns = 1;
	ASSERT_FALSE(end(7, 0, 20, &pass));
	ASSERT_EQ(nr_incomplete(), 2);
	ps_passes_destroy(passes);
}

TEST(passes, threads_beyond_the_room_are_missed_not_guessed)
{
	create(PS_PASS_THREAD_CPU, 1, 2);
	struct ps_pass pass;
	begin(1, 0, 10);
	begin(2, 1, 10);
	begin(3, 2, 10);
	ASSERT_EQ(nr_incomplete(), 1);
	ASSERT_FALSE(end(3, 2, 20, &pass));
	ASSERT_EQ(nr_incomplete(), 2);
	ASSERT_TRUE(ps_passes_nr_missed(passes) > 0);
	ps_passes_exit(passes, 1);
	ASSERT_EQ(nr_incomplete(), 3);
	// It has room now; what it counted on CPU 2 before is not known.
	begin(3, 1, 5);
	leave(3, 1, 6);
	leave(3, 2, 50);
	ASSERT_EQ(nr_incomplete(), 4);
	ps_passes_destroy(passes);
}

TEST(passes, two_regions_of_one_thread_overlap)
{
	create(PS_PASS_THREAD, 2, 0);
	struct ps_pass pass;
	begin(7, 0, 10);
	struct ps_pass_sample sample = at(7, 0, 15);
	ps_passes_sample(passes, &sample);
	ps_passes_begin(passes, 1, &sample);
	ASSERT_TRUE(end(7, 0, 20, &pass));
	sample = at(7, 0, 40);
	ps_passes_sample(passes, &sample);
	ASSERT_TRUE(ps_passes_end(passes, 1, &sample, &pass));
	ASSERT_EQ(pass.region, 1);
	ASSERT_EQ(ps_passes_sums(passes, 0)->counts[COUNTER], 10);
	ASSERT_EQ(ps_passes_sums(passes, 1)->counts[COUNTER], 25);
	ps_passes_destroy(passes);
}

TEST(passes, more_counters_than_bits_are_refused)
{
	struct ps_pass_options options = { .nr_counters = PS_PASS_MAX_COUNTERS + 1 };
	ASSERT_ERROR(ps_passes_create(&options, &passes), PS_ERROR_USAGE, "at most 64 counters");
}

TEST(passes, threads_come_and_go_without_growth)
{
	create(PS_PASS_THREAD_CPU, 1, 0);
	struct ps_pass pass;
	for (pid_t tid = 1; tid <= 100000; tid++) {
		begin(tid, tid % 4, 1);
		ASSERT_TRUE(end(tid, tid % 4, 3, &pass));
		ps_passes_exit(passes, tid);
	}
	ASSERT_EQ(ps_passes_nr_threads(passes), 0);
	ASSERT_EQ(ps_passes_sums(passes, 0)->counts[COUNTER], 200000);
	ps_passes_destroy(passes);
}
