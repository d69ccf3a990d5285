// SPDX-License-Identifier: MIT
#include "symtab.h"

#include <perfscope/cleanup.h>
#include <string.h>

#define MAX_NAMES (UINT32_C(1) << 30)
#define MAX_SYMBOLS (UINT32_C(1) << 24)

// Symbols that can lie around one address; more are only in files made to be slow.
#define MAX_STEPS 1024

uint32_t symbol_rank(const char *name, bool is_global, bool is_weak)
{
	size_t underscores = strspn(name, "_");
	size_t length = strlen(name);
	return (uint32_t)!is_weak << 31 | (uint32_t)is_global << 30 |
	       (uint32_t)(255 - (underscores < 255 ? underscores : 255)) << 16 |
	       (uint32_t)(length < 0xffff ? length : 0xffff);
}

static bool reserve_names(struct symtab *table, uint32_t size)
{
	if (table->names_size + size <= table->names_capacity)
		return true;
	uint32_t capacity = 2 * (table->names_capacity + size) + 4096;
	if (capacity > MAX_NAMES)
		return false;
	char *names = realloc(table->names, capacity);
	if (!names)
		return false;
	table->names = names;
	table->names_capacity = capacity;
	return true;
}

static bool reserve_symbol(struct symtab *table)
{
	if (table->nr < table->capacity)
		return true;
	uint32_t capacity = table->capacity ? 2 * table->capacity : 64;
	struct symbol *symbols = capacity > MAX_SYMBOLS
					 ? NULL
					 : reallocarray(table->symbols, capacity, sizeof(*symbols));
	if (!symbols)
		return false;
	table->symbols = symbols;
	table->capacity = capacity;
	return true;
}

bool symtab_add(struct symtab *table, const struct symbol *symbol, const char *name)
{
	size_t length = strlen(name);
	if (length >= MAX_NAMES / 4 || !reserve_names(table, length + 1) || !reserve_symbol(table))
		return false;
	struct symbol *added = &table->symbols[table->nr++];
	*added = *symbol;
	added->name = table->names_size;
	memcpy(table->names + table->names_size, name, length + 1);
	table->names_size += length + 1;
	return true;
}

/** By start; of one start those of known end first, then by rank. */
static int compare(const void *left_, const void *right_)
{
	const struct symbol *left = left_, *right = right_;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	bool left_ends = left->end > left->start, right_ends = right->end > right->start;
	if (left_ends != right_ends)
		return left_ends ? -1 : 1;
	if (left->rank != right->rank)
		return left->rank > right->rank ? -1 : 1;
	return left->name < right->name ? -1 : left->name > right->name;
}

static void set_reach(struct symtab *table)
{
	uint64_t reach = 0;
	for (uint32_t i = 0; i < table->nr; i++) {
		struct symbol *symbol = &table->symbols[i];
		reach = symbol->end > reach ? symbol->end : reach;
		symbol->reach = reach;
	}
}

void symtab_finish(struct symtab *table)
{
	if (!table->nr)
		return;
	qsort(table->symbols, table->nr, sizeof(*table->symbols), compare);
	uint32_t nr = 1;
	for (uint32_t i = 1; i < table->nr; i++) {
		if (table->symbols[i].start != table->symbols[nr - 1].start)
			table->symbols[nr++] = table->symbols[i];
	}
	table->nr = nr;
	for (uint32_t i = 0; i < nr; i++) {
		struct symbol *symbol = &table->symbols[i];
		if (symbol->end > symbol->start)
			continue;
		uint64_t next = i + 1 < nr ? table->symbols[i + 1].start : UINT64_MAX;
		symbol->end = next < symbol->limit ? next : symbol->limit;
	}
	set_reach(table);
}

static int compare_start(const void *left_, const void *right_)
{
	const struct symbol *left = left_, *right = right_;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->rank < right->rank ? -1 : left->rank > right->rank;
}

/** Merge the symbols from @nr_sorted on, which are sorted, with those before; false: no memory, nothing changed. */
static bool merge_new(struct symtab *table)
{
	uint32_t old = table->nr_sorted, new = table->nr - old;
	struct symbol *symbols = table->symbols;
	_cleanup_free_ struct symbol *added = reallocarray(NULL, new, sizeof(*added));
	if (!added)
		return false;
	memcpy(added, symbols + old, new * sizeof(*added));
	// From the end, so that nothing is overwritten that is still wanted.
	for (uint32_t at = table->nr; new;) {
		bool is_old_last = old && compare_start(&symbols[old - 1], &added[new - 1]) > 0;
		symbols[--at] = is_old_last ? symbols[--old] : added[--new];
	}
	return true;
}

void symtab_finish_overlapping(struct symtab *table)
{
	uint32_t old = table->nr_sorted;
	if (table->nr > old)
		qsort(table->symbols + old, table->nr - old, sizeof(*table->symbols),
		      compare_start);
	bool is_sorted = !old || table->nr == old ||
			 compare_start(&table->symbols[old - 1], &table->symbols[old]) < 0;
	if (!is_sorted && !merge_new(table))
		qsort(table->symbols, table->nr, sizeof(*table->symbols), compare_start);
	table->nr_sorted = table->nr;
	set_reach(table);
}

bool symtab_compact(struct symtab *table, uint32_t min_rank)
{
	struct symtab kept = {};
	for (uint32_t i = 0; i < table->nr; i++) {
		const struct symbol *symbol = &table->symbols[i];
		bool is_void = i + 1 < table->nr && symbol[1].start == symbol->start &&
			       symbol[1].end >= symbol->end;
		if (symbol->rank < min_rank || is_void)
			continue;
		if (!symtab_add(&kept, symbol, symtab_name(table, symbol))) {
			symtab_deinit(&kept);
			return false;
		}
	}
	symtab_deinit(table);
	kept.nr_sorted = kept.nr;
	*table = kept;
	return true;
}

/** The number of symbols that start at or before @address. */
static uint32_t count_before(const struct symtab *table, uint64_t address)
{
	uint32_t low = 0, high = table->nr;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (table->symbols[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct symbol *symtab_find(const struct symtab *table, uint64_t address)
{
	uint32_t at = count_before(table, address);
	for (uint32_t steps = 0; at-- && steps < MAX_STEPS; steps++) {
		const struct symbol *symbol = &table->symbols[at];
		if (symbol->end > address)
			return symbol;
		if (symbol->reach <= address)
			return NULL;
	}
	return NULL;
}

const struct symbol *symtab_find_latest(const struct symtab *table, uint64_t address)
{
	const struct symbol *latest = NULL;
	uint32_t at = count_before(table, address);
	for (uint32_t steps = 0; at-- && steps < MAX_STEPS; steps++) {
		const struct symbol *symbol = &table->symbols[at];
		if (symbol->reach <= address)
			break;
		if (symbol->end > address && (!latest || symbol->rank > latest->rank))
			latest = symbol;
	}
	return latest;
}

void symtab_deinit(struct symtab *table)
{
	free(table->symbols);
	free(table->names);
	*table = (struct symtab){};
}
