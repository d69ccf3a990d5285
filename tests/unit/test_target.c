// SPDX-License-Identifier: MIT
#include "cgroup2.h"
#include "test.h"

#include <perfscope/target.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define ASSERT_CPUS(text, ...)                                                                     \
	do {                                                                                       \
		const int expected_[] = { __VA_ARGS__ };                                           \
		int *cpus_;                                                                        \
		size_t nr_;                                                                        \
		ASSERT_OK(ps_parse_cpu_list(text, &cpus_, &nr_));                                  \
		ASSERT_EQ(nr_, PS_ARRAY_SIZE(expected_));                                          \
		assert_memory_equal(cpus_, expected_, sizeof(expected_));                          \
		free(cpus_);                                                                       \
	} while (0)

TEST(target, cpu_lists_come_out_ascending_and_distinct)
{
	ASSERT_CPUS("0", 0);
	ASSERT_CPUS("0-3,8", 0, 1, 2, 3, 8);
	ASSERT_CPUS("8,2,0-2,2", 0, 1, 2, 8);
	ASSERT_CPUS("65535", 65535);
}

TEST(target, cpu_lists_that_are_none_are_refused)
{
	static const char *const bad[] = { "",
					   ",",
					   "0,",
					   "0,,1",
					   "a",
					   "0-",
					   "3-1",
					   "-1",
					   "0 1",
					   "65536",
					   "0-65536",
					   "0-1-2",
					   "99999999999999999999",
					   "+1",
					   " 1" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(bad); i++) {
		int *cpus = NULL;
		size_t nr = 42;
		ASSERT_ERROR(ps_parse_cpu_list(bad[i], &cpus, &nr), PS_ERROR_USAGE,
			     "is not N or N-M, separated by commas, like 0-3,8");
		ASSERT_NULL(cpus);
		ASSERT_EQ(nr, 42);
	}
}

TEST(target, a_bad_cpu_list_names_the_part_that_is_wrong)
{
	int *cpus;
	size_t nr;
	ASSERT_ERROR(ps_parse_cpu_list("0,x,2", &cpus, &nr), PS_ERROR_USAGE,
		     "cpu list \"0,x,2\": \"x,2\" is not");
}

static struct ps_target resolve(struct ps_target_options options)
{
	struct ps_target target;
	ASSERT_OK(ps_target_resolve(&options, &target));
	return target;
}

/** The text of the sysfs file that lists CPUs, parsed. */
static int *read_cpus(const char *path, size_t *nr, char *text, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	ASSERT_NOT_NULL(file);
	ASSERT_NOT_NULL(fgets(text, size, file));
	text[strcspn(text, "\n")] = 0;
	int *cpus;
	ASSERT_OK(ps_parse_cpu_list(text, &cpus, nr));
	return cpus;
}

TEST(target, nothing_asked_for_is_all_online_cpus)
{
	char text[4096];
	size_t nr;
	_cleanup_free_ int *online = read_cpus("/sys/devices/system/cpu/online", &nr, text, 4096);
	struct ps_target target = resolve((struct ps_target_options){ 0 });
	ASSERT_EQ(target.kind, PS_TARGET_CPUS);
	ASSERT_EQ(target.nr_cpus, nr);
	assert_memory_equal(target.cpus, online, nr * sizeof(int));
	ASSERT_FALSE(target.is_cpu_list);
	ASSERT_EQ(target.nr_tids, 0);
	ASSERT_EQ(target.cgroup_fd, -1);
	ps_target_deinit(&target);
}

TEST(target, a_cpu_list_is_opened_as_given)
{
	struct ps_target target = resolve((struct ps_target_options){ .cpus = "0" });
	ASSERT_EQ(target.nr_cpus, 1);
	ASSERT_EQ(target.cpus[0], 0);
	ASSERT_TRUE(target.is_cpu_list);
	ps_target_deinit(&target);
}

