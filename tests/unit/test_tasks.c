// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/tasks.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

// No kernel hands out ids from here on (PID_MAX_LIMIT): /proc knows nothing of these threads.
#define NOBODY 4200000

/** As the kernel writes them, with a sample_id of 24 bytes behind. */
union record {
	struct perf_event_header header;
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		char comm[16];
		uint64_t trailer[3];
	} comm;
	struct {
		struct perf_event_header header;
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
		uint64_t trailer[3];
	} task;
};

static void follow_comm_as(struct ps_tasks *tasks, pid_t tid, const char *comm, uint16_t misc,
			   uint64_t time_ns)
{
	union record record = { .comm = { .pid = tid, .tid = tid } };
	record.header = (struct perf_event_header){ PERF_RECORD_COMM, misc, sizeof(record.comm) };
	memcpy(record.comm.comm, comm, strlen(comm));
	memset(record.comm.trailer, 'x', sizeof(record.comm.trailer));
	ps_tasks_follow(tasks, &record.header, time_ns);
}

static void follow_comm(struct ps_tasks *tasks, pid_t tid, const char *comm, uint64_t time_ns)
{
	follow_comm_as(tasks, tid, comm, 0, time_ns);
}

static void follow(struct ps_tasks *tasks, uint32_t type, pid_t tid, pid_t ptid, uint64_t time_ns)
{
	union record record = { .task = { .pid = tid, .ppid = ptid, .tid = tid, .ptid = ptid } };
	record.header = (struct perf_event_header){ type, 0, sizeof(record.task) };
	ps_tasks_follow(tasks, &record.header, time_ns);
}

static void follow_fork(struct ps_tasks *tasks, pid_t parent, pid_t child, uint64_t time_ns)
{
	follow(tasks, PERF_RECORD_FORK, child, parent, time_ns);
}

static void follow_exit(struct ps_tasks *tasks, pid_t tid, uint64_t time_ns)
{
	follow(tasks, PERF_RECORD_EXIT, tid, 1, time_ns);
}

static struct ps_tasks *create(void)
{
	struct ps_tasks *tasks;
	ASSERT_OK(ps_tasks_create(&tasks));
	return tasks;
}

TEST(tasks, a_name_is_the_one_of_the_last_record)
{
	struct ps_tasks *tasks = create();
	follow_comm(tasks, NOBODY, "first", 1);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY), "first");
	follow_comm(tasks, NOBODY, "2", 2);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY), "2");
	ASSERT_EQ(ps_tasks_size(tasks), 1);
	ps_tasks_destroy(tasks);
}

TEST(tasks, a_name_holds_any_bytes_and_at_most_fifteen)
{
	struct ps_tasks *tasks = create();
	follow_comm(tasks, NOBODY, "\xff\x01\n) (%s", 1);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY), "\xff\x01\n) (%s");
	follow_comm(tasks, NOBODY, "0123456789abcdef", 2);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY), "0123456789abcde");
	ps_tasks_destroy(tasks);
}

TEST(tasks, a_child_takes_the_name_of_its_parent)
{
	struct ps_tasks *tasks = create();
	follow_comm(tasks, NOBODY, "parent", 1);
	follow_fork(tasks, NOBODY, NOBODY + 1, 2);
	follow_comm(tasks, NOBODY, "renamed", 3);
	follow_fork(tasks, NOBODY + 1, NOBODY + 2, 4);
	follow_comm_as(tasks, NOBODY + 1, "ls", PERF_RECORD_MISC_COMM_EXEC, 5);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY), "renamed");
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY + 1), "ls");
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY + 2), "parent");
	ps_tasks_destroy(tasks);
}

TEST(tasks, a_parent_not_heard_of_is_looked_up)
{
	struct ps_tasks *tasks = create();
	prctl(PR_SET_NAME, "test-parent");
	follow_fork(tasks, getpid(), NOBODY, 1);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY), "test-parent");
	ps_tasks_destroy(tasks);
}

TEST(tasks, a_parent_in_another_namespace_gives_no_name)
{
	struct ps_tasks *tasks = create();
	follow_fork(tasks, 0, NOBODY, 1);
	ASSERT_NULL(ps_tasks_comm(tasks, NOBODY));
	ps_tasks_destroy(tasks);
}

