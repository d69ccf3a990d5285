// SPDX-License-Identifier: MIT
#include "regions.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <perfscope/monotonic.h>
#include <perfscope/region.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

TEST(regions, nobody_looks_until_configured)
{
	ASSERT_FALSE(ps_regions_are_active());
	ps_region_enter(find("x"));
	ps_region_leave(find("x"));
	perfscope_region_begin("x");
	perfscope_region_end("x");
	ASSERT_NULL(sums_of("x"));
	ASSERT_OK(ps_regions_reset());
	configure("page-faults", 0);
	ASSERT_TRUE(ps_regions_are_active());
	ASSERT_NULL(sums_of("x"));
}

TEST(regions, one_name_is_one_region_and_some_are_refused)
{
	char name[] = "same";
	ASSERT_TRUE(find("same") == find(name));
	ASSERT_STR_EQ(ps_region_name(find(name)), "same");
	struct ps_region *region;
	char longest[64], longer[65];
	memset(longest, 'n', 63);
	memset(longer, 'n', 64);
	longest[63] = longer[64] = '\0';
	ASSERT_OK(ps_region_find(longest, &region));
	ASSERT_ERROR(ps_region_find(longer, &region), PS_ERROR_USAGE, "longer than 63 bytes");
	ASSERT_ERROR(ps_region_find("", &region), PS_ERROR_USAGE, "a region needs a name");
	ASSERT_ERROR(ps_region_find("run", &region), PS_ERROR_USAGE, "the whole run");
}

TEST(regions, fresh_pages_are_counted_exactly)
{
	configure("page-faults,task-clock,context-switches", 0);
	struct ps_region *region = warm("x");
	for (int i = 0; i < 100; i++) {
		ps_region_enter(region);
		fault(7);
		ps_region_leave(region);
		fault(1);
	}
	assert_faults("x", 100, 700);
}

TEST(regions, an_inner_region_counts_in_the_outer_too)
{
	configure("page-faults", 0);
	struct ps_region *outer = warm("outer"), *inner = warm("inner");
	ps_region_enter(outer);
	fault(3);
	ps_region_enter(inner);
	fault(5);
	ps_region_leave(inner);
	fault(2);
	ps_region_leave(outer);
	assert_faults("outer", 1, 10);
	assert_faults("inner", 1, 5);
}

static void recurse(struct ps_region *region, int depth)
{
	ps_region_enter(region);
	fault(1);
	if (depth > 1)
		recurse(region, depth - 1);
	ps_region_leave(region);
}

TEST(regions, recursion_counts_once_in_values_and_each_time_in_calls)
{
	configure("page-faults", 0);
	recurse(warm("r"), 20);
	assert_faults("r", 20, 20);
}

TEST(regions, many_names_are_kept_apart)
{
	configure("page-faults", 0);
	char name[16];
	for (int i = 0; i < 300; i++) {
		sprintf(name, "n%d", i);
		warm(name);
	}
	for (int i = 0; i < 300; i++) {
		sprintf(name, "n%d", i);
		ps_region_enter(find(name));
		fault(i % 5);
		ps_region_leave(find(name));
	}
	for (int i = 0; i < 300; i++) {
		sprintf(name, "n%d", i);
		assert_faults(name, 1, i % 5);
	}
}

static void *fault_in_thread(void *argument)
{
	struct ps_region *region = find("t");
	ps_region_enter(region);
	ps_region_leave(region); // the thread's own first pages of stack
	for (int i = 0; i < 50; i++) {
		ps_region_enter(region);
		fault(4);
		ps_region_leave(region);
	}
	return argument;
}

TEST(regions, threads_count_their_own)
{
	configure("page-faults", 0);
	warm("t");
	pthread_t threads[8];
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, fault_in_thread, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	const struct ps_region_sums *sums = sums_of("t");
	ASSERT_EQ(sums->calls, 8 * 51);
	// Each thread may fault in one page of its own stack beside.
	ASSERT_TRUE(sums->counted[0].value >= 8 * 200 && sums->counted[0].value <= 8 * 202);
}

static void *touch_in_thread(void *argument)
{
	fault(500);
	return argument;
}

