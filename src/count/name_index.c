// SPDX-License-Identifier: MIT
#include "name_index.h"

#include <perfscope/region_table.h>
#include <stdlib.h>

#define MIN_PLACES 64

uint32_t name_hash(const char *name, uint32_t seed)
{
	uint64_t hash = (14695981039346656037ULL ^ seed) * 1099511628211ULL;
	for (size_t i = 0; i < PS_REGION_NAME_SIZE - 1 && name[i]; i++)
		hash = (hash ^ (unsigned char)name[i]) * 1099511628211ULL;
	return hash ^ hash >> 32;
}

bool name_index_next(const struct name_index *index, uint32_t hash, size_t *cursor, size_t *ret)
{
	while (index->nr_places) {
		size_t at = (hash + (*cursor)++) & (index->nr_places - 1);
		if (!index->places[at].number)
			return false;
		*ret = index->places[at].number - 1;
		if (index->places[at].hash == hash)
			return true;
	}
	return false;
}

static void put(struct name_index *index, struct name_place place)
{
	size_t at = place.hash & (index->nr_places - 1);
	while (index->places[at].number)
		at = (at + 1) & (index->nr_places - 1);
	index->places[at] = place;
}

static bool grow(struct name_index *index)
{
	struct name_index grown = { .nr = index->nr };
	grown.nr_places = index->nr_places ? 2 * index->nr_places : MIN_PLACES;
	grown.places = calloc(grown.nr_places, sizeof(*grown.places));
	if (!grown.places)
		return false;
	for (size_t i = 0; i < index->nr_places; i++) {
		if (index->places[i].number)
			put(&grown, index->places[i]);
	}
	free(index->places);
	*index = grown;
	return true;
}

bool name_index_add(struct name_index *index, uint32_t hash, size_t place)
{
	if (2 * index->nr >= index->nr_places && !grow(index))
		return false;
	put(index, (struct name_place){ hash, place + 1 });
	index->nr++;
	return true;
}
