// SPDX-License-Identifier: MIT
/**
 * Loop: waits for rings, signals, time and the started program, and gives each its turn.
 */
#ifndef PERFSCOPE_LOOP_H
#define PERFSCOPE_LOOP_H

#include <perfscope/dispatch.h>
#include <perfscope/output.h>
#include <perfscope/summary.h>

/** Why a run ended. */
enum ps_loop_end {
	PS_LOOP_STOPPED,   // the script or -N had enough
	PS_LOOP_SIGNALLED, // SIGINT, SIGTERM, SIGHUP
	PS_LOOP_TIMED_OUT, // --duration
	PS_LOOP_EXITED,	   // the program of --run
	PS_LOOP_GONE,	   // every thread that was observed is gone
	PS_LOOP_CLOSED,	   // nobody reads stdout any more
};

struct ps_loop_options {
	struct ps_session *session;
	struct ps_merge *merge;
	struct ps_dispatch *dispatch;
	struct ps_summary *summary;	// printed where the script has no __interval__; NULL: no -i
	const struct ps_output *output; // opened anew on SIGHUP
	struct ps_usage_meter *meter;	// for --usage and SIGUSR2
	int workload_fd;		// readable when the program of --run has ended, -1: none
	int cpu_watch_fd;		// of ps_cpu_watch_open, -1: none
	struct ps_region_table *regions; // that programs fill, swept now and then; NULL: none
	bool is_ordered;
	uint64_t latency_ns;  // at most so long from event to handler
	uint64_t interval_ns; // 0: none, as for the two below
	uint64_t usage_ns;
	uint64_t duration_ns;
};

/** Run until something ends it. The caller has the GIL, which is given up only while waiting. */
struct ps_error *ps_loop_run(const struct ps_loop_options *options, enum ps_loop_end *ret);

#endif
