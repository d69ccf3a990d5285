// SPDX-License-Identifier: MIT
/**
 * The bytes of a table of regions, as processes share them: a head, then slots.
 */
#ifndef PERFSCOPE_COUNT_TABLE_H
#define PERFSCOPE_COUNT_TABLE_H

#include "name_index.h"
#include <perfscope/region_share.h>
#include <perfscope/region_table.h>
#include <pthread.h>
#include <stdatomic.h>

#define TABLE_MAGIC 0x32656c6261747370ULL // "pstable2": another layout is another number
#define REASON_SIZE 256

enum reason_state {
	REASON_NONE,
	REASON_BEING_WRITTEN,
	REASON_READY,
};

struct table_reason {
	_Atomic uint32_t state; // enum reason_state
	char text[REASON_SIZE];
};

struct table_head {
	uint64_t magic, token; // token: of the memory, ps_region_share
	uint32_t head_size, slot_size, nr_slots;
	uint32_t nr_counters, group_flags;
	_Atomic uint32_t next;	     // where the search for a free slot begins
	_Atomic uint32_t nr_touched; // no slot from here on was ever claimed
	_Atomic uint32_t nr_groups;  // see ps_region_table_nr_groups
	_Atomic uint64_t nr_missed;
	struct ps_counter counters[PS_MAX_COUNTERS];
	struct table_reason reasons[PS_MAX_COUNTERS];
};

// Of ps_region_slot.owner: who writes, pid << 32 | tid; 0: the slot is free.
#define OWNER_IS_GONE (1ULL << 63)

struct ps_region_slot {
	_Atomic uint64_t owner;
	// Which copy of the sums is whole (its sequence, a bit of it) and how many passes are open, in one word: both
	// change at once, also for who is killed in between.
	_Atomic uint64_t state;
	_Atomic uint32_t is_ready; // all below is there
	uint32_t nr_counters;
	uint32_t pid_namespace;
	uint64_t exec_id; // of the program, which exec replaces under the same pid
	char name[PS_REGION_NAME_SIZE];
	struct ps_region_sums sums[2];
} __attribute__((aligned(64)));

#define HEAD_SIZE ((sizeof(struct table_head) + 4095) / 4096 * 4096)
#define TABLE_SIZE (HEAD_SIZE + PS_REGION_TABLE_SLOTS * sizeof(struct ps_region_slot))

#define STATE_SEQUENCE (1ULL << 32)

static inline uint32_t state_sequence(uint64_t state)
{
	return state >> 32;
}

static inline int32_t state_open(uint64_t state)
{
	return (int32_t)(uint32_t)state;
}

static inline pid_t owner_pid(uint64_t owner)
{
	return (owner & ~OWNER_IS_GONE) >> 32;
}

static inline pid_t owner_tid(uint64_t owner)
{
	return (pid_t)(uint32_t)owner;
}

/** What the owner adds up of slots that it freed, one entry a name, in the order of names. */
struct past {
	char name[PS_REGION_NAME_SIZE];
	struct ps_region_sums sums;
	int64_t open; // begun in a thread that ended, and may end in another
};

struct ps_region_table {
	struct table_head *head; // others write to it too: nothing in it bounds what we do
	struct ps_counter counters[PS_MAX_COUNTERS];
	uint32_t nr_counters, group_flags;
	struct ps_region_slot *slots;
	struct ps_region_share share; // of one that was opened
	bool is_shared;		      // with other processes; else memory of this one
	pid_t creator;		      // 0: opened
	pid_t pid;		      // of this process, and what it is
	uint32_t pid_namespace;
	uint64_t exec_id;
	pthread_mutex_t lock; // of what follows
	struct past *past;
	size_t nr_past;
	struct name_index past_index;
	struct ps_region_sums *
		*bases;		     // of each slot, what ps_region_table_reset takes off; or NULL
	_Atomic uint32_t soft_limit; // a table of memory is swept before it grows over it
};

/** Whether this process adds up what other threads leave. */
static inline bool table_is_owned(const struct ps_region_table *table)
{
	return table->creator == table->pid;
}

/** Free the slots of what has ended, with table->lock held. No memory: they stay. */
void table_sweep_locked(struct ps_region_table *table);

void sums_add(struct ps_region_sums *sums, const struct ps_region_sums *other);

/** A whole copy of what slot @index holds since the last reset; returns its open passes. */
int64_t slot_read_since_reset(const struct ps_region_table *table, uint32_t index,
			      struct ps_region_sums *ret);

#endif