TEST(tasks, an_ended_thread_keeps_its_name_until_its_id_is_reused)
{
	struct ps_tasks *tasks = create();
	follow_comm(tasks, NOBODY, "old", 1);
	follow_exit(tasks, NOBODY, 2);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY), "old");
	follow_comm(tasks, NOBODY + 1, "other", 3);
	follow_fork(tasks, NOBODY + 1, NOBODY, 4);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY), "other");
	ASSERT_EQ(ps_tasks_size(tasks), 2);
	ps_tasks_destroy(tasks);
}

TEST(tasks, a_reused_id_of_an_unknown_parent_loses_the_old_name)
{
	struct ps_tasks *tasks = create();
	follow_comm(tasks, NOBODY, "old", 1);
	follow_fork(tasks, NOBODY + 1, NOBODY, 2);
	ASSERT_NULL(ps_tasks_comm(tasks, NOBODY));
	ASSERT_EQ(ps_tasks_size(tasks), 0);
	ps_tasks_destroy(tasks);
}

TEST(tasks, ended_threads_go_oldest_first)
{
	struct ps_tasks *tasks = create();
	follow_comm(tasks, NOBODY, "lives", 1);
	for (int i = 1; i <= PS_TASKS_MAX_DEAD + 3; i++) {
		follow_fork(tasks, NOBODY, NOBODY + i, 1 + i);
		follow_exit(tasks, NOBODY + i, 1 + i);
	}
	ASSERT_EQ(ps_tasks_size(tasks), PS_TASKS_MAX_DEAD + 1);
	ASSERT_NULL(ps_tasks_comm(tasks, NOBODY + 3));
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY + 4), "lives");
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY + PS_TASKS_MAX_DEAD + 3), "lives");
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY), "lives");
	ps_tasks_destroy(tasks);
}

TEST(tasks, a_reused_id_is_not_among_those_that_go)
{
	struct ps_tasks *tasks = create();
	follow_comm(tasks, NOBODY, "parent", 1);
	for (int i = 1; i <= 3; i++) {
		follow_fork(tasks, NOBODY, NOBODY + i, 2);
		follow_exit(tasks, NOBODY + i, 2);
	}
	follow_comm(tasks, NOBODY, "again", 3);
	follow_fork(tasks, NOBODY, NOBODY + 2, 3);
	for (int i = 4; i < PS_TASKS_MAX_DEAD + 10; i++) {
		follow_fork(tasks, NOBODY, NOBODY + i, 4);
		follow_exit(tasks, NOBODY + i, 4);
	}
	ASSERT_NULL(ps_tasks_comm(tasks, NOBODY + 1));
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY + 2), "again");
	ASSERT_NULL(ps_tasks_comm(tasks, NOBODY + 3));
	ASSERT_EQ(ps_tasks_size(tasks), PS_TASKS_MAX_DEAD + 2);
	ps_tasks_destroy(tasks);
}

TEST(tasks, short_lived_processes_do_not_fill_the_table)
{
	struct ps_tasks *tasks = create();
	follow_comm(tasks, NOBODY, "sh", 1);
	for (int i = 0; i < 200000; i++) {
		follow_fork(tasks, NOBODY, NOBODY + 1 + i % 30000, 2 + i);
		follow_exit(tasks, NOBODY + 1 + i % 30000, 2 + i);
	}
	ASSERT_EQ(ps_tasks_size(tasks), PS_TASKS_MAX_DEAD + 1);
	ps_tasks_destroy(tasks);
}

TEST(tasks, lost_exits_do_not_fill_the_table)
{
	struct ps_tasks *tasks = create();
	follow_comm(tasks, NOBODY, "sh", 1);
	for (int i = 1; i <= 50000; i++)
		follow_comm(tasks, NOBODY + i, "lost", 2);
	// What was added since the last look, and the dead.
	ASSERT_TRUE(ps_tasks_size(tasks) <= 2 * PS_TASKS_MAX_DEAD);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY + 50000), "lost");
	ps_tasks_destroy(tasks);
}

TEST(tasks, exec_by_a_thread_brings_the_id_of_the_process_back)
{
	struct ps_tasks *tasks = create();
	follow_comm(tasks, NOBODY, "leader", 1);
	follow_exit(tasks, NOBODY, 2);
	follow_comm_as(tasks, NOBODY, "ls", PERF_RECORD_MISC_COMM_EXEC, 3);
	for (int i = 1; i <= PS_TASKS_MAX_DEAD + 1; i++) {
		follow_fork(tasks, NOBODY, NOBODY + i, 4);
		follow_exit(tasks, NOBODY + i, 4);
	}
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY), "ls");
	ps_tasks_destroy(tasks);
}

