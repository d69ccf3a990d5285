// SPDX-License-Identifier: MIT
/*
 * Counters are read as they are at each sample, and a thread's account gets what was counted since the last sample of
 * the same counters. Counters of a CPU belong to whoever runs there: between two samples of a CPU of which each switch
 * is one, that is the thread of the later one. So a pass is the difference of two states of its thread's account.
 */
#include <perfscope/passes.h>

#include "pass_threads.h"

#include <perfscope/cleanup.h>
#include <string.h>

/** Counters of a CPU as last seen. */
struct cpu {
	uint64_t nr_losses; // of its ring, at that time
	pid_t tid;	    // who runs there; -1: not known
};

struct ps_passes {
	struct ps_pass_options options;
	size_t nr_words; // times and counters
	struct ps_pass_threads *threads;
	struct ps_pass_thread *thread; // of the sample last taken; NULL: it is not followed
	struct cpu *cpus;	       // PS_PASS_CPU
	uint64_t *cpu_counts;	       // nr_words of each
	uint64_t *nr_losses;	       // by ring
	struct ps_pass_sums *sums;     // by region
	uint64_t *sum_counts;
	uint64_t *delta; // of the pass last ended
};

struct ps_error *ps_passes_create(const struct ps_pass_options *options, struct ps_passes **ret)
{
	if (options->nr_counters > PS_PASS_MAX_COUNTERS)
		return ps_error_format(PS_ERROR_USAGE,
				       "regions take at most %d counters, these are %zu",
				       PS_PASS_MAX_COUNTERS, options->nr_counters);
	struct ps_passes *passes = calloc(1, sizeof(*passes));
	if (!passes)
		return &ps_enomem;
	size_t nr_words = PS_PASS_NR_TIMES + options->nr_counters;
	passes->options = *options;
	passes->nr_words = nr_words;
	passes->cpus = calloc(options->nr_cpus + 1, sizeof(*passes->cpus));
	passes->cpu_counts = calloc((options->nr_cpus + 1) * nr_words, sizeof(uint64_t));
	passes->nr_losses = calloc(options->nr_rings + 1, sizeof(uint64_t));
	passes->sums = calloc(options->nr_regions + 1, sizeof(*passes->sums));
	passes->sum_counts = calloc((options->nr_regions + 1) * nr_words, sizeof(uint64_t));
	passes->delta = calloc(nr_words, sizeof(uint64_t));
	passes->threads = ps_pass_threads_create(options);
	if (!passes->cpus || !passes->cpu_counts || !passes->nr_losses || !passes->sums ||
	    !passes->sum_counts || !passes->delta || !passes->threads) {
		ps_passes_destroy(passes);
		return &ps_enomem;
	}
	for (size_t i = 0; i < options->nr_cpus; i++)
		passes->cpus[i].tid = -1;
	for (size_t i = 0; i < options->nr_regions; i++)
		passes->sums[i].counts = passes->sum_counts + i * nr_words;
	*ret = passes;
	return NULL;
}

void ps_passes_destroy(struct ps_passes *passes)
{
	if (!passes)
		return;
	ps_pass_threads_destroy(passes->threads);
	free(passes->cpus);
	free(passes->cpu_counts);
	free(passes->nr_losses);
	free(passes->sums);
	free(passes->sum_counts);
	free(passes->delta);
	free(passes);
}

/** What @thread has open will not be known. */
static void abandon(struct ps_passes *passes, struct ps_pass_thread *thread)
{
	for (size_t i = 0; thread->nr_open && i < passes->options.nr_regions; i++) {
		struct ps_open_pass *open = ps_pass_thread_open(passes->threads, thread, i);
		if (!open->depth)
			continue;
		uint32_t nr = open->nr_ended + open->depth;
		passes->sums[i].incomplete += nr;
		passes->sums[i].open -= nr;
		*open = (struct ps_open_pass){ 0 };
		thread->nr_open--;
	}
}

