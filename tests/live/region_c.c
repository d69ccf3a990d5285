// SPDX-License-Identifier: MIT
/**
 * A C program with regions, as a user writes one: region_c WORK [N]. Prints the totals of its region "work" as JSON.
 */
#include <perfscope/region.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

static int is_active_before_main;
static long long clock_ns;

__attribute__((constructor)) static void look_before_main(void)
{
	is_active_before_main = perfscope_region_is_active;
}

/** Touch @nr fresh pages. */
static void fault(int nr)
{
	char *memory = mmap(NULL, (size_t)nr * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(memory, (size_t)nr * PAGE, MADV_NOHUGEPAGE);
	for (int i = 0; i < nr; i++)
		((volatile char *)memory)[i * PAGE] = 1;
	munmap(memory, (size_t)nr * PAGE);
}

static void pass(int nr)
{
	perfscope_region_begin("work");
	fault(nr);
	perfscope_region_end("work");
}

static void nested(int nr)
{
	perfscope_region_begin("work");
	fault(nr);
	perfscope_region_begin("inner");
	fault(nr);
	perfscope_region_end("inner");
	perfscope_region_end("work");
}

static void recursive(int nr)
{
	PERFSCOPE_REGION("work");
	fault(1);
	if (nr > 1)
		recursive(nr - 1);
}

static void *pass_in_thread(void *nr)
{
	perfscope_region_begin("warm");
	fault(1);
	perfscope_region_end("warm");
	pass(*(int *)nr);
	return NULL;
}

static void threads(int nr)
{
	pthread_t threads[8];
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, pass_in_thread, &nr);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

static void sleeps(int nr)
{
	perfscope_region_begin("work");
	for (int i = 0; i < nr; i++)
		usleep(100);
	perfscope_region_end("work");
}

static long long thread_clock_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/** Work for @nr ms of the thread's clock, and tell how much it was. */
static void busy(int nr)
{
	perfscope_region_begin("work");
	long long start_ns = thread_clock_ns();
	do
		clock_ns = thread_clock_ns() - start_ns;
	while (clock_ns < nr * 1000000LL);
	perfscope_region_end("work");
}

static void forks(int nr)
{
	perfscope_region_begin("work");
	pid_t child = fork();
	if (!child) {
		perfscope_region_begin("work");
		fault(nr);
		perfscope_region_end("work");
		struct perfscope_region_total totals;
		_exit(perfscope_region_totals("work", &totals) || totals.calls != 1);
	}
	int status;
	waitpid(child, &status, 0);
	perfscope_region_end("work");
	if (status)
		exit(3);
}

/** Passes of one page until killed. */
static void killed(int nr)
{
	for (int i = 0; i < nr; i++)
		pass(1);
	raise(SIGKILL);
}

/** The same, killed in a pass. */
static void killed_inside(int nr)
{
	for (int i = 0; i < nr; i++)
		pass(1);
	perfscope_region_begin("work");
	raise(SIGKILL);
}

/** A pass of one page every 10 ms. */
static void paced(int nr)
{
	for (int i = 0; i < nr; i++) {
		pass(1);
		usleep(10000);
	}
}

/** As many names. */
static void names(int nr)
{
	char name[16];
	for (int i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		perfscope_region_begin(name);
		perfscope_region_end(name);
	}
}

/** Names that are no UTF-8, and ours. */
static void odd_names(int nr)
{
	perfscope_region_begin("caf\xe9");
	fault(nr);
	perfscope_region_end("caf\xe9");
	perfscope_region_begin("run");
	perfscope_region_end("run");
}

static void report(int nr)
{
	pass(nr);
	perfscope_region_report(stdout);
	exit(0);
}

static const struct {
	const char *name;
	void (*run)(int nr);
} works[] = { { "pass", pass },		  { "nested", nested },
	      { "recursive", recursive }, { "threads", threads },
	      { "sleeps", sleeps },	  { "busy", busy },
	      { "forks", forks },	  { "killed", killed },
	      { "report", report },	  { "killed_inside", killed_inside },
	      { "paced", paced },	  { "names", names },
	      { "odd_names", odd_names } };

static void write_totals(void)
{
	struct perfscope_region_total totals;
	if (perfscope_region_totals("work", &totals)) {
		printf("{\"error\": \"%s\"}\n", perfscope_region_error());
		return;
	}
	printf("{\"calls\": %d, \"incomplete\": %d, \"seconds\": %f, \"before_main\": %d, "
	       "\"clock_ns\": %lld",
	       (int)totals.calls, (int)totals.incomplete, totals.seconds, is_active_before_main,
	       clock_ns);
	for (size_t i = 0; i < totals.nr_values; i++) {
		const struct perfscope_region_value *value = &totals.values[i];
		if (value->is_valid)
			printf(", \"%s\": %llu", value->name, (unsigned long long)value->value);
		else
			printf(", \"%s\": null", value->name);
	}
	printf("}\n");
}

int main(int argc, char **argv)
{
	const char *events = getenv("EVENTS");
	const char *flags = getenv("FLAGS");
	if (events && perfscope_region_configure(events, flags ? atoi(flags) : 0)) {
		printf("{\"error\": \"%s\"}\n", perfscope_region_error());
		return 1;
	}
	perfscope_region_begin("warm");
	fault(1);
	perfscope_region_end("warm");
	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++) {
		if (argc > 1 && !strcmp(works[i].name, argv[1]))
			works[i].run(argc > 2 ? atoi(argv[2]) : 1);
	}
	write_totals();
	return 0;
}
