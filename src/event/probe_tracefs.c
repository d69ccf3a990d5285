// SPDX-License-Identifier: MIT
#include "probe_tracefs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <perfscope/leftover.h>
#include <perfscope/log.h>
#include <perfscope/tracepoint.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char *const files[] = { "uprobe_events", "kprobe_events" };

/** The probes of this process in tracefs, and what they are removed through, also after --user. */
static struct ps_probe *first;
static int event_fds[] = { -1, -1 };
static pid_t owner;

bool ps_probe_group_owner(const char *group, unsigned long ns, int *ret_pid,
			  unsigned long long *ret_start)
{
	return ps_leftover_owner(group, ns, ret_pid, ret_start);
}

/** Write "-:GROUP/EVENT"; the errno, 0: it is gone. */
static int write_remove(int fd, const char *text)
{
	return write(fd, text, strlen(text)) < 0 && errno != ENOENT ? errno : 0;
}

/** Remove the event of one line of uprobe_events where its process has gone; true: it was there, and is not any more. */
static bool sweep_line(int fd, char *line, unsigned long ns)
{
	char *group = strchr(line, ':'), *slash = group ? strchr(group, '/') : NULL;
	if (!slash)
		return false;
	char *event = slash + 1;
	event[strcspn(event, " ")] = *slash = '\0';
	group++;
	int pid;
	unsigned long long start;
	if (!ps_probe_group_owner(group, ns, &pid, &start) || !ps_leftover_is_gone(pid, start))
		return false;
	char text[256];
	snprintf(text, sizeof(text), "-:%s/%s\n", group, event);
	bool is_removed = write(fd, text, strlen(text)) >= 0;
	// Another run swept it, or a child of its run still has it open: neither is news.
	if (is_removed || (errno != ENOENT && errno != EBUSY))
		ps_log(PS_LOG_INFO, "%s/%s, left by process %d: %s", group, event, pid,
		       is_removed ? "removed" : strerror(errno));
	return is_removed || errno == ENOENT;
}

/** Sweep what a look at the file shows; how many have gone since. */
static size_t sweep_once(const char *path, int fd, unsigned long ns)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	// Read to its end first: the kernel counts lines, and would skip one for each that is removed.
	_cleanup_free_ char *text = NULL;
	size_t capacity = 0, nr = 0;
	if (!file || getdelim(&text, &capacity, '\0', file) <= 0)
		return 0;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		if (strstr(line, ":perfscope_"))
			nr += sweep_line(fd, line, ns);
	}
	return nr;
}

// Far more than runs start at a moment.
#define MAX_SWEEPS 100

static void sweep_file(const char *tracefs, const char *name, unsigned long ns)
{
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/%s", tracefs, name) < 0) {
		path = NULL;
		return;
	}
	// Never with O_TRUNC: that removes every probe of the machine.
	_cleanup_close_ int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	// What others remove while the file is read makes the kernel skip lines: look until nothing is there. The last of
	// several that sweep at once is then alone.
	for (int i = 0; i < MAX_SWEEPS && fd >= 0 && sweep_once(path, fd, ns); i++)
		;
}

void ps_probe_sweep(const char *tracefs)
{
	unsigned long ns = ps_leftover_namespace();
	for (size_t i = 0; i < PS_ARRAY_SIZE(files); i++)
		sweep_file(tracefs, files[i], ns);
}

static struct ps_error *open_events(const char *tracefs, bool is_kernel)
{
	if (event_fds[is_kernel] >= 0)
		return NULL;
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/%s", tracefs, files[is_kernel]) < 0) {
		path = NULL;
		return &ps_enomem;
	}
	event_fds[is_kernel] = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (event_fds[is_kernel] >= 0)
		return NULL;
	int os_errno = errno;
	if (os_errno == ENOENT)
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "this kernel has no %s (CONFIG_%s is off)",
				       is_kernel ? "kprobes" : "uprobes",
				       is_kernel ? "KPROBE_EVENTS" : "UPROBE_EVENTS");
	return ps_error_os(os_errno, "%s", path);
}

