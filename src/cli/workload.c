// SPDX-License-Identifier: MIT
#include <perfscope/workload.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define EXIT_NOT_STARTED 127 // as shells have it; nobody sees it

struct ps_workload {
	char *name; // as it was typed
	char *path; // of the program
	pid_t pid;
	int pidfd;
	int socket; // to the child: a byte lets it go, errno comes back where exec failed
	bool is_started;
	bool has_ended;
	bool is_terminated; // we sent SIGTERM
	int wait_status;    // of waitpid, when it has ended
};

/** 0 where @path is a program that may be run, else why not. */
static int check_program(const char *path)
{
	struct stat stat_buffer;
	if (stat(path, &stat_buffer))
		return errno;
	if (S_ISDIR(stat_buffer.st_mode))
		return EISDIR;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) ? errno : 0;
}

/** Search PATH for @name; 0 and @ret, which the caller frees, or why there is none. */
static int search_path(const char *name, char **ret)
{
	const char *folder = getenv("PATH");
	if (!folder)
		folder = DEFAULT_PATH;
	int why = ENOENT;
	for (;;) {
		int length = strcspn(folder, ":");
		_cleanup_free_ char *path = NULL;
		// An empty entry is the current folder.
		if (asprintf(&path, "%.*s%s%s", length, folder, length ? "/" : "./", name) < 0) {
			path = NULL;
			return ENOMEM;
		}
		int status = check_program(path);
		if (!status) {
			*ret = take_ptr(path);
			return 0;
		}
		// As shells do: a file that may not be run is worth telling, a folder is not.
		if (status == EACCES)
			why = EACCES;
		if (!folder[length])
			return why;
		folder += length + 1;
	}
}

static struct ps_error *explain_exec(const char *name, int os_errno)
{
	const char *hint = NULL;
	if (os_errno == ENOENT && !strchr(name, '/'))
		return ps_error_format(PS_ERROR_NOT_FOUND,
				       "run %s: no such program in PATH (for one in this folder: "
				       "./%s)",
				       name, name);
	if (os_errno == EACCES)
		hint = "is it executable? chmod +x";
	else if (os_errno == ENOEXEC)
		hint = "neither a program for this machine nor a script that starts with #!";
	return hint ? ps_error_hint(ps_error_os(os_errno, "run %s", name), "%s", hint)
		    : ps_error_os(os_errno, "run %s", name);
}

static struct ps_error *find_program(const char *name, char **ret)
{
	int why;
	if (strchr(name, '/')) {
		why = check_program(name);
		if (!why && !(*ret = strdup(name)))
			return &ps_enomem;
	} else {
		why = *name ? search_path(name, ret) : ENOENT;
	}
	return why ? explain_exec(name, why) : NULL;
}

/** Whether an ignored @signal is the choice of whoever started us, and the program's to inherit. */
static bool is_inherited(int signal)
{
	return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTSTP ||
	       signal == SIGTTIN || signal == SIGTTOU;
}

