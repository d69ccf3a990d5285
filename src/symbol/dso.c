// SPDX-License-Identifier: MIT
#include "dso.h"
#include "elf_open.h"
#include "elf_symbols.h"

#include <gelf.h>
#include <string.h>
#include <sys/auxv.h>

#define PAGE_MASK (~UINT64_C(4095))
#define MAX_SEGMENTS 64

// As long as the kernel's: two pages on x86-64, at most so many elsewhere.
#define MAX_VDSO_SIZE 16384

/* Reading. */

static void read_segments(Elf *elf, struct dso *dso)
{
	size_t nr = 0;
	elf_getphdrnum(elf, &nr);
	dso->segments = calloc(MAX_SEGMENTS, sizeof(*dso->segments));
	for (size_t i = 0; dso->segments && i < nr && dso->nr_segments < MAX_SEGMENTS; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(elf, i, &header) || header.p_type != PT_LOAD ||
		    !(header.p_flags & PF_X))
			continue;
		// Whole pages are mapped.
		uint64_t before = header.p_offset & ~PAGE_MASK;
		dso->segments[dso->nr_segments++] =
			(struct segment){ header.p_offset - before, header.p_filesz + before,
					  header.p_vaddr - before };
	}
}

static void read_symbols(Elf *main, Elf *debug, struct dso *dso)
{
	bool has_main = elf_has_section(main, SHT_SYMTAB);
	if (has_main || (debug && elf_has_section(debug, SHT_SYMTAB)))
		elf_symbols_read(has_main ? main : debug, SHT_SYMTAB, &dso->symbols);
	else
		elf_symbols_read(main, SHT_DYNSYM, &dso->symbols);
	elf_plt_read(main, &dso->symbols);
	symtab_finish(&dso->symbols);
}

/** Take over what of the descriptors holds debug info. */
static void keep_lines(struct dso *dso, Elf *main, struct elf_file *main_file, Elf *debug,
		       struct elf_file *debug_file)
{
	bool has_main = elf_has_dwarf(main);
	if (!has_main && !(debug && elf_has_dwarf(debug)))
		return;
	int *fd = has_main ? &main_file->fd : &debug_file->fd;
	dso->lines_fd = *fd;
	*fd = -1;
}

/** Open the debug file that is here, else the one from the network, where that was asked for. */
static bool open_debug(const struct dsos *dsos, Elf *main, const struct elf_file *main_file,
		       struct elf_file *ret)
{
	if (elf_open_debug(main, main_file, dsos->debug_folder, ret))
		return true;
	uint8_t build_id[PS_BUILD_ID_SIZE];
	if (dsos->debuginfod)
		ret->fd =
			debuginfod_fetch(dsos->debuginfod, build_id, elf_build_id(main, build_id));
	return ret->fd >= 0;
}

static void read_elf(const struct dsos *dsos, struct dso *dso, Elf *main,
		     struct elf_file *main_file)
{
	struct elf_file debug_file = { .fd = -1 };
	Elf *debug = NULL;
	bool is_whole =
		elf_has_section(main, SHT_SYMTAB) && (!dsos->has_lines || elf_has_dwarf(main));
	if (!is_whole && open_debug(dsos, main, main_file, &debug_file))
		debug = elf_begin(debug_file.fd, ELF_C_READ, NULL);
	read_segments(main, dso);
	read_symbols(main, debug, dso);
	if (dsos->has_lines)
		keep_lines(dso, main, main_file, debug, &debug_file);
	elf_end(debug);
	if (debug_file.fd >= 0)
		close(debug_file.fd);
}

static void read_file(const struct dsos *dsos, struct dso *dso, const struct ps_map *map, pid_t pid)
{
	struct elf_file file;
	if (!elf_open_map(dsos->maps, map, pid, &file)) {
		dso->name = map->file->path[0] == '/'
				    ? strings_keep_format(dsos->strings, "%s [deleted]",
							  map->file->path)
				    : dso->name;
		return;
	}
	Elf *elf = elf_begin(file.fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF) {
		dso->is_elf = true;
		read_elf(dsos, dso, elf, &file);
	}
	elf_end(elf);
	if (file.fd >= 0)
		close(file.fd);
}

/** The vdso is the same in all processes of this kernel that are not of 32 bits, so it is read here. */
static void read_vdso(struct dso *dso)
{
	char *image = (char *)getauxval(AT_SYSINFO_EHDR);
	if (!image)
		return;
	const GElf_Ehdr *header = (const void *)image;
	size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	Elf *elf = size <= MAX_VDSO_SIZE ? elf_memory(image, size) : NULL;
	if (!elf)
		return;
	dso->is_elf = true;
	read_segments(elf, dso);
	read_symbols(elf, NULL, dso);
	elf_end(elf);
}

