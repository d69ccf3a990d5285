// SPDX-License-Identifier: MIT
/** Regions as C programs have them, by perfscope/region.h. */
#include "regions.h"

#include <perfscope/region.h>

TEST(region_library, c_names_are_found_by_text_whatever_their_address)
{
	ASSERT_EQ(perfscope_region_configure("page-faults", 0), 0);
	char buffer[100] = "one";
	perfscope_region_begin(buffer);
	perfscope_region_end("one");
	strcpy(buffer, "two");
	perfscope_region_begin(buffer);
	perfscope_region_end(buffer);
	memset(buffer, 'l', 99);
	perfscope_region_begin(buffer);
	perfscope_region_end(buffer);
	struct perfscope_region_total region;
	ASSERT_EQ(perfscope_region_totals("one", &region), 0);
	ASSERT_EQ(region.calls, 1);
	ASSERT_EQ(region.incomplete, 0);
	ASSERT_EQ(perfscope_region_totals("two", &region), 0);
	ASSERT_EQ(region.calls, 1);
	buffer[63] = '\0';
	ASSERT_EQ(perfscope_region_totals(buffer, &region), 0);
	ASSERT_EQ(perfscope_region_totals("three", &region), -1);
	ASSERT_STR_EQ(perfscope_region_error(), "no region 'three' was passed");
}

TEST(region_library, c_totals_have_value_scaled_and_coverage)
{
	ASSERT_EQ(perfscope_region_configure("page-faults, task-clock", 0), 0);
	warm("v");
	perfscope_region_begin("v");
	fault(6);
	perfscope_region_end("v");
	struct perfscope_region_total region;
	ASSERT_EQ(perfscope_region_totals("v", &region), 0);
	ASSERT_EQ(region.nr_values, 2);
	ASSERT_STR_EQ(region.values[0].name, "page-faults");
	ASSERT_EQ(region.values[0].is_valid, 1);
	ASSERT_FAULTS(region.values[0].value, 6);
	ASSERT_TRUE(region.values[0].scaled == (double)region.values[0].value);
	ASSERT_TRUE(region.values[0].coverage == 1.0);
	ASSERT_TRUE(region.seconds > 0);
	ASSERT_EQ(perfscope_region_reset(), 0);
	ASSERT_EQ(perfscope_region_totals("v", &region), -1);
}

TEST(region_library, c_errors_say_why)
{
	ASSERT_EQ(perfscope_region_configure("page-fault", 0), -1);
	ASSERT_STR_EQ(perfscope_region_error(),
		      "unknown counter 'page-fault'; did you mean page-faults?");
	ASSERT_EQ(perfscope_region_configure(NULL, 0), -1);
	ASSERT_STR_EQ(perfscope_region_error(), "no counters named");
	configure("page-faults", 0);
	perfscope_region_begin(NULL);
	ASSERT_STR_EQ(perfscope_region_error(), "a region needs a name");
	struct perfscope_region_total told;
	ASSERT_EQ(perfscope_region_totals(NULL, &told), -1);
}

TEST(region_library, a_name_cannot_break_the_report)
{
	configure("page-faults", 0);
	perfscope_region_begin("two\nlines\x1b[31m");
	perfscope_region_end("two\nlines\x1b[31m");
	char text[4096] = "";
	FILE *file = fmemopen(text, sizeof(text), "w");
	ASSERT_EQ(perfscope_region_report(file), 0);
	fclose(file);
	ASSERT_NOT_NULL(strstr(text, "\ntwo?lines?[31m  "));
}

TEST(region_library, a_c_scope_ends_with_its_block)
{
	ASSERT_EQ(perfscope_region_configure("page-faults", 0), 0);
	for (int i = 0; i < 3; i++) {
		PERFSCOPE_REGION("scope");
		if (i == 1)
			continue;
	}
	struct perfscope_region_total region;
	ASSERT_EQ(perfscope_region_totals("scope", &region), 0);
	ASSERT_EQ(region.calls, 3);
}

TEST(region_library, a_report_is_a_table)
{
	ASSERT_EQ(perfscope_region_configure("page-faults", 0), 0);
	warm("table");
	perfscope_region_begin("table");
	fault(1234);
	perfscope_region_end("table");
	perfscope_region_end("table");
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	ASSERT_EQ(perfscope_region_report(file), 0);
	fclose(file);
	char name[32], calls[32], seconds[32], faults[32];
	const char *second_line = strchr(text, '\n') + 1;
	ASSERT_EQ(sscanf(text, "%s %s %s %s", name, calls, seconds, faults), 4);
	ASSERT_STR_EQ(name, "region");
	ASSERT_STR_EQ(faults, "page-faults");
	ASSERT_EQ(sscanf(second_line, "%s %s %s %s", name, calls, seconds, faults), 4);
	ASSERT_STR_EQ(name, "table");
	ASSERT_STR_EQ(calls, "1");
	ASSERT_STR_EQ(faults, "1234");
	ASSERT_NOT_NULL(strstr(text, "table: 1 pass incomplete"));
	free(text);
}

TEST(region_library, what_finds_no_room_is_told)
{
	ASSERT_EQ(perfscope_region_configure("page-faults", 0), 0);
	char name[16];
	for (int i = 0; i < PS_REGION_TABLE_SLOTS + 3; i++) {
		sprintf(name, "full%d", i);
		perfscope_region_begin(name);
		perfscope_region_end(name);
	}
	ASSERT_EQ(read_anew()->nr_missed, 3);
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	ASSERT_EQ(perfscope_region_report(file), 0);
	fclose(file);
	ASSERT_NOT_NULL(strstr(text, "no room for a region in a thread, 3 times"));
	free(text);
	configure("page-faults", 0);
	ASSERT_EQ(read_anew()->nr_missed, 0);
}

TEST(region_library, a_pass_that_has_not_ended_is_open)
{
	configure("page-faults", 0);
	perfscope_region_begin("begun");
	struct perfscope_region_total total;
	ASSERT_EQ(perfscope_region_totals("begun", &total), 0);
	ASSERT_EQ(total.calls, 0);
	ASSERT_EQ(total.open, 1);
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	ASSERT_EQ(perfscope_region_report(file), 0);
	fclose(file);
	ASSERT_NOT_NULL(strstr(text, "begun: 1 pass open\n"));
	free(text);
	perfscope_region_end("begun");
	ASSERT_EQ(perfscope_region_totals("begun", &total), 0);
	ASSERT_EQ(total.calls, 1);
	ASSERT_EQ(total.open, 0);
}
