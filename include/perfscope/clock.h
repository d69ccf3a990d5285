// SPDX-License-Identifier: MIT
/**
 * The clock of a session: what `_time` counts, and how it is read from user space.
 */
#ifndef PERFSCOPE_CLOCK_H
#define PERFSCOPE_CLOCK_H

#include <linux/perf_event.h>
#include <perfscope/error.h>
#include <stdbool.h>
#include <stdint.h>

enum ps_clock_kind {
	PS_CLOCK_MONOTONIC, // the default: Python's time.monotonic_ns(), bpftrace's nsecs
	PS_CLOCK_MONOTONIC_RAW,
	PS_CLOCK_BOOTTIME,
	PS_CLOCK_REALTIME,
	PS_CLOCK_TAI,
	PS_CLOCK_PERF, // the kernel's local_clock(), as perf record uses without -k
};

/** How `_time` shows a time of the clock: --clock-offset, --tsc. */
struct ps_time_view {
	int64_t offset_ns;
	bool is_tsc; // show the time stamp counter: clock is PS_CLOCK_PERF and the rest is set
	uint64_t time_zero; // of perf_event_mmap_page
	uint32_t time_mult;
	uint16_t time_shift;
};

/** What `_time` shows for @time_ns. Inverse of the conversion in linux/perf_event.h at time_zero. */
static inline uint64_t ps_time_view(const struct ps_time_view *view, uint64_t time_ns)
{
	if (!view->is_tsc)
		return time_ns + view->offset_ns;
	uint64_t time = time_ns - view->time_zero;
	uint64_t quotient = time / view->time_mult, remainder = time % view->time_mult;
	return (quotient << view->time_shift) + (remainder << view->time_shift) / view->time_mult +
	       view->offset_ns;
}

struct ps_clock {
	enum ps_clock_kind kind;
	int perf_fd; // PS_CLOCK_PERF: a disabled-free event whose time_enabled is read, else -1
	int64_t perf_offset_ns;	    // PS_CLOCK_PERF: clock = time_enabled + this
	int64_t realtime_offset_ns; // realtime = clock + this, as last measured
	struct ps_time_view view;   // zero: as it is
};

/** The kind called @name ("monotonic", "perf", ...); PS_ERROR_USAGE with the names there are. */
struct ps_error *ps_clock_parse(const char *name, enum ps_clock_kind *ret);

/**
 * The clock that records are timed by so that @kind can be shown: for events of any PMU the kernel takes only clocks that
 * an NMI can read, so for the others it is CLOCK_MONOTONIC.
 */
enum ps_clock_kind ps_clock_of_records(enum ps_clock_kind kind);

/** How far @kind is ahead of ps_clock_of_records(@kind) now, ns. */
int64_t ps_clock_ahead_ns(enum ps_clock_kind kind);

/** Make the clock readable and measure its offset from the wall clock. */
struct ps_error *ps_clock_open(struct ps_clock *clock, enum ps_clock_kind kind);
void ps_clock_close(struct ps_clock *clock);

/** Set use_clockid and clockid of @attr. */
void ps_clock_apply(const struct ps_clock *clock, struct perf_event_attr *attr);

/** Now, in ns of this clock. */
uint64_t ps_clock_now_ns(const struct ps_clock *clock);

/** Measure realtime_offset_ns again; the wall clock may have been set. */
void ps_clock_sync(struct ps_clock *clock);

#endif
