// SPDX-License-Identifier: MIT
/**
 * Output: where stdout goes with -o.
 */
#ifndef PERFSCOPE_OUTPUT_H
#define PERFSCOPE_OUTPUT_H

#include <perfscope/error.h>
#include <stdbool.h>

struct ps_output {
	char *path; // absolute, owned: the script may change the folder; NULL: stdout stays
};

/** Empty or create the file at @path and make it stdout. NULL leaves stdout as it is. */
struct ps_error *ps_output_open(const char *path, struct ps_output *ret);

/** Open the path anew, behind what it holds: after a rotation, a new file. On failure stdout stays where it is. */
struct ps_error *ps_output_reopen(const struct ps_output *output);

void ps_output_close(struct ps_output *output);

/** Write all of @text to stdout; *@ret is false when nobody reads it, or a stop is requested while it waits. */
struct ps_error *ps_output_write(const char *text, size_t size, bool *ret);

#endif
