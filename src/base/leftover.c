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

void ps_leftover_name(char separator, char ret[PS_LEFTOVER_NAME_SIZE])
{
	char state;
	snprintf(ret, PS_LEFTOVER_NAME_SIZE, "perfscope%c%d%c%llu%c%lu", separator, (int)getpid(),
		 separator, start_time(getpid(), &state), separator, ps_leftover_namespace());
}

bool ps_leftover_owner(const char *name, char separator, unsigned long ns, int *ret_pid,
		       unsigned long long *ret_start)
{
	int pid, length = 0;
	unsigned long long start;
	unsigned long of;
	char separators[3];
	if (sscanf(name, "perfscope%c%d%c%llu%c%lu%n", &separators[0], &pid, &separators[1], &start,
		   &separators[2], &of, &length) != 6 ||
	    name[length] || pid <= 0 || of != ns)
		return false;
	for (size_t i = 0; i < sizeof(separators); i++) {
		if (separators[i] != separator)
			return false;
	}
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
