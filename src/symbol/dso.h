// SPDX-License-Identifier: MIT
/**
 * A file with code, as far as it was read: its symbols at first use, its debug info at the first wish for a line.
 */
#ifndef PERFSCOPE_SYMBOL_DSO_H
#define PERFSCOPE_SYMBOL_DSO_H

#include "debuginfod.h"
#include "lines.h"
#include "strings.h"
#include "symtab.h"

#include <perfscope/symbol.h>
#include <sys/types.h>

/** Files held at a time; one that is used again later is read again. */
#define DSO_MAX 128
#define DSO_BUCKETS 256

struct segment {
	uint64_t offset, size; // in the file
	uint64_t address;
};

struct dso {
	uint64_t file_id;
	const char *name; // to show; kept
	bool is_elf;	  // what it is, and not what was put in its place, could be read
	struct symtab symbols;
	struct segment *segments; // executable ones
	uint32_t nr_segments;
	int lines_fd; // a file with its debug info, not read yet; -1: none, or given to lines
	struct lines *lines;
	uint32_t used_at;
	struct dso *next; // in its bucket
};

struct dsos {
	struct dso *buckets[DSO_BUCKETS];
	uint32_t nr, clock;
	bool has_lines;
	const char *debug_folder;
	struct debuginfod *debuginfod; // NULL: not asked for
	struct strings *strings;
	const struct ps_maps *maps; // borrowed
};

/** What is mapped at @map of @pid; read at the first call. NULL: no memory. Valid until the next call. */
struct dso *dsos_get(struct dsos *dsos, const struct ps_map *map, pid_t pid);
/** Keep the names in strings anew, which are empty now. */
void dsos_keep_names(struct dsos *dsos);
void dsos_deinit(struct dsos *dsos);

/** The address, as symbols have it, of @offset in the file; false: no code is there. */
bool dso_address(const struct dso *dso, uint64_t offset, uint64_t *ret);

/** As ps_symbolize, for @address of the file; is_return: of the call before it. Does not set address and dso. */
size_t dso_symbolize(struct dso *dso, struct strings *strings, uint64_t address, bool is_return,
		     struct ps_frame *frames, size_t max);

#endif
