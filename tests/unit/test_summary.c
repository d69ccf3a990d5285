// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/summary.h>

static const struct ps_summary_row ROWS[] = {
	{ .label = "sched:sched_switch",
	  .has_count = true,
	  .count = 2500,
	  .has_lost = true,
	  .lost = 12 },
	{ .label = "cycles" },
	{ .label = "instructions",
	  .has_count = true,
	  .count = 3,
	  .has_coverage = true,
	  .coverage = 0.333 },
	{ .label = "branches", .has_coverage = true, .coverage = 0 },
};

static char *write_rows(const struct ps_summary_header *header)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	ps_summary_write(file, header, ROWS, PS_ARRAY_SIZE(ROWS));
	fclose(file);
	return text;
}

TEST(summary, columns_are_aligned_and_what_is_unknown_is_a_dash)
{
	_cleanup_free_ char *text = write_rows(&(struct ps_summary_header){
		.time = 1.5, .seconds = 0.5, .label_width = 18, .with_title = true });
	ASSERT_STR_EQ(
		text,
		"     TIME  EVENT                       COUNT         RATE/s       LOST  COVERAGE\n"
		"    1.500  sched:sched_switch           2500         5000.0         12         -\n"
		"    1.500  cycles                          -              -          -         -\n"
		"    1.500  instructions                    3            6.0          -     33.3%\n"
		"    1.500  branches                        -              -          -      "
		"0.0%\n");
}

TEST(summary, title_is_written_only_when_due)
{
	_cleanup_free_ char *text = write_rows(
		&(struct ps_summary_header){ .time = 1, .seconds = 1, .label_width = 18 });
	ASSERT_NULL(strstr(text, "COUNT"));
	ASSERT_EQ(strncmp(text, "    1.000  sched:sched_switch           2500         2500.0", 59),
		  0);
}

TEST(usage, share_is_of_the_time_since_the_last)
{
	struct ps_usage last = { .time_ns = 1000000000, .cpu_ns = 500000000 };
	struct ps_usage now = { .time_ns = 3000000000,
				.cpu_ns = 530000000,
				.resident_bytes = 18240000 };
	struct ps_dispatch_counts counts = { .nr_events = 1234, .nr_lost = 5 };
	_cleanup_free_ char *text = ps_usage_text(&last, &now, &counts);
	ASSERT_STR_EQ(text, "cpu 1.5%, memory 18.2 MB, 1234 events, 5 lost");
	counts.nr_throttled = 7;
	_cleanup_free_ char *throttled = ps_usage_text(&last, &now, &counts);
	ASSERT_STR_EQ(throttled,
		      "cpu 1.5%, memory 18.2 MB, 1234 events, 5 lost, 7 times held back");
}

TEST(usage, of_no_time_at_all_is_no_division_by_zero)
{
	struct ps_usage usage = { .time_ns = 1, .cpu_ns = 1 };
	struct ps_dispatch_counts counts = { 0 };
	_cleanup_free_ char *text = ps_usage_text(&usage, &usage, &counts);
	ASSERT_STR_EQ(text, "cpu 0.0%, memory 0.0 MB, 0 events, 0 lost");
}
