// SPDX-License-Identifier: MIT
/**
 * Byte order: records of a machine of the other one are turned into ours once, where they come in. All that reads records
 * then knows one order. Raw data, stacks and AUX data stay as they are: what is in raw data only the schema knows, whose
 * fields are is_swapped.
 */
#ifndef PERFSCOPE_BYTE_ORDER_H
#define PERFSCOPE_BYTE_ORDER_H

#include <perfscope/sample.h>

/** Turn type, misc and size in place. */
void ps_header_swap(struct perf_event_header *header);

/**
 * The id in a record of which only the header is turned, written with PERF_SAMPLE_IDENTIFIER: the first word of a sample,
 * the last of another record. It tells the layout. False: the record is too short.
 */
bool ps_record_swapped_id(const struct perf_event_header *header, uint64_t *ret);

/**
 * Turn all behind the header in place. The header is turned, and its size bytes are there.
 *
 * @layout is that of the record's event; NULL where the event has no sample_id_all and it is no sample.
 * False: the record is cut, its sizes lie, or its type is not known; such a record is not to be read.
 */
bool ps_record_swap(const struct ps_sample_layout *layout, struct perf_event_header *header);

#endif
