// SPDX-License-Identifier: MIT
/**
 * Programs that a test builds, as they lie in memory, and what binutils say of them.
 */
#ifndef PERFSCOPE_SYMBOL_PROGRAMS_H
#define PERFSCOPE_SYMBOL_PROGRAMS_H

#include "map_records.h"
#include "programs.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <perfscope/symbol.h>

/** Map the code of the file @name into @pid as a loader would at @base, told by records; 0: where it wants to be. */
static inline void load_at(struct ps_maps *maps, pid_t pid, const char *name, uint64_t base)
{
	Elf64_Ehdr file;
	Elf64_Phdr headers[32];
	struct stat stat;
	int fd = open(path_of(name), O_RDONLY);
	ASSERT_EQ(pread(fd, &file, sizeof(file), 0), sizeof(file));
	ASSERT_TRUE(pread(fd, headers, sizeof(headers), file.e_phoff) > 0);
	ASSERT_EQ(fstat(fd, &stat), 0);
	close(fd);
	for (int i = 0; i < file.e_phnum; i++) {
		Elf64_Phdr *header = &headers[i];
		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		uint64_t end = (header->p_vaddr + header->p_memsz + 4095) & ~4095ul;
		uint64_t start = header->p_vaddr & ~4095ul;
		struct mmap2 record = mmap2(pid, base + start, end - start,
					    header->p_offset & ~4095ul, path_of(name));
		record.dev_major = major(stat.st_dev);
		record.dev_minor = minor(stat.st_dev);
		record.inode = stat.st_ino;
		ps_maps_follow(maps, &record.header, 0);
	}
}

/** A symbolizer whose debug files are in the folder "debug". */
struct view {
	struct ps_maps *maps;
	struct ps_symbolizer *symbolizer;
};

static inline struct view view_of(bool has_lines)
{
	struct view view;
	char debug[256];
	run("true");
	strcpy(debug, path_of("debug"));
	struct ps_symbol_options options = { .has_lines = has_lines, .debug_folder = debug };
	ASSERT_OK(ps_maps_create(&view.maps));
	ASSERT_OK(ps_symbolizer_create(view.maps, &options, &view.symbolizer));
	return view;
}

static inline void view_end(struct view *view)
{
	ps_symbolizer_destroy(view->symbolizer);
	ps_maps_destroy(view->maps);
}

/** "symbol+offset file.c:12" of each frame, by '<'; the last path component of the file in front: "prog!". */
static inline const char *show(struct view *view, pid_t pid, uint64_t address,
			       enum ps_address_flags flags)
{
	static char text[8192];
	struct ps_frame frames[PS_SYMBOL_MAX_INLINED];
	size_t nr =
		ps_symbolize(view->symbolizer, pid, address, flags, frames, PS_SYMBOL_MAX_INLINED);
	const char *dso = frames[0].dso ? frames[0].dso : "-";
	const char *slash = dso[0] == '/' && dso[1] != '/' ? strrchr(dso, '/') : NULL;
	size_t at = sprintf(text, "%s!", slash ? slash + 1 : dso);
	for (size_t i = 0; i < nr; i++) {
		ASSERT_EQ(frames[i].address, address);
		ASSERT_EQ(frames[i].is_inlined, i + 1 < nr);
		at += sprintf(text + at, "%s%s+%jx", i ? "<" : "",
			      frames[i].symbol ? frames[i].symbol : "?",
			      (uintmax_t)frames[i].offset);
		if (frames[i].line)
			at += sprintf(text + at, " %s", frames[i].line);
	}
	return text;
}

#endif
