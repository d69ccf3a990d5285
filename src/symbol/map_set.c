// SPDX-License-Identifier: MIT
#include "map_set.h"

#include <string.h>

#define MIN_CAPACITY 8

/** The first map that ends behind @address. */
static uint32_t find_end(const struct map_set *set, uint64_t address)
{
	uint32_t low = 0, high = set->nr;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (set->maps[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct ps_map *map_set_find(const struct map_set *set, uint64_t address)
{
	if (PS_UNLIKELY(!set))
		return NULL;
	uint32_t at = find_end(set, address);
	return at < set->nr && set->maps[at].start <= address ? &set->maps[at] : NULL;
}

struct map_set *map_set_share(struct map_set *set)
{
	if (set)
		set->nr_refs++;
	return set;
}

void map_set_put(struct map_set *set, struct map_files *files)
{
	if (!set || --set->nr_refs)
		return;
	for (uint32_t i = 0; i < set->nr; i++)
		map_files_put(files, set->maps[i].file);
	free(set);
}

static struct map_set *set_copy(const struct map_set *set, uint32_t capacity)
{
	struct map_set *copy = malloc(sizeof(*copy) + capacity * sizeof(copy->maps[0]));
	if (!copy)
		return NULL;
	*copy = (struct map_set){ .nr_refs = 1, .capacity = capacity };
	if (!set)
		return copy;
	copy->nr = set->nr;
	memcpy(copy->maps, set->maps, set->nr * sizeof(set->maps[0]));
	for (uint32_t i = 0; i < copy->nr; i++)
		copy->maps[i].file->nr_refs++;
	return copy;
}

/** Make *@set one that only its owner has, with room for two maps more: one map can be cut into two. */
static bool set_prepare(struct map_set **set, struct map_files *files)
{
	struct map_set *old = *set;
	if (old && old->nr_refs == 1 && old->nr + 2 <= old->capacity)
		return true;
	if (old && old->nr >= PS_MAPS_MAX_OF_PROCESS)
		return false;
	uint32_t capacity = old ? old->nr + old->nr / 2 + 2 : 0;
	struct map_set *copy = set_copy(old, capacity > MIN_CAPACITY ? capacity : MIN_CAPACITY);
	if (!copy)
		return false;
	map_set_put(old, files);
	*set = copy;
	return true;
}

/** Open a gap of one map at @at. */
static void set_shift(struct map_set *set, uint32_t at)
{
	memmove(&set->maps[at + 1], &set->maps[at], (set->nr - at) * sizeof(set->maps[0]));
	set->nr++;
}

static void set_remove(struct map_set *set, struct map_files *files, uint32_t at)
{
	map_files_put(files, set->maps[at].file);
	set->nr--;
	memmove(&set->maps[at], &set->maps[at + 1], (set->nr - at) * sizeof(set->maps[0]));
}

static void map_cut_start(struct ps_map *map, uint64_t start)
{
	map->offset += start - map->start;
	map->start = start;
}

/** Take out of @set what lies from @start to @end; returns where a map from @start belongs. */
static uint32_t set_clear(struct map_set *set, struct map_files *files, uint64_t start,
			  uint64_t end)
{
	uint32_t at = find_end(set, start);
	if (at < set->nr && set->maps[at].start < start) {
		if (set->maps[at].end > end) {
			set_shift(set, at);
			set->maps[at].file->nr_refs++;
			map_cut_start(&set->maps[at + 1], end);
		}
		set->maps[at++].end = start;
	}
	while (at < set->nr && set->maps[at].end <= end)
		set_remove(set, files, at);
	if (at < set->nr && set->maps[at].start < end)
		map_cut_start(&set->maps[at], end);
	return at;
}

bool map_set_insert(struct map_set **set, struct map_files *files, const struct ps_map *map,
		    bool is_below)
{
	if (is_below && *set) {
		uint32_t at = find_end(*set, map->start);
		if (at < (*set)->nr && (*set)->maps[at].start < map->end)
			return true;
	}
	if (!set_prepare(set, files))
		return false;
	uint32_t at = set_clear(*set, files, map->start, map->end);
	set_shift(*set, at);
	(*set)->maps[at] = *map;
	map->file->nr_refs++;
	return true;
}
