// SPDX-License-Identifier: MIT
/**
 * What an empty region costs beside its floor: one read() of the same group of counters at each end.
 *
 * The two take turns of a thousand passes in one thread, so that both meet the same machine; JSON tells the medians, in CPU time.
 * With an argument, perfscope is to look, and the program configures nothing.
 */
#include <linux/perf_event.h>
#include <perfscope/region.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NR_TURNS 300
#define NR_PASSES 1000
#define NR_COUNTERS 3

static const uint64_t configs[NR_COUNTERS] = { PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_PAGE_FAULTS,
					       PERF_COUNT_SW_CONTEXT_SWITCHES };
static int fds[NR_COUNTERS];

static void open_group(void)
{
	for (int i = 0; i < NR_COUNTERS; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_SOFTWARE,
			.size = sizeof(attr),
			.config = configs[i],
			.disabled = i == 0,
			.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
				       PERF_FORMAT_TOTAL_TIME_RUNNING,
		};
		fds[i] = syscall(SYS_perf_event_open, &attr, 0, -1, i ? fds[0] : -1,
				 PERF_FLAG_FD_CLOEXEC);
		if (fds[i] < 0) {
			perror("perf_event_open");
			exit(1);
		}
	}
	ioctl(fds[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

static void close_group(void)
{
	for (int i = NR_COUNTERS; i-- > 0;)
		close(fds[i]);
}

static void read_group(void)
{
	uint64_t data[3 + NR_COUNTERS];
	if (read(fds[0], data, sizeof(data)) != sizeof(data))
		exit(1);
}

static void pass_floor(void)
{
	read_group();
	read_group();
}

static void pass_region(void)
{
	perfscope_region_begin("bench");
	perfscope_region_end("bench");
}

/** What a region is that opens its counters for each pass. */
static void pass_opening(void)
{
	open_group();
	read_group();
	close_group();
}

static double time_ns(void (*pass)(void), int nr)
{
	struct timespec start, end;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	for (int i = 0; i < nr; i++) {
		pass();
		__asm__ volatile("" : : : "memory"); // whether someone looks is asked each time
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	return ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / nr;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static double median(double *values)
{
	qsort(values, NR_TURNS, sizeof(*values), compare);
	return values[NR_TURNS / 2];
}

int main(int argc, char **argv)
{
	int is_observed = argc > 1 && !strcmp(argv[1], "observed");
	double off[NR_TURNS], floors[NR_TURNS], regions[NR_TURNS], ratios[NR_TURNS],
		openings[NR_TURNS];
	if (is_observed && !perfscope_region_is_active)
		return 1;
	for (int i = 0; i < NR_TURNS; i++)
		off[i] = time_ns(pass_region, is_observed ? 1 : 100 * NR_PASSES);
	for (int i = 0; i < NR_TURNS; i++)
		openings[i] = time_ns(pass_opening, 10);
	open_group();
	if (!is_observed &&
	    perfscope_region_configure("task-clock,page-faults,context-switches", 0)) {
		fprintf(stderr, "%s\n", perfscope_region_error());
		return 1;
	}
	for (int i = 0; i < NR_TURNS; i++) {
		floors[i] = time_ns(pass_floor, NR_PASSES);
		regions[i] = time_ns(pass_region, NR_PASSES);
		ratios[i] = regions[i] / floors[i];
	}
	printf("{\"off_ns\": %.2f, \"floor_ns\": %.1f, \"region_ns\": %.1f, \"ratio\": %.3f, "
	       "\"opening_ns\": %.0f}\n",
	       median(off), median(floors), median(regions), median(ratios), median(openings));
	return 0;
}
