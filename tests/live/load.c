// SPDX-License-Identifier: MIT
/*
 * A load of known size: does what its arguments say, and prints one line of JSON that tells what it did.
 *
 *	load [--cpu N] ACTION [ARG...] [+ ACTION [ARG...]]...
 *
 * The actions, in the table at the end of this file, run one after the other in the main thread unless they say
 * otherwise. Counts are exact: N system calls are N, made directly.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/** What an action tells of itself beyond its name, the count and the time. */
struct outcome {
	long count;
	pid_t child; // the last child, or 0
	long late;   // bursts that began more than 1 ms after their time
};

static void die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die("sched_setaffinity");
}

static long number(char **arguments, int nr, int at, long absent)
{
	if (at >= nr)
		return absent;
	char *end;
	long value = strtol(arguments[at], &end, 10);
	if (end == arguments[at] || *end || value < 0) {
		fprintf(stderr, "load: %s: not a count\n", arguments[at]);
		exit(2);
	}
	return value;
}

/** getppid N [RATE [BURST]]: RATE calls a second, BURST in a row; waits by reading the clock, without a system call. */
static void run_getppid(char **arguments, int nr, struct outcome *ret)
{
	long count = number(arguments, nr, 0, 1);
	long rate = number(arguments, nr, 1, 0);
	long burst = number(arguments, nr, 2, 1);
	uint64_t start_ns = now_ns();

	for (long done = 0; done < count; done += burst) {
		uint64_t due_ns = rate ? start_ns + (uint64_t)(1e9 * done / rate) : 0;
		ret->late += rate && now_ns() > due_ns + 1000000;
		while (rate && now_ns() < due_ns)
			;
		for (long i = 0; i < burst && done + i < count; i++)
			syscall(SYS_getppid);
	}
	ret->count = count;
}

/** Call getppid @count times, @depth calls down; the work after each call keeps its frame. */
static __attribute__((noinline)) long call_from_depth(long depth, long count)
{
	if (depth > 1)
		return call_from_depth(depth - 1, count) + depth;
	for (long i = 0; i < count; i++)
		syscall(SYS_getppid);
	return count;
}

/** deep DEPTH N: N getppid calls with DEPTH functions of this program's on the stack, beside main and what it calls. */
static void run_deep(char **arguments, int nr, struct outcome *ret)
{
	volatile long depth = number(arguments, nr, 0, 1);
	ret->count = number(arguments, nr, 1, 1);
	call_from_depth(depth, ret->count);
}

/** touch N: the first write to N fresh pages, each a page fault. */
static void run_touch(char **arguments, int nr, struct outcome *ret)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	long count = number(arguments, nr, 0, 1);
	volatile char *pages = mmap(NULL, count * page_size, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		die("mmap");
	// One fault brings in many pages where huge ones are on.
	madvise((void *)pages, count * page_size, MADV_NOHUGEPAGE);
	for (long i = 0; i < count; i++)
		pages[i * page_size] = 1;
	munmap((void *)pages, count * page_size);
	ret->count = count;
}

/** open PATH [N]: open PATH N times by openat(AT_FDCWD), whether or not it exists. */
static void run_open(char **arguments, int nr, struct outcome *ret)
{
	ret->count = number(arguments, nr, 1, 1);
	for (long i = 0; i < ret->count; i++) {
		int fd =
			syscall(SYS_openat, AT_FDCWD, nr ? arguments[0] : "/dev/null", O_RDONLY, 0);
		if (fd >= 0)
			close(fd);
	}
}

/** kill SIGNAL [N]: send it to this process; it is ignored. */
static void run_kill(char **arguments, int nr, struct outcome *ret)
{
	int number_of_signal = number(arguments, nr, 0, 0);
	if (number_of_signal)
		signal(number_of_signal, SIG_IGN);
	ret->count = number(arguments, nr, 1, 1);
	for (long i = 0; i < ret->count; i++)
		syscall(SYS_kill, getpid(), number_of_signal);
}

