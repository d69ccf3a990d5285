// SPDX-License-Identifier: MIT
#include "pass_threads.h"

#include <perfscope/cleanup.h>
#include <string.h>

#define NR_BUCKETS 4096 // a power of two
#define MAX_BYTES (64UL << 20)
#define NR_PER_BLOCK 64

/** Memory of so many threads. */
struct block {
	struct block *next;
	_Alignas(8) uint8_t bytes[];
};

struct ps_pass_threads {
	struct ps_pass_thread *buckets[NR_BUCKETS];
	struct ps_pass_thread *free;
	struct block *blocks;
	size_t nr, nr_made, max;
	uint64_t nr_missed;
	size_t size; // of a thread with all behind it
	size_t open_offset, open_size, last_offset, last_size, nr_last;
};

struct ps_pass_threads *ps_pass_threads_create(const struct ps_pass_options *options)
{
	struct ps_pass_threads *threads = calloc(1, sizeof(*threads));
	if (!threads)
		return NULL;
	size_t counts = (PS_PASS_NR_TIMES + options->nr_counters) * sizeof(uint64_t);
	threads->nr_last = options->scope == PS_PASS_THREAD_CPU ? options->nr_cpus
			   : options->scope == PS_PASS_THREAD	? (size_t)1
								: (size_t)0;
	threads->open_size = sizeof(struct ps_open_pass) + counts;
	threads->last_size = sizeof(struct ps_last_counts) + counts;
	threads->open_offset = sizeof(struct ps_pass_thread) + counts;
	threads->last_offset = threads->open_offset + options->nr_regions * threads->open_size;
	threads->size = threads->last_offset + threads->nr_last * threads->last_size;
	threads->max = options->max_threads ? options->max_threads : MAX_BYTES / threads->size;
	return threads;
}

void ps_pass_threads_destroy(struct ps_pass_threads *threads)
{
	if (!threads)
		return;
	for (struct block *block = threads->blocks; block;) {
		struct block *next = block->next;
		free(block);
		block = next;
	}
	free(threads);
}

static struct ps_pass_thread **bucket_of(const struct ps_pass_threads *threads, int64_t key)
{
	return (struct ps_pass_thread **)&threads->buckets[(uint64_t)key % NR_BUCKETS];
}

struct ps_pass_thread *ps_pass_threads_find(const struct ps_pass_threads *threads, int64_t key)
{
	struct ps_pass_thread *thread = *bucket_of(threads, key);
	while (thread && thread->key != key)
		thread = thread->next;
	return thread;
}

/** Make room for more threads; false: no memory. */
static bool grow(struct ps_pass_threads *threads)
{
	struct block *block = malloc(sizeof(*block) + NR_PER_BLOCK * threads->size);
	if (!block)
		return false;
	block->next = threads->blocks;
	threads->blocks = block;
	for (size_t i = 0; i < NR_PER_BLOCK; i++) {
		struct ps_pass_thread *thread = (void *)(block->bytes + i * threads->size);
		thread->next = threads->free;
		threads->free = thread;
	}
	return true;
}

struct ps_pass_thread *ps_pass_threads_add(struct ps_pass_threads *threads, int64_t key)
{
	if (threads->nr >= threads->max || (!threads->free && !grow(threads))) {
		threads->nr_missed++;
		return NULL;
	}
	struct ps_pass_thread *thread = threads->free;
	threads->free = thread->next;
	memset(thread, 0, threads->size);
	thread->key = key;
	struct ps_pass_thread **bucket = bucket_of(threads, key);
	thread->next = *bucket;
	*bucket = thread;
	threads->nr++;
	// It may be one that had no room before: what its counters counted is not known to start here.
	for (size_t i = 0; threads->nr_missed && i < threads->nr_last; i++)
		ps_pass_thread_last(threads, thread, i)->nr_losses = UINT64_MAX;
	return thread;
}

void ps_pass_threads_remove(struct ps_pass_threads *threads, struct ps_pass_thread *thread)
{
	struct ps_pass_thread **at = bucket_of(threads, thread->key);
	while (*at != thread)
		at = &(*at)->next;
	*at = thread->next;
	thread->next = threads->free;
	threads->free = thread;
	threads->nr--;
}

void ps_pass_threads_each(struct ps_pass_threads *threads,
			  void (*call)(struct ps_pass_thread *thread, void *argument,
				       uint32_t ring),
			  void *argument, uint32_t ring)
{
	for (size_t i = 0; threads->nr && i < NR_BUCKETS; i++) {
		for (struct ps_pass_thread *thread = threads->buckets[i]; thread;) {
			struct ps_pass_thread *next = thread->next;
			call(thread, argument, ring);
			thread = next;
		}
	}
}

uint64_t *ps_pass_thread_account(const struct ps_pass_threads *threads,
				 struct ps_pass_thread *thread)
{
	(void)threads;
	return (uint64_t *)(thread + 1);
}

struct ps_open_pass *ps_pass_thread_open(const struct ps_pass_threads *threads,
					 struct ps_pass_thread *thread, size_t region)
{
	return (void *)((uint8_t *)thread + threads->open_offset + region * threads->open_size);
}

struct ps_last_counts *ps_pass_thread_last(const struct ps_pass_threads *threads,
					   struct ps_pass_thread *thread, size_t cpu)
{
	return (void *)((uint8_t *)thread + threads->last_offset + cpu * threads->last_size);
}

size_t ps_pass_threads_nr(const struct ps_pass_threads *threads)
{
	return threads->nr;
}

uint64_t ps_pass_threads_nr_missed(const struct ps_pass_threads *threads)
{
	return threads->nr_missed;
}
