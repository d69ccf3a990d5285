// SPDX-License-Identifier: MIT
/**
 * Leftover: what a process makes outside itself is called after it, so that the next run knows whose is gone.
 */
#ifndef PERFSCOPE_LEFTOVER_H
#define PERFSCOPE_LEFTOVER_H

#include <stdbool.h>
#include <sys/types.h>

/** Room for ps_leftover_name, with the NUL. */
#define PS_LEFTOVER_NAME_SIZE 80

/** Write "perfscope_PID_START_NAMESPACE" of this process. */
void ps_leftover_name(char ret[PS_LEFTOVER_NAME_SIZE]);

/** Read such a name of the pid namespace @ns; false: it is another's. */
bool ps_leftover_owner(const char *name, unsigned long ns, int *ret_pid,
		       unsigned long long *ret_start);

/** Whether the process @pid that started at @start has ended. */
bool ps_leftover_is_gone(pid_t pid, unsigned long long start);

/** The number of this process's pid namespace, 0: not known. */
unsigned long ps_leftover_namespace(void);

#endif
