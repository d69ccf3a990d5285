// SPDX-License-Identifier: MIT
/**
 * What a process that is forked while an event is handled finds of the rings.
 *
 * The kernel gives a child no copy of them (VM_DONTCOPY, and MADV_DOFORK is refused): the event at hand would be a
 * fault there. So the record that each ring stands at is copied before a fork, and in the child empty memory that holds
 * only that takes the ring's place.
 */
#include "internal.h"

#include <perfscope/ring.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/** The record at the tail of a ring, up to the ring's end: what wraps was copied together elsewhere. */
struct saved {
	size_t size; // 0: none
	uint8_t bytes[PS_RECORD_MAX_SIZE];
};

// A handler of fork finds its state only here.
static struct ps_session *followed;
static struct saved **saved; // by ring; NULL, or an entry of it: no memory, or no record

static void drop_saved(void)
{
	for (size_t i = 0; saved && i < followed->nr_rings; i++)
		free(saved[i]);
	free(saved);
	saved = NULL;
}

static struct saved *save(const struct ps_ring *ring)
{
	uint64_t at = ring->tail & ring->mask;
	const struct perf_event_header *header = (const void *)(ring->data + at);
	if (ring->head - ring->tail < sizeof(*header))
		return NULL;
	uint64_t room = ring->mask + 1 - at;
	struct saved *copy = malloc(sizeof(*copy));
	if (!copy)
		return NULL;
	copy->size = header->size < room ? header->size : room;
	memcpy(copy->bytes, header, copy->size);
	return copy;
}

static void before_fork(void)
{
	saved = followed ? calloc(followed->nr_rings + 1, sizeof(struct saved *)) : NULL;
	for (size_t i = 0; saved && i < followed->nr_rings; i++)
		saved[i] = save(&followed->rings[i]);
}

static void after_fork_in_parent(void)
{
	drop_saved();
}

static void restore(struct ps_ring *ring, const struct saved *copy)
{
	size_t size = ring->data + ring->mask + 1 - (const uint8_t *)ring->page;
	void *page = mmap(ring->page, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	if (page == MAP_FAILED || !copy)
		return;
	memcpy((uint8_t *)ring->data + (ring->tail & ring->mask), copy->bytes, copy->size);
}

static void after_fork_in_child(void)
{
	for (size_t i = 0; followed && i < followed->nr_rings; i++)
		restore(&followed->rings[i], saved ? saved[i] : NULL);
	drop_saved();
}

struct ps_error *ps_session_follow_forks(struct ps_session *session)
{
	static bool is_registered;
	if (!is_registered &&
	    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child))
		return &ps_enomem;
	is_registered = true;
	followed = session;
	return NULL;
}

void ps_session_forget_forks(const struct ps_session *session)
{
	if (followed == session)
		followed = NULL;
}
