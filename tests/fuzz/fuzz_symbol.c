// SPDX-License-Identifier: MIT
/**
 * fuzz_symbol SEED N: cut and mutate a program with debug info N times; each must end in frames, known or not.
 */
#include <linux/perf_event.h>
#include <perfscope/symbol.h>
#include <sys/mman.h>

#include "program.h"

#define NOBODY 4200000
#define START UINT64_C(0x400000)

static const char source[] = "volatile int sink;\n"
			     "static inline int inner(int n) { return sink += n; }\n"
			     "int outer(int n) { return n ? inner(n) + inner(n + 1) : 0; }\n"
			     "int main(int argc, char **argv) { return outer(argc); }\n";

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
	return fuzz(argc, argv, source, check);
}
