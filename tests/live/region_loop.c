// SPDX-License-Identifier: MIT
/**
 * A C program whose passes execute a known number of instructions: region_loop WAY N ROUNDS.
 *
 * counted(ROUNDS) executes 2 * ROUNDS + 2 instructions. N passes of each of the regions "empty", "loop" around a call of
 * it and "twice" around one of twice the rounds; it prints what each pass counted as JSON, null where that is no whole count.
 */
#define _GNU_SOURCE
#include <perfscope/region.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void counted(unsigned long nr_rounds);

__asm__(".text\n.balign 16\n.globl counted\n.type counted, %function\ncounted:\n"
#ifdef __aarch64__
	"mov x1, x0\n 1: subs x1, x1, #1\n b.ne 1b\n ret\n"
#else
	"mov %rdi, %rax\n 1: dec %rax\n jnz 1b\n ret\n"
#endif
	".size counted, . - counted\n");

#define MAX_PASSES 64

static struct perfscope_region_total passes[3][MAX_PASSES];
static const char *const names[] = { "empty", "loop", "twice" };

static void pin(int cpu)
{
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		abort();
}

static void pass_plain(const char *name, unsigned long nr_rounds, int index)
{
	(void)index;
	perfscope_region_begin(name);
	if (nr_rounds)
		counted(nr_rounds);
	perfscope_region_end(name);
}

/** In every other pass it goes on on the other CPU, and comes back. */
static void pass_migrate(const char *name, unsigned long nr_rounds, int index)
{
	pin(0);
	perfscope_region_begin(name);
	pin(index % 2);
	if (nr_rounds)
		counted(nr_rounds);
	pin(0);
	perfscope_region_end(name);
}

/** The thread is off its CPU in the pass. */
static void pass_sleep(const char *name, unsigned long nr_rounds, int index)
{
	(void)index;
	perfscope_region_begin(name);
	usleep(2000);
	if (nr_rounds)
		counted(nr_rounds);
	perfscope_region_end(name);
}

static const struct {
	const char *name;
	void (*pass)(const char *name, unsigned long nr_rounds, int index);
} ways[] = { { "plain", pass_plain }, { "migrate", pass_migrate }, { "sleep", pass_sleep } };

/** The totals of @name, a pass before less. */
static void keep_pass(int region, int index, struct perfscope_region_total *before)
{
	struct perfscope_region_total now;
	if (perfscope_region_totals(names[region], &now))
		abort();
	passes[region][index] = now;
	for (size_t i = 0; i < now.nr_values; i++) {
		struct perfscope_region_value *value = &passes[region][index].values[i];
		value->value -= before->values[i].value;
		value->is_valid &= value->coverage == 1;
	}
	*before = now;
}

static void write_values(const struct perfscope_region_total *totals)
{
	for (size_t i = 0; i < totals->nr_values; i++) {
		printf(i ? ", " : "[");
		if (totals->values[i].is_valid)
			printf("%llu", (unsigned long long)totals->values[i].value);
		else
			printf("null");
	}
	printf("]");
}

static void write_passes(int nr)
{
	struct perfscope_region_total cost;
	printf("{\"cost\": ");
	if (perfscope_region_overhead(&cost))
		printf("null");
	else
		write_values(&cost);
	for (int region = 0; region < 3; region++) {
		printf(", \"%s\": [", names[region]);
		for (int i = 0; i < nr; i++) {
			printf(i ? ", " : "");
			write_values(&passes[region][i]);
		}
		printf("]");
	}
	printf("}\n");
}

static void make_passes(const char *way, int nr, unsigned long nr_rounds)
{
	for (size_t w = 0; w < sizeof(ways) / sizeof(*ways); w++) {
		for (int region = 0; !strcmp(ways[w].name, way) && region < 3; region++) {
			struct perfscope_region_total before = { 0 };
			for (int i = 0; i < nr; i++) {
				ways[w].pass(names[region], region * nr_rounds, i);
				if (getenv("EVENTS"))
					keep_pass(region, i, &before);
			}
		}
	}
}

int main(int argc, char **argv)
{
	const char *events = getenv("EVENTS"), *flags = getenv("FLAGS");
	if (events && perfscope_region_configure(events, flags ? atoi(flags) : 0)) {
		printf("{\"error\": \"%s\"}\n", perfscope_region_error());
		return 1;
	}
	int nr = argc == 4 ? atoi(argv[2]) : 0;
	if (nr <= 0 || nr > MAX_PASSES)
		return 2;
	make_passes(argv[1], nr, strtoul(argv[3], NULL, 10));
	if (events)
		write_passes(nr);
	return 0;
}
