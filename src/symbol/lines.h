// SPDX-License-Identifier: MIT
/**
 * Inlined functions and source lines, from DWARF.
 */
#ifndef PERFSCOPE_SYMBOL_LINES_H
#define PERFSCOPE_SYMBOL_LINES_H

#include "strings.h"

#include <perfscope/symbol.h>

struct lines;

/** Read the DWARF of @fd, which is taken over and closed in any case. NULL: it has none that can be read. */
struct lines *lines_create(int fd);
void lines_destroy(struct lines *lines);

/**
 * The functions at @address of the file, innermost first: symbol, line and is_inlined are set, all else is left.
 *
 * The last is the function that all others are inlined into. Returns their number, at most @max; 0: not known. Where
 * only the line is known, that is one frame without symbol.
 */
size_t lines_find(struct lines *lines, struct strings *strings, uint64_t address,
		  struct ps_frame *frames, size_t max);

#endif
