// SPDX-License-Identifier: MIT
/**
 * Spec: the text that the user gave to -e, parsed. No system call is made here.
 */
#ifndef PERFSCOPE_SPEC_H
#define PERFSCOPE_SPEC_H

#include <perfscope/error.h>
#include <stdbool.h>
#include <stdint.h>

enum ps_spec_kind {
	PS_SPEC_TRACEPOINT, // sys:name, both with * and ?
	PS_SPEC_COUNTER,    // one word: cycles, page-faults, LLC-loads, a libpfm4 name
	PS_SPEC_PMU,	    // pmu/term=value,.../
	PS_SPEC_RAW,	    // rHEX
	PS_SPEC_BREAKPOINT, // mem:ADDR[/LEN][:rwx]
	PS_SPEC_PROBE,	    // uprobe: uretprobe: kprobe: kretprobe: usdt:
	PS_SPEC_PROFILE,    // profile
};

/** One term or attribute between slashes. */
struct ps_term {
	char *name;
	char *value;   // NULL: a bare word
	size_t column; // in the whole text
};

struct ps_spec {
	enum ps_spec_kind kind;
	char *text;	 // this event as it was typed
	size_t column;	 // where it starts in the whole text
	char *system;	 // tracepoint: system; PMU: its name; probe: uprobe, kprobe, ...
	char *name;	 // tracepoint, counter: name; probe: FUNC, or PROVIDER:NAME of usdt
	uint64_t offset; // probe: +OFF
	char *file;	 // probe: FILE, else NULL
	char *args;	 // probe: fetch arguments, else NULL
	uint64_t config; // raw: HEX; breakpoint: ADDR
	uint64_t breakpoint_size;
	uint32_t breakpoint_type; // HW_BREAKPOINT_R | _W | _X
	char *filter;		  // kernel filter expression, NULL: none
	struct ps_term *terms;	  // PMU terms: what is no attribute
	size_t nr_terms;
	// attributes
	char *alias;
	char *cpus;	      // cpus=LIST as typed, NULL: those of the target
	bool has_stack;	      // stack
	uint32_t max_stack;   // max-stack=N, 0: not given
	uint64_t freq;	      // freq=HZ, 0: not given
	uint64_t period;      // period=N, 0: not given
	uint64_t sample_type; // PERF_SAMPLE_* bits asked for by ip, addr, read, ...
	// modifiers, perf's meaning
	bool exclude_user, exclude_kernel, exclude_hv, exclude_host, exclude_guest;
	bool is_modified; // one of u k h G H was given
	uint8_t precise_ip;
	char *modifiers;       // as typed, those of its braces behind its own; NULL: none
	unsigned int group;    // 0: alone; else the number of its braces, from 1
	unsigned int boundary; // begins or ends regions: its number among such, from 1; 0: of -e
};

struct ps_spec_list {
	struct ps_spec *specs;
	size_t nr_specs;
	unsigned int nr_groups;
};

/**
 * Parse the @text of one -e and append its events to @list.
 *
 * Fails with PS_ERROR_USAGE and a caret detail at the column; @list is then as it was. A text of more than
 * PS_SPEC_MAX_SIZE bytes is refused.
 */
#define PS_SPEC_MAX_SIZE 65536
struct ps_error *ps_spec_parse(const char *text, struct ps_spec_list *list);

/** Whether @name is an attribute of events: "stack". */
bool ps_spec_is_attribute(const char *name);

void ps_spec_list_deinit(struct ps_spec_list *list);

/** The name of the handler of @system and @name: "sys__name"; `-`, `.`, `:` and the like become `_`. The caller frees it. */
char *ps_spec_handler_name(const char *system, const char *name);

#endif
