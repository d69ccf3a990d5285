// SPDX-License-Identifier: MIT
/**
 * Types of variables in debug information.
 */
#include "probe_dwarf.h"

#include <dwarf.h>
#include <string.h>

bool ps_type_of(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attribute;
	return dwarf_attr_integrate(die, DW_AT_type, &attribute) &&
	       dwarf_formref_die(&attribute, ret);
}

bool ps_type_peel(Dwarf_Die *type, Dwarf_Die *ret)
{
	Dwarf_Die at = *type;
	for (int depth = 0; depth < 64; depth++) {
		switch (dwarf_tag(&at)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			if (!ps_type_of(&at, &at))
				return false;
			continue;
		case DW_TAG_unspecified_type:
			return false;
		}
		*ret = at;
		return true;
	}
	return false;
}

bool ps_type_size(Dwarf_Die *type, uint64_t *ret)
{
	Dwarf_Word size;
	int tag = dwarf_tag(type);
	if (!dwarf_aggregate_size(type, &size)) {
		*ret = size;
		return true;
	}
	// Some compilers leave out the size of a pointer.
	*ret = sizeof(void *);
	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
	       tag == DW_TAG_rvalue_reference_type;
}

bool ps_type_is_char(Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Word encoding;
	const char *name = dwarf_diename(type);
	return dwarf_tag(type) == DW_TAG_base_type && name && !strcmp(name, "char") &&
	       !dwarf_formudata(dwarf_attr(type, DW_AT_encoding, &attribute), &encoding) &&
	       (encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char);
}

bool ps_type_is_float(Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Word encoding;
	return dwarf_tag(type) == DW_TAG_base_type &&
	       !dwarf_formudata(dwarf_attr(type, DW_AT_encoding, &attribute), &encoding) &&
	       (encoding == DW_ATE_float || encoding == DW_ATE_complex_float);
}

bool ps_type_is_structure(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static void write_type(FILE *stream, Dwarf_Die *type, int depth);

/** Write what @die is of, then @suffix. */
static void write_inner(FILE *stream, Dwarf_Die *die, const char *suffix, int depth)
{
	Dwarf_Die inner;
	bool has_type = ps_type_of(die, &inner);
	write_type(stream, has_type ? &inner : NULL, depth + 1);
	fputs(suffix, stream);
}

static void write_bounds(FILE *stream, Dwarf_Die *array)
{
	Dwarf_Die child;
	int status = dwarf_child(array, &child);
	for (; !status; status = dwarf_siblingof(&child, &child)) {
		Dwarf_Attribute attribute;
		Dwarf_Word bound;
		if (!dwarf_formudata(dwarf_attr(&child, DW_AT_count, &attribute), &bound))
			fprintf(stream, "[%llu]", (unsigned long long)bound);
		else if (!dwarf_formudata(dwarf_attr(&child, DW_AT_upper_bound, &attribute),
					  &bound))
			fprintf(stream, "[%llu]", (unsigned long long)bound + 1);
		else
			fputs("[]", stream);
	}
}

static const char *keyword_of(int tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
		return "struct ";
	case DW_TAG_union_type:
		return "union ";
	case DW_TAG_enumeration_type:
		return "enum ";
	default:
		return "";
	}
}

static void write_type(FILE *stream, Dwarf_Die *type, int depth)
{
	if (!type || depth > 16) {
		fputs(type ? "..." : "void", stream);
		return;
	}
	switch (dwarf_tag(type)) {
	case DW_TAG_const_type:
		fputs("const ", stream);
		write_inner(stream, type, "", depth);
		break;
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
		write_inner(stream, type, "", depth);
		break;
	case DW_TAG_pointer_type:
		write_inner(stream, type, " *", depth);
		break;
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		write_inner(stream, type, " &", depth);
		break;
	case DW_TAG_array_type:
		write_inner(stream, type, " ", depth);
		write_bounds(stream, type);
		break;
	case DW_TAG_subroutine_type:
		write_inner(stream, type, " (...)", depth);
		break;
	default: {
		const char *name = dwarf_diename(type);
		fprintf(stream, "%s%s", keyword_of(dwarf_tag(type)), name ? name : "{...}");
	}
	}
}

char *ps_type_text(Dwarf_Die *type)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return NULL;
	write_type(stream, type, 0);
	if (fclose(stream)) {
		free(text);
		return NULL;
	}
	return text;
}
