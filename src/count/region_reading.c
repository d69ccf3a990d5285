// SPDX-License-Identifier: MIT
/** What a process reads of its own regions. */
#include "engine.h"

/** Take the cost of their passes off the totals of @reading. */
static void take_off_cost(struct ps_regions_reading *reading)
{
	for (size_t i = 0; i < reading->nr; i++)
		ps_regions_take_off(&reading->totals[i].sums, &reading->cost);
}

struct ps_error *ps_regions_read(bool by_thread, struct ps_regions_reading *ret)
{
	*ret = (struct ps_regions_reading){ .setup = setup_get() };
	if (!ret->setup)
		return NULL;
	struct ps_region_table *table = ret->setup->sinks[SINK_OWN].table;
	struct ps_error *error =
		ps_region_table_read(table, by_thread, false, &ret->totals, &ret->nr);
	if (error) {
		ps_regions_reading_release(ret);
		return error;
	}
	ret->counters = ps_region_table_counters(table, &ret->nr_counters);
	ret->nr_groups = ps_region_table_nr_groups(table);
	ret->nr_missed = ps_region_table_nr_missed(table);
	pthread_mutex_lock(&engine_lock);
	ret->cost = ret->setup->cost;
	pthread_mutex_unlock(&engine_lock);
	ret->is_cost_subtracted = ret->setup->is_cost_subtracted;
	if (ret->is_cost_subtracted)
		take_off_cost(ret);
	return NULL;
}

void ps_regions_reading_release(struct ps_regions_reading *reading)
{
	free(reading->totals);
	setup_put(reading->setup);
	*reading = (struct ps_regions_reading){ 0 };
}

const char *ps_regions_reading_reason(const struct ps_regions_reading *reading, size_t index)
{
	if (!reading->setup)
		return NULL;
	return ps_region_table_reason(reading->setup->sinks[SINK_OWN].table, index);
}

struct ps_error *ps_regions_reset(void)
{
	struct setup *setup = setup_get();
	if (!setup)
		return NULL;
	struct ps_error *error = ps_region_table_reset(setup->sinks[SINK_OWN].table);
	setup_put(setup);
	return error;
}
