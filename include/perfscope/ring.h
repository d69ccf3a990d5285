// SPDX-License-Identifier: MIT
/**
 * Ring: the kernel's mmap ring of records, read from an address and a size.
 *
 * Layout and barriers: linux/perf_event.h, struct perf_event_mmap_page. A plain buffer can pose as one in tests.
 */
#ifndef PERFSCOPE_RING_H
#define PERFSCOPE_RING_H

#include <linux/perf_event.h>
#include <perfscope/cleanup.h>
#include <stdbool.h>
#include <stdint.h>

#define PS_RECORD_MAX_SIZE 65536 // perf_event_header.size is 16 bits

struct ps_ring {
	struct perf_event_mmap_page *page; // borrowed
	const uint8_t *data;
	uint64_t mask;	       // size of data less 1; the size is a power of two
	uint64_t head;	       // as last read
	uint64_t tail;	       // where the next record starts
	uint64_t published;    // tail as the kernel knows it
	uint64_t publish_step; // publish after so many bytes
	int cpu;	       // -1: any
	uint64_t nr_bad;       // records of impossible size; the rest up to head was dropped
	uint8_t *wrapped;      // PS_RECORD_MAX_SIZE bytes, for a record that wraps; owned
};

/**
 * Read the ring at @page whose data area of @size bytes (a power of two) follows at data_offset, or at the second
 * page where the kernel (before 4.1) tells none. False: no memory; @ring can be deinitialised.
 */
bool ps_ring_init(struct ps_ring *ring, void *page, uint64_t size, int cpu);
void ps_ring_deinit(struct ps_ring *ring);

/** Drop all before head, which cannot be read, and count it as one bad record. */
void ps_ring_drop(struct ps_ring *ring);

/** Read head from the kernel. */
static inline void ps_ring_load_head(struct ps_ring *ring)
{
	ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	if (PS_UNLIKELY(ring->head - ring->tail > ring->mask + 1))
		ps_ring_drop(ring);
}

/** Tell the kernel that all before tail may be overwritten. */
static inline void ps_ring_publish(struct ps_ring *ring)
{
	if (ring->published == ring->tail)
		return;
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
	ring->published = ring->tail;
}

/** Copy together a record that wraps; NULL: it cannot be a record, all up to head is dropped. */
const struct perf_event_header *ps_ring_peek_slow(struct ps_ring *ring);

/**
 * The record at tail, or NULL when there is none before head. It is valid until the ring is advanced.
 */
static inline const struct perf_event_header *ps_ring_peek(struct ps_ring *ring)
{
	uint64_t available = ring->head - ring->tail;
	if (available < sizeof(struct perf_event_header))
		return available ? ps_ring_peek_slow(ring) : NULL;
	uint64_t at = ring->tail & ring->mask;
	const struct perf_event_header *header = (const void *)(ring->data + at);
	// Records are multiples of 8 bytes, so that a header never wraps.
	if (PS_UNLIKELY(header->size < sizeof(*header) || header->size % 8 ||
			header->size > available || at + header->size > ring->mask + 1))
		return ps_ring_peek_slow(ring);
	return header;
}

/** Step over @header, which ps_ring_peek gave. */
static inline void ps_ring_advance(struct ps_ring *ring, const struct perf_event_header *header)
{
	ring->tail += header->size;
	if (ring->tail - ring->published >= ring->publish_step)
		ps_ring_publish(ring);
}

#endif
