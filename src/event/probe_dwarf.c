// SPDX-License-Identifier: MIT
/**
 * Functions and the variables in them, by debug information.
 */
#include "probe_dwarf.h"

#include "probe_find.h"

#include <dwarf.h>
#include <string.h>

bool ps_dwarf_open(const struct ps_elf *elf, struct ps_dwarf *ret)
{
	GElf_Ehdr header;
	if (!gelf_getehdr(elf->elf, &header))
		return false;
	*ret = (struct ps_dwarf){ .elf = elf, .machine = header.e_machine };
	Elf *const files[] = { elf->elf, elf->debug };
	for (size_t i = 0; i < PS_ARRAY_SIZE(files); i++) {
		Dwarf *dwarf = files[i] ? dwarf_begin_elf(files[i], DWARF_C_READ, NULL) : NULL;
		Dwarf_CU *unit = NULL;
		if (dwarf && !dwarf_get_units(dwarf, NULL, &unit, NULL, NULL, NULL, NULL)) {
			ret->dwarf = dwarf;
			return true;
		}
		dwarf_end(dwarf);
	}
	return false;
}

void ps_dwarf_close(struct ps_dwarf *dwarf)
{
	dwarf_end(dwarf->dwarf);
	*dwarf = (struct ps_dwarf){ 0 };
}

/** The next unit with code behind @unit; false: there is none. */
static bool next_unit(const struct ps_dwarf *dwarf, Dwarf_CU **unit, Dwarf_Die *ret)
{
	uint8_t type;
	Dwarf_Die skeleton;
	while (!dwarf_get_units(dwarf->dwarf, *unit, unit, NULL, &type, ret, &skeleton)) {
		if (type == DW_UT_compile)
			return true;
		if (type == DW_UT_skeleton && dwarf_tag(&skeleton) == DW_TAG_compile_unit) {
			*ret = skeleton;
			return true;
		}
	}
	return false;
}

static int match_address(Dwarf_Die *function, void *argument)
{
	struct ps_scope *scope = argument;
	if (dwarf_haspc(function, scope->address) <= 0)
		return DWARF_CB_OK;
	scope->function = *function;
	return DWARF_CB_ABORT;
}

bool ps_scope_at(const struct ps_dwarf *dwarf, uint64_t address, struct ps_scope *ret)
{
	struct ps_scope scope = { .dwarf = dwarf, .address = address };
	Dwarf_CU *unit = NULL;
	while (next_unit(dwarf, &unit, &scope.unit)) {
		// A unit may say nothing of where it is.
		if (!dwarf_haspc(&scope.unit, address) ||
		    dwarf_getfuncs(&scope.unit, match_address, &scope, 0) <= 0)
			continue;
		scope.entry = address;
		dwarf_entrypc(&scope.function, &scope.entry);
		*ret = scope;
		return true;
	}
	return false;
}

/** A walk over inlined instances. */
struct inlined_walk {
	struct ps_scope scope;
	const char *name;
	ps_inlined_visit visit;
	void *argument;
	const char *symbol;
	bool is_ended;
};

static int visit_instance(Dwarf_Die *instance, void *argument)
{
	struct inlined_walk *walk = argument;
	Dwarf_Addr entry;
	// One without an address was optimized away.
	if (dwarf_entrypc(instance, &entry))
		return DWARF_CB_OK;
	walk->scope.function = *instance;
	walk->scope.address = walk->scope.entry = entry;
	walk->is_ended = !walk->visit(&walk->scope, walk->symbol, walk->argument);
	return walk->is_ended ? DWARF_CB_ABORT : DWARF_CB_OK;
}

