// SPDX-License-Identifier: MIT
#include "table.h"

#include <string.h>

/** Totals as they are put together. */
struct totals {
	struct ps_region_total *items;
	int64_t *open;
	size_t nr, nr_allocated;
	struct name_index index;
};

static bool totals_grow(struct totals *totals)
{
	size_t nr = 2 * totals->nr_allocated + 16;
	struct ps_region_total *items = reallocarray(totals->items, nr, sizeof(*items));
	if (items)
		totals->items = items;
	int64_t *open = reallocarray(totals->open, nr, sizeof(*open));
	if (open)
		totals->open = open;
	if (!items || !open)
		return false;
	totals->nr_allocated = nr;
	return true;
}

/** The entry of @name and thread, made where it is new; -1: no memory. Of another pid namespace @tid may come with any @pid. */
static ssize_t totals_find(struct totals *totals, const char *name, pid_t pid, pid_t tid)
{
	uint32_t hash = name_hash(name, tid);
	size_t cursor = 0, place;
	while (name_index_next(&totals->index, hash, &cursor, &place)) {
		const struct ps_region_total *item = &totals->items[place];
		if (item->tid == tid && !strcmp(item->name, name))
			return place;
	}
	if (totals->nr == totals->nr_allocated && !totals_grow(totals))
		return -1;
	if (!name_index_add(&totals->index, hash, totals->nr))
		return -1;
	struct ps_region_total *item = &totals->items[totals->nr];
	*item = (struct ps_region_total){ .pid = pid, .tid = tid };
	memcpy(item->name, name, sizeof(item->name));
	totals->open[totals->nr] = 0;
	return totals->nr++;
}

static bool totals_add(struct totals *totals, const char *name, uint64_t owner,
		       const struct ps_region_sums *sums, int64_t open)
{
	ssize_t index = totals_find(totals, name, owner_pid(owner), owner_tid(owner));
	if (index < 0)
		return false;
	sums_add(&totals->items[index].sums, sums);
	totals->open[index] += open;
	return true;
}

static bool add_slot(struct totals *totals, const struct ps_region_table *table, uint32_t index,
		     bool by_thread)
{
	const struct ps_region_slot *slot = &table->slots[index];
	uint64_t owner = atomic_load(&slot->owner);
	if (!owner || !atomic_load(&slot->is_ready))
		return true;
	struct ps_region_sums sums;
	int64_t open = slot_read_since_reset(table, index, &sums);
	char name[PS_REGION_NAME_SIZE] = "";
	memcpy(name, slot->name, sizeof(name) - 1);
	return totals_add(totals, name, by_thread ? owner : 0, &sums, open);
}

static bool add_all(struct totals *totals, const struct ps_region_table *table, bool by_thread)
{
	for (size_t i = 0; i < table->nr_past; i++) {
		const struct past *past = &table->past[i];
		if (!totals_add(totals, past->name, 0, &past->sums, past->open))
			return false;
	}
	uint32_t nr_touched = atomic_load(&table->head->nr_touched);
	for (uint32_t i = 0; i < nr_touched && i < PS_REGION_TABLE_SLOTS; i++) {
		if (!add_slot(totals, table, i, by_thread))
			return false;
	}
	return true;
}

/** The bit of each counter that some thread was refused. */
static uint32_t refused_counters(const struct ps_region_table *table)
{
	size_t nr;
	ps_region_table_counters(table, &nr);
	uint32_t refused = 0;
	for (size_t i = 0; i < nr; i++)
		refused |= ps_region_table_reason(table, i) ? 1U << i : 0;
	return refused;
}

/** Mark what never ran, and leave out what has nothing. */
static void totals_finish(struct totals *totals, uint32_t refused, bool by_thread, bool at_end)
{
	size_t nr = 0;
	for (size_t i = 0; i < totals->nr; i++) {
		struct ps_region_total total = totals->items[i];
		uint64_t open = totals->open[i] > 0 ? totals->open[i] : 0;
		if (at_end)
			total.sums.incomplete += open;
		else if (!by_thread)
			total.open = open;
		// Without a pass that could have failed to read them.
		if (!total.sums.calls)
			total.sums.invalid |= refused;
		for (size_t c = 0; c < PS_MAX_COUNTERS; c++) {
			const struct ps_counter_reading *counted = &total.sums.counted[c];
			if (counted->enabled_ns && !counted->running_ns)
				total.sums.invalid |= 1U << c;
		}
		if (total.sums.calls || total.sums.incomplete || total.open)
			totals->items[nr++] = total;
	}
	totals->nr = nr;
}

struct ps_error *ps_region_table_read(struct ps_region_table *table, bool by_thread, bool at_end,
				      struct ps_region_total **ret, size_t *ret_nr)
{
	struct totals totals = { 0 };
	pthread_mutex_lock(&table->lock);
	if (table_is_owned(table))
		table_sweep_locked(table);
	bool is_complete = add_all(&totals, table, by_thread);
	pthread_mutex_unlock(&table->lock);
	if (is_complete)
		totals_finish(&totals, refused_counters(table), by_thread, at_end);
	free(totals.open);
	free(totals.index.places);
	if (!is_complete) {
		free(totals.items);
		return &ps_enomem;
	}
	*ret = totals.items;
	*ret_nr = totals.nr;
	return NULL;
}