TEST(tasks, a_late_record_changes_nothing)
{
	struct ps_tasks *tasks = create();
	follow_comm(tasks, NOBODY, "new", 10);
	follow_comm(tasks, NOBODY, "old", 9);
	follow_fork(tasks, getpid(), NOBODY, 9);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY), "new");
	follow_comm(tasks, NOBODY, "untimed", 0);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, NOBODY), "untimed");
	ps_tasks_destroy(tasks);
}

TEST(tasks, records_that_are_cut_or_of_other_kinds_are_passed_over)
{
	struct ps_tasks *tasks = create();
	union record record = { .comm = { .tid = NOBODY, .comm = "x" } };
	for (uint32_t type = 0; type < 100; type++) {
		bool is_known = type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT;
		uint16_t cut = is_known ? 23 : 16;
		for (uint16_t size = 0; size <= cut; size++) {
			record.header = (struct perf_event_header){ type, 0, size };
			ps_tasks_follow(tasks, &record.header, 1);
		}
	}
	ASSERT_EQ(ps_tasks_size(tasks), 0);
	follow_comm(tasks, 0, "idle", 1);
	follow_comm(tasks, -1, "none", 1);
	ASSERT_EQ(ps_tasks_size(tasks), 0);
	ps_tasks_destroy(tasks);
}

TEST(tasks, the_idle_thread_is_swapper_and_nobody_has_no_name)
{
	struct ps_tasks *tasks = create();
	ASSERT_STR_EQ(ps_tasks_comm(tasks, 0), "swapper");
	ASSERT_NULL(ps_tasks_comm(tasks, -1));
	ASSERT_NULL(ps_tasks_comm(tasks, NOBODY));
	ASSERT_EQ(ps_tasks_size(tasks), 0);
	ps_tasks_destroy(tasks);
	ps_tasks_destroy(NULL);
}

static pthread_barrier_t barrier;
static pid_t thread_tid;

static void *run_thread(void *argument)
{
	prctl(PR_SET_NAME, argument);
	thread_tid = syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

TEST(tasks, a_snapshot_names_every_thread_of_a_process)
{
	pthread_t thread;
	pthread_barrier_init(&barrier, NULL, 2);
	prctl(PR_SET_NAME, "first\xfe\n");
	pthread_create(&thread, NULL, run_thread, (void *)"second");
	pthread_barrier_wait(&barrier);
	struct ps_tasks *tasks = create();
	pid_t pid = getpid();
	ps_tasks_snapshot(tasks, &pid, 1);
	ASSERT_EQ(ps_tasks_size(tasks), 2);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, pid), "first\xfe\n");
	ASSERT_STR_EQ(ps_tasks_comm(tasks, thread_tid), "second");
	ps_tasks_destroy(tasks);
}

TEST(tasks, a_snapshot_of_all_holds_what_ends_right_after)
{
	int hold[2];
	ASSERT_EQ(pipe(hold), 0);
	prctl(PR_SET_NAME, "test-child");
	pid_t child = fork();
	if (!child) {
		char byte;
		close(hold[1]);
		_exit(read(hold[0], &byte, 1));
	}
	struct ps_tasks *tasks = create();
	ps_tasks_snapshot(tasks, NULL, 0);
	close(hold[1]);
	close(hold[0]);
	waitpid(child, NULL, 0);
	ASSERT_STR_EQ(ps_tasks_comm(tasks, child), "test-child");
	ASSERT_STR_EQ(ps_tasks_comm(tasks, getpid()), "test-child");
	ps_tasks_destroy(tasks);
}

TEST(tasks, a_snapshot_of_a_process_that_is_gone_is_empty)
{
	struct ps_tasks *tasks = create();
	pid_t pid = NOBODY;
	ps_tasks_snapshot(tasks, &pid, 1);
	ASSERT_EQ(ps_tasks_size(tasks), 0);
	ps_tasks_destroy(tasks);
}

TEST(tasks, a_program_that_poses_as_a_worker_keeps_its_name)
{
	struct ps_tasks *tasks = create();
	prctl(PR_SET_NAME, "kworker/0:1-x");
	ASSERT_STR_EQ(ps_tasks_comm(tasks, getpid()), "kworker/0:1-x");
	ps_tasks_destroy(tasks);
}