static uint64_t count_born(unsigned int flags)
{
	configure("page-faults", flags);
	struct ps_region *region = warm("born");
	ps_region_enter(region);
	pthread_t thread;
	pthread_create(&thread, NULL, touch_in_thread, NULL);
	pthread_join(thread, NULL);
	ps_region_leave(region);
	return sums_of("born")->counted[0].value;
}

TEST(regions, threads_born_in_a_region_count_when_inherited)
{
	ASSERT_TRUE(count_born(0) < 100);
	ASSERT_TRUE(count_born(PS_GROUP_INHERIT) >= 500);
}

TEST(regions, a_paused_pass_does_not_count_and_goes_on_in_another_thread)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("p");
	ps_region_enter(region);
	fault(1);
	ps_region_pause(region);
	fault(10);
	ps_region_resume(region);
	fault(2);
	ps_region_leave(region);
	assert_faults("p", 1, 3);
}

TEST(regions, passes_of_one_name_that_interleave_are_each_a_call)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("task");
	for (int i = 0; i < 3; i++) {
		ps_region_enter(region);
		fault(1);
		ps_region_pause(region);
	}
	for (int i = 0; i < 3; i++) {
		ps_region_resume(region);
		fault(1);
		ps_region_leave(region);
	}
	assert_faults("task", 3, 6);
	ASSERT_EQ(sums_of("task")->incomplete, 0);
}

TEST(regions, what_is_abandoned_is_incomplete_and_counts_nothing)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("a");
	ps_region_enter(region);
	fault(5);
	ps_region_abandon(region);
	ps_region_enter(region);
	fault(1);
	ps_region_leave(region);
	assert_faults("a", 1, 1);
	ASSERT_EQ(sums_of("a")->incomplete, 1);
}

static void *begin_in_thread(void *region)
{
	ps_region_enter(region);
	return NULL;
}

TEST(regions, ends_without_begins_and_begins_without_ends_are_incomplete)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("i");
	ps_region_leave(region);
	pthread_t thread;
	pthread_create(&thread, NULL, begin_in_thread, region);
	pthread_join(thread, NULL);
	ASSERT_EQ(sums_of("i")->calls, 0);
	ASSERT_EQ(sums_of("i")->incomplete, 2);
}

static int count_descriptors(void)
{
	int nr = 0;
	DIR *folder = opendir("/proc/self/fd");
	while (readdir(folder))
		nr++;
	closedir(folder);
	return nr;
}

TEST(regions, a_child_of_fork_counts_its_own_alone)
{
	configure("page-faults,task-clock", 0);
	struct ps_region *region = warm("f");
	ps_region_enter(region);
	ps_region_leave(region);
	ps_region_enter(region);
	fault(3);
	int nr_descriptors = count_descriptors();
	pid_t child = fork();
	if (!child) {
		if (count_descriptors() != nr_descriptors - 2)
			_exit(1);
		ps_region_leave(region); // its begin is the parent's
		if (sums_of("f")->calls || sums_of("f")->incomplete != 1)
			_exit(3);
		warm("f");
		ps_region_enter(region);
		fault(20);
		ps_region_leave(region);
		const struct ps_region_sums *sums = sums_of("f");
		_exit(sums->calls == 1 && sums->counted[0].value == 20 ? 0 : 2);
	}
	int status;
	waitpid(child, &status, 0);
	ASSERT_EQ(status, 0);
	ps_region_leave(region);
	ASSERT_EQ(sums_of("f")->calls, 2);
	ASSERT_TRUE(sums_of("f")->counted[0].value >= 3);
}

TEST(regions, another_configuration_starts_from_zero)
{
	configure("page-faults", 0);
	struct ps_region *region = warm("c");
	ps_region_enter(region);
	ps_region_leave(region);
	configure("task-clock,page-faults", 0);
	ASSERT_NULL(sums_of("c"));
	ps_region_enter(region);
	fault(2);
	ps_region_leave(region);
	ASSERT_EQ(sums_of("c")->counted[1].value, 2);
	size_t nr;
	ASSERT_STR_EQ(ps_regions_counters(&nr)[0].name, "task-clock");
	ASSERT_EQ(nr, 2);
}

