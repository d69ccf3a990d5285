// SPDX-License-Identifier: MIT
/**
 * Where a name stands in an array: a hash over it, so that thousands of names are found in one step each.
 */
#ifndef PERFSCOPE_COUNT_NAME_INDEX_H
#define PERFSCOPE_COUNT_NAME_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name_place {
	uint32_t hash, number; // 1 + the place in the array; 0: free
};

/** All zeros is empty. The array is the caller's, and compares names. */
struct name_index {
	struct name_place *places; // owned
	size_t nr_places, nr;	   // of places a power of two, at most half of them taken
};

/** Of at most PS_REGION_NAME_SIZE - 1 bytes of @name; @seed tells apart what may have one name. */
uint32_t name_hash(const char *name, uint32_t seed);

/** The next place in the array, to *@ret, that may hold @hash. *@cursor is 0 at first. False: no more. */
bool name_index_next(const struct name_index *index, uint32_t hash, size_t *cursor, size_t *ret);

/** Let @hash lead to @place. False: no memory. */
bool name_index_add(struct name_index *index, uint32_t hash, size_t place);

#endif
