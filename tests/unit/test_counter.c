// SPDX-License-Identifier: MIT
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <perfscope/counter.h>
#include <perfscope/monotonic.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

// A hardware counter of the tests' own, in the place of the processor's.
#define PS_DIRECT_REGISTERS
static uint64_t registers[8], cycles;
static bool is_forbidden;

static inline bool ps_direct_is_allowed(uint32_t number)
{
	return !is_forbidden;
}

static inline uint64_t ps_direct_register(uint32_t number)
{
	return registers[number];
}

static inline uint64_t ps_direct_cycles(void)
{
	return cycles;
}

#include "../../src/count/group.h"

static struct ps_counter counters[PS_MAX_COUNTERS];
static size_t nr_counters;
static struct ps_counter_group *group;

static void parse(const char *text)
{
	memset(counters, 0, sizeof(counters));
	ASSERT_OK(ps_counters_parse(text, counters, &nr_counters));
}

static void open_group(const char *text, unsigned int flags)
{
	parse(text);
	ASSERT_OK(ps_counter_group_open(counters, nr_counters, flags, &group));
}

static void close_group(void)
{
	ps_counter_group_close(group);
	group = NULL;
}

/** What counter @index counted since @before. */
static uint64_t since(const struct ps_counter_reading *before, size_t index)
{
	struct ps_counter_reading now[PS_MAX_COUNTERS];
	ASSERT_TRUE(ps_counter_group_read(group, now));
	return now[index].value - before[index].value;
}

