// SPDX-License-Identifier: MIT
#include <perfscope/loop.h>

#include <errno.h>
#include <limits.h>
#include <perfscope/deadline.h>
#include <perfscope/hotplug.h>
#include <perfscope/log.h>
#include <perfscope/signals.h>
#include <sys/epoll.h>

#define MAX_EVENTS 64

// Programs that come and go leave their sums in the table of regions, which has room for so many.
#define SWEEP_NS (100 * PS_NS_PER_MS)

/** What a descriptor stands for, in epoll_event's data: a ring by its index, or one of these. */
enum { WAKE_SIGNAL = UINT32_MAX, WAKE_WORKLOAD = UINT32_MAX - 1, WAKE_CPU = UINT32_MAX - 2 };

struct loop {
	const struct ps_loop_options *options;
	int epoll_fd;
	struct ps_deadline interval, usage, duration, sweep;
	struct ps_hotplug hotplug;
	uint64_t pace_ns;    // between two looks into rings that are below their watermark
	uint64_t warm_up_ns; // the same for the first looks: it doubles until it reaches pace_ns
	bool has_full_ring;  // a ring reached its watermark
	bool is_exited;	     // the program of --run has ended
	bool has_cpu_word;   // a CPU went or came
	bool has_hangup;     // a ring has nobody left who writes it
	bool is_ended;
	enum ps_loop_end end;
	struct ps_error *error; // that ended it
};

static void loop_end(struct loop *loop, enum ps_loop_end end)
{
	if (loop->is_ended)
		return;
	loop->is_ended = true;
	loop->end = end;
}

static struct ps_error *watch(struct loop *loop, int fd, uint32_t what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = what };
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return ps_error_os(errno, "epoll_ctl");
	return NULL;
}

static struct ps_error *watch_all(struct loop *loop)
{
	const struct ps_loop_options *options = loop->options;
	struct ps_error *error = watch(loop, ps_signals_fd(), WAKE_SIGNAL);
	if (!error && options->workload_fd >= 0)
		error = watch(loop, options->workload_fd, WAKE_WORKLOAD);
	if (!error && options->cpu_watch_fd >= 0)
		error = watch(loop, options->cpu_watch_fd, WAKE_CPU);
	for (size_t i = 0; !error && i < options->session->nr_rings; i++)
		error = watch(loop, options->session->ring_fds[i], i);
	return error;
}

static void take_wake(struct loop *loop, const struct epoll_event *event)
{
	uint32_t what = event->data.u32;
	if (what == WAKE_SIGNAL) {
		ps_signals_clear();
	} else if (what == WAKE_WORKLOAD) {
		loop->is_exited = true;
	} else if (what == WAKE_CPU) {
		loop->has_cpu_word = true;
	} else if (event->events & (EPOLLHUP | EPOLLERR)) {
		// It would wake us for ever. What it still holds is read in every turn as before.
		int fd = loop->options->session->ring_fds[what];
		epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		loop->has_hangup = true;
	} else {
		loop->has_full_ring = true;
	}
}

/** Wait until @wake_ns; 0: only look. */
static void loop_wait(struct loop *loop, uint64_t wake_ns)
{
	struct epoll_event events[MAX_EVENTS];
	uint64_t now_ns = ps_monotonic_ns();
	uint64_t wait_ms =
		wake_ns > now_ns ? (wake_ns - now_ns + PS_NS_PER_MS - 1) / PS_NS_PER_MS : 0;
	void *state = ps_interp_release();
	int nr = epoll_wait(loop->epoll_fd, events, MAX_EVENTS,
			    wait_ms < INT_MAX ? (int)wait_ms : INT_MAX);
	int wait_errno = errno;
	ps_interp_acquire(state);
	loop->has_full_ring = false;
	if (nr < 0 && wait_errno != EINTR) {
		loop->error =
			ps_error_hint(ps_error_os(wait_errno, "wait for events"),
				      "did the script close descriptors that are not its own?");
		loop_end(loop, PS_LOOP_STOPPED);
	}
	for (int i = 0; i < nr; i++)
		take_wake(loop, &events[i]);
}

static void reopen_output(const struct ps_loop_options *options)
{
	// What was printed before the signal belongs to the old file.
	ps_dispatch_flush(options->dispatch);
	_cleanup_error_ struct ps_error *error = ps_output_reopen(options->output);
	if (error)
		ps_log_error(PS_LOG_WARNING, ps_error_hint(error, "stdout stays where it was"));
}

static void take_signals(struct loop *loop)
{
	if (ps_signals_is_stopping())
		loop_end(loop, PS_LOOP_SIGNALLED);
	if (ps_signals_take_hangup())
		reopen_output(loop->options);
	if (ps_signals_take_print_stat() && !ps_dispatch_print_stat(loop->options->dispatch))
		ps_usage_print(loop->options->meter);
}

static void take_interval(struct loop *loop)
{
	const struct ps_loop_options *options = loop->options;
	if (!options->summary) {
		ps_dispatch_interval(options->dispatch);
		return;
	}
	bool is_read = false;
	loop->error = ps_summary_print(options->summary, false, &is_read);
	if (!is_read)
		loop_end(loop, PS_LOOP_CLOSED);
}