/** Undo what perfscope and Python do to signals; async-signal-safe. */
static void reset_signals(void)
{
	const struct sigaction default_action = { .sa_handler = SIG_DFL };
	for (int signal = 1; signal < NSIG; signal++) {
		struct sigaction old;
		if (sigaction(signal, NULL, &old))
			continue;
		if (old.sa_handler == SIG_IGN && is_inherited(signal))
			continue;
		sigaction(signal, &default_action, NULL);
	}
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/** The child: wait for the byte, become the program, or tell why not. Async-signal-safe. */
static void __attribute__((noreturn))
run_child(const char *path, char *const argv[], char *const environment[], int socket)
{
	reset_signals();
	char go;
	ssize_t nr;
	do {
		nr = recv(socket, &go, sizeof(go), 0);
	} while (nr < 0 && errno == EINTR);
	if (nr != sizeof(go))
		_exit(EXIT_NOT_STARTED); // perfscope ended before it came to this
	execve(path, argv, environment);
	int os_errno = errno;
	send(socket, &os_errno, sizeof(os_errno), MSG_NOSIGNAL);
	_exit(EXIT_NOT_STARTED);
}

/** The environment with @setting in it, in memory that the caller frees; NULL: no memory. */
static char **make_environment(const char *setting)
{
	size_t nr = 0, nr_kept = 0, length = setting ? strcspn(setting, "=") + 1 : 0;
	while (environ && environ[nr])
		nr++;
	char **environment = calloc(nr + 2, sizeof(*environment));
	for (size_t i = 0; environment && i < nr; i++) {
		if (!setting || strncmp(environ[i], setting, length))
			environment[nr_kept++] = environ[i];
	}
	if (environment)
		environment[nr_kept] = (char *)setting;
	return environment;
}

static struct ps_error *fork_child(struct ps_workload *workload, char *const argv[],
				   const char *setting)
{
	_cleanup_free_ char **environment = make_environment(setting);
	if (!environment)
		return &ps_enomem;
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return ps_error_os(errno, "run %s: a socket to the child", workload->name);
	pid_t pid = fork();
	if (!pid) {
		// Its copy of our end would keep it waiting when we are gone.
		close(sockets[0]);
		run_child(workload->path, argv, environment, sockets[1]);
	}
	int fork_errno = errno;
	close(sockets[1]);
	workload->socket = sockets[0];
	if (pid < 0)
		return ps_error_os(fork_errno, "run %s: fork", workload->name);
	workload->pid = pid;
	workload->pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (workload->pidfd < 0)
		return ps_error_os(errno, "run %s: pidfd_open", workload->name);
	return NULL;
}

struct ps_error *ps_workload_create(char *const argv[], const char *setting,
				    struct ps_workload **ret)
{
	if (!argv[0])
		return ps_error_format(PS_ERROR_USAGE, "--run: no command follows");
	struct ps_workload *workload = calloc(1, sizeof(*workload));
	if (!workload)
		return &ps_enomem;
	workload->socket = workload->pidfd = -1;
	workload->name = strdup(argv[0]);
	struct ps_error *error =
		workload->name ? find_program(argv[0], &workload->path) : &ps_enomem;
	if (!error)
		error = fork_child(workload, argv, setting);
	if (error) {
		ps_workload_destroy(workload);
		return error;
	}
	*ret = workload;
	return NULL;
}

/** Take the status of the child where it has ended, or wait until it does. */
static void reap(struct ps_workload *workload, int wait_flags)
{
	if (workload->has_ended)
		return;
	pid_t pid;
	do {
		pid = waitpid(workload->pid, &workload->wait_status, wait_flags);
	} while (pid < 0 && errno == EINTR);
	// ECHILD: a script waited for all children. The status is lost, the end is not.
	if (pid < 0)
		workload->wait_status = 0;
	workload->has_ended = pid;
}

void ps_workload_destroy(struct ps_workload *workload)
{
	if (!workload)
		return;
	if (workload->socket >= 0)
		close(workload->socket);
	if (workload->pid && !workload->is_started) {
		kill(workload->pid, SIGKILL);
		reap(workload, 0);
	}
	if (workload->pidfd >= 0)
		close(workload->pidfd);
	free(workload->path);
	free(workload->name);
	free(workload);
}

pid_t ps_workload_pid(const struct ps_workload *workload)
{
	return workload->pid;
}

const char *ps_workload_path(const struct ps_workload *workload)
{
	return workload->path;
}

int ps_workload_pidfd(const struct ps_workload *workload)
{
	return workload->pidfd;
}

struct ps_error *ps_workload_start(struct ps_workload *workload)
{
	// The child may be dead already, of a Ctrl-C; its status tells then.
	send(workload->socket, "", 1, MSG_NOSIGNAL);
	int os_errno = 0;
	ssize_t nr;
	do {
		nr = recv(workload->socket, &os_errno, sizeof(os_errno), 0);
	} while (nr < 0 && errno == EINTR);
	close(workload->socket);
	workload->socket = -1;
	if (nr != sizeof(os_errno)) {
		workload->is_started = true; // exec closed its end
		return NULL;
	}
	reap(workload, 0);
	if (os_errno == ENOENT)
		return ps_error_format(PS_ERROR_NOT_FOUND,
				       "run %s: the interpreter that its first line or header "
				       "names does not exist",
				       workload->name);
	return explain_exec(workload->name, os_errno);
}

bool ps_workload_has_ended(struct ps_workload *workload)
{
	reap(workload, WNOHANG);
	return workload->has_ended;
}

int ps_workload_status(struct ps_workload *workload)
{
	if (!ps_workload_has_ended(workload))
		return 0;
	if (!WIFSIGNALED(workload->wait_status))
		return WEXITSTATUS(workload->wait_status);
	int signal = WTERMSIG(workload->wait_status);
	return workload->is_terminated && signal == SIGTERM ? 0 : 128 + signal;
}

bool ps_workload_stop(struct ps_workload *workload)
{
	if (ps_workload_has_ended(workload))
		return true;
	kill(workload->pid, SIGTERM);
	kill(workload->pid, SIGCONT); // a stopped one would not hear it
	workload->is_terminated = true;
	struct pollfd wait = { .fd = workload->pidfd, .events = POLLIN };
	poll(&wait, 1, PS_WORKLOAD_GRACE_MS);
	return ps_workload_has_ended(workload);
}