/** Counters of a CPU tell nothing of a thread without an open pass: it need not be known. */
static void forget_idle(struct ps_passes *passes, struct ps_pass_thread *thread)
{
	if (passes->options.scope != PS_PASS_CPU || thread->nr_open)
		return;
	ps_pass_threads_remove(passes->threads, thread);
	if (passes->thread == thread)
		passes->thread = NULL;
}

/** Idle threads of all CPUs have the number 0; they are told apart by their CPU. */
static int64_t key_of(const struct ps_pass_sample *sample)
{
	return sample->tid ? sample->tid : INT32_MIN - (int64_t)sample->cpu;
}

/** Some counters had no value at a sample: nor have passes around it. */
static void spread_invalid(struct ps_passes *passes, struct ps_pass_thread *thread,
			   uint64_t invalid)
{
	for (size_t i = 0; i < passes->options.nr_regions; i++) {
		struct ps_open_pass *open = ps_pass_thread_open(passes->threads, thread, i);
		if (open->depth)
			open->invalid |= invalid;
	}
}

/** Add to @account what was counted from @last, which becomes @now. */
static void add_counts(const struct ps_passes *passes, uint64_t *account, uint64_t *last,
		       const struct ps_pass_sample *now)
{
	for (size_t i = 0; i < passes->nr_words; i++) {
		bool is_known =
			i < PS_PASS_NR_TIMES || !(now->invalid >> (i - PS_PASS_NR_TIMES) & 1);
		if (!is_known)
			continue;
		account[i] += now->counts[i] - last[i];
		last[i] = now->counts[i];
	}
}

/** How long the counters ran from @last to @now. */
static uint64_t ran_ns(const uint64_t *last, const struct ps_pass_sample *now)
{
	return now->counts[PS_PASS_RUNNING_NS] - last[PS_PASS_RUNNING_NS];
}

/** How much longer than @ran_ns they were enabled. */
static int64_t waited_ns(const uint64_t *last, const struct ps_pass_sample *now, uint64_t ran_ns)
{
	return now->counts[PS_PASS_ENABLED_NS] - last[PS_PASS_ENABLED_NS] - ran_ns;
}

/** The counters gave way to others on the PMU since @last: begins and ends meanwhile made no records. */
static bool has_waited(const uint64_t *last, const struct ps_pass_sample *now)
{
	return waited_ns(last, now, ran_ns(last, now)) > 0;
}

// From the sample of a switch until the counters stop, and from their start to the next sample: no turn is as short.
#define SWITCH_NS 100000

/**
 * The same where the counters are of a CPU each: these are enabled as well while the thread runs on another, whose
 * counters run meanwhile. @account: what all ran until @last of this CPU and of the others.
 */
static bool has_waited_on_cpu(const struct ps_pass_thread *thread,
			      const struct ps_last_counts *last, const struct ps_pass_sample *now,
			      const uint64_t *account)
{
	uint64_t all_ran_ns = account[PS_PASS_RUNNING_NS] + ran_ns(last->counts, now);
	bool is_same_stay = thread->cpu == now->cpu && !thread->is_out;
	return last->is_seen && waited_ns(last->counts, now, all_ran_ns - last->all_running_ns) >
					(is_same_stay ? 0 : SWITCH_NS);
}

/** @thread was seen elsewhere last, and not to leave: that record is missing, though none may be known as lost yet. */
static bool has_jumped(const struct ps_passes *passes, const struct ps_pass_thread *thread,
		       const struct ps_pass_sample *sample)
{
	return passes->options.sees_switches && thread->nr_open && !thread->is_out &&
	       thread->cpu != sample->cpu;
}

