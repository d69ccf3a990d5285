// SPDX-License-Identifier: MIT
#include "group.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

static bool is_kernel_left_out(const struct ps_counter *counter)
{
	// The kernel gives a clock the same value either way, and asks for no privilege without itself.
	return ps_counter_is_clock(counter) ||
	       (counter->exclude & PS_EXCLUDE_KERNEL && !ps_counter_is_of_kernel(counter));
}

static struct perf_event_attr make_attr(const struct ps_counter *counter, unsigned int flags)
{
	bool is_kernel_free = is_kernel_left_out(counter);
	return (struct perf_event_attr){
		.type = counter->type,
		.size = sizeof(struct perf_event_attr),
		.config = counter->config,
		.config1 = counter->config1,
		.config2 = counter->config2,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
		.inherit = !!(flags & PS_GROUP_INHERIT),
		// Else children of fork would count here too. Since Linux 5.13.
		.inherit_thread = !!(flags & PS_GROUP_INHERIT),
		.exclude_user =
			!!(counter->exclude & PS_EXCLUDE_USER) && !ps_counter_is_of_kernel(counter),
		.exclude_kernel = is_kernel_free,
		.exclude_hv = is_kernel_free || counter->exclude & PS_EXCLUDE_HV,
		.exclude_host = !!(counter->exclude & PS_EXCLUDE_HOST),
		.exclude_guest = !!(counter->exclude & PS_EXCLUDE_GUEST),
	};
}

/** ps_counter_open, and the descriptor out of the program's way. */
static int open_kept(const struct perf_event_attr *attr, int group_fd)
{
	int fd = ps_counter_open(attr, group_fd);
	return fd < 0 ? fd : ps_counter_fd_keep(fd);
}

/** On arm64 user space may read a counter only when its event says so (`rdpmc`, bit 1 of config1). */
static int open_readable(struct perf_event_attr *attr, int group_fd)
{
#ifdef __aarch64__
	if (attr->type != PERF_TYPE_SOFTWARE && !attr->inherit) {
		struct perf_event_attr readable = *attr;
		readable.config1 |= 2;
		int fd = open_kept(&readable, group_fd);
		if (fd >= 0)
			return fd;
	}
#endif
	return open_kept(attr, group_fd);
}

static int open_counter(const struct ps_counter *counter, unsigned int flags, int group_fd)
{
	struct perf_event_attr attr = make_attr(counter, flags);
	attr.disabled = group_fd < 0;
	int fd = open_readable(&attr, group_fd);
	if (fd != -EINVAL && fd != -E2BIG)
		return fd;
	if (!attr.inherit_thread)
		return fd;
	attr.inherit_thread = 0;
	return open_readable(&attr, group_fd);
}

/** Open counter @index in the first part that takes it, or as the first of a part of its own. */
static int open_in_part(struct ps_counter_group *group, size_t index,
			const struct ps_counter *counter, unsigned int flags)
{
	struct part *part = group->parts;
	int fd = -EINVAL;
	for (; part < group->parts + group->nr_parts && fd == -EINVAL; part++) {
		fd = open_counter(counter, flags, part->fd);
		if (fd >= 0) {
			part->indexes[part->nr++] = index;
			return fd;
		}
	}
	// Refused as too many for the group, or because it is another PMU's: alone it may be had.
	if (fd == -EINVAL && (fd = open_counter(counter, flags, -1)) >= 0)
		group->parts[group->nr_parts++] = (struct part){ fd, 1, { index } };
	return fd;
}

