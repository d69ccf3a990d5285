// SPDX-License-Identifier: MIT
/*
 * The one file of the room that knows libperf. libperf opens the descriptors, one perf_evsel per event and place:
 * opened over all places at once, a CPU that went offline would close them all. It has no way to open events on a
 * cgroup, so those are opened here.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <internal/evsel.h>
#include <internal/xyarray.h>
#include <perf/cpumap.h>
#include <perf/evsel.h>
#include <perf/threadmap.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

struct ps_error *ps_place_make_maps(struct ps_place *place)
{
	char cpu[16];
	snprintf(cpu, sizeof(cpu), "%d", place->cpu);
	place->cpu_map = place->cpu < 0 ? perf_cpu_map__dummy_new() : perf_cpu_map__new(cpu);
	place->thread_map = perf_thread_map__new_dummy();
	if (!place->cpu_map || !place->thread_map)
		return &ps_enomem;
	perf_thread_map__set_pid(place->thread_map, 0, place->tid);
	return NULL;
}

void ps_place_deinit(struct ps_place *place)
{
	perf_cpu_map__put(place->cpu_map);
	perf_thread_map__put(place->thread_map);
}

/** Open @attr at @place by libperf; the descriptor or -errno. */
static int open_evsel(struct perf_event_attr *attr, const struct ps_place *place,
		      struct perf_evsel *leader, struct perf_evsel **ret)
{
	struct perf_evsel *evsel = perf_evsel__new(attr);
	if (!evsel)
		return -ENOMEM;
	if (leader)
		evsel->leader = leader;
	int status = perf_evsel__open(evsel, place->cpu_map, place->thread_map);
	if (status < 0) {
		perf_evsel__delete(evsel);
		return status;
	}
	*ret = evsel;
	int fd = *(int *)xyarray__entry(evsel->fd, 0, 0);
	// libperf opens without PERF_FLAG_FD_CLOEXEC.
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

static int open_cgroup(struct perf_event_attr *attr, const struct ps_place *place, int leader_fd)
{
	int fd = syscall(SYS_perf_event_open, attr, place->cgroup_fd, place->cpu, leader_fd,
			 PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/** Raise the soft limit of descriptors to the hard one. False: it is there already. */
static bool raise_nofile(struct ps_opened *opened)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= limit.rlim_max)
		return false;
	struct rlimit raised = { limit.rlim_max, limit.rlim_max };
	if (setrlimit(RLIMIT_NOFILE, &raised))
		return false;
	opened->saved_nofile = limit;
	opened->is_nofile_raised = true;
	return true;
}

void ps_nofile_restore(struct ps_opened *opened)
{
	if (opened->is_nofile_raised)
		setrlimit(RLIMIT_NOFILE, &opened->saved_nofile);
	opened->is_nofile_raised = false;
}

static int open_fd(struct ps_session *session, struct perf_event_attr *attr,
		   const struct ps_place *place, const struct ps_stream *leader,
		   struct perf_evsel **ret)
{
	struct ps_opened *opened = ps_opened_of(session);
	if (place->cgroup_fd >= 0)
		return open_cgroup(attr, place, leader ? leader->fd : -1);
	struct perf_evsel *evsel = leader ? opened->evsels[leader - session->streams] : NULL;
	return open_evsel(attr, place, evsel, ret);
}

int ps_descriptor_open(struct ps_session *session, struct perf_event_attr *attr,
		       const struct ps_place *place, const struct ps_stream *leader,
		       struct ps_descriptor *ret)
{
	struct ps_descriptor descriptor = { 0 };
	do
		descriptor.fd = open_fd(session, attr, place, leader, &descriptor.evsel);
	while (descriptor.fd == -EMFILE && raise_nofile(ps_opened_of(session)));
	if (descriptor.fd < 0)
		return descriptor.fd;
	if (ioctl(descriptor.fd, PERF_EVENT_IOC_ID, &descriptor.id)) {
		int os_errno = errno;
		ps_descriptor_close(&descriptor);
		return -os_errno;
	}
	*ret = descriptor;
	return 0;
}

void ps_descriptor_close(struct ps_descriptor *descriptor)
{
	if (descriptor->evsel) {
		perf_evsel__close(descriptor->evsel);
		perf_evsel__delete(descriptor->evsel);
	} else if (descriptor->fd >= 0) {
		close(descriptor->fd);
	}
	*descriptor = (struct ps_descriptor){ .fd = -1 };
}

/** Give @stream, which has none, @descriptor. */
static void stream_take(struct ps_session *session, struct ps_stream *stream,
			const struct ps_descriptor *descriptor)
{
	struct ps_opened *opened = ps_opened_of(session);
	stream->fd = descriptor->fd;
	stream->id = descriptor->id;
	opened->evsels[stream - session->streams] = descriptor->evsel;
	opened->nr_open += stream->source != NULL;
}

static void stream_drop(struct ps_session *session, struct ps_stream *stream)
{
	struct ps_opened *opened = ps_opened_of(session);
	struct perf_evsel **evsel = &opened->evsels[stream - session->streams];
	struct ps_descriptor descriptor = { .fd = stream->fd, .evsel = *evsel };
	*evsel = NULL;
	opened->nr_open -= stream->source && stream->fd >= 0;
	ps_descriptor_close(&descriptor);
	stream->fd = -1;
}

void ps_stream_add_away(struct ps_session *session, struct ps_source *source,
			const struct perf_event_attr *attr, const struct ps_place *place)
{
	struct ps_stream *stream = &session->streams[session->nr_streams++];
	*stream = (struct ps_stream){
		.source = source,
		.fd = -1,
		.cpu = place->cpu,
		.tid = place->tid,
		.ring = place->mapped,
	};
	ps_sample_layout_init(&stream->layout, attr);
}

int ps_stream_open(struct ps_session *session, struct ps_source *source,
		   struct perf_event_attr *attr, const struct ps_place *place,
		   const struct ps_stream *leader)
{
	struct ps_descriptor descriptor;
	int status = ps_descriptor_open(session, attr, place, leader, &descriptor);
	if (status < 0)
		return status;
	ps_stream_add_away(session, source, attr, place);
	stream_take(session, &session->streams[session->nr_streams - 1], &descriptor);
	return 0;
}

void ps_stream_replace(struct ps_session *session, struct ps_stream *stream,
		       const struct ps_descriptor *descriptor)
{
	struct ps_reading reading;
	if (ps_stream_read(stream, &reading))
		stream->kept = reading;
	else
		stream->is_kept_short = true;
	stream_drop(session, stream);
	stream_take(session, stream, descriptor);
	session->has_reopened = true;
}

void ps_streams_close(struct ps_session *session)
{
	while (session->nr_streams) {
		stream_drop(session, &session->streams[session->nr_streams - 1]);
		session->nr_streams--;
	}
}
