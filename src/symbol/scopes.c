// SPDX-License-Identifier: MIT
#include "scopes.h"

#include <dwarf.h>

// Blocks and namespaces within each other; deeper only in files made to be deep.
#define MAX_DEPTH 128

enum scope_kind {
	SCOPE_OTHER,	// without code
	SCOPE_FUNCTION, // inlined or not
	SCOPE_BLOCK,	// a part of a function
	SCOPE_NAMES,	// a namespace or type, in which functions can lie
};

static enum scope_kind kind_of(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
		return SCOPE_FUNCTION;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return SCOPE_BLOCK;
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return SCOPE_NAMES;
	default:
		return SCOPE_OTHER;
	}
}

/** The next of @die's siblings, in place; false: it was the last. One that lies before it would make a loop. */
static bool next_sibling(Dwarf_Die *die)
{
	Dwarf_Off before = dwarf_dieoffset(die);
	Dwarf_Die next;
	if (dwarf_siblingof(die, &next) || dwarf_dieoffset(&next) <= before)
		return false;
	*die = next;
	return true;
}

/** Add the functions around @address below @parent; false: none is there. */
static bool find_below(Dwarf_Die *parent, uint64_t address, uint32_t depth, struct scopes *ret)
{
	Dwarf_Die die;
	if (depth == MAX_DEPTH || dwarf_child(parent, &die))
		return false;
	do {
		enum scope_kind kind = kind_of(&die);
		if (kind == SCOPE_OTHER || (kind != SCOPE_NAMES && dwarf_haspc(&die, address) != 1))
			continue;
		if (kind == SCOPE_FUNCTION && ret->nr < PS_SYMBOL_MAX_INLINED)
			ret->functions[ret->nr++] = die;
		if (find_below(&die, address, depth + 1, ret) || kind == SCOPE_FUNCTION)
			return true;
	} while (next_sibling(&die));
	return false;
}

// dwarf_getscopes() tells of an inlined function where it was defined, instead of where it was put, and loses memory on
// files that are damaged (elfutils 0.188).
void scopes_find(Dwarf_Die *unit, uint64_t address, struct scopes *ret)
{
	ret->nr = 0;
	find_below(unit, address, 0, ret);
}
