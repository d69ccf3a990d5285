// SPDX-License-Identifier: MIT
/** A library that calls back; and, as a program with -DPROGRAM, the one that opens it: names_library FILE [N]. */
#include "getppid.h"

#include <dlfcn.h>
#include <stdlib.h>

#ifdef PROGRAM
static __attribute__((noipa)) long callback(long n)
{
	long result;
	GETPPID(result);
	return result + n;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	long (*call)(long (*)(long), long) = library ? dlsym(library, "library_call") : NULL;
	if (!call)
		return 2;
	long sum = 0;
	for (long i = argc > 2 ? atol(argv[2]) : 1; i > 0; i--)
		sum += call(callback, i);
	return sum == 42;
}
#else
static __attribute__((noipa)) long library_inner(long (*callback)(long), long n)
{
	return callback(n) + 1;
}

long library_call(long (*callback)(long), long n);
long library_call(long (*callback)(long), long n)
{
	return library_inner(callback, n) * 3;
}
#endif
