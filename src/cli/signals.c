// SPDX-License-Identifier: MIT
#include <perfscope/signals.h>

#include <errno.h>
#include <fcntl.h>
#include <perfscope/cleanup.h>
#include <perfscope/deadline.h>
#include <perfscope/probe.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

// A signal handler finds its state only here. All of it is read and written whole, from handlers too.
static pid_t owner;
static int wake_fd = -1;
static timer_t grace_timer;
static bool is_started;
static bool hangup_reopens;
static volatile uint64_t stop_ns; // of the first request, 0: none
static volatile sig_atomic_t phase;
static volatile sig_atomic_t wants_hangup, wants_print_stat;
static volatile pid_t workload;
static struct ps_dispatch *volatile running;
static uint64_t written_bytes; // when is_output_stuck last looked
static unsigned int nr_stuck;  // how often in a row nothing had been written since

// Nearer than this to the first, a signal is the same request: timeout(1) sends it to the process and to its group.
#define SAME_REQUEST_NS 100000000ULL

static void wake(void)
{
	uint64_t one = 1;
	ssize_t written = write(wake_fd, &one, sizeof(one));
	(void)written; // only a full counter fails, and that is readable
}

static void set_grace_timer(uint64_t ns)
{
	struct timespec time = { .tv_sec = ns / PS_NS_PER_SECOND,
				 .tv_nsec = ns % PS_NS_PER_SECOND };
	timer_settime(grace_timer, 0, &(struct itimerspec){ .it_value = time, .it_interval = time },
		      NULL);
}

static void __attribute__((noreturn)) end_at_once(const char *message)
{
	struct pollfd pollfd = { .fd = STDERR_FILENO, .events = POLLOUT };
	ssize_t written = 0;
	if (poll(&pollfd, 1, 0) == 1) // full, it would block
		written = write(STDERR_FILENO, message, strlen(message));
	(void)written; // there is nowhere left to tell it
	if (workload > 0)
		kill(workload, SIGKILL);
	ps_probe_remove_all();
	_exit(1);
}

/**
 * Whether this is a child that the script forked, which has no loop: it gets the signal as any Python would.
 *
 * Blocked while its handler runs, the signal takes effect when the handler returns.
 */
static bool pass_to_child(int signal_number)
{
	if (getpid() == owner)
		return false;
	if (signal_number == SIGINT) {
		ps_interp_interrupt();
		return true;
	}
	signal(signal_number, SIG_DFL);
	raise(signal_number);
	return true;
}

/** All that this process has written so far; 0: not known. Called in a signal handler. */
static uint64_t read_written_bytes(void)
{
	char text[512];
	_cleanup_close_ int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (size < 0)
		return 0;
	text[size] = '\0';
	const char *at = strstr(text, "wchar: ");
	uint64_t written = 0;
	for (at += at ? strlen("wchar: ") : 0; at && *at >= '0' && *at <= '9'; at++)
		written = 10 * written + (*at - '0');
	return written;
}

/** Whether stdout or stderr would block, and nothing has been written for two looks: nobody reads. */
static bool is_output_stuck(void)
{
	struct pollfd fds[] = { { .fd = STDOUT_FILENO, .events = POLLOUT },
				{ .fd = STDERR_FILENO, .events = POLLOUT } };
	uint64_t before = written_bytes;
	written_bytes = read_written_bytes();
	bool is_full = poll(fds, 2, 0) >= 0 && (!fds[0].revents || !fds[1].revents);
	nr_stuck = is_full && written_bytes == before ? nr_stuck + 1 : 0;
	return nr_stuck >= 2;
}

static void stop_running(struct ps_dispatch *dispatch)
{
	ps_dispatch_stop(dispatch);
	ps_dispatch_is_stuck(dispatch); // what runs now is what it will be compared with
	set_grace_timer(PS_STOP_GRACE_NS);
}

/**
 * Whether __exit__ may be interrupted by the timer. Without a buffer Python does not write the rest of what a signal
 * cut in two.
 */
static bool is_buffered(void)
{
	const char *text = getenv("PYTHONUNBUFFERED");
	return !text || !*text;
}

static void request_stop(void)
{
	uint64_t now_ns = ps_monotonic_ns();
	if (stop_ns && now_ns - stop_ns > SAME_REQUEST_NS)
		end_at_once("perfscope: stopped twice: ended at once, the rest is lost\n");
	bool is_first = !stop_ns;
	if (is_first)
		stop_ns = now_ns;
	wake();
	if (is_first) {
		written_bytes = read_written_bytes();
		if (is_buffered())
			set_grace_timer(PS_STOP_GRACE_NS);
	}
	if (phase == PS_PHASE_LOADING)
		ps_interp_interrupt();
	if (phase == PS_PHASE_RUNNING)
		stop_running(running);
}

