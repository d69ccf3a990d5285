// SPDX-License-Identifier: MIT
/** What the processor, or the virtual machine that shows it, can do. */
#include "doctor_check.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <perfscope/cleanup.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define WITHOUT_PMU "needs a hardware PMU; knob: see there"

static bool is_missing(int os_errno)
{
	return os_errno == ENOENT || os_errno == ENODEV || os_errno == EOPNOTSUPP;
}

static struct perf_event_attr cycles_attr(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.exclude_kernel = 1,
	};
}

/** 0 where @attr can be opened, else errno. */
static int try_event(struct perf_event_attr attr)
{
	_cleanup_close_ int fd = open_event(&attr, 0, -1);
	return fd < 0 ? errno : 0;
}

struct finding check_pmu(void)
{
	int os_errno = try_event(cycles_attr());
	if (!os_errno)
		return YES("cycles");
	if (is_missing(os_errno))
		return NO("this machine shows none, as most virtual ones; "
			  "knob: its host's (KVM: -cpu host,pmu=on)");
	return explain_open(os_errno, 2);
}

// Of the drivers of processors' PMUs only those of x86 look at precise_ip; arm's (drivers/perf/arm_pmu.c) and others open
// whatever is asked for and place samples where the interrupt comes.
#if defined(__x86_64__) || defined(__i386__)
#define HONOURS_PRECISE true
#else
#define HONOURS_PRECISE false
#endif

struct finding check_precise(void)
{
	if (is_missing(try_event(cycles_attr())))
		return NO(WITHOUT_PMU);
	if (!HONOURS_PRECISE)
		return NO("the driver of this PMU takes p and does nothing about it; "
			  "knob: an x86 processor with PEBS or IBS");
	struct perf_event_attr attr = cycles_attr();
	attr.sample_period = 1000000;
	attr.sample_type = PERF_SAMPLE_IP;
	unsigned int level = 0;
	int os_errno = 0;
	while (level < 3 && !os_errno) {
		attr.precise_ip = level + 1;
		os_errno = try_event(attr);
		level += !os_errno;
	}
	if (level)
		return YES("cycles:%.*s", (int)level, "ppp");
	if (!is_missing(os_errno) && os_errno != EINVAL)
		return explain_open(os_errno, 2);
	return NO(
		"this PMU places none precisely; knob: a processor with PEBS or IBS, not virtual");
}

struct finding check_branches(void)
{
	if (is_missing(try_event(cycles_attr())))
		return NO(WITHOUT_PMU);
	struct perf_event_attr attr = cycles_attr();
	attr.sample_period = 1000000;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	int os_errno = try_event(attr);
	if (!os_errno)
		return YES("of user space");
	if (!is_missing(os_errno) && os_errno != EINVAL)
		return explain_open(os_errno, 2);
	return NO("this PMU records no branches; knob: a processor with LBR, BRS or BRBE, not "
		  "virtual");
}

/** Samples with data_src and weight come from events of their own. */
struct finding check_memory(void)
{
	if (!access("/sys/bus/event_source/devices/cpu/events/mem-loads", F_OK))
		return YES("cpu/mem-loads/");
	if (read_pmu_type("ibs_op") >= 0)
		return YES("ibs_op");
	if (is_missing(try_event(cycles_attr())))
		return NO(WITHOUT_PMU);
	return NO("no PMU here tells where data came from; "
		  "knob: a processor with load latency events or IBS, not virtual");
}

struct finding check_breakpoints(void)
{
	static uint64_t watched;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&watched,
		.bp_len = sizeof(watched),
		.exclude_kernel = 1,
	};
	int os_errno = try_event(attr);
	switch (os_errno) {
	case 0:
		return YES("mem:ADDRESS");
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return NO("this kernel or processor has none; knob: one with "
			  "CONFIG_HAVE_HW_BREAKPOINT");
	case ENOSPC:
		return NO("all registers are in use; knob: end the debugger that uses them");
	}
	return explain_open(os_errno, 2);
}

struct finding check_tsc(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};
	_cleanup_close_ int fd = open_event(&attr, 0, -1);
	if (fd < 0)
		return explain_open(errno, 2);
	struct perf_event_mmap_page *page = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return explain_open(errno, 2);
	bool is_told = page->cap_user_time_zero;
	munmap(page, getpagesize());
	if (is_told)
		return YES("--tsc");
	return NO("the kernel does not tell how its clock relates to it; "
		  "knob: a machine whose clock is the tsc (clocksource=tsc, not virtual)");
}
