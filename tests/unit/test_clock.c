// SPDX-License-Identifier: MIT
#include "test.h"

#include <errno.h>
#include <perfscope/clock.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

static uint64_t gettime_ns(clockid_t id)
{
	struct timespec time;
	clock_gettime(id, &time);
	return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

static const struct {
	const char *name;
	enum ps_clock_kind kind;
	clockid_t id;
} system_clocks[] = {
	{ "monotonic", PS_CLOCK_MONOTONIC, CLOCK_MONOTONIC },
	{ "monotonic_raw", PS_CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_RAW },
	{ "boottime", PS_CLOCK_BOOTTIME, CLOCK_BOOTTIME },
	{ "realtime", PS_CLOCK_REALTIME, CLOCK_REALTIME },
	{ "tai", PS_CLOCK_TAI, CLOCK_TAI },
};

TEST(clock, each_name_is_its_kind)
{
	enum ps_clock_kind kind;
	for (size_t i = 0; i < PS_ARRAY_SIZE(system_clocks); i++) {
		ASSERT_OK(ps_clock_parse(system_clocks[i].name, &kind));
		ASSERT_EQ(kind, system_clocks[i].kind);
	}
	ASSERT_OK(ps_clock_parse("perf", &kind));
	ASSERT_EQ(kind, PS_CLOCK_PERF);
}

TEST(clock, an_unknown_name_is_told_with_those_there_are)
{
	enum ps_clock_kind kind = PS_CLOCK_TAI;
	ASSERT_ERROR(ps_clock_parse("mono", &kind), PS_ERROR_USAGE,
		     "unknown clock \"mono\"; there are monotonic, monotonic_raw, boottime, "
		     "realtime, tai and perf");
	ASSERT_EQ(kind, PS_CLOCK_TAI);
}

TEST(clock, now_lies_between_two_readings_of_the_system_clock)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(system_clocks); i++) {
		struct ps_clock clock;
		ASSERT_OK(ps_clock_open(&clock, system_clocks[i].kind));
		uint64_t before = gettime_ns(system_clocks[i].id);
		uint64_t now = ps_clock_now_ns(&clock);
		uint64_t after = gettime_ns(system_clocks[i].id);
		ASSERT_TRUE(before <= now && now <= after);
		ps_clock_close(&clock);
	}
}

TEST(clock, a_view_adds_an_offset_or_is_the_time_stamp_counter)
{
	struct ps_time_view view = { .offset_ns = -7 };
	ASSERT_EQ(ps_time_view(&view, 1000), 993);
	// Two ticks a nanosecond, 40 of them at time 1000; then three ticks in two.
	view = (struct ps_time_view){ .offset_ns = 40,
				      .is_tsc = true,
				      .time_zero = 1000,
				      .time_mult = 512,
				      .time_shift = 10 };
	ASSERT_EQ(ps_time_view(&view, 1000), 40);
	ASSERT_EQ(ps_time_view(&view, 1500), 1040);
	ASSERT_TRUE(ps_time_view(&view, 1000 + (1ULL << 62)) == (1ULL << 63) + 40);
	view.time_mult = 683;
	ASSERT_EQ(ps_time_view(&view, 1000 + 683 * 7 + 5), 7 * 1024 + 5 * 1024 / 683 + 40);
}

TEST(clock, apply_sets_the_clock_id_and_none_for_perf)
{
	struct perf_event_attr attr = { 0 };
	for (size_t i = 0; i < PS_ARRAY_SIZE(system_clocks); i++) {
		struct ps_clock clock = { .kind = system_clocks[i].kind };
		ps_clock_apply(&clock, &attr);
		ASSERT_EQ(attr.use_clockid, 1);
		ASSERT_EQ(attr.clockid, system_clocks[i].id);
	}
	struct ps_clock perf = { .kind = PS_CLOCK_PERF };
	ps_clock_apply(&perf, &attr);
	ASSERT_EQ(attr.use_clockid, 0);
	ASSERT_EQ(attr.clockid, 0);
}

