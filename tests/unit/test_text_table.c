// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/region.h>
#include <perfscope/region_text.h>

/** What @table writes; freed by the next call. */
static const char *written(const struct ps_text_table *table)
{
	static char *text;
	free(text);
	size_t size;
	FILE *file = open_memstream(&text, &size);
	ASSERT_TRUE(ps_text_table_write(table, file));
	fclose(file);
	return text;
}

TEST(text_table, columns_are_as_wide_as_what_is_in_them)
{
	_cleanup_text_table_ struct ps_text_table table = { .nr_columns = 2 };
	static const char *const cells[] = { "name", "n", "a long name", "1", "\xc3\xa4", "234" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(cells); i++)
		ps_text_table_add(&table, "%s", cells[i]);
	ASSERT_STR_EQ(written(&table), "name           n\n"
				       "a long name    1\n"
				       "\xc3\xa4            234\n");
}

TEST(text_table, characters_may_take_two_columns_or_none)
{
	_cleanup_text_table_ struct ps_text_table table = { .nr_columns = 2 };
	static const char *const cells[] = { "name",	"n",  "\u51e6\u7406", "1",
					     "e\u0301", "22", "\U0001f600",   "3",
					     "\xe9",	"4" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(cells); i++)
		ps_text_table_add(&table, "%s", cells[i]);
	ASSERT_STR_EQ(written(&table), "name   n\n"
				       "\u51e6\u7406   1\n"
				       "e\u0301     22\n"
				       "\U0001f600     3\n"
				       "\xe9      4\n");
}

TEST(text_table, nothing_in_it_is_a_terminals_command)
{
	char text[] = "a\x1b[31m\n\x7f\xc2\x9b\xc2\xa7\u202e\u2066\u2014\xe2";
	ps_text_make_plain(text);
	ASSERT_STR_EQ(text, "a?[31m????\xc2\xa7??????\u2014\xe2");
}

TEST(text_table, an_estimate_is_marked_and_what_is_not_known_is_no_number)
{
	_cleanup_text_table_ struct ps_text_table table = { .nr_columns = 4 };
	const struct ps_counter_reading whole = { 7, 100, 100 }, part = { 7, 100, 50 },
					never = { 0, 100, 0 };
	ps_region_text_add_value(&table, &whole, true);
	ps_region_text_add_value(&table, &part, true);
	ps_region_text_add_value(&table, &never, true);
	ps_region_text_add_value(&table, &whole, false);
	ASSERT_STR_EQ(written(&table), "7  ~14  -  -\n");
}

TEST(text_table, a_report_of_a_program_that_does_not_count_says_so)
{
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	ASSERT_EQ(perfscope_region_report(file), 0);
	fclose(file);
	ASSERT_STR_EQ(text, "no region is counted: call perfscope_region_configure() first\n");
	free(text);
}
