// SPDX-License-Identifier: MIT
/**
 * The processes whose maps are known, the ended ones up to a bound.
 */
#ifndef PERFSCOPE_SYMBOL_PROCESS_H
#define PERFSCOPE_SYMBOL_PROCESS_H

#include "map_set.h"

#define PROCESS_BUCKETS 4096

struct process {
	pid_t pid;
	bool is_dead;
	struct map_set *set;	// NULL: empty
	struct map_set *before; // of before the exec, until what came after it is seen to run
	uint64_t id;		// of this process since its exec
	pid_t parent_pid;	// 0: not known
	uint64_t
		forked_from; // the id of the parent then, 0: it has called exec since, or not known
	bool is_parent_read; // from /proc
	uint64_t since_ns;   // of the record that it starts with, 0: /proc
	uint64_t snapshot_ms;	       // when /proc was last read for it, 0: never
	struct process *next;	       // in its bucket
	struct process *newer, *older; // of the dead
};

struct ps_maps {
	struct map_files files;
	struct process *buckets[PROCESS_BUCKETS];
	struct process *last; // found
	struct process *oldest_dead, *newest_dead;
	uint32_t nr_live, nr_dead;
	uint32_t sweep_at; // look for processes whose EXIT was lost when so many seem to live
	uint64_t last_generation, last_process_id;
	bool believes_build_ids; // of records
};

struct process *process_find(struct ps_maps *maps, pid_t pid);
/** The same, without remembering that it was asked for. */
struct process *process_look(const struct ps_maps *maps, pid_t pid);
/** An empty, living one for @pid, which has none; NULL: no memory. */
struct process *process_add(struct ps_maps *maps, pid_t pid);
/** Start anew with @set, whose reference is taken over. */
void process_reset(struct ps_maps *maps, struct process *process, struct map_set *set,
		   uint64_t time_ns);
/** Start anew by an exec: the caller of the exec is still looked up in what was there before. */
void process_exec(struct ps_maps *maps, struct process *process, uint64_t time_ns);
/** Let go what was there before the exec. */
void process_forget_before(struct ps_maps *maps, struct process *process);
/** Keep @process for late readers; the oldest of the dead may go, and that is not @process. */
void process_bury(struct ps_maps *maps, struct process *process);
/** Take @process back among the living. */
void process_revive(struct ps_maps *maps, struct process *process);
/** Map what is at @path and like @file; @is_below: where nothing is mapped yet. */
void process_map(struct ps_maps *maps, struct process *process, const struct ps_map *map,
		 const struct ps_file *file, bool is_below);
void processes_destroy(struct ps_maps *maps);

/** Add what /proc/PID/maps says to @process, below what is known. False: it cannot be read. */
bool proc_maps_read(struct ps_maps *maps, struct process *process);

/** The parent of @pid as /proc has it, and whether it was forked from that, no exec since. 0: not known. */
pid_t proc_parent(pid_t pid, bool *ret_is_fork);

#endif
