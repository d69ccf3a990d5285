// SPDX-License-Identifier: MIT
/**
 * probed N: a program whose functions and usdt probes the tests of probes observe; each is passed N times.
 *
 * probed N wait: it first reads a line.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Counted up while somebody observes the probe.
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
unsigned short tests_guarded_semaphore __attribute__((section(".probes")));
unsigned short tests_step_semaphore __attribute__((section(".probes")));
unsigned short tests_twice_semaphore __attribute__((section(".probes")));

#define KEEP __attribute__((noinline, noclone, used))

/** @n is -1, 0, 1, ... */
KEEP int probed_function(int n, const char *text, uint64_t high)
{
	__asm__ volatile("" : : "r"(n), "r"(text), "r"(high));
	return n * 2;
}

/** What C++ calls ns::f(int). */
KEEP int _ZN2ns1fEi(int n)
{
	__asm__ volatile("" : : "r"(n));
	return n;
}

static inline __attribute__((always_inline)) int inlined(int n)
{
	return n + 100;
}

KEEP void steps(int n, const char *text)
{
	STAP_PROBE3(tests, step, n, text, (uint64_t)-7);
	STAP_PROBE1(tests, twice, n);
	if (tests_guarded_semaphore)
		STAP_PROBE1(tests, guarded, (unsigned char)n);
	STAP_PROBE1(tests, twice, inlined(n));
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 1;
	if (argc > 2 && getchar() < 0)
		return 2;
	for (int i = 0; i < nr; i++) {
		probed_function(i - 1, "caf\xc3\xa9", UINT64_MAX - i);
		_ZN2ns1fEi(i);
		steps(i, "step");
	}
	return 0;
}
