// SPDX-License-Identifier: MIT
/**
 * The system call getppid without a function around it: libc's would stand between the kernel and the caller.
 */
#ifndef PERFSCOPE_GETPPID_H
#define PERFSCOPE_GETPPID_H

#include <sys/syscall.h>

#if defined(__x86_64__)
#define GETPPID(result)                                                                            \
	__asm__ volatile("syscall" : "=a"(result) : "0"(SYS_getppid) : "rcx", "r11", "memory")
#else
#define GETPPID(result)                                                                            \
	__asm__ volatile("mov x8, %1\n svc 0\n mov %0, x0"                                         \
			 : "=r"(result)                                                            \
			 : "i"(SYS_getppid)                                                        \
			 : "x0", "x8", "memory")
#endif

#endif
