// SPDX-License-Identifier: MIT
/** Regions passed often take no more than once. */
#include "regions.h"

#include <pthread.h>

static long resident_kb(void)
{
	long size, resident;
	FILE *file = fopen("/proc/self/statm", "r");
	ASSERT_EQ(fscanf(file, "%ld %ld", &size, &resident), 2);
	fclose(file);
	return resident * (PAGE / 1024);
}

TEST(region_growth, a_million_passes_take_no_memory_and_no_descriptor)
{
	configure("page-faults,task-clock", 0);
	struct ps_region *region = warm("m");
	int nr_descriptors = count_descriptors();
	long before_kb = resident_kb();
	for (int i = 0; i < 1000000; i++) {
		ps_region_enter(region);
		ps_region_leave(region);
	}
	ASSERT_EQ(count_descriptors(), nr_descriptors);
	ASSERT_TRUE(resident_kb() <= before_kb + 1024);
	ASSERT_EQ(sums_of("m")->calls, 1000000);
	ASSERT_TRUE(sums_of("m")->counted[0].value <= 2 ||
		    are_faults(sums_of("m")->counted[0].value, 0));
}

static void *pass_once(void *region)
{
	ps_region_enter(region);
	ps_region_leave(region);
	return NULL;
}

TEST(region_growth, short_threads_leave_nothing_but_their_sums)
{
	configure("page-faults,task-clock", 0);
	struct ps_region *region = warm("short");
	int nr_descriptors = count_descriptors();
	long before_kb = 0;
	for (int i = 0; i < 5000; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, pass_once, region);
		pthread_join(thread, NULL);
		before_kb = i == 1000 ? resident_kb() : before_kb;
	}
	ASSERT_EQ(count_descriptors(), nr_descriptors);
#ifndef __SANITIZE_ADDRESS__ // which keeps what is freed for a while, and looks for leaks itself
	ASSERT_TRUE(resident_kb() <= before_kb + 1024);
#endif
	ASSERT_EQ(sums_of("short")->calls, 5000);
	ASSERT_EQ(sums_of("short")->incomplete, 0);
}
