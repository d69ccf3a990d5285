// SPDX-License-Identifier: MIT
#include "elf_symbols.h"

#include <gelf.h>
#include <string.h>

bool elf_has_section(Elf *elf, uint32_t type)
{
	GElf_Shdr header;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		if (gelf_getshdr(section, &header) && header.sh_type == type)
			return true;
	}
	return false;
}

bool elf_has_dwarf(Elf *elf)
{
	size_t names;
	GElf_Shdr header;
	if (elf_getshdrstrndx(elf, &names))
		return false;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;
		if (name && header.sh_type != SHT_NOBITS &&
		    (!strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info")))
			return true;
	}
	return false;
}

/** Whether code is named by @symbol, which lies in @section: functions, and labels of assembler where code is. */
static bool is_code(const GElf_Sym *symbol, const GElf_Shdr *section, const char *name)
{
	uint32_t type = GELF_ST_TYPE(symbol->st_info);
	bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
	bool is_label = type == STT_NOTYPE && section->sh_flags & SHF_EXECINSTR;
	// $x and $d tell code from data on Arm.
	return name[0] && name[0] != '$' && (is_function || is_label);
}

static bool add_symbol(Elf *elf, const GElf_Shdr *table, const GElf_Sym *found, struct symtab *ret)
{
	const char *name = elf_strptr(elf, table->sh_link, found->st_name);
	Elf_Scn *section = elf_getscn(elf, found->st_shndx);
	GElf_Shdr header;
	if (!name || !section || !gelf_getshdr(section, &header) || !is_code(found, &header, name))
		return true;
	uint32_t binding = GELF_ST_BIND(found->st_info);
	struct symbol symbol = { .start = found->st_value };
	symbol.end = symbol.start + found->st_size < symbol.start ? symbol.start
								  : symbol.start + found->st_size;
	symbol.limit = header.sh_addr + header.sh_size;
	symbol.rank = symbol_rank(name, binding == STB_GLOBAL, binding == STB_WEAK);
	if (symbol.end <= symbol.start && symbol.limit <= symbol.start)
		return true;
	return symtab_add(ret, &symbol, name);
}

void elf_symbols_read(Elf *elf, uint32_t type, struct symtab *ret)
{
	GElf_Shdr header;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		if (!gelf_getshdr(section, &header) || header.sh_type != type)
			continue;
		Elf_Data *data = elf_getdata(section, NULL);
		GElf_Sym symbol;
		for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
			bool is_here =
				symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE;
			if (is_here && !add_symbol(elf, &header, &symbol, ret))
				return;
		}
	}
}
