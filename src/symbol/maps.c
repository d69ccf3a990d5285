// SPDX-License-Identifier: MIT
#include "process.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

// How long after a look into /proc/PID/maps the next is worth its price.
#define SNAPSHOT_PERIOD_MS 1000

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * UINT64_C(1000) + now.tv_nsec / 1000000;
}

static uint64_t realtime_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

void ps_maps_believe_build_ids(struct ps_maps *maps)
{
	maps->believes_build_ids = true;
}

/* From /proc. */

static bool process_snapshot(struct ps_maps *maps, struct process *process)
{
	process->snapshot_ms = now_ms();
	if (proc_maps_read(maps, process))
		return true;
	process_bury(maps, process);
	return false;
}

static struct process *process_get(struct ps_maps *maps, pid_t pid)
{
	struct process *process = process_find(maps, pid);
	return process ? process : process_add(maps, pid);
}

/** That of @pid; one never heard of is looked up. NULL: no memory, or no process. */
static struct process *process_know(struct ps_maps *maps, pid_t pid)
{
	struct process *process = process_find(maps, pid);
	if (PS_LIKELY(process) || pid <= 0)
		return process;
	process = process_add(maps, pid);
	if (process)
		process_snapshot(maps, process);
	return process;
}

bool ps_maps_snapshot_pid(struct ps_maps *maps, pid_t pid)
{
	struct process *process = pid > 0 ? process_get(maps, pid) : NULL;
	return process && process_snapshot(maps, process);
}

void ps_maps_snapshot(struct ps_maps *maps, const pid_t *pids, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		ps_maps_snapshot_pid(maps, pids[i]);
	_cleanup_closedir_ DIR *folder = pids ? NULL : opendir("/proc");
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		if (isdigit((unsigned char)entry->d_name[0]))
			ps_maps_snapshot_pid(maps, atoi(entry->d_name));
	}
}

/* Records. */

/** PERF_RECORD_MMAP; the name ends with a NUL. */
struct mmap_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, size, offset;
	char name[];
};

/** PERF_RECORD_MMAP2; the name ends with a NUL. */
struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, size, offset;
	union {
		struct {
			uint32_t dev_major, dev_minor;
			uint64_t inode, generation;
		};
		struct {
			uint8_t build_id_size, reserved[3];
			uint8_t build_id[PS_BUILD_ID_SIZE];
		};
	};
	uint32_t prot, flags;
	char name[];
};

/** PERF_RECORD_COMM, FORK and EXIT: what they begin with, and what FORK and EXIT go on with. */
struct task_record {
	struct perf_event_header header;
	uint32_t pid, tid_or_ppid;
	uint32_t tid, ptid;
};

/** The process that the record of @time_ns is about; NULL: something younger is known of it, or no memory. */
static struct process *process_of(struct ps_maps *maps, pid_t pid, uint64_t time_ns)
{
	struct process *process = process_get(maps, pid);
	if (!process || (time_ns && time_ns < process->since_ns))
		return NULL;
	process_revive(maps, process);
	return process;
}

