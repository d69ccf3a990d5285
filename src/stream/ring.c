// SPDX-License-Identifier: MIT
#include <perfscope/ring.h>

#include <string.h>

// data_head and data_tail share a cache line with the producer: give room back in steps, not per record.
#define PUBLISH_STEPS 16

bool ps_ring_init(struct ps_ring *ring, void *page, uint64_t size, int cpu)
{
	struct perf_event_mmap_page *control = page;
	uint64_t offset =
		control->data_offset ? control->data_offset : (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t tail = control->data_tail;
	*ring = (struct ps_ring){
		.page = control,
		.data = (const uint8_t *)page + offset,
		.mask = size - 1,
		.head = tail,
		.tail = tail,
		.published = tail,
		.publish_step = size / PUBLISH_STEPS,
		.cpu = cpu,
		.wrapped = malloc(PS_RECORD_MAX_SIZE),
	};
	return ring->wrapped;
}

void ps_ring_deinit(struct ps_ring *ring)
{
	free(ring->wrapped);
	ring->wrapped = NULL;
}

void ps_ring_drop(struct ps_ring *ring)
{
	ring->nr_bad++;
	ring->tail = ring->head;
	ps_ring_publish(ring);
}

const struct perf_event_header *ps_ring_peek_slow(struct ps_ring *ring)
{
	uint64_t available = ring->head - ring->tail;
	uint64_t at = ring->tail & ring->mask;
	const struct perf_event_header *header = (const void *)(ring->data + at);
	if (available < sizeof(*header) || header->size < sizeof(*header) || header->size % 8 ||
	    header->size > available) {
		ps_ring_drop(ring);
		return NULL;
	}
	uint64_t first = ring->mask + 1 - at;
	memcpy(ring->wrapped, header, first);
	memcpy(ring->wrapped + first, ring->data, header->size - first);
	return (const void *)ring->wrapped;
}
