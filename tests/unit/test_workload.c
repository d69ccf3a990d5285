// SPDX-License-Identifier: MIT
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <perfscope/workload.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define ARGV(...)                                                                                  \
	(char *[])                                                                                 \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static struct ps_workload *create(char **argv)
{
	struct ps_workload *workload;
	ASSERT_OK(ps_workload_create(argv, NULL, &workload));
	return workload;
}

static void wait_for_end(struct ps_workload *workload)
{
	struct pollfd wait = { .fd = ps_workload_pidfd(workload), .events = POLLIN };
	ASSERT_EQ(poll(&wait, 1, 10000), 1);
	ASSERT_TRUE(ps_workload_has_ended(workload));
}

/** Run @argv to its end: its status. */
static int run(char **argv)
{
	struct ps_workload *workload = create(argv);
	ASSERT_OK(ps_workload_start(workload));
	wait_for_end(workload);
	int status = ps_workload_status(workload);
	ps_workload_destroy(workload);
	return status;
}

TEST(workload, the_status_is_the_programs_own_or_128_and_its_signal)
{
	ASSERT_EQ(run(ARGV("true")), 0);
	ASSERT_EQ(run(ARGV("sh", "-c", "exit 42")), 42);
	ASSERT_EQ(run(ARGV("/bin/sh", "-c", "kill -TERM $$")), 128 + SIGTERM);
	ASSERT_EQ(run(ARGV("sh", "-c", "kill -KILL $$")), 128 + SIGKILL);
}

static int run_with(const char *setting, char **argv)
{
	struct ps_workload *workload;
	ASSERT_OK(ps_workload_create(argv, setting, &workload));
	ASSERT_OK(ps_workload_start(workload));
	wait_for_end(workload);
	int status = ps_workload_status(workload);
	ps_workload_destroy(workload);
	return status;
}

TEST(workload, a_setting_is_the_programs_alone_and_takes_the_place_of_ours)
{
	setenv("PERFSCOPE_TEST", "ours", 1);
	ASSERT_EQ(run_with("PERFSCOPE_TEST=its", ARGV("sh", "-c", "[ $PERFSCOPE_TEST = its ]")), 0);
	ASSERT_EQ(run_with("PERFSCOPE_T=its", ARGV("sh", "-c", "[ $PERFSCOPE_TEST = ours ]")), 0);
	ASSERT_EQ(run_with(NULL, ARGV("sh", "-c", "[ $PERFSCOPE_TEST = ours ]")), 0);
	ASSERT_STR_EQ(getenv("PERFSCOPE_TEST"), "ours");
	unsetenv("PERFSCOPE_TEST");
}

TEST(workload, the_program_starts_only_when_it_is_let_go)
{
	char path[] = "/tmp/perfscope-test-XXXXXX";
	close(mkstemp(path));
	struct ps_workload *workload = create(ARGV("rm", path));
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	ASSERT_FALSE(ps_workload_has_ended(workload));
	ASSERT_EQ(ps_workload_status(workload), 0);
	ASSERT_EQ(access(path, F_OK), 0);
	ASSERT_OK(ps_workload_start(workload));
	wait_for_end(workload);
	ASSERT_EQ(access(path, F_OK), -1);
	ps_workload_destroy(workload);
}

TEST(workload, the_process_is_the_same_before_and_after)
{
	struct ps_workload *workload = create(ARGV("sleep", "100"));
	char path[32], comm[16] = "";
	snprintf(path, sizeof(path), "/proc/%d/comm", ps_workload_pid(workload));
	ASSERT_OK(ps_workload_start(workload));
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	ASSERT_NOT_NULL(file);
	ASSERT_NOT_NULL(fgets(comm, sizeof(comm), file));
	ASSERT_STR_EQ(comm, "sleep\n");
	ASSERT_TRUE(ps_workload_stop(workload));
	ps_workload_destroy(workload);
}

TEST(workload, a_command_that_does_not_exist_is_named)
{
	struct ps_workload *workload = NULL;
	ASSERT_ERROR(ps_workload_create(ARGV("no-such-program", "x"), NULL, &workload),
		     PS_ERROR_NOT_FOUND, "run no-such-program: no such program in PATH");
	ASSERT_ERROR(ps_workload_create(ARGV("./no/such", "x"), NULL, &workload),
		     PS_ERROR_NOT_FOUND, "run ./no/such: No such file or directory");
	ASSERT_ERROR(ps_workload_create(ARGV(""), NULL, &workload), PS_ERROR_NOT_FOUND,
		     "run : no such program in PATH");
	ASSERT_ERROR(ps_workload_create((char *[]){ NULL }, NULL, &workload), PS_ERROR_USAGE,
		     "--run: no command follows");
	ASSERT_NULL(workload);
}

/** A file of @text with @mode, whose name is made from @path. */
static void write_file(char *path, const char *text, mode_t mode)
{
	int fd = mkstemp(path);
	ASSERT_EQ(write(fd, text, strlen(text)), strlen(text));
	ASSERT_EQ(fchmod(fd, mode), 0);
	close(fd);
}

