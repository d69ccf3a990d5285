// SPDX-License-Identifier: MIT
/**
 * Sources made by hand, opened on this thread.
 */
#ifndef PERFSCOPE_LIVE_SESSION_H
#define PERFSCOPE_LIVE_SESSION_H

#include "../../src/stream/internal.h"
#include <errno.h>
#include <fcntl.h>
#include <perfscope/merge.h>
#include <perfscope/pmu.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

// None, as in most virtual machines, so that the sentences are the same everywhere.
static bool is_with_pmu;

bool ps_pmu_has_hardware(void)
{
	return is_with_pmu;
}

static struct ps_source sources[4];
static struct ps_source *source_pointers[4];
static struct ps_source_list list;
static struct ps_session *session;

static inline void clear_sources(void)
{
	for (size_t i = 0; i < list.nr_sources; i++)
		free(sources[i].missing_reason);
	memset(sources, 0, sizeof(sources));
	list = (struct ps_source_list){ .sources = source_pointers };
}

static inline struct ps_source *add_source(const char *name, uint32_t type, uint64_t config)
{
	struct ps_source *source = &sources[list.nr_sources];
	*source = (struct ps_source){
		.index = list.nr_sources,
		.name = (char *)name,
		.label = (char *)name,
		.attr = { .type = type, .config = config },
	};
	source_pointers[list.nr_sources++] = source;
	return source;
}

/** The source of a tracepoint that samples; the test is skipped where tracefs is closed. */
static inline struct ps_source *add_tracepoint(const char *name)
{
	char path[256];
	unsigned long id;
	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/syscalls/%s/id", name);
	FILE *file = fopen(path, "re");
	if (!file || fscanf(file, "%lu", &id) != 1)
		SKIP("tracepoints cannot be read by this user");
	fclose(file);
	struct ps_source *source = add_source(name, PERF_TYPE_TRACEPOINT, id);
	source->attr.sample_type = PS_SAMPLE_BASE | PERF_SAMPLE_RAW;
	source->attr.sample_period = 1;
	source->is_sampling = true;
	return source;
}

static inline struct ps_target own_thread(void)
{
	static pid_t tid;
	static int cpus[] = { 0 };
	tid = gettid();
	return (struct ps_target){ .kind = PS_TARGET_THREADS,
				   .tids = &tid,
				   .nr_tids = 1,
				   .cpus = cpus,
				   .nr_cpus = 1,
				   .cgroup_fd = -1 };
}

static inline void pin_to(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		SKIP("cpu %d is not there", cpu);
}

static inline void call_getppid(int nr)
{
	for (int i = 0; i < nr; i++)
		syscall(SYS_getppid);
}

#endif
