// SPDX-License-Identifier: MIT
/**
 * Names of system calls by their numbers on the architecture that this is compiled for.
 */
#ifndef PERFSCOPE_SYSCALLS_H
#define PERFSCOPE_SYSCALLS_H

#include <stdint.h>

/** The name of the system call @nr ("getppid"), static; NULL where there is none of this number. */
const char *ps_syscall_name(int64_t nr);

#endif
