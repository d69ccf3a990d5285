// SPDX-License-Identifier: MIT
/**
 * Workload: the program that --run starts. It waits until all is open and runs from its first instruction on.
 */
#ifndef PERFSCOPE_WORKLOAD_H
#define PERFSCOPE_WORKLOAD_H

#include <perfscope/error.h>
#include <stdbool.h>
#include <sys/types.h>

/** How long ps_workload_stop waits for a program that was asked to end. */
#define PS_WORKLOAD_GRACE_MS 1000

struct ps_workload;

/**
 * Find the program @argv[0] (in PATH where it has no slash) and fork a child that waits to become it.
 *
 * The child has the limits and the standard streams of this moment, so create it before they are changed, and before
 * threads are started. Its signal mask is empty and its dispositions are the default ones, but for the terminal's
 * signals that are ignored (nohup, a shell's background job). It stays in our process group: a Ctrl-C reaches it too.
 * @setting, "NAME=VALUE", is in the environment of the program alone; NULL: none.
 * Errors: the command is empty, does not exist or is no program; its name and why.
 */
struct ps_error *ps_workload_create(char *const argv[], const char *setting,
				    struct ps_workload **ret);

/** End the child where it was not started; one that runs is left to run. Takes NULL. */
void ps_workload_destroy(struct ps_workload *workload);

/** The process to observe, the same before and after it becomes the program. */
pid_t ps_workload_pid(const struct ps_workload *workload);

/** The file of the program; the text stays the workload's. */
const char *ps_workload_path(const struct ps_workload *workload);

/** A descriptor that polls readable once the program has ended; it stays the workload's. */
int ps_workload_pidfd(const struct ps_workload *workload);

/** Let the program go. An exec that fails is told with the command and why. */
struct ps_error *ps_workload_start(struct ps_workload *workload);

/** Whether the program has ended; never waits. */
bool ps_workload_has_ended(struct ps_workload *workload);

/**
 * The status to exit with, as shells have it: the program's own, or 128 + the signal that ended it.
 *
 * 0 while it runs, and where it died of the SIGTERM of ps_workload_stop: that was our wish.
 */
int ps_workload_status(struct ps_workload *workload);

/**
 * Ask the program to end, when the run ends before it does (-N, --duration, a signal, stop()): SIGTERM, then a wait
 * of PS_WORKLOAD_GRACE_MS.
 *
 * False: it still runs, and is left to run; it may be saving its data, so it is not killed.
 */
bool ps_workload_stop(struct ps_workload *workload);

#endif
