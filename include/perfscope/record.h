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

/**
 * Read the sample @header, whose id is that of @named (NULL: nobody's), of an event that may have got what was made for
 * another; @ret has the ring, and the time of the record before in it. Where id and time are not its own, @ret gets a
 * copy in the ring's room for records that wrap, in which they are.
 */
bool ps_record_read_shared(struct ps_session *session, const struct perf_event_header *header,
			   struct ps_stream *named, struct ps_record *ret);

/**
 * Read who wrote @header and when; false when the record is cut short or names nobody known.
 *
 * @ret still holds the record before in this ring, or zeros.
 */
static inline bool ps_record_read(struct ps_session *session,
				  const struct perf_event_header *header, uint32_t ring,
				  struct ps_record *ret)
{
	// PERF_SAMPLE_IDENTIFIER: the id stands first in a sample, last in every other record.
	const uint8_t *start = (const uint8_t *)header;
	uint32_t size = header->size;
	ret->header = header;
	ret->ring = ring;
	ret->stream = NULL;
	if (PS_UNLIKELY(size < 16))
		return false;
	bool is_sample = header->type == PERF_RECORD_SAMPLE;
	uint64_t id;
	memcpy(&id, is_sample ? start + 8 : start + size - 8, sizeof(id));
	struct ps_stream *stream = ps_session_find(session, id);
	if (PS_UNLIKELY(!stream || stream->named_at)) {
		if (is_sample && session->nr_named_at)
			return ps_record_read_shared(session, header, stream, ret);
		if (!stream)
			return false;
	}
	uint32_t at = is_sample ? stream->layout.time : size - stream->layout.trailer_time;
	if (PS_UNLIKELY(at < 8 || at > size - 8))
		return false;
	ret->stream = stream;
	memcpy(&ret->time_ns, start + at, sizeof(ret->time_ns));
	return true;
}

#endif
