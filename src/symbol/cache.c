// SPDX-License-Identifier: MIT
#include "cache.h"

#include <string.h>

// A place can stand at so many entries beside each other; the one used longest ago makes room.
#define WAYS 8
#define NR_SETS (PS_SYMBOL_CACHE_SIZE / WAYS)

static struct cached *set_of(const struct cache *cache, const struct place *place)
{
	uint64_t hash = (place->address + place->owner * UINT64_C(0x9e3779b97f4a7c15)) *
			UINT64_C(0xff51afd7ed558ccd);
	return &cache->entries[(hash >> 40) % NR_SETS * WAYS];
}

struct cached *cache_find(struct cache *cache, const struct place *place)
{
	struct cached *set = set_of(cache, place);
	for (uint32_t i = 0; i < WAYS; i++) {
		if (set[i].place.address == place->address && set[i].place.owner == place->owner &&
		    set[i].frames) {
			set[i].used_at = ++cache->clock;
			return &set[i];
		}
	}
	return NULL;
}

void cache_drop(struct cache *cache, struct cached *entry)
{
	if (entry->frames)
		cache->nr--;
	free(entry->frames);
	*entry = (struct cached){};
}

static struct cached *find_room(struct cache *cache, const struct place *place)
{
	struct cached *set = set_of(cache, place), *oldest = set;
	for (uint32_t i = 0; i < WAYS; i++) {
		if (!set[i].frames)
			return &set[i];
		// By age: the clock goes round.
		if (cache->clock - set[i].used_at > cache->clock - oldest->used_at)
			oldest = &set[i];
	}
	cache_drop(cache, oldest);
	return oldest;
}

struct cached *cache_put(struct cache *cache, const struct place *place,
			 const struct ps_frame *frames, uint32_t nr)
{
	struct ps_frame *copy = malloc(nr * sizeof(*copy));
	if (!copy)
		return NULL;
	memcpy(copy, frames, nr * sizeof(*copy));
	struct cached *entry = find_room(cache, place);
	*entry = (struct cached){ *place, copy, nr, ++cache->clock, 0 };
	cache->nr++;
	return entry;
}

bool cache_init(struct cache *cache)
{
	cache->entries = calloc(PS_SYMBOL_CACHE_SIZE, sizeof(*cache->entries));
	return cache->entries;
}

void cache_clear(struct cache *cache)
{
	for (uint32_t i = 0; cache->entries && i < PS_SYMBOL_CACHE_SIZE; i++)
		cache_drop(cache, &cache->entries[i]);
}

void cache_deinit(struct cache *cache)
{
	cache_clear(cache);
	free(cache->entries);
}