static void sample_cpu(struct ps_passes *passes, const struct ps_pass_sample *sample)
{
	uint64_t *last = passes->cpu_counts + sample->cpu * passes->nr_words;
	if (PS_UNLIKELY(has_waited(last, sample)))
		ps_passes_lost(passes, sample->ring);
	struct ps_pass_thread *thread = ps_pass_threads_find(passes->threads, key_of(sample));
	struct cpu *cpu = &passes->cpus[sample->cpu];
	uint64_t nr_losses = passes->nr_losses[sample->ring];
	// In a gap others may have run here, and this thread elsewhere. Of some threads the kernel records nothing, for as long
	// as they live (Linux 6.18: the idle thread of a CPU that was offline once, and now and then another): who comes
	// after one has its counts too.
	bool is_untold = passes->options.sees_all && cpu->tid >= 0 && cpu->tid != sample->tid;
	bool is_gap = cpu->nr_losses != nr_losses || is_untold;
	if (thread && (is_gap || has_jumped(passes, thread, sample)))
		abandon(passes, thread);
	cpu->nr_losses = nr_losses;
	cpu->tid = sample->is_switch ? sample->next : sample->tid;
	uint64_t *account = thread ? ps_pass_thread_account(passes->threads, thread)
				   : passes->delta; // of nobody we know
	add_counts(passes, account, last, sample);
	passes->thread = thread;
}

static void sample_thread(struct ps_passes *passes, const struct ps_pass_sample *sample)
{
	struct ps_pass_thread *thread = ps_pass_threads_find(passes->threads, key_of(sample));
	if (!thread && sample->tid >= 0)
		thread = ps_pass_threads_add(passes->threads, key_of(sample));
	passes->thread = thread;
	if (!thread)
		return;
	bool is_of_cpu = passes->options.scope == PS_PASS_THREAD_CPU;
	struct ps_last_counts *last =
		ps_pass_thread_last(passes->threads, thread, is_of_cpu ? sample->cpu : 0);
	uint64_t *account = ps_pass_thread_account(passes->threads, thread);
	uint64_t nr_losses = passes->nr_losses[sample->ring];
	bool is_gap = is_of_cpu ? has_waited_on_cpu(thread, last, sample, account)
				: has_waited(last->counts, sample);
	// It may have been on this CPU in a gap: then it is not known when what is counted here was counted.
	if (is_gap || last->nr_losses != nr_losses || has_jumped(passes, thread, sample))
		abandon(passes, thread);
	last->nr_losses = nr_losses;
	add_counts(passes, account, last->counts, sample);
	if (!is_of_cpu)
		return;
	// In a pass that stays complete, all is counted.
	account[PS_PASS_ENABLED_NS] = account[PS_PASS_RUNNING_NS];
	last->all_running_ns = account[PS_PASS_RUNNING_NS];
	last->is_seen = true;
}

static void note_place(struct ps_pass_thread *thread, const struct ps_pass_sample *sample)
{
	thread->ring = sample->ring;
	thread->cpu = sample->cpu;
	thread->is_out = sample->is_switch;
}

void ps_passes_sample(struct ps_passes *passes, const struct ps_pass_sample *sample)
{
	if (passes->options.scope == PS_PASS_CPU)
		sample_cpu(passes, sample);
	else
		sample_thread(passes, sample);
	struct ps_pass_thread *thread = passes->thread;
	if (!thread)
		return;
	note_place(thread, sample);
	if (PS_UNLIKELY(sample->invalid && thread->nr_open))
		spread_invalid(passes, thread, sample->invalid);
	forget_idle(passes, thread);
}

void ps_passes_begin(struct ps_passes *passes, size_t region, const struct ps_pass_sample *sample)
{
	if (!passes->thread && sample->tid >= 0)
		passes->thread = ps_pass_threads_add(passes->threads, key_of(sample));
	struct ps_pass_thread *thread = passes->thread;
	if (!thread) {
		passes->sums[region].incomplete++;
		return;
	}
	note_place(thread, sample);
	struct ps_open_pass *open = ps_pass_thread_open(passes->threads, thread, region);
	passes->sums[region].open++;
	if (open->depth++)
		return;
	thread->nr_open++;
	open->begin_ns = sample->time_ns;
	open->invalid = sample->invalid;
	memcpy(open->counts, ps_pass_thread_account(passes->threads, thread),
	       passes->nr_words * sizeof(uint64_t));
}

