// SPDX-License-Identifier: MIT
/**
 * ELF files as probes need them: functions, file offsets, the notes of usdt probes.
 */
#ifndef PERFSCOPE_PROBE_ELF_H
#define PERFSCOPE_PROBE_ELF_H

#include <gelf.h>
#include <perfscope/error.h>
#include <stdbool.h>
#include <stdint.h>

struct ps_elf {
	int fd, debug_fd; // -1: none
	Elf *elf;
	Elf *debug; // the separate debug file, where the file has no names of its own; NULL: none
	char *path;
};

/** Open @path. PS_ERROR_BAD_DATA where it is no ELF file of a machine of this byte order. */
struct ps_error *ps_elf_open(const char *path, struct ps_elf *ret);
void ps_elf_close(struct ps_elf *elf);

/** PS_ERROR_BAD_DATA where programs of this file's processor cannot run on this one. */
struct ps_error *ps_elf_check_machine(const struct ps_elf *elf);

/** Whether only exported functions have names. */
bool ps_elf_is_stripped(const struct ps_elf *elf);

/** The offset in the file of @address; false: nothing of the file is loaded there. */
bool ps_elf_file_offset(const struct ps_elf *elf, uint64_t address, uint64_t *ret);

/** The offset in the file of the code at @address; false: there is none. */
bool ps_elf_code_offset(const struct ps_elf *elf, uint64_t address, uint64_t *ret);

/** A function; the name is borrowed and without a version. */
struct ps_elf_function {
	const char *name;
	uint64_t address, size; // size 0: not known
};

/**
 * Called for each function, in no order, also several times. It returns false where there is no memory, which ends the
 * walk and is what the walk returns.
 */
typedef bool (*ps_elf_visit)(const struct ps_elf_function *function, void *argument);
bool ps_elf_walk(const struct ps_elf *elf, ps_elf_visit visit, void *argument);

/** Whether the file calls a function @name of some library. */
bool ps_elf_imports(const struct ps_elf *elf, const char *name);

/** A usdt probe at one place; the texts are borrowed. */
struct ps_elf_note {
	const char *provider, *name, *args;
	uint64_t address, semaphore; // semaphore 0: none
};

/** Called for each; false ends the walk. */
typedef bool (*ps_elf_visit_note)(const struct ps_elf_note *note, void *argument);
void ps_elf_walk_notes(const struct ps_elf *elf, ps_elf_visit_note visit, void *argument);

#endif
