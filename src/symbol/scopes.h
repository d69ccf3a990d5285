// SPDX-License-Identifier: MIT
/**
 * The functions around an address, as their code lies in each other.
 */
#ifndef PERFSCOPE_SYMBOL_SCOPES_H
#define PERFSCOPE_SYMBOL_SCOPES_H

#include <elfutils/libdw.h>
#include <perfscope/symbol.h>

struct scopes {
	Dwarf_Die functions[PS_SYMBOL_MAX_INLINED]; // the outermost, which is not inlined, first
	uint32_t nr;
};

/** Those around @address in @unit; nr is 0 where there are none. */
void scopes_find(Dwarf_Die *unit, uint64_t address, struct scopes *ret);

#endif