/** Close @open, the outermost pass of its name, and add it up. */
static void close_pass(struct ps_passes *passes, struct ps_pass_thread *thread,
		       struct ps_open_pass *open, const struct ps_pass_sample *sample,
		       struct ps_pass *pass)
{
	const uint64_t *account = ps_pass_thread_account(passes->threads, thread);
	struct ps_pass_sums *sums = &passes->sums[pass->region];
	pass->begin_ns = open->begin_ns;
	pass->end_ns = sample->time_ns;
	pass->calls = open->nr_ended;
	pass->invalid = open->invalid;
	pass->counts = passes->delta;
	for (size_t i = 0; i < passes->nr_words; i++) {
		// A clock that is read around an interrupt can be back by a little.
		int64_t delta = account[i] - open->counts[i];
		passes->delta[i] = delta > 0 ? delta : 0;
		sums->counts[i] += passes->delta[i];
	}
	sums->calls += pass->calls;
	sums->open -= pass->calls;
	sums->invalid |= pass->invalid;
	sums->elapsed_ns += pass->end_ns - pass->begin_ns;
	*open = (struct ps_open_pass){ 0 };
	thread->nr_open--;
}

bool ps_passes_end(struct ps_passes *passes, size_t region, const struct ps_pass_sample *sample,
		   struct ps_pass *ret)
{
	struct ps_pass_thread *thread = passes->thread;
	struct ps_open_pass *open =
		thread ? ps_pass_thread_open(passes->threads, thread, region) : NULL;
	if (!open || !open->depth) {
		passes->sums[region].incomplete++;
		return false;
	}
	open->nr_ended++;
	if (--open->depth)
		return false;
	*ret = (struct ps_pass){
		.region = region,
		.pid = sample->pid,
		.tid = sample->tid,
		.cpu = sample->cpu,
	};
	close_pass(passes, thread, open, sample, ret);
	forget_idle(passes, thread);
	return true;
}

void ps_passes_exit(struct ps_passes *passes, pid_t tid)
{
	struct ps_pass_thread *thread = tid > 0 ? ps_pass_threads_find(passes->threads, tid) : NULL;
	if (!thread)
		return;
	abandon(passes, thread);
	ps_pass_threads_remove(passes->threads, thread);
	passes->thread = NULL;
}

static void abandon_if_lost(struct ps_pass_thread *thread, void *argument, uint32_t ring)
{
	struct ps_passes *passes = argument;
	// One that was seen to run elsewhere, and not to leave, is there still.
	bool can_move = passes->options.scope != PS_PASS_THREAD;
	if (thread->ring != ring && !(can_move && thread->is_out))
		return;
	abandon(passes, thread);
	forget_idle(passes, thread);
}

void ps_passes_lost(struct ps_passes *passes, uint32_t ring)
{
	passes->nr_losses[ring]++;
	ps_pass_threads_each(passes->threads, abandon_if_lost, passes, ring);
}

static void abandon_each(struct ps_pass_thread *thread, void *argument, uint32_t unused)
{
	(void)unused;
	abandon(argument, thread);
}

void ps_passes_miss(struct ps_passes *passes, size_t region)
{
	passes->sums[region].incomplete++;
}

void ps_passes_finish(struct ps_passes *passes)
{
	ps_pass_threads_each(passes->threads, abandon_each, passes, 0);
}

const struct ps_pass_sums *ps_passes_sums(const struct ps_passes *passes, size_t region)
{
	return &passes->sums[region];
}

size_t ps_passes_nr_threads(const struct ps_passes *passes)
{
	return ps_pass_threads_nr(passes->threads);
}

uint64_t ps_passes_nr_missed(const struct ps_passes *passes)
{
	return ps_pass_threads_nr_missed(passes->threads);
}
