// SPDX-License-Identifier: MIT
/** Regions in a program that closes all descriptors, as daemons do, and goes on with files of its own, or may open none. */
#include "regions.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void close_all(void)
{
	ASSERT_EQ(syscall(SYS_close_range, 3, ~0U, 0), 0);
}

static int fill_pipe(int pipe_fds[2])
{
	char data[4096] = { 0 };
	ASSERT_EQ(pipe(pipe_fds), 0);
	return write(pipe_fds[1], data, sizeof(data));
}

TEST(region_descriptors, what_the_program_opens_later_is_neither_read_nor_closed)
{
	configure("page-faults,task-clock", 0);
	struct ps_region *region = warm("d");
	close_all();
	int pipe_fds[2];
	ASSERT_EQ(fill_pipe(pipe_fds), 4096);
	for (int i = 0; i < 10; i++) {
		ps_region_enter(region);
		ps_region_leave(region);
	}
	char data[8192];
	ASSERT_EQ(read(pipe_fds[0], data, sizeof(data)), 4096);
	const struct ps_region_sums *sums = sums_of("d");
	ASSERT_EQ(sums->calls, 10);
	ASSERT_EQ(sums->invalid, 3);
	ASSERT_STR_EQ(ps_regions_reading_reason(&reading, 0),
		      "could not be read (the program may have closed its descriptor)");
	configure("page-faults", 0);
	warm("d");
	ps_region_enter(region);
	fault(7);
	ps_region_leave(region);
	assert_faults("d", 1, 7);
	ASSERT_TRUE(fcntl(pipe_fds[0], F_GETFD) >= 0 && fcntl(pipe_fds[1], F_GETFD) >= 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

TEST(region_descriptors, what_stands_in_place_of_a_counter_is_not_closed)
{
	configure("page-faults", 0);
	warm("d");
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct rlimit limit;
	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	int first = limit.rlim_cur / 2 < 1024 ? limit.rlim_cur / 2 : 1024;
	for (int fd = first; fd < first + 8; fd++)
		ASSERT_EQ(dup2(null, fd), fd);
	configure("page-faults", 0);
	warm("d");
	for (int fd = first; fd < first + 8; fd++) {
		struct stat status;
		ASSERT_TRUE(!fstat(fd, &status) && S_ISCHR(status.st_mode));
		close(fd);
	}
	close(null);
}

/** Let perf_event_open fail with EPERM from here on. */
static void forbid_counters(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST(region_descriptors, root_in_a_sandbox_is_not_told_to_become_root)
{
	pid_t child = fork();
	if (!child) {
		forbid_counters();
		ASSERT_OK(ps_counters_parse("page-faults", counters, &nr_counters));
		struct ps_error *error = ps_regions_configure(counters, nr_counters, 0, false);
		_exit(!error || !strstr(error->message, "seccomp filter does not allow it"));
	}
	int status;
	waitpid(child, &status, 0);
	ASSERT_EQ(status, 0);
}
