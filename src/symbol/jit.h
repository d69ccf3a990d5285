// SPDX-License-Identifier: MIT
/**
 * The perf maps of processes that make code.
 */
#ifndef PERFSCOPE_SYMBOL_JIT_H
#define PERFSCOPE_SYMBOL_JIT_H

#include "perf_map.h"

#define JITS_MAX 64

/** Bytes of all maps together; above, those not used for the longest time go. */
#define JITS_MAX_BYTES (4 * PERF_MAP_MAX_BYTES)

/** Milliseconds after which a map is looked at again. */
#define JIT_PERIOD_MS 100

struct jit {
	uint64_t process_id; // 0: free
	uint64_t generation; // another one after each change of the map, and no other map's
	uint64_t checked_ms;
	uint32_t used_at;
	struct perf_map map;
};

struct jits {
	struct jit jits[JITS_MAX];
	struct jit *last;
	uint64_t last_generation;
	uint32_t clock;
};

/** That of the process, as it is in its file, or was at most JIT_PERIOD_MS ago. */
struct jit *jits_get(struct jits *jits, uint64_t process_id, pid_t pid);
/** Bytes that the maps take. */
size_t jits_nr_bytes(const struct jits *jits);
void jits_deinit(struct jits *jits);

#endif
