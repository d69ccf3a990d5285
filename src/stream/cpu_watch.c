// SPDX-License-Identifier: MIT
#include <perfscope/cpu_watch.h>

#include <errno.h>
#include <linux/netlink.h>
#include <perfscope/cleanup.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

// The kernel's UEVENT_BUFFER_SIZE, and the header line before it.
#define MAX_UEVENT_BYTES 4096

#define KERNEL_GROUP 1

/** Uevents reach network namespaces of the first user namespace only. */
static bool is_first_user_namespace(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/uid_map", "re");
	unsigned long inside, outside, nr;
	return file && fscanf(file, "%lu %lu %lu", &inside, &outside, &nr) == 3 && !inside &&
	       !outside && nr == UINT32_MAX;
}

int ps_cpu_watch_open(void)
{
	if (!is_first_user_namespace())
		return -1;
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
					NETLINK_KOBJECT_UEVENT);
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)))
		return -1;
	int watch_fd = fd;
	fd = -1;
	return watch_fd;
}

/** "online@/devices/system/cpu/cpu1", a NUL, and variables that say the same again. */
static enum ps_cpu_word parse_word(const char *text, int *ret_cpu)
{
	static const char online[] = "online@", offline[] = "offline@",
			  folder[] = "/devices/system/cpu/cpu";
	enum ps_cpu_word word = PS_CPU_WORD_NONE;
	if (!strncmp(text, online, strlen(online)))
		word = PS_CPU_WORD_ONLINE;
	else if (!strncmp(text, offline, strlen(offline)))
		word = PS_CPU_WORD_OFFLINE;
	int length = 0;
	const char *path = strchr(text, '@');
	if (!word || strncmp(path + 1, folder, strlen(folder)) ||
	    sscanf(path + 1 + strlen(folder), "%5d%n", ret_cpu, &length) != 1 ||
	    path[1 + strlen(folder) + length] || *ret_cpu < 0)
		return PS_CPU_WORD_NONE;
	return word;
}

enum ps_cpu_word ps_cpu_watch_next(int fd, int *ret_cpu)
{
	for (;;) {
		char text[MAX_UEVENT_BYTES + 1];
		struct sockaddr_nl from = { 0 };
		socklen_t from_size = sizeof(from);
		ssize_t size = recvfrom(fd, text, sizeof(text) - 1, MSG_DONTWAIT,
					(struct sockaddr *)&from, &from_size);
		if (size < 0 && errno == ENOBUFS)
			return PS_CPU_WORD_MISSED;
		if (size <= 0)
			return PS_CPU_WORD_NONE;
		// Programs can send too; theirs have a number.
		if (from.nl_family == AF_NETLINK && from.nl_pid)
			continue;
		text[size] = 0;
		enum ps_cpu_word word = parse_word(text, ret_cpu);
		if (word)
			return word;
	}
}
