// SPDX-License-Identifier: MIT
/**
 * Where the calling convention of a processor has the arguments of a function.
 */
#include "probe_dwarf.h"

#include <dwarf.h>

bool ps_integer_argument(unsigned int machine, unsigned int index, char ret[32])
{
	static const char *const x86[] = { "di", "si", "dx", "cx", "r8", "r9" };
	if (machine == EM_X86_64 && index < PS_ARRAY_SIZE(x86))
		snprintf(ret, 32, "%%%s", x86[index]);
	else if (machine == EM_X86_64) // above the return address
		snprintf(ret, 32, "+%zu(%%sp)", 8 + 8 * (index - PS_ARRAY_SIZE(x86)));
	else if (machine == EM_AARCH64 && index < 8)
		snprintf(ret, 32, "%%x%u", index);
	else
		return false;
	return true;
}

/** Whether the type of a parameter takes a register for integers, or one for floats; false: neither is sure. */
static bool classify(Dwarf_Die *parameter, bool *ret_is_integer)
{
	Dwarf_Die declared, type;
	Dwarf_Attribute attribute;
	Dwarf_Word encoding = 0;
	uint64_t size;
	if (!ps_type_of(parameter, &declared) || !ps_type_peel(&declared, &type))
		return false;
	int tag = dwarf_tag(&type);
	if (tag == DW_TAG_base_type)
		dwarf_formudata(dwarf_attr(&type, DW_AT_encoding, &attribute), &encoding);
	*ret_is_integer = encoding != DW_ATE_float;
	bool is_scalar = tag == DW_TAG_base_type || tag == DW_TAG_pointer_type ||
			 tag == DW_TAG_enumeration_type || tag == DW_TAG_reference_type ||
			 tag == DW_TAG_rvalue_reference_type;
	return is_scalar && encoding != DW_ATE_complex_float && ps_type_size(&type, &size) &&
	       size <= 8;
}

/** Whether the function gives back a scalar or nothing: for others the first register may be the place of the result. */
static bool returns_scalar(Dwarf_Die *function)
{
	Dwarf_Die declared;
	bool is_integer;
	return !ps_type_of(function, &declared) || classify(function, &is_integer);
}

bool ps_fetch_argument(const struct ps_scope *scope, const Dwarf_Die *parameter,
		       struct ps_fetch *ret)
{
	unsigned int nr_integers = 0, nr_floats = 0;
	Dwarf_Die child, function = scope->function;
	if (dwarf_tag(&function) != DW_TAG_subprogram || scope->address != scope->entry ||
	    !returns_scalar(&function))
		return false;
	int status = dwarf_child(&function, &child);
	for (; !status; status = dwarf_siblingof(&child, &child)) {
		bool is_integer;
		if (dwarf_tag(&child) != DW_TAG_formal_parameter)
			continue;
		if (!dwarf_hasattr(&child, DW_AT_location) || !classify(&child, &is_integer))
			return false;
		if (child.addr == parameter->addr) {
			ret->kind = PS_FETCH_VALUE;
			return is_integer &&
			       ps_integer_argument(scope->dwarf->machine, nr_integers, ret->base);
		}
		nr_integers += is_integer;
		nr_floats += !is_integer;
		if (nr_floats > 8) // the next is on the stack, among the integers
			return false;
	}
	return false;
}
