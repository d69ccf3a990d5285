// SPDX-License-Identifier: MIT
/**
 * Hotplug: follows CPUs that go offline and come back while a run goes on.
 */
#ifndef PERFSCOPE_HOTPLUG_H
#define PERFSCOPE_HOTPLUG_H

#include <perfscope/deadline.h>
#include <perfscope/dispatch.h>

/**
 * The kernel's word on its socket is only the reason to look, so that one too many does no harm. Where there is no socket, and
 * after the machine slept, which the kernel does not tell, all CPUs are looked at.
 */
struct ps_hotplug {
	struct ps_session *session; // borrowed
	struct ps_dispatch *dispatch;
	int watch_fd;		 // of ps_cpu_watch_open, -1: none
	int epoll_fd;		 // where rings are waited for; data.u32 is the index of the ring
	struct ps_deadline look; // each second
	uint64_t asleep_ns;	 // how long the machine has slept since its start
};

/** All but look and asleep_ns are set by the caller. */
void ps_hotplug_start(struct ps_hotplug *hotplug);

/**
 * The socket has something to say: look at the CPUs that it is about, tell what is found, and open again what came
 * back. Between turns of the dispatch, with the GIL; so is the next.
 */
void ps_hotplug_hear(struct ps_hotplug *hotplug);

/** Look at all CPUs where that is due. */
void ps_hotplug_take(struct ps_hotplug *hotplug, uint64_t now_ns);

#endif
