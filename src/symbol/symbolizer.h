// SPDX-License-Identifier: MIT
/**
 * The parts of a symbolizer.
 */
#ifndef PERFSCOPE_SYMBOL_SYMBOLIZER_H
#define PERFSCOPE_SYMBOL_SYMBOLIZER_H

#include "cache.h"
#include "dso.h"
#include "jit.h"
#include "ksymbols.h"
#include "strings.h"
#include "symtab.h"

struct unwinder;

struct ps_symbolizer {
	struct ps_maps *maps;
	struct strings strings;
	size_t max_text_bytes;
	struct cache cache;
	struct dsos dsos;
	struct jits jits;
	struct symtab kernel;
	struct ksymbols ksymbols;
	bool is_kernel_read;
	uint64_t kernel_next_ms; // when it may be read again
	char *kallsyms, *debug_folder;
	struct unwinder *unwinder; // NULL until the first stack
	struct ps_unwind_counts unwind_counts;
};

/** Takes NULL. */
void unwinder_destroy(struct unwinder *unwinder);

#endif
