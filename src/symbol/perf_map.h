// SPDX-License-Identifier: MIT
/**
 * Names of code that a process made at run time, as it tells them in /tmp/perf-PID.map.
 */
#ifndef PERFSCOPE_SYMBOL_PERF_MAP_H
#define PERFSCOPE_SYMBOL_PERF_MAP_H

#include "symtab.h"

#include <sys/types.h>

/** Bytes that one map may take; the oldest names make room. */
#define PERF_MAP_MAX_BYTES (UINT64_C(64) << 20)

struct perf_map {
	struct symtab table;
	uint64_t inode, size; // of the file as last read
	uint64_t read;	      // bytes that are in the table or were passed over
	uint32_t nr_lines;    // that were
	bool is_cut;	      // read is within a line that is passed over
};

/** Read what has come to the file of @pid, which may have ended; true: something has. */
bool perf_map_update(struct perf_map *map, pid_t pid);
void perf_map_deinit(struct perf_map *map);

#endif
