// SPDX-License-Identifier: MIT
#include <perfscope/losses.h>

struct ps_error *ps_losses_init(struct ps_losses *losses, size_t nr_rings)
{
	*losses = (struct ps_losses){ .nr_rings = nr_rings };
	losses->rings = calloc(nr_rings ? nr_rings : 1, sizeof(*losses->rings));
	return losses->rings ? NULL : &ps_enomem;
}

void ps_losses_deinit(struct ps_losses *losses)
{
	free(losses->rings);
	losses->rings = NULL;
}

void ps_losses_follow(struct ps_losses *losses, const struct ps_record *record)
{
	const struct perf_event_header *header = record->header;
	struct ps_bytes bytes = { (const uint8_t *)header, header->size };
	// struct { header; u64 id; u64 lost; } and struct { header; u64 lost; }
	size_t offset = header->type == PERF_RECORD_LOST ? 16 : 8;
	uint64_t nr;
	if (header->type != PERF_RECORD_LOST && header->type != PERF_RECORD_LOST_SAMPLES)
		return;
	if (ps_bytes_u64(bytes, offset, &nr))
		losses->rings[record->ring].pending += nr;
}

void ps_losses_throttle(struct ps_losses *losses, const struct ps_record *record)
{
	if (record->header->type != PERF_RECORD_THROTTLE || !record->stream)
		return;
	record->stream->throttled++;
	losses->nr_throttled++;
}

void ps_losses_gap(struct ps_losses *losses, uint32_t ring, uint64_t time_ns)
{
	losses->rings[ring].gap_ns = time_ns ? time_ns : 1;
}

/** The counted loss first: the one that nobody counted begins at the same sample. */
static void take_loss(struct ps_ring_losses *at, uint64_t end_ns, uint64_t nr, struct ps_loss *ret)
{
	*ret = (struct ps_loss){ at->last_ns, end_ns, nr, .is_unknown = !nr };
	if (nr)
		at->pending = 0;
	else
		at->gap_ns = 0;
	at->told += nr;
}

bool ps_losses_sample_slow(struct ps_ring_losses *at, uint64_t time_ns, struct ps_loss *ret)
{
	bool is_behind_gap = at->gap_ns && time_ns >= at->gap_ns;
	if (!at->pending && !is_behind_gap)
		return false;
	take_loss(at, time_ns, at->pending, ret);
	if (!is_behind_gap || !at->gap_ns) // else that is next, and begins where this one did
		at->last_ns = time_ns;
	return true;
}

void ps_losses_drop(struct ps_losses *losses, uint32_t ring)
{
	losses->rings[ring].dropped++;
	losses->rings[ring].pending++;
}

/** What the kernel counted as lost on @ring, of sources only. */
static uint64_t kernel_count(const struct ps_session *session, uint32_t ring)
{
	uint64_t nr = 0;
	for (size_t i = 0; i < session->nr_streams; i++) {
		const struct ps_stream *stream = &session->streams[i];
		if (stream->source && stream->ring == ring)
			nr += stream->lost;
	}
	return nr;
}

bool ps_losses_finish(struct ps_losses *losses, const struct ps_session *session, uint32_t ring,
		      uint64_t now_ns, struct ps_loss *ret)
{
	struct ps_ring_losses *at = &losses->rings[ring];
	uint64_t nr = at->pending;
	uint64_t counted = kernel_count(session, ring) + at->dropped;
	if (counted > at->told + nr)
		nr = counted - at->told;
	if (!nr && !at->gap_ns)
		return false;
	take_loss(at, now_ns, nr, ret);
	losses->nr_told += nr;
	return true;
}
