// SPDX-License-Identifier: MIT
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>

struct ps_error *ps_session_enable(struct ps_session *session)
{
	if (ps_opened_of(session)->is_enabled_by_exec)
		return NULL;
	// The session's own first, so that no name is missed; members of a group are on already, which does no harm.
	for (size_t i = 0; i < session->nr_streams; i++) {
		struct ps_stream *stream = &session->streams[i];
		if (stream->fd >= 0 && ioctl(stream->fd, PERF_EVENT_IOC_ENABLE, 0))
			return ps_error_os(errno, "enable %s on cpu %d",
					   stream->source ? stream->source->name : "side-band",
					   stream->cpu);
	}
	ps_coverage_enabled(session);
	ps_opened_of(session)->is_enabled = true;
	return NULL;
}

void ps_session_disable(struct ps_session *session)
{
	ps_opened_of(session)->is_enabled = false;
	// The first of a group stops all of it: events that belong together, as a begin and an end, stop at one moment.
	for (size_t i = session->nr_streams; i-- > 0;) {
		if (session->streams[i].is_leader)
			ioctl(session->streams[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	}
	for (size_t i = session->nr_streams; i-- > 0;) {
		if (!session->streams[i].is_leader)
			ioctl(session->streams[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	}
}

static bool is_hung_up(int fd)
{
	struct pollfd pollfd = { .fd = fd };
	return poll(&pollfd, 1, 0) == 1 && pollfd.revents & POLLHUP;
}

/** The descriptor of a thread that lives and writes into ring @index, or -1. */
static int find_living(const struct ps_session *session, uint32_t index)
{
	// The session's own events: there is one of each thread. One without a ring would always be hung up.
	for (size_t i = 0; i < session->nr_streams && !session->streams[i].source; i++) {
		const struct ps_stream *stream = &session->streams[i];
		if (stream->ring == index && !is_hung_up(stream->fd))
			return stream->fd;
	}
	return -1;
}

bool ps_session_is_over(const struct ps_session *session)
{
	if (!ps_opened_of(session)->is_threads)
		return false;
	bool is_over = true;
	for (size_t i = 0; i < session->nr_rings; i++) {
		int *fd = &session->ring_fds[i];
		if (*fd >= 0 && is_hung_up(*fd))
			*fd = find_living(session, i);
		is_over &= *fd < 0;
	}
	return is_over;
}
