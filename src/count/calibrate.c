// SPDX-License-Identifier: MIT
#include "engine.h"

#include <string.h>

#define NR_PASSES 1001

/** What each pass counted, one column a quantity. */
struct samples {
	struct ps_region_slot slot;
	uint64_t elapsed_ns[NR_PASSES];
	uint64_t counted[PS_MAX_COUNTERS][3][NR_PASSES];
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

/** One empty pass into a slot of its own, which starts from nothing. */
static void sample(struct samples *samples, struct thread *thread, struct pass *pass, size_t index)
{
	memset(samples->slot.sums, 0, sizeof(samples->slot.sums));
	pass_begin(thread, pass, 1);
	pass_end(thread, pass, 1);
	const struct ps_region_sums *sums =
		&samples->slot.sums[state_sequence(samples->slot.state) & 1];
	samples->elapsed_ns[index] = sums->elapsed_ns;
	for (size_t i = 0; i < thread->setup->sinks[SINK_OWN].nr; i++) {
		samples->counted[i][0][index] = sums->counted[i].value;
		samples->counted[i][1][index] = sums->counted[i].enabled_ns;
		samples->counted[i][2][index] = sums->counted[i].running_ns;
	}
}

struct ps_error *calibrate(struct setup *setup, struct ps_counter_group *group,
			   struct ps_region_sums *ret)
{
	_cleanup_free_ struct samples *samples = aligned_alloc(64, sizeof(*samples));
	if (!samples)
		return &ps_enomem;
	memset(&samples->slot, 0, sizeof(samples->slot));
	const struct sink *own = &setup->sinks[SINK_OWN];
	samples->slot.nr_counters = own->nr;
	struct thread thread = { .setup = setup, .group = group };
	struct pass pass = { .slots = { &samples->slot } };
	for (size_t i = 0; i < NR_PASSES; i++)
		sample(samples, &thread, &pass, i);
	const struct ps_region_sums *last =
		&samples->slot.sums[state_sequence(samples->slot.state) & 1];
	*ret = (struct ps_region_sums){ .calls = NR_PASSES,
					.elapsed_ns = median(samples->elapsed_ns),
					.invalid = last->invalid };
	for (size_t i = 0; i < own->nr; i++)
		ret->counted[i] = (struct ps_counter_reading){ median(samples->counted[i][0]),
							       median(samples->counted[i][1]),
							       median(samples->counted[i][2]) };
	return NULL;
}
