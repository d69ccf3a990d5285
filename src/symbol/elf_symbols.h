// SPDX-License-Identifier: MIT
/**
 * Symbols of an ELF file: functions, labels in code, and the entries of its procedure linkage table.
 */
#ifndef PERFSCOPE_SYMBOL_ELF_SYMBOLS_H
#define PERFSCOPE_SYMBOL_ELF_SYMBOLS_H

#include "symtab.h"

#include <libelf.h>

/** Whether @elf has a section of @type (SHT_SYMTAB, SHT_DYNSYM) with bytes. */
bool elf_has_section(Elf *elf, uint32_t type);

/** Whether @elf has DWARF. */
bool elf_has_dwarf(Elf *elf);

/** Add the functions of the symbol table of @type. */
void elf_symbols_read(Elf *elf, uint32_t type, struct symtab *ret);

/** Add "name@plt" for each entry that jumps to a function of another file. */
void elf_plt_read(Elf *elf, struct symtab *ret);

#endif
