// SPDX-License-Identifier: MIT
#include "table.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define SKIP_8 " %*s %*s %*s %*s %*s %*s %*s %*s"

// The writer may be at work: it never waits for us, so we look again.
static int64_t slot_read(const struct ps_region_slot *slot, struct ps_region_sums *ret)
{
	for (;;) {
		uint64_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
		memcpy(ret, &slot->sums[state_sequence(state) & 1], sizeof(*ret));
		atomic_thread_fence(memory_order_acquire);
		uint64_t again = atomic_load_explicit(&slot->state, memory_order_relaxed);
		if (state_sequence(again) == state_sequence(state))
			return state_open(again);
	}
}

void sums_add(struct ps_region_sums *sums, const struct ps_region_sums *other)
{
	sums->calls += other->calls;
	sums->incomplete += other->incomplete;
	sums->elapsed_ns += other->elapsed_ns;
	sums->invalid |= other->invalid;
	for (size_t i = 0; i < PS_MAX_COUNTERS; i++) {
		sums->counted[i].value += other->counted[i].value;
		sums->counted[i].enabled_ns += other->counted[i].enabled_ns;
		sums->counted[i].running_ns += other->counted[i].running_ns;
	}
}

static void take_off(struct ps_region_sums *sums, const struct ps_region_sums *base)
{
	sums->calls -= base->calls;
	sums->incomplete -= base->incomplete;
	sums->elapsed_ns -= base->elapsed_ns;
	for (size_t i = 0; i < PS_MAX_COUNTERS; i++) {
		sums->counted[i].value -= base->counted[i].value;
		sums->counted[i].enabled_ns -= base->counted[i].enabled_ns;
		sums->counted[i].running_ns -= base->counted[i].running_ns;
	}
}

int64_t slot_read_since_reset(const struct ps_region_table *table, uint32_t index,
			      struct ps_region_sums *ret)
{
	int64_t open = slot_read(&table->slots[index], ret);
	if (table->bases && table->bases[index])
		take_off(ret, table->bases[index]);
	return open;
}

static struct past *add_past(struct ps_region_table *table, const char *name, uint32_t hash)
{
	// Room for as many as the next power of two.
	size_t nr = table->nr_past;
	if (!(nr & (nr - 1))) {
		struct past *grown =
			reallocarray(table->past, nr ? 2 * nr : 1, sizeof(*table->past));
		if (!grown)
			return NULL;
		table->past = grown;
	}
	if (!name_index_add(&table->past_index, hash, nr))
		return NULL;
	struct past *past = &table->past[table->nr_past++];
	*past = (struct past){ 0 };
	memcpy(past->name, name, PS_REGION_NAME_SIZE - 1);
	return past;
}

/** The entry of @name, made where it is new; NULL: no memory. */
static struct past *find_past(struct ps_region_table *table, const char *name)
{
	uint32_t hash = name_hash(name, 0);
	size_t cursor = 0, place;
	while (name_index_next(&table->past_index, hash, &cursor, &place)) {
		if (!strncmp(table->past[place].name, name, PS_REGION_NAME_SIZE - 1))
			return &table->past[place];
	}
	return add_past(table, name, hash);
}

/** Whether @pid has ended and waits to be waited for. Where its first thread alone has ended, it is only called a zombie. */
static bool is_zombie(pid_t pid)
{
	char path[32], text[512], state;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[size] = '\0';
	const char *name_end = strrchr(text, ')'); // the name may hold brackets too
	long nr_threads;
	return name_end &&
	       sscanf(name_end, ") %c" SKIP_8 SKIP_8 " %ld", &state, &nr_threads) == 2 &&
	       (state == 'Z' || state == 'X') && nr_threads <= 1;
}

/** The process that was last looked at in a sweep: slots of one often stand together. */
struct looked_at {
	pid_t pid;
	bool is_dead;
};

