// SPDX-License-Identifier: MIT
/*
 * Samples of software events that the kernel made for another event.
 *
 * All equal software events of a CPU share what the first of them put together: identifier, time and call stack, in
 * the clock that the first one has; a part that the first one has not is the next one's. So the id can be ours and the time
 * not. What PERF_SAMPLE_READ writes is of the event itself: its id, or that of its group's
 * leader, and its enabled time, which runs on the kernel's clock.
 */
#include "internal.h"

#include <perfscope/bytes.h>
#include <perfscope/merge.h>
#include <string.h>

// The clocks drift apart: after so long their distance is measured again, at most so often and so tightly.
#define ANCHOR_NS 100000000
#define NR_MEASURES 5
#define TIGHT_NS 20000
// A time that is so near to what the enabled time says is taken as it is.
#define NEAR_NS 1000000
// A clock by which records are read so soon after they are written is taken for the session's.
#define SAME_CLOCK_NS 200000000

/* Which streams. */

/** Where the read of @layout has the id: value, both times, id; of a group: number, both times, value, id. */
static uint16_t find_named_at(const struct ps_sample_layout *layout)
{
	return layout->variable + (layout->read_format & PERF_FORMAT_GROUP ? 32 : 24);
}

static uint64_t read_enabled_ns(const struct ps_stream *stream, struct ps_bytes record)
{
	uint64_t enabled_ns = 0;
	bool is_group = stream->layout.read_format & PERF_FORMAT_GROUP;
	ps_bytes_u64(record, stream->named_at - (is_group ? 24 : 16), &enabled_ns);
	return enabled_ns;
}

/** The leader of @stream at its place; itself where it is alone. NULL: the leader is not open there. */
static struct ps_stream *find_leader(struct ps_session *session, struct ps_stream *stream)
{
	if (!stream->source->group)
		return stream;
	for (struct ps_stream *other = stream; other >= session->streams; other--) {
		if (other->source && other->source->group == stream->source->group &&
		    other->source->is_group_leader && other->cpu == stream->cpu &&
		    other->tid == stream->tid)
			return other;
	}
	return NULL;
}

/** Keep @at among the places of the session, in their order. */
static void add_place(struct ps_session *session, uint16_t at)
{
	size_t i = 0;
	while (i < session->nr_named_at && session->named_at[i] < at)
		i++;
	if ((i < session->nr_named_at && session->named_at[i] == at) ||
	    session->nr_named_at == PS_MAX_NAMED_AT)
		return;
	memmove(&session->named_at[i + 1], &session->named_at[i],
		(session->nr_named_at - i) * sizeof(session->named_at[0]));
	session->named_at[i] = at;
	session->nr_named_at++;
}

static void add_stream(struct ps_session *session, struct ps_stream *stream)
{
	if (!stream->source || !stream->source->is_sampling ||
	    !ps_attr_shares_samples(&stream->source->attr) ||
	    !(stream->layout.sample_type & PERF_SAMPLE_READ))
		return;
	struct ps_stream *leader = find_leader(session, stream);
	if (!leader)
		return;
	stream->named_at = find_named_at(&stream->layout);
	// The time of a thread's event stands still while the thread does, that of a cgroup's likewise.
	stream->is_clock =
		stream->tid < 0 && ps_opened_of(session)->target.kind != PS_TARGET_CGROUP;
	stream->anchored_ns = 0;
	stream->next_member = leader->first_member;
	leader->first_member = stream;
	add_place(session, stream->named_at);
}

void ps_shared_build(struct ps_session *session)
{
	if (!session->foreign.begin_ns)
		session->foreign.begin_ns = ps_clock_now_ns(&session->clock);
	for (size_t i = 0; i < session->nr_streams; i++)
		session->streams[i].first_member = session->streams[i].next_member = NULL;
	for (size_t i = 0; i < session->nr_streams; i++)
		add_stream(session, &session->streams[i]);
}

/* Whose. */

/** The one member of @leader's group that can have written at @at what is in @ring under the id of @named. */
static struct ps_stream *find_member(const struct ps_stream *leader, uint16_t at, uint32_t ring,
				     const struct ps_stream *named)
{
	struct ps_stream *found = NULL;
	for (struct ps_stream *stream = leader->first_member; stream;
	     stream = stream->next_member) {
		if (stream->named_at != at || stream->ring != ring)
			continue;
		if (named && named->source->attr.config != stream->source->attr.config)
			continue;
		if (found)
			return NULL;
		found = stream;
	}
	return found;
}

/**
 * Whose sample @record is; NULL: it does not tell.
 *
 * Where layouts differ, what lies at the place of a smaller one is a time of a larger, never a count, which could be
 * equal to an id by chance: so the smaller ones come first.
 */
static struct ps_stream *find_owner(const struct ps_session *session, struct ps_bytes record,
				    uint32_t ring, const struct ps_stream *named)
{
	for (size_t i = 0; i < session->nr_named_at; i++) {
		uint64_t id;
		if (!ps_bytes_u64(record, session->named_at[i], &id))
			return NULL;
		const struct ps_stream *leader = ps_session_find(session, id);
		struct ps_stream *owner =
			leader ? find_member(leader, session->named_at[i], ring, named) : NULL;
		if (owner)
			return owner;
	}
	return NULL;
}

/* When. */

