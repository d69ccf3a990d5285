// SPDX-License-Identifier: MIT
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <linux/capability.h>
#include <perfscope/pmu.h>
#include <perfscope/stand_in.h>
#include <sys/resource.h>

// The kernel's own number for what an instruction forbids; no header of user space has it.
#define KERNEL_ENOTSUPP 524

#define PARANOID_PATH "/proc/sys/kernel/perf_event_paranoid"

static bool is_missing_errno(int os_errno)
{
	return os_errno == ENOENT || os_errno == ENODEV || os_errno == ENXIO ||
	       os_errno == EOPNOTSUPP;
}

/** Parts of samples that need what this machine lacks; NULL: none is asked for. */
static const char *missing_part(const struct perf_event_attr *attr)
{
	if (!(attr->sample_type & PERF_SAMPLE_BRANCH_STACK))
		return NULL;
	return attr->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK
		       ? "branch stacks need a PMU that records branches (--call-graph=fp and "
			 "dwarf do not)"
		       : "branch stacks need a PMU that records branches (leave out branch)";
}

/** Why the PMU that is there refuses @attr. */
static const char *hardware_reason(int os_errno, const struct perf_event_attr *attr)
{
	if (os_errno == EOPNOTSUPP && attr->precise_ip)
		return "the hardware PMU here does not place samples so precisely (fewer p)";
	if (os_errno == EINVAL && !attr->disabled)
		return "its group does not fit on the hardware PMU";
	return "the hardware PMU here has no such event";
}

bool ps_refusal_is_missing(int os_errno, const struct perf_event_attr *attr,
			   const char **ret_reason, const char **ret_nearest)
{
	const char *reason = NULL;
	// The counter is there, but not with that part: leaving it out would not be what was asked for.
	if (os_errno == EOPNOTSUPP && missing_part(attr))
		return false;
	switch (attr->type) {
	case PERF_TYPE_TRACEPOINT:
	case PERF_TYPE_BREAKPOINT:
		return false;
	case PERF_TYPE_SOFTWARE:
		if (is_missing_errno(os_errno))
			reason = "this kernel has no such event";
		break;
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
	case PERF_TYPE_RAW:
		if (!is_missing_errno(os_errno) && os_errno != EINVAL)
			break;
		reason = ps_pmu_has_hardware() ? hardware_reason(os_errno, attr)
					       : "no hardware PMU here";
		break;
	default:
		if (is_missing_errno(os_errno))
			reason = "this PMU has no such event";
		else if (os_errno == EINVAL)
			reason = "this PMU refuses the event for this target";
	}
	if (!reason)
		return false;
	*ret_reason = reason;
	*ret_nearest = ps_stand_in(attr->type, attr->config);
	return true;
}

static bool read_paranoid(int *ret)
{
	_cleanup_fclose_ FILE *file = fopen(PARANOID_PATH, "re");
	return file && fscanf(file, "%d", ret) == 1;
}

/** Whether this process has CAP_PERFMON, or CAP_SYS_ADMIN, which has it in it. */
static bool has_perfmon(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t effective;
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CapEff: %" SCNx64, &effective) == 1)
			return effective >> CAP_PERFMON & 1 || effective >> CAP_SYS_ADMIN & 1;
	}
	return false;
}

/** The highest perf_event_paranoid at which a user without CAP_PERFMON may open @attr at @place. */
static int allowed_paranoid(const struct perf_event_attr *attr, const struct ps_place *place)
{
	if (attr->type == PERF_TYPE_TRACEPOINT && attr->sample_type & PERF_SAMPLE_RAW)
		return -1;
	if (place->tid < 0)
		return 0;
	return attr->exclude_kernel ? 2 : 1;
}

