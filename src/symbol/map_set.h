// SPDX-License-Identifier: MIT
/**
 * The maps of an address space, sorted: shared by a process and its children until one of them changes.
 */
#ifndef PERFSCOPE_SYMBOL_MAP_SET_H
#define PERFSCOPE_SYMBOL_MAP_SET_H

#include "map_file.h"

struct map_set {
	uint32_t nr_refs;
	uint32_t nr, capacity;
	uint64_t generation; // another one after each change
	struct ps_map maps[];
};

/**
 * Put @map into *@set, which may be NULL; what lay there makes room, or with @is_below keeps it. Takes a reference of
 * the file of @map. A set that is shared is copied first. False: no memory, or too many; nothing changed.
 */
bool map_set_insert(struct map_set **set, struct map_files *files, const struct ps_map *map,
		    bool is_below);

/** The map at @address, or NULL. @set may be NULL. */
const struct ps_map *map_set_find(const struct map_set *set, uint64_t address);

/** Another reference; NULL passes through. */
struct map_set *map_set_share(struct map_set *set);
/** Give a reference back; takes NULL. */
void map_set_put(struct map_set *set, struct map_files *files);

#endif
