// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/passes.h>
#include <stdlib.h>

// One counter behind the two times.
enum { COUNTER = PS_PASS_NR_TIMES, NR_WORDS };

static struct ps_passes *passes;
static uint64_t counts[NR_WORDS];

static void create(enum ps_pass_scope scope, size_t nr_regions, size_t max_threads)
{
	struct ps_pass_options options = {
		.scope = scope,
		.nr_regions = nr_regions,
		.nr_counters = 1,
		.nr_cpus = 4,
		.nr_rings = 4,
		.sees_idle = true,
		.max_threads = max_threads,
	};
	ASSERT_OK(ps_passes_create(&options, &passes));
}

/** A sample of @tid on @cpu whose counter stands at @count, and its clock at ten times that. */
static struct ps_pass_sample at(pid_t tid, uint32_t cpu, uint64_t count)
{
	counts[PS_PASS_ENABLED_NS] = counts[PS_PASS_RUNNING_NS] = count * 10;
	counts[COUNTER] = count;
	return (struct ps_pass_sample){ .time_ns = count * 100,
					.pid = tid,
					.tid = tid,
					.cpu = cpu,
					.ring = cpu,
					.counts = counts };
}

static void begin(pid_t tid, uint32_t cpu, uint64_t count)
{
	struct ps_pass_sample sample = at(tid, cpu, count);
	ps_passes_sample(passes, &sample);
	ps_passes_begin(passes, 0, &sample);
}

static void leave(pid_t tid, uint32_t cpu, uint64_t count)
{
	struct ps_pass_sample sample = at(tid, cpu, count);
	sample.is_switch = true;
	ps_passes_sample(passes, &sample);
}

static bool end(pid_t tid, uint32_t cpu, uint64_t count, struct ps_pass *ret)
{
	struct ps_pass_sample sample = at(tid, cpu, count);
	ps_passes_sample(passes, &sample);
	return ps_passes_end(passes, 0, &sample, ret);
}

static uint64_t nr_incomplete(void)
{
	return ps_passes_sums(passes, 0)->incomplete;
}

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
	ASSERT_TRUE(end(7, 0, 60, &pass));
	ASSERT_EQ(pass.calls, 3);
	ASSERT_EQ(pass.counts[COUNTER], 50);
	ASSERT_EQ(ps_passes_sums(passes, 0)->calls, 3);
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
	ps_passes_exit(passes, 7);
	ASSERT_EQ(nr_incomplete(), 2);
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
	ps_passes_finish(passes);
	ASSERT_EQ(nr_incomplete(), 2);
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
	struct ps_pass_sample sample = at(7, 0, 20);
	sample.is_switch = sample.is_to_idle = true;
	ps_passes_sample(passes, &sample);
	leave(0, 0, 50);
	ASSERT_TRUE(end(7, 0, 55, &pass));
	ASSERT_EQ(pass.counts[COUNTER], 15);
	begin(7, 0, 60);
	sample = at(7, 0, 70);
	sample.is_switch = sample.is_to_idle = true;
	ps_passes_sample(passes, &sample);
	ASSERT_FALSE(end(7, 0, 90, &pass));
	ASSERT_EQ(nr_incomplete(), 2);
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

TEST(passes, threads_beyond_the_room_are_missed_not_guessed)
{
	create(PS_PASS_THREAD_CPU, 1, 2);
	struct ps_pass pass;
	begin(1, 0, 10);
	begin(2, 1, 10);
	begin(3, 2, 10);
	ASSERT_FALSE(end(3, 2, 20, &pass));
	ASSERT_EQ(nr_incomplete(), 1);
	ASSERT_TRUE(ps_passes_nr_missed(passes) > 0);
	ps_passes_exit(passes, 1);
	ASSERT_EQ(nr_incomplete(), 2);
	// It has room now; what it counted on CPU 2 before is not known.
	begin(3, 1, 5);
	leave(3, 1, 6);
	leave(3, 2, 50);
	ASSERT_EQ(nr_incomplete(), 3);
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

// A model that knows who runs where, and counts by itself.

#define NR_THREADS 7
#define NR_CPUS 3
#define NR_STEPS 20000

struct model_thread {
	int cpu; // -1: it waits
	uint64_t counted, at_begin;
	unsigned int depth;
	uint64_t calls;
};

struct model {
	struct model_thread threads[NR_THREADS];
	int running[NR_CPUS]; // thread, -1: none of these
	uint64_t cpu_counts[NR_CPUS];
	uint64_t thread_counts[NR_THREADS][NR_CPUS];
	uint64_t calls, value;
};

static unsigned int seed;

static unsigned int pick(unsigned int nr)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % nr;
}

