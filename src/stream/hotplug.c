// SPDX-License-Identifier: MIT
/*
 * A CPU that goes offline takes its events off the list of those that it counts, for good: the descriptors can be read,
 * and tell what was counted up to then, but enabling them again does nothing. So they are opened anew when it is back.
 * The ring stays. The kernel lets new events of the same CPU write into it, so that nothing in it is lost or moved.
 */
#include "internal.h"

#include <errno.h>
#include <perfscope/monotonic.h>
#include <sys/ioctl.h>

/** The place of all that happens on @cpu; NULL: there is none. */
static struct ps_place *find_place(const struct ps_session *session, int cpu)
{
	struct ps_places *places = &ps_opened_of(session)->places;
	for (size_t i = 0; i < places->nr_places; i++) {
		struct ps_place *place = &places->places[i];
		if (place->cpu == cpu && place->tid < 0)
			return place;
	}
	return NULL;
}

bool ps_session_nth_cpu(const struct ps_session *session, size_t at, int *ret)
{
	const struct ps_places *places = &ps_opened_of(session)->places;
	if (at >= places->nr_places || places->places[at].tid >= 0 || places->places[at].cpu < 0)
		return false;
	*ret = places->places[at].cpu;
	return true;
}

bool ps_session_misses_cpu(const struct ps_session *session, int cpu)
{
	const struct ps_opened *opened = ps_opened_of(session);
	const struct ps_places *places = &opened->places;
	if (!opened->is_threads || opened->target.is_cpu_list || !ps_cpu_is_online(cpu))
		return false;
	for (size_t i = 0; i < places->nr_places; i++) {
		if (places->places[i].cpu < 0 || places->places[i].cpu == cpu)
			return false;
	}
	return true;
}

static bool is_at(const struct ps_stream *stream, const struct ps_place *place)
{
	return stream->cpu == place->cpu && stream->tid == place->tid;
}

/** The first stream at @place that has a descriptor; NULL: none. */
static struct ps_stream *find_open(const struct ps_session *session, const struct ps_place *place)
{
	for (size_t i = 0; i < session->nr_streams; i++) {
		struct ps_stream *stream = &session->streams[i];
		if (is_at(stream, place) && stream->fd >= 0)
			return stream;
	}
	return NULL;
}

/** Whether the events of a whole CPU at @place still count: their time goes on. */
static bool is_counting(const struct ps_session *session, const struct ps_place *place)
{
	const struct ps_stream *stream = find_open(session, place);
	struct ps_reading first, second;
	if (!ps_opened_of(session)->is_enabled)
		return true;
	return stream && ps_stream_read(stream, &first) && ps_stream_read(stream, &second) &&
	       second.enabled_ns > first.enabled_ns;
}

enum ps_cpu_change ps_session_cpu_look(const struct ps_session *session, int cpu, bool is_told)
{
	const struct ps_place *place = find_place(session, cpu);
	if (!place)
		return PS_CPU_SAME;
	if (!ps_cpu_is_online(cpu))
		return place->is_gone ? PS_CPU_SAME : PS_CPU_LOST;
	if (place->is_gone)
		return PS_CPU_BACK;
	if (place->is_given_up && !is_told)
		return PS_CPU_SAME;
	bool is_silent = place->cgroup_fd >= 0 ? is_told : !is_counting(session, place);
	return is_silent ? PS_CPU_BACK : PS_CPU_SAME;
}

void ps_session_cpu_lost(struct ps_session *session, int cpu)
{
	struct ps_place *place = find_place(session, cpu);
	if (!place)
		return;
	place->is_gone = true;
	place->gone_ns = ps_monotonic_ns();
}

/** What is the same for all streams of a CPU while they are opened again. */
struct reopening {
	struct ps_session *session;
	struct ps_place *place;
	struct ps_cpu_back *back;
	const struct ps_stream *leader; // of the group at hand, NULL: none yet
	unsigned int group;
};

/** Let the session's own event, just opened as @descriptor, have the ring that @stream had, or one of its own. */
static int inherit_ring(struct ps_session *session, struct ps_stream *stream,
			const struct ps_descriptor *descriptor)
{
	if (stream->fd < 0)
		return ps_ring_map(session, descriptor->fd, stream->cpu, &stream->ring);
	return ioctl(descriptor->fd, PERF_EVENT_IOC_SET_OUTPUT, stream->fd) ? errno : 0;
}

static struct ps_error *reopen_side_band(struct reopening *reopening, struct ps_stream *stream)
{
	struct ps_session *session = reopening->session;
	struct ps_opened *opened = ps_opened_of(session);
	struct perf_event_attr attr =
		ps_attr_side_band(opened->want_tasks, session->has_stacks, &opened->context);
	struct ps_descriptor descriptor;
	int status = ps_descriptor_open(session, &attr, reopening->place, NULL, &descriptor);
	const struct ps_source *first = session->sources->sources[0]; // whose name messages say
	if (status < 0)
		return ps_refusal_error(-status, first->name, &first->attr, reopening->place,
					opened->max_streams);
	int os_errno = inherit_ring(session, stream, &descriptor);
	if (os_errno) {
		ps_descriptor_close(&descriptor);
		return ps_error_os(os_errno, "map its ring");
	}
	ps_stream_replace(session, stream, &descriptor);
	session->ring_fds[stream->ring] = stream->fd;
	reopening->place->mapped = stream->ring;
	return NULL;
}

