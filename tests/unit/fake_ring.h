// SPDX-License-Identifier: MIT
/**
 * A plain buffer that poses as the kernel's ring, and records to put into it.
 */
#ifndef PERFSCOPE_FAKE_RING_H
#define PERFSCOPE_FAKE_RING_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_DATA_OFFSET 4096

/** What a sample of IDENTIFIER, TID, TIME, CPU, PERIOD looks like, with room behind. */
struct fake_sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t period;
};

/** A ring of @size bytes; heads and tails start at @start. The caller frees it. */
static inline struct perf_event_mmap_page *fake_ring_create(uint64_t size, uint64_t start)
{
	struct perf_event_mmap_page *page = calloc(1, FAKE_DATA_OFFSET + size);
	page->data_offset = FAKE_DATA_OFFSET;
	page->data_size = size;
	page->data_head = page->data_tail = start;
	return page;
}

/** Write @size bytes at the head, whatever the tail says. */
static inline void fake_ring_write(struct perf_event_mmap_page *page, const void *bytes,
				   size_t size)
{
	uint8_t *data = (uint8_t *)page + page->data_offset;
	for (size_t i = 0; i < size; i++)
		data[(page->data_head + i) & (page->data_size - 1)] = ((const uint8_t *)bytes)[i];
	page->data_head += size;
}

/** Write a record of @size bytes; the bytes behind the header count up from 0. */
static inline void fake_ring_record(struct perf_event_mmap_page *page, uint32_t type, uint16_t size)
{
	uint8_t *bytes = malloc(size < 8 ? 8 : size);
	struct perf_event_header header = { .type = type, .size = size };
	memcpy(bytes, &header, sizeof(header));
	for (size_t i = sizeof(header); i < size; i++)
		bytes[i] = i - sizeof(header);
	fake_ring_write(page, bytes, size < 8 ? 8 : size);
	free(bytes);
}

/** Write a sample of stream @id at @time_ns. */
static inline void fake_ring_sample(struct perf_event_mmap_page *page, uint64_t id,
				    uint64_t time_ns)
{
	struct fake_sample sample = {
		.header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(sample) },
		.id = id,
		.time_ns = time_ns,
	};
	fake_ring_write(page, &sample, sizeof(sample));
}

#endif