TEST(target, a_cpu_that_does_not_exist_is_told_with_those_that_do)
{
	char text[4096], expected[4200];
	size_t nr;
	free(read_cpus("/sys/devices/system/cpu/present", &nr, text, 4096));
	snprintf(expected, sizeof(expected), "cpu 60000 does not exist here (%s)", text);
	struct ps_target_options options = { .cpus = "0,60000" };
	struct ps_target target;
	ASSERT_ERROR(ps_target_resolve(&options, &target), PS_ERROR_NOT_FOUND, expected);
}

struct thread {
	pthread_t thread;
	pthread_barrier_t barrier;
	pid_t tid;
};

static void *run_thread(void *argument)
{
	struct thread *thread = argument;
	thread->tid = syscall(SYS_gettid);
	pthread_barrier_wait(&thread->barrier);
	pthread_barrier_wait(&thread->barrier);
	return NULL;
}

static void thread_start(struct thread *thread)
{
	pthread_barrier_init(&thread->barrier, NULL, 2);
	pthread_create(&thread->thread, NULL, run_thread, thread);
	pthread_barrier_wait(&thread->barrier);
}

static void thread_stop(struct thread *thread)
{
	pthread_barrier_wait(&thread->barrier);
	pthread_join(thread->thread, NULL);
	pthread_barrier_destroy(&thread->barrier);
}

TEST(target, a_process_is_all_its_threads)
{
	struct thread thread;
	thread_start(&thread);
	char pid[16];
	snprintf(pid, sizeof(pid), "%d", getpid());
	struct ps_target target =
		resolve((struct ps_target_options){ .pids = pid, .inherit = true });
	ASSERT_EQ(target.kind, PS_TARGET_THREADS);
	ASSERT_EQ(target.nr_tids, 2);
	ASSERT_EQ(target.tids[0], getpid());
	ASSERT_EQ(target.tids[1], thread.tid);
	ASSERT_TRUE(target.inherit);
	ASSERT_FALSE(target.inherit_threads);
	ASSERT_FALSE(target.is_workload);
	ps_target_deinit(&target);
	thread_stop(&thread);
}

TEST(target, processes_and_threads_add_up_once_each)
{
	struct thread thread;
	thread_start(&thread);
	char pid[16], tids[40];
	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(tids, sizeof(tids), "%d,%d,1", thread.tid, thread.tid);
	struct ps_target target =
		resolve((struct ps_target_options){ .cpus = "0", .pids = pid, .tids = tids });
	ASSERT_EQ(target.nr_tids, 3);
	ASSERT_EQ(target.tids[0], 1);
	ASSERT_EQ(target.tids[1], getpid());
	ASSERT_EQ(target.tids[2], thread.tid);
	ASSERT_EQ(target.nr_cpus, 1);
	ASSERT_TRUE(target.is_cpu_list);
	ps_target_deinit(&target);
	thread_stop(&thread);
}

TEST(target, a_thread_given_as_a_process_is_told_with_its_process)
{
	struct thread thread;
	thread_start(&thread);
	char tid[16], expected[100];
	snprintf(tid, sizeof(tid), "%d", thread.tid);
	snprintf(expected, sizeof(expected), "%d is a thread of process %d (take -t %d or -p %d)",
		 thread.tid, getpid(), thread.tid, getpid());
	struct ps_target_options options = { .pids = tid };
	struct ps_target target;
	ASSERT_ERROR(ps_target_resolve(&options, &target), PS_ERROR_NOT_FOUND, expected);
	thread_stop(&thread);
}

