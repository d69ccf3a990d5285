// SPDX-License-Identifier: MIT
/**
 * Records of maps and tasks as the kernel writes them, with a sample_id of 24 bytes behind.
 */
#ifndef PERFSCOPE_MAP_RECORDS_H
#define PERFSCOPE_MAP_RECORDS_H

#include <perfscope/maps.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

// No kernel hands out ids from here on (PID_MAX_LIMIT): /proc knows nothing of these processes.
#define NOBODY 4200000

struct mmap2 {
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
			uint8_t build_id[20];
		};
	};
	uint32_t prot, flags;
	char name[4096 + 24];
};

/** A map without identity. */
static struct mmap2 mmap2(pid_t pid, uint64_t address, uint64_t size, uint64_t offset,
			  const char *name)
{
	struct mmap2 record = { .pid = pid, .tid = pid, .address = address, .size = size };
	record.offset = offset;
	record.prot = PROT_READ | PROT_EXEC;
	snprintf(record.name, sizeof(record.name), "%s", name);
	size_t end = offsetof(struct mmap2, name) + ((strlen(name) + 8) & ~7u) + 24;
	record.header = (struct perf_event_header){ PERF_RECORD_MMAP2, 0, end };
	return record;
}

static inline void follow_mmap2(struct ps_maps *maps, pid_t pid, uint64_t address, uint64_t size,
				uint64_t offset, const char *name)
{
	struct mmap2 record = mmap2(pid, address, size, offset, name);
	ps_maps_follow(maps, &record.header, 0);
}

static void follow_task_at(struct ps_maps *maps, uint32_t type, pid_t pid, pid_t ppid,
			   uint64_t time)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, ppid, tid, ptid;
		uint64_t time, trailer[3];
	} record = { { type, 0, sizeof(record) }, pid, ppid, pid, ppid, time, {} };
	ps_maps_follow(maps, &record.header, time);
}

static inline void follow_fork(struct ps_maps *maps, pid_t parent, pid_t child)
{
	follow_task_at(maps, PERF_RECORD_FORK, child, parent, 0);
}

static inline void follow_exit(struct ps_maps *maps, pid_t pid)
{
	follow_task_at(maps, PERF_RECORD_EXIT, pid, 1, 0);
}

static inline void follow_exec_at(struct ps_maps *maps, pid_t pid, uint64_t time_ns)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		char comm[16];
		uint64_t trailer[3];
	} record = {
		{ PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, sizeof(record) }, pid, pid, "x", {}
	};
	ps_maps_follow(maps, &record.header, time_ns);
}

#endif