static struct ps_error *permission_error(int os_errno, const char *where,
					 const struct perf_event_attr *attr,
					 const struct ps_place *place)
{
	// A container refuses all of them, at the first; these the kernel keeps to itself (irq_vectors:irq_work_exit).
	if (attr->type == PERF_TYPE_TRACEPOINT && has_perfmon())
		return ps_error_format(PS_ERROR_PERMISSION,
				       "open %s: permission denied in spite of CAP_PERFMON (the "
				       "kernel lets nobody sample it, or a container or security "
				       "module does not; leave it out)",
				       where);
	int paranoid, allowed = allowed_paranoid(attr, place);
	if (!read_paranoid(&paranoid))
		return ps_error_format(PS_ERROR_PERMISSION,
				       "open %s: permission denied (needs CAP_PERFMON or root; "
				       "perf_event_paranoid cannot be read)",
				       where);
	if (paranoid > allowed) {
		const char *without_kernel =
			allowed == 1 && paranoid == 2 && !ps_attr_is_kernel_only(attr)
				? ", or :u behind the event, without the kernel"
				: "";
		return ps_error_format(PS_ERROR_PERMISSION,
				       "open %s: permission denied (perf_event_paranoid is %d; "
				       "needs CAP_PERFMON or root, or sysctl "
				       "kernel.perf_event_paranoid=%d%s)",
				       where, paranoid, allowed, without_kernel);
	}
	if (os_errno == EACCES && place->tid > 0)
		return ps_error_format(PS_ERROR_PERMISSION,
				       "open %s: permission denied (the thread is another user's; "
				       "needs CAP_PERFMON or root)",
				       where);
	return ps_error_format(
		PS_ERROR_PERMISSION,
		"open %s: permission denied (perf_event_paranoid is %d and allows it, "
		"but a container or security module does not; needs CAP_PERFMON there)",
		where, paranoid);
}

static struct ps_error *descriptors_error(const char *where, uint64_t nr_wanted)
{
	struct rlimit limit = { 0 };
	getrlimit(RLIMIT_NOFILE, &limit);
	return ps_error_format(PS_ERROR_LIMIT,
			       "open %s: too many open files (RLIMIT_NOFILE is %" PRIu64
			       ", these events need %" PRIu64
			       "; raise it with ulimit -n, or choose "
			       "fewer events or CPUs)",
			       where, (uint64_t)limit.rlim_cur, nr_wanted);
}

#define MAX_RATE_PATH "/proc/sys/kernel/perf_event_max_sample_rate"

/** A frequency above what the kernel allows; NULL: that is not it. */
static struct ps_error *frequency_error(const char *where, const struct perf_event_attr *attr)
{
	uint64_t max;
	_cleanup_fclose_ FILE *file = fopen(MAX_RATE_PATH, "re");
	if (!attr->freq || !file || fscanf(file, "%" SCNu64, &max) != 1 || attr->sample_freq <= max)
		return NULL;
	return ps_error_format(PS_ERROR_LIMIT,
			       "open %s: a frequency of %" PRIu64 " is more than the kernel allows "
			       "(at most %" PRIu64 ", sysctl kernel.perf_event_max_sample_rate)",
			       where, (uint64_t)attr->sample_freq, max);
}

#define MAX_STACK_PATH "/proc/sys/kernel/perf_event_max_stack"

static struct ps_error *stack_error(const char *where, const struct perf_event_attr *attr)
{
	uint64_t max;
	_cleanup_fclose_ FILE *file = fopen(MAX_STACK_PATH, "re");
	if (!file || fscanf(file, "%" SCNu64, &max) != 1 || attr->sample_max_stack <= max)
		return ps_error_os(EOVERFLOW, "open %s", where);
	return ps_error_format(PS_ERROR_LIMIT,
			       "open %s: a stack of %u addresses is more than the kernel allows "
			       "(at most %" PRIu64 ", sysctl kernel.perf_event_max_stack)",
			       where, (unsigned int)attr->sample_max_stack, max);
}

/** What no processor or not this one watches; NULL: that is not it. */
static struct ps_error *breakpoint_error(const char *where, const struct perf_event_attr *attr)
{
	if (attr->type != PERF_TYPE_BREAKPOINT)
		return NULL;
	if (attr->bp_type != HW_BREAKPOINT_X && attr->bp_len && attr->bp_addr % attr->bp_len)
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "open %s: the address of a breakpoint of %" PRIu64
				       " bytes must be a multiple of %" PRIu64
				       " (choose a shorter one)",
				       where, (uint64_t)attr->bp_len, (uint64_t)attr->bp_len);
	if (attr->bp_type == HW_BREAKPOINT_R)
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "open %s: this processor does not watch reads alone (use "
				       ":rw, which has the writes too)",
				       where);
	return NULL;
}

/** Before Linux 6.12 the kernel refuses to read counters in samples of events that are inherited. */
static bool is_inherited_read(const struct perf_event_attr *attr)
{
	return attr->inherit && attr->sample_type & PERF_SAMPLE_READ;
}

