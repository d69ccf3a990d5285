// SPDX-License-Identifier: MIT
/**
 * Run: opens the events, runs the script on them, and undoes all of it.
 */
#ifndef PERFSCOPE_RUN_H
#define PERFSCOPE_RUN_H

#include <perfscope/options.h>
#include <perfscope/source.h>

/** Run the script of @options on @sources. *ret_status is the exit status; errors are of what comes before the script. */
struct ps_error *ps_run(const struct ps_options *options, struct ps_source_list *sources,
			int *ret_status);

#endif
