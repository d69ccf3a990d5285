// SPDX-License-Identifier: MIT
/**
 * Dispatch: record to event to handler, and what happens when a handler raises.
 */
#ifndef PERFSCOPE_DISPATCH_H
#define PERFSCOPE_DISPATCH_H

#include <perfscope/merge.h>
#include <perfscope/script.h>

/** How far a turn or a call got. */
enum ps_dispatch_state {
	PS_DISPATCH_IDLE, // nothing is ready
	PS_DISPATCH_MORE, // the turn's budget is used up, more is ready
	PS_DISPATCH_STOP, // the run is to end (stop(), SystemExit, -N, --on-error=stop, ...)
};

struct ps_dispatch_options {
	uint64_t max_events;  // -N, 0: no limit
	bool stop_on_error;   // --on-error=stop
};

struct ps_dispatch;

struct ps_error *ps_dispatch_create(struct ps_session *session, struct ps_merge *merge,
				    struct ps_tasks *tasks, struct ps_script *script,
				    const struct ps_dispatch_options *options,
				    struct ps_dispatch **ret);
void ps_dispatch_destroy(struct ps_dispatch *dispatch);

/** Call `__init__`. */
enum ps_dispatch_state ps_dispatch_init(struct ps_dispatch *dispatch);

/** One turn: a round of the merge, up to a budget of events and time. Call with the GIL. */
enum ps_dispatch_state ps_dispatch_turn(struct ps_dispatch *dispatch);

/** After the events are disabled: hand out all that is left in the rings and tell the losses that no record told. */
void ps_dispatch_drain(struct ps_dispatch *dispatch);

/** Call `__interval__`; false where the script has none (the caller then prints its summary). */
bool ps_dispatch_interval(struct ps_dispatch *dispatch);

/** Call `__print_stat__` if there is one. */
void ps_dispatch_print_stat(struct ps_dispatch *dispatch);

/** Call `__exit__`, once; then tell the counted exceptions. */
void ps_dispatch_exit(struct ps_dispatch *dispatch);

/** Ask the run to end; safe in a signal handler. */
void ps_dispatch_stop(struct ps_dispatch *dispatch);

/** The status for exit: SystemExit's, 1 where a handler raised, else 0. */
int ps_dispatch_status(const struct ps_dispatch *dispatch);

/** Whether script code runs right now; safe in a signal handler. */
bool ps_dispatch_is_in_script(const struct ps_dispatch *dispatch);

/** Counts for summaries, --usage and print_stat. */
struct ps_dispatch_counts {
	uint64_t nr_events;	// handed to handlers or counted without one
	uint64_t nr_lost;	// told so far
	uint64_t nr_raised;	// exceptions
	uint64_t nr_malformed;	// samples whose parts lie outside
};
struct ps_dispatch_counts ps_dispatch_counts(const struct ps_dispatch *dispatch);

#endif
