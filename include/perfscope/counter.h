// SPDX-License-Identifier: MIT
/**
 * Counters of the calling thread: what is opened, and a group of them that is read in one call.
 *
 * These need nothing but the kernel: no libperf, no tracefs, no privilege for a thread's own user space.
 */
#ifndef PERFSCOPE_COUNTER_H
#define PERFSCOPE_COUNTER_H

#include <perfscope/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The most counters of one set: what the kernel lets one group read return is far above it. */
#define PS_MAX_COUNTERS 16
#define PS_COUNTER_NAME_SIZE 64 // with the NUL

/** Sides that a counter leaves out: bits of ps_counter.exclude. */
enum ps_exclude {
	PS_EXCLUDE_USER = 1 << 0,
	PS_EXCLUDE_KERNEL = 1 << 1,
	PS_EXCLUDE_HV = 1 << 2,
	PS_EXCLUDE_HOST = 1 << 3,
	PS_EXCLUDE_GUEST = 1 << 4,
};

/** One counter, in a layout that processes share. The first members are perf_event_attr's. */
struct ps_counter {
	char name[PS_COUNTER_NAME_SIZE]; // as totals show it
	uint64_t config, config1, config2;
	uint32_t type;
	uint32_t exclude; // enum ps_exclude
};

/** A name that regions know without the rest of perfscope, and what it stands for. */
struct ps_known_counter {
	const char *name;
	uint32_t type;
	uint64_t config;
};

/** The table of them, ended by a NULL name, in the order that users see. */
extern const struct ps_known_counter ps_counter_names[];

/**
 * Turn "Cycles, page-faults,cycles" into counters: case and blanks do not matter, doubles are left out.
 *
 * "branch-instructions", "cpu-cycles", "cs" and "faults" stand for what perf calls so. The sides are all left in.
 * Errors (PS_ERROR_USAGE): an unknown name, with the nearest ones; none; more than PS_MAX_COUNTERS.
 */
struct ps_error *ps_counters_parse(const char *text, struct ps_counter counters[PS_MAX_COUNTERS],
				   size_t *ret_nr);

enum ps_counter_group_flags {
	PS_GROUP_INHERIT = 1 << 0, // threads born later count too
	PS_GROUP_STRICT = 1 << 1,  // a refused counter is an error
};

/** What a counter had counted when it was read. Differences of two reads are what passed in between. */
struct ps_counter_reading {
	uint64_t value;
	uint64_t enabled_ns; // the thread ran, the counter wanted to count
	uint64_t running_ns; // it did; less than enabled: the PMU was shared out
};

/**
 * Counters of the thread that opened them: one group of the kernel where they fit, so that one read() gets all.
 *
 * Of one thread: no other may read it (the kernel would let it, the values would be torn from this thread's position).
 */
struct ps_counter_group;

/**
 * Open @counters on the calling thread and let them count.
 *
 * A counter that is refused has no value and a reason (ps_counter_group_reason); with PS_GROUP_STRICT, and where none is
 * left, it is an error. Counters that do not fit in one group of the PMU are split over several; then no one
 * moment is theirs, and ps_counter_group_nr_parts says how many there are. context-switches and cpu-migrations happen in the
 * kernel: without the kernel they would always read 0, so they are opened with it, or refused. Of the clocks
 * the kernel is never left out, whoever asks: a user without privilege may have them as they are.
 */
struct ps_error *ps_counter_group_open(const struct ps_counter *counters, size_t nr,
				       unsigned int flags, struct ps_counter_group **ret);
void ps_counter_group_close(struct ps_counter_group *group);

/**
 * Read all into @ret, of the number given to open. False: not one could be read. Allocates nothing, takes no lock.
 *
 * What is refused or could not be read is 0 in all three. A counter that wanted to count and never ran (enabled_ns
 * without running_ns) has no value either.
 */
bool ps_counter_group_read(struct ps_counter_group *group, struct ps_counter_reading *ret);

/** The same, telling which: the bits of counters that could not be read. */
uint32_t ps_counter_group_read_bits(struct ps_counter_group *group, struct ps_counter_reading *ret);

/** Why counter @index has no value, in words; NULL: it has. Stays the group's. */
const char *ps_counter_group_reason(const struct ps_counter_group *group, size_t index);

/** Its descriptor; -1: refused. Stays the group's. */
int ps_counter_group_fd(const struct ps_counter_group *group, size_t index);

/** Into how many groups of the kernel the @nr counters @indexes are split; those that are refused are in none. */
size_t ps_counter_group_nr_parts(const struct ps_counter_group *group, const uint8_t *indexes,
				 size_t nr);

/** Whether the last look needed no system call: every counter is on the hardware, and the kernel allows it (rdpmc, PMCCNTR). */
bool ps_counter_group_is_direct(const struct ps_counter_group *group);

PS_DEFINE_CLEANUP(struct ps_counter_group *, ps_counter_group, ps_counter_group_close)
#define _cleanup_counter_group_ _cleanup_(ps_counter_group_p)

#endif