/** The id of a process that has just ended. */
static pid_t ended_process(void)
{
	pid_t pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

TEST(target, a_process_or_thread_that_is_gone_is_named)
{
	char id[16], expected[100];
	pid_t pid = ended_process();
	snprintf(id, sizeof(id), "%d", pid);
	struct ps_target target;
	snprintf(expected, sizeof(expected), "process %d does not exist", pid);
	struct ps_target_options options = { .pids = id };
	ASSERT_ERROR(ps_target_resolve(&options, &target), PS_ERROR_NOT_FOUND, expected);
	snprintf(expected, sizeof(expected), "thread %d does not exist", pid);
	options = (struct ps_target_options){ .tids = id };
	ASSERT_ERROR(ps_target_resolve(&options, &target), PS_ERROR_NOT_FOUND, expected);
}

TEST(target, ids_that_are_none_are_refused)
{
	static const char *const bad[] = { "", "0", "-1", "1,", ",1", "x", "1x", "2147483648" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(bad); i++) {
		struct ps_target_options options = { .pids = bad[i] };
		struct ps_target target;
		ASSERT_ERROR(ps_target_resolve(&options, &target), PS_ERROR_USAGE,
			     "ids are positive numbers, separated by commas");
	}
}

TEST(target, a_workload_is_one_thread_followed_by_its_threads_only)
{
	struct ps_target target = resolve((struct ps_target_options){ .workload = 4711 });
	ASSERT_EQ(target.kind, PS_TARGET_THREADS);
	ASSERT_EQ(target.nr_tids, 1);
	ASSERT_EQ(target.tids[0], 4711);
	ASSERT_TRUE(target.is_workload);
	ASSERT_TRUE(target.inherit_threads);
	ASSERT_FALSE(target.inherit);
	ps_target_deinit(&target);
}

TEST(target, a_workload_that_is_inherited_is_followed_by_its_children)
{
	struct ps_target target =
		resolve((struct ps_target_options){ .workload = 4711, .inherit = true });
	ASSERT_TRUE(target.is_workload);
	ASSERT_FALSE(target.inherit_threads);
	ASSERT_TRUE(target.inherit);
	ps_target_deinit(&target);
}

TEST(target, two_kinds_at_once_are_refused)
{
	static const struct ps_target_options bad[] = {
		{ .pids = "1", .workload = 1 },
		{ .tids = "1", .cgroup = "x" },
		{ .cgroup = "x", .workload = 1 },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(bad); i++) {
		struct ps_target target;
		ASSERT_ERROR(ps_target_resolve(&bad[i], &target), PS_ERROR_USAGE,
			     "-p or -t, --cgroup and --run exclude each other");
	}
}

static void assert_cgroup(const char *path, const char *folder)
{
	struct ps_target target = resolve((struct ps_target_options){ .cgroup = path });
	ASSERT_EQ(target.kind, PS_TARGET_CGROUP);
	struct stat opened, expected;
	ASSERT_EQ(fstat(target.cgroup_fd, &opened), 0);
	ASSERT_EQ(stat(folder, &expected), 0);
	ASSERT_EQ(opened.st_dev, expected.st_dev);
	ASSERT_EQ(opened.st_ino, expected.st_ino);
	ps_target_deinit(&target);
	ASSERT_EQ(target.cgroup_fd, -1);
}

TEST(target, a_cgroup_is_found_by_its_path_or_below_the_mount)
{
	char mount[4096], folder[4200];
	if (!find_cgroup2(mount, sizeof(mount)))
		SKIP("no cgroup v2 is mounted");
	snprintf(folder, sizeof(folder), "%s/perfscope-test-%d", mount, getpid());
	if (mkdir(folder, 0755))
		SKIP("no cgroup can be made in %s", mount);
	assert_cgroup(folder, folder);
	assert_cgroup(folder + strlen(mount), folder);
	assert_cgroup(folder + strlen(mount) + 1, folder);
	assert_cgroup("/", mount);
	rmdir(folder);
}

TEST(target, a_cgroup_that_does_not_exist_is_named_in_full)
{
	char mount[4096], expected[4200];
	if (!find_cgroup2(mount, sizeof(mount)))
		SKIP("no cgroup v2 is mounted");
	snprintf(expected, sizeof(expected), "cgroup %s/no/such does not exist", mount);
	struct ps_target_options options = { .cgroup = "no/such" };
	struct ps_target target;
	ASSERT_ERROR(ps_target_resolve(&options, &target), PS_ERROR_NOT_FOUND, expected);
}