static struct ps_error *invalid_error(const char *where, const struct perf_event_attr *attr)
{
	struct ps_error *error = frequency_error(where, attr);
	if (!error)
		error = breakpoint_error(where, attr);
	if (error)
		return error;
	const char *part = missing_part(attr);
	if (part)
		return ps_error_format(PS_ERROR_UNSUPPORTED, "open %s: %s", where, part);
	if (is_inherited_read(attr))
		return ps_error_format(
			PS_ERROR_UNSUPPORTED,
			"open %s: this kernel cannot read a group that children inherit "
			"(Linux 6.12 can; leave out --inherit, or the braces or read)",
			where);
	if (attr->inherit_thread)
		return ps_error_format(
			PS_ERROR_UNSUPPORTED,
			"open %s: the kernel refuses it for new threads alone (before "
			"Linux 5.13 it cannot; try --inherit)",
			where);
	return ps_error_format(PS_ERROR_UNSUPPORTED,
			       "open %s: the kernel refuses these attributes (Invalid argument)",
			       where);
}

/** "cycles on cpu 3 of thread 12"; the caller frees it. */
static char *where_text(const char *name, const struct ps_place *place)
{
	char cpu[32] = "", tid[32] = "";
	if (place->cpu >= 0)
		snprintf(cpu, sizeof(cpu), " on cpu %d", place->cpu);
	if (place->tid >= 0)
		snprintf(tid, sizeof(tid), " of thread %d", place->tid);
	char *text;
	const char *cgroup = place->cgroup_fd >= 0 ? " in the cgroup" : "";
	return asprintf(&text, "%s%s%s%s", name, cpu, tid, cgroup) < 0 ? NULL : text;
}

struct ps_error *ps_refusal_error(int os_errno, const char *name,
				  const struct perf_event_attr *attr, const struct ps_place *place,
				  uint64_t nr_wanted)
{
	_cleanup_free_ char *where = where_text(name, place);
	if (!where)
		return &ps_enomem;
	switch (os_errno) {
	case EACCES:
	case EPERM:
		return permission_error(os_errno, where, attr, place);
	case EMFILE:
		return descriptors_error(where, nr_wanted);
	case EINVAL:
	case EOPNOTSUPP:
		return invalid_error(where, attr);
	case ENOSPC:
		if (attr->type == PERF_TYPE_BREAKPOINT)
			return ps_error_format(PS_ERROR_LIMIT,
					       "open %s: all breakpoint registers are in use "
					       "(choose fewer mem: events)",
					       where);
		break;
	case EOVERFLOW:
		return stack_error(where, attr);
	case EBUSY:
		return ps_error_format(
			PS_ERROR_LIMIT,
			"open %s: another tool uses the PMU exclusively (end it first)", where);
	}
	return ps_error_os(os_errno, "open %s", where);
}

/** Why a probe cannot be had; NULL: for no reason of probes. */
static const char *probe_reason(int os_errno, const struct perf_event_attr *attr)
{
	switch (os_errno) {
	case EACCES:
	case EPERM:
		return attr->type == PERF_TYPE_TRACEPOINT
			       ? NULL
			       : "permission denied (it needs CAP_PERFMON or root)";
	case EILSEQ:
		return "no instruction begins there";
	case ENOENT:
		return "the kernel knows no such function or file";
	case EINVAL:
		if (is_inherited_read(attr))
			return NULL;
		return "the kernel refuses a probe there (of two at one place, both have a "
		       "semaphore or none)";
	case EIO:
	case KERNEL_ENOTSUPP:
		return "the kernel cannot probe the instruction there";
	default:
		return NULL;
	}
}

struct ps_error *ps_refusal_probe_error(int os_errno, const char *name,
					const struct perf_event_attr *attr,
					const struct ps_place *place, uint64_t nr_wanted)
{
	const char *reason = probe_reason(os_errno, attr);
	if (!reason)
		return ps_refusal_error(os_errno, name, attr, place, nr_wanted);
	bool is_permission = os_errno == EACCES || os_errno == EPERM;
	return ps_error_format(is_permission ? PS_ERROR_PERMISSION : PS_ERROR_UNSUPPORTED,
			       "open %s: %s", name, reason);
}