/** Read the session's clock and the enabled time of @stream at one moment; the tightest of some tries counts. */
static bool measure(const struct ps_session *session, struct ps_stream *stream)
{
	uint64_t least_ns = UINT64_MAX;
	for (int i = 0; i < NR_MEASURES && least_ns > TIGHT_NS; i++) {
		struct ps_reading reading;
		uint64_t before_ns = ps_clock_now_ns(&session->clock);
		if (stream->fd < 0 || !ps_stream_read(stream, &reading))
			return false;
		uint64_t width_ns = ps_clock_now_ns(&session->clock) - before_ns;
		if (width_ns >= least_ns)
			continue;
		least_ns = width_ns;
		// That of descriptors before this one is not in a sample.
		stream->anchored_ns = reading.enabled_ns - stream->kept.enabled_ns;
		stream->anchor_ns = before_ns + width_ns / 2 - stream->anchored_ns;
	}
	return true;
}

/** The time of a sample of @stream, taken when it had been enabled for @enabled_ns; false: not known. */
static bool find_time(const struct ps_session *session, struct ps_stream *stream,
		      uint64_t enabled_ns, uint64_t *ret)
{
	if (!stream->is_clock || !enabled_ns)
		return false;
	bool is_fresh = stream->anchored_ns && enabled_ns < stream->anchored_ns + ANCHOR_NS;
	if (!is_fresh && !measure(session, stream))
		return false;
	*ret = enabled_ns + stream->anchor_ns;
	return true;
}

/** How far another clock, by which it is @time_ns, seems to be ahead: no record is read before it is written. */
static int64_t find_ahead(struct ps_session *session, uint64_t time_ns)
{
	struct ps_foreign *foreign = &session->foreign;
	int64_t ahead_ns = time_ns - ps_clock_now_ns(&session->clock);
	// The least that a record was behind is the nearest to how far the clocks are apart.
	if (!foreign->has_ahead || ahead_ns > foreign->ahead_ns)
		foreign->ahead_ns = ahead_ns;
	foreign->has_ahead = true;
	return foreign->ahead_ns;
}

/** Whether @time_ns can be of the session's clock, after the record of @before_ns. */
static bool is_possible(struct ps_session *session, uint64_t time_ns, uint64_t before_ns)
{
	struct ps_foreign *foreign = &session->foreign;
	if (time_ns > foreign->now_ns)
		foreign->now_ns = ps_clock_now_ns(&session->clock);
	return time_ns >= foreign->begin_ns && time_ns <= foreign->now_ns &&
	       time_ns + PS_MERGE_SLACK_NS >= before_ns;
}

/**
 * The best that is known of a thread's sample with @time_ns, after the record of @before_ns in its ring: as it is where it
 * can be of the session's clock, else less what the other clock seems to be ahead.
 */
static uint64_t guess_time(struct ps_session *session, uint64_t time_ns, uint64_t before_ns,
			   bool is_foreign)
{
	bool is_ours = is_possible(session, time_ns, before_ns);
	if (is_ours && !is_foreign)
		return time_ns;
	int64_t ahead_ns = find_ahead(session, time_ns);
	if (is_ours && ahead_ns <= 0 && ahead_ns > -SAME_CLOCK_NS)
		return time_ns;
	uint64_t guess_ns = time_ns - ahead_ns;
	return guess_ns > before_ns ? guess_ns : before_ns;
}

/**
 * The time of @stream's sample @record, which says @time_ns: perhaps by the clock of another program's event, and surely
 * of one where its id is (@is_foreign).
 */
static uint64_t own_time(struct ps_session *session, struct ps_stream *stream,
			 struct ps_bytes record, uint64_t time_ns, uint64_t before_ns,
			 bool is_foreign)
{
	uint64_t own_ns;
	if (!find_time(session, stream, read_enabled_ns(stream, record), &own_ns)) {
		own_ns = guess_time(session, time_ns, before_ns, is_foreign);
		session->foreign.nr_guessed += is_foreign || own_ns != time_ns;
		return own_ns;
	}
	if (own_ns - time_ns + NEAR_NS <= 2 * NEAR_NS)
		return time_ns;
	session->foreign.nr_timed++;
	// What was measured anew can be some microseconds off, and the record before a moment ago.
	bool is_back = own_ns < before_ns && before_ns - own_ns <= NEAR_NS;
	return is_back ? before_ns : own_ns;
}

/** A copy of the record of @ret that names @owner and @time_ns: all who read it later find it right. */
static const struct perf_event_header *correct(struct ps_session *session,
					       const struct ps_stream *owner,
					       const struct ps_record *ret, uint64_t time_ns)
{
	// The kernel lets nobody write into the ring. The copy of a record that wraps is free here, or is this record.
	uint8_t *bytes = session->rings[ret->ring].wrapped;
	memmove(bytes, ret->header, ret->header->size);
	memcpy(bytes + owner->layout.id, &owner->id, sizeof(owner->id));
	memcpy(bytes + owner->layout.time, &time_ns, sizeof(time_ns));
	return (const struct perf_event_header *)bytes;
}

bool ps_record_read_shared(struct ps_session *session, const struct perf_event_header *header,
			   struct ps_stream *named, struct ps_record *ret)
{
	struct ps_bytes record = { (const uint8_t *)header, header->size };
	struct ps_stream *owner = find_owner(session, record, ret->ring, named);
	uint64_t time_ns;
	if (!owner || !ps_bytes_u64(record, owner->layout.time, &time_ns))
		return false;
	uint64_t own_ns = own_time(session, owner, record, time_ns, ret->time_ns, !named);
	if (owner != named || own_ns != time_ns)
		ret->header = correct(session, owner, ret, own_ns);
	ret->stream = owner;
	ret->time_ns = own_ns;
	return true;
}