/** "perfscope_PID_START_NS/NAME_N": no two runs and no two events share it. NULL: no memory. */
static char *make_event_name(const char *name)
{
	static unsigned int number;
	char plain[24];
	size_t i = 0;
	for (; i < sizeof(plain) - 1 && name[i]; i++)
		plain[i] = isalnum((unsigned char)name[i]) ? name[i] : '_';
	plain[i] = '\0';
	char group[PS_LEFTOVER_NAME_SIZE];
	ps_leftover_name(group);
	char *event;
	if (asprintf(&event, "%s/%s%s_%u", group, isdigit((unsigned char)*plain) ? "_" : "", plain,
		     ++number) < 0)
		return NULL;
	return event;
}

char *ps_probe_definition(const struct ps_spec *spec, const struct ps_probe_place *place,
			  const char *event, const char *path)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return NULL;
	fprintf(stream, "%c:%s ", strstr(spec->system, "ret") ? 'r' : 'p', event);
	if (path)
		fprintf(stream, "%s:0x%" PRIx64, path, place->offset);
	else if (place->symbol)
		fprintf(stream, "%s+%" PRIu64, place->symbol, place->offset);
	else
		fprintf(stream, "0x%" PRIx64, place->offset);
	if (place->semaphore)
		fprintf(stream, "(0x%" PRIx64 ")", place->semaphore);
	if (place->args)
		fprintf(stream, " %s", place->args);
	putc('\n', stream);
	if (fclose(stream)) {
		free(text);
		return NULL;
	}
	return text;
}

/** What the kernel's log of errors says of @event: its sentence, and the column in the command. "": nothing. */
static void read_error_log(const char *tracefs, const char *event, char *ret, size_t size,
			   size_t *ret_column)
{
	char path[256], last[256] = "", line[8192];
	snprintf(path, sizeof(path), "%s/error_log", tracefs);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	*ret = '\0';
	while (file && fgets(line, sizeof(line), file)) {
		const char *error = strstr(line, ": error: ");
		if (error)
			snprintf(last, sizeof(last), "%s", error + strlen(": error: "));
		if (!strstr(line, "Command: ") || !strstr(line, event))
			continue;
		last[strcspn(last, "\n")] = '\0';
		snprintf(ret, size, "%s", last);
		if (fgets(line, sizeof(line), file))
			*ret_column = strcspn(line, "^") - strlen("  Command: ");
	}
}

static struct ps_error *refusal(int os_errno, const char *tracefs, const struct ps_spec *spec,
				const struct ps_probe_place *place, const char *event,
				const char *definition)
{
	if (os_errno == E2BIG)
		return ps_error_format(PS_ERROR_USAGE, "%s: the kernel takes up to 128 arguments",
				       spec->text);
	if (os_errno != EINVAL && os_errno != ENOENT && os_errno != EILSEQ)
		return ps_error_os(os_errno, "%s: the kernel refuses the probe", spec->text);
	char reason[256];
	size_t column = 0;
	read_error_log(tracefs, event, reason, sizeof(reason), &column);
	if (!*reason)
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "%s: the kernel refuses a probe there (of two at one place, "
				       "both have a semaphore or none)",
				       spec->text);
	struct ps_error *error = ps_error_format(
		PS_ERROR_USAGE, "%s: the kernel refuses the probe: %s", spec->text, reason);
	const char *args = place->args ? strstr(definition, place->args) : NULL;
	size_t start = args ? args - definition : 0;
	if (!args || column < start || column > start + strlen(place->args))
		return error;
	return ps_error_caret(error, place->args, column - start);
}

/** Whether @path can stand in a definition as it is. */
static bool is_plain_path(const char *path)
{
	for (const char *at = path; *at; at++) {
		if (isspace((unsigned char)*at) || *at == '#')
			return false;
	}
	return true;
}

static struct ps_error *write_definition(const char *tracefs, const struct ps_spec *spec,
					 const struct ps_probe_place *place, const char *event)
{
	// The kernel looks the path up once: a name without blanks does for that.
	char by_fd[32];
	const char *path = place->path;
	_cleanup_close_ int fd = -1;
	if (path && !is_plain_path(path)) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return ps_error_os(errno, "%s", path);
		snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", fd);
		path = by_fd;
	}
	_cleanup_free_ char *definition = ps_probe_definition(spec, place, event, path);
	if (!definition)
		return &ps_enomem;
	if (write(event_fds[!place->path], definition, strlen(definition)) < 0)
		return refusal(errno, tracefs, spec, place, event, definition);
	return NULL;
}

static void close_events(void)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(event_fds); i++) {
		ps_close_p(&event_fds[i]);
		event_fds[i] = -1;
	}
}