TEST(clock, realtime_is_its_own_wall_clock)
{
	struct ps_clock clock;
	ASSERT_OK(ps_clock_open(&clock, PS_CLOCK_REALTIME));
	ASSERT_EQ(clock.realtime_offset_ns, 0);
	ps_clock_close(&clock);
}

TEST(clock, offset_gives_the_wall_clock_to_the_microsecond)
{
	struct ps_clock clock;
	ASSERT_OK(ps_clock_open(&clock, PS_CLOCK_MONOTONIC));
	// The test may be interrupted between its own readings: the narrowest of many counts.
	int64_t least = INT64_MAX;
	for (int i = 0; i < 100; i++) {
		int64_t realtime = ps_clock_now_ns(&clock) + clock.realtime_offset_ns;
		int64_t error = llabs((int64_t)gettime_ns(CLOCK_REALTIME) - realtime);
		if (error < least)
			least = error;
	}
	ASSERT_TRUE(least < 5000);
	ps_clock_close(&clock);
}

TEST(clock, sync_follows_a_wall_clock_that_was_set)
{
	struct ps_clock clock;
	ASSERT_OK(ps_clock_open(&clock, PS_CLOCK_TAI));
	int64_t measured = clock.realtime_offset_ns;
	clock.realtime_offset_ns += 1000000000;
	ps_clock_sync(&clock);
	ASSERT_TRUE(llabs(clock.realtime_offset_ns - measured) < 1000000);
	ps_clock_close(&clock);
}

static struct ps_clock open_perf_or_skip(void)
{
	struct ps_clock clock;
	struct ps_error *error = ps_clock_open(&clock, PS_CLOCK_PERF);
	if (error) {
		ASSERT_EQ(error->kind, PS_ERROR_PERMISSION);
		ps_error_destroy(error);
		SKIP("the clock of the kernel cannot be read by this user");
	}
	return clock;
}

/** A ring of page faults of this thread, sampled with their time; NULL: not permitted. */
static struct perf_event_mmap_page *open_faults(int *fd)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TIME,
	};
	*fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (*fd < 0)
		return NULL;
	void *page = mmap(NULL, 2 * getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	return page == MAP_FAILED ? NULL : page;
}

TEST(clock, perf_is_the_clock_of_samples)
{
	struct ps_clock clock = open_perf_or_skip();
	int fd;
	struct perf_event_mmap_page *page = open_faults(&fd);
	ASSERT_NOT_NULL(page);
	volatile uint8_t *fresh = mmap(NULL, 50 * getpagesize(), PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 50; i++) {
		uint64_t before = ps_clock_now_ns(&clock);
		uint64_t head = page->data_head;
		fresh[i * getpagesize()] = 1;
		uint64_t new_head = page->data_head;
		uint64_t after = ps_clock_now_ns(&clock);
		// A sanitizer touches a page of its own before.
		ASSERT_TRUE(new_head > head);
		uint64_t time;
		memcpy(&time, (uint8_t *)page + getpagesize() + new_head - 8, sizeof(time));
		// The offset is some tens of ns too small at most.
		ASSERT_TRUE(before <= time && time <= after + 1000);
	}
	munmap((void *)fresh, 50 * getpagesize());
	munmap(page, 2 * getpagesize());
	close(fd);
	ps_clock_close(&clock);
	ASSERT_EQ(clock.perf_fd, -1);
}

TEST(clock, perf_stands_still_no_moment_while_the_thread_sleeps)
{
	struct ps_clock clock = open_perf_or_skip();
	uint64_t raw = gettime_ns(CLOCK_MONOTONIC_RAW), perf = ps_clock_now_ns(&clock);
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	int64_t passed_perf = ps_clock_now_ns(&clock) - perf;
	int64_t passed_raw = gettime_ns(CLOCK_MONOTONIC_RAW) - raw;
	ASSERT_TRUE(llabs(passed_perf - passed_raw) < 50000000);
	ps_clock_close(&clock);
}
