// SPDX-License-Identifier: MIT
#include "ksymbols.h"

#include <perfscope/cleanup.h>
#include <string.h>

/** PERF_RECORD_KSYMBOL; the name ends with a NUL. */
struct ksymbol_record {
	struct perf_event_header header;
	uint64_t address;
	uint32_t size;
	uint16_t type, flags;
	char name[];
};

/** The first that ends behind @address. */
static uint32_t find_end(const struct ksymbols *ksymbols, uint64_t address)
{
	uint32_t low = 0, high = ksymbols->nr;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (ksymbols->symbols[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct ksymbol *ksymbols_find(const struct ksymbols *ksymbols, uint64_t address)
{
	uint32_t at = find_end(ksymbols, address);
	bool is_in = at < ksymbols->nr && ksymbols->symbols[at].start <= address;
	return is_in ? &ksymbols->symbols[at] : NULL;
}

/** As the kernel's list of symbols has it. */
static const char *dso_of(const struct ksymbol_record *record)
{
	if (record->type == PERF_RECORD_KSYMBOL_TYPE_BPF)
		return "[bpf]";
	if (!strncmp(record->name, "ftrace_", strlen("ftrace_")))
		return "[__builtin__ftrace]";
	return !strncmp(record->name, "kprobe_", strlen("kprobe_")) ? "[__builtin__kprobes]"
								    : "[kernel.kallsyms]";
}

/** Forget where removed ones were. */
static void drop_removed(struct ksymbols *ksymbols)
{
	uint32_t nr = 0;
	for (uint32_t i = 0; i < ksymbols->nr; i++) {
		if (ksymbols->symbols[i].name)
			ksymbols->symbols[nr++] = ksymbols->symbols[i];
	}
	ksymbols->nr = nr;
}

/** Make room for one more; false: there are too many, or no memory. */
static bool reserve(struct ksymbols *ksymbols)
{
	if (ksymbols->nr == KSYMBOLS_MAX)
		drop_removed(ksymbols);
	if (ksymbols->nr < ksymbols->capacity)
		return true;
	uint32_t capacity = ksymbols->capacity ? 2 * ksymbols->capacity : 64;
	if (ksymbols->nr == KSYMBOLS_MAX)
		return false;
	struct ksymbol *symbols =
		reallocarray(ksymbols->symbols, capacity, sizeof(*ksymbols->symbols));
	if (!symbols)
		return false;
	ksymbols->symbols = symbols;
	ksymbols->capacity = capacity;
	return true;
}

/** Take out all that @start to @end touches; returns where one from @start belongs. */
static uint32_t clear(struct ksymbols *ksymbols, uint64_t start, uint64_t end)
{
	uint32_t first = find_end(ksymbols, start), last = first;
	for (; last < ksymbols->nr && ksymbols->symbols[last].start < end; last++)
		free(ksymbols->symbols[last].name);
	memmove(&ksymbols->symbols[first], &ksymbols->symbols[last],
		(ksymbols->nr - last) * sizeof(ksymbols->symbols[0]));
	ksymbols->nr -= last - first;
	return first;
}

static void put(struct ksymbols *ksymbols, const struct ksymbol *symbol)
{
	if (!reserve(ksymbols)) {
		free(symbol->name);
		return;
	}
	uint32_t at = clear(ksymbols, symbol->start, symbol->end);
	memmove(&ksymbols->symbols[at + 1], &ksymbols->symbols[at],
		(ksymbols->nr - at) * sizeof(ksymbols->symbols[0]));
	ksymbols->symbols[at] = *symbol;
	ksymbols->nr++;
	if (!ksymbols->high || symbol->start < ksymbols->low)
		ksymbols->low = symbol->start;
	if (symbol->end > ksymbols->high)
		ksymbols->high = symbol->end;
	ksymbols->generation++;
}

void ksymbols_follow(struct ksymbols *ksymbols, const struct perf_event_header *header)
{
	const struct ksymbol_record *record = (const void *)header;
	if (header->type != PERF_RECORD_KSYMBOL || header->size <= sizeof(*record))
		return;
	size_t left = header->size - sizeof(*record);
	uint64_t end = record->address + record->size;
	if (strnlen(record->name, left) == left || end <= record->address)
		return;
	bool is_removed = record->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	struct ksymbol symbol = { record->address, end, NULL, dso_of(record) };
	if (!is_removed)
		symbol.name = strdup(record->name);
	if (is_removed || symbol.name)
		put(ksymbols, &symbol);
}

void ksymbols_deinit(struct ksymbols *ksymbols)
{
	for (uint32_t i = 0; i < ksymbols->nr; i++)
		free(ksymbols->symbols[i].name);
	free(ksymbols->symbols);
	*ksymbols = (struct ksymbols){};
}
