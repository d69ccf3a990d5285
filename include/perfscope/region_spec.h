// SPDX-License-Identifier: MIT
/**
 * Region spec: the text that the user gave to -r, parsed. No system call is made here.
 */
#ifndef PERFSCOPE_REGION_SPEC_H
#define PERFSCOPE_REGION_SPEC_H

#include <perfscope/spec.h>

/** The longest NAME, in bytes. */
#define PS_REGION_NAME_MAX 63

/** A stretch of a thread's execution between two events. */
struct ps_region_spec {
	char *text; // as it was typed
	char *name;
	char *handler;		 // "region__NAME"; as of events, what is no letter or digit is `_`
	unsigned int begin, end; // numbers of the events: ps_spec.boundary
};

struct ps_region_spec_list {
	struct ps_region_spec *regions;
	size_t nr_regions;
	unsigned int nr_boundaries; // events, each numbered from 1; regions may share them
	unsigned int switches;	    // number of that which tells of switches; 0: not asked for
};

/**
 * Parse the @text of one -r, "NAME=BEGIN..END" or "NAME=func:FUNC@FILE", and append it to @regions, its events to
 * @specs.
 *
 * An event that is there already, to the letter, is not appended again. Fails with PS_ERROR_USAGE.
 */
struct ps_error *ps_region_spec_parse(const char *text, struct ps_spec_list *specs,
				      struct ps_region_spec_list *regions);

/** Append the event that tells when one thread gives its CPU to another. */
struct ps_error *ps_region_spec_add_switches(struct ps_spec_list *specs,
					     struct ps_region_spec_list *regions);

void ps_region_spec_list_deinit(struct ps_region_spec_list *regions);

#endif
