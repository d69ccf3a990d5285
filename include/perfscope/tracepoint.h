// SPDX-License-Identifier: MIT
/**
 * Tracepoints as tracefs lists them.
 */
#ifndef PERFSCOPE_TRACEPOINT_H
#define PERFSCOPE_TRACEPOINT_H

#include <perfscope/error.h>
#include <perfscope/nearest.h>
#include <stdint.h>

/**
 * The folder of tracefs, borrowed for the life of the process.
 *
 * Looks at /sys/kernel/tracing, then at /sys/kernel/debug/tracing, then mounts it at the first where the caller
 * may, and says so. PERFSCOPE_TRACEFS names another folder. Fails with the knob to turn.
 */
struct ps_error *ps_tracefs_path(const char **ret);

/** The id of system:name, perf_event_attr's config. */
struct ps_error *ps_tracepoint_read_id(const char *tracefs, const char *system, const char *name,
				       uint64_t *ret);

/** The format text of system:name; the caller frees it. */
struct ps_error *ps_tracepoint_read_format(const char *tracefs, const char *system,
					   const char *name, char **ret, size_t *ret_size);

/** Called for each tracepoint; an error ends the walk and is returned. */
typedef struct ps_error *(*ps_tracepoint_visit)(const char *system, const char *name,
						void *argument);

/**
 * Visit the tracepoints whose system and name match (* and ?; the match is exact where there is neither), sorted.
 *
 * Where none matches: PS_ERROR_NOT_FOUND with the nearest names.
 */
struct ps_error *ps_tracepoint_glob(const char *tracefs, const char *system, const char *name,
				    ps_tracepoint_visit visit, void *argument);

#endif
