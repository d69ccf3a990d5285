// SPDX-License-Identifier: MIT
/** Samples of threads that begin and end a region, and leave CPUs. After test.h. */
#ifndef PERFSCOPE_TEST_PASS_SAMPLES_H
#define PERFSCOPE_TEST_PASS_SAMPLES_H

#include <perfscope/passes.h>

// One counter behind the two times.
enum { COUNTER = PS_PASS_NR_TIMES, NR_WORDS };

static struct ps_passes *passes;
static uint64_t counts[NR_WORDS];
static uint64_t waited_ns; // so far, for the PMU

static inline void create(enum ps_pass_scope scope, size_t nr_regions, size_t max_threads)
{
	struct ps_pass_options options = {
		.scope = scope,
		.nr_regions = nr_regions,
		.nr_counters = 1,
		.nr_cpus = 4,
		.nr_rings = 4,
		.sees_all = true,
		.sees_switches = scope != PS_PASS_THREAD,
		.max_threads = max_threads,
	};
	waited_ns = 0;
	ASSERT_OK(ps_passes_create(&options, &passes));
}

/** A sample of @tid on @cpu whose counter stands at @count, and its running time at ten times that. */
static inline struct ps_pass_sample at(pid_t tid, uint32_t cpu, uint64_t count)
{
	counts[PS_PASS_RUNNING_NS] = count * 10;
	counts[PS_PASS_ENABLED_NS] = count * 10 + waited_ns;
	counts[COUNTER] = count;
	return (struct ps_pass_sample){ .time_ns = count * 100,
					.pid = tid,
					.tid = tid,
					.cpu = cpu,
					.ring = cpu,
					.next = -1,
					.counts = counts };
}

static inline void begin(pid_t tid, uint32_t cpu, uint64_t count)
{
	struct ps_pass_sample sample = at(tid, cpu, count);
	ps_passes_sample(passes, &sample);
	ps_passes_begin(passes, 0, &sample);
}

/** @tid leaves @cpu to @next. */
static inline void leave_to(pid_t next, pid_t tid, uint32_t cpu, uint64_t count)
{
	struct ps_pass_sample sample = at(tid, cpu, count);
	sample.is_switch = true;
	sample.next = next;
	ps_passes_sample(passes, &sample);
}

/** @tid leaves @cpu, to whom is not told. */
static inline void leave(pid_t tid, uint32_t cpu, uint64_t count)
{
	leave_to(-1, tid, cpu, count);
}

static inline bool end(pid_t tid, uint32_t cpu, uint64_t count, struct ps_pass *ret)
{
	struct ps_pass_sample sample = at(tid, cpu, count);
	ps_passes_sample(passes, &sample);
	return ps_passes_end(passes, 0, &sample, ret);
}

static inline uint64_t nr_incomplete(void)
{
	return ps_passes_sums(passes, 0)->incomplete;
}

#endif
