// SPDX-License-Identifier: MIT
/**
 * stack_depth [N [MS [wait]]]: a program of known call depth, main, outer, middle, an inlined step, and a system call
 * in inner, N times. It then lives for MS milliseconds; with "wait" it begins after a byte on its stdin.
 */
#include "getppid.h"

#include <stdlib.h>
#include <unistd.h>

static __attribute__((noinline)) long inner(long n)
{
	long result;
	GETPPID(result);
	return result + n;
}

static inline __attribute__((always_inline)) long step(long n)
{
	return inner(n) + 1;
}

static __attribute__((noinline)) long middle(long n)
{
	return step(n) * 3;
}

static __attribute__((noinline)) long outer(long n)
{
	return middle(n) - 7;
}

int main(int argc, char **argv)
{
	long sum = 0;
	char byte;
	if (argc > 3 && read(0, &byte, 1) < 0)
		return 1;
	for (long i = argc > 1 ? atol(argv[1]) : 1; i > 0; i--)
		sum += outer(i);
	if (argc > 2)
		usleep(1000 * atol(argv[2]));
	return sum == 42;
}
