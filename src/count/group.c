// SPDX-License-Identifier: MIT
#include "direct.h"
#include "group.h"

#include <string.h>
#include <sys/mman.h>

void ps_counter_group_close(struct ps_counter_group *group)
{
	if (!group)
		return;
	for (size_t i = 0; i < group->nr; i++) {
		if (group->pages[i])
			munmap(group->pages[i], sysconf(_SC_PAGESIZE));
		ps_counter_fd_close(group->fds[i], group->ids[i]);
		ps_error_destroy(group->refusals[i]);
	}
	free(group);
}

/** The bits of all @nr counters. */
static uint32_t all_bits(size_t nr)
{
	return (uint32_t)((1ULL << nr) - 1);
}

bool counter_part_read(const struct part *part, struct ps_counter_reading *ret)
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

static bool read_direct(const struct ps_counter_group *group, struct ps_counter_reading *ret)
{
	for (size_t i = 0; i < group->nr; i++) {
		if (!ps_direct_read(group->pages[i], &ret[i]))
			return false;
	}
	return true;
}

uint32_t ps_counter_group_read_bits(struct ps_counter_group *group, struct ps_counter_reading *ret)
{
	if (group->is_direct && PS_LIKELY(read_direct(group, ret)))
		return 0;
	// As a rule there is one part with all counters, and one call.
	if (PS_LIKELY(group->nr_parts == 1 && group->parts->nr == group->nr &&
		      counter_part_read(group->parts, ret)))
		return 0;
	uint32_t failed = all_bits(group->nr);
	memset(ret, 0, group->nr * sizeof(*ret));
	for (const struct part *part = group->parts; part < group->parts + group->nr_parts;
	     part++) {
		if (!counter_part_read(part, ret))
			continue;
		for (size_t i = 0; i < part->nr; i++)
			failed &= ~(1U << part->indexes[i]);
	}
	return failed;
}

bool ps_counter_group_read(struct ps_counter_group *group, struct ps_counter_reading *ret)
{
	return ps_counter_group_read_bits(group, ret) != all_bits(group->nr);
}

const char *ps_counter_group_reason(const struct ps_counter_group *group, size_t index)
{
	return group->refusals[index] ? group->refusals[index]->message : NULL;
}

int ps_counter_group_fd(const struct ps_counter_group *group, size_t index)
{
	return group->fds[index];
}

size_t ps_counter_group_nr_parts(const struct ps_counter_group *group)
{
	return group->nr_parts;
}

bool ps_counter_group_is_direct(const struct ps_counter_group *group)
{
	struct ps_counter_reading reading[PS_MAX_COUNTERS];
	return group->is_direct && read_direct(group, reading);
}
