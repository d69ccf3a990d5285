// SPDX-License-Identifier: MIT
/**
 * What the files of this room share.
 */
#ifndef PERFSCOPE_COUNT_INTERNAL_H
#define PERFSCOPE_COUNT_INTERNAL_H

#include <linux/perf_event.h>
#include <perfscope/counter.h>

/** Whether @counter counts what happens in the kernel alone: without it, it would always read 0. */
bool ps_counter_is_of_kernel(const struct ps_counter *counter);

/** Whether @counter is a clock, whose value is the same whatever sides are left out. */
bool ps_counter_is_clock(const struct ps_counter *counter);

/** Why the kernel refuses to open @counter: the words alone, without its name. Never NULL. */
struct ps_error *ps_counter_refusal(int os_errno, const struct ps_counter *counter);

/** perf_event_open of the calling thread on any CPU. A descriptor, or -errno. */
int ps_counter_open(const struct perf_event_attr *attr, int group_fd);

/**
 * Move @fd to a high number where there is room, and return that.
 *
 * A program that closes all descriptors, as daemons do, closes ours: its next files get the lowest numbers, and we
 * would read from them.
 */
int ps_counter_fd_keep(int fd);

/** The kernel's number of the counter @fd; 0: it is none. */
uint64_t ps_counter_fd_id(int fd);

/** Close @fd, unless it is another file by now than the counter of number @id. */
void ps_counter_fd_close(int fd, uint64_t id);

#endif
