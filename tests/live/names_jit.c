// SPDX-License-Identifier: MIT
/**
 * names_jit [fork]: makes code that calls back, and tells its names in a perf map: "first", later "second" of the same
 * place, and then "beside" it. With "fork" a child of it, which has no map of its own, runs the code last.
 */
#include "getppid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

// Keep a frame pointer, call the argument, return.
#if defined(__x86_64__)
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
#else
static const unsigned int code[] = { 0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
#endif

static FILE *names;

static __attribute__((noipa)) void callback(void)
{
	long result;
	GETPPID(result);
	(void)result;
}

static void *make(char *at, const char *name)
{
	memcpy(at, code, sizeof(code));
	__builtin___clear_cache(at, at + sizeof(code));
	fprintf(names, "%lx %zx %s\n", (unsigned long)at, sizeof(code), name);
	fflush(names);
	return at;
}

static __attribute__((noipa)) void call(void *function)
{
	((void (*)(void (*)(void)))function)(callback);
	// Longer than the time in which a change of the map may not be seen yet.
	usleep(400000);
}

int main(int argc, char **argv)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	names = fopen(path, "w");
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!names || page == MAP_FAILED)
		return 1;
	call(make(page, "first"));
	call(make(page, "second"));
	call(make(page + 64, "beside it"));
	if (argc > 1 && !fork()) {
		call(page + 64);
		_exit(0);
	}
	wait(NULL);
	unlink(path);
	return 0;
}
