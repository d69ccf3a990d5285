// SPDX-License-Identifier: MIT
#include "probe_elf.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define DEBUG_FOLDER "/usr/lib/debug/.build-id"

static Elf *open_elf(const char *path, int *ret_fd)
{
	elf_version(EV_CURRENT);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return *ret_fd < 0 ? NULL : elf_begin(*ret_fd, ELF_C_READ_MMAP, NULL);
}

/** The next section of @type behind @section; NULL: none. */
static Elf_Scn *next_section(Elf *elf, Elf_Scn *section, uint32_t type, GElf_Shdr *ret)
{
	while ((section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, ret) && ret->sh_type == type)
			return section;
	}
	return NULL;
}

static bool has_section(Elf *elf, uint32_t type)
{
	GElf_Shdr header;
	return next_section(elf, NULL, type, &header);
}

/** Write the path of the separate debug file of the build-id @id. */
static void build_id_path(const uint8_t *id, size_t size, char *ret, size_t ret_size)
{
	int at = snprintf(ret, ret_size, DEBUG_FOLDER "/%02x/", id[0]);
	for (size_t i = 1; i < size && at + 10 < (int)ret_size; i++)
		at += snprintf(ret + at, ret_size - at, "%02x", id[i]);
	snprintf(ret + at, ret_size - at, ".debug");
}

/** Open the debug file that the build-id in the notes @data names. */
static bool open_by_note(struct ps_elf *elf, Elf_Data *data)
{
	size_t at = 0, name, desc;
	GElf_Nhdr note;
	while (data && (at = gelf_getnote(data, at, &note, &name, &desc))) {
		const char *owner = (const char *)data->d_buf + name;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp(owner, "GNU", sizeof("GNU")) || note.n_descsz < 2)
			continue;
		char path[256];
		build_id_path((const uint8_t *)data->d_buf + desc, note.n_descsz, path,
			      sizeof(path));
		elf->debug = open_elf(path, &elf->debug_fd);
		return elf->debug;
	}
	return false;
}

/** The separate debug file has the names that were stripped, at the same addresses. */
static void open_debug(struct ps_elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	while ((section = next_section(elf->elf, section, SHT_NOTE, &header))) {
		if (open_by_note(elf, elf_getdata(section, NULL)))
			return;
	}
}

static bool is_native(Elf *elf)
{
	GElf_Ehdr header;
	bool is_little = BYTE_ORDER == LITTLE_ENDIAN;
	return elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) &&
	       header.e_ident[EI_DATA] == (is_little ? ELFDATA2LSB : ELFDATA2MSB) &&
	       (header.e_type == ET_EXEC || header.e_type == ET_DYN);
}

static bool has_debug_info(Elf *elf)
{
	size_t names;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	while (!elf_getshdrstrndx(elf, &names) &&
	       (section = next_section(elf, section, SHT_PROGBITS, &header))) {
		const char *name = elf_strptr(elf, names, header.sh_name);
		if (name && !strcmp(name, ".debug_info"))
			return true;
	}
	return false;
}

struct ps_error *ps_elf_open(const char *path, struct ps_elf *ret)
{
	struct ps_elf elf = { .debug_fd = -1 };
	elf.elf = open_elf(path, &elf.fd);
	if (elf.fd < 0)
		return ps_error_os(errno, "%s", path);
	struct stat status;
	bool is_file = !fstat(elf.fd, &status) && S_ISREG(status.st_mode);
	if (!is_file || !is_native(elf.elf)) {
		ps_elf_close(&elf);
		return ps_error_format(PS_ERROR_BAD_DATA,
				       "%s: not an ELF program or library of this machine", path);
	}
	elf.path = strdup(path);
	if (!elf.path) {
		ps_elf_close(&elf);
		return &ps_enomem;
	}
	if (!has_section(elf.elf, SHT_SYMTAB) || !has_debug_info(elf.elf))
		open_debug(&elf);
	*ret = elf;
	return NULL;
}

#if defined(__x86_64__)
static const unsigned int machines[] = { EM_X86_64, EM_386 };
#elif defined(__aarch64__)
static const unsigned int machines[] = { EM_AARCH64, EM_ARM };
#else
static const unsigned int machines[] = { EM_NONE };
#endif

struct ps_error *ps_elf_check_machine(const struct ps_elf *elf)
{
	GElf_Ehdr header;
	if (!gelf_getehdr(elf->elf, &header))
		return ps_error_format(PS_ERROR_BAD_DATA, "%s: it has no header", elf->path);
	for (size_t i = 0; i < PS_ARRAY_SIZE(machines); i++) {
		if (machines[i] == header.e_machine || machines[i] == EM_NONE)
			return NULL;
	}
	return ps_error_format(
		PS_ERROR_BAD_DATA,
		"%s is for another processor (ELF machine %u): nothing of it can run "
		"here",
		elf->path, header.e_machine);
}

void ps_elf_close(struct ps_elf *elf)
{
	elf_end(elf->elf);
	elf_end(elf->debug);
	ps_close_p(&elf->fd);
	ps_close_p(&elf->debug_fd);
	free(elf->path);
	*elf = (struct ps_elf){ .fd = -1, .debug_fd = -1 };
}

bool ps_elf_is_stripped(const struct ps_elf *elf)
{
	return !has_section(elf->elf, SHT_SYMTAB) &&
	       !(elf->debug && has_section(elf->debug, SHT_SYMTAB));
}

