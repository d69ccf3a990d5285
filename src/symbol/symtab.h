// SPDX-License-Identifier: MIT
/**
 * A table of symbols by address, whatever they were read from.
 */
#ifndef PERFSCOPE_SYMBOL_SYMTAB_H
#define PERFSCOPE_SYMBOL_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbol {
	uint64_t start, end; // the end outside; end == start: not known, up to the next symbol
	uint64_t reach;	     // the farthest end of all up to this one
	uint64_t limit;	     // where a symbol without end must end at the latest
	uint32_t name;	     // offset in names
	uint32_t rank; // of symbols with one start the higher is meant; of perf maps, the later
};

struct symtab {
	struct symbol *symbols;
	uint32_t nr, capacity;
	uint32_t nr_sorted; // the first so many, of a table finished as overlapping
	char *names;
	uint32_t names_size, names_capacity;
};

/** How well a name serves, beside others of one address: global before local, few underscores before many. */
uint32_t symbol_rank(const char *name, bool is_global, bool is_weak);

/** Add a symbol; its name is copied. False: no memory, or the table is full. */
bool symtab_add(struct symtab *table, const struct symbol *symbol, const char *name);

/** Sort, choose among symbols of one address, and find the ends that are not known. */
void symtab_finish(struct symtab *table);

/** As symtab_finish, for tables in which a later symbol voids what it overlaps; more can be added and finished. */
void symtab_finish_overlapping(struct symtab *table);

/**
 * Forget those below @min_rank, and those that a later one of the same start voids, in a table just finished as
 * overlapping. False: no memory, nothing changed.
 */
bool symtab_compact(struct symtab *table, uint32_t min_rank);

/** The symbol at @address that starts last; NULL: none. */
const struct symbol *symtab_find(const struct symtab *table, uint64_t address);

/** The symbol at @address that was added last; NULL: none. */
const struct symbol *symtab_find_latest(const struct symtab *table, uint64_t address);

static inline const char *symtab_name(const struct symtab *table, const struct symbol *symbol)
{
	return table->names + symbol->name;
}

/** Bytes that it takes. */
static inline size_t symtab_nr_bytes(const struct symtab *table)
{
	return table->capacity * sizeof(*table->symbols) + table->names_capacity;
}

void symtab_deinit(struct symtab *table);

#endif