/** The counter that a sample of thread @index on @cpu tells. */
static uint64_t counter(const struct model *model, enum ps_pass_scope scope, int index, int cpu)
{
	if (scope == PS_PASS_CPU)
		return model->cpu_counts[cpu];
	return scope == PS_PASS_THREAD ? model->threads[index].counted
				       : model->thread_counts[index][cpu];
}

/** Who runs on @cpu, thread or other, counts @nr. */
static void count(struct model *model, int cpu, uint64_t nr)
{
	int index = model->running[cpu];
	model->cpu_counts[cpu] += nr;
	if (index < 0)
		return;
	model->threads[index].counted += nr;
	model->thread_counts[index][cpu] += nr;
}

/** @cpu goes from whom it runs to @next, -1: somebody else. */
static void model_switch(struct model *model, enum ps_pass_scope scope, int cpu, int next)
{
	int index = model->running[cpu];
	if (index >= 0) {
		leave(index + 1, cpu, counter(model, scope, index, cpu));
		model->threads[index].cpu = -1;
	} else if (scope == PS_PASS_CPU) {
		leave(100, cpu, model->cpu_counts[cpu]);
	}
	model->running[cpu] = next;
	if (next >= 0)
		model->threads[next].cpu = cpu;
}

static void model_begin_or_end(struct model *model, enum ps_pass_scope scope, int index)
{
	struct model_thread *thread = &model->threads[index];
	uint64_t now = counter(model, scope, index, thread->cpu);
	if (pick(2)) {
		if (!thread->depth++)
			thread->at_begin = thread->counted;
		begin(index + 1, thread->cpu, now);
		return;
	}
	if (!thread->depth)
		return;
	struct ps_pass pass;
	thread->calls++;
	bool is_over = end(index + 1, thread->cpu, now, &pass);
	ASSERT_EQ(is_over, thread->depth == 1);
	if (--thread->depth)
		return;
	ASSERT_EQ(pass.counts[COUNTER], thread->counted - thread->at_begin);
	ASSERT_EQ(pass.calls, thread->calls);
	model->calls += thread->calls;
	model->value += thread->counted - thread->at_begin;
	thread->calls = 0;
}

static void run_model(enum ps_pass_scope scope)
{
	struct model model = { 0 };
	for (int i = 0; i < NR_THREADS; i++)
		model.threads[i].cpu = -1;
	for (int i = 0; i < NR_CPUS; i++)
		model.running[i] = -1;
	create(scope, 1, 0);
	for (int i = 0; i < NR_STEPS; i++) {
		int cpu = pick(NR_CPUS), next = (int)pick(NR_THREADS + 1) - 1;
		count(&model, cpu, pick(50));
		bool is_free = next < 0 || model.threads[next].cpu < 0;
		if (is_free && pick(3) == 0)
			model_switch(&model, scope, cpu, next);
		else if (model.running[cpu] >= 0)
			model_begin_or_end(&model, scope, model.running[cpu]);
	}
	const struct ps_pass_sums *sums = ps_passes_sums(passes, 0);
	ASSERT_TRUE(model.calls > 100);
	ASSERT_EQ(sums->calls, model.calls);
	ASSERT_EQ(sums->counts[COUNTER], model.value);
	ASSERT_EQ(sums->incomplete, 0);
	ps_passes_destroy(passes);
}

TEST(passes, random_interleavings_agree_with_a_model)
{
	for (unsigned int i = 1; i <= 20; i++) {
		seed = i;
		run_model(PS_PASS_THREAD);
		run_model(PS_PASS_THREAD_CPU);
		run_model(PS_PASS_CPU);
	}
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
