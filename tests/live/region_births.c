// SPDX-License-Identifier: MIT
/**
 * A program whose processes and threads begin and end in unusual ways: region_births WAY NR.
 *
 * Each of NR children, born in a pass of "parent", passes "child" with 5 fresh pages; what is born in no pass passes "long"
 * around 8 passes of "child".
 */
#define _GNU_SOURCE
#include <perfscope/region.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

#pragma weak _Fork // not before glibc 2.34

static void pass(const char *name, int nr_pages)
{
	size_t size = (size_t)(nr_pages + 1) * PAGE;
	perfscope_region_begin(name);
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(memory, size, MADV_NOHUGEPAGE);
	for (int i = 0; i < nr_pages; i++)
		((volatile char *)memory)[i * PAGE] = 1;
	munmap(memory, size);
	perfscope_region_end(name);
}

/** What a process does first is not counted: it faults in what it shares with its parent. */
static void pass_as_child(void)
{
	pass("warm", 1);
	pass("child", 5);
	_exit(0);
}

static pid_t fork_unnoticed(void)
{
	return _Fork ? _Fork() : fork();
}

static pid_t clone_raw(void)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static pid_t exec_child(void)
{
	pid_t child = vfork();
	if (!child) {
		execl("/proc/self/exe", "region_births", "child", (char *)NULL);
		_exit(127);
	}
	return child;
}

static void pass_for_long(int nr_ms)
{
	perfscope_region_begin("long");
	for (int i = 0; i < 8; i++) {
		pass("child", 5);
		usleep(nr_ms * 1000 / 8);
	}
	perfscope_region_end("long");
}

/** Children of a pid namespace of their own, whose low numbers are others' outside. */
static void be_first_of_container(int nr)
{
	for (int i = 0; i < nr; i++) {
		if (!fork()) {
			pass_for_long(300);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	_exit(0);
}

static void make_container(int nr)
{
	if (unshare(CLONE_NEWPID))
		exit(3);
	pid_t child = fork();
	if (!child)
		be_first_of_container(nr);
	waitpid(child, NULL, 0);
}

static void *live_on(void *unused)
{
	pass_for_long(300);
	return unused;
}

/** Threads that outlive the first one. */
static void end_first_thread(int nr)
{
	for (int i = 0; i < nr; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, live_on, NULL);
	}
	pthread_exit(NULL);
}

static void bear(pid_t (*birth)(void), int nr)
{
	for (int i = 0; i < nr; i++) {
		perfscope_region_begin("parent");
		pid_t child = birth();
		if (!child)
			pass_as_child();
		waitpid(child, NULL, 0);
		perfscope_region_end("parent");
	}
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	int nr = argc > 2 ? atoi(argv[2]) : 1;
	if (!strcmp(way, "child"))
		pass_as_child();
	pass("warm", 1);
	if (!strcmp(way, "fork"))
		bear(fork, nr);
	else if (!strcmp(way, "_Fork"))
		bear(fork_unnoticed, nr);
	else if (!strcmp(way, "clone"))
		bear(clone_raw, nr);
	else if (!strcmp(way, "vfork"))
		bear(exec_child, nr);
	else if (!strcmp(way, "container"))
		make_container(nr);
	else if (!strcmp(way, "thread"))
		end_first_thread(nr);
	else
		return 2;
	return 0;
}
