// SPDX-License-Identifier: MIT
/**
 * Signals: how SIGINT, SIGTERM, SIGHUP and SIGUSR2 reach the loop, and how script code that does not return is stopped.
 */
#ifndef PERFSCOPE_SIGNALS_H
#define PERFSCOPE_SIGNALS_H

#include <perfscope/dispatch.h>

/** What a request to stop does depends on what runs. */
enum ps_signal_phase {
	PS_PHASE_OURS,	  // no script code: the request is noted
	PS_PHASE_LOADING, // the script's module level, or atexit: interrupted at once
	PS_PHASE_RUNNING, // handlers: interrupted after a grace, ended after PS_STOP_LIMIT_NS
	PS_PHASE_ENDING,  // __exit__: left in peace, however long it takes
};

/** Script code has so long to return before it gets a KeyboardInterrupt, and again for each further one. */
#define PS_STOP_GRACE_NS 500000000ULL

/**
 * A handler that still runs so long after the request is ended with the process; in every phase, so is a write into a
 * full pipe that nobody reads.
 */
#define PS_STOP_LIMIT_NS 1900000000ULL

/**
 * Make the descriptor that becomes readable on a signal, and the timer of the grace; then claim the signals.
 *
 * With @has_output SIGHUP means to open the output anew, else to stop.
 */
struct ps_error *ps_signals_start(bool has_output);

/** Undo it, at the end of the process: requests that come now change nothing. */
void ps_signals_finish(void);

/** The descriptor to poll; ps_signals_clear makes it unreadable again. */
int ps_signals_fd(void);
void ps_signals_clear(void);

/**
 * Give SIGINT back to its default, blocked, while the interpreter starts: Python makes KeyboardInterrupt of it only
 * where it finds the default. ps_signals_claim takes all signals (back) and unblocks them.
 */
void ps_signals_yield(void);
void ps_signals_claim(void);

/** What runs from now on; @dispatch is that of PS_PHASE_RUNNING, else NULL. */
void ps_signals_set_phase(enum ps_signal_phase phase, struct ps_dispatch *dispatch);

/** The program that is killed when a second request to stop ends all at once; 0: none. */
void ps_signals_set_workload(pid_t pid);

/** Whether a stop was requested. */
bool ps_signals_is_stopping(void);

/** Whether SIGHUP (with an output), SIGUSR2 came since the last call. */
bool ps_signals_take_hangup(void);
bool ps_signals_take_print_stat(void);

#endif
