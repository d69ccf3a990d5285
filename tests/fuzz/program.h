// SPDX-License-Identifier: MIT
/**
 * A program with debug info that is cut and mutated, for the fuzzers that read such files.
 */
#ifndef PERFSCOPE_FUZZ_PROGRAM_H
#define PERFSCOPE_FUZZ_PROGRAM_H

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FILE (1 << 20)

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
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, why);
	abort();
}

/** Build @source; the size of the program. */
static size_t build(const char *source)
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

/** Where the section @name of the program begins, and its size; 0: there is none. */
static size_t find_section(const char *name, size_t *ret_size)
{
	const Elf64_Ehdr *header = (const void *)original;
	const Elf64_Shdr *sections = (const void *)(original + header->e_shoff);
	const char *names = (const char *)original + sections[header->e_shstrndx].sh_offset;
	for (size_t i = 0; i < header->e_shnum; i++) {
		*ret_size = sections[i].sh_size;
		if (!strcmp(names + sections[i].sh_name, name))
			return sections[i].sh_offset;
	}
	return 0;
}

/** Change a few bytes of the debug info alone. */
static size_t mutate_debug(size_t size)
{
	static const char *const names[] = { ".debug_info", ".debug_abbrev", ".debug_loclists" };
	size_t length, start = find_section(names[next_random(3)], &length);
	for (uint32_t i = 0, nr = next_random(4); start && i <= nr; i++)
		bytes[start + next_random(length)] = next_random(256) >> next_random(8);
	return size;
}

/** Change headers most, since they are read first and refuse the most. */
static size_t mutate(size_t size)
{
	memcpy(bytes, original, size);
	if (next_random(2))
		return mutate_debug(size);
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

/** SEED N: build @source and call @check on N mutations of it; the exit status. */
static int fuzz(int argc, char **argv, const char *source, void (*check)(const char *path))
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s SEED N\n", program_invocation_short_name);
		return 2;
	}
	state = strtoull(argv[1], NULL, 0) * 2 + 1;
	unsigned long nr = strtoul(argv[2], NULL, 0);
	if (!mkdtemp(folder))
		fail("no folder");
	size_t size = build(source);
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

#endif
