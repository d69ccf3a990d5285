// SPDX-License-Identifier: MIT
#include "test.h"

#include <errno.h>
#include <perfscope/bytes.h>
#include <perfscope/nearest.h>
#include <stdio.h>
#include <sys/resource.h>

TEST(error, each_level_adds_one_clause)
{
	struct ps_error *error = ps_error_os(EACCES, "open %s", "x");
	error = ps_error_context(error, "cpu %d", 3);
	error = ps_error_hint(error, "needs %s", "root");
	ASSERT_STR_EQ(error->message, "cpu 3: open x: Permission denied (needs root)");
	ASSERT_EQ(error->kind, PS_ERROR_PERMISSION);
	ASSERT_EQ(error->os_errno, EACCES);
	ps_error_destroy(error);
}

TEST(error, too_many_files_names_the_limit)
{
	struct rlimit limit;
	char expected[128];
	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	snprintf(expected, sizeof(expected),
		 "x: Too many open files (the limit is %llu: raise it, ulimit -n)",
		 (unsigned long long)limit.rlim_cur);
	struct ps_error *error = ps_error_os(EMFILE, "x");
	ASSERT_STR_EQ(error->message, expected);
	ASSERT_EQ(error->kind, PS_ERROR_LIMIT);
	ps_error_destroy(error);
}

TEST(error, context_and_hint_let_success_through)
{
	ASSERT_NULL(ps_error_context(NULL, "x"));
	ASSERT_NULL(ps_error_hint(NULL, "x"));
	ps_error_destroy(NULL);
}

TEST(error, caret_stands_below_its_column)
{
	struct ps_error *error = ps_error_format(PS_ERROR_USAGE, "bad");
	error = ps_error_caret(error, "cycles,,x", 7);
	ASSERT_STR_EQ(error->detail, "    cycles,,x\n           ^");
	ps_error_destroy(error);
}

TEST(error, caret_of_a_long_text_shows_its_surroundings)
{
	char text[1001];
	memset(text, 'a', 1000);
	text[1000] = 0;
	text[500] = '!';
	struct ps_error *error = ps_error_caret(ps_error_format(PS_ERROR_USAGE, "bad"), text, 500);
	const char *line_end = strchr(error->detail, '\n');
	ASSERT_NOT_NULL(line_end);
	size_t caret = strlen(line_end + 1) - 1;
	ASSERT_EQ(error->detail[caret], '!');
	ASSERT_EQ(line_end - error->detail, 4 + 120);
	ps_error_destroy(error);
}

TEST(bytes, reads_stay_inside)
{
	const uint8_t data[] = { 1, 2, 3, 4, 5 };
	struct ps_bytes bytes = { data, sizeof(data) };
	uint32_t value;
	ASSERT_TRUE(ps_bytes_u32(bytes, 1, &value));
	ASSERT_EQ(value, 0x05040302);
	ASSERT_FALSE(ps_bytes_u32(bytes, 2, &value));
	ASSERT_FALSE(ps_bytes_u32(bytes, SIZE_MAX, &value));
	struct ps_bytes part;
	ASSERT_TRUE(ps_bytes_slice(bytes, 5, 0, &part));
	ASSERT_FALSE(ps_bytes_slice(bytes, 1, SIZE_MAX, &part));
}

TEST(nearest, offers_the_three_nearest_best_first)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, "cycels");
	const char *const names[] = { "instructions", "cycles", "cycle", "xycles", "bicycles" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(names); i++)
		ps_nearest_add(&nearest, names[i]);
	_cleanup_free_ char *text = ps_nearest_text(&nearest);
	ASSERT_STR_EQ(text, "; did you mean cycles, cycle or xycles?");
	ps_nearest_deinit(&nearest);
}

TEST(nearest, says_nothing_when_nothing_is_near)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, "zzz");
	ps_nearest_add(&nearest, "instructions");
	_cleanup_free_ char *text = ps_nearest_text(&nearest);
	ASSERT_STR_EQ(text, "");
	ps_nearest_deinit(&nearest);
}

TEST(nearest, swapped_neighbours_are_one_edit)
{
	ASSERT_EQ(ps_edit_distance("ab", "ba"), 1);
	ASSERT_EQ(ps_edit_distance("Page-Faults", "page-faults"), 0);
	ASSERT_EQ(ps_edit_distance("", "abc"), 3);
}
