// SPDX-License-Identifier: MIT
/**
 * Record: the bytes as the kernel wrote them, with what every reader needs to know.
 */
#ifndef PERFSCOPE_RECORD_H
#define PERFSCOPE_RECORD_H

#include <perfscope/session.h>

struct ps_record {
	const struct perf_event_header *header; // borrowed from the ring
	struct ps_stream *stream;		// who wrote it; NULL: it names nobody known
	uint64_t time_ns;			// 0: it carries none
	uint32_t ring;
};

/** Read who wrote @header and when; false when the record is cut short or names nobody known. */
static inline bool ps_record_read(const struct ps_session *session,
				  const struct perf_event_header *header, uint32_t ring,
				  struct ps_record *ret)
{
	// PERF_SAMPLE_IDENTIFIER: the id stands first in a sample, last in every other record.
	const uint8_t *start = (const uint8_t *)header;
	uint32_t size = header->size;
	ret->header = header;
	ret->ring = ring;
	ret->stream = NULL;
	ret->time_ns = 0;
	if (PS_UNLIKELY(size < 16))
		return false;
	bool is_sample = header->type == PERF_RECORD_SAMPLE;
	uint64_t id;
	memcpy(&id, is_sample ? start + 8 : start + size - 8, sizeof(id));
	struct ps_stream *stream = ps_session_find(session, id);
	if (PS_UNLIKELY(!stream))
		return false;
	uint32_t at = is_sample ? stream->layout.time : size - stream->layout.trailer_time;
	if (PS_UNLIKELY(at < 8 || at > size - 8))
		return false;
	ret->stream = stream;
	memcpy(&ret->time_ns, start + at, sizeof(ret->time_ns));
	return true;
}

#endif
