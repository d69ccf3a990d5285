// SPDX-License-Identifier: MIT
/** Passes in random orders of records. */
#include "test.h"

#include "pass_samples.h"

// A model that knows who runs where, and counts by itself.

#define NR_THREADS 7
#define NR_CPUS 3
#define NR_STEPS 20000
#define OTHER 100 // a thread that is none of these

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
	uint64_t calls, value, nr_begins, nr_ends;
	bool is_silent; // OTHER is not told to leave the last CPU
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
	bool is_silent = model->is_silent && cpu == NR_CPUS - 1;
	if (index >= 0) {
		uint64_t now = counter(model, scope, index, cpu);
		leave_to(next < 0 ? OTHER : next + 1, index + 1, cpu, now);
		model->threads[index].cpu = -1;
	} else if (scope == PS_PASS_CPU && !is_silent) {
		leave_to(next < 0 ? OTHER : next + 1, OTHER, cpu, model->cpu_counts[cpu]);
	}
	model->running[cpu] = next;
	if (next >= 0)
		model->threads[next].cpu = cpu;
}

static void model_begin_or_end(struct model *model, enum ps_pass_scope scope, int index)
{
	struct model_thread *thread = &model->threads[index];
	uint64_t now = counter(model, scope, index, thread->cpu);
	// Where passes can be given up, depths would be another's: no recursion then.
	if (model->is_silent ? !thread->depth : pick(2)) {
		if (!thread->depth++)
			thread->at_begin = thread->counted;
		begin(index + 1, thread->cpu, now);
		model->nr_begins++;
		return;
	}
	if (!thread->depth)
		return;
	struct ps_pass pass;
	thread->calls++;
	model->nr_ends++;
	bool is_over = end(index + 1, thread->cpu, now, &pass);
	ASSERT_TRUE(model->is_silent || is_over == (thread->depth == 1));
	if (--thread->depth)
		return;
	if (!is_over) {
		thread->calls = 0;
		return;
	}
	ASSERT_EQ(pass.counts[COUNTER], thread->counted - thread->at_begin);
	ASSERT_EQ(pass.calls, thread->calls);
	model->calls += thread->calls;
	model->value += thread->counted - thread->at_begin;
	thread->calls = 0;
}

static void run_model(enum ps_pass_scope scope, bool is_silent)
{
	struct model model = { .is_silent = is_silent };
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
	if (is_silent)
		ps_passes_finish(passes);
	ASSERT_EQ(sums->incomplete > 0, is_silent);
	if (is_silent)
		ASSERT_EQ(2 * sums->calls + sums->incomplete, model.nr_begins + model.nr_ends);
	ps_passes_destroy(passes);
}

TEST(pass_order, random_interleavings_agree_with_a_model)
{
	for (unsigned int i = 1; i <= 20; i++) {
		seed = i;
		run_model(PS_PASS_THREAD, false);
		run_model(PS_PASS_THREAD_CPU, false);
		run_model(PS_PASS_CPU, false);
	}
}

TEST(pass_order, with_a_silent_thread_whole_passes_agree_and_the_others_are_told)
{
	for (unsigned int i = 1; i <= 20; i++) {
		seed = i;
		run_model(PS_PASS_CPU, true);
	}
}

// Records of any kind in any order, as no kernel would write them: nothing may be forgotten or told twice.

#define NR_REGIONS 2

struct records {
	uint64_t nr_begins[NR_REGIONS], nr_ends[NR_REGIONS];
	bool is_open[NR_THREADS + 1][NR_CPUS][NR_REGIONS]; // idle threads are one for each CPU
	bool is_alternating; // a begin, an end, a begin, ... in each thread
	uint64_t now;
};

/** Some thread begins or ends @region; 0 is idle, the number behind the others one that is gone. */
static void record_boundary(struct records *records, size_t region)
{
	int thread = pick(NR_THREADS + 1), cpu = pick(NR_CPUS);
	bool is_gone = thread == NR_THREADS;
	struct ps_pass_sample sample = at(is_gone ? -1 : thread, cpu, records->now);
	bool *is_open = &records->is_open[thread][thread ? 0 : cpu][region];
	bool is_begin = records->is_alternating ? !*is_open : pick(2);
	*is_open = is_begin;
	ps_passes_sample(passes, &sample);
	struct ps_pass pass;
	if (is_begin)
		ps_passes_begin(passes, region, &sample);
	else
		ps_passes_end(passes, region, &sample, &pass);
	records->nr_begins[region] += is_begin;
	records->nr_ends[region] += !is_begin;
}

static void record_other(struct records *records)
{
	int thread = pick(NR_THREADS), cpu = pick(NR_CPUS);
	switch (pick(8)) {
	case 0:
		ps_passes_lost(passes, cpu);
		break;
	case 1:
		ps_passes_exit(passes, thread);
		for (size_t i = 0; thread && i < NR_REGIONS; i++)
			records->is_open[thread][0][i] = false;
		break;
	case 2:
		leave_to(pick(NR_THREADS), thread, cpu, records->now);
		break;
	default:
		leave(thread, cpu, records->now);
	}
}

/** Each begin and each end is in a call, or one of what is incomplete; of pairs in a recursion both in one. */
static void check_account(const struct records *records, size_t region)
{
	const struct ps_pass_sums *sums = ps_passes_sums(passes, region);
	uint64_t nr_told = sums->calls + sums->incomplete;
	uint64_t nr_records = records->nr_begins[region] + records->nr_ends[region];
	ASSERT_TRUE(sums->incomplete > 0);
	if (records->is_alternating)
		ASSERT_EQ(sums->calls + nr_told, nr_records);
	ASSERT_TRUE(records->nr_begins[region] <= nr_told);
	ASSERT_TRUE(records->nr_ends[region] <= nr_told);
	ASSERT_TRUE(sums->calls + nr_told <= nr_records);
}

static void run_records(enum ps_pass_scope scope, bool is_alternating, size_t max_threads)
{
	struct records records = { .is_alternating = is_alternating };
	create(scope, NR_REGIONS, max_threads);
	for (int i = 0; i < 2000; i++) {
		records.now += pick(50);
		if (pick(4))
			record_boundary(&records, pick(NR_REGIONS));
		else
			record_other(&records);
	}
	ps_passes_finish(passes);
	for (size_t i = 0; i < NR_REGIONS; i++)
		check_account(&records, i);
	ps_passes_destroy(passes);
}

TEST(pass_order, each_begin_and_each_end_is_told_once)
{
	for (int i = 0; i < 100; i++) {
		seed = i;
		enum ps_pass_scope scope = i % 3;
		size_t max_threads = i % 2 ? 3 : 0;
		run_records(scope, true, max_threads);
		run_records(scope, false, max_threads);
	}
}
