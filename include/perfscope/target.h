// SPDX-License-Identifier: MIT
/**
 * Target: what is observed: CPUs, processes with their threads, threads, a cgroup, a started program.
 */
#ifndef PERFSCOPE_TARGET_H
#define PERFSCOPE_TARGET_H

#include <perfscope/error.h>
#include <stdbool.h>
#include <sys/types.h>

enum ps_target_kind {
	PS_TARGET_CPUS,	   // all, or a list
	PS_TARGET_THREADS, // of -p, -t or --run
	PS_TARGET_CGROUP,
};

struct ps_target {
	enum ps_target_kind kind;
	int *cpus; // online ones of the list, ascending; the CPUs that are opened
	size_t nr_cpus;
	bool is_cpu_list; // -C was given
	int *offline_cpus; // those that are there but offline, and are opened when they come; none with -C
	size_t nr_offline;
	pid_t *tids; // PS_TARGET_THREADS
	size_t nr_tids;
	int cgroup_fd;	      // PS_TARGET_CGROUP, else -1
	bool inherit;	      // children too
	bool inherit_threads; // new threads, no children (--run without --inherit)
	bool is_workload;     // --run: enable at exec
};

struct ps_target_options {
	const char *cpus;   // -C LIST or NULL
	const char *pids;   // -p LIST or NULL
	const char *tids;   // -t LIST or NULL
	const char *cgroup; // --cgroup PATH or NULL
	pid_t workload;	    // the started program, or 0
	bool inherit;
};

/**
 * Resolve @options. Errors name the CPU, process, thread or folder that does not exist, and a CPU that is offline.
 *
 * A cgroup path is taken as it is when absolute and inside a cgroup2 mount, else below the cgroup2 mount.
 */
struct ps_error *ps_target_resolve(const struct ps_target_options *options, struct ps_target *ret);
void ps_target_deinit(struct ps_target *target);

/** Parse a list like "0-3,8" into ascending distinct numbers; the caller frees @ret. */
struct ps_error *ps_parse_cpu_list(const char *text, int **ret, size_t *ret_nr);

#endif
