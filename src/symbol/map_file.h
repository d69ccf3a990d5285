// SPDX-License-Identifier: MIT
/**
 * The files that are mapped somewhere: one object for each identity, counted by the maps that have it.
 */
#ifndef PERFSCOPE_SYMBOL_MAP_FILE_H
#define PERFSCOPE_SYMBOL_MAP_FILE_H

#include <perfscope/maps.h>

#define PS_MAP_FILE_BUCKETS 1024

struct map_files {
	struct ps_file *buckets[PS_MAP_FILE_BUCKETS];
	uint64_t last_id;
	size_t nr;
};

/** The file that has all of @like (its id, refs, next and mapped_ns are not looked at), with one more reference; NULL: no memory. */
struct ps_file *map_files_get(struct map_files *files, const struct ps_file *like);

/** Give back one reference. */
void map_files_put(struct map_files *files, struct ps_file *file);

#endif
