// SPDX-License-Identifier: MIT
/*
 * For how much of the time in which an event could count it did. An event of a CPU, or of a thread on any, is told by the
 * kernel. One of a thread on one CPU is enabled wherever the thread runs: alone its times do not tell.
 *
 * Where a source stands on all CPUs, each of its events is enabled for the whole time of the thread, and the sum of their
 * running times is that time too, to the ns, unless the counter had to wait. Reads of a running thread lie apart: what was
 * read first was enabled before all others were read, what was read last after that. The right time lies between these.
 */
#include "internal.h"

// Of the side-band measure: the kernel starts and stops two events of a thread some microseconds apart, in each that begins or ends.
#define MAX_GAP_NS 50000

/** Whether the kernel's enabled time of @stream goes on while its thread runs on another CPU. */
static bool is_thread_on_cpu(const struct ps_stream *stream)
{
	return stream->cpu >= 0 && stream->tid >= 0;
}

/** How many streams of the source at @first, of @nr, stand on its CPU in a row. */
static size_t count_on_cpu(const struct ps_stream *first, size_t nr)
{
	size_t at = 0;
	while (at < nr && first[at].source == first->source && first[at].cpu == first->cpu)
		at++;
	return at;
}

/** Whether the @nr streams at @first, of one source, are of the same number of threads on each of @nr_cpus CPUs. */
static bool is_on_all_cpus(const struct ps_stream *first, size_t nr, size_t nr_cpus)
{
	size_t nr_each = count_on_cpu(first, nr);
	if (!is_thread_on_cpu(first) || nr != nr_each * nr_cpus)
		return false;
	for (size_t at = 0; at < nr; at += nr_each) {
		if (count_on_cpu(first + at, nr - at) != nr_each)
			return false;
	}
	return true;
}

static size_t count_of_source(const struct ps_stream *first, size_t nr)
{
	size_t at = 0;
	while (at < nr && first[at].source == first->source)
		at++;
	return at;
}

void ps_coverage_prepare(struct ps_session *session, size_t nr_cpus)
{
	for (size_t i = 0, nr; i < session->nr_streams; i += nr) {
		struct ps_stream *first = &session->streams[i];
		nr = count_of_source(first, session->nr_streams - i);
		if (!first->source || !is_on_all_cpus(first, nr, nr_cpus))
			continue;
		size_t nr_each = nr / nr_cpus;
		for (size_t at = 0; at < nr; at++) {
			first[at].span = PS_SPAN_ALL | (at < nr_each ? PS_SPAN_FIRST : 0) |
					 (at >= nr - nr_each ? PS_SPAN_LAST : 0);
		}
	}
}

void ps_coverage_enabled(struct ps_session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++) {
		struct ps_stream *stream = &session->streams[i];
		struct ps_reading reading;
		if (stream->span & PS_SPAN_FIRST && ps_stream_read(stream, &reading))
			stream->ahead_ns = reading.enabled_ns;
	}
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

bool ps_coverage_read_side_band(const struct ps_session *session, const struct ps_stream *stream,
				size_t *at, struct ps_reading *ret)
{
	if (!is_thread_on_cpu(stream) || stream->span)
		return false;
	const struct ps_stream *side_band = find_side_band(session, stream, at);
	return side_band && side_band->fd >= 0 && ps_stream_read(side_band, ret);
}

/**
 * Replace in @reading the time in which the event was enabled by that in which it could count.
 *
 * @side_band, at the same place, is a software event, which always runs when it can. It is enabled before and read after:
 * by so much it may have run longer. A gap of less than a hundredth, or of MAX_GAP_NS, is the kernel's.
 */
static void correct_enabled(const struct ps_reading *side_band, struct ps_reading *reading)
{
	uint64_t more_ns = side_band->enabled_ns > reading->enabled_ns
				   ? side_band->enabled_ns - reading->enabled_ns
				   : 0;
	uint64_t could_ns = side_band->running_ns > more_ns ? side_band->running_ns - more_ns : 0;
	uint64_t gap_ns = could_ns > reading->running_ns ? could_ns - reading->running_ns : 0;
	bool has_waited = gap_ns > MAX_GAP_NS && gap_ns > could_ns / 100;
	reading->enabled_ns = reading->running_ns + (has_waited ? gap_ns : 0);
}

/** Add the enabled time of an event that stands on all CPUs: until ps_coverage_finish, slack_ns is the latest one. */
static void add_span(const struct ps_stream *stream, uint64_t enabled_ns, struct ps_count *count)
{
	if (stream->span & PS_SPAN_FIRST) {
		count->enabled_ns += enabled_ns - stream->ahead_ns;
		count->slack_ns += stream->ahead_ns;
	}
	if (stream->span & PS_SPAN_LAST)
		count->slack_ns += enabled_ns;
}

void ps_coverage_add(const struct ps_stream *stream, const struct ps_reading *reading,
		     const struct ps_reading *side_band, struct ps_count *count)
{
	struct ps_reading own = *reading;
	if (side_band)
		correct_enabled(side_band, &own);
	if (stream->span)
		add_span(stream, own.enabled_ns, count);
	else
		count->enabled_ns += own.enabled_ns;
	count->value += own.value;
	count->running_ns += own.running_ns;
	count->lost += own.lost;
	count->throttled += stream->throttled;
	count->is_valid = true;
}

void ps_coverage_finish(struct ps_count *count)
{
	uint64_t earliest_ns = count->enabled_ns, latest_ns = count->slack_ns;
	count->enabled_ns = earliest_ns < latest_ns ? earliest_ns : latest_ns;
	if (count->enabled_ns < count->running_ns)
		count->enabled_ns = count->running_ns;
	if (latest_ns < earliest_ns)
		latest_ns = earliest_ns;
	count->slack_ns = latest_ns > count->enabled_ns ? latest_ns - count->enabled_ns : 0;
}

struct ps_count ps_count_between(const struct ps_count *before, const struct ps_count *now)
{
	uint64_t gap_ns = now->enabled_ns - now->running_ns;
	uint64_t gap_before_ns = before->enabled_ns - before->running_ns + before->slack_ns;
	struct ps_count between = {
		.value = now->value - before->value,
		.running_ns = now->running_ns - before->running_ns,
		.slack_ns = now->slack_ns,
		.lost = now->lost - before->lost,
		.throttled = now->throttled - before->throttled,
		.is_valid = now->is_valid && now->throttled == before->throttled,
	};
	between.enabled_ns =
		between.running_ns + (gap_ns > gap_before_ns ? gap_ns - gap_before_ns : 0);
	return between;
}