/** Whether the PMU can take all of @part at once, now that no other part of ours is enabled. */
static bool part_runs(const struct part *part)
{
	struct ps_counter_reading reading[PS_MAX_COUNTERS];
	ioctl(part->fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	bool is_read = counter_part_read(part, reading);
	ioctl(part->fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	const struct ps_counter_reading *first = &reading[part->indexes[0]];
	return is_read && (first->running_ns || !first->enabled_ns);
}

static void set_fd(struct ps_counter_group *group, size_t index, int fd,
		   const struct ps_counter *counter)
{
	group->fds[index] = fd < 0 ? -1 : fd;
	if (fd < 0)
		group->refusals[index] = ps_counter_refusal(-fd, counter);
	else
		group->ids[index] = ps_counter_fd_id(fd);
}

/** Open the second half of @part anew, as a part of its own. */
static void split_part(struct ps_counter_group *group, struct part *part,
		       const struct ps_counter *counters, unsigned int flags)
{
	struct part half = { .fd = -1 };
	size_t nr = part->nr;
	part->nr = nr / 2;
	for (size_t i = part->nr; i < nr; i++) {
		size_t index = part->indexes[i];
		close(group->fds[index]);
		int fd = open_counter(&counters[index], flags, half.fd);
		set_fd(group, index, fd, &counters[index]);
		if (fd < 0)
			continue;
		half.fd = half.nr ? half.fd : fd;
		half.indexes[half.nr++] = index;
	}
	if (half.nr)
		group->parts[group->nr_parts++] = half;
}

static bool has_hardware(const struct part *part, const struct ps_counter *counters)
{
	for (size_t i = 0; i < part->nr; i++) {
		if (counters[part->indexes[i]].type != PERF_TYPE_SOFTWARE)
			return true;
	}
	return false;
}

/**
 * Split what the kernel took as one group, but the PMU never will: a counter of it may be in use for something else
 * (the watchdog), or the driver counts its registers too high. All of such a group would read 0 for ever.
 */
static void fit_parts(struct ps_counter_group *group, const struct ps_counter *counters,
		      unsigned int flags)
{
	for (size_t i = 0; i < group->nr_parts; i++) {
		struct part *part = &group->parts[i];
		while (part->nr > 1 && has_hardware(part, counters) && !part_runs(part))
			split_part(group, part, counters, flags);
	}
}

static void map_pages(struct ps_counter_group *group, const struct ps_counter *counters)
{
	for (size_t i = 0; i < group->nr; i++) {
		if (group->fds[i] < 0 || counters[i].type == PERF_TYPE_SOFTWARE)
			return;
	}
	size_t size = sysconf(_SC_PAGESIZE);
	group->is_direct = true;
	for (size_t i = 0; i < group->nr && group->is_direct; i++) {
		void *page = mmap(NULL, size, PROT_READ, MAP_SHARED, group->fds[i], 0);
		group->pages[i] = page == MAP_FAILED ? NULL : page;
		group->is_direct = group->pages[i] && group->pages[i]->cap_user_rdpmc;
	}
}

static struct ps_error *first_refusal(const struct ps_counter_group *group,
				      const struct ps_counter *counters, bool is_strict)
{
	size_t index = group->nr;
	for (size_t i = group->nr; i-- > 0;) {
		if (group->refusals[i])
			index = i;
		else if (!is_strict)
			return NULL;
	}
	if (index == group->nr)
		return NULL;
	const struct ps_error *refusal = group->refusals[index];
	return ps_error_format(refusal->kind, "%s: %s", counters[index].name, refusal->message);
}

static void enable_parts(struct ps_counter_group *group)
{
	for (size_t i = 0; i < group->nr_parts; i++)
		ioctl(group->parts[i].fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

static void open_all(struct ps_counter_group *group, const struct ps_counter *counters,
		     unsigned int flags)
{
	for (size_t i = 0; i < group->nr; i++) {
		int fd = open_in_part(group, i, &counters[i], flags);
		set_fd(group, i, fd, &counters[i]);
	}
	fit_parts(group, counters, flags);
	if (!(flags & PS_GROUP_INHERIT)) // the page knows nothing of threads that ended
		map_pages(group, counters);
	enable_parts(group);
}

struct ps_error *ps_counter_group_open(const struct ps_counter *counters, size_t nr,
				       unsigned int flags, struct ps_counter_group **ret)
{
	if (!nr || nr > PS_MAX_COUNTERS)
		return ps_error_format(PS_ERROR_USAGE, "%zu counters: 1 to %d can be counted", nr,
				       PS_MAX_COUNTERS);
	_cleanup_counter_group_ struct ps_counter_group *group = calloc(1, sizeof(*group));
	if (!group)
		return &ps_enomem;
	group->nr = nr;
	open_all(group, counters, flags);
	struct ps_error *error = first_refusal(group, counters, flags & PS_GROUP_STRICT);
	if (error)
		return error;
	*ret = take_ptr(group);
	return NULL;
}
