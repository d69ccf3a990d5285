// SPDX-License-Identifier: MIT
#include "table.h"

#include <string.h>
#include <sys/syscall.h>

/** Make slot @index ours if it is free. */
static bool take_slot(struct ps_region_table *table, uint32_t index, uint64_t owner)
{
	uint64_t free_owner = 0;
	if (atomic_load_explicit(&table->slots[index].owner, memory_order_relaxed) ||
	    !atomic_compare_exchange_strong(&table->slots[index].owner, &free_owner, owner))
		return false;
	uint32_t touched = atomic_load(&table->head->nr_touched);
	while (touched <= index &&
	       !atomic_compare_exchange_weak(&table->head->nr_touched, &touched, index + 1))
		;
	atomic_store(&table->head->next, index + 1);
	return true;
}

static struct ps_region_slot *find_free(struct ps_region_table *table, uint64_t owner)
{
	uint32_t start = atomic_load(&table->head->next);
	for (uint32_t i = 0; i < PS_REGION_TABLE_SLOTS; i++) {
		uint32_t index = (start + i) % PS_REGION_TABLE_SLOTS;
		if (take_slot(table, index, owner))
			return &table->slots[index];
	}
	return NULL;
}

/** A table of memory has no one who sweeps it now and then. */
static void sweep_if_grown(struct ps_region_table *table)
{
	if (table->is_shared || atomic_load(&table->head->next) < table->soft_limit)
		return;
	pthread_mutex_lock(&table->lock);
	if (atomic_load(&table->head->next) >= table->soft_limit)
		table_sweep_locked(table);
	pthread_mutex_unlock(&table->lock);
}

struct ps_region_slot *ps_region_table_claim(struct ps_region_table *table, const char *name)
{
	sweep_if_grown(table);
	uint64_t owner = (uint64_t)table->pid << 32 | (uint32_t)syscall(SYS_gettid);
	struct ps_region_slot *slot = find_free(table, owner);
	if (!slot) {
		atomic_fetch_add(&table->head->nr_missed, 1);
		return NULL;
	}
	slot->nr_counters = table->nr_counters;
	slot->pid_namespace = table->pid_namespace;
	slot->exec_id = table->exec_id;
	memcpy(slot->name, name, strnlen(name, PS_REGION_NAME_SIZE - 1)); // the rest is 0
	atomic_store(&slot->is_ready, 1);
	return slot;
}

void ps_region_slot_release(struct ps_region_slot *slot)
{
	atomic_fetch_or(&slot->owner, OWNER_IS_GONE);
}

struct ps_region_sums *ps_region_slot_edit(struct ps_region_slot *slot)
{
	uint64_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
	unsigned int whole = state_sequence(state) & 1;
	uint32_t nr = slot->nr_counters; // others can write to the slot too
	nr = nr < PS_MAX_COUNTERS ? nr : PS_MAX_COUNTERS;
	memcpy(&slot->sums[!whole], &slot->sums[whole],
	       offsetof(struct ps_region_sums, counted) + nr * sizeof(struct ps_counter_reading));
	return &slot->sums[!whole];
}

void ps_region_slot_publish_open(struct ps_region_slot *slot, int delta)
{
	uint64_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
	uint64_t sequence = (state & ~(STATE_SEQUENCE - 1)) + STATE_SEQUENCE;
	uint32_t open = (uint32_t)state + (uint32_t)delta;
	atomic_store_explicit(&slot->state, sequence | open, memory_order_release);
	// The next edit writes to the copy that readers may still read: they must see the new state first.
	atomic_thread_fence(memory_order_release);
}

void ps_region_slot_open(struct ps_region_slot *slot, int delta)
{
	uint64_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
	uint32_t open = (uint32_t)state + (uint32_t)delta;
	atomic_store_explicit(&slot->state, (state & ~(STATE_SEQUENCE - 1)) | open,
			      memory_order_relaxed);
}
