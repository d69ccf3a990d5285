// SPDX-License-Identifier: MIT
/**
 * CPU watch: the kernel's word that a CPU went offline or came online.
 */
#ifndef PERFSCOPE_CPU_WATCH_H
#define PERFSCOPE_CPU_WATCH_H

#include <stdbool.h>
#include <stddef.h>

/** What was heard. */
enum ps_cpu_word {
	PS_CPU_WORD_NONE,    // nothing more for now
	PS_CPU_WORD_OFFLINE, // of one CPU
	PS_CPU_WORD_ONLINE,  // of one CPU
	PS_CPU_WORD_MISSED,  // the kernel had more to say than there was room for: look at all
};

/**
 * A socket that hears the kernel's uevents, or -1: it cannot be had, or this user namespace is told none. Poll it for
 * reading; the caller closes it.
 */
int ps_cpu_watch_open(void);

/** The next word on @fd about a CPU, *@ret_cpu. It does not wait; what is of other devices is passed over. */
enum ps_cpu_word ps_cpu_watch_next(int fd, int *ret_cpu);

#endif
