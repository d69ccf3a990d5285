// SPDX-License-Identifier: MIT
/**
 * A group of counters, as it is opened and read.
 */
#ifndef PERFSCOPE_COUNT_GROUP_H
#define PERFSCOPE_COUNT_GROUP_H

#include "direct.h"
#include "internal.h"

#include <unistd.h>

/** Counters that the kernel reads in one call. */
struct part {
	int fd; // of its first counter
	size_t nr;
	uint8_t indexes[PS_MAX_COUNTERS]; // of its counters, as given to open
};

struct ps_counter_group {
	size_t nr, nr_parts;
	struct part parts[PS_MAX_COUNTERS];
	bool is_direct;
	int fds[PS_MAX_COUNTERS];
	uint64_t ids[PS_MAX_COUNTERS]; // ps_counter_fd_id of each
	struct ps_error *refusals[PS_MAX_COUNTERS];
	struct perf_event_mmap_page *pages[PS_MAX_COUNTERS]; // all or none
};

/** Read the counters of @part; false: the kernel gave fewer bytes, as it does where it gave up on one of them. */
static inline bool counter_part_read(const struct part *part, struct ps_counter_reading *ret)
{
	struct {
		uint64_t nr, enabled_ns, running_ns, values[PS_MAX_COUNTERS];
	} data;
	ssize_t size = offsetof(__typeof__(data), values) + part->nr * sizeof(*data.values);
	if (PS_UNLIKELY(read(part->fd, &data, size) != size))
		return false;
	for (size_t i = 0; i < part->nr; i++)
		ret[part->indexes[i]] =
			(struct ps_counter_reading){ data.values[i], data.enabled_ns,
						     data.running_ns };
	return true;
}

static inline bool group_read_direct(const struct ps_counter_group *group,
				     struct ps_counter_reading *ret)
{
	for (size_t i = 0; i < group->nr; i++) {
		if (!ps_direct_read(group->pages[i], &ret[i]))
			return false;
	}
	return true;
}

/** The same as group_read(), part by part. */
uint32_t group_read_parts(const struct ps_counter_group *group, struct ps_counter_reading *ret);

/**
 * ps_counter_group_read_bits, in the caller: a return after a system call is one that the processor cannot predict
 * where the kernel guards its own returns.
 */
static inline __attribute__((always_inline)) uint32_t
group_read(const struct ps_counter_group *group, struct ps_counter_reading *ret)
{
	if (group->is_direct && PS_LIKELY(group_read_direct(group, ret)))
		return 0;
	// As a rule there is one part with all counters, and one call.
	if (PS_LIKELY(group->nr_parts == 1 && group->parts->nr == group->nr &&
		      counter_part_read(group->parts, ret)))
		return 0;
	return group_read_parts(group, ret);
}

#endif
