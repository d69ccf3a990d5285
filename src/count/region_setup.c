// SPDX-License-Identifier: MIT
#include "engine.h"

void setup_unref(struct setup *setup)
{
	if (!setup || --setup->nr_refs)
		return;
	ps_region_table_destroy(setup->sinks[SINK_OWN].table); // the attached one stays
	free(setup);
}

uint64_t setup_next_number(void)
{
	static _Atomic uint64_t last;
	return atomic_fetch_add(&last, 1) + 1;
}

/** Where @counter stands among those of @setup, added where it is new; -1: there are too many. */
static int setup_add(struct setup *setup, const struct ps_counter *counter)
{
	for (size_t i = 0; i < setup->nr_counters; i++) {
		const struct ps_counter *other = &setup->counters[i];
		if (other->type == counter->type && other->config == counter->config &&
		    other->config1 == counter->config1 && other->config2 == counter->config2 &&
		    other->exclude == counter->exclude)
			return i;
	}
	if (setup->nr_counters == PS_MAX_COUNTERS)
		return -1;
	setup->counters[setup->nr_counters] = *counter;
	return setup->nr_counters++;
}

static struct ps_error *setup_fill(struct setup *setup, enum sink_index index)
{
	struct sink *sink = &setup->sinks[index];
	const struct ps_counter *counters = ps_region_table_counters(sink->table, &sink->nr);
	for (size_t i = 0; i < sink->nr; i++) {
		int place = setup_add(setup, &counters[i]);
		if (place < 0)
			return ps_error_format(PS_ERROR_USAGE,
					       "more than %d counters, with those of perfscope",
					       PS_MAX_COUNTERS);
		sink->indexes[i] = place;
	}
	return NULL;
}

struct ps_error *setup_new(const struct ps_counter *counters, size_t nr, unsigned int group_flags,
			   struct ps_region_table *outer, struct setup **ret)
{
	_cleanup_setup_ struct setup *setup = calloc(1, sizeof(*setup));
	if (!setup)
		return &ps_enomem;
	setup->nr_refs = 1;
	setup->number = setup_next_number();
	setup->group_flags = outer ? ps_region_table_group_flags(outer) : group_flags;
	setup->group_flags &= ~PS_GROUP_STRICT; // a thread's regions go on with what is left
	setup->nr_sinks = outer ? 2 : 1;
	setup->sinks[SINK_ATTACHED].table = outer;
	struct ps_error *error = ps_region_table_create(NULL, counters, nr, group_flags,
							&setup->sinks[SINK_OWN].table);
	if (!error && outer)
		error = setup_fill(setup,
				   SINK_ATTACHED); // first: its events are the first to be opened
	if (!error)
		error = setup_fill(setup, SINK_OWN);
	if (error)
		return error;
	*ret = take_ptr(setup);
	return NULL;
}

struct ps_error *setup_refused_error(const struct setup *setup,
				     const struct ps_counter_group *group, bool is_strict)
{
	const struct sink *own = &setup->sinks[SINK_OWN];
	const char *reason = NULL;
	const char *name = NULL;
	size_t nr = 0;
	for (size_t i = own->nr; i-- > 0;) {
		const char *refused = ps_counter_group_reason(group, own->indexes[i]);
		if (!refused)
			continue;
		reason = refused;
		name = setup->counters[own->indexes[i]].name;
		nr++;
	}
	if (!nr || (!is_strict && nr < own->nr))
		return NULL;
	return ps_error_format(PS_ERROR_UNSUPPORTED, "%s: %s", name, reason);
}

void setup_tell_group(const struct setup *setup, const struct ps_counter_group *group)
{
	for (size_t s = 0; s < setup->nr_sinks; s++) {
		const struct sink *sink = &setup->sinks[s];
		ps_region_table_tell_groups(
			sink->table, ps_counter_group_nr_parts(group, sink->indexes, sink->nr));
		for (size_t i = 0; i < sink->nr; i++) {
			const char *reason = ps_counter_group_reason(group, sink->indexes[i]);
			if (reason)
				ps_region_table_refuse(sink->table, i, reason);
		}
	}
}
