// SPDX-License-Identifier: MIT
#include "test.h"

#include <linux/perf_event.h>
#include <perfscope/region_table.h>
#include <pthread.h>
#include <signal.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PAGE 4096

static const struct ps_counter counters[] = {
	{ .name = "page-faults", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS },
	{ .name = "task-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK },
};
static struct ps_region_table *table;
static struct ps_region_total *totals;
static size_t nr_totals;
static struct ps_region_share share;

static void create_memory(void)
{
	ASSERT_OK(ps_region_table_create(NULL, counters, 2, 0, &table));
}

static void create_shared(void)
{
	ASSERT_OK(ps_region_share_create(geteuid(), getegid(), &share));
	ASSERT_OK(ps_region_table_create(&share, counters, 2, PS_GROUP_INHERIT, &table));
}

static void destroy(void)
{
	free(totals);
	totals = NULL;
	ps_region_table_destroy(table);
	table = NULL;
	ps_region_share_close(&share);
}

static void read_totals(bool by_thread, bool at_end)
{
	free(totals);
	totals = NULL;
	ASSERT_OK(ps_region_table_read(table, by_thread, at_end, &totals, &nr_totals));
}

/** One pass in which counter 0 went by @value. */
static void pass(struct ps_region_slot *slot, uint64_t value)
{
	ps_region_slot_open(slot, 1);
	struct ps_region_sums *sums = ps_region_slot_edit(slot);
	sums->calls++;
	sums->elapsed_ns += 10;
	sums->counted[0].value += value;
	sums->counted[0].enabled_ns += 10;
	sums->counted[0].running_ns += 10;
	ps_region_slot_publish_open(slot, -1);
}

static struct ps_region_slot *claim(const char *name)
{
	struct ps_region_slot *slot = ps_region_table_claim(table, name);
	ASSERT_NOT_NULL(slot);
	return slot;
}

TEST(region_table, slots_of_one_name_are_one_entry_in_the_order_of_names)
{
	create_memory();
	struct ps_region_slot *second = claim("second"), *first = claim("first");
	pass(first, 1);
	pass(second, 2);
	pass(claim("second"), 40);
	read_totals(false, false);
	ASSERT_EQ(nr_totals, 2);
	ASSERT_STR_EQ(totals[0].name, "second");
	ASSERT_EQ(totals[0].sums.calls, 2);
	ASSERT_EQ(totals[0].sums.counted[0].value, 42);
	ASSERT_EQ(totals[0].sums.elapsed_ns, 20);
	ASSERT_EQ(totals[0].tid, 0);
	ASSERT_EQ(totals[1].sums.counted[0].value, 1);
	destroy();
}

static void *pass_in_thread(void *is_released)
{
	struct ps_region_slot *slot = ps_region_table_claim(table, "x");
	pass(slot, 100);
	if (is_released)
		ps_region_slot_release(slot);
	return (void *)syscall(SYS_gettid);
}

static pid_t run_thread(bool is_released)
{
	pthread_t thread;
	void *tid;
	pthread_create(&thread, NULL, pass_in_thread, is_released ? &thread : NULL);
	pthread_join(thread, &tid);
	return (pid_t)(intptr_t)tid;
}

TEST(region_table, threads_are_told_apart_on_request)
{
	create_memory();
	pass(claim("x"), 1);
	pid_t tid = run_thread(false);
	read_totals(true, false);
	ASSERT_EQ(nr_totals, 2);
	ASSERT_EQ(totals[0].tid, getpid());
	ASSERT_EQ(totals[1].pid, getpid());
	ASSERT_EQ(totals[1].tid, tid);
	ASSERT_EQ(totals[1].sums.counted[0].value, 100);
	destroy();
}

TEST(region_table, a_released_slot_is_added_up_and_free_again)
{
	create_memory();
	pass(claim("live"), 1);
	for (int i = 0; i < 3 * PS_REGION_TABLE_SLOTS; i++) {
		struct ps_region_slot *slot = claim("x");
		pass(slot, 2);
		ps_region_slot_release(slot);
	}
	ASSERT_EQ(ps_region_table_nr_missed(table), 0);
	read_totals(true, false);
	ASSERT_EQ(nr_totals, 2);
	ASSERT_STR_EQ(totals[0].name, "x");
	ASSERT_EQ(totals[0].tid, 0);
	ASSERT_EQ(totals[0].sums.calls, 3 * PS_REGION_TABLE_SLOTS);
	ASSERT_EQ(totals[0].sums.counted[0].value, 6 * PS_REGION_TABLE_SLOTS);
	destroy();
}

TEST(region_table, what_does_not_fit_is_counted)
{
	create_shared();
	for (int i = 0; i < PS_REGION_TABLE_SLOTS; i++)
		pass(claim("x"), 1);
	ASSERT_NULL(ps_region_table_claim(table, "y"));
	ASSERT_NULL(ps_region_table_claim(table, "y"));
	ASSERT_EQ(ps_region_table_nr_missed(table), 2);
	read_totals(false, false);
	ASSERT_EQ(totals[0].sums.calls, PS_REGION_TABLE_SLOTS);
	destroy();
}

TEST(region_table, a_reset_takes_off_what_was_counted_until_then)
{
	create_memory();
	struct ps_region_slot *slot = claim("x"), *gone = claim("gone");
	pass(slot, 5);
	pass(gone, 7);
	ps_region_slot_release(gone);
	ASSERT_OK(ps_region_table_reset(table));
	read_totals(false, false);
	ASSERT_EQ(nr_totals, 0);
	pass(slot, 3);
	read_totals(false, false);
	ASSERT_EQ(nr_totals, 1);
	ASSERT_EQ(totals[0].sums.calls, 1);
	ASSERT_EQ(totals[0].sums.counted[0].value, 3);
	ps_region_slot_release(slot);
	read_totals(false, false);
	ASSERT_EQ(totals[0].sums.counted[0].value, 3);
	destroy();
}

TEST(region_table, open_passes_are_incomplete_at_the_end_alone)
{
	create_memory();
	struct ps_region_slot *slot = claim("x");
	ps_region_slot_open(slot, 1);
	ps_region_slot_open(slot, 1);
	pass(slot, 1);
	read_totals(false, false);
	ASSERT_EQ(totals[0].sums.incomplete, 0);
	ASSERT_EQ(totals[0].open, 2);
	read_totals(false, true);
	ASSERT_EQ(totals[0].open, 0);
	ASSERT_EQ(totals[0].sums.incomplete, 2);
	ASSERT_EQ(totals[0].sums.calls, 1);
	destroy();
}

TEST(region_table, a_pass_may_end_in_another_thread_than_it_began)
{
	create_memory();
	struct ps_region_slot *begun = claim("x"), *ended = claim("x");
	ps_region_slot_open(begun, 1);
	ps_region_slot_release(begun);
	ps_region_slot_edit(ended)->calls++;
	ps_region_slot_publish_open(ended, -1);
	read_totals(false, true);
	ASSERT_EQ(totals[0].sums.calls, 1);
	ASSERT_EQ(totals[0].sums.incomplete, 0);
	destroy();
}

TEST(region_table, a_pass_left_open_by_a_thread_that_ended_is_incomplete_at_the_end)
{
	create_memory();
	struct ps_region_slot *slot = claim("x");
	pass(slot, 1);
	ps_region_slot_open(slot, 1);
	ps_region_slot_release(slot);
	read_totals(false, false);
	ASSERT_EQ(totals[0].sums.incomplete, 0);
	read_totals(false, true);
	ASSERT_EQ(totals[0].sums.incomplete, 1);
	destroy();
}

TEST(region_table, a_counter_that_never_ran_is_invalid)
{
	create_memory();
	struct ps_region_slot *slot = claim("x");
	pass(slot, 1);
	struct ps_region_sums *sums = ps_region_slot_edit(slot);
	sums->counted[1].enabled_ns = 1;
	ps_region_slot_publish_open(slot, 0);
	read_totals(false, false);
	ASSERT_EQ(totals[0].sums.invalid, 2);
	destroy();
}

TEST(region_table, long_names_are_cut)
{
	create_memory();
	char name[100];
	memset(name, 'n', 99);
	name[99] = '\0';
	pass(claim(name), 1);
	read_totals(false, false);
	ASSERT_EQ(strlen(totals[0].name), PS_REGION_NAME_SIZE - 1);
	destroy();
}

TEST(region_table, another_process_writes_to_the_same_memory)
{
	create_shared();
	pid_t child = fork();
	if (!child) {
		struct ps_region_table *other;
		if (ps_region_table_open(share.name, &other))
			_exit(1);
		size_t nr;
		if (strcmp(ps_region_table_counters(other, &nr)[1].name, "task-clock") || nr != 2 ||
		    ps_region_table_group_flags(other) != PS_GROUP_INHERIT)
			_exit(2);
		ps_region_table_refuse(other, 1, "no such thing");
		ps_region_table_refuse(other, 1, "later");
		struct ps_region_slot *slot = ps_region_table_claim(other, "x");
		pass(slot, 7);
		ps_region_slot_open(slot, 1);
		ps_region_table_destroy(other);
		_exit(0);
	}
	int exit_status;
	waitpid(child, &exit_status, 0);
	ASSERT_EQ(exit_status, 0);
	pass(claim("x"), 1);
	read_totals(false, false);
	ASSERT_EQ(totals[0].sums.counted[0].value, 8);
	ASSERT_EQ(totals[0].sums.incomplete, 1); // which the process had open when it ended
	ASSERT_NULL(ps_region_table_reason(table, 0));
	ASSERT_STR_EQ(ps_region_table_reason(table, 1), "no such thing");
	destroy();
}

/** How many mappings of this process are left out of a core file. */
static int nr_left_out_of_cores(void)
{
	char line[512];
	int nr = 0;
	_cleanup_fclose_ FILE *file = fopen("/proc/self/smaps", "re");
	ASSERT_NOT_NULL(file);
	while (fgets(line, sizeof(line), file))
		nr += !strncmp(line, "VmFlags:", 8) && strstr(line, " dd");
	return nr;
}

TEST(region_table, what_is_not_a_table_is_not_opened)
{
	struct ps_region_table *other;
	ASSERT_ERROR(ps_region_table_open("/dev/null", &other), PS_ERROR_BAD_DATA,
		     "/dev/null: not a table of regions");
	ASSERT_ERROR(ps_region_table_open("2147483647:1", &other), PS_ERROR_OS,
		     "open the table of regions 2147483647:1: ");
	create_shared();
	char name[PS_REGION_SHARE_NAME_SIZE];
	snprintf(name, sizeof(name), "%d:1", atoi(share.name));
	ASSERT_ERROR(ps_region_table_open(name, &other), PS_ERROR_BAD_DATA,
		     "not a table of regions of this version");
	memset(share.memory, 0, sizeof(int));
	ASSERT_ERROR(ps_region_table_open(share.name, &other), PS_ERROR_BAD_DATA, "not a table");
	destroy();
	int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
	snprintf(name, sizeof(name), "%d:1", id);
	int nr = nr_left_out_of_cores();
	ASSERT_ERROR(ps_region_table_open(name, &other), PS_ERROR_BAD_DATA, "not a table");
	ASSERT_EQ(nr_left_out_of_cores(), nr); // of what lies behind it either
	ASSERT_EQ(shmctl(id, IPC_RMID, NULL), 0);
}

/** How many processes have the segment @name; -1: there is none. */
static int nr_attached(const char *name)
{
	struct shmid_ds status;
	return shmctl(atoi(name), IPC_STAT, &status) ? -1 : (int)status.shm_nattch;
}

TEST(region_table, shared_memory_goes_with_the_last_who_has_it)
{
	create_shared();
	struct shmid_ds status;
	ASSERT_EQ(shmctl(atoi(share.name), IPC_STAT, &status), 0);
	ASSERT_EQ(status.shm_perm.mode & 0777, 0600);
	struct ps_region_table *other;
	ASSERT_OK(ps_region_table_open(share.name, &other));
	ASSERT_EQ(nr_attached(share.name), 2);
	char name[PS_REGION_SHARE_NAME_SIZE];
	strcpy(name, share.name);
	destroy();
	ASSERT_EQ(nr_attached(name), 1);
	ps_region_table_destroy(other);
	ASSERT_EQ(nr_attached(name), -1);
}

static int open_as(uid_t uid)
{
	pid_t child = fork();
	if (!child) {
		struct ps_region_table *other;
		_exit(setgid(uid) || setuid(uid) || ps_region_table_open(share.name, &other));
	}
	int status;
	waitpid(child, &status, 0);
	return status;
}

TEST(region_table, shared_memory_is_one_users)
{
	ASSERT_OK(ps_region_share_create(65534, 65534, &share));
	ASSERT_OK(ps_region_table_create(&share, counters, 2, 0, &table));
	ASSERT_EQ(open_as(65534), 0);
	ASSERT_TRUE(open_as(65533) != 0);
	destroy();
}

/** Write passes of 3 until killed. */
static void write_for_ever(void)
{
	struct ps_region_slot *slot = ps_region_table_claim(table, "x");
	for (;;)
		pass(slot, 3);
}

TEST(region_table, a_writer_killed_at_any_moment_leaves_whole_sums)
{
	create_shared();
	for (int i = 0; i < 300; i++) {
		pid_t child = fork();
		if (!child) {
			ps_region_table_forked(table);
			write_for_ever();
		}
		usleep(i * 37 % 997 + 300);
		read_totals(false, false);
		kill(child, SIGKILL);
		ASSERT_TRUE(!nr_totals || totals->sums.counted[0].value == 3 * totals->sums.calls);
		waitpid(child, NULL, 0);
	}
	read_totals(true, true);
	ASSERT_EQ(nr_totals, 1);
	ASSERT_TRUE(totals->sums.calls > 1000);
	ASSERT_EQ(totals->sums.counted[0].value, 3 * totals->sums.calls);
	ASSERT_EQ(totals->sums.elapsed_ns, 10 * totals->sums.calls);
	ASSERT_TRUE(totals->sums.incomplete <= 300);
	destroy();
}

TEST(region_table, a_child_of_fork_has_none_of_its_parents_memory)
{
	create_memory();
	pass(claim("x"), 1);
	pid_t child = fork();
	if (!child) {
		ps_region_table_forked(table);
		read_totals(false, false);
		if (nr_totals)
			_exit(1);
		pass(claim("y"), 2);
		read_totals(false, false);
		_exit(nr_totals == 1 && totals->sums.counted[0].value == 2 ? 0 : 2);
	}
	int status;
	waitpid(child, &status, 0);
	ASSERT_EQ(status, 0);
	read_totals(false, false);
	ASSERT_EQ(nr_totals, 1);
	ASSERT_STR_EQ(totals->name, "x");
	destroy();
}
