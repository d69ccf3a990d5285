// SPDX-License-Identifier: MIT
#include "internal.h"

#include <errno.h>
#include <linux/capability.h>
#include <perfscope/stand_in.h>
#include <sys/syscall.h>

#define PARANOID_PATH "/proc/sys/kernel/perf_event_paranoid"

bool ps_counter_is_of_kernel(const struct ps_counter *counter)
{
	return counter->type == PERF_TYPE_SOFTWARE &&
	       (counter->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
		counter->config == PERF_COUNT_SW_CPU_MIGRATIONS);
}

bool ps_counter_is_clock(const struct ps_counter *counter)
{
	return counter->type == PERF_TYPE_SOFTWARE && (counter->config == PERF_COUNT_SW_CPU_CLOCK ||
						       counter->config == PERF_COUNT_SW_TASK_CLOCK);
}

int ps_counter_open(const struct perf_event_attr *attr, int group_fd)
{
	int fd = syscall(SYS_perf_event_open, attr, 0, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/** Whether the processor has a PMU that this kernel drives, even if this user may not use it. */
static bool has_hardware(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = ps_counter_open(&attr, -1);
	if (fd >= 0)
		close(fd);
	return fd != -ENOENT && fd != -ENODEV && fd != -EOPNOTSUPP;
}

static bool is_of_hardware(const struct ps_counter *counter)
{
	return counter->type == PERF_TYPE_HARDWARE || counter->type == PERF_TYPE_HW_CACHE ||
	       counter->type == PERF_TYPE_RAW;
}

static struct ps_error *missing_error(const struct ps_counter *counter)
{
	if (!is_of_hardware(counter))
		return ps_error_format(PS_ERROR_UNSUPPORTED, "this kernel has no such counter");
	if (has_hardware())
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "the hardware PMU here has no such counter");
	return ps_error_format(PS_ERROR_UNSUPPORTED, "no hardware PMU here (the nearest is %s)",
			       ps_stand_in(counter->type, counter->config));
}

/** The highest perf_event_paranoid at which a user without CAP_PERFMON may open @counter. */
static int allowed_paranoid(const struct ps_counter *counter)
{
	if (ps_counter_is_clock(counter))
		return 2;
	return counter->exclude & PS_EXCLUDE_KERNEL && !ps_counter_is_of_kernel(counter) ? 2 : 1;
}

/** Whether this process has what the kernel asks for, in its user namespace at least. */
static bool has_capability(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	if (syscall(SYS_capget, &header, data))
		return false;
	return data[CAP_TO_INDEX(CAP_PERFMON)].effective & CAP_TO_MASK(CAP_PERFMON) ||
	       data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN);
}

static struct ps_error *permission_error(const struct ps_counter *counter)
{
	if (has_capability())
		return ps_error_format(PS_ERROR_PERMISSION,
				       "permission denied (this process has CAP_PERFMON, but a "
				       "container or seccomp filter does not allow it)");
	int paranoid, allowed = allowed_paranoid(counter);
	_cleanup_fclose_ FILE *file = fopen(PARANOID_PATH, "re");
	if (!file || fscanf(file, "%d", &paranoid) != 1)
		return ps_error_format(PS_ERROR_PERMISSION,
				       "permission denied (needs CAP_PERFMON or root)");
	if (paranoid <= allowed)
		return ps_error_format(
			PS_ERROR_PERMISSION,
			"permission denied (perf_event_paranoid is %d and allows it, but a "
			"container or security module does not)",
			paranoid);
	bool is_of_kernel = ps_counter_is_of_kernel(counter);
	bool helps = allowed == 1 && paranoid == 2 && !is_of_kernel;
	return ps_error_format(PS_ERROR_PERMISSION,
			       "%spermission denied (perf_event_paranoid is %d; needs CAP_PERFMON "
			       "or root, or sysctl kernel.perf_event_paranoid=%d%s)",
			       is_of_kernel ? "happens in the kernel, " : "", paranoid, allowed,
			       helps ? ", or to count without the kernel" : "");
}

struct ps_error *ps_counter_refusal(int os_errno, const struct ps_counter *counter)
{
	switch (os_errno) {
	case EACCES:
	case EPERM:
		return permission_error(counter);
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case EOPNOTSUPP:
		return missing_error(counter);
	case ENOSYS:
		return ps_error_format(PS_ERROR_UNSUPPORTED, "this kernel has no perf events");
	case EBUSY:
		return ps_error_format(PS_ERROR_LIMIT,
				       "another tool uses the PMU exclusively (end it first)");
	case EINVAL:
		if (is_of_hardware(counter) && !has_hardware())
			return missing_error(counter);
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "the kernel refuses it (Invalid argument)");
	default:
		return ps_error_os(os_errno, "the kernel refuses it");
	}
}
