// SPDX-License-Identifier: MIT
/**
 * Dispatch: record to event to handler, and what happens when a handler raises.
 *
 * All functions but ps_dispatch_stop and _is_stuck want the GIL.
 */
#ifndef PERFSCOPE_DISPATCH_H
#define PERFSCOPE_DISPATCH_H

#include <perfscope/boundary.h>
#include <perfscope/merge.h>
#include <perfscope/region_table.h>
#include <perfscope/script.h>
#include <perfscope/lookup.h>

/** How far a turn got. */
enum ps_dispatch_state {
	PS_DISPATCH_IDLE, // nothing is ready
	PS_DISPATCH_MORE, // the turn's budget is used up, more is ready
	PS_DISPATCH_STOP, // the run is to end: stop(), SystemExit, -N, --on-error=stop, a broken stdout
};

struct ps_dispatch_options {
	uint64_t max_events;		 // -N, 0: no limit
	bool stop_on_error;		 // --on-error=stop
	struct ps_region_table *regions; // of ps_program_regions_counters, borrowed; NULL: none
};

struct ps_dispatch;

/** All of @session to @script stay the caller's and must outlive it, with what @lookup names. */
struct ps_error *ps_dispatch_create(struct ps_session *session, struct ps_merge *merge,
				    const struct ps_lookup *lookup, struct ps_script *script,
				    const struct ps_dispatch_options *options,
				    struct ps_dispatch **ret);
void ps_dispatch_destroy(struct ps_dispatch *dispatch); // takes NULL

/** Call `__init__`. IDLE, or STOP where it ended the run. */
enum ps_dispatch_state ps_dispatch_init(struct ps_dispatch *dispatch);

/** The events are about to be enabled: totals count from here. */
void ps_dispatch_begin(struct ps_dispatch *dispatch);

/** One turn: a round of the merge, up to a budget of events and about a millisecond. */
enum ps_dispatch_state ps_dispatch_turn(struct ps_dispatch *dispatch);

/**
 * After the events are disabled: hand out what is left in the rings, for @limit_ns at most (the rest is counted as
 * lost), and tell the losses that no record told.
 */
void ps_dispatch_drain(struct ps_dispatch *dispatch, uint64_t limit_ns);

/**
 * Open the events of @cpu again, as ps_session_cpu_back does, and tell the script the gap when it ends. Between turns.
 */
struct ps_error *ps_dispatch_cpu_back(struct ps_dispatch *dispatch, int cpu,
				      struct ps_cpu_back *ret);

/** Whether the script has `__interval__`; without it the caller prints a summary instead. */
bool ps_dispatch_has_interval(const struct ps_dispatch *dispatch);

/** Call `__interval__`, which the script has. */
void ps_dispatch_interval(struct ps_dispatch *dispatch);

/** Call `__print_stat__`; false where the script has none. */
bool ps_dispatch_print_stat(struct ps_dispatch *dispatch);

/** Print the tool's own counts: what perfscope.print_stat() calls. NULL: it does nothing. */
void ps_dispatch_set_print_stat(struct ps_dispatch *dispatch, void (*print)(void *argument),
				void *argument);

/** Write out what the script has printed so far. */
void ps_dispatch_flush(struct ps_dispatch *dispatch);

/** No record comes any more: passes of -r that are open are incomplete. What regions added up, borrowed; NULL: there are none. */
const struct ps_boundaries *ps_dispatch_finish_regions(struct ps_dispatch *dispatch);

/** Call `__exit__`, once, then tell how many exceptions were counted. */
void ps_dispatch_exit(struct ps_dispatch *dispatch);

/** Ask the run to end; safe in a signal handler. */
void ps_dispatch_stop(struct ps_dispatch *dispatch);

/**
 * Whether one call of script code has been running since this was last asked; __exit__ does not count. Safe in a
 * signal handler: a timer asks after a stop, and interrupts the code that is stuck.
 */
bool ps_dispatch_is_stuck(struct ps_dispatch *dispatch);

/** The status for exit: SystemExit's, 1 where script code raised, else 0. */
int ps_dispatch_status(const struct ps_dispatch *dispatch);

/** Counts for summaries, --usage and print_stat. */
struct ps_dispatch_counts {
	uint64_t nr_events;    // samples taken from the rings
	uint64_t nr_lost;      // told so far
	uint64_t nr_left;      // of those, still in the rings when the run had to end
	uint64_t nr_raised;    // exceptions of script code
	uint64_t nr_throttled; // times that the kernel held an event back
	bool is_enough;	       // the script or -N ended the run: what came later was not taken
};
struct ps_dispatch_counts ps_dispatch_counts(const struct ps_dispatch *dispatch);

#endif