static bool mmap2_identity(const struct ps_maps *maps, const struct mmap2_record *record,
			   struct ps_file *file)
{
	if (!maps->believes_build_ids || !(record->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		file->dev_major = record->dev_major;
		file->dev_minor = record->dev_minor;
		file->inode = record->inode;
		file->generation = record->generation;
		return true;
	}
	if (record->build_id_size > PS_BUILD_ID_SIZE)
		return false;
	file->build_id_size = record->build_id_size;
	memcpy(file->build_id, record->build_id, record->build_id_size);
	return true;
}

/** Copy @name; the kernel names a file that was deleted when it was mapped "name (deleted)". */
static void copy_path(const char *name, char *ret, size_t size)
{
	static const char deleted[] = " (deleted)";
	size_t length = snprintf(ret, size, "%s", name);
	size_t end = length - strlen(deleted);
	if (length > strlen(deleted) && length < size && !strcmp(ret + end, deleted))
		ret[end] = 0;
}

/** @name begins in the record and must end in it. */
static void follow_map(struct ps_maps *maps, const struct mmap_record *record, const char *name,
		       struct ps_file *file, uint64_t time_ns)
{
	size_t left = (const char *)record + record->header.size - name;
	if (strnlen(name, left) == left || record->address + record->size <= record->address)
		return;
	struct process *process = process_of(maps, record->pid, time_ns);
	if (!process)
		return;
	struct ps_map map = { record->address, record->address + record->size, record->offset, 0 };
	char path[PATH_MAX + 32];
	copy_path(name, path, sizeof(path));
	file->path = path;
	file->mapped_ns = realtime_ns();
	process_map(maps, process, &map, file, false);
}

static void follow_mmap2(struct ps_maps *maps, const struct mmap2_record *record, uint64_t time_ns)
{
	struct ps_file file = {};
	if (record->prot & PROT_EXEC && mmap2_identity(maps, record, &file))
		follow_map(maps, (const void *)record, record->name, &file, time_ns);
}

static void follow_mmap(struct ps_maps *maps, const struct mmap_record *record, uint64_t time_ns)
{
	struct ps_file file = {};
	if (!(record->header.misc & PERF_RECORD_MISC_MMAP_DATA))
		follow_map(maps, record, record->name, &file, time_ns);
}

static void follow_exec(struct ps_maps *maps, pid_t pid, uint64_t time_ns)
{
	struct process *process = process_of(maps, pid, time_ns);
	if (process)
		process_exec(maps, process, time_ns);
}

/** The child starts with the maps of its parent. */
static void follow_fork(struct ps_maps *maps, pid_t pid, pid_t parent_pid, uint64_t time_ns)
{
	struct process *parent = process_know(maps, parent_pid);
	struct map_set *set = parent ? map_set_share(parent->set) : NULL;
	uint64_t parent_id = parent ? parent->id : 0; // to know the child may remove the parent
	struct process *child = process_of(maps, pid, time_ns);
	if (!child) {
		map_set_put(set, &maps->files);
		return;
	}
	process_reset(maps, child, set, time_ns);
	child->parent_pid = parent_pid;
	child->forked_from = parent_id;
}

static void follow_exit(struct ps_maps *maps, pid_t pid, uint64_t time_ns)
{
	struct process *process = process_find(maps, pid);
	if (process && !(time_ns && time_ns < process->since_ns))
		process_bury(maps, process);
}

static void follow_task(struct ps_maps *maps, const struct task_record *record, uint64_t time_ns)
{
	if (record->header.type == PERF_RECORD_COMM) {
		if (record->header.misc & PERF_RECORD_MISC_COMM_EXEC)
			follow_exec(maps, record->pid, time_ns);
		return;
	}
	// Of the process, not of one of its threads.
	if (record->header.size < sizeof(*record) || record->pid != record->tid)
		return;
	if (record->header.type == PERF_RECORD_FORK)
		follow_fork(maps, record->pid, record->tid_or_ppid, time_ns);
	else
		follow_exit(maps, record->pid, time_ns);
}

void ps_maps_follow(struct ps_maps *maps, const struct perf_event_header *header, uint64_t time_ns)
{
	const struct task_record *task = (const void *)header;
	// Ids that are not positive: the kernel's own maps, and processes of another pid namespace.
	if (header->size < 16 || (pid_t)task->pid <= 0)
		return;
	switch (header->type) {
	case PERF_RECORD_MMAP2:
		if (header->size > sizeof(struct mmap2_record))
			follow_mmap2(maps, (const void *)header, time_ns);
		break;
	case PERF_RECORD_MMAP:
		if (header->size > sizeof(struct mmap_record))
			follow_mmap(maps, (const void *)header, time_ns);
		break;
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		follow_task(maps, task, time_ns);
		break;
	}
}

/* The whole. */

/** The record of an exec comes before its end: the kernel still works for the code that called it. */
static const struct ps_map *find_around_exec(struct ps_maps *maps, struct process *process,
					     uint64_t address)
{
	const struct ps_map *map = map_set_find(process->set, address);
	if (!map)
		return map_set_find(process->before, address);
	process_forget_before(maps, process);
	return map;
}

const struct ps_map *ps_maps_find(struct ps_maps *maps, pid_t pid, uint64_t address)
{
	struct process *process = process_know(maps, pid);
	if (PS_UNLIKELY(!process))
		return NULL;
	const struct ps_map *map = PS_UNLIKELY(process->before)
					   ? find_around_exec(maps, process, address)
					   : map_set_find(process->set, address);
	if (PS_LIKELY(map) || process->is_dead)
		return map;
	if (process->snapshot_ms && now_ms() - process->snapshot_ms < SNAPSHOT_PERIOD_MS)
		return NULL;
	process_snapshot(maps, process);
	return map_set_find(process->set, address);
}

uint64_t ps_maps_generation(struct ps_maps *maps, pid_t pid)
{
	struct process *process = process_know(maps, pid);
	return process && process->set ? process->set->generation : 0;
}

struct ps_process_id ps_maps_process(struct ps_maps *maps, pid_t pid)
{
	const struct process *process = process_know(maps, pid);
	return (struct ps_process_id){ pid, process ? process->id : 0 };
}

/** Of a process that was there before: no record told of its birth. */
static void read_parent(struct ps_maps *maps, struct process *process)
{
	bool is_fork = false;
	process->is_parent_read = true;
	process->parent_pid = proc_parent(process->pid, &is_fork);
	// Not ps_maps_process: to look the parent up may take @process away.
	const struct process *parent = is_fork ? process_look(maps, process->parent_pid) : NULL;
	process->forked_from = parent ? parent->id : 0;
}

struct ps_process_id ps_maps_forked_from(struct ps_maps *maps, struct ps_process_id process)
{
	struct process *child = process_look(maps, process.pid);
	if (child && child->id == process.id && !child->forked_from && !child->since_ns &&
	    !child->is_parent_read)
		read_parent(maps, child);
	if (!child || child->id != process.id || !child->forked_from)
		return (struct ps_process_id){};
	return (struct ps_process_id){ child->parent_pid, child->forked_from };
}

pid_t ps_maps_parent(const struct ps_maps *maps, pid_t pid)
{
	const struct process *process = process_look(maps, pid);
	return process ? process->parent_pid : 0;
}

size_t ps_maps_nr_processes(const struct ps_maps *maps)
{
	return maps->nr_live + maps->nr_dead;
}

size_t ps_maps_nr_files(const struct ps_maps *maps)
{
	return maps->files.nr;
}

struct ps_error *ps_maps_create(struct ps_maps **ret)
{
	struct ps_maps *maps = calloc(1, sizeof(*maps));
	if (!maps)
		return &ps_enomem;
	maps->sweep_at = PS_MAPS_MAX_DEAD;
	*ret = maps;
	return NULL;
}

void ps_maps_destroy(struct ps_maps *maps)
{
	if (!maps)
		return;
	processes_destroy(maps);
	free(maps);
}
