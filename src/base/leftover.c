// SPDX-License-Identifier: MIT
#include <perfscope/leftover.h>

#include <errno.h>
#include <perfscope/cleanup.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

/** The start time of the process @pid in clock ticks after boot, 0: not known; 'Z' in its state: it has ended. */
static unsigned long long start_time(pid_t pid, char *ret_state)
{
	char path[32], line[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	*ret_state = '\0';
	if (!file || !fgets(line, sizeof(line), file))
		return 0;
	const char *at = strrchr(line, ')'); // a name may have blanks and parentheses
	if (at && at[1] == ' ')
		*ret_state = at[2];
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

unsigned long ps_leftover_namespace(void)
{
	struct stat status;
	return stat("/proc/self/ns/pid", &status) ? 0 : status.st_ino;
}

void ps_leftover_name(char ret[PS_LEFTOVER_NAME_SIZE])
{
	char state;
	snprintf(ret, PS_LEFTOVER_NAME_SIZE, "perfscope_%d_%llu_%lu", (int)getpid(),
		 start_time(getpid(), &state), ps_leftover_namespace());
}

bool ps_leftover_owner(const char *name, unsigned long ns, int *ret_pid,
		       unsigned long long *ret_start)
{
	int pid, length = 0;
	unsigned long long start;
	unsigned long of;
	if (sscanf(name, "perfscope_%d_%llu_%lu%n", &pid, &start, &of, &length) != 3 ||
	    name[length] || pid <= 0 || of != ns)
		return false;
	*ret_pid = pid;
	*ret_start = start;
	return true;
}

bool ps_leftover_is_gone(pid_t pid, unsigned long long start)
{
	if (kill(pid, 0) && errno == ESRCH)
		return true;
	char state;
	unsigned long long now = start_time(pid, &state);
	// Where nobody waits for it, as in some containers, it stays a zombie for good.
	return (now && now != start) || state == 'Z';
}