TEST(regions, a_refused_counter_is_invalid_and_strict_makes_it_an_error)
{
	ASSERT_OK(ps_counters_parse("page-faults,task-clock", counters, &nr_counters));
	counters[1].config = 4711;
	ASSERT_ERROR(ps_regions_configure(counters, 2, PS_GROUP_STRICT), PS_ERROR_UNSUPPORTED,
		     "task-clock: this kernel has no such counter");
	ASSERT_OK(ps_regions_configure(counters, 2, 0));
	ASSERT_NULL(ps_regions_reason(0));
	ASSERT_STR_EQ(ps_regions_reason(1), "this kernel has no such counter");
	struct ps_region *region = warm("s");
	ps_region_enter(region);
	fault(2);
	ps_region_leave(region);
	ASSERT_EQ(sums_of("s")->invalid, 2);
	ASSERT_EQ(sums_of("s")->counted[0].value, 2);
}

TEST(regions, task_clock_and_time_are_those_of_the_thread)
{
	configure("task-clock", 0);
	struct ps_region *region = warm("clock");
	ps_region_enter(region);
	usleep(20000);
	ps_region_leave(region);
	const struct ps_region_sums *sums = sums_of("clock");
	ASSERT_TRUE(sums->elapsed_ns >= 20 * PS_NS_PER_MS);
	ASSERT_TRUE(sums->counted[0].value < 10 * PS_NS_PER_MS);
}

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

TEST(regions, the_cost_of_an_empty_pass_is_measured)
{
	configure("task-clock,page-faults", 0);
	struct ps_region_sums overhead;
	ps_regions_overhead(&overhead);
	ASSERT_EQ(overhead.calls, 0);
	ASSERT_TRUE(ps_regions_calibrate(find("(empty)"), pass_empty, find("other")));
	ps_regions_overhead(&overhead);
	ASSERT_EQ(overhead.calls, 1001);
	ASSERT_TRUE(overhead.counted[0].value > 0 && overhead.counted[0].value < 100000);
	ASSERT_EQ(overhead.counted[1].value, 0);
	ASSERT_TRUE(overhead.elapsed_ns > 0);
	ASSERT_NULL(sums_of("(empty)"));
	ASSERT_EQ(sums_of("other")->calls, 1001);
}

TEST(regions, a_region_that_is_measured_keeps_its_own_passes)
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

TEST(regions, what_is_no_empty_pass_leaves_the_cost_unknown)
{
	ps_region_pass_function *functions[] = { pass_nothing, fail_to_pass, configure_within };
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		configure("task-clock", 0);
		ASSERT_FALSE(ps_regions_calibrate(find("(empty)"), functions[i], NULL));
		struct ps_region_sums overhead;
		ps_regions_overhead(&overhead);
		ASSERT_EQ(overhead.calls, 0);
	}
}

TEST(regions, the_cost_is_taken_off_for_each_call)
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

static long resident_kb(void)
{
	long size, resident;
	FILE *file = fopen("/proc/self/statm", "r");
	ASSERT_EQ(fscanf(file, "%ld %ld", &size, &resident), 2);
	fclose(file);
	return resident * (PAGE / 1024);
}

TEST(regions, a_million_passes_take_no_memory_and_no_descriptor)
{
	configure("page-faults,task-clock", 0);
	struct ps_region *region = warm("m");
	int nr_descriptors = count_descriptors();
	long before_kb = resident_kb();
	for (int i = 0; i < 1000000; i++) {
		ps_region_enter(region);
		ps_region_leave(region);
	}
	ASSERT_EQ(count_descriptors(), nr_descriptors);
	ASSERT_TRUE(resident_kb() <= before_kb + 1024);
	ASSERT_EQ(sums_of("m")->calls, 1000000);
	ASSERT_TRUE(sums_of("m")->counted[0].value <= 2);
}

static void *pass_once(void *region)
{
	ps_region_enter(region);
	ps_region_leave(region);
	return NULL;
}

