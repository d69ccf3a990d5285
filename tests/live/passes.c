// SPDX-License-Identifier: MIT
/*
 * passes WORD [NUMBER...]: passes of known size through stretches that tests of regions observe; the table is at the end.
 *
 * A pass goes from getppid to getpid, of the second thread of `pair` from getuid to getgid; a fresh page is a page fault. It prints
 * the CPU time of each of the first passes as JSON: {"cpu_ns": [...]}.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone, used))

static long page_bytes;
static long numbers[4];

static volatile char *fresh_pages(long nr)
{
	void *pages = mmap(NULL, (nr + 1) * page_bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		exit(1);
	// One fault brings in many pages where huge ones are on.
	madvise(pages, (nr + 1) * page_bytes, MADV_NOHUGEPAGE);
	return pages;
}

static volatile char *touch(volatile char *at, long nr)
{
	for (long i = 0; i < nr; i++, at += page_bytes)
		*at = 1;
	return at;
}

static void pin(int cpu)
{
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static uint64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void spin(long us)
{
	uint64_t end_ns = cpu_ns() + us * 1000ull;
	while (cpu_ns() < end_ns)
		;
}

#define MAX_TIMES 64
static uint64_t times_ns[MAX_TIMES]; // of passes
static int nr_times;

static void add_time(uint64_t time_ns)
{
	if (nr_times < MAX_TIMES)
		times_ns[nr_times++] = time_ns;
}

/** plain N P US: N passes, each P fresh pages and US of CPU time. */
static void run_plain(void)
{
	volatile char *at = fresh_pages(numbers[0] * numbers[1]);
	for (long i = 0; i < numbers[0]; i++) {
		syscall(SYS_getppid);
		uint64_t start_ns = cpu_ns();
		at = touch(at, numbers[1]);
		if (numbers[2])
			spin(numbers[2]);
		add_time(cpu_ns() - start_ns);
		syscall(SYS_getpid);
	}
}

/** migrate N P US: N passes, each P fresh pages and US on CPU 0, CPU 1, and CPU 0 again. */
static void run_migrate(void)
{
	volatile char *at = fresh_pages(numbers[0] * numbers[1] * 3);
	for (long i = 0; i < numbers[0]; i++) {
		pin(0);
		syscall(SYS_getppid);
		uint64_t start_ns = cpu_ns();
		for (int j = 0; j < 3; j++) {
			at = touch(at, numbers[1]);
			spin(numbers[2]);
			if (j < 2)
				pin(!j);
		}
		add_time(cpu_ns() - start_ns);
		syscall(SYS_getpid);
		// What is outside of a pass does not count, on whichever CPU.
		pin(1);
		*fresh_pages(1) = 1;
	}
}

/** Passes that give up the CPU at each page. */
static void yield_passes(long nr_pages, long begin, long end)
{
	volatile char *at = fresh_pages(numbers[0] * nr_pages);
	for (long i = 0; i < numbers[0]; i++) {
		syscall(begin);
		for (long j = 0; j < nr_pages; j++) {
			at = touch(at, 1);
			sched_yield();
		}
		syscall(end);
	}
}

static pthread_barrier_t barrier;

static void *run_second(void *unused)
{
	sched_yield();
	pthread_barrier_wait(&barrier);
	yield_passes(numbers[2], SYS_getuid, SYS_getgid);
	return unused;
}

/** pair N P Q: two threads on CPU 0 at once, N passes each, one of P pages, the other of Q. */
static void run_pair(void)
{
	pthread_t thread;
	pin(0);
	sched_yield();
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, run_second, NULL);
	pthread_barrier_wait(&barrier);
	yield_passes(numbers[1], SYS_getppid, SYS_getpid);
	pthread_join(thread, NULL);
}

KEEP long nested(volatile char *at, long depth, long nr_pages)
{
	at = touch(at, nr_pages);
	long rest = depth > 1 ? nested(at, depth - 1, nr_pages) : 0;
	__asm__ volatile("" : "+r"(rest)); // no tail call
	return rest + 1;
}

/** nested N DEPTH P: N calls of a function that calls itself to DEPTH, P pages at each. */
static void run_nested(void)
{
	volatile char *pages = fresh_pages(numbers[0] * numbers[1] * numbers[2]);
	for (long i = 0; i < numbers[0]; i++)
		nested(pages + i * numbers[1] * numbers[2] * page_bytes, numbers[1], numbers[2]);
}

static void *begin_only(void *unused)
{
	syscall(SYS_getppid);
	return unused;
}

/** odd N: N threads that begin and end, one after the other; an end without a begin; then one whole pass, and a begin. */
static void run_odd(void)
{
	for (long i = 0; i < numbers[0]; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, begin_only, NULL);
		pthread_join(thread, NULL);
	}
	syscall(SYS_getpid);
	syscall(SYS_getppid);
	syscall(SYS_getpid);
	syscall(SYS_getppid);
}

/** forks N P: N children one after the other, each a pass of P fresh pages. */
static void run_forks(void)
{
	for (long i = 0; i < numbers[0]; i++) {
		if (!fork()) {
			volatile char *at = fresh_pages(numbers[1]);
			syscall(SYS_getppid);
			touch(at, numbers[1]);
			syscall(SYS_getpid);
			_exit(0);
		}
		wait(NULL);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} words[] = {
	{ "plain", run_plain },	  { "migrate", run_migrate }, { "pair", run_pair },
	{ "nested", run_nested }, { "odd", run_odd },	      { "forks", run_forks },
};

int main(int argc, char **argv)
{
	page_bytes = sysconf(_SC_PAGESIZE);
	cpu_ns(); // the vdso's pages
	if (argc < 2)
		return 2;
	const char *word = argv[1];
	if (!strcmp(word, "wait")) { // until a line comes on stdin, so that an observer can attach
		char byte;
		if (read(STDIN_FILENO, &byte, 1) < 0)
			return 1;
		word = (++argv)[1];
	}
	for (int i = 0; i < 4 && argv[1] && argv[2 + i]; i++)
		numbers[i] = atol(argv[2 + i]);
	for (size_t i = 0; word && i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(word, words[i].name))
			words[i].run();
	}
	printf("{\"cpu_ns\": [");
	for (int i = 0; i < nr_times; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)times_ns[i]);
	printf("]}\n");
	return 0;
}
