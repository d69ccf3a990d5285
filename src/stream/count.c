// SPDX-License-Identifier: MIT
#include "internal.h"

// The kernel refuses to open a group whose read would be larger than this.
#define MAX_WORDS (16 * 1024 / sizeof(uint64_t))

/** The words that @stream's descriptor tells: of its event, or of its group. 0: a pinned event that the PMU could not take. */
static size_t read_words(const struct ps_stream *stream, uint64_t words[MAX_WORDS])
{
	// Each is opened with both times and the id (session_stream.c).
	ssize_t size = read(stream->fd, words, MAX_WORDS * sizeof(*words));
	return size < 4 * (ssize_t)sizeof(*words) ? 0 : size / sizeof(*words);
}

static bool has_lost(const struct ps_stream *stream)
{
	return stream->layout.read_format & PERF_FORMAT_LOST;
}

/** Take the entry at *@at from a group's @words, and move on to the next; false: there is none. */
static bool next_member(const struct ps_stream *stream, const uint64_t *words, size_t nr_words,
			size_t *at, uint64_t *ret_id, struct ps_reading *ret)
{
	size_t nr_each = has_lost(stream) ? 3 : 2;
	if (*at + nr_each > nr_words || *at >= 3 + words[0] * nr_each)
		return false;
	*ret_id = words[*at + 1];
	*ret = (struct ps_reading){ words[*at], words[1], words[2], 0 };
	if (has_lost(stream))
		ret->lost = words[*at + 2];
	*at += nr_each;
	return true;
}

/** What the event of @stream's descriptor counted; false: it does not tell. */
static bool read_descriptor(const struct ps_stream *stream, struct ps_reading *ret)
{
	uint64_t words[MAX_WORDS];
	size_t nr_words = read_words(stream, words);
	if (!nr_words)
		return false;
	if (stream->layout.read_format & PERF_FORMAT_GROUP) {
		uint64_t id;
		for (size_t at = 3; next_member(stream, words, nr_words, &at, &id, ret);) {
			if (id == stream->id)
				return true;
		}
		return false;
	}
	*ret = (struct ps_reading){ words[0], words[1], words[2], 0 };
	if (has_lost(stream) && nr_words >= 5)
		ret->lost = words[4];
	return true;
}

bool ps_stream_read(const struct ps_stream *stream, struct ps_reading *ret)
{
	struct ps_reading now = { 0 };
	if (stream->is_kept_short || (stream->fd >= 0 && !read_descriptor(stream, &now)))
		return false;
	*ret = (struct ps_reading){
		.value = stream->kept.value + now.value,
		.enabled_ns = stream->kept.enabled_ns + now.enabled_ns,
		.running_ns = stream->kept.running_ns + now.running_ns,
		.lost = stream->kept.lost + now.lost,
	};
	return true;
}

/** Where @stream stands in the order of streams: the session's own, then by source. */
static size_t stream_rank(const struct ps_stream *stream)
{
	return stream->source ? stream->source->index + 1 : 0;
}

