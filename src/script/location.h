// SPDX-License-Identifier: MIT
/**
 * Location: what the SCRIPT of the command line stands for. No interpreter is needed.
 */
#ifndef PERFSCOPE_SCRIPT_LOCATION_H
#define PERFSCOPE_SCRIPT_LOCATION_H

#include <perfscope/error.h>
#include <stdbool.h>
#include <stddef.h>

enum ps_location_kind {
	PS_LOCATION_SOURCE,    // Python text
	PS_LOCATION_EXTENSION, // a shared object
	PS_LOCATION_MODULE,    // a dotted name, to be imported; there is no path
};

struct ps_location {
	enum ps_location_kind kind;
	char *path;   // absolute, symbolic links kept; NULL for PS_LOCATION_MODULE
	char *module; // name for sys.modules
};

/**
 * Tell what @name is: a file, else a dotted module name.
 *
 * Errors, kind PS_ERROR_SCRIPT: no such file (with the nearest), a folder, what cannot be looked at.
 */
struct ps_error *ps_location_find(const char *name, struct ps_location *ret);

/** The script that perfscope ships as @name; *ret is all NULL where there is none. */
struct ps_error *ps_location_find_shipped(const char *name, struct ps_location *ret);

/** The source file of the module @name below the current folder and $PYTHONPATH, as above. */
struct ps_error *ps_location_find_module(const char *name, struct ps_location *ret);

void ps_location_deinit(struct ps_location *location);

/** The bytes of the file @path with a NUL behind them; the caller frees them. */
struct ps_error *ps_file_read(const char *path, char **ret, size_t *ret_size);

/**
 * @name as Python can write it: what no identifier may hold becomes `_`, a digit in front gets one before it, a
 * keyword one behind it. The caller frees it; NULL: no memory.
 */
char *ps_identifier_from(const char *name);

/** Whether all of @name is an identifier and no keyword. Bytes beyond ASCII pass. */
bool ps_is_identifier(const char *name);

#endif