/** The name in the symbol table, which has the parameters of C++, else the plain one. */
static const char *symbol_name(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;
	if (dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(function, DW_AT_MIPS_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	return name ? name : dwarf_diename(function);
}

static int match_inlined(Dwarf_Die *function, void *argument)
{
	struct inlined_walk *walk = argument;
	const char *name = symbol_name(function);
	if (!name || !dwarf_func_inline(function) || !ps_probe_matches(walk->name, name))
		return DWARF_CB_OK;
	walk->symbol = name;
	walk->is_ended = !walk->visit(NULL, name, walk->argument);
	if (!walk->is_ended)
		dwarf_func_inline_instances(function, visit_instance, walk);
	return walk->is_ended ? DWARF_CB_ABORT : DWARF_CB_OK;
}

bool ps_dwarf_walk_inlined(const struct ps_dwarf *dwarf, const char *name, ps_inlined_visit visit,
			   void *argument)
{
	struct inlined_walk walk = {
		.scope.dwarf = dwarf, .name = name, .visit = visit, .argument = argument
	};
	Dwarf_CU *unit = NULL;
	while (!walk.is_ended && next_unit(dwarf, &unit, &walk.scope.unit))
		dwarf_getfuncs(&walk.scope.unit, match_inlined, &walk, 0);
	return !walk.is_ended;
}

/** A walk over the variables of a place. */
struct variable_walk {
	uint64_t address;
	bool is_entry; // what is inlined there has not begun
	ps_variable_visit visit;
	void *argument;
};

static bool walk_block(Dwarf_Die *block, const struct variable_walk *walk);

/** Go into the blocks of @block that the place lies in. */
static bool walk_inner(Dwarf_Die *block, const struct variable_walk *walk)
{
	Dwarf_Die child;
	int status = dwarf_child(block, &child);
	for (; !status; status = dwarf_siblingof(&child, &child)) {
		int tag = dwarf_tag(&child);
		bool is_block = tag == DW_TAG_lexical_block ||
				(tag == DW_TAG_inlined_subroutine && !walk->is_entry);
		if (is_block && dwarf_haspc(&child, walk->address) > 0 && !walk_block(&child, walk))
			return false;
	}
	return true;
}

static bool walk_block(Dwarf_Die *block, const struct variable_walk *walk)
{
	if (!walk_inner(block, walk))
		return false;
	Dwarf_Die child;
	int status = dwarf_child(block, &child);
	for (; !status; status = dwarf_siblingof(&child, &child)) {
		int tag = dwarf_tag(&child);
		if ((tag == DW_TAG_formal_parameter || tag == DW_TAG_variable) &&
		    dwarf_diename(&child) && !walk->visit(&child, walk->argument))
			return false;
	}
	return true;
}

bool ps_scope_walk(const struct ps_scope *scope, ps_variable_visit visit, void *argument)
{
	if (scope->is_return)
		return true;
	Dwarf_Die function = scope->function;
	struct variable_walk walk = { scope->address, scope->address == scope->entry, visit,
				      argument };
	return walk_block(&function, &walk);
}

/** A search for a variable. */
struct search {
	const char *name;
	Dwarf_Die found;
};

static bool match_variable(Dwarf_Die *variable, void *argument)
{
	struct search *search = argument;
	if (strcmp(dwarf_diename(variable), search->name))
		return true;
	search->found = *variable;
	return false;
}

/** Search what stands outside of functions in @unit; @is_other: only what other units can see. */
static bool find_in_unit(Dwarf_Die *unit, const char *name, bool is_other, Dwarf_Die *ret)
{
	Dwarf_Die child;
	int status = dwarf_child(unit, &child);
	for (; !status; status = dwarf_siblingof(&child, &child)) {
		const char *other =
			dwarf_tag(&child) == DW_TAG_variable ? dwarf_diename(&child) : NULL;
		if (!other || strcmp(other, name) || !dwarf_hasattr(&child, DW_AT_location))
			continue;
		if (is_other && !dwarf_hasattr_integrate(&child, DW_AT_external))
			continue;
		*ret = child;
		return true;
	}
	return false;
}

bool ps_scope_find(const struct ps_scope *scope, const char *name, Dwarf_Die *ret)
{
	struct search search = { .name = name };
	if (!ps_scope_walk(scope, match_variable, &search)) {
		*ret = search.found;
		return true;
	}
	Dwarf_Die unit = scope->unit;
	if (find_in_unit(&unit, name, false, ret))
		return true;
	Dwarf_CU *at = NULL;
	while (next_unit(scope->dwarf, &at, &unit)) {
		if (find_in_unit(&unit, name, true, ret))
			return true;
	}
	return false;
}
