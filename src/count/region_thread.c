// SPDX-License-Identifier: MIT
/** What each thread has of regions, from its first pass to its end. */
#include "engine.h"

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
			pass_count_incomplete(pass, pass->depth + pass->nr_inner,
					      pass->depth + pass->nr_inner);
		for (size_t i = 0; i < NR_SINKS; i++) {
			if (pass->slots[i])
				ps_region_slot_release(pass->slots[i]);
		}
	}
	if (pass)
		free(pass->held);
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