static bool find_offset(const struct ps_elf *elf, uint64_t address, uint32_t flags, uint64_t *ret)
{
	size_t nr = 0;
	elf_getphdrnum(elf->elf, &nr);
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(elf->elf, i, &header) || header.p_type != PT_LOAD ||
		    (header.p_flags & flags) != flags || address < header.p_vaddr ||
		    address - header.p_vaddr >= header.p_filesz)
			continue;
		*ret = address - header.p_vaddr + header.p_offset;
		return true;
	}
	return false;
}

bool ps_elf_file_offset(const struct ps_elf *elf, uint64_t address, uint64_t *ret)
{
	return find_offset(elf, address, 0, ret);
}

bool ps_elf_code_offset(const struct ps_elf *elf, uint64_t address, uint64_t *ret)
{
	return find_offset(elf, address, PF_X, ret);
}

/** Visit the functions of one table; names "memcpy@@GLIBC_2.14" end before the @. */
static bool walk_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, ps_elf_visit visit,
			 void *argument)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t nr = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
	for (size_t i = 0; i < nr; i++) {
		GElf_Sym symbol;
		if (!gelf_getsym(data, i, &symbol) || symbol.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(symbol.st_info) != STT_FUNC || !symbol.st_value)
			continue;
		const char *full = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (!full || !*full)
			continue;
		_cleanup_free_ char *name = strndup(full, strcspn(full, "@"));
		struct ps_elf_function function = { name, symbol.st_value, symbol.st_size };
		if (!name || !visit(&function, argument))
			return false;
	}
	return true;
}

bool ps_elf_walk(const struct ps_elf *elf, ps_elf_visit visit, void *argument)
{
	struct {
		Elf *elf;
		uint32_t type;
	} tables[] = { { elf->elf, SHT_SYMTAB },
		       { elf->debug, SHT_SYMTAB },
		       { elf->elf, SHT_DYNSYM } };
	for (size_t i = 0; i < PS_ARRAY_SIZE(tables); i++) {
		Elf_Scn *section = NULL;
		GElf_Shdr header;
		if (!tables[i].elf)
			continue;
		section = next_section(tables[i].elf, NULL, tables[i].type, &header);
		if (section && !walk_symbols(tables[i].elf, section, &header, visit, argument))
			return false;
	}
	return true;
}

bool ps_elf_imports(const struct ps_elf *elf, const char *name)
{
	GElf_Shdr header;
	Elf_Scn *section = next_section(elf->elf, NULL, SHT_DYNSYM, &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	size_t nr = data && header.sh_entsize ? data->d_size / header.sh_entsize : 0;
	for (size_t i = 0; i < nr; i++) {
		GElf_Sym symbol;
		if (!gelf_getsym(data, i, &symbol) || symbol.st_shndx != SHN_UNDEF)
			continue;
		const char *other = elf_strptr(elf->elf, header.sh_link, symbol.st_name);
		if (other && !strcmp(other, name))
			return true;
	}
	return false;
}

/** The address of the section .stapsdt.base, by which prelink may have moved all; 0: none. */
static uint64_t find_base(Elf *elf, size_t names)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	while ((section = next_section(elf, section, SHT_PROGBITS, &header))) {
		const char *name = elf_strptr(elf, names, header.sh_name);
		if (name && !strcmp(name, ".stapsdt.base"))
			return header.sh_addr;
	}
	return 0;
}

/** The string at *@at, which moves behind it; NULL: it does not end before @end. */
static const char *take_string(const char **at, const char *end)
{
	const char *start = *at;
	const char *nul = start < end ? memchr(start, '\0', end - start) : NULL;
	if (!nul)
		return NULL;
	*at = nul + 1;
	return start;
}

/** Read the note of @size bytes at @desc: three addresses and three strings. */
static bool read_note(const struct ps_elf *elf, const char *desc, size_t size, uint64_t base,
		      struct ps_elf_note *ret)
{
	uint64_t addresses[3] = { 0 };
	size_t width = gelf_getclass(elf->elf) == ELFCLASS32 ? 4 : 8;
	if (size < 3 * width)
		return false;
	for (size_t i = 0; i < 3; i++) {
		uint32_t narrow;
		memcpy(&narrow, desc + i * width, sizeof(narrow));
		addresses[i] = narrow;
		if (width == 8)
			memcpy(&addresses[i], desc + i * width, width);
	}
	const char *at = desc + 3 * width, *end = desc + size;
	const char *provider = take_string(&at, end), *name = NULL, *args = NULL;
	if (provider && (name = take_string(&at, end)))
		args = take_string(&at, end);
	uint64_t moved = base && addresses[1] ? base - addresses[1] : 0;
	*ret = (struct ps_elf_note){
		.provider = provider,
		.name = name,
		.args = args,
		.address = addresses[0] + moved,
		.semaphore = addresses[2] ? addresses[2] + moved : 0,
	};
	return args;
}

void ps_elf_walk_notes(const struct ps_elf *elf, ps_elf_visit_note visit, void *argument)
{
	size_t names;
	if (elf_getshdrstrndx(elf->elf, &names))
		return;
	uint64_t base = find_base(elf->elf, names);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	while ((section = next_section(elf->elf, section, SHT_NOTE, &header))) {
		const char *title = elf_strptr(elf->elf, names, header.sh_name);
		Elf_Data *data = elf_getdata(section, NULL);
		if (!title || strcmp(title, ".note.stapsdt"))
			continue;
		size_t at = 0, name, desc;
		GElf_Nhdr head;
		while (data && (at = gelf_getnote(data, at, &head, &name, &desc))) {
			struct ps_elf_note note;
			if (head.n_type == 3 &&
			    read_note(elf, (const char *)data->d_buf + desc, head.n_descsz, base,
				      &note) &&
			    !visit(&note, argument))
				return;
		}
	}
}