/** Do what is due; whether script code ran, which may have ended the run. */
static bool take_deadlines(struct loop *loop)
{
	uint64_t now_ns = ps_monotonic_ns();
	bool is_due = ps_deadline_take(&loop->interval, now_ns);
	if (ps_deadline_take(&loop->duration, now_ns))
		loop_end(loop, PS_LOOP_TIMED_OUT);
	// The end has a summary of its own.
	is_due &= !loop->is_ended || !loop->options->summary;
	if (is_due)
		take_interval(loop);
	if (ps_deadline_take(&loop->sweep, now_ns))
		ps_region_table_sweep(loop->options->regions);
	if (ps_deadline_take(&loop->usage, now_ns))
		ps_usage_print(loop->options->meter);
	return is_due;
}

static uint64_t next_wake_ns(struct loop *loop)
{
	// The first event is shown soon after the start, not after the whole latency.
	uint64_t pace_ns = loop->warm_up_ns < loop->pace_ns ? loop->warm_up_ns : loop->pace_ns;
	loop->warm_up_ns = 2 * pace_ns;
	// At this rate the rings fill while the youngest records wait for their turn in the order. Below it the pace is
	// enough, and a wake-up every few milliseconds is saved.
	if (loop->has_full_ring && ps_merge_has_waiting(loop->options->merge) &&
	    pace_ns > PS_MERGE_SLACK_NS)
		pace_ns = PS_MERGE_SLACK_NS;
	uint64_t wake_ns = ps_monotonic_ns() + pace_ns;
	wake_ns = ps_deadline_limit(&loop->interval, wake_ns);
	wake_ns = ps_deadline_limit(&loop->usage, wake_ns);
	wake_ns = ps_deadline_limit(&loop->sweep, wake_ns);
	return ps_deadline_limit(&loop->duration, wake_ns);
}

/**
 * After a hangup: end where nobody is left to observe (a program that we started still owes its status then), else
 * watch the ring by a descriptor whose thread lives.
 */
static void take_hangup(struct loop *loop)
{
	const struct ps_loop_options *options = loop->options;
	if (!loop->has_hangup)
		return;
	loop->has_hangup = false;
	if (ps_session_is_over(options->session)) {
		if (options->workload_fd < 0)
			loop_end(loop, PS_LOOP_GONE);
		return;
	}
	for (size_t i = 0; i < options->session->nr_rings; i++) {
		_cleanup_error_ struct ps_error *error = NULL;
		if (options->session->ring_fds[i] >= 0)
			error = watch(loop, options->session->ring_fds[i], i); // EEXIST: it is
	}
	loop->has_full_ring = true; // looking for the living took the readiness of the rings
}

static void take_cpus(struct loop *loop)
{
	if (loop->has_cpu_word)
		ps_hotplug_hear(&loop->hotplug);
	loop->has_cpu_word = false;
	ps_hotplug_take(&loop->hotplug, ps_monotonic_ns());
}

static void loop_turns(struct loop *loop)
{
	uint64_t wake_ns = 0;
	while (!loop->is_ended) {
		loop_wait(loop, wake_ns);
		take_signals(loop);
		take_cpus(loop);
		enum ps_dispatch_state state = ps_dispatch_turn(loop->options->dispatch);
		if (state == PS_DISPATCH_STOP)
			loop_end(loop,
				 ps_signals_is_stopping() ? PS_LOOP_SIGNALLED : PS_LOOP_STOPPED);
		else if (loop->is_exited)
			loop_end(loop, PS_LOOP_EXITED);
		take_hangup(loop);
		bool has_run_script = take_deadlines(loop);
		bool is_busy = state == PS_DISPATCH_MORE || has_run_script;
		wake_ns = is_busy ? 0 : next_wake_ns(loop);
	}
}

/** A record waits for its place in the order up to the slack; then the pace is what is left of the latency. */
static uint64_t pace_of(const struct ps_loop_options *options)
{
	uint64_t taken_ns = PS_NS_PER_MS + (options->is_ordered ? PS_MERGE_SLACK_NS : 0);
	uint64_t pace_ns = options->latency_ns > taken_ns ? options->latency_ns - taken_ns : 0;
	return pace_ns > PS_NS_PER_MS ? pace_ns : PS_NS_PER_MS;
}

struct ps_error *ps_loop_run(const struct ps_loop_options *options, enum ps_loop_end *ret)
{
	uint64_t now_ns = ps_monotonic_ns();
	struct loop loop = {
		.options = options,
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
		.interval = ps_deadline_start(options->interval_ns, now_ns),
		.usage = ps_deadline_start(options->usage_ns, now_ns),
		.duration = ps_deadline_start(options->duration_ns, now_ns),
		.sweep = ps_deadline_start(options->regions ? SWEEP_NS : 0, now_ns),
		.pace_ns = pace_of(options),
		.warm_up_ns = PS_MERGE_SLACK_NS + PS_NS_PER_MS,
	};
	if (loop.epoll_fd < 0)
		return ps_error_os(errno, "epoll_create1");
	loop.hotplug = (struct ps_hotplug){
		.session = options->session,
		.dispatch = options->dispatch,
		.watch_fd = options->cpu_watch_fd,
		.epoll_fd = loop.epoll_fd,
	};
	ps_hotplug_start(&loop.hotplug);
	struct ps_error *error = watch_all(&loop);
	if (!error) {
		loop_turns(&loop);
		*ret = loop.end;
		error = loop.error;
	}
	close(loop.epoll_fd);
	return error;
}
