// SPDX-License-Identifier: MIT
#include "probe_find.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

/** A search for a function in debug information. */
struct search {
	const char *name;
	bool is_inlined;
};

static int visit_function(Dwarf_Die *function, void *argument)
{
	struct search *search = argument;
	const char *name = dwarf_diename(function);
	if (!name || strcmp(name, search->name) || !dwarf_func_inline(function))
		return DWARF_CB_OK;
	search->is_inlined = true;
	return DWARF_CB_ABORT;
}

bool ps_probe_is_inlined(const struct ps_elf *elf, const char *name)
{
	Dwarf *dwarf = dwarf_begin_elf(elf->debug ? elf->debug : elf->elf, DWARF_C_READ, NULL);
	struct search search = { .name = name };
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	uint8_t type;
	while (dwarf && !search.is_inlined &&
	       !dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, NULL)) {
		if (type == DW_UT_compile)
			dwarf_getfuncs(&die, visit_function, &search, 0);
	}
	dwarf_end(dwarf);
	return search.is_inlined;
}
