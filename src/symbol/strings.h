// SPDX-License-Identifier: MIT
/**
 * Texts kept once each, until all are let go.
 */
#ifndef PERFSCOPE_SYMBOL_STRINGS_H
#define PERFSCOPE_SYMBOL_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strings {
	struct string_entry *entries; // open addressing
	uint32_t nr, size;	      // size: a power of two, or 0
	size_t nr_bytes;	      // in texts
};

/** The kept text that equals @text; NULL: no memory. */
const char *strings_keep(struct strings *strings, const char *text);
/** @name as it was written in C++ or Rust; itself where it is not mangled. */
const char *strings_keep_demangled(struct strings *strings, const char *name);
const char *strings_keep_format(struct strings *strings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void strings_deinit(struct strings *strings);

#endif
