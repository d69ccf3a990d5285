// SPDX-License-Identifier: MIT
/** Counters that do not fit on the PMU together: that they were split is told. */
#include "regions.h"

#include "../../src/count/engine.h"
#include "../../src/count/group.h"
#include <perfscope/region.h>

static char text[4096];

static void write_report(void)
{
	memset(text, 0, sizeof(text));
	FILE *file = fmemopen(text, sizeof(text), "w");
	ASSERT_EQ(perfscope_region_report(file), 0);
	fclose(file);
}

TEST(region_split, the_most_groups_of_a_thread_are_kept)
{
	configure("page-faults,task-clock", 0);
	ASSERT_EQ(read_anew()->nr_groups, 1);
	struct ps_region_table *table = atomic_load(&engine_setup)->sinks[SINK_OWN].table;
	for (size_t nr = 1; nr < 4; nr++)
		ps_region_table_tell_groups(table, nr);
	ps_region_table_tell_groups(table, 2);
	ASSERT_EQ(read_anew()->nr_groups, 3);
	configure("page-faults", 0);
	ASSERT_EQ(read_anew()->nr_groups, 1);
}

TEST(region_split, the_report_says_so)
{
	configure("page-faults,task-clock", 0);
	ps_region_enter(warm("x"));
	fault(2);
	ps_region_leave(find("x"));
	assert_faults("x", 1, 2);
	write_report();
	ASSERT_NULL(strstr(text, "groups"));
	ps_region_table_tell_groups(atomic_load(&engine_setup)->sinks[SINK_OWN].table, 2);
	write_report();
	ASSERT_NOT_NULL(strstr(text, "\nthe counters do not fit on the PMU together: they are "
				     "counted in 2 groups, each read at a moment of its own\n"));
}

TEST(region_split, only_the_counters_of_a_table_are_told_to_it)
{
	struct ps_counter_group group = { .nr = 3,
					  .nr_parts = 2,
					  .parts = { { 3, 1, { 0 } }, { 4, 2, { 1, 2 } } } };
	ASSERT_OK(ps_counters_parse("page-faults,task-clock,cpu-clock", counters, &nr_counters));
	struct ps_region_table *outer, *own;
	ASSERT_OK(ps_region_table_create(NULL, counters, 2, 0, &outer));
	ASSERT_OK(ps_region_table_create(NULL, &counters[2], 1, 0, &own));
	struct setup setup = { .nr_sinks = 2,
			       .sinks = { [SINK_ATTACHED] = { outer, 2, { 0, 1 } },
					  [SINK_OWN] = { own, 1, { 2 } } } };
	setup_tell_group(&setup, &group);
	ASSERT_EQ(ps_region_table_nr_groups(outer), 2);
	ASSERT_EQ(ps_region_table_nr_groups(own), 1);
	ps_region_table_destroy(outer);
	ps_region_table_destroy(own);
}
