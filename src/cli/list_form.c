// SPDX-License-Identifier: MIT
#include "list_form.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <perfscope/cleanup.h>
#include <perfscope/pmu.h>
#include <string.h>
#include <sys/syscall.h>

static int try_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	_cleanup_close_ int fd =
		syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? errno : 0;
}

int list_try(struct perf_event_attr attr)
{
	attr.disabled = 1;
	int os_errno = try_open(&attr, 0, -1);
	// PMUs outside the cores count for a CPU, not for a thread.
	if (os_errno == EINVAL)
		os_errno = try_open(&attr, -1, 0);
	if (os_errno == EACCES) {
		attr.exclude_kernel = 1;
		os_errno = try_open(&attr, 0, -1);
	}
	return os_errno;
}

const char *list_reason(int os_errno)
{
	switch (os_errno) {
	case 0:
		return NULL;
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case EOPNOTSUPP:
		return ps_pmu_has_hardware() ? "the PMU does not count it" : "no hardware PMU here";
	case EACCES:
	case EPERM:
		return "not permitted; lower kernel.perf_event_paranoid, or give CAP_PERFMON";
	default:
		return strerror(os_errno);
	}
}

static const char *raw_reason(void)
{
	return list_reason(list_try((struct perf_event_attr){
		.type = PERF_TYPE_RAW,
		.size = sizeof(struct perf_event_attr),
		.config = 1,
	}));
}

static const char *breakpoint_reason(void)
{
	static uint64_t watched;
	int os_errno = list_try((struct perf_event_attr){
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(struct perf_event_attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&watched,
		.bp_len = sizeof(watched),
	});
	bool is_missing = os_errno == ENOENT || os_errno == ENODEV || os_errno == EOPNOTSUPP;
	return is_missing ? "no breakpoint registers here" : list_reason(os_errno);
}

static const char *uprobe_reason(void)
{
	return ps_pmu_exists("uprobe") ? NULL
				       : "this kernel has none (CONFIG_UPROBE_EVENTS is off)";
}

static const char *kprobe_reason(void)
{
	return ps_pmu_exists("kprobe") ? NULL
				       : "this kernel has none (CONFIG_KPROBE_EVENTS is off)";
}

const struct list_form list_forms_of_own[] = {
	{ "profile", NULL },
	{ "rHEX", raw_reason },
	{ "mem:ADDRESS[/LENGTH][:rwx]", breakpoint_reason },
	{ "uprobe:FUNC[+OFFSET]@FILE", uprobe_reason },
	{ "uretprobe:FUNC@FILE", uprobe_reason },
	{ "usdt:PROVIDER:NAME@FILE", uprobe_reason },
	{ "kprobe:FUNC[+OFFSET]", kprobe_reason },
	{ "kretprobe:FUNC", kprobe_reason },
};
const size_t list_nr_forms = PS_ARRAY_SIZE(list_forms_of_own);
