// SPDX-License-Identifier: MIT
#include "engine.h"
#include "group.h"

static inline __attribute__((always_inline)) uint32_t read_counters(const struct thread *thread,
								    struct ps_counter_reading *ret)
{
	if (PS_LIKELY(thread->group))
		return group_read(thread->group, ret);
	return (uint32_t)((1ULL << thread->setup->nr_counters) - 1);
}

static void open_slots(const struct pass *pass, int delta)
{
	for (size_t i = 0; i < NR_SINKS; i++) {
		if (pass->slots[i])
			ps_region_slot_open(pass->slots[i], delta);
	}
}

/** Begin @pass; @nr_opened: 1, or 0 for one that was open before. */
static void pass_begin(struct thread *thread, struct pass *pass, int nr_opened)
{
	if (nr_opened)
		open_slots(pass, nr_opened);
	if (pass->depth++)
		return;
	pass->start_ns = ps_monotonic_ns();
	pass->failed = read_counters(thread, pass->start); // last: nothing of ours is counted
}

static inline void add_counted(struct ps_region_sums *sums, const struct sink *sink,
			       const struct pass *pass, const struct ps_counter_reading *now,
			       uint32_t failed)
{
	for (size_t i = 0; i < sink->nr; i++) {
		size_t index = sink->indexes[i];
		if (PS_UNLIKELY(failed >> index & 1)) {
			sums->invalid |= 1U << i;
			continue;
		}
		struct ps_counter_reading *counted = &sums->counted[i];
		const struct ps_counter_reading *start = &pass->start[index];
		counted->value += now[index].value - start->value;
		counted->enabled_ns += now[index].enabled_ns - start->enabled_ns;
		counted->running_ns += now[index].running_ns - start->running_ns;
	}
}

/** Why those of @failed have no value, where their opening did not tell that. */
static void tell_unread(const struct thread *thread, uint32_t failed)
{
	for (size_t s = 0; s < thread->setup->nr_sinks; s++) {
		const struct sink *sink = &thread->setup->sinks[s];
		for (size_t i = 0; i < sink->nr; i++) {
			if (failed >> sink->indexes[i] & 1)
				ps_region_table_refuse(sink->table, i,
						       "could not be read (the program may have "
						       "closed its descriptor)");
		}
	}
}

static void add_readings(struct ps_counter_reading *sum, const struct ps_counter_reading *other,
			 size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		sum[i].value += other[i].value;
		sum[i].enabled_ns += other[i].enabled_ns;
		sum[i].running_ns += other[i].running_ns;
	}
}

static void parts_add(struct ps_region_parts *parts, const struct ps_region_parts *other)
{
	parts->setup = other->setup;
	parts->nr_inner += other->nr_inner;
	parts->failed |= other->failed;
	parts->elapsed_ns += other->elapsed_ns;
	add_readings(parts->counted, other->counted, PS_MAX_COUNTERS);
}

/** Let @pass, which has been read at its end, have begun as much earlier as @parts counted. */
static __attribute__((noinline)) void pass_take_in(struct thread *thread, struct pass *pass,
						   const struct ps_region_parts *parts)
{
	if (parts->setup != thread->setup->number)
		return;
	pass->nr_inner += parts->nr_inner;
	pass->failed |= parts->failed;
	pass->start_ns -= parts->elapsed_ns;
	for (size_t i = 0; i < thread->setup->nr_counters; i++) {
		pass->start[i].value -= parts->counted[i].value;
		pass->start[i].enabled_ns -= parts->counted[i].enabled_ns;
		pass->start[i].running_ns -= parts->counted[i].running_ns;
	}
}

static __attribute__((noinline)) void take_in_held(struct thread *thread, struct pass *pass)
{
	pass_take_in(thread, pass, pass->held);
	free(pass->held);
	pass->held = NULL;
}

/** Keep @parts of a pass that ended inside the one that is open. No memory: their counters have no value then. */
static void hold(const struct thread *thread, struct pass *pass,
		 const struct ps_region_parts *parts)
{
	if (!parts || parts->setup != thread->setup->number)
		return;
	pass->nr_inner += parts->nr_inner;
	if (!pass->held)
		pass->held = calloc(1, sizeof(*pass->held));
	if (!pass->held) {
		pass->failed = -1;
		return;
	}
	uint32_t nr_held = pass->held->nr_inner;
	parts_add(pass->held, parts);
	pass->held->nr_inner = nr_held; // counted already
}

/**
 * End @pass where it is the outermost, with what was counted; @parts: of before, or NULL.
 *
 * Inline, without @parts in the way of most passes.
 */
static inline __attribute__((always_inline)) void pass_end(struct thread *thread, struct pass *pass,
							   const struct ps_region_parts *parts)
{
	if (pass->depth > 1) {
		// Not told before the outermost ends: where it never does, they are as incomplete as that.
		pass->depth--;
		pass->nr_inner++;
		hold(thread, pass, parts);
		return;
	}
	struct ps_counter_reading now[PS_MAX_COUNTERS];
	uint32_t failed = read_counters(thread, now); // first, see pass_begin
	uint64_t now_ns = ps_monotonic_ns();
	if (parts)
		pass_take_in(thread, pass, parts);
	if (PS_UNLIKELY(pass->held))
		take_in_held(thread, pass);
	uint64_t elapsed_ns = now_ns - pass->start_ns;
	failed |= pass->failed;
	if (PS_UNLIKELY(failed))
		tell_unread(thread, failed);
	uint32_t nr_calls = 1 + pass->nr_inner;
	pass->depth = 0;
	pass->nr_inner = 0;
	for (size_t i = 0; i < thread->setup->nr_sinks; i++) {
		if (PS_UNLIKELY(!pass->slots[i]))
			continue;
		struct ps_region_sums *sums = ps_region_slot_edit(pass->slots[i]);
		sums->calls += nr_calls;
		sums->elapsed_ns += elapsed_ns;
		add_counted(sums, &thread->setup->sinks[i], pass, now, failed);
		ps_region_slot_publish_open(pass->slots[i], -(int)nr_calls);
	}
}