/** The first stream of @source, or where it would be. */
static size_t find_first(const struct ps_session *session, const struct ps_source *source)
{
	size_t low = 0, high = session->nr_streams;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (stream_rank(&session->streams[middle]) < source->index + 1)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void finish_count(const struct ps_session *session, const struct ps_source *source,
			 struct ps_count *count)
{
	size_t first = find_first(session, source);
	if (first < session->nr_streams && session->streams[first].source == source &&
	    session->streams[first].span)
		ps_coverage_finish(count);
}

void ps_session_count(const struct ps_session *session, const struct ps_source *source,
		      struct ps_count *ret)
{
	*ret = (struct ps_count){ 0 };
	bool has_failed = false;
	size_t side_band_at = 0;
	for (size_t i = find_first(session, source); i < session->nr_streams; i++) {
		const struct ps_stream *stream = &session->streams[i];
		struct ps_reading reading, own;
		bool has_own;
		if (stream->source != source)
			break;
		if (stream->fd < 0)
			continue;
		if (!ps_stream_read(stream, &reading)) {
			has_failed = true;
			continue;
		}
		has_own = ps_coverage_read_side_band(session, stream, &side_band_at, &own);
		ps_coverage_add(stream, &reading, has_own ? &own : NULL, ret);
	}
	ret->is_valid &= !has_failed;
	finish_count(session, source, ret);
}

/** Add what the group of @leader tells of each member to the count of its source; false: it tells nothing. */
static bool count_members(const struct ps_session *session, const struct ps_stream *leader,
			  size_t *side_band_at, struct ps_count *counts)
{
	uint64_t words[MAX_WORDS], id;
	struct ps_reading own, reading;
	size_t nr_words = read_words(leader, words);
	if (!nr_words)
		return false;
	bool has_own = ps_coverage_read_side_band(session, leader, side_band_at, &own);
	for (size_t at = 3; next_member(leader, words, nr_words, &at, &id, &reading);) {
		const struct ps_stream *member = ps_session_find(session, id);
		if (!member || !member->source)
			continue;
		ps_coverage_add(member, &reading, has_own ? &own : NULL,
				&counts[member->source->index]);
	}
	return true;
}

static bool is_member(const struct ps_stream *stream, unsigned int group)
{
	return stream->source && stream->source->group == group;
}

/** Count all members of @group, which need not stand next to each other. */
static void count_group(const struct ps_session *session, unsigned int group,
			struct ps_count *counts)
{
	const struct ps_source_list *sources = session->sources;
	for (size_t i = 0; i < sources->nr_sources; i++) {
		if (sources->sources[i]->group == group)
			counts[i] = (struct ps_count){ 0 };
	}
	const struct ps_source *last = NULL;
	size_t side_band_at = 0;
	bool has_failed = false;
	for (size_t i = 0; i < session->nr_streams; i++) {
		const struct ps_stream *stream = &session->streams[i];
		if (!stream->is_leader || !is_member(stream, group))
			continue;
		if (stream->source != last)
			side_band_at = 0;
		last = stream->source;
		has_failed |= !count_members(session, stream, &side_band_at, counts);
	}
	// The kernel stops all of a group, since Linux 6.16, or the one that samples.
	uint64_t throttled = 0;
	for (size_t i = 0; i < sources->nr_sources; i++)
		throttled += sources->sources[i]->group == group ? counts[i].throttled : 0;
	for (size_t i = 0; i < sources->nr_sources; i++) {
		if (sources->sources[i]->group != group)
			continue;
		counts[i].is_valid &= !has_failed;
		counts[i].throttled = throttled;
		finish_count(session, sources->sources[i], &counts[i]);
	}
}

/** Whether @source is the first of its group in @sources. */
static bool is_first(const struct ps_source_list *sources, const struct ps_source *source)
{
	for (size_t i = 0; i < source->index; i++) {
		if (sources->sources[i]->group == source->group)
			return false;
	}
	return true;
}

void ps_session_count_all(const struct ps_session *session, struct ps_count *ret)
{
	const struct ps_source_list *sources = session->sources;
	for (size_t i = 0; i < sources->nr_sources; i++) {
		const struct ps_source *source = sources->sources[i];
		// Once descriptors were opened again, not all of a group need stand in what its leader tells.
		if (!source->group || session->has_reopened)
			ps_session_count(session, source, &ret[i]);
		else if (is_first(sources, source))
			count_group(session, source->group, ret);
	}
}

void ps_session_read_lost(struct ps_session *session)
{
	if (!session->has_lost_count)
		return;
	for (size_t i = 0; i < session->nr_streams; i++) {
		struct ps_reading reading;
		if (ps_stream_read(&session->streams[i], &reading))
			session->streams[i].lost = reading.lost;
	}
}
