// SPDX-License-Identifier: MIT
/**
 * Names of threads over time, fed by COMM, FORK and EXIT records and /proc.
 */
#ifndef PERFSCOPE_TASKS_H
#define PERFSCOPE_TASKS_H

#include <linux/perf_event.h>
#include <perfscope/error.h>
#include <stdint.h>
#include <sys/types.h>

#define PS_COMM_SIZE 16 // TASK_COMM_LEN

/** Names of ended threads that are kept for late readers; the oldest go first. */
#define PS_TASKS_MAX_DEAD 4096

struct ps_tasks;

struct ps_error *ps_tasks_create(struct ps_tasks **ret);
void ps_tasks_destroy(struct ps_tasks *tasks);

/** Take the names of all threads (or of the @nr processes' in @pids) from /proc. */
void ps_tasks_snapshot(struct ps_tasks *tasks, const pid_t *pids, size_t nr);

/** Follow a COMM, FORK or EXIT record of @size bytes (others are passed over); @time_ns is when. */
void ps_tasks_follow(struct ps_tasks *tasks, const struct perf_event_header *header,
		     uint64_t time_ns);

/**
 * The name of @tid now, at the record last followed; "swapper/N" is not known: tid 0 is "swapper".
 * PS_COMM_SIZE bytes, filled up with NUL.
 * Reads /proc for a thread never heard of; NULL where it is gone. Borrowed until the next call on @tasks.
 */
const char *ps_tasks_comm(struct ps_tasks *tasks, pid_t tid);

/** Number of names held, for tests and --usage. */
size_t ps_tasks_size(const struct ps_tasks *tasks);

#endif