/** Put what @pass counted since it began, or was resumed, into @parts. */
static void pass_pause(struct thread *thread, struct pass *pass, struct ps_region_parts *parts)
{
	struct ps_region_parts part = { .setup = thread->setup->number };
	part.failed = pass->failed | read_counters(thread, part.counted); // first, see pass_begin
	part.elapsed_ns = ps_monotonic_ns() - pass->start_ns;
	for (size_t i = 0; i < thread->setup->nr_counters; i++) {
		part.counted[i].value -= pass->start[i].value;
		part.counted[i].enabled_ns -= pass->start[i].enabled_ns;
		part.counted[i].running_ns -= pass->start[i].running_ns;
	}
	part.nr_inner = pass->nr_inner;
	if (pass->held)
		parts_add(&part, pass->held);
	free(pass->held);
	pass->held = NULL;
	pass->nr_inner = 0;
	pass->depth = 0;
	if (parts->setup == part.setup)
		parts_add(parts, &part);
	else if (!parts->setup)
		*parts = part;
}

void pass_count_incomplete(const struct pass *pass, uint32_t nr, int nr_opened)
{
	for (size_t i = 0; i < NR_SINKS; i++) {
		if (!pass->slots[i])
			continue;
		ps_region_slot_edit(pass->slots[i])->incomplete += nr;
		ps_region_slot_publish_open(pass->slots[i], -nr_opened);
	}
}

/** What the calling thread has of @region; NULL: nobody looks, or there is no memory. */
static inline __attribute__((always_inline)) struct pass *find_pass(const struct ps_region *region,
								    struct thread **ret)
{
	*ret = thread_ready();
	return *ret ? thread_pass(*ret, region) : NULL;
}

void ps_region_enter(struct ps_region *region)
{
	struct thread *thread;
	struct pass *pass = find_pass(region, &thread);
	if (PS_LIKELY(pass))
		pass_begin(thread, pass, 1);
}

bool ps_region_is_open(struct ps_region *region)
{
	struct thread *thread;
	const struct pass *pass = find_pass(region, &thread);
	return pass && pass->depth;
}

void ps_region_leave(struct ps_region *region)
{
	struct thread *thread;
	struct pass *pass = find_pass(region, &thread);
	if (PS_UNLIKELY(!pass))
		return;
	if (PS_LIKELY(pass->depth))
		pass_end(thread, pass, NULL);
	else
		pass_count_incomplete(pass, 1, 0);
}

void ps_region_pause(struct ps_region *region, struct ps_region_parts *parts)
{
	struct thread *thread;
	struct pass *pass = find_pass(region, &thread);
	if (!pass || !pass->depth)
		return;
	if (pass->depth > 1)
		pass->depth--;
	else
		pass_pause(thread, pass, parts);
}

void ps_region_resume(struct ps_region *region)
{
	struct thread *thread;
	struct pass *pass = find_pass(region, &thread);
	if (pass)
		pass_begin(thread, pass, 0);
}

/** Whether a pass with @parts began before the last configure, or in the parent of this process. */
static bool is_of_before(const struct thread *thread, const struct ps_region_parts *parts)
{
	return parts && parts->setup && parts->setup != thread->setup->number;
}

void ps_region_leave_with(struct ps_region *region, const struct ps_region_parts *parts)
{
	struct thread *thread;
	struct pass *pass = find_pass(region, &thread);
	if (PS_UNLIKELY(!pass))
		return;
	if (PS_LIKELY(pass->depth && !is_of_before(thread, parts)))
		pass_end(thread, pass, parts);
	else
		ps_region_abandon(region, parts);
}

/** One pass less in @pass; returns how many are incomplete by that, with those inside where it was the outermost. */
static uint32_t drop(struct pass *pass)
{
	if (--pass->depth)
		return 1;
	uint32_t nr = 1 + pass->nr_inner;
	pass->nr_inner = 0;
	free(pass->held);
	pass->held = NULL;
	return nr;
}

void ps_region_abandon(struct ps_region *region, const struct ps_region_parts *parts)
{
	struct thread *thread;
	struct pass *pass = find_pass(region, &thread);
	if (!pass)
		return;
	uint32_t nr_opened = pass->depth ? drop(pass) : 0;
	if (is_of_before(thread, parts)) // it was not opened here, but those inside were
		pass_count_incomplete(pass, nr_opened ? nr_opened : 1,
				      nr_opened ? nr_opened - 1 : 0);
	else if (parts && nr_opened)
		pass_count_incomplete(pass, nr_opened + parts->nr_inner,
				      nr_opened + parts->nr_inner);
	else
		pass_count_incomplete(pass, nr_opened ? nr_opened : 1, nr_opened);
}