static void end_of_process(int signal_number)
{
	ps_probe_remove_all();
	raise(signal_number); // its default again, with a core file where there is one
}

/** Remove the probes also where a signal ends the process that nobody else handles. */
static void watch_signals(void)
{
	static const int numbers[] = { SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
	struct sigaction now,
		wanted = { .sa_handler = end_of_process, .sa_flags = SA_RESETHAND | SA_NODEFER };
	for (size_t i = 0; i < PS_ARRAY_SIZE(numbers); i++) {
		if (!sigaction(numbers[i], NULL, &now) && now.sa_handler == SIG_DFL)
			sigaction(numbers[i], &wanted, NULL);
	}
}

static void add_to_list(struct ps_probe *probe)
{
	static bool is_watching;
	if (!is_watching) {
		atexit(ps_probe_remove_all);
		watch_signals();
	}
	is_watching = true;
	owner = getpid();
	probe->next = first;
	first = probe; // whole before a signal handler can see it
}

struct ps_error *ps_probe_tracefs_create(const struct ps_spec *spec,
					 const struct ps_probe_place *place, struct ps_probe *probe)
{
	const char *tracefs;
	struct ps_error *error = ps_tracefs_path(&tracefs);
	if (!error)
		error = open_events(tracefs, !place->path);
	if (error && error->kind == PS_ERROR_PERMISSION) {
		ps_error_destroy(error);
		error = ps_error_format(PS_ERROR_PERMISSION,
					"permission denied (a probe with arguments or a filter, or "
					"of a process, stands in tracefs, which needs root)");
	}
	if (error)
		return ps_error_context(error, "%s", spec->text);
	_cleanup_free_ char *event = make_event_name(place->name);
	if (!event || asprintf(&probe->remove, "-:%s\n", event) < 0) {
		probe->remove = NULL;
		return &ps_enomem;
	}
	error = write_definition(tracefs, spec, place, event);
	if (error) {
		free(take_ptr(probe->remove));
		return error;
	}
	probe->is_kernel = !place->path;
	add_to_list(probe);
	char *slash = strchr(event, '/');
	*slash = '\0';
	probe->type = PERF_TYPE_TRACEPOINT;
	error = ps_tracepoint_read_id(tracefs, event, slash + 1, &probe->config);
	if (!error)
		error = ps_tracepoint_read_format(tracefs, event, slash + 1, &probe->format,
						  &probe->format_size);
	return error;
}

// The kernel may let go of a closed event a moment later.
#define NR_TRIES 100
#define TRY_US 2000

static int remove_patiently(const struct ps_probe *probe)
{
	int os_errno = EBUSY;
	for (int i = 0; i < NR_TRIES && os_errno == EBUSY; i++) {
		if (i)
			usleep(TRY_US);
		os_errno = write_remove(event_fds[probe->is_kernel], probe->remove);
	}
	return os_errno;
}

void ps_probe_tracefs_remove(struct ps_probe *probe)
{
	struct ps_probe **at = &first;
	while (*at && *at != probe)
		at = &(*at)->next;
	if (*at)
		*at = probe->next;
	if (getpid() == owner) {
		int os_errno = remove_patiently(probe);
		if (os_errno)
			ps_log(PS_LOG_WARNING, "the probe %.*s stays in tracefs: %s",
			       (int)strcspn(probe->remove + 2, "\n"), probe->remove + 2,
			       strerror(os_errno));
	}
	if (!first)
		close_events();
}

/** Close all descriptors but the standard ones and ours: an event that is open cannot be removed. */
static void close_others(void)
{
	unsigned int start = STDERR_FILENO + 1;
	bool is_swapped = event_fds[0] > event_fds[1];
	for (int i = 0; i < 2; i++) {
		int fd = event_fds[i ^ is_swapped];
		if (fd < (int)start)
			continue;
		if (fd > (int)start)
			syscall(SYS_close_range, start, fd - 1, 0);
		start = fd + 1;
	}
	syscall(SYS_close_range, start, ~0U, 0);
}

void ps_probe_remove_all(void)
{
	if (!first || getpid() != owner)
		return;
	close_others();
	for (struct ps_probe *probe = first; probe; probe = probe->next) {
		int fd = event_fds[probe->is_kernel];
		for (int i = 0; i < NR_TRIES && write_remove(fd, probe->remove) == EBUSY; i++)
			usleep(TRY_US);
	}
	first = NULL;
}
