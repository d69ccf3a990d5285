// SPDX-License-Identifier: MIT
#include "jit.h"

#include <perfscope/cleanup.h>
#include <time.h>

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * UINT64_C(1000) + now.tv_nsec / 1000000 + 1;
}

/** The one of @process_id, or the one that was not used for the longest time, emptied. */
static struct jit *find(struct jits *jits, uint64_t process_id)
{
	struct jit *oldest = &jits->jits[0];
	for (uint32_t i = 0; i < JITS_MAX; i++) {
		struct jit *jit = &jits->jits[i];
		if (jit->process_id == process_id)
			return jit;
		if (jits->clock - jit->used_at > jits->clock - oldest->used_at)
			oldest = jit;
	}
	perf_map_deinit(&oldest->map);
	*oldest = (struct jit){ .process_id = process_id, .generation = ++jits->last_generation };
	return oldest;
}

/** Free the map that was not used for the longest time of those that hold something; it is not the one last got. */
static void drop_oldest(struct jits *jits)
{
	struct jit *oldest = NULL;
	for (uint32_t i = 0; i < JITS_MAX; i++) {
		struct jit *jit = &jits->jits[i];
		if (symtab_nr_bytes(&jit->map.table) &&
		    (!oldest || jits->clock - jit->used_at > jits->clock - oldest->used_at))
			oldest = jit;
	}
	perf_map_deinit(&oldest->map);
	*oldest = (struct jit){};
}

struct jit *jits_get(struct jits *jits, uint64_t process_id, pid_t pid)
{
	if (PS_UNLIKELY(!jits->last || jits->last->process_id != process_id))
		jits->last = find(jits, process_id);
	struct jit *jit = jits->last;
	jit->used_at = ++jits->clock;
	uint64_t now = now_ms();
	if (jit->checked_ms && now - jit->checked_ms < JIT_PERIOD_MS)
		return jit;
	jit->checked_ms = now;
	if (perf_map_update(&jit->map, pid)) {
		jit->generation = ++jits->last_generation;
		while (jits_nr_bytes(jits) > JITS_MAX_BYTES)
			drop_oldest(jits);
	}
	return jit;
}

size_t jits_nr_bytes(const struct jits *jits)
{
	size_t nr = 0;
	for (uint32_t i = 0; i < JITS_MAX; i++)
		nr += symtab_nr_bytes(&jits->jits[i].map.table);
	return nr;
}

void jits_deinit(struct jits *jits)
{
	for (uint32_t i = 0; i < JITS_MAX; i++)
		perf_map_deinit(&jits->jits[i].map);
}
