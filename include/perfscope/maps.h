// SPDX-License-Identifier: MIT
/**
 * Maps: which file lies where in the memory of each process, fed by records and, for what was there before, /proc.
 */
#ifndef PERFSCOPE_MAPS_H
#define PERFSCOPE_MAPS_H

#include <linux/perf_event.h>
#include <perfscope/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Ended processes whose maps are kept for late readers; the oldest go first. */
#define PS_MAPS_MAX_DEAD 4096

/** Executable maps of one process; further ones are passed over. */
#define PS_MAPS_MAX_OF_PROCESS 65536

#define PS_BUILD_ID_SIZE 20

/** What is mapped. A file that is replaced under its path is another ps_file. */
struct ps_file {
	uint64_t id; // never reused
	char *path;  // as the process named it: in its mount namespace
	uint32_t dev_major, dev_minor;
	uint64_t inode, generation; // 0: not known
	uint8_t build_id[PS_BUILD_ID_SIZE];
	uint8_t build_id_size; // 0: not known
	uint64_t mapped_ns;    // CLOCK_REALTIME of the last record that told of it; 0: not known
	// The rest belongs to maps.
	uint32_t nr_refs;
	struct ps_file *next;
};

/** Executable memory of one process. */
struct ps_map {
	uint64_t start, end; // addresses, the end outside
	uint64_t offset;     // in the file, of start
	struct ps_file *file;
};

struct ps_maps;

struct ps_error *ps_maps_create(struct ps_maps **ret);
void ps_maps_destroy(struct ps_maps *maps);

/**
 * Believe records that say that they carry a build-id. To be called where all of them are of an event that asked for it
 * (attr.build_id): the kernel leaves that mark of such an event on the records of those that it serves after it, which
 * have the device and inode there (perf_event_mmap_output, up to Linux 6.18 at least).
 */
void ps_maps_believe_build_ids(struct ps_maps *maps);

/** Take the maps of all processes (or of the @nr in @pids) from /proc. */
void ps_maps_snapshot(struct ps_maps *maps, const pid_t *pids, size_t nr);

/**
 * Take the maps of @pid from /proc, below those that records told: these are kept.
 *
 * False: it is gone, or this user may not look.
 */
bool ps_maps_snapshot_pid(struct ps_maps *maps, pid_t pid);

/**
 * Follow an MMAP2, MMAP, COMM (of an exec), FORK or EXIT record; others are passed over. @time_ns is when; 0: not
 * known. A record that is older than the last exec or fork into the process changes nothing.
 */
void ps_maps_follow(struct ps_maps *maps, const struct perf_event_header *header, uint64_t time_ns);

/**
 * What lies at @address of process @pid, at the record last followed; NULL: nothing that is executable.
 *
 * After an exec that is also what lay there before it, until something newer is found at an address: the record of an
 * exec comes while the kernel still works for its caller.
 * Reads /proc for a process never heard of, and once a second for an address that lies in no map.
 * Borrowed until the next call on @maps.
 */
const struct ps_map *ps_maps_find(struct ps_maps *maps, pid_t pid, uint64_t address);

/**
 * A number that is of the maps of @pid as they are now: another one after each change, 0 for an unknown process. A
 * child has that of its parent until one of them changes.
 */
uint64_t ps_maps_generation(struct ps_maps *maps, pid_t pid);

/** A process since its last exec; id is never of another one. id 0: not known. */
struct ps_process_id {
	pid_t pid;
	uint64_t id;
};

/** The process that @pid is now. */
struct ps_process_id ps_maps_process(struct ps_maps *maps, pid_t pid);

/** What @process was forked from and shares its memory of that time with; id 0: of none, or not known. */
struct ps_process_id ps_maps_forked_from(struct ps_maps *maps, struct ps_process_id process);

/** The process that started @pid, as far as a record told; 0: not known. */
pid_t ps_maps_parent(const struct ps_maps *maps, pid_t pid);

/** Numbers of processes held, and of files, for tests and --usage. */
size_t ps_maps_nr_processes(const struct ps_maps *maps);
size_t ps_maps_nr_files(const struct ps_maps *maps);

#endif
