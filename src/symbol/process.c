// SPDX-License-Identifier: MIT
#include "process.h"

#include <errno.h>

static struct process **bucket_of(struct ps_maps *maps, pid_t pid)
{
	// Ids are handed out in sequence: neighbours go to neighbours.
	return &maps->buckets[(uint32_t)pid % PROCESS_BUCKETS];
}

struct process *process_look(const struct ps_maps *maps, pid_t pid)
{
	struct process *process = maps->buckets[(uint32_t)pid % PROCESS_BUCKETS];
	while (process && process->pid != pid)
		process = process->next;
	return process;
}

struct process *process_find(struct ps_maps *maps, pid_t pid)
{
	if (PS_LIKELY(maps->last && maps->last->pid == pid))
		return maps->last;
	struct process *process = process_look(maps, pid);
	if (process)
		maps->last = process;
	return process;
}

void process_forget_before(struct ps_maps *maps, struct process *process)
{
	map_set_put(process->before, &maps->files);
	process->before = NULL;
}

static void process_remove(struct ps_maps *maps, struct process *process)
{
	process_revive(maps, process);
	maps->nr_live--;
	struct process **link = bucket_of(maps, process->pid);
	while (*link != process)
		link = &(*link)->next;
	*link = process->next;
	if (maps->last == process)
		maps->last = NULL;
	map_set_put(process->set, &maps->files);
	process_forget_before(maps, process);
	free(process);
}

void process_revive(struct ps_maps *maps, struct process *process)
{
	if (!process->is_dead)
		return;
	*(process->older ? &process->older->newer : &maps->oldest_dead) = process->newer;
	*(process->newer ? &process->newer->older : &maps->newest_dead) = process->older;
	process->older = process->newer = NULL;
	process->is_dead = false;
	maps->nr_dead--;
	maps->nr_live++;
}

void process_bury(struct ps_maps *maps, struct process *process)
{
	if (process->is_dead)
		return;
	process->is_dead = true;
	process->older = maps->newest_dead;
	*(maps->newest_dead ? &maps->newest_dead->newer : &maps->oldest_dead) = process;
	maps->newest_dead = process;
	maps->nr_live--;
	if (++maps->nr_dead > PS_MAPS_MAX_DEAD)
		process_remove(maps, maps->oldest_dead);
}

/** Bury those that are gone though no record told: records can be lost. */
static void processes_sweep(struct ps_maps *maps)
{
	for (uint32_t i = 0; i < PROCESS_BUCKETS; i++) {
		for (struct process *process = maps->buckets[i], *next; process; process = next) {
			next = process->next;
			char path[32];
			snprintf(path, sizeof(path), "/proc/%d", process->pid);
			// Burying may remove another one, the oldest of the dead: begin the bucket anew.
			if (!process->is_dead && access(path, F_OK) && errno == ENOENT) {
				process_bury(maps, process);
				next = maps->buckets[i];
			}
		}
	}
	maps->sweep_at = 2 * maps->nr_live + PS_MAPS_MAX_DEAD;
}

struct process *process_add(struct ps_maps *maps, pid_t pid)
{
	if (maps->nr_live >= maps->sweep_at)
		processes_sweep(maps);
	struct process *process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	struct process **bucket = bucket_of(maps, pid);
	process->pid = pid;
	process->id = ++maps->last_process_id;
	process->next = *bucket;
	*bucket = process;
	maps->nr_live++;
	return process;
}

void process_reset(struct ps_maps *maps, struct process *process, struct map_set *set,
		   uint64_t time_ns)
{
	map_set_put(process->set, &maps->files);
	process_forget_before(maps, process);
	process->set = set;
	process->id = ++maps->last_process_id;
	process->forked_from = 0;
	process->is_parent_read = false;
	process->since_ns = time_ns;
	process->snapshot_ms = 0;
}

void process_exec(struct ps_maps *maps, struct process *process, uint64_t time_ns)
{
	struct map_set *before = map_set_share(process->set);
	process_reset(maps, process, NULL, time_ns);
	process->before = before;
}

void process_map(struct ps_maps *maps, struct process *process, const struct ps_map *map,
		 const struct ps_file *file, bool is_below)
{
	struct ps_map with_file = *map;
	with_file.file = map_files_get(&maps->files, file);
	if (!with_file.file)
		return;
	if (map_set_insert(&process->set, &maps->files, &with_file, is_below))
		process->set->generation = ++maps->last_generation;
	map_files_put(&maps->files, with_file.file);
}

void processes_destroy(struct ps_maps *maps)
{
	for (uint32_t i = 0; i < PROCESS_BUCKETS; i++) {
		while (maps->buckets[i])
			process_remove(maps, maps->buckets[i]);
	}
}
