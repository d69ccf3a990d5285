// SPDX-License-Identifier: MIT
/**
 * The table of what regions counted: one slot for each thread and name, in memory that processes can share.
 *
 * A slot has one writer, its thread, and any number of readers. It holds its sums twice: the writer makes the other
 * copy whole and then turns to it, so that a writer which is killed leaves the last whole sums. Only the owner of
 * the table adds up slots of threads that have ended.
 */
#ifndef PERFSCOPE_REGION_TABLE_H
#define PERFSCOPE_REGION_TABLE_H

#include <perfscope/counter.h>
#include <perfscope/region_share.h>
#include <sys/types.h>

/** Environment variable with the name of the table that a program's regions shall write to. */
#define PS_REGION_TABLE_VARIABLE "PERFSCOPE_REGIONS"

// With the NUL; longer names are an error where that can be told, else cut.
#define PS_REGION_NAME_SIZE 64
#define PS_REGION_TABLE_SLOTS 8192

/** What a slot adds up. */
struct ps_region_sums {
	uint64_t calls;
	// An end without a begin; a begin whose thread ended, or whose records were lost.
	uint64_t incomplete;
	uint64_t elapsed_ns; // CLOCK_MONOTONIC
	// The bit of each counter that could not be read in some pass: its sum would be too small.
	uint32_t invalid;
	struct ps_counter_reading
		counted[PS_MAX_COUNTERS]; // of the table's counters; the rest is 0
};

/** One thread's sums of one name. Written by that thread alone. */
struct ps_region_slot;

struct ps_region_table;

/**
 * Make a table for @counters in @share, which is borrowed, where programs find it from now on. NULL: memory of this
 * process, which threads share and a fork leaves to the parent.
 */
struct ps_error *ps_region_table_create(const struct ps_region_share *share,
					const struct ps_counter *counters, size_t nr_counters,
					unsigned int group_flags, struct ps_region_table **ret);

/**
 * Open the table that another process made in the share @name. Errors: there is none, not such a table, another version.
 *
 * Slots that this process wrote before it became another program (exec) are released, with what they had open incomplete.
 */
struct ps_error *ps_region_table_open(const char *name, struct ps_region_table **ret);

/** Unmap what is not borrowed. Takes NULL. */
void ps_region_table_destroy(struct ps_region_table *table);

/** In the child of a fork: no slot is the child's. What its table of memory held stays with the parent alone. */
void ps_region_table_forked(struct ps_region_table *table);

const struct ps_counter *ps_region_table_counters(const struct ps_region_table *table,
						  size_t *ret_nr);
unsigned int ps_region_table_group_flags(const struct ps_region_table *table);

/** Tell the table's owner that counter @index is refused in some thread; the first @reason is kept. */
void ps_region_table_refuse(struct ps_region_table *table, size_t index, const char *reason);
/** Why a counter is refused; NULL: it is not. */
const char *ps_region_table_reason(const struct ps_region_table *table, size_t index);

/** Tell the table's owner that its counters stand in @nr groups of the kernel in some thread; the most are kept. */
void ps_region_table_tell_groups(struct ps_region_table *table, size_t nr);
/** That number: with more than 1 the counters do not fit on the PMU together, and no one moment is theirs. */
size_t ps_region_table_nr_groups(const struct ps_region_table *table);

/** A slot for the calling thread and @name. NULL: the table is full, which the table counts (ps_region_table_nr_missed). */
struct ps_region_slot *ps_region_table_claim(struct ps_region_table *table, const char *name);
/** The thread ends, or does not use the slot any more. What is still open may end in another thread. */
void ps_region_slot_release(struct ps_region_slot *slot);

/** Begin a change: the copy to write, which holds the sums so far. Then ps_region_slot_publish_open. */
struct ps_region_sums *ps_region_slot_edit(struct ps_region_slot *slot);
/** Tell readers that a pass is open (@delta 1) or no longer (-1): one that never ends is incomplete. */
void ps_region_slot_open(struct ps_region_slot *slot, int delta);
/** Publish, and @delta as above, in one step: no reader sees one without the other. */
void ps_region_slot_publish_open(struct ps_region_slot *slot, int delta);

uint64_t ps_region_table_nr_missed(const struct ps_region_table *table);

/** The sums of one name, of one thread or of all. */
struct ps_region_total {
	char name[PS_REGION_NAME_SIZE];
	pid_t pid, tid; // 0 in the sum over threads; namespaces may share a tid: pid of the first
	uint64_t
		open; // passes that have begun and not ended; 0 by thread: one may end in another than it began in
	struct ps_region_sums sums;
};

/**
 * Add up and free the slots of threads that have ended. For the table's owner, now and then: it keeps the table from
 * filling up (a table of memory is swept by itself, when it fills). Of a process that was killed, slots are noticed
 * by its pid, in the owner's pid namespace; the passes it had open become incomplete.
 */
void ps_region_table_sweep(struct ps_region_table *table);

/**
 * The sums so far, one entry a name, or with @by_thread one a name and thread, in the order in which names came up.
 *
 * @at_end: what is open now will never end, and is incomplete. The caller frees *@ret. Threads that ended and
 * were swept are one entry with tid 0. A counter that was enabled and never ran is invalid, and one that is refused also
 * where no pass was completed.
 */
struct ps_error *ps_region_table_read(struct ps_region_table *table, bool by_thread, bool at_end,
				      struct ps_region_total **ret, size_t *ret_nr);

/** Start from zero: what was counted until now is taken off from what is read from now on. */
struct ps_error *ps_region_table_reset(struct ps_region_table *table);

PS_DEFINE_CLEANUP(struct ps_region_table *, ps_region_table, ps_region_table_destroy)
#define _cleanup_region_table_ _cleanup_(ps_region_table_p)

#endif
