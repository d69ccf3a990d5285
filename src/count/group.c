// SPDX-License-Identifier: MIT
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

uint32_t group_read_parts(const struct ps_counter_group *group, struct ps_counter_reading *ret)
{
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

uint32_t ps_counter_group_read_bits(struct ps_counter_group *group, struct ps_counter_reading *ret)
{
	return group_read(group, ret);
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

static bool part_has(const struct part *part, uint8_t index)
{
	return memchr(part->indexes, index, part->nr);
}

size_t ps_counter_group_nr_parts(const struct ps_counter_group *group, const uint8_t *indexes,
				 size_t nr)
{
	size_t nr_parts = 0;
	for (size_t p = 0; p < group->nr_parts; p++) {
		size_t i = 0;
		while (i < nr && !part_has(&group->parts[p], indexes[i]))
			i++;
		nr_parts += i < nr;
	}
	return nr_parts;
}

bool ps_counter_group_is_direct(const struct ps_counter_group *group)
{
	struct ps_counter_reading reading[PS_MAX_COUNTERS];
	return group->is_direct && group_read_direct(group, reading);
}
