// SPDX-License-Identifier: MIT
/**
 * Source: one kind of event, resolved and openable.
 */
#ifndef PERFSCOPE_SOURCE_H
#define PERFSCOPE_SOURCE_H

#include <linux/perf_event.h>
#include <perfscope/region_spec.h>
#include <perfscope/schema.h>
#include <perfscope/spec.h>

struct ps_probe;

struct ps_source {
	size_t index; // in the list
	char *name;   // "sched:sched_switch", "cycles": what _event says, without alias
	char *label; // what summaries and totals call it: the alias, else the name with its modifiers; unique
	char *handler;		     // "sched__sched_switch", "sched__alias", "cycles"
	char *filter;		     // NULL: none
	char *cpus;		     // cpus=LIST, NULL: those of the target
	struct perf_event_attr attr; // all but clock, wake-ups and id bits, which the session sets
	struct ps_schema *schema;    // a reference
	unsigned int group;	     // 0: alone
	bool is_group_leader;
	bool is_glob;		    // one of those that a pattern matched
	bool is_sampling;	    // false: counts only
	bool is_missing;	    // this machine lacks it: reads None
	char *missing_reason;	    // "no hardware PMU here; nearest: cpu-clock"
	const struct ps_spec *spec; // borrowed: where it came from, for messages
	size_t raw_size;	    // bytes of the fixed part of raw data, 0: none
	struct ps_probe *probe;	    // what was made for a probe, NULL: none
	unsigned int boundary;	    // begins or ends regions: ps_spec.boundary
	const struct ps_source
		*original; // this one counts for regions what that one counts in its group
};

struct ps_source_list {
	struct ps_source **sources;
	size_t nr_sources;
	size_t nr_hidden; // the last of them, opened for regions and never shown
	const struct ps_region_spec_list *regions; // borrowed; NULL: none
	unsigned int
		region_group; // the group of what begins and ends regions and counts in them; 0: none
};

/** How many sources are the user's own; they come first. */
static inline size_t ps_sources_nr_shown(const struct ps_source_list *list)
{
	return list->nr_sources - list->nr_hidden;
}

/** How the user's part of a call stack is found. */
enum ps_stack_kind {
	PS_STACK_NONE,
	PS_STACK_FP,	// the kernel follows frame pointers
	PS_STACK_DWARF, // from a copy of the stack, by call frame information
	PS_STACK_LBR,	// from the PMU's last branches
};

struct ps_source_options {
	bool exclude_user, exclude_kernel, exclude_host, exclude_guest; // of every event
	// How the counters sample that say nothing of it themselves; both 0: they count.
	uint64_t freq;		  // times a second
	uint64_t period;	  // every so many occurrences
	enum ps_stack_kind stack; // of all tracepoints and sampling counters
	uint32_t stack_bytes; // of the stack that PS_STACK_DWARF copies, a multiple of 8; 0: 8 KiB
	bool without_user_stack, without_kernel_stack;
	uint16_t max_stack; // addresses, 0: the kernel's limit
	bool is_inherited;  // the target is threads, whose events new threads get too
	const struct ps_region_spec_list
		*regions; // whose events are among the specs, last; NULL: none
};

/**
 * Resolve @specs in their order, globs expanded in sorted order.
 *
 * @specs must outlive the list. Of several events of one name each stays a source of its own; their labels get
 * "#2", "#3".
 *
 * With regions, their events and the counters that count all the time make one group, so that each record of such an
 * event tells the counters at that moment. A counter in a group of the user's stays there; a hidden one counts beside it.
 */
struct ps_error *ps_sources_resolve(const struct ps_spec_list *specs,
				    const struct ps_source_options *options,
				    struct ps_source_list *ret);
/** Also removes the probes: their descriptors are to be closed before. */
void ps_source_list_deinit(struct ps_source_list *list);

/**
 * Whether the kernel gives one set of values to all equal events of this kind that happen at a moment: the id, the time
 * and the call stack of a sample are then those of the first of them, of whatever program (perf_sample_data in
 * do_perf_sw_event(), kernel/events/core.c; sample_flags since Linux 6.0).
 */
bool ps_attr_shares_samples(const struct perf_event_attr *attr);

#endif
