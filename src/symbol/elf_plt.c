// SPDX-License-Identifier: MIT
#include "elf_symbols.h"

#include <gelf.h>
#include <perfscope/bytes.h>
#include <perfscope/cleanup.h>
#include <stdio.h>

/** A word of the global offset table that the loader fills, and the name of what it puts there. */
struct got_slot {
	uint64_t address;
	const char *name; // of the file's string table
};

struct got {
	struct got_slot *slots;
	size_t nr, capacity;
};

static int compare(const void *left_, const void *right_)
{
	const struct got_slot *left = left_, *right = right_;
	return left->address < right->address ? -1 : left->address > right->address;
}

static const char *symbol_name(Elf *elf, uint32_t table, uint64_t index)
{
	GElf_Shdr header;
	GElf_Sym symbol;
	Elf_Scn *section = elf_getscn(elf, table);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	if (!data || index > INT32_MAX || !gelf_getshdr(section, &header) ||
	    !gelf_getsym(data, index, &symbol))
		return NULL;
	return elf_strptr(elf, header.sh_link, symbol.st_name);
}

static bool got_add(struct got *got, uint64_t address, const char *name)
{
	if (got->nr == got->capacity) {
		size_t capacity = got->capacity ? 2 * got->capacity : 64;
		struct got_slot *slots = reallocarray(got->slots, capacity, sizeof(*slots));
		if (!slots)
			return false;
		got->slots = slots;
		got->capacity = capacity;
	}
	got->slots[got->nr++] = (struct got_slot){ address, name };
	return true;
}

static bool is_slot(uint16_t machine, uint32_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
	return machine == EM_AARCH64 && (type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT);
}

static void read_relocations(Elf *elf, uint16_t machine, Elf_Scn *section, struct got *got)
{
	GElf_Shdr header;
	GElf_Rela relocation;
	if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
		return;
	Elf_Data *data = elf_getdata(section, NULL);
	for (int i = 0; data && gelf_getrela(data, i, &relocation); i++) {
		if (!is_slot(machine, GELF_R_TYPE(relocation.r_info)))
			continue;
		const char *name = symbol_name(elf, header.sh_link, GELF_R_SYM(relocation.r_info));
		if (name && *name && !got_add(got, relocation.r_offset, name))
			return;
	}
}

/** The slot that an entry of 16 bytes (8 without alignment) jumps through: `jmp *DISTANCE(%rip)`, after endbr64 or bnd. */
static bool read_x86(struct ps_bytes code, uint64_t at, uint64_t address, uint64_t *ret)
{
	uint32_t endbr;
	if (ps_bytes_u32(code, at, &endbr) && endbr == 0xfa1e0ff3)
		at += 4, address += 4;
	uint8_t byte;
	if (ps_bytes_u8(code, at, &byte) && byte == 0xf2)
		at++, address++;
	uint16_t jump;
	uint32_t distance;
	if (!ps_bytes_u16(code, at, &jump) || jump != 0x25ff ||
	    !ps_bytes_u32(code, at + 2, &distance))
		return false;
	*ret = address + 6 + (int32_t)distance;
	return true;
}

/** The same of `adrp x16, PAGE; ldr x17, [x16, OFFSET]`. */
static bool read_arm64(struct ps_bytes code, uint64_t at, uint64_t address, uint64_t *ret)
{
	uint32_t adrp, ldr;
	if (ps_bytes_u32(code, at, &adrp) && adrp == 0xd503245f) // bti c
		at += 4, address += 4;
	if (!ps_bytes_u32(code, at, &adrp) || !ps_bytes_u32(code, at + 4, &ldr) ||
	    (adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return false;
	int64_t pages = (int32_t)((adrp >> 5 & 0x7ffff) << 13) >> 11 | (adrp >> 29 & 3);
	*ret = (address & ~UINT64_C(4095)) + pages * 4096 + (ldr >> 10 & 0xfff) * 8;
	return true;
}

static bool add_entry(const struct got *got, uint64_t slot, uint64_t address, uint32_t size,
		      struct symtab *ret)
{
	struct got_slot key = { slot, NULL };
	const struct got_slot *found =
		bsearch(&key, got->slots, got->nr, sizeof(*got->slots), compare);
	if (!found)
		return true;
	char name[1024];
	snprintf(name, sizeof(name), "%.1000s@plt", found->name);
	struct symbol symbol = { .start = address, .end = address + size };
	return symtab_add(ret, &symbol, name);
}

static void read_entries(uint16_t machine, Elf_Scn *section, uint32_t step, const struct got *got,
			 struct symtab *ret)
{
	GElf_Shdr header;
	const Elf_Data *data = elf_rawdata(section, NULL);
	if (!gelf_getshdr(section, &header) || !data || !data->d_buf)
		return;
	struct ps_bytes code = { data->d_buf, data->d_size };
	for (uint64_t at = 0; at < code.size; at += step) {
		uint64_t slot;
		bool is_entry = machine == EM_X86_64
					? read_x86(code, at, header.sh_addr + at, &slot)
					: read_arm64(code, at, header.sh_addr + at, &slot);
		if (is_entry &&
		    !add_entry(got, slot, header.sh_addr + at, step == 4 ? 16 : step, ret))
			return;
	}
}

/** Bytes from entry to entry of the section @name; 0: it has none. */
static uint32_t step_of(uint16_t machine, const char *name, const GElf_Shdr *header)
{
	if (strncmp(name, ".plt", 4) || header->sh_type != SHT_PROGBITS)
		return 0;
	if (machine == EM_AARCH64)
		return !strcmp(name, ".plt") ? 4 : 0;
	// Without endbr64, entries of .plt.got are of 8 bytes.
	bool is_short = !strcmp(name, ".plt.got") && header->sh_entsize != 16;
	return is_short ? 8 : 16;
}

void elf_plt_read(Elf *elf, struct symtab *ret)
{
	GElf_Ehdr file;
	size_t names;
	if (!gelf_getehdr(elf, &file) || elf_getshdrstrndx(elf, &names) ||
	    (file.e_machine != EM_X86_64 && file.e_machine != EM_AARCH64))
		return;
	struct got got = {};
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));)
		read_relocations(elf, file.e_machine, section, &got);
	if (got.nr)
		qsort(got.slots, got.nr, sizeof(*got.slots), compare);
	for (Elf_Scn *section = NULL; got.nr && (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;
		uint32_t step = name ? step_of(file.e_machine, name, &header) : 0;
		if (step)
			read_entries(file.e_machine, section, step, &got, ret);
	}
	free(got.slots);
}