static void on_stop(int signal_number)
{
	int saved_errno = errno;
	if (!pass_to_child(signal_number))
		request_stop();
	errno = saved_errno;
}

static void on_request(int signal_number)
{
	int saved_errno = errno;
	if (!pass_to_child(signal_number)) {
		if (signal_number == SIGHUP)
			wants_hangup = true;
		else
			wants_print_stat = true;
		wake();
	}
	errno = saved_errno;
}

static void take_grace(void)
{
	bool is_late = ps_monotonic_ns() - stop_ns > PS_STOP_LIMIT_NS;
	if (is_output_stuck() && is_late)
		end_at_once("perfscope: nobody reads the output, and its pipe is full: ended 2 s "
			    "after the request to stop, the rest is lost\n");
	if (phase != PS_PHASE_RUNNING || !ps_dispatch_is_stuck(running))
		return;
	if (is_late)
		end_at_once("perfscope: a handler did not return within 2 s of the request to "
			    "stop: ended without __exit__\n");
	ps_interp_interrupt();
}

static void on_grace(int signal_number)
{
	int saved_errno = errno;
	if (getpid() == owner)
		take_grace();
	errno = saved_errno;
}

static void on_nothing(int signal_number)
{
}

static const int requests[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR2 };

static int grace_signal(void)
{
	return SIGRTMAX;
}

static bool is_ignored(int signal_number)
{
	struct sigaction action;
	return !sigaction(signal_number, NULL, &action) && action.sa_handler == SIG_IGN;
}

static void handle(int signal_number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	sigemptyset(&action.sa_mask);
	sigaction(signal_number, &action, NULL);
}

// Handlers and a descriptor, not blocked signals and a signalfd: what is blocked or ignored is inherited by the
// programs that a script starts, what is handled is not. For the same reason SIGPIPE gets a handler that does nothing.
// What stops has no SA_RESTART: a system call that the script waits in has to return.
void ps_signals_claim(void)
{
	handle(SIGINT, on_stop, 0);
	handle(SIGTERM, on_stop, 0);
	if (hangup_reopens)
		handle(SIGHUP, on_request, SA_RESTART);
	else if (!is_ignored(SIGHUP)) // nohup(1)
		handle(SIGHUP, on_stop, 0);
	handle(SIGUSR2, on_request, SA_RESTART);
	handle(SIGPIPE, on_nothing, SA_RESTART);
	handle(SIGXFSZ, on_nothing, SA_RESTART);
	handle(grace_signal(), on_grace, 0);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, grace_signal());
	for (size_t i = 0; i < PS_ARRAY_SIZE(requests); i++)
		sigaddset(&set, requests[i]);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void ps_signals_yield(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	handle(SIGINT, SIG_DFL, 0);
}

struct ps_error *ps_signals_start(bool has_output)
{
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake_fd < 0)
		return ps_error_os(errno, "eventfd");
	// To the main thread, which runs the handlers: another one would not wake it from a system call.
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = grace_signal() };
	event.sigev_notify_thread_id = syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &grace_timer)) {
		struct ps_error *error = ps_error_os(errno, "timer_create");
		close(wake_fd);
		wake_fd = -1;
		return error;
	}
	owner = getpid();
	hangup_reopens = has_output;
	stop_ns = 0;
	is_started = true;
	ps_signals_claim();
	return NULL;
}

void ps_signals_finish(void)
{
	if (!is_started)
		return;
	// The process is about to end with its status: a signal that comes late must not change it any more.
	for (size_t i = 0; i < PS_ARRAY_SIZE(requests); i++) {
		if (!is_ignored(requests[i]))
			handle(requests[i], on_nothing, 0);
	}
	timer_delete(grace_timer);
	close(wake_fd);
	wake_fd = -1;
	is_started = false;
}

int ps_signals_fd(void)
{
	return wake_fd;
}

void ps_signals_clear(void)
{
	uint64_t count;
	ssize_t size = read(wake_fd, &count, sizeof(count));
	(void)size; // EAGAIN: nothing to clear
}

void ps_signals_set_phase(enum ps_signal_phase next, struct ps_dispatch *dispatch)
{
	if (next != PS_PHASE_RUNNING) {
		phase = next;
		if (!is_buffered())
			set_grace_timer(0);
		running = NULL;
		return;
	}
	running = dispatch;
	phase = next;
	if (stop_ns) // it came when nothing ran that could be stopped
		stop_running(dispatch);
}

void ps_signals_set_workload(pid_t pid)
{
	workload = pid;
}

bool ps_signals_is_stopping(void)
{
	return stop_ns != 0;
}

bool ps_signals_take_hangup(void)
{
	return __atomic_exchange_n(&wants_hangup, 0, __ATOMIC_RELAXED);
}

bool ps_signals_take_print_stat(void)
{
	return __atomic_exchange_n(&wants_print_stat, 0, __ATOMIC_RELAXED);
}
