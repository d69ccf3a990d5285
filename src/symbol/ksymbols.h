// SPDX-License-Identifier: MIT
/**
 * Functions that the kernel makes and removes while it runs (BPF programs, trampolines), as records tell of them.
 */
#ifndef PERFSCOPE_SYMBOL_KSYMBOLS_H
#define PERFSCOPE_SYMBOL_KSYMBOLS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/** Functions known at a time, with the places of removed ones; what goes beyond is not known. */
#define KSYMBOLS_MAX 16384

struct ksymbol {
	uint64_t start, end; // the end outside
	char *name;	     // owned; NULL: it was removed
	const char *dso;     // static
};

struct ksymbols {
	struct ksymbol *symbols; // by address; they do not overlap
	uint32_t nr, capacity;
	uint64_t low, high;  // all that were ever told lie between
	uint64_t generation; // another one after each change
};

/** Follow a KSYMBOL record; others are passed over. */
void ksymbols_follow(struct ksymbols *ksymbols, const struct perf_event_header *header);

/** What was told of @address, also that it was removed; NULL: nothing. */
const struct ksymbol *ksymbols_find(const struct ksymbols *ksymbols, uint64_t address);

/** Changes when what is told of @address may have; 0 for one that was never told of. */
static inline uint64_t ksymbols_generation(const struct ksymbols *ksymbols, uint64_t address)
{
	return address >= ksymbols->low && address < ksymbols->high ? ksymbols->generation : 0;
}

void ksymbols_deinit(struct ksymbols *ksymbols);

#endif
