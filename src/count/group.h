// SPDX-License-Identifier: MIT
/**
 * A group of counters, as it is opened and read.
 */
#ifndef PERFSCOPE_COUNT_GROUP_H
#define PERFSCOPE_COUNT_GROUP_H

#include "internal.h"

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
bool counter_part_read(const struct part *part, struct ps_counter_reading *ret);

#endif
