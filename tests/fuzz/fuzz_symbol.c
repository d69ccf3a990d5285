// SPDX-License-Identifier: MIT
/**
 * fuzz_symbol SEED N: cut and mutate a program with debug info N times; each must end in frames, known or not.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <perfscope/symbol.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define NOBODY 4200000
#define START UINT64_C(0x400000)
#define MAX_FILE (1 << 20)

static const char source[] = "volatile int sink;\n"
			     "static inline int inner(int n) { return sink += n; }\n"
			     "int outer(int n) { return n ? inner(n) + inner(n + 1) : 0; }\n"
			     "int main(int argc, char **argv) { return outer(argc); }\n";

static uint64_t state;
static char folder[] = "/tmp/perfscope-fuzz-XXXXXX";
static uint8_t original[MAX_FILE], bytes[MAX_FILE];

/** xorshift64*: the same sequence everywhere. */
static uint32_t next_random(uint32_t bound)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)((state * UINT64_C(0x2545f4914f6cdd1d)) >> 32) % bound;
}

static void fail(const char *why)
{
	fprintf(stderr, "fuzz_symbol: %s\n", why);
	abort();
}

static size_t build(void)
{
	char command[1024], path[128];
	snprintf(path, sizeof(path), "%s/program.c", folder);
	FILE *file = fopen(path, "w");
	if (!file || fputs(source, file) < 0 || fclose(file))
		fail("no source");
	snprintf(command, sizeof(command), "cd %s && gcc -g -O2 -o program program.c", folder);
	if (system(command))
		fail("no program");
	snprintf(path, sizeof(path), "%s/program", folder);
	file = fopen(path, "r");
	size_t size = file ? fread(original, 1, sizeof(original), file) : 0;
	if (!size || fclose(file))
		fail("no bytes");
	return size;
}

/** Change headers most, since they are read first and refuse the most. */
static size_t mutate(size_t size)
{
	memcpy(bytes, original, size);
	uint32_t nr = next_random(1 << next_random(9));
	for (uint32_t i = 0; i <= nr; i++) {
		uint32_t from = next_random(4) ? next_random(size) : size - 1 - next_random(3000);
		uint32_t at = next_random(8) ? from : next_random(1024);
		static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
		bytes[at] = next_random(2) ? next_random(256) : values[next_random(sizeof(values))];
	}
	return next_random(8) ? size : next_random(size);
}

static void write_program(size_t size, const char *path)
{
	unlink(path);
	FILE *file = fopen(path, "w");
	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
		fail("cannot write");
}

static void follow(struct ps_maps *maps, const char *path)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t address, size, offset, device, inode, generation;
		uint32_t prot, flags;
		char name[128];
	} record = { .header = { PERF_RECORD_MMAP2, 0, sizeof(record) },
		     .pid = NOBODY,
		     .address = START,
		     .size = MAX_FILE,
		     .prot = PROT_EXEC };
	snprintf(record.name, sizeof(record.name), "%s", path);
	ps_maps_follow(maps, &record.header, 0);
}

static void check_frames(const struct ps_frame *frames, size_t nr)
{
	size_t length = 0;
	for (size_t i = 0; i < nr; i++) {
		length += frames[i].symbol ? strlen(frames[i].symbol) : 0;
		length += strlen(frames[i].dso) + (frames[i].line ? strlen(frames[i].line) : 0);
	}
	if (!nr || nr > PS_SYMBOL_MAX_INLINED || !length)
		fail("frames without content");
}

static void check(const char *path)
{
	struct ps_maps *maps;
	struct ps_symbolizer *symbolizer;
	struct ps_symbol_options options = { .has_lines = true, .debug_folder = folder };
	if (ps_maps_create(&maps) || ps_symbolizer_create(maps, &options, &symbolizer))
		fail("no memory");
	follow(maps, path);
	struct ps_frame frames[PS_SYMBOL_MAX_INLINED];
	uint8_t stack[256];
	memset(stack, 0x41, sizeof(stack));
	for (uint32_t at = 0x1000; at < 0x1400; at += 5) {
		check_frames(frames, ps_symbolize(symbolizer, NOBODY, START + at, at & 2, frames,
						  PS_SYMBOL_MAX_INLINED));
		uint64_t regs[] = { 0x1000, START + at }, addresses[8];
		struct ps_user_state user = { regs, 0x180, { stack, sizeof(stack) }, at & 1 };
		ps_unwind_user(symbolizer, NOBODY, &user, addresses, 8);
	}
	ps_symbolizer_destroy(symbolizer);
	ps_maps_destroy(maps);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: fuzz_symbol SEED N\n");
		return 2;
	}
	state = strtoull(argv[1], NULL, 0) * 2 + 1;
	unsigned long nr = strtoul(argv[2], NULL, 0);
	if (!mkdtemp(folder))
		fail("no folder");
	size_t size = build();
	char path[128];
	snprintf(path, sizeof(path), "%s/mutated", folder);
	for (unsigned long i = 0; i < nr; i++) {
		write_program(mutate(size), path);
		check(path);
	}
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command) ? 1 : 0;
}
