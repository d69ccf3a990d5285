// SPDX-License-Identifier: MIT
/** Threads that pass, read, reset and configure at once. `make check-tsan` looks on. */
#include "regions.h"

#include <perfscope/region.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define DURATION_US 300000
#define MAX_THREADS 8

static atomic_bool is_over;
static atomic_ulong nr_passes;

static void *pass(void *argument)
{
	char name[16];
	for (int i = 0; !is_over; i++) {
		sprintf(name, "shared%d", i % 5);
		perfscope_region_begin(name);
		perfscope_region_begin("all");
		perfscope_region_end("all");
		perfscope_region_end(name);
		atomic_fetch_add(&nr_passes, 1);
	}
	return argument;
}

static void *pass_once(void *argument)
{
	perfscope_region_begin("all");
	perfscope_region_end("all");
	atomic_fetch_add(&nr_passes, 1);
	return argument;
}

static void *bear(void *argument)
{
	while (!is_over) {
		pthread_t thread;
		ASSERT_EQ(pthread_create(&thread, NULL, pass_once, NULL), 0);
		pthread_join(thread, NULL);
	}
	return argument;
}

/** Calls never become fewer, and each counter is one of those that are configured. */
static void *look(void *is_alone)
{
	FILE *file = fopen("/dev/null", "w");
	uint64_t last = 0;
	while (!is_over) {
		struct perfscope_region_total total;
		if (perfscope_region_totals("all", &total) == 0) {
			ASSERT_TRUE(!is_alone || total.calls >= last);
			last = total.calls;
		}
		ASSERT_EQ(perfscope_region_report(file), 0);
		perfscope_region_overhead(&total);
	}
	fclose(file);
	return NULL;
}

static void *reset(void *argument)
{
	while (!is_over) {
		ASSERT_EQ(perfscope_region_reset(), 0);
		usleep(3000);
	}
	return argument;
}

static void *reconfigure(void *argument)
{
	static const char *const events[] = { "page-faults", "task-clock,page-faults" };
	for (int i = 0; !is_over; i++) {
		ASSERT_EQ(perfscope_region_configure(events[i % 2],
						     i % 4 < 2 ? PERFSCOPE_REGION_SUBTRACT : 0),
			  0);
		usleep(10000);
	}
	return argument;
}

static void *fork_some(void *argument)
{
	while (!is_over) {
		pid_t child = fork();
		if (!child) {
			struct perfscope_region_total total;
			for (int i = 0; i < 10; i++)
				pass_once(NULL);
			_exit(perfscope_region_totals("all", &total) || total.calls != 10);
		}
		int status;
		ASSERT_EQ(waitpid(child, &status, 0), child);
		ASSERT_EQ(status, 0);
		usleep(5000);
	}
	return argument;
}

/** Run @functions, which end with NULL, each in a thread with @argument, for a while. */
static void run(void *(*const functions[])(void *), void *argument)
{
	pthread_t threads[MAX_THREADS];
	size_t nr = 0;
	is_over = false;
	nr_passes = 0;
	ASSERT_EQ(perfscope_region_configure("page-faults", 0), 0);
	for (; functions[nr]; nr++)
		ASSERT_EQ(pthread_create(&threads[nr], NULL, functions[nr], argument), 0);
	usleep(DURATION_US);
	is_over = true;
	while (nr)
		pthread_join(threads[--nr], NULL);
}

TEST(region_threads, no_pass_is_lost_beside_who_reads)
{
	run((void *(*[])(void *)){ pass, pass, bear, look, look, NULL }, "alone");
	struct perfscope_region_total total;
	ASSERT_EQ(perfscope_region_totals("all", &total), 0);
	ASSERT_EQ(total.calls, nr_passes);
	ASSERT_EQ(total.open, 0);
	ASSERT_EQ(total.incomplete, 0);
}

TEST(region_threads, what_is_read_stays_whole_beside_who_configures)
{
	run((void *(*[])(void *)){ pass, pass, bear, look, reset, reconfigure, reconfigure, NULL },
	    NULL);
	ASSERT_EQ(perfscope_region_configure("page-faults", 0), 0);
	pass_once(NULL);
	assert_faults("all", 1, 0);
}

TEST(region_threads, a_child_has_its_own_beside_threads_of_its_parent)
{
	run((void *(*[])(void *)){ pass, pass, look, reset, fork_some, NULL }, NULL);
	struct perfscope_region_total total;
	if (perfscope_region_totals("all", &total) == 0)
		ASSERT_TRUE(total.calls <= nr_passes);
}
