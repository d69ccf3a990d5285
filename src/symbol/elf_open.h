// SPDX-License-Identifier: MIT
/**
 * The file behind a map, found wherever it still is, and its separate debug file.
 */
#ifndef PERFSCOPE_SYMBOL_ELF_OPEN_H
#define PERFSCOPE_SYMBOL_ELF_OPEN_H

#include <libelf.h>
#include <perfscope/maps.h>

/** A file that was opened, and by which path. */
struct elf_file {
	int fd; // -1: none
	char path[4096 + 32];
	char root[32]; // what stands before the process's own paths: "/proc/PID/root", or ""
};

/**
 * Open the very file that was mapped at @map of @pid: through the process's root while it lives, else through that of a
 * process that it comes from, by its path here, or as it is mapped where it was deleted. False: it is gone, was
 * replaced, or is no plain file. The caller closes fd.
 */
bool elf_open_map(const struct ps_maps *maps, const struct ps_map *map, pid_t pid,
		  struct elf_file *ret);

/** The build-id of @elf, at most PS_BUILD_ID_SIZE bytes; 0: none. */
size_t elf_build_id(Elf *elf, uint8_t *ret);

/**
 * Open the separate debug file of @elf, which is @main: below @debug_folder by build-id, else by debuglink. A file that
 * is of another build is passed over. False: none. The caller closes fd.
 */
bool elf_open_debug(Elf *elf, const struct elf_file *main, const char *debug_folder,
		    struct elf_file *ret);

#endif