/** Whether the process @pid that writes @slot has ended. */
static bool is_dead(const struct ps_region_table *table, const struct ps_region_slot *slot,
		    pid_t pid, struct looked_at *last)
{
	if (pid == table->pid || slot->pid_namespace != table->pid_namespace)
		return false;
	if (pid != last->pid) {
		last->is_dead = (kill(pid, 0) && errno == ESRCH) || is_zombie(pid);
		last->pid = pid;
	}
	return last->is_dead;
}

static void free_slot(struct ps_region_table *table, uint32_t index)
{
	struct ps_region_slot *slot = &table->slots[index];
	if (table->bases) {
		free(table->bases[index]);
		table->bases[index] = NULL;
	}
	atomic_store(&slot->is_ready, 0);
	memset(slot->name, 0, sizeof(slot->name));
	memset(slot->sums, 0, sizeof(slot->sums));
	atomic_store(&slot->state, 0);
	atomic_store(&slot->owner, 0);
}

static void absorb(struct ps_region_table *table, uint32_t index, struct past *past, bool is_killed)
{
	struct ps_region_sums sums;
	int64_t open = slot_read_since_reset(table, index, &sums);
	sums_add(&past->sums, &sums);
	if (is_killed)
		past->sums.incomplete += open;
	else
		past->open += open;
	free_slot(table, index);
}

static void sweep_slot(struct ps_region_table *table, uint32_t index, struct looked_at *last)
{
	struct ps_region_slot *slot = &table->slots[index];
	uint64_t owner = atomic_load(&slot->owner);
	if (!owner || !atomic_load(&slot->is_ready))
		return;
	// Also of those that stay: names keep the order in which they came up.
	struct past *past = find_past(table, slot->name);
	if (!past)
		return;
	bool is_gone = owner & OWNER_IS_GONE;
	if (is_gone || is_dead(table, slot, owner_pid(owner), last))
		absorb(table, index, past, !is_gone);
}

void table_sweep_locked(struct ps_region_table *table)
{
	uint32_t nr_touched = atomic_load(&table->head->nr_touched), nr_live = 0;
	struct looked_at last = { 0 };
	for (uint32_t i = 0; i < nr_touched && i < PS_REGION_TABLE_SLOTS; i++) {
		sweep_slot(table, i, &last);
		nr_live += atomic_load(&table->slots[i].owner) != 0;
	}
	table->soft_limit = 2 * nr_live < 256 ? 256 : 2 * nr_live;
	atomic_store(&table->head->next, 0);
}

void ps_region_table_sweep(struct ps_region_table *table)
{
	if (!table_is_owned(table))
		return;
	pthread_mutex_lock(&table->lock);
	table_sweep_locked(table);
	pthread_mutex_unlock(&table->lock);
}

static struct ps_error *set_base(struct ps_region_table *table, uint32_t index)
{
	const struct ps_region_slot *slot = &table->slots[index];
	if (!atomic_load(&slot->owner) || !atomic_load(&slot->is_ready))
		return NULL;
	struct ps_region_sums **base = &table->bases[index];
	if (!*base && !(*base = malloc(sizeof(**base))))
		return &ps_enomem;
	slot_read(slot, *base);
	return NULL;
}

static struct ps_error *reset_locked(struct ps_region_table *table)
{
	if (table_is_owned(table))
		table_sweep_locked(table);
	if (!table->bases && !(table->bases = calloc(PS_REGION_TABLE_SLOTS, sizeof(*table->bases))))
		return &ps_enomem;
	struct ps_error *error = NULL;
	uint32_t nr_touched = atomic_load(&table->head->nr_touched);
	for (uint32_t i = 0; !error && i < nr_touched && i < PS_REGION_TABLE_SLOTS; i++)
		error = set_base(table, i);
	for (size_t i = 0; i < table->nr_past; i++)
		table->past[i].sums = (struct ps_region_sums){ 0 };
	return error;
}

struct ps_error *ps_region_table_reset(struct ps_region_table *table)
{
	pthread_mutex_lock(&table->lock);
	struct ps_error *error = reset_locked(table);
	pthread_mutex_unlock(&table->lock);
	return error;
}