/** Memory of @nr_pages that was never touched. */
static char *map_fresh(size_t nr_pages)
{
	char *memory = mmap(NULL, nr_pages * 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(memory != MAP_FAILED);
	madvise(memory, nr_pages * 4096, MADV_NOHUGEPAGE);
	return memory;
}

// A sanitizer would fault in its shadow of the pages too.
__attribute__((no_sanitize("address"))) static void touch(char *memory, size_t nr_pages)
{
	for (size_t i = 0; i < nr_pages; i++)
		((volatile char *)memory)[i * 4096] = 1;
}

TEST(counter, names_are_parsed_without_case_blanks_and_doubles)
{
	parse(" Cycles, page-faults ,,CYCLES,faults,branch-instructions");
	ASSERT_EQ(nr_counters, 3);
	ASSERT_STR_EQ(counters[0].name, "cycles");
	ASSERT_STR_EQ(counters[1].name, "page-faults");
	ASSERT_EQ(counters[1].type, PERF_TYPE_SOFTWARE);
	ASSERT_EQ(counters[1].config, PERF_COUNT_SW_PAGE_FAULTS);
	ASSERT_STR_EQ(counters[2].name, "branches");
	ASSERT_EQ(counters[2].config, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
}

TEST(counter, an_unknown_name_is_refused_with_the_nearest)
{
	ASSERT_ERROR(ps_counters_parse("page-fault", counters, &nr_counters), PS_ERROR_USAGE,
		     "unknown counter 'page-fault'; did you mean page-faults?");
	ASSERT_ERROR(ps_counters_parse(" , ", counters, &nr_counters), PS_ERROR_USAGE,
		     "no counters named");
}

TEST(counter, fresh_pages_count_as_many_page_faults)
{
	open_group("task-clock,page-faults,context-switches", 0);
	ASSERT_EQ(ps_counter_group_nr_parts(group, (uint8_t[]){ 0, 1, 2 }, 3), 1);
	char *memory = map_fresh(1000);
	struct ps_counter_reading before[PS_MAX_COUNTERS];
	ASSERT_TRUE(ps_counter_group_read(group, before));
	touch(memory, 1000);
	ASSERT_EQ(since(before, 1), 1000);
	munmap(memory, 1000 * 4096);
	close_group();
}

/** How far the counter is from the thread's own clock, over 20 ms of work: 0.01 is one percent. */
static double clock_difference(void)
{
	struct ps_counter_reading before[1];
	uint64_t start_ns = ps_clock_gettime_ns(CLOCK_THREAD_CPUTIME_ID);
	ASSERT_TRUE(ps_counter_group_read(group, before));
	while (ps_clock_gettime_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns < 5 * PS_NS_PER_MS)
		;
	double counted = since(before, 0);
	double clock_ns = ps_clock_gettime_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	return counted > clock_ns ? counted / clock_ns - 1 : 1 - counted / clock_ns;
}

TEST(counter, task_clock_is_within_two_percent_of_the_threads_clock)
{
	open_group("task-clock", 0);
	double best = 1;
	// The thread's clock leaves out what a host took away, this counter does not: one undisturbed round counts.
	for (int i = 0; i < 100 && best > 0.02; i++) {
		double difference = clock_difference();
		best = difference < best ? difference : best;
	}
	ASSERT_TRUE(best <= 0.02);
	close_group();
}

TEST(counter, sleeps_are_context_switches_even_without_the_kernel)
{
	parse("context-switches");
	counters->exclude = PS_EXCLUDE_KERNEL;
	ASSERT_OK(ps_counter_group_open(counters, 1, 0, &group));
	struct ps_counter_reading before[1];
	ASSERT_TRUE(ps_counter_group_read(group, before));
	for (int i = 0; i < 20; i++)
		usleep(100);
	ASSERT_TRUE(since(before, 0) >= 20);
	close_group();
}

TEST(counter, a_refused_counter_has_a_reason_and_the_others_go_on)
{
	parse("page-faults,task-clock");
	counters[0].config = 12345;
	ASSERT_OK(ps_counter_group_open(counters, 2, 0, &group));
	ASSERT_STR_EQ(ps_counter_group_reason(group, 0), "this kernel has no such counter");
	ASSERT_EQ(ps_counter_group_fd(group, 0), -1);
	ASSERT_NULL(ps_counter_group_reason(group, 1));
	struct ps_counter_reading now[2];
	ASSERT_EQ(ps_counter_group_read_bits(group, now), 1);
	ASSERT_EQ(now[0].enabled_ns, 0);
	ASSERT_TRUE(now[1].enabled_ns > 0);
	close_group();
	ASSERT_ERROR(ps_counter_group_open(counters, 2, PS_GROUP_STRICT, &group),
		     PS_ERROR_UNSUPPORTED, "page-faults: this kernel has no such counter");
	ASSERT_ERROR(ps_counter_group_open(counters, 1, 0, &group), PS_ERROR_UNSUPPORTED,
		     "page-faults: this kernel has no such counter");
}

TEST(counter, a_missing_pmu_is_told_with_what_stands_in_for_it)
{
	parse("cycles,cache-misses,instructions,page-faults");
	ASSERT_OK(ps_counter_group_open(counters, nr_counters, 0, &group));
	if (ps_counter_group_fd(group, 0) >= 0) {
		close_group();
		SKIP("this machine has a hardware PMU");
	}
	ASSERT_STR_EQ(ps_counter_group_reason(group, 0),
		      "no hardware PMU here (the nearest is cpu-clock)");
	ASSERT_STR_EQ(ps_counter_group_reason(group, 1),
		      "no hardware PMU here (the nearest is page-faults)");
	ASSERT_STR_EQ(ps_counter_group_reason(group, 2),
		      "no hardware PMU here (the nearest is task-clock)");
	ASSERT_NULL(ps_counter_group_reason(group, 3));
	close_group();
}

TEST(counter, a_limit_of_descriptors_is_named)
{
	parse("page-faults,task-clock");
	struct rlimit old, low;
	getrlimit(RLIMIT_NOFILE, &old);
	int next = dup(0);
	close(next);
	low = (struct rlimit){ next, old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &low);
	struct ps_error *error = ps_counter_group_open(counters, 2, 0, &group);
	setrlimit(RLIMIT_NOFILE, &old);
	ASSERT_ERROR(error, PS_ERROR_LIMIT, "raise it, ulimit -n");
}

TEST(counter, descriptors_close_at_exec_and_all_are_given_back)
{
	int first = dup(0);
	close(first);
	open_group("page-faults,task-clock", 0);
	for (size_t i = 0; i < 2; i++)
		ASSERT_EQ(fcntl(ps_counter_group_fd(group, i), F_GETFD), FD_CLOEXEC);
	close_group();
	int next = dup(0);
	ASSERT_EQ(next, first);
	close(next);
}

static void *touch_in_thread(void *memory)
{
	touch(memory, 100);
	return NULL;
}

/** Page faults that the group sees while a thread touches 100 fresh pages. */
static uint64_t count_thread(unsigned int flags)
{
	open_group("page-faults", flags);
	char *memory = map_fresh(100);
	struct ps_counter_reading before[1];
	ASSERT_TRUE(ps_counter_group_read(group, before));
	pthread_t thread;
	pthread_create(&thread, NULL, touch_in_thread, memory);
	pthread_join(thread, NULL);
	uint64_t counted = since(before, 0);
	munmap(memory, 100 * 4096);
	close_group();
	return counted;
}

TEST(counter, threads_born_later_count_when_inherited)
{
	count_thread(0); // what creating a thread faults in once
	ASSERT_TRUE(count_thread(0) < 100);
	ASSERT_TRUE(count_thread(PS_GROUP_INHERIT) >= 100);
}

TEST(counter, a_child_of_fork_is_not_inherited)
{
	open_group("page-faults", PS_GROUP_INHERIT);
	char *memory = map_fresh(5000);
	struct ps_counter_reading before[1];
	ASSERT_TRUE(ps_counter_group_read(group, before));
	pid_t child = fork();
	if (!child) {
		touch(memory, 5000);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	ASSERT_TRUE(since(before, 0) < 5000);
	munmap(memory, 5000 * 4096);
	close_group();
}

/** The checks of another user: 0, or the line that fails. */
static int check_as_nobody(void)
{
	if (setgid(65534) || setuid(65534))
		return __LINE__;
	parse("page-faults,context-switches,task-clock");
	counters[0].exclude = counters[1].exclude = PS_EXCLUDE_KERNEL;
	if (ps_counter_group_open(counters, 3, 0, &group))
		return __LINE__;
	if (ps_counter_group_reason(group, 0) || ps_counter_group_reason(group, 2))
		return __LINE__;
	const char *reason = ps_counter_group_reason(group, 1);
	if (!reason ||
	    strcmp(reason, "happens in the kernel, permission denied (perf_event_paranoid "
			   "is 2; needs CAP_PERFMON or root, or sysctl "
			   "kernel.perf_event_paranoid=1)"))
		return __LINE__;
	struct ps_counter_reading before[3], now[3];
	char *memory = map_fresh(11);
	touch(memory, 1); // a child of fork faults in the code that it comes to
	if (ps_counter_group_read_bits(group, now) != 2 ||
	    ps_counter_group_read_bits(group, before) != 2)
		return __LINE__;
	touch(memory + 4096, 10);
	if (ps_counter_group_read_bits(group, now) != 2 || now[0].value - before[0].value != 10)
		return __LINE__;
	parse("page-faults");
	struct ps_error *error = ps_counter_group_open(counters, 1, 0, &group);
	return error &&
			       strstr(error->message,
				      "page-faults: permission denied (perf_event_paranoid "
				      "is 2;") &&
			       strstr(error->message, "or to count without the kernel)")
		       ? 0
		       : __LINE__;
}

static int read_paranoid(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
	int paranoid = -2;
	ASSERT_EQ(fscanf(file, "%d", &paranoid), 1);
	fclose(file);
	return paranoid;
}

TEST(counter, another_user_counts_its_own_without_the_kernel)
{
	if (geteuid() || read_paranoid() != 2)
		SKIP("needs root, and perf_event_paranoid of 2");
	pid_t child = fork();
	if (!child)
		_exit(check_as_nobody() % 256);
	int status;
	waitpid(child, &status, 0);
	ASSERT_EQ(status, 0);
}

static struct perf_event_mmap_page make_page(void)
{
	struct perf_event_mmap_page page = { .index = 3,
					     .offset = 1000,
					     .time_enabled = 500,
					     .time_running = 400,
					     .pmc_width = 48,
					     .time_shift = 10,
					     .time_mult = 512,
					     .time_offset = 7 };
	page.cap_user_rdpmc = page.cap_user_time = 1;
	return page;
}

TEST(counter, a_page_of_the_hardware_is_read_as_the_kernel_says)
{
	struct perf_event_mmap_page page = make_page();
	struct ps_counter_reading reading;
	registers[2] = 0xffffffffff00; // 48 bits: 256 below 0
	cycles = 2050;
	ASSERT_TRUE(ps_direct_read(&page, &reading));
	ASSERT_EQ(reading.value, 744);
	ASSERT_EQ(reading.enabled_ns, 500 + 7 + 1025);
	ASSERT_EQ(reading.running_ns, 400 + 7 + 1025);
	page.cap_user_time_short = 1;
	page.time_cycles = 0x10000;
	page.time_mask = 0xfff;
	ASSERT_TRUE(ps_direct_read(&page, &reading));
	ASSERT_EQ(reading.enabled_ns, 500 + 7 + (0x10000 + 2050) / 2);
}

TEST(counter, a_page_off_the_hardware_leaves_the_read_to_the_kernel)
{
	struct perf_event_mmap_page page = make_page();
	struct ps_counter_reading reading;
	page.index = 0;
	ASSERT_FALSE(ps_direct_read(&page, &reading));
	page = make_page();
	page.cap_user_rdpmc = 0;
	ASSERT_FALSE(ps_direct_read(&page, &reading));
	page = make_page();
	page.cap_user_time = 0;
	ASSERT_FALSE(ps_direct_read(&page, &reading));
	page = make_page();
	is_forbidden = true;
	ASSERT_FALSE(ps_direct_read(&page, &reading));
	is_forbidden = false;
}

TEST(counter, a_group_with_a_counter_of_software_is_read_by_the_kernel)
{
	open_group("task-clock,page-faults", 0);
	ASSERT_FALSE(ps_counter_group_is_direct(group));
	close_group();
}

TEST(counter, the_parts_of_some_counters_are_those_they_stand_in)
{
	struct ps_counter_group split = {
		.nr = 6,
		.nr_parts = 3,
		.parts = { { 3, 2, { 0, 4 } }, { 4, 1, { 1 } }, { 5, 2, { 3, 5 } } },
	};
	const struct {
		uint8_t indexes[6];
		size_t nr, nr_parts;
	} some[] = {
		{ { 0, 1, 2, 3, 4, 5 }, 6, 3 }, { { 4, 0 }, 2, 1 }, { { 1, 2 }, 2, 1 },
		{ { 5, 0, 3 }, 3, 2 },		{ { 2 }, 1, 0 },    { { 0 }, 0, 0 },
	};
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
		ASSERT_EQ(ps_counter_group_nr_parts(&split, some[i].indexes, some[i].nr),
			  some[i].nr_parts);
}

/** Counters of retired instructions, as many as no PMU has. */
static void make_many(void)
{
	parse("instructions");
	for (size_t i = 0; i < PS_MAX_COUNTERS; i++)
		counters[i] = counters[0];
}

TEST(counter, a_group_that_the_pmu_cannot_hold_is_split_until_all_run)
{
	parse("instructions");
	struct ps_error *error = ps_counter_group_open(counters, 1, 0, &group);
	if (error) {
		ps_error_destroy(error);
		SKIP("no hardware PMU here");
	}
	close_group();
	make_many();
	ASSERT_OK(ps_counter_group_open(counters, PS_MAX_COUNTERS, 0, &group));
	uint8_t all[PS_MAX_COUNTERS];
	for (size_t i = 0; i < PS_MAX_COUNTERS; i++)
		all[i] = i;
	ASSERT_TRUE(ps_counter_group_nr_parts(group, all, PS_MAX_COUNTERS) > 1);
	uint64_t start_ns = ps_monotonic_ns();
	while (ps_monotonic_ns() - start_ns < 500 * PS_NS_PER_MS)
		;
	struct ps_counter_reading now[PS_MAX_COUNTERS];
	ASSERT_EQ(ps_counter_group_read_bits(group, now), 0);
	for (size_t i = 0; i < PS_MAX_COUNTERS; i++)
		ASSERT_TRUE(now[i].running_ns > 0 && now[i].value > 0);
	close_group();
}