/* The table. */

static void dso_destroy(struct dso *dso)
{
	lines_destroy(dso->lines);
	if (dso->lines_fd >= 0)
		close(dso->lines_fd);
	symtab_deinit(&dso->symbols);
	free(dso->segments);
	free(dso);
}

static void drop_oldest(struct dsos *dsos)
{
	struct dso **oldest = NULL;
	for (uint32_t i = 0; i < DSO_BUCKETS; i++) {
		for (struct dso **link = &dsos->buckets[i]; *link; link = &(*link)->next) {
			if (!oldest ||
			    dsos->clock - (*link)->used_at > dsos->clock - (*oldest)->used_at)
				oldest = link;
		}
	}
	struct dso *dso = *oldest;
	*oldest = dso->next;
	dsos->nr--;
	dso_destroy(dso);
}

static struct dso *dso_create(const struct dsos *dsos, const struct ps_map *map, pid_t pid)
{
	struct dso *dso = calloc(1, sizeof(*dso));
	if (!dso)
		return NULL;
	dso->file_id = map->file->id;
	dso->lines_fd = -1;
	dso->name = strings_keep(dsos->strings, map->file->path);
	// Below 4 GiB it is the one of 32 bits.
	if (strcmp(map->file->path, "[vdso]"))
		read_file(dsos, dso, map, pid);
	else if (map->start > UINT32_MAX)
		read_vdso(dso);
	return dso;
}

struct dso *dsos_get(struct dsos *dsos, const struct ps_map *map, pid_t pid)
{
	struct dso **bucket = &dsos->buckets[map->file->id % DSO_BUCKETS];
	for (struct dso *dso = *bucket; dso; dso = dso->next) {
		if (dso->file_id == map->file->id) {
			dso->used_at = ++dsos->clock;
			return dso;
		}
	}
	struct dso *dso = dso_create(dsos, map, pid);
	if (!dso)
		return NULL;
	if (dsos->nr >= DSO_MAX)
		drop_oldest(dsos);
	dso->used_at = ++dsos->clock;
	dso->next = *bucket;
	*bucket = dso;
	dsos->nr++;
	return dso;
}

void dsos_keep_names(struct dsos *dsos)
{
	for (uint32_t i = 0; i < DSO_BUCKETS; i++) {
		for (struct dso *dso = dsos->buckets[i]; dso; dso = dso->next)
			dso->name = dso->name ? strings_keep(dsos->strings, dso->name) : NULL;
	}
}

void dsos_deinit(struct dsos *dsos)
{
	for (uint32_t i = 0; i < DSO_BUCKETS; i++) {
		for (struct dso *dso = dsos->buckets[i], *next; dso; dso = next) {
			next = dso->next;
			dso_destroy(dso);
		}
		dsos->buckets[i] = NULL;
	}
}

/* Looking up. */

bool dso_address(const struct dso *dso, uint64_t offset, uint64_t *ret)
{
	for (uint32_t i = 0; i < dso->nr_segments; i++) {
		const struct segment *segment = &dso->segments[i];
		if (offset >= segment->offset && offset - segment->offset < segment->size) {
			*ret = segment->address + (offset - segment->offset);
			return true;
		}
	}
	return false;
}

static size_t find_lines(struct dso *dso, struct strings *strings, uint64_t address,
			 struct ps_frame *frames, size_t max)
{
	if (dso->lines_fd >= 0) {
		dso->lines = lines_create(dso->lines_fd);
		dso->lines_fd = -1;
	}
	return dso->lines ? lines_find(dso->lines, strings, address, frames, max) : 0;
}

size_t dso_symbolize(struct dso *dso, struct strings *strings, uint64_t address, bool is_return,
		     struct ps_frame *frames, size_t max)
{
	const struct symbol *symbol = symtab_find(&dso->symbols, address - is_return);
	size_t nr = find_lines(dso, strings, address - is_return, frames, max);
	if (!nr) {
		frames[0] = (struct ps_frame){};
		nr = 1;
	}
	// The symbol table knows more of the outermost than DWARF: name.cold, name.part.0.
	if (symbol && !frames[nr - 1].is_inlined)
		frames[nr - 1].symbol = strings_keep_demangled(strings, symtab_name(&dso->symbols, symbol));
	for (size_t i = 0; symbol && i < nr; i++)
		frames[i].offset = address - symbol->start;
	return nr;
}
