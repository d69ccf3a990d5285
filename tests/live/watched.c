// SPDX-License-Identifier: MIT
/**
 * watched N: a program whose memory and function the tests of breakpoints observe. It writes `watched_word` N times,
 * reads it 2 N times, writes 1 byte of `watched_bytes` N times at each of its 8 places, and calls `watched_function` N times.
 *
 * watched N wait: it first reads a line. It lies at fixed addresses, so that `nm` tells them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

volatile uint64_t watched_word;
volatile uint8_t watched_bytes[8] __attribute__((aligned(8)));

__attribute__((noinline, noclone, used)) void watched_function(void)
{
	__asm__ volatile("");
}

static void pass(uint64_t n)
{
	watched_word = n;
	uint64_t first = watched_word;
	uint64_t second = watched_word;
	__asm__ volatile("" : : "r"(first), "r"(second));
	for (int i = 0; i < 8; i++)
		watched_bytes[i] = n;
	watched_function();
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 1;
	if (argc > 2 && getchar() < 0)
		return 2;
	for (int i = 0; i < nr; i++)
		pass(i);
	return 0;
}
