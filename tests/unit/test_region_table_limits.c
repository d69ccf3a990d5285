// SPDX-License-Identifier: MIT
/** The table of regions with as much, and with as little sense, as can be in it. */
#include "test.h"

#include <linux/perf_event.h>
#include <perfscope/monotonic.h>
#include <perfscope/region_table.h>
#include <sys/shm.h>

static const struct ps_counter counters[] = {
	{ .name = "page-faults", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS },
	{ .name = "task-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK },
};

static void pass(struct ps_region_slot *slot)
{
	ps_region_slot_edit(slot)->calls++;
	ps_region_slot_publish_open(slot, 0);
}

static void write_garbage(const struct ps_region_share *share, int round)
{
	struct shmid_ds status;
	ASSERT_EQ(shmctl(atoi(share->name), IPC_STAT, &status), 0);
	uint8_t *bytes = share->memory;
	for (size_t i = 0; i < status.shm_segsz; i++)
		bytes[i] = round ? rand() : 0xff;
}

TEST(region_table_limits, garbage_in_a_shared_table_leads_nowhere_else)
{
	for (int round = 0; round < 4; round++) {
		struct ps_region_table *table, *opened;
		struct ps_region_share share;
		ASSERT_OK(ps_region_share_create(geteuid(), getegid(), &share));
		ASSERT_OK(ps_region_table_create(&share, counters, 2, 0, &table));
		ASSERT_OK(ps_region_table_open(share.name, &opened));
		struct ps_region_slot *slot = ps_region_table_claim(opened, "name");
		write_garbage(&share, round);
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
		ps_region_share_close(&share);
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
#ifdef __SANITIZE_ADDRESS__
	SKIP("a sanitizer changes how long each takes");
#endif
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
