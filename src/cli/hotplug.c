// SPDX-License-Identifier: MIT
#include <perfscope/hotplug.h>

#include <perfscope/cpu_watch.h>
#include <perfscope/log.h>
#include <sys/epoll.h>

// Words for one turn; where devices come and go by the thousand, the others get theirs.
#define MAX_WORDS 64

static uint64_t read_asleep_ns(void)
{
	// In this order it never comes out below 0.
	uint64_t awake_ns = ps_monotonic_ns();
	return ps_clock_gettime_ns(CLOCK_BOOTTIME) - awake_ns;
}

void ps_hotplug_start(struct ps_hotplug *hotplug)
{
	hotplug->look = ps_deadline_start(PS_NS_PER_SECOND, ps_monotonic_ns());
	hotplug->asleep_ns = read_asleep_ns();
}

static void tell_failure(int cpu, const struct ps_cpu_back *back, struct ps_error *error)
{
	const char *what = back->is_open ? "not all events could be opened on it again"
					 : "its events could not be opened again";
	_cleanup_error_ struct ps_error *owned =
		ps_error_context(error, "cpu %d is back, but %s", cpu, what);
	ps_log_error(PS_LOG_WARNING, owned);
}

static void tell_back(int cpu, const struct ps_cpu_back *back)
{
	if (back->is_first)
		ps_log(PS_LOG_WARNING, "cpu %d came online: it is observed from now on", cpu);
	else if (back->away_ns)
		ps_log(PS_LOG_WARNING,
		       "cpu %d came back after %.1f s: events in between were not seen", cpu,
		       back->away_ns / 1e9);
	else
		ps_log(PS_LOG_WARNING,
		       "cpu %d was offline for a moment: events in between were not seen", cpu);
}

/** Wait for the ring of @cpu by its new descriptor. */
static void watch_ring(const struct ps_hotplug *hotplug, uint32_t ring)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = ring };
	// Without it the ring is still looked at at the pace of all.
	epoll_ctl(hotplug->epoll_fd, EPOLL_CTL_ADD, hotplug->session->ring_fds[ring], &event);
}

/** The mapping of the ring keeps the old descriptor's file open, so that closing it takes it from no list. */
static void forget_ring(const struct ps_hotplug *hotplug, int cpu)
{
	const struct ps_session *session = hotplug->session;
	for (size_t i = 0; i < session->nr_rings; i++) {
		if (session->rings[i].cpu == cpu)
			epoll_ctl(hotplug->epoll_fd, EPOLL_CTL_DEL, session->ring_fds[i], NULL);
	}
}

static void take_back(const struct ps_hotplug *hotplug, int cpu)
{
	struct ps_cpu_back back;
	forget_ring(hotplug, cpu);
	struct ps_error *error = ps_dispatch_cpu_back(hotplug->dispatch, cpu, &back);
	if (back.is_open && hotplug->session->nr_rings)
		watch_ring(hotplug, back.ring);
	if (back.is_open)
		tell_back(cpu, &back);
	if (error)
		tell_failure(cpu, &back, error);
}

static void look_at(const struct ps_hotplug *hotplug, int cpu, bool is_told)
{
	switch (ps_session_cpu_look(hotplug->session, cpu, is_told)) {
	case PS_CPU_SAME:
		break;
	case PS_CPU_LOST:
		ps_session_cpu_lost(hotplug->session, cpu);
		ps_log(PS_LOG_WARNING, "cpu %d went offline: it is observed again when it is back",
		       cpu);
		break;
	case PS_CPU_BACK:
		take_back(hotplug, cpu);
		break;
	}
}

static void look_at_all(const struct ps_hotplug *hotplug, bool is_told)
{
	int cpu;
	for (size_t i = 0; ps_session_nth_cpu(hotplug->session, i, &cpu); i++)
		look_at(hotplug, cpu, is_told);
}

void ps_hotplug_hear(struct ps_hotplug *hotplug)
{
	for (int nr = 0; nr < MAX_WORDS; nr++) {
		int cpu;
		enum ps_cpu_word word = ps_cpu_watch_next(hotplug->watch_fd, &cpu);
		if (word == PS_CPU_WORD_NONE)
			return;
		if (word == PS_CPU_WORD_MISSED)
			look_at_all(hotplug, true);
		else if (word == PS_CPU_WORD_ONLINE && ps_session_misses_cpu(hotplug->session, cpu))
			ps_log(PS_LOG_WARNING,
			       "cpu %d came online after the start: what runs there is not seen, "
			       "start anew to see it",
			       cpu);
		else
			look_at(hotplug, cpu, word == PS_CPU_WORD_ONLINE);
	}
}

void ps_hotplug_take(struct ps_hotplug *hotplug, uint64_t now_ns)
{
	if (!ps_deadline_take(&hotplug->look, now_ns))
		return;
	uint64_t asleep_ns = read_asleep_ns();
	bool has_slept = asleep_ns > hotplug->asleep_ns + PS_NS_PER_SECOND / 10;
	hotplug->asleep_ns = asleep_ns;
	if (has_slept || hotplug->watch_fd < 0)
		look_at_all(hotplug, has_slept);
}