TEST(workload, a_file_that_is_no_program_says_why)
{
	char plain[] = "/tmp/perfscope-test-XXXXXX";
	write_file(plain, "x", 0644);
	struct ps_workload *workload = NULL;
	ASSERT_ERROR(ps_workload_create(ARGV(plain), NULL, &workload), PS_ERROR_PERMISSION,
		     ": Permission denied (is it executable? chmod +x)");
	ASSERT_ERROR(ps_workload_create(ARGV("/tmp"), NULL, &workload), PS_ERROR_OS,
		     "run /tmp: Is a directory");
	ASSERT_NULL(workload);
	unlink(plain);
}

TEST(workload, an_exec_that_fails_is_told_back)
{
	char text[] = "/tmp/perfscope-test-XXXXXX", script[] = "/tmp/perfscope-test-XXXXXX";
	write_file(text, "hello\n", 0755);
	write_file(script, "#!/no/such/interpreter\n", 0755);
	struct ps_workload *workload = create(ARGV(text));
	ASSERT_ERROR(ps_workload_start(workload), PS_ERROR_OS,
		     ": Exec format error (neither a program for this machine nor a script "
		     "that starts with #!)");
	ASSERT_TRUE(ps_workload_has_ended(workload));
	ps_workload_destroy(workload);
	workload = create(ARGV(script));
	ASSERT_ERROR(ps_workload_start(workload), PS_ERROR_NOT_FOUND,
		     ": the interpreter that its first line or header names does not exist");
	ps_workload_destroy(workload);
	unlink(text);
	unlink(script);
}

TEST(workload, a_program_is_searched_in_path_as_shells_do)
{
	char folder[] = "/tmp/perfscope-test-XXXXXX", path[100], program[100], *old;
	ASSERT_NOT_NULL(mkdtemp(folder));
	old = strdup(getenv("PATH"));
	snprintf(program, sizeof(program), "%s/perfscope-program", folder);
	snprintf(path, sizeof(path), "/no/such::%s", folder);
	setenv("PATH", path, 1);
	int fd = open(program, O_CREAT | O_WRONLY, 0600);
	struct ps_workload *workload = NULL;
	ASSERT_ERROR(ps_workload_create(ARGV("perfscope-program"), NULL, &workload),
		     PS_ERROR_PERMISSION, "run perfscope-program: Permission denied");
	ASSERT_EQ(write(fd, "#!/bin/sh\nexit 7\n", 17), 17);
	fchmod(fd, 0700);
	close(fd);
	ASSERT_EQ(run(ARGV("perfscope-program")), 7);
	int here = open(".", O_PATH);
	ASSERT_EQ(chdir(folder), 0);
	setenv("PATH", "/no/such:", 1); // an empty entry is the current folder
	ASSERT_EQ(run(ARGV("perfscope-program")), 7);
	ASSERT_EQ(fchdir(here), 0);
	close(here);
	setenv("PATH", old, 1);
	free(old);
	unlink(program);
	rmdir(folder);
}

/** The value of @key in /proc/self/status as a program that we start sees it. */
static void read_status(const char *key, char *ret, size_t size)
{
	char path[] = "/tmp/perfscope-test-XXXXXX", command[200];
	close(mkstemp(path));
	snprintf(command, sizeof(command), "exec sed -n 's/^%s:\\t//p' /proc/self/status >%s", key,
		 path);
	ASSERT_EQ(run(ARGV("sh", "-c", command)), 0);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	ASSERT_NOT_NULL(fgets(ret, size, file));
	ret[strcspn(ret, "\n")] = 0;
	unlink(path);
}