TEST(regions, short_threads_leave_nothing_but_their_sums)
{
	configure("page-faults,task-clock", 0);
	struct ps_region *region = warm("short");
	int nr_descriptors = count_descriptors();
	long before_kb = 0;
	for (int i = 0; i < 5000; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, pass_once, region);
		pthread_join(thread, NULL);
		before_kb = i == 1000 ? resident_kb() : before_kb;
	}
	ASSERT_EQ(count_descriptors(), nr_descriptors);
#ifndef __SANITIZE_ADDRESS__ // which keeps what is freed for a while, and looks for leaks itself
	ASSERT_TRUE(resident_kb() <= before_kb + 1024);
#endif
	ASSERT_EQ(sums_of("short")->calls, 5000);
	ASSERT_EQ(sums_of("short")->incomplete, 0);
}

TEST(regions, c_names_are_found_by_text_whatever_their_address)
{
	ASSERT_EQ(perfscope_region_configure("page-faults", 0), 0);
	char buffer[100] = "one";
	perfscope_region_begin(buffer);
	perfscope_region_end("one");
	strcpy(buffer, "two");
	perfscope_region_begin(buffer);
	perfscope_region_end(buffer);
	memset(buffer, 'l', 99);
	perfscope_region_begin(buffer);
	perfscope_region_end(buffer);
	struct perfscope_region_total region;
	ASSERT_EQ(perfscope_region_totals("one", &region), 0);
	ASSERT_EQ(region.calls, 1);
	ASSERT_EQ(region.incomplete, 0);
	ASSERT_EQ(perfscope_region_totals("two", &region), 0);
	ASSERT_EQ(region.calls, 1);
	buffer[63] = '\0';
	ASSERT_EQ(perfscope_region_totals(buffer, &region), 0);
	ASSERT_EQ(perfscope_region_totals("three", &region), -1);
	ASSERT_STR_EQ(perfscope_region_error(), "no region 'three' was passed");
}

TEST(regions, c_totals_have_value_scaled_and_coverage)
{
	ASSERT_EQ(perfscope_region_configure("page-faults, task-clock", 0), 0);
	warm("v");
	perfscope_region_begin("v");
	fault(6);
	perfscope_region_end("v");
	struct perfscope_region_total region;
	ASSERT_EQ(perfscope_region_totals("v", &region), 0);
	ASSERT_EQ(region.nr_values, 2);
	ASSERT_STR_EQ(region.values[0].name, "page-faults");
	ASSERT_EQ(region.values[0].is_valid, 1);
	ASSERT_EQ(region.values[0].value, 6);
	ASSERT_TRUE(region.values[0].scaled == 6.0 && region.values[0].coverage == 1.0);
	ASSERT_TRUE(region.seconds > 0);
	ASSERT_EQ(perfscope_region_reset(), 0);
	ASSERT_EQ(perfscope_region_totals("v", &region), -1);
}

TEST(regions, c_errors_say_why)
{
	ASSERT_EQ(perfscope_region_configure("page-fault", 0), -1);
	ASSERT_STR_EQ(perfscope_region_error(),
		      "unknown counter 'page-fault'; did you mean page-faults?");
	ASSERT_EQ(perfscope_region_configure(NULL, 0), -1);
	ASSERT_STR_EQ(perfscope_region_error(), "no counters named");
	configure("page-faults", 0);
	perfscope_region_begin(NULL);
	ASSERT_STR_EQ(perfscope_region_error(), "a region needs a name");
	struct perfscope_region_total told;
	ASSERT_EQ(perfscope_region_totals(NULL, &told), -1);
}

TEST(regions, a_name_cannot_break_the_report)
{
	configure("page-faults", 0);
	perfscope_region_begin("two\nlines\x1b[31m");
	perfscope_region_end("two\nlines\x1b[31m");
	char text[4096] = "";
	FILE *file = fmemopen(text, sizeof(text), "w");
	ASSERT_EQ(perfscope_region_report(file), 0);
	fclose(file);
	ASSERT_NOT_NULL(strstr(text, "\ntwo?lines?[31m  "));
}