static struct ps_error *refusal(const struct reopening *reopening, const struct ps_stream *stream,
				const struct perf_event_attr *attr, int os_errno)
{
	const struct ps_source *source = stream->source;
	const struct ps_opened *opened = ps_opened_of(reopening->session);
	if (source->probe)
		return ps_refusal_probe_error(os_errno, source->name, attr, reopening->place,
					      opened->max_streams);
	return ps_refusal_error(os_errno, source->name, attr, reopening->place,
				opened->max_streams);
}

/** Open the source of @stream again; NULL also where this CPU lacks it, as it did before. */
static struct ps_error *reopen_source(struct reopening *reopening, struct ps_stream *stream)
{
	struct ps_session *session = reopening->session;
	const struct ps_source *source = stream->source;
	const struct ps_stream *leader = reopening->leader;
	struct perf_event_attr attr = ps_attr_prepare(&source->attr, source->is_sampling, !leader,
						      &ps_opened_of(session)->context);
	struct ps_descriptor descriptor;
	const char *reason, *nearest;
	int status = ps_descriptor_open(session, &attr, reopening->place, leader, &descriptor);
	if (status < 0 && stream->fd < 0 && !source->probe &&
	    ps_refusal_is_missing(-status, &attr, &reason, &nearest))
		return NULL;
	if (status < 0)
		return refusal(reopening, stream, &attr, -status);
	uint32_t ring = reopening->place->mapped;
	struct ps_error *error = ps_descriptor_finish(session, source, descriptor.fd, ring);
	if (error) {
		ps_descriptor_close(&descriptor);
		return error;
	}
	ps_stream_replace(session, stream, &descriptor);
	stream->ring = ring;
	reopening->back->has_samples |= source->is_sampling;
	if (source->group && !leader)
		reopening->leader = stream;
	return NULL;
}

/** Open @stream again. Where a source is refused, the others go on without it. */
static struct ps_error *reopen_stream(struct reopening *reopening, struct ps_stream *stream)
{
	if (!stream->source)
		return reopen_side_band(reopening, stream);
	if (stream->source->group != reopening->group)
		reopening->leader = NULL;
	reopening->group = stream->source->group;
	struct ps_error *error = reopen_source(reopening, stream);
	reopening->back->nr_failed += error != NULL;
	return error;
}

/** Open all streams of the CPU again; the first error, where it is one of the ring that of all. */
static struct ps_error *reopen_streams(struct reopening *reopening)
{
	struct ps_session *session = reopening->session;
	struct ps_error *first = NULL;
	for (size_t i = 0; i < session->nr_streams; i++) {
		struct ps_stream *stream = &session->streams[i];
		if (!is_at(stream, reopening->place))
			continue;
		struct ps_error *error = reopen_stream(reopening, stream);
		if (error && !stream->source)
			return error;
		reopening->back->is_open |= !error;
		if (!first)
			first = error;
		else
			ps_error_destroy(error);
	}
	return first;
}

/** The session's own event comes first in the order of streams, so that no name is missed. */
static void enable_place(const struct ps_session *session, const struct ps_place *place)
{
	for (size_t i = 0; i < session->nr_streams; i++) {
		const struct ps_stream *stream = &session->streams[i];
		if (is_at(stream, place) && stream->fd >= 0)
			ioctl(stream->fd, PERF_EVENT_IOC_ENABLE, 0);
	}
}

struct ps_error *ps_session_cpu_back(struct ps_session *session, int cpu, struct ps_cpu_back *ret)
{
	*ret = (struct ps_cpu_back){ 0 };
	struct ps_place *place = find_place(session, cpu);
	if (!place)
		return NULL;
	ret->is_first = !find_open(session, place);
	ret->away_ns = place->gone_ns ? ps_monotonic_ns() - place->gone_ns : 0;
	struct reopening reopening = { .session = session, .place = place, .back = ret };
	struct ps_error *error = reopen_streams(&reopening);
	// Refused, it is not tried again before it comes once more; it may also have gone already.
	place->is_gone = !ret->is_open && !ps_cpu_is_online(cpu);
	place->is_given_up = !ret->is_open && !place->is_gone;
	ret->ring = place->mapped;
	ps_shared_build(session);
	struct ps_error *ids_error = ps_ids_build(session);
	if (ids_error) { // what the new ones write would be of nobody
		ps_error_destroy(error);
		return ids_error;
	}
	ret->start_ns = ps_clock_now_ns(&session->clock);
	if (ps_opened_of(session)->is_enabled)
		enable_place(session, place);
	return error;
}
