// SPDX-License-Identifier: MIT
#include "engine.h"

#include <string.h>

#define NR_PASSES 1001

/** What each pass counted, one column a quantity. */
struct samples {
	struct ps_region_slot slot;
	uint64_t elapsed_ns[NR_PASSES];
	uint64_t values[PS_MAX_COUNTERS][NR_PASSES];
};

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return (a > b) - (a < b);
}

static uint64_t median(uint64_t *values)
{
	qsort(values, NR_PASSES, sizeof(*values), compare);
	return values[NR_PASSES / 2];
}

static const struct ps_region_sums *whole_sums(const struct ps_region_slot *slot)
{
	return &slot->sums[state_sequence(slot->state) & 1];
}

/** Keep what pass @index wrote into the slot; false: it was not exactly one. */
static bool keep_sample(struct samples *samples, size_t index)
{
	const struct ps_region_sums *sums = whole_sums(&samples->slot);
	samples->elapsed_ns[index] = sums->elapsed_ns;
	for (size_t i = 0; i < samples->slot.nr_counters; i++)
		samples->values[i][index] = sums->counted[i].value;
	return sums->calls == 1;
}

/** Whether @own is still what @thread has of @region: a pass may have configured anew, which destroys both. */
static bool is_kept(const struct thread *thread, const struct pass *own,
		    const struct ps_region *region)
{
	return engine_thread == thread && region->id < thread->nr_passes &&
	       thread->passes[region->id] == own;
}

/** All passes, of which @own tells; false: one failed, or was no whole pass. */
static bool sample_all(struct samples *samples, const struct thread *thread, struct pass *own,
		       struct ps_region *region, ps_region_pass_function *pass, void *argument)
{
	for (size_t i = 0; i < NR_PASSES; i++) {
		memset(samples->slot.sums, 0, sizeof(samples->slot.sums));
		if (!pass(region, argument) || !is_kept(thread, own, region) ||
		    !keep_sample(samples, i))
			return false;
	}
	return true;
}

/** Pass @region with a slot of its own in place of those in the tables, where it is not to be seen. */
static bool sample_aside(struct samples *samples, struct thread *thread, struct ps_region *region,
			 ps_region_pass_function *pass, void *argument)
{
	struct pass *own = calloc(1, sizeof(*own));
	if (!own || !thread_make_room(thread, region)) {
		free(own);
		return false;
	}
	own->slots[SINK_OWN] = &samples->slot;
	struct pass *kept = thread->passes[region->id];
	thread->passes[region->id] = own;
	bool is_whole = sample_all(samples, thread, own, region, pass, argument);
	if (!is_kept(thread, own, region)) {
		free(kept);
		return false;
	}
	thread->passes[region->id] = kept;
	free(own);
	return is_whole;
}

bool ps_regions_calibrate(struct ps_region *region, ps_region_pass_function *pass, void *argument)
{
	struct thread *thread = thread_ready();
	_cleanup_free_ struct samples *samples = aligned_alloc(64, sizeof(*samples));
	if (!thread || !samples)
		return false;
	memset(&samples->slot, 0, sizeof(samples->slot));
	samples->slot.nr_counters = thread->setup->sinks[SINK_OWN].nr;
	if (!sample_aside(samples, thread, region, pass, argument))
		return false;
	struct ps_region_sums measured = { .calls = NR_PASSES,
					   .elapsed_ns = median(samples->elapsed_ns),
					   .invalid = whole_sums(&samples->slot)->invalid };
	for (size_t i = 0; i < samples->slot.nr_counters; i++)
		measured.counted[i].value = median(samples->values[i]);
	pthread_mutex_lock(&engine_lock);
	thread->setup->cost = measured;
	pthread_mutex_unlock(&engine_lock);
	return true;
}

static uint64_t less(uint64_t value, uint64_t cost)
{
	return value > cost ? value - cost : 0;
}

void ps_regions_take_off(struct ps_region_sums *sums, const struct ps_region_sums *cost)
{
	sums->elapsed_ns = less(sums->elapsed_ns, sums->calls * cost->elapsed_ns);
	for (size_t i = 0; i < PS_MAX_COUNTERS; i++) {
		struct ps_counter_reading *counted = &sums->counted[i];
		uint64_t all = sums->calls * cost->counted[i].value;
		// Of what was counted for a part of the time, the part that was counted.
		if (counted->running_ns < counted->enabled_ns)
			all = all * ((double)counted->running_ns / counted->enabled_ns);
		counted->value = less(counted->value, all);
	}
}
