// SPDX-License-Identifier: MIT
/** Regions of processes that share a table. */
#include "regions.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct ps_region_share share;
static struct ps_region_total *totals;
static size_t nr_totals;

/** In a child: attach to the table @name, begin, fault 3 pages a pass until killed. */
static void count_for_ever(const char *name)
{
	setenv(PS_REGION_TABLE_VARIABLE, name, 1);
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

TEST(region_processes, processes_killed_at_random_leave_whole_sums_in_one_table)
{
	ASSERT_OK(ps_counters_parse("page-faults", counters, &nr_counters));
	ASSERT_OK(ps_region_share_create(geteuid(), getegid(), &share));
	struct ps_region_table *table;
	ASSERT_OK(ps_region_table_create(&share, counters, 1, 0, &table));
	for (int i = 0; i < 60; i++) {
		pid_t children[2];
		for (int c = 0; c < 2; c++) {
			children[c] = fork();
			if (!children[c])
				count_for_ever(share.name);
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
	ps_region_share_close(&share);
	ASSERT_EQ(nr_totals, 1);
	ASSERT_TRUE(totals->sums.calls > 120);
	// A process may fault in a page of the table, or of its own, in its first passes.
	ASSERT_TRUE(totals->sums.counted[0].value >= 3 * totals->sums.calls);
	ASSERT_TRUE(totals->sums.counted[0].value <= 3 * totals->sums.calls + 120 * 8);
	ASSERT_TRUE(totals->sums.incomplete <= 120);
}

static void pass_pages(struct ps_region *region, size_t nr)
{
	ps_region_enter(region);
	fault(nr);
	ps_region_leave(region);
}

/** In a child: 3 pages in a table, and 20 of a child of its own that no handler of fork is told of. */
static void count_in_both(const char *name)
{
	setenv(PS_REGION_TABLE_VARIABLE, name, 1);
	if (!ps_regions_attach_environment())
		_exit(1);
	struct ps_region *region = find("both");
	pass_pages(region, 1);
	pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!child) {
		pass_pages(region, 1);
		pass_pages(region, 20);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	ps_region_enter(region);
	child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!child)
		pthread_exit(NULL); // without a pass of its own
	waitpid(child, NULL, 0);
	fault(3);
	ps_region_leave(region);
	_exit(0);
}

TEST(region_processes, a_child_that_no_handler_is_told_of_has_its_own_in_the_table)
{
	ASSERT_OK(ps_counters_parse("page-faults", counters, &nr_counters));
	ASSERT_OK(ps_region_share_create(geteuid(), getegid(), &share));
	struct ps_region_table *table;
	ASSERT_OK(ps_region_table_create(&share, counters, 1, 0, &table));
	pid_t child = fork();
	if (!child)
		count_in_both(share.name);
	int status;
	waitpid(child, &status, 0);
	ASSERT_EQ(status, 0);
	free(totals);
	totals = NULL;
	ASSERT_OK(ps_region_table_read(table, false, true, &totals, &nr_totals));
	ps_region_table_destroy(table);
	ps_region_share_close(&share);
	ASSERT_EQ(nr_totals, 1);
	ASSERT_EQ(totals->sums.calls, 4);
	ASSERT_EQ(totals->sums.incomplete, 0);
	// And what is copied after a fork, in the first passes.
	ASSERT_TRUE(totals->sums.counted[0].value >= 25);
	ASSERT_TRUE(totals->sums.counted[0].value <= 25 + 12 ||
		    are_faults(totals->sums.counted[0].value, 25));
}

static struct ps_region_table *make_table(void)
{
	ASSERT_OK(ps_region_share_create(geteuid(), getegid(), &share));
	ASSERT_OK(ps_counters_parse("page-faults,task-clock", counters, &nr_counters));
	struct ps_region_table *table;
	ASSERT_OK(ps_region_table_create(&share, counters, 2, 0, &table));
	return table;
}

/** Run region_c, which stands beside this program, until it ends; its status. What it prints goes to @output. */
static int run_program(const char *events, const char *work, const char *nr, char *output,
		       size_t size)
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
		setenv(PS_REGION_TABLE_VARIABLE, share.name, 1);
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

/** What a program told in @output that it counted itself. */
static uint64_t told_faults(const char *output)
{
	const char *told = strstr(output, "\"page-faults\": ");
	ASSERT_NOT_NULL(told);
	return strtoull(told + strlen("\"page-faults\": "), NULL, 10);
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

TEST(region_processes, an_observed_program_writes_to_the_table_and_counts_for_itself)
{
	char output[512];
	struct ps_region_table *table = make_table();
	ASSERT_EQ(run_program(NULL, "pass", "11", output, sizeof(output)), 0);
	ASSERT_NOT_NULL(strstr(output, "\"before_main\": 1"));
	ASSERT_FAULTS(told_faults(output), 11);
	ASSERT_FAULTS(table_sums(table, "work")->counted[0].value, 11);
	// Its own counters come after those of the observer, and are not in its table.
	ASSERT_EQ(run_program("context-switches,page-faults", "pass", "20", output, sizeof(output)),
		  0);
	ASSERT_FAULTS(told_faults(output), 20);
	ASSERT_NULL(strstr(output, "task-clock"));
	ASSERT_EQ(table_sums(table, "work")->calls, 2);
	ASSERT_FAULTS(table_sums(table, "work")->counted[0].value, 31);
	ASSERT_EQ(table_sums(table, "work")->counted[2].enabled_ns, 0);
	ps_region_table_destroy(table);
	ps_region_share_close(&share);
}

TEST(region_processes, a_program_that_is_killed_leaves_its_passes)
{
	char output[512];
	struct ps_region_table *table = make_table();
	ASSERT_EQ(run_program(NULL, "killed", "500", output, sizeof(output)), SIGKILL);
	ASSERT_EQ(table_sums(table, "work")->calls, 500);
	ASSERT_TRUE(table_sums(table, "work")->counted[0].value >= 500);
	ASSERT_TRUE(table_sums(table, "work")->counted[0].value <= 502 ||
		    are_faults(table_sums(table, "work")->counted[0].value, 500));
	ASSERT_EQ(table_sums(table, "work")->incomplete, 0);
	ps_region_table_destroy(table);
	ps_region_share_close(&share);
}

TEST(region_processes, a_child_of_an_observed_program_is_in_the_table_too)
{
	char output[512];
	struct ps_region_table *table = make_table();
	ASSERT_EQ(run_program(NULL, "forks", "3000", output, sizeof(output)), 0);
	ASSERT_EQ(table_sums(table, "work")->calls, 2);
	ASSERT_TRUE(table_sums(table, "work")->counted[0].value >= 3000);
	ASSERT_EQ(table_sums(table, "work")->incomplete, 0);
	ps_region_table_destroy(table);
	ps_region_share_close(&share);
}