TEST(workload, signals_are_as_a_shell_would_set_them)
{
	sigset_t all, old;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	char blocked[32], ignored[32];
	read_status("SigBlk", blocked, sizeof(blocked));
	read_status("SigIgn", ignored, sizeof(ignored));
	signal(SIGHUP, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	ASSERT_STR_EQ(blocked, "0000000000000000");
	// SIGHUP is 1: whoever runs perfscope under nohup means the program too.
	ASSERT_EQ(strtoul(ignored, NULL, 16) & (1UL << (SIGHUP - 1)), 1);
	ASSERT_EQ(strtoul(ignored, NULL, 16) & (1UL << (SIGPIPE - 1)), 0);
	ASSERT_EQ(strtoul(ignored, NULL, 16) & (1UL << (SIGXFSZ - 1)), 0);
}

TEST(workload, limits_are_those_of_its_creation)
{
	struct rlimit old, low;
	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = (struct rlimit){ .rlim_cur = 60, .rlim_max = old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &low);
	struct ps_workload *workload = create(ARGV("sh", "-c", "test $(ulimit -n) = 60 && exit 5"));
	setrlimit(RLIMIT_NOFILE, &old);
	ASSERT_OK(ps_workload_start(workload));
	wait_for_end(workload);
	ASSERT_EQ(ps_workload_status(workload), 5);
	ps_workload_destroy(workload);
}

TEST(workload, no_descriptor_of_ours_is_open_in_the_program)
{
	ASSERT_EQ(run(ARGV("sh", "-c",
			   "for fd in /proc/$$/fd/*; do readlink $fd; done | "
			   "grep -q -e socket: -e pidfd && exit 9; exit 3")),
		  3);
}

TEST(workload, stop_asks_the_program_to_end_and_does_not_blame_it)
{
	struct ps_workload *workload = create(ARGV("sleep", "100"));
	ASSERT_OK(ps_workload_start(workload));
	ASSERT_TRUE(ps_workload_stop(workload));
	ASSERT_EQ(ps_workload_status(workload), 0);
	ps_workload_destroy(workload);
}

TEST(workload, a_program_that_ends_by_itself_when_asked_has_its_own_status)
{
	int ready[2];
	ASSERT_EQ(pipe(ready), 0);
	char command[100];
	snprintf(command, sizeof(command),
		 "trap 'exit 6' TERM; echo >&%d; while :; do sleep 0.05; done", ready[1]);
	struct ps_workload *workload = create(ARGV("sh", "-c", command));
	ASSERT_OK(ps_workload_start(workload));
	char byte;
	ASSERT_EQ(read(ready[0], &byte, 1), 1);
	ASSERT_TRUE(ps_workload_stop(workload));
	ASSERT_EQ(ps_workload_status(workload), 6);
	ps_workload_destroy(workload);
	close(ready[0]);
	close(ready[1]);
}

TEST(workload, a_program_that_does_not_listen_is_left_to_run)
{
	int ready[2];
	ASSERT_EQ(pipe(ready), 0);
	char command[100];
	snprintf(command, sizeof(command), "trap '' TERM; echo >&%d; exec sleep 100", ready[1]);
	struct ps_workload *workload = create(ARGV("sh", "-c", command));
	ASSERT_OK(ps_workload_start(workload));
	char byte;
	ASSERT_EQ(read(ready[0], &byte, 1), 1);
	ASSERT_FALSE(ps_workload_stop(workload));
	ASSERT_EQ(ps_workload_status(workload), 0);
	pid_t pid = ps_workload_pid(workload);
	ps_workload_destroy(workload);
	ASSERT_EQ(kill(pid, SIGKILL), 0);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	close(ready[0]);
	close(ready[1]);
}

TEST(workload, one_that_was_never_started_is_gone_after_destroy)
{
	struct ps_workload *workload = create(ARGV("sleep", "100"));
	pid_t pid = ps_workload_pid(workload);
	ps_workload_destroy(workload);
	ASSERT_EQ(kill(pid, 0), -1);
	ASSERT_EQ(errno, ESRCH);
	ps_workload_destroy(NULL);
}

TEST(workload, one_that_was_never_started_does_not_outlive_us)
{
	int report[2];
	ASSERT_EQ(pipe2(report, O_CLOEXEC), 0);
	pid_t parent = fork();
	if (!parent) {
		// As a SIGKILL would: nothing is cleaned up.
		struct ps_workload *workload = create(ARGV("sleep", "100"));
		pid_t pid = ps_workload_pid(workload);
		_exit(write(report[1], &pid, sizeof(pid)) != sizeof(pid));
	}
	close(report[1]);
	pid_t pid;
	ASSERT_EQ(read(report[0], &pid, sizeof(pid)), sizeof(pid));
	waitpid(parent, NULL, 0);
	// The child has our end of the pipe too, until it ends.
	char byte;
	struct pollfd wait = { .fd = report[0], .events = POLLIN };
	ASSERT_EQ(poll(&wait, 1, 10000), 1);
	ASSERT_EQ(read(report[0], &byte, 1), 0);
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	char comm[16] = "";
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	ASSERT_TRUE(!file || !fgets(comm, sizeof(comm), file) || strcmp(comm, "sleep\n"));
	close(report[0]);
}

TEST(workload, one_that_died_while_it_waited_tells_by_its_status)
{
	struct ps_workload *workload = create(ARGV("sleep", "100"));
	kill(ps_workload_pid(workload), SIGINT);
	wait_for_end(workload);
	ASSERT_OK(ps_workload_start(workload));
	ASSERT_EQ(ps_workload_status(workload), 128 + SIGINT);
	ps_workload_destroy(workload);
}

TEST(workload, an_end_that_someone_else_took_is_still_an_end)
{
	struct ps_workload *workload = create(ARGV("sh", "-c", "exit 3"));
	ASSERT_OK(ps_workload_start(workload));
	ASSERT_EQ(waitpid(ps_workload_pid(workload), NULL, 0), ps_workload_pid(workload));
	ASSERT_TRUE(ps_workload_has_ended(workload));
	ASSERT_EQ(ps_workload_status(workload), 0);
	ps_workload_destroy(workload);
}
