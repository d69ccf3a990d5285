// SPDX-License-Identifier: MIT
/**
 * The frames of places that were asked for, up to a bound.
 */
#ifndef PERFSCOPE_SYMBOL_CACHE_H
#define PERFSCOPE_SYMBOL_CACHE_H

#include <perfscope/symbol.h>

/** A place: an address in a file, in a process's own memory or in the kernel. */
struct place {
	uint64_t owner;	  // whose address it is
	uint64_t address; // twice, and one more for where a call returns to
};

struct cached {
	struct place place;
	struct ps_frame *frames; // owned; NULL: free
	uint32_t nr_frames;
	uint32_t used_at;
	uint64_t version; // of what records told of the kernel; 0: nothing
};

struct cache {
	struct cached *entries;
	uint32_t clock, nr;
};

bool cache_init(struct cache *cache);
/** Forget all. */
void cache_clear(struct cache *cache);
void cache_deinit(struct cache *cache);

/** What is kept of @place, or NULL. */
struct cached *cache_find(struct cache *cache, const struct place *place);

/** Keep @nr frames (copied) of @place, which is not there; NULL: no memory. */
struct cached *cache_put(struct cache *cache, const struct place *place,
			 const struct ps_frame *frames, uint32_t nr);

/** Forget @entry. */
void cache_drop(struct cache *cache, struct cached *entry);

#endif
