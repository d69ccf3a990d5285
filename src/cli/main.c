// SPDX-License-Identifier: MIT
#include <perfscope/cli.h>

#include <errno.h>
#include <fcntl.h>
#include <perfscope/log.h>
#include <perfscope/nearest.h>
#include <perfscope/options.h>
#include <perfscope/version.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "python", ps_cli_python, "run a Python script on kernel events" },
	{ "list", ps_cli_list, "list the events that can be opened here" },
	{ "doctor", ps_cli_doctor, "say what this machine and this user can do" },
};

static void write_help(FILE *file)
{
	fputs("Usage: perfscope COMMAND [ARG...]\n\n", file);
	for (size_t i = 0; i < PS_ARRAY_SIZE(commands); i++)
		fprintf(file, "  %-12s%s\n", commands[i].name, commands[i].help);
	fputs("  --version   print the version\n"
	      "  --help      print this help; perfscope COMMAND --help tells more\n",
	      file);
}

static int unknown_command(const char *name)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, name);
	for (size_t i = 0; i < PS_ARRAY_SIZE(commands); i++)
		ps_nearest_add(&nearest, commands[i].name);
	_cleanup_free_ char *hint = ps_nearest_text(&nearest);
	ps_nearest_deinit(&nearest);
	ps_log(PS_LOG_ERROR, "%s: no such command%s", name,
	       hint && *hint ? hint : "; perfscope --help lists them");
	return 2;
}

/** Options of perfscope itself; false where @name is none. */
static bool take_option(const char *name)
{
	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		puts("perfscope " PS_VERSION);
	else if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help"))
		write_help(stdout);
	else if (!strcmp(name, "--man-options")) // for the build of the man page
		ps_options_man(stdout);
	else
		return false;
	return true;
}

/** What is opened next must not become stdin, stdout or stderr, where messages and text would go into it. */
static void fill_standard_descriptors(void)
{
	int fd;
	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/** A descriptor of what @fd is, whose flags are its own; -1: there is none. */
static int open_again(int fd, int flags)
{
	struct stat stat;
	if (fstat(fd, &stat) || !(S_ISFIFO(stat.st_mode) || S_ISCHR(stat.st_mode)))
		return -1;
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	// With O_NONBLOCK still: a pipe that nobody reads any more would be waited for.
	return open(path, flags | O_NOCTTY | O_CLOEXEC);
}

/**
 * Let @fd wait where its reader is slow, which a program that shares it may have told it not to: what finds no room would
 * be lost. For others it stays as it is, unless it is a socket.
 */
static void make_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || !(flags & O_NONBLOCK))
		return;
	int own = open_again(fd, flags & (O_ACCMODE | O_APPEND | O_NONBLOCK));
	if (own >= 0) {
		dup2(own, fd);
		close(own);
	}
	fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

static void on_broken_pipe(int signal_number)
{
}

/** Flush what was written; a pipe that nobody reads any more is a clean end. */
static int flush(int status)
{
	errno = 0;
	if (!fflush(stdout) || errno == EPIPE)
		return status;
	ps_log(PS_LOG_ERROR, "stdout: %s", strerror(errno));
	return status ? status : 1;
}

int main(int argc, char **argv)
{
	fill_standard_descriptors();
	make_blocking(STDOUT_FILENO);
	make_blocking(STDERR_FILENO);
	// A handler, as what is ignored would be inherited by programs that are started.
	signal(SIGPIPE, on_broken_pipe);
	if (argc < 2) {
		write_help(stderr);
		return 2;
	}
	for (size_t i = 0; i < PS_ARRAY_SIZE(commands); i++) {
		if (!strcmp(argv[1], commands[i].name))
			return flush(commands[i].run(argc - 1, argv + 1));
	}
	return take_option(argv[1]) ? flush(0) : unknown_command(argv[1]);
}
