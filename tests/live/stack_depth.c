// SPDX-License-Identifier: MIT
/** A program of known call depth: main, outer, middle, an inlined step, and a system call in inner. */
#include <stdlib.h>
#include <sys/syscall.h>

static __attribute__((noinline)) long inner(long n)
{
	long result;
#if defined(__x86_64__)
	__asm__ volatile("syscall" : "=a"(result) : "0"(SYS_getppid) : "rcx", "r11", "memory");
#else
	register long number __asm__("x8") = SYS_getppid;
	register long x0 __asm__("x0");
	__asm__ volatile("svc 0" : "=r"(x0) : "r"(number) : "memory");
	result = x0;
#endif
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
	for (long i = argc > 1 ? atol(argv[1]) : 1; i > 0; i--)
		sum += outer(i);
	return sum == 42;
}
