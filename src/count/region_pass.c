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

void pass_begin(struct thread *thread, struct pass *pass, int nr_opened)
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

void pass_end(struct thread *thread, struct pass *pass, int nr_calls)
{
	if (pass->depth > 1) {
		// Not told before the outermost ends: where it never does, they are as incomplete as that.
		pass->depth--;
		pass->nr_inner += nr_calls;
		return;
	}
	struct ps_counter_reading now[PS_MAX_COUNTERS];
	uint32_t failed = pass->failed | read_counters(thread, now); // first, see pass_begin
	uint64_t elapsed_ns = ps_monotonic_ns() - pass->start_ns;
	if (PS_UNLIKELY(failed))
		tell_unread(thread, failed);
	nr_calls += pass->nr_inner;
	pass->depth = 0;
	pass->nr_inner = 0;
	for (size_t i = 0; i < thread->setup->nr_sinks; i++) {
		if (PS_UNLIKELY(!pass->slots[i]))
			continue;
		struct ps_region_sums *sums = ps_region_slot_edit(pass->slots[i]);
		sums->calls += nr_calls;
		sums->elapsed_ns += elapsed_ns;
		add_counted(sums, &thread->setup->sinks[i], pass, now, failed);
		ps_region_slot_publish_open(pass->slots[i], -nr_calls);
	}
}

/** Count @nr passes as incomplete, of which @nr_opened were open. */
static void count_incomplete(const struct pass *pass, uint32_t nr, int nr_opened)
{
	for (size_t i = 0; i < NR_SINKS; i++) {
		if (!pass->slots[i])
			continue;
		ps_region_slot_edit(pass->slots[i])->incomplete += nr;
		ps_region_slot_publish_open(pass->slots[i], -nr_opened);
	}
}

void ps_region_enter(struct ps_region *region)
{
	struct thread *thread = thread_ready();
	struct pass *pass = thread ? thread_pass(thread, region) : NULL;
	if (PS_LIKELY(pass))
		pass_begin(thread, pass, 1);
}

void ps_region_leave(struct ps_region *region)
{
	struct thread *thread = thread_ready();
	struct pass *pass = thread ? thread_pass(thread, region) : NULL;
	if (PS_UNLIKELY(!pass))
		return;
	if (PS_LIKELY(pass->depth))
		pass_end(thread, pass, 1);
	else
		count_incomplete(pass, 1, 0);
}

void ps_region_pause(struct ps_region *region)
{
	struct thread *thread = thread_ready();
	struct pass *pass = thread ? thread_pass(thread, region) : NULL;
	if (pass && pass->depth)
		pass_end(thread, pass, 0);
}

void ps_region_resume(struct ps_region *region)
{
	struct thread *thread = thread_ready();
	struct pass *pass = thread ? thread_pass(thread, region) : NULL;
	if (pass)
		pass_begin(thread, pass, 0);
}

void ps_region_abandon(struct ps_region *region)
{
	struct thread *thread = thread_ready();
	struct pass *pass = thread ? thread_pass(thread, region) : NULL;
	if (!pass)
		return;
	uint32_t nr_opened = pass->depth ? 1 : 0;
	pass->depth -= nr_opened;
	if (nr_opened && !pass->depth) {
		nr_opened += pass->nr_inner;
		pass->nr_inner = 0;
	}
	count_incomplete(pass, nr_opened ? nr_opened : 1, nr_opened);
}

bool thread_make_room(struct thread *thread, const struct ps_region *region)
{
	if (region->id < thread->nr_passes)
		return true;
	size_t nr = region->id + 8;
	struct pass **grown = reallocarray(thread->passes, nr, sizeof(*grown));
	if (!grown)
		return false;
	for (size_t i = thread->nr_passes; i < nr; i++)
		grown[i] = NULL;
	thread->passes = grown;
	thread->nr_passes = nr;
	return true;
}

struct pass *thread_make_pass(struct thread *thread, const struct ps_region *region)
{
	if (!thread_make_room(thread, region))
		return NULL;
	struct pass *pass = calloc(1, sizeof(*pass));
	if (!pass)
		return NULL;
	for (size_t i = 0; i < thread->setup->nr_sinks; i++)
		pass->slots[i] = ps_region_table_claim(thread->setup->sinks[i].table, region->name);
	thread->passes[region->id] = pass;
	return pass;
}

static void pass_destroy(struct pass *pass, bool is_of_parent)
{
	if (pass && !is_of_parent) {
		if (pass->depth)
			count_incomplete(pass, pass->depth + pass->nr_inner,
					 pass->depth + pass->nr_inner);
		for (size_t i = 0; i < NR_SINKS; i++) {
			if (pass->slots[i])
				ps_region_slot_release(pass->slots[i]);
		}
	}
	free(pass);
}

void thread_destroy(struct thread *thread, bool is_of_parent)
{
	for (size_t i = 0; i < thread->nr_passes; i++)
		pass_destroy(thread->passes[i], is_of_parent);
	free(thread->passes);
	ps_counter_group_close(thread->group);
	if (thread->link) {
		*thread->link = thread->next;
		if (thread->next)
			thread->next->link = thread->link;
	}
	setup_unref(thread->setup);
	free(thread);
}
