// SPDX-License-Identifier: MIT
/**
 * variables N: a program whose variables the tests of probes name; what is called is called N times.
 */
#include <stdint.h>
#include <stdlib.h>

#define KEEP __attribute__((noinline, used))

enum color { RED, GREEN = 5 };

struct pair {
	short left, right;
};

struct buffer {
	struct buffer *next;
	const char *name;
	unsigned int flags : 3, kind : 5;
	int negative : 4;
	struct pair pairs[3];
	union {
		int plain;
		long wide;
	};
	char text[16];
	unsigned int size;
};

static int counter = 40;
int exported = -9;
__thread int of_thread = 3;
__attribute__((used)) static long table[4] = { 1, -2, 3, 4 };

static inline __attribute__((always_inline)) int doubled(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 2;
}

/** @len is -1, 0, 1, ... */
KEEP int parse(int len, const char *name, struct buffer *buf, uint8_t small, enum color color,
	       double fraction, long late, long on_stack)
{
	int sum = len;
	sum += doubled(len);
	counter++;
	__asm__ volatile(""
			 : "+r"(sum)
			 : "r"(name), "r"(buf), "r"(small), "r"(color), "r"(late), "r"(on_stack)
			 : "memory");
	return sum + (int)fraction + of_thread;
}

KEEP int by_value(struct pair pair, int after)
{
	__asm__ volatile("" : : "r"(pair.left), "r"(pair.right), "r"(after));
	return after + doubled(after);
}

KEEP int recurse(int depth)
{
	int inner = depth ? recurse(depth - 1) : 0;
	__asm__ volatile("" : "+r"(inner));
	return inner + 1;
}

int main(int argc, char **argv)
{
	static struct buffer buffer = {
		&buffer,	"chained", 5,	17, -3, { { 1, -2 }, { 3, -4 }, { 5, 6 } },
		{ .wide = 77 }, "inside",  4096
	};
	int nr = argc > 1 ? atoi(argv[1]) : 1;
	for (int i = 0; i < nr; i++) {
		parse(i - 1, "caf\xc3\xa9", &buffer, 250, GREEN, 1.5, -5, -1000000000000L);
		by_value((struct pair){ 1, 2 }, i);
		recurse(3);
	}
	return 0;
}
