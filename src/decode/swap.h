// SPDX-License-Identifier: MIT
/**
 * What turns the bytes of a record around.
 */
#ifndef PERFSCOPE_DECODE_SWAP_H
#define PERFSCOPE_DECODE_SWAP_H

#include <perfscope/sample.h>

// Parts of 8 bytes that are two words of 4.
#define SWAP_PAIRS (PERF_SAMPLE_TID | PERF_SAMPLE_CPU)

/** Reverse @size bytes. */
static inline void swap_at(uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size / 2; i++) {
		uint8_t byte = data[i];
		data[i] = data[size - 1 - i];
		data[size - 1 - i] = byte;
	}
}

/** Turn @nr words of 8 bytes. */
static inline void swap_words(uint8_t *data, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		swap_at(data + 8 * i, 8);
}

static inline void swap_pair(uint8_t *data)
{
	swap_at(data, 4);
	swap_at(data + 4, 4);
}

/** Turn the parts of a sample. False: it is cut or lies. */
bool sample_swap(const struct ps_sample_layout *layout, struct perf_event_header *header);

/** Turn the trailer of another record, which ends at @end and is inside. */
void trailer_swap(const struct ps_sample_layout *layout, uint8_t *end);

#endif
