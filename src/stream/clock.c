// SPDX-License-Identifier: MIT
#include <perfscope/clock.h>

#include <errno.h>
#include <perfscope/monotonic.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define ONLINE_CPUS "/sys/devices/system/cpu/online"

// Samples that tie time_enabled to the kernel's clock: so many, this far apart.
#define NR_PERF_SAMPLES 8
#define PERF_PERIOD_NS 100000
#define PERF_TIMEOUT_MS 2000

// Another clock is read between two readings of ours; the tightest of so many pairs counts.
#define NR_SYNCS 5

/** Names, and clock ids as both clock_gettime and perf_event_attr take them. */
static const struct {
	const char *name;
	clockid_t id;
} clocks[] = {
	[PS_CLOCK_MONOTONIC] = { "monotonic", CLOCK_MONOTONIC },
	[PS_CLOCK_MONOTONIC_RAW] = { "monotonic_raw", CLOCK_MONOTONIC_RAW },
	[PS_CLOCK_BOOTTIME] = { "boottime", CLOCK_BOOTTIME },
	[PS_CLOCK_REALTIME] = { "realtime", CLOCK_REALTIME },
	[PS_CLOCK_TAI] = { "tai", CLOCK_TAI },
	[PS_CLOCK_PERF] = { "perf", -1 },
};

struct ps_error *ps_clock_parse(const char *name, enum ps_clock_kind *ret)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(clocks); i++) {
		if (strcmp(clocks[i].name, name))
			continue;
		*ret = i;
		return NULL;
	}
	return ps_error_format(PS_ERROR_USAGE,
			       "unknown clock \"%s\"; there are monotonic, monotonic_raw, "
			       "boottime, realtime, tai and perf",
			       name);
}

/** How far the clock @id is ahead of @clock now. */
static int64_t measure_ahead_ns(const struct ps_clock *clock, clockid_t id)
{
	uint64_t least_width = UINT64_MAX;
	int64_t ahead_ns = 0;
	for (int i = 0; i < NR_SYNCS; i++) {
		uint64_t before = ps_clock_now_ns(clock);
		uint64_t other = ps_clock_gettime_ns(id);
		uint64_t width = ps_clock_now_ns(clock) - before;
		if (width >= least_width)
			continue;
		least_width = width;
		ahead_ns = other - (before + width / 2);
	}
	return ahead_ns;
}

enum ps_clock_kind ps_clock_of_records(enum ps_clock_kind kind)
{
	bool is_taken = kind == PS_CLOCK_MONOTONIC || kind == PS_CLOCK_MONOTONIC_RAW ||
			kind == PS_CLOCK_PERF;
	return is_taken ? kind : PS_CLOCK_MONOTONIC;
}

int64_t ps_clock_ahead_ns(enum ps_clock_kind kind)
{
	if (ps_clock_of_records(kind) == kind)
		return 0;
	struct ps_clock clock = { .kind = PS_CLOCK_MONOTONIC };
	return measure_ahead_ns(&clock, clocks[kind].id);
}

/** The lowest CPU that is online; 0 where sysfs does not say. */
static int first_online_cpu(void)
{
	int cpu = 0;
	_cleanup_fclose_ FILE *file = fopen(ONLINE_CPUS, "re");
	if (!file || fscanf(file, "%d", &cpu) != 1)
		return 0;
	return cpu;
}

/**
 * Open a counter on all of one CPU, whose time_enabled runs on the kernel's clock without a pause.
 *
 * One on a thread would stand still while the thread does.
 */
static struct ps_error *open_cpu_clock(int *ret)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PERF_PERIOD_NS,
		.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_READ,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.wakeup_events = NR_PERF_SAMPLES,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, first_online_cpu(), -1,
			 PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0) {
		*ret = fd;
		return NULL;
	}
	struct ps_error *error = ps_error_os(errno, "clock perf: open an event of a CPU");
	if (error->kind == PS_ERROR_PERMISSION)
		return ps_error_hint(error, "needs CAP_PERFMON or kernel.perf_event_paranoid=0; "
					    "or take --clock=monotonic");
	return error;
}

/** A sample of open_cpu_clock's event. */
struct clock_sample {
	struct perf_event_header header;
	uint64_t time_ns;
	uint64_t value;
	uint64_t enabled_ns;
};

/** Clock less time_enabled, from the samples in the @size bytes at @data; false: there is none. */
static bool find_offset(const uint8_t *data, uint64_t size, int64_t *ret)
{
	bool is_found = false;
	struct clock_sample sample;
	for (uint64_t at = 0; at + sizeof(sample) <= size; at += sample.header.size) {
		memcpy(&sample, data + at, sizeof(sample));
		if (sample.header.size < sizeof(sample.header))
			break;
		if (sample.header.type != PERF_RECORD_SAMPLE)
			continue;
		// The kernel takes the time a little before it works out time_enabled: the largest
		// difference is the nearest.
		int64_t offset = sample.time_ns - sample.enabled_ns;
		if (!is_found || offset > *ret)
			*ret = offset;
		is_found = true;
	}
	return is_found;
}

/** Let the event of @fd sample for a moment, then no more; it goes on counting. */
static struct ps_error *measure_perf_offset(int fd, int64_t *ret)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *page =
		mmap(NULL, 2 * page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return ps_error_os(errno, "clock perf: map a ring");
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	poll(&wait, 1, PERF_TIMEOUT_MS);
	uint64_t never = UINT64_C(1) << 62;
	ioctl(fd, PERF_EVENT_IOC_PERIOD, &never);
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t size = head < page_size ? head : page_size;
	bool is_found = find_offset((const uint8_t *)page + page_size, size, ret);
	munmap(page, 2 * page_size);
	if (is_found)
		return NULL;
	return ps_error_format(PS_ERROR_UNSUPPORTED,
			       "clock perf: the kernel gave no sample to read its clock by; "
			       "take --clock=monotonic");
}

struct ps_error *ps_clock_open(struct ps_clock *clock, enum ps_clock_kind kind)
{
	struct ps_clock opened = { .kind = kind, .perf_fd = -1 };
	if (kind == PS_CLOCK_PERF) {
		struct ps_error *error = open_cpu_clock(&opened.perf_fd);
		if (error)
			return error;
		error = measure_perf_offset(opened.perf_fd, &opened.perf_offset_ns);
		if (error) {
			ps_clock_close(&opened);
			return error;
		}
	}
	ps_clock_sync(&opened);
	*clock = opened;
	return NULL;
}

void ps_clock_close(struct ps_clock *clock)
{
	if (clock->perf_fd >= 0)
		close(clock->perf_fd);
	clock->perf_fd = -1;
}

void ps_clock_apply(const struct ps_clock *clock, struct perf_event_attr *attr)
{
	attr->use_clockid = clock->kind != PS_CLOCK_PERF;
	attr->clockid = attr->use_clockid ? clocks[clock->kind].id : 0;
}

uint64_t ps_clock_now_ns(const struct ps_clock *clock)
{
	if (clock->kind != PS_CLOCK_PERF)
		return ps_clock_gettime_ns(clocks[clock->kind].id);
	uint64_t counts[2]; // value, time_enabled
	if (read(clock->perf_fd, counts, sizeof(counts)) != sizeof(counts))
		return 0;
	return counts[1] + clock->perf_offset_ns;
}

void ps_clock_sync(struct ps_clock *clock)
{
	clock->realtime_offset_ns =
		clock->kind == PS_CLOCK_REALTIME ? 0 : measure_ahead_ns(clock, CLOCK_REALTIME);
}
