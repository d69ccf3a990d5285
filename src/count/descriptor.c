// SPDX-License-Identifier: MIT
/** Descriptors of counters in a program that is not ours, and may close what it did not open. */
#include "internal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

// Below it are the numbers that a program gets for its own files, and that select() can take.
#define MAX_LOWEST 1024

int ps_counter_fd_keep(int fd)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return fd;
	int lowest = limit.rlim_cur / 2 < MAX_LOWEST ? (int)(limit.rlim_cur / 2) : MAX_LOWEST;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

uint64_t ps_counter_fd_id(int fd)
{
	uint64_t id;
	return ioctl(fd, PERF_EVENT_IOC_ID, &id) ? 0 : id;
}

void ps_counter_fd_close(int fd, uint64_t id)
{
	if (fd >= 0 && ps_counter_fd_id(fd) == id)
		close(fd);
}
