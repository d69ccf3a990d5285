// SPDX-License-Identifier: MIT
/** The table of regions with as much, and with as little sense, as can be in it. */
#include "test.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <perfscope/monotonic.h>
#include <perfscope/region_table.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const struct ps_counter counters[] = {
	{ .name = "page-faults", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS },
	{ .name = "task-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK },
};

static void pass(struct ps_region_slot *slot)
{
	ps_region_slot_edit(slot)->calls++;
	ps_region_slot_publish(slot);
}

static void write_garbage(const char *path, int round)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_TRUE(fd >= 0);
	struct stat status;
	ASSERT_EQ(fstat(fd, &status), 0);
	uint8_t *bytes = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_TRUE(bytes != MAP_FAILED);
	for (off_t i = 0; i < status.st_size; i++)
		bytes[i] = round ? rand() : 0xff;
	munmap(bytes, status.st_size);
	close(fd);
}

TEST(region_table_limits, garbage_in_a_shared_table_leads_nowhere_else)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perfscope-test-%d", getpid());
	for (int round = 0; round < 4; round++) {
		struct ps_region_table *table, *opened;
		ASSERT_OK(ps_region_table_create(path, counters, 2, 0, &table));
		ASSERT_OK(ps_region_table_open(path, &opened));
		struct ps_region_slot *slot = ps_region_table_claim(opened, "name");
		write_garbage(path, round);
		pass(slot);
		ps_region_table_claim(opened, "other");
		size_t nr;
		ASSERT_EQ(ps_region_table_counters(opened, &nr)->config, PERF_COUNT_SW_PAGE_FAULTS);
		ASSERT_EQ(nr, 2);
		for (size_t i = 0; i < PS_MAX_COUNTERS; i++) {
			const char *reason = ps_region_table_reason(table, i);
			ASSERT_TRUE(!reason || strlen(reason) < 256);
		}
		struct ps_region_total *totals;
		ASSERT_OK(ps_region_table_read(table, true, true, &totals, &nr));
		free(totals);
		ps_region_table_destroy(opened);
		ps_region_table_destroy(table);
	}
}

/** The shortest of five reads of @table, which has @nr names. */
static uint64_t read_ns(struct ps_region_table *table, size_t nr)
{
	uint64_t best_ns = UINT64_MAX;
	for (int i = 0; i < 5; i++) {
		struct ps_region_total *totals;
		size_t nr_totals;
		uint64_t start_ns = ps_monotonic_ns();
		ASSERT_OK(ps_region_table_read(table, false, false, &totals, &nr_totals));
		uint64_t taken_ns = ps_monotonic_ns() - start_ns;
		best_ns = taken_ns < best_ns ? taken_ns : best_ns;
		ASSERT_EQ(nr_totals, nr);
		free(totals);
	}
	return best_ns;
}

TEST(region_table_limits, thousands_of_names_are_read_sooner_than_made)
{
	struct ps_region_table *table;
	ASSERT_OK(ps_region_table_create(NULL, counters, 2, 0, &table));
	uint64_t start_ns = ps_monotonic_ns();
	for (int i = 0; i < 8000; i++) {
		char name[PS_REGION_NAME_SIZE];
		snprintf(name, sizeof(name), "name %d", i);
		pass(ps_region_table_claim(table, name));
	}
	uint64_t made_ns = ps_monotonic_ns() - start_ns;
	ASSERT_TRUE(read_ns(table, 8000) < made_ns);
	ps_region_table_destroy(table);
}