TEST(regions, a_c_scope_ends_with_its_block)
{
	ASSERT_EQ(perfscope_region_configure("page-faults", 0), 0);
	for (int i = 0; i < 3; i++) {
		PERFSCOPE_REGION("scope");
		if (i == 1)
			continue;
	}
	struct perfscope_region_total region;
	ASSERT_EQ(perfscope_region_totals("scope", &region), 0);
	ASSERT_EQ(region.calls, 3);
}

TEST(regions, a_report_is_a_table)
{
	ASSERT_EQ(perfscope_region_configure("page-faults", 0), 0);
	warm("table");
	perfscope_region_begin("table");
	fault(1234);
	perfscope_region_end("table");
	perfscope_region_end("table");
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	ASSERT_EQ(perfscope_region_report(file), 0);
	fclose(file);
	char name[32], calls[32], seconds[32], faults[32];
	const char *second_line = strchr(text, '\n') + 1;
	ASSERT_EQ(sscanf(text, "%s %s %s %s", name, calls, seconds, faults), 4);
	ASSERT_STR_EQ(name, "region");
	ASSERT_STR_EQ(faults, "page-faults");
	ASSERT_EQ(sscanf(second_line, "%s %s %s %s", name, calls, seconds, faults), 4);
	ASSERT_STR_EQ(name, "table");
	ASSERT_STR_EQ(calls, "1");
	ASSERT_STR_EQ(faults, "1234");
	ASSERT_NOT_NULL(strstr(text, "table: 1 pass incomplete"));
	free(text);
}

TEST(regions, what_finds_no_room_is_told)
{
	ASSERT_EQ(perfscope_region_configure("page-faults", 0), 0);
	char name[16];
	for (int i = 0; i < PS_REGION_TABLE_SLOTS + 3; i++) {
		sprintf(name, "full%d", i);
		perfscope_region_begin(name);
		perfscope_region_end(name);
	}
	ASSERT_EQ(ps_regions_nr_missed(), 3);
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	ASSERT_EQ(perfscope_region_report(file), 0);
	fclose(file);
	ASSERT_NOT_NULL(strstr(text, "no room for a region in a thread, 3 times"));
	free(text);
	configure("page-faults", 0);
	ASSERT_EQ(ps_regions_nr_missed(), 0);
}

/** In a child: attach to the file of @table, begin, fault 3 pages a pass until killed. */
static void count_for_ever(const char *path)
{
	setenv(PS_REGION_TABLE_VARIABLE, path, 1);
	if (!ps_regions_attach_environment())
		_exit(1);
	struct ps_region *region = find("killed");
	for (;;) {
		ps_region_enter(region);
		char *memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (int i = 0; i < 3; i++)
			((volatile char *)memory)[i * PAGE] = 1;
		ps_region_leave(region);
		munmap(memory, 3 * PAGE);
	}
}

TEST(regions, processes_killed_at_random_leave_whole_sums_in_one_table)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perfscope-test-regions-%d", getpid());
	ASSERT_OK(ps_counters_parse("page-faults", counters, &nr_counters));
	struct ps_region_table *table;
	ASSERT_OK(ps_region_table_create(path, counters, 1, 0, &table));
	for (int i = 0; i < 60; i++) {
		pid_t children[2];
		for (int c = 0; c < 2; c++) {
			children[c] = fork();
			if (!children[c])
				count_for_ever(path);
		}
		usleep(5000 + i * 7919 % 5000);
		for (int c = 0; c < 2; c++) {
			kill(children[c], SIGKILL);
			waitpid(children[c], NULL, 0);
		}
	}
	free(totals);
	totals = NULL;
	ASSERT_OK(ps_region_table_read(table, false, true, &totals, &nr_totals));
	ps_region_table_destroy(table);
	ASSERT_EQ(nr_totals, 1);
	ASSERT_TRUE(totals->sums.calls > 120);
	// A process may fault in a page of the table, or of its own, in its first passes.
	ASSERT_TRUE(totals->sums.counted[0].value >= 3 * totals->sums.calls);
	ASSERT_TRUE(totals->sums.counted[0].value <= 3 * totals->sums.calls + 120 * 8);
	ASSERT_TRUE(totals->sums.incomplete <= 120);
}

