// SPDX-License-Identifier: MIT
#include "table.h"

#include <errno.h>
#include <perfscope/leftover.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

/** A number that each exec draws anew, and that processes of one program share only after fork. */
static uint64_t read_exec_id(void)
{
	uint64_t id = 0;
	const void *random = (const void *)getauxval(AT_RANDOM);
	if (random)
		memcpy(&id, random, sizeof(id));
	return id;
}

static struct ps_region_table *table_new(void)
{
	struct ps_region_table *table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	pthread_mutex_init(&table->lock, NULL);
	table->pid = getpid();
	table->pid_namespace = ps_leftover_namespace();
	table->exec_id = read_exec_id();
	table->soft_limit = 256;
	return table;
}

static void use_memory(struct ps_region_table *table, void *memory)
{
	table->head = memory;
	table->slots = (struct ps_region_slot *)((char *)memory + HEAD_SIZE);
}

static struct ps_error *use_own_memory(struct ps_region_table *table)
{
	void *memory = mmap(NULL, TABLE_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return ps_error_os(errno, "map the table of regions");
	use_memory(table, memory);
	return NULL;
}

/** Keep what the head says, from where no other process can change it. */
static void keep_head(struct ps_region_table *table)
{
	const struct table_head *head = table->head;
	memcpy(table->counters, head->counters, sizeof(table->counters));
	for (size_t i = 0; i < PS_MAX_COUNTERS; i++)
		table->counters[i].name[PS_COUNTER_NAME_SIZE - 1] = '\0';
	uint32_t nr = head->nr_counters;
	table->nr_counters = nr < PS_MAX_COUNTERS ? nr : PS_MAX_COUNTERS;
	table->group_flags = head->group_flags;
}

static void fill_head(struct table_head *head, const struct ps_counter *counters, size_t nr,
		      unsigned int group_flags)
{
	head->head_size = sizeof(*head);
	head->slot_size = sizeof(struct ps_region_slot);
	head->nr_slots = PS_REGION_TABLE_SLOTS;
	head->nr_counters = nr;
	head->group_flags = group_flags;
	memcpy(head->counters, counters, nr * sizeof(*counters));
	head->magic = TABLE_MAGIC;
}

struct ps_error *ps_region_table_create(const struct ps_region_share *share,
					const struct ps_counter *counters, size_t nr_counters,
					unsigned int group_flags, struct ps_region_table **ret)
{
	if (nr_counters > PS_MAX_COUNTERS)
		return ps_error_format(PS_ERROR_USAGE, "more than %d counters", PS_MAX_COUNTERS);
	_cleanup_region_table_ struct ps_region_table *table = table_new();
	if (!table)
		return &ps_enomem;
	table->creator = table->pid;
	table->is_shared = share != NULL;
	struct ps_error *error = NULL;
	if (share)
		use_memory(table, share->memory);
	else
		error = use_own_memory(table);
	if (error)
		return error;
	table->head->token = share ? share->token : 0;
	fill_head(table->head, counters, nr_counters, group_flags);
	keep_head(table);
	*ret = take_ptr(table);
	return NULL;
}

static bool is_our_layout(const struct table_head *head)
{
	return head->magic == TABLE_MAGIC && head->head_size == sizeof(*head) &&
	       head->slot_size == sizeof(struct ps_region_slot) &&
	       head->nr_slots == PS_REGION_TABLE_SLOTS && head->nr_counters <= PS_MAX_COUNTERS;
}

/** Release what this process wrote as the program that it was before exec. */
static void release_former(struct ps_region_table *table)
{
	uint32_t nr = atomic_load(&table->head->nr_touched);
	for (uint32_t i = 0; i < nr && i < PS_REGION_TABLE_SLOTS; i++) {
		struct ps_region_slot *slot = &table->slots[i];
		uint64_t owner = atomic_load(&slot->owner);
		if (!owner || owner & OWNER_IS_GONE || owner_pid(owner) != table->pid ||
		    !atomic_load(&slot->is_ready) || slot->exec_id == table->exec_id ||
		    slot->pid_namespace != table->pid_namespace)
			continue;
		int open = state_open(atomic_load(&slot->state));
		ps_region_slot_edit(slot)->incomplete += open > 0 ? open : 0;
		ps_region_slot_publish_open(slot, -open);
		ps_region_slot_release(slot);
	}
}

struct ps_error *ps_region_table_open(const char *name, struct ps_region_table **ret)
{
	_cleanup_region_table_ struct ps_region_table *table = table_new();
	if (!table)
		return &ps_enomem;
	table->is_shared = true;
	struct ps_error *error = ps_region_share_open(name, &table->share);
	if (error)
		return error;
	use_memory(table, table->share.memory);
	if (!is_our_layout(table->head) || table->head->token != table->share.token)
		return ps_error_format(PS_ERROR_BAD_DATA,
				       "%s: not a table of regions of this version", name);
	keep_head(table);
	release_former(table);
	*ret = take_ptr(table);
	return NULL;
}

void ps_region_table_destroy(struct ps_region_table *table)
{
	if (!table)
		return;
	ps_region_share_close(&table->share);
	if (table->head && !table->is_shared)
		munmap(table->head, TABLE_SIZE);
	for (size_t i = 0; table->bases && i < PS_REGION_TABLE_SLOTS; i++)
		free(table->bases[i]);
	free(table->bases);
	free(table->past);
	free(table->past_index.places);
	pthread_mutex_destroy(&table->lock);
	free(table);
}

void ps_region_table_forked(struct ps_region_table *table)
{
	// Another thread of the parent may have held the lock and been at work on what it guards: leave that alone.
	pthread_mutex_init(&table->lock, NULL);
	table->past = NULL;
	table->nr_past = 0;
	table->past_index = (struct name_index){ 0 };
	table->bases = NULL;
	table->soft_limit = 256;
	table->pid = getpid();
	// The parent may have taken another one for its children (unshare).
	table->pid_namespace = ps_leftover_namespace();
	if (table->is_shared)
		return;
	table->creator = table->pid;
	madvise(table->slots, TABLE_SIZE - HEAD_SIZE, MADV_DONTNEED); // which makes it zeros
	atomic_store(&table->head->next, 0);
	atomic_store(&table->head->nr_touched, 0);
	atomic_store(&table->head->nr_missed, 0);
}

const struct ps_counter *ps_region_table_counters(const struct ps_region_table *table,
						  size_t *ret_nr)
{
	*ret_nr = table->nr_counters;
	return table->counters;
}

unsigned int ps_region_table_group_flags(const struct ps_region_table *table)
{
	return table->group_flags;
}

void ps_region_table_refuse(struct ps_region_table *table, size_t index, const char *reason)
{
	struct table_reason *kept = &table->head->reasons[index];
	uint32_t state = REASON_NONE;
	if (!atomic_compare_exchange_strong(&kept->state, &state, REASON_BEING_WRITTEN))
		return;
	snprintf(kept->text, sizeof(kept->text), "%s", reason);
	atomic_store(&kept->state, REASON_READY);
}

const char *ps_region_table_reason(const struct ps_region_table *table, size_t index)
{
	struct table_reason *kept = &table->head->reasons[index];
	if (atomic_load(&kept->state) != REASON_READY)
		return NULL;
	kept->text[REASON_SIZE - 1] = '\0';
	return kept->text;
}

void ps_region_table_tell_groups(struct ps_region_table *table, size_t nr)
{
	uint32_t most = atomic_load(&table->head->nr_groups);
	while (most < nr &&
	       !atomic_compare_exchange_weak(&table->head->nr_groups, &most, (uint32_t)nr))
		;
}

size_t ps_region_table_nr_groups(const struct ps_region_table *table)
{
	return atomic_load(&table->head->nr_groups);
}

uint64_t ps_region_table_nr_missed(const struct ps_region_table *table)
{
	return atomic_load(&table->head->nr_missed);
}