static void futex_wait_for(uint32_t *word, uint32_t wanted)
{
	for (uint32_t seen; (seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != wanted;)
		syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static void futex_set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/** pingpong N [CPU [CPU]]: N rounds of two processes that wake each other by futex, the second a child. */
static void run_pingpong(char **arguments, int nr, struct outcome *ret)
{
	long count = number(arguments, nr, 0, 1);
	uint32_t *ball = mmap(NULL, sizeof(*ball), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ball == MAP_FAILED)
		die("mmap");
	fflush(stdout);
	ret->child = fork();
	if (ret->child < 0)
		die("fork");
	bool is_child = !ret->child;
	pin(number(arguments, nr, is_child ? 2 : 1, is_child ? 1 : 0));
	for (long i = 0; i < count; i++) {
		if (is_child) {
			futex_wait_for(ball, 1);
			futex_set(ball, 0);
		} else {
			futex_set(ball, 1);
			futex_wait_for(ball, 0);
		}
	}
	if (is_child)
		_exit(0);
	waitpid(ret->child, NULL, 0);
	ret->count = count;
}

static void make_children(long count, const char *program, struct outcome *ret)
{
	fflush(stdout);
	for (long i = 0; i < count; i++) {
		ret->child = fork();
		if (ret->child < 0)
			die("fork");
		if (!ret->child) {
			if (program)
				execl(program, program, (char *)NULL);
			_exit(program ? 127 : 0);
		}
		int status;
		waitpid(ret->child, &status, 0);
		if (program && WIFEXITED(status) && WEXITSTATUS(status) == 127)
			die(program);
	}
	ret->count = count;
}

/** fork N: N children that end at once, one after the other. */
static void run_fork(char **arguments, int nr, struct outcome *ret)
{
	make_children(number(arguments, nr, 0, 1), NULL, ret);
}

/** exec N [PROGRAM]: N children that execute PROGRAM (/bin/true), one after the other. */
static void run_exec(char **arguments, int nr, struct outcome *ret)
{
	make_children(number(arguments, nr, 0, 1), nr > 1 ? arguments[1] : "/bin/true", ret);
}

/** rename NAME: of the main thread, 15 bytes of it. */
static void run_rename(char **arguments, int nr, struct outcome *ret)
{
	prctl(PR_SET_NAME, nr ? arguments[0] : "renamed");
	ret->count = 1;
}

static void *call_getppid(void *count)
{
	for (long i = 0; i < *(long *)count; i++)
		syscall(SYS_getppid);
	return NULL;
}

/** threads N [M]: N threads at once, each makes M getppid calls. */
static void run_threads(char **arguments, int nr, struct outcome *ret)
{
	long count = number(arguments, nr, 0, 1);
	long nr_calls = number(arguments, nr, 1, 0);
	pthread_t *threads = calloc(count, sizeof(*threads));
	for (long i = 0; i < count; i++) {
		errno = pthread_create(&threads[i], NULL, call_getppid, &nr_calls);
		if (errno)
			die("pthread_create");
	}
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	ret->count = count;
}

/** wait: until a line or the end comes on stdin; so an observer can attach first. */
static void run_wait(char **arguments, int nr, struct outcome *ret)
{
	(void)arguments, (void)nr;
	char byte;
	ret->count = read(STDIN_FILENO, &byte, 1);
}

/** sleep MS. */
static void run_sleep(char **arguments, int nr, struct outcome *ret)
{
	ret->count = number(arguments, nr, 0, 0);
	usleep(ret->count * 1000);
}

/** spin MS: of CPU time of this thread, in user space. */
static void run_spin(char **arguments, int nr, struct outcome *ret)
{
	struct timespec now;
	ret->count = number(arguments, nr, 0, 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	uint64_t end_ns = now.tv_sec * 1000000000ull + now.tv_nsec + ret->count * 1000000ull;
	do {
		for (volatile int i = 0; i < 1000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000000000ull + now.tv_nsec < end_ns);
}

/** exit STATUS: end here, with what was done so far told. */
static int exit_status;

static void run_exit(char **arguments, int nr, struct outcome *ret)
{
	exit_status = number(arguments, nr, 0, 0);
	ret->count = 1;
}

static const struct action {
	const char *name;
	void (*run)(char **arguments, int nr, struct outcome *ret);
} actions[] = {
	{ "getppid", run_getppid }, { "touch", run_touch },	  { "open", run_open },
	{ "kill", run_kill },	    { "pingpong", run_pingpong }, { "fork", run_fork },
	{ "exec", run_exec },	    { "rename", run_rename },	  { "threads", run_threads },
	{ "wait", run_wait },	    { "sleep", run_sleep },	  { "spin", run_spin },
	{ "exit", run_exit },	    { "deep", run_deep },
};

static const struct action *find_action(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (!strcmp(actions[i].name, name))
			return &actions[i];
	}
	fprintf(stderr, "load: %s: no such action; there are:", name);
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		fprintf(stderr, " %s", actions[i].name);
	fputc('\n', stderr);
	exit(2);
}

/** Run the action at arguments[0], whose own arguments end at a "+"; the number of words that it took. */
static int run_action(char **arguments, int nr, FILE *report)
{
	int end = 1;
	while (end < nr && strcmp(arguments[end], "+"))
		end++;
	const struct action *action = find_action(arguments[0]);
	struct outcome outcome = { 0 };
	uint64_t start_ns = now_ns();
	action->run(arguments + 1, end - 1, &outcome);
	fprintf(report,
		"{\"action\": \"%s\", \"count\": %ld, \"wall_ns\": %llu, \"child\": %d, \"late\": "
		"%ld}",
		action->name, outcome.count, (unsigned long long)(now_ns() - start_ns),
		(int)outcome.child, outcome.late);
	return end;
}

int main(int argc, char **argv)
{
	int at = 1;
	if (argc > 2 && !strcmp(argv[1], "--cpu")) {
		pin(number(argv, argc, 2, 0));
		at = 3;
	}
	char *text = NULL;
	size_t size = 0;
	FILE *report = open_memstream(&text, &size);
	if (!report)
		die("open_memstream");
	fprintf(report, "{\"pid\": %d, \"actions\": [", (int)getpid());
	for (bool is_first = true; at < argc; is_first = false) {
		if (!is_first)
			fputs(", ", report);
		at += run_action(argv + at, argc - at, report);
		at += at < argc; // the "+"
	}
	fputs("]}\n", report);
	fclose(report);
	fputs(text, stdout);
	free(text);
	return exit_status;
}
