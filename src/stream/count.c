// SPDX-License-Identifier: MIT
#include "internal.h"

// The kernel refuses to open a group whose read would be larger than this.
#define MAX_WORDS (16 * 1024 / sizeof(uint64_t))

/** Take the entry of @id from a group's @words; false: it is not in them. */
static bool find_member(const uint64_t *words, size_t nr_words, uint64_t id, bool has_lost,
			struct ps_reading *ret)
{
	uint64_t nr_entries = words[0];
	size_t nr_each = has_lost ? 3 : 2;
	ret->enabled_ns = words[1];
	ret->running_ns = words[2];
	for (size_t i = 0, at = 3; i < nr_entries && at + nr_each <= nr_words; i++, at += nr_each) {
		if (words[at + 1] != id)
			continue;
		ret->value = words[at];
		ret->lost = has_lost ? words[at + 2] : 0;
		return true;
	}
	return false;
}

/** Read @stream's descriptor. Each is opened with both times and the id (place.c). */
static bool read_descriptor(const struct ps_stream *stream, struct ps_reading *ret)
{
	uint64_t words[MAX_WORDS];
	ssize_t size = read(stream->fd, words, sizeof(words));
	// 0 bytes: a pinned event that the PMU could not take.
	if (size < 4 * (ssize_t)sizeof(*words))
		return false;
	bool has_lost = stream->layout.read_format & PERF_FORMAT_LOST;
	if (stream->layout.read_format & PERF_FORMAT_GROUP)
		return find_member(words, size / sizeof(*words), stream->id, has_lost, ret);
	*ret = (struct ps_reading){ words[0], words[1], words[2], 0 };
	if (has_lost && size >= 5 * (ssize_t)sizeof(*words))
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

/** Whether the kernel's enabled time of @stream goes on while its thread runs on another CPU. */
static bool is_thread_on_cpu(const struct ps_stream *stream)
{
	return stream->cpu >= 0 && stream->tid >= 0;
}

/** The session's own stream at the place of @stream, from *@at on: both are in the order of places. NULL: none. */
static const struct ps_stream *find_side_band(const struct ps_session *session,
					      const struct ps_stream *stream, size_t *at)
{
	for (; *at < session->nr_streams && !session->streams[*at].source; ++*at) {
		const struct ps_stream *side_band = &session->streams[*at];
		if (side_band->cpu == stream->cpu && side_band->tid == stream->tid)
			return side_band;
	}
	return NULL;
}

/**
 * Replace in @reading the time in which the event was enabled by that in which it could count.
 *
 * An event of a thread on one CPU is enabled wherever the thread runs, so that a difference to the running time does not
 * mean that it was multiplexed. @side_band, at the same place, is a software event, which always runs when it can. It is
 * enabled before and read after: by so much it may have run longer.
 */
static void correct_enabled(const struct ps_reading *side_band, struct ps_reading *reading)
{
	uint64_t more_ns = side_band->enabled_ns > reading->enabled_ns
				   ? side_band->enabled_ns - reading->enabled_ns
				   : 0;
	uint64_t could_ns = side_band->running_ns > more_ns ? side_band->running_ns - more_ns : 0;
	reading->enabled_ns = could_ns > reading->running_ns ? could_ns : reading->running_ns;
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
		if (stream->source != source)
			break;
		if (stream->fd < 0)
			continue;
		if (!ps_stream_read(stream, &reading)) {
			has_failed = true;
			continue;
		}
		const struct ps_stream *side_band =
			is_thread_on_cpu(stream) ? find_side_band(session, stream, &side_band_at)
						 : NULL;
		if (side_band && side_band->fd >= 0 && ps_stream_read(side_band, &own))
			correct_enabled(&own, &reading);
		ret->value += reading.value;
		ret->enabled_ns += reading.enabled_ns;
		ret->running_ns += reading.running_ns;
		ret->lost += reading.lost;
		ret->is_valid = true;
	}
	ret->is_valid &= !has_failed;
}

struct ps_count ps_count_between(const struct ps_count *before, const struct ps_count *now)
{
	struct ps_count between = {
		.value = now->value - before->value,
		.enabled_ns = now->enabled_ns - before->enabled_ns,
		.running_ns = now->running_ns - before->running_ns,
		.lost = now->lost - before->lost,
		.is_valid = now->is_valid,
	};
	// correct_enabled() is right to the time between two reads, and may be less than it was.
	if ((int64_t)between.enabled_ns < (int64_t)between.running_ns)
		between.enabled_ns = between.running_ns;
	return between;
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