static struct ps_region_table *make_table(char *path, size_t size)
{
	snprintf(path, size, "/tmp/perfscope-test-program-%d", getpid());
	ASSERT_OK(ps_counters_parse("page-faults,task-clock", counters, &nr_counters));
	struct ps_region_table *table;
	ASSERT_OK(ps_region_table_create(path, counters, 2, 0, &table));
	return table;
}

/** Run region_c, which stands beside this program, until it ends; its status. What it prints goes to @output. */
static int run_program(const char *path, const char *events, const char *work, const char *nr,
		       char *output, size_t size)
{
	char program[256];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 32);
	program[length] = '\0';
	strcpy(strrchr(program, '/'), "/region_c");
	int ends[2];
	ASSERT_EQ(pipe(ends), 0);
	pid_t child = fork();
	if (!child) {
		dup2(ends[1], 1);
		setenv(PS_REGION_TABLE_VARIABLE, path, 1);
		if (events)
			setenv("EVENTS", events, 1);
		execl(program, program, work, nr, NULL);
		_exit(127);
	}
	close(ends[1]);
	length = read(ends[0], output, size - 1);
	output[length < 0 ? 0 : length] = '\0';
	close(ends[0]);
	int status;
	waitpid(child, &status, 0);
	return status;
}

static const struct ps_region_sums *table_sums(struct ps_region_table *table, const char *name)
{
	free(totals);
	totals = NULL;
	ASSERT_OK(ps_region_table_read(table, false, true, &totals, &nr_totals));
	for (size_t i = 0; i < nr_totals; i++) {
		if (!strcmp(totals[i].name, name))
			return &totals[i].sums;
	}
	fail_msg("no region %s", name);
	return NULL;
}

TEST(regions, an_observed_program_writes_to_the_table_and_counts_for_itself)
{
	char path[64], output[512];
	struct ps_region_table *table = make_table(path, sizeof(path));
	ASSERT_EQ(run_program(path, NULL, "pass", "11", output, sizeof(output)), 0);
	ASSERT_NOT_NULL(strstr(output, "\"before_main\": 1"));
	ASSERT_NOT_NULL(strstr(output, "\"page-faults\": 11"));
	ASSERT_EQ(table_sums(table, "work")->counted[0].value, 11);
	// Its own counters come after those of the observer, and are not in its table.
	ASSERT_EQ(run_program(path, "context-switches,page-faults", "pass", "20", output,
			      sizeof(output)),
		  0);
	ASSERT_NOT_NULL(strstr(output, "\"page-faults\": 20"));
	ASSERT_NULL(strstr(output, "task-clock"));
	ASSERT_EQ(table_sums(table, "work")->calls, 2);
	ASSERT_EQ(table_sums(table, "work")->counted[0].value, 31);
	ASSERT_EQ(table_sums(table, "work")->counted[2].enabled_ns, 0);
	ps_region_table_destroy(table);
}

TEST(regions, a_program_that_is_killed_leaves_its_passes)
{
	char path[64], output[512];
	struct ps_region_table *table = make_table(path, sizeof(path));
	ASSERT_EQ(run_program(path, NULL, "killed", "500", output, sizeof(output)), SIGKILL);
	ASSERT_EQ(table_sums(table, "work")->calls, 500);
	ASSERT_TRUE(table_sums(table, "work")->counted[0].value >= 500);
	ASSERT_TRUE(table_sums(table, "work")->counted[0].value <= 502);
	ASSERT_EQ(table_sums(table, "work")->incomplete, 0);
	ps_region_table_destroy(table);
}

TEST(regions, a_child_of_an_observed_program_is_in_the_table_too)
{
	char path[64], output[512];
	struct ps_region_table *table = make_table(path, sizeof(path));
	ASSERT_EQ(run_program(path, NULL, "forks", "3000", output, sizeof(output)), 0);
	ASSERT_EQ(table_sums(table, "work")->calls, 2);
	ASSERT_TRUE(table_sums(table, "work")->counted[0].value >= 3000);
	ASSERT_EQ(table_sums(table, "work")->incomplete, 0);
	ps_region_table_destroy(table);
}
