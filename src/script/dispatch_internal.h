// SPDX-License-Identifier: MIT
/**
 * What the files of dispatch share. dispatch.c makes and ends it, dispatch_turn.c takes records, dispatch_call.c calls
 * the script, and dispatch_regions.c has what belongs to regions.
 */
#ifndef PERFSCOPE_SCRIPT_DISPATCH_INTERNAL_H
#define PERFSCOPE_SCRIPT_DISPATCH_INTERNAL_H

#include <perfscope/binding.h>
#include <perfscope/boundary.h>
#include <perfscope/dispatch.h>
#include <perfscope/losses.h>
#include <perfscope/policy.h>
#include <perfscope/program_regions.h>
#include <perfscope/region_totals.h>
#include <perfscope/run_totals.h>
#include <signal.h>

/** What the events of one source go to. */
struct binding {
	PyObject *handler;    // borrowed from the script; NULL: none
	PyObject *event_type; // owned
	const char *name;     // of the handler, for messages
};

struct ps_dispatch {
	struct ps_session *session;
	struct ps_merge *merge;
	struct ps_lookup lookup;
	struct ps_script *script;
	struct ps_policy policy;
	struct ps_losses losses;
	struct ps_run_totals totals;
	struct ps_boundaries *boundaries; // NULL: no regions
	bool are_regions_finished;
	struct ps_region_totals region_totals;
	PyObject *region_names;	   // tuple of str, by region
	PyObject *region_counters; // tuple of str
	struct ps_program_regions program_regions;
	struct ps_host host;
	struct binding *bindings; // by source index
	size_t nr_bindings;
	uint64_t max_events, nr_events;
	uint64_t nr_left; // in the rings at the end
	uint64_t budget;  // events of the next turn
	uint64_t synced_ns;
	void (*print)(void *argument);
	void *print_argument;
	volatile sig_atomic_t is_stopped, is_in_script;
	volatile uint64_t nr_calls; // of script code other than handlers
	uint64_t watched;	    // nr_events + nr_calls when ps_dispatch_is_stuck last looked
	bool is_exited;
};

static inline bool ps_dispatch_is_over(const struct ps_dispatch *dispatch)
{
	return dispatch->is_stopped || dispatch->policy.is_over;
}

/** Script code runs between these two, which need not be called for each call of it. */
void ps_dispatch_enter_script(struct ps_dispatch *dispatch);
void ps_dispatch_leave_script(struct ps_dispatch *dispatch);

/** The script or -N ended the run: what comes after is not lost, it is not wanted. */
bool ps_dispatch_is_enough(const struct ps_dispatch *dispatch);

/** Call __lost__, where the script has it. Within script code. */
void ps_dispatch_call_lost(struct ps_dispatch *dispatch, const struct ps_loss *loss);

/** A pass of a region ended: call region__NAME(region), where the script has it. @argument is the dispatch. */
void ps_dispatch_call_region(void *argument, const struct ps_pass *pass);

/** Put the totals of all regions so far into @dict, each in a dict of threads with @by_thread. False with an exception set. */
bool ps_dispatch_add_regions(struct ps_dispatch *dispatch, PyObject *dict, bool by_thread);

/** Follow the regions of the session, if it has any. */
struct ps_error *ps_dispatch_bind_regions(struct ps_dispatch *dispatch);
void ps_dispatch_unbind_regions(struct ps_dispatch *dispatch);

#endif
