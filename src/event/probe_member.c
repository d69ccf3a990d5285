// SPDX-License-Identifier: MIT
#include "probe_member.h"

#include <ctype.h>
#include <dwarf.h>
#include <string.h>

static const char too_long[] = "it is reached through too many pointers";

const char *ps_typed_enter(struct ps_typed *typed, Dwarf_Die *die)
{
	Dwarf_Die declared;
	typed->bit_width = 0;
	typed->is_void = !ps_type_of(die, &declared) || !ps_type_peel(&declared, &typed->type);
	if (typed->is_void)
		return NULL;
	int tag = dwarf_tag(&typed->type);
	if (tag != DW_TAG_reference_type && tag != DW_TAG_rvalue_reference_type)
		return NULL;
	Dwarf_Die reference = typed->type;
	return ps_fetch_deref(&typed->fetch) ? ps_typed_enter(typed, &reference) : too_long;
}

/** A member that was found. */
struct member {
	Dwarf_Die die;
	uint64_t offset; // of what it lies in
};

static bool member_offset(Dwarf_Die *member, uint64_t *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Word offset = 0;
	if (dwarf_attr_integrate(member, DW_AT_data_member_location, &attribute) &&
	    dwarf_formudata(&attribute, &offset))
		return false;
	*ret = offset;
	return true;
}

// More than a program can address; two of them can be added.
#define MAX_DISTANCE (INT64_MAX / 4)

// Bases, and members without a name, that lie in a structure: more are in debug information alone that leads in circles.
#define MAX_INNER 200

/** Find @name in the structure @type, its bases and its members without a name, of which *@nr_left may be entered. */
static bool find_member(Dwarf_Die *type, const char *name, size_t length, uint64_t offset,
			unsigned int *nr_left, struct member *ret)
{
	Dwarf_Die child, declared, inner;
	if (!*nr_left)
		return false;
	--*nr_left;
	int status = dwarf_child(type, &child);
	for (; !status; status = dwarf_siblingof(&child, &child)) {
		int tag = dwarf_tag(&child);
		const char *other = dwarf_diename(&child);
		uint64_t own;
		if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
		    !member_offset(&child, &own))
			continue;
		if (tag == DW_TAG_member && other) {
			if (strncmp(other, name, length) || other[length])
				continue;
			*ret = (struct member){ child, offset + own };
			return true;
		}
		if (ps_type_of(&child, &declared) && ps_type_peel(&declared, &inner) &&
		    ps_type_is_structure(&inner) &&
		    find_member(&inner, name, length, offset + own, nr_left, ret))
			return true;
	}
	return false;
}

static void write_members(FILE *stream, Dwarf_Die *type, const char **comma, unsigned int *nr_left)
{
	Dwarf_Die child, declared, inner;
	if (!*nr_left)
		return;
	--*nr_left;
	int status = dwarf_child(type, &child);
	for (; !status; status = dwarf_siblingof(&child, &child)) {
		int tag = dwarf_tag(&child);
		const char *name = dwarf_diename(&child);
		if (tag != DW_TAG_member && tag != DW_TAG_inheritance)
			continue;
		if (tag == DW_TAG_member && name) {
			fprintf(stream, "%s%s", *comma, name);
			*comma = ", ";
		} else if (ps_type_of(&child, &declared) && ps_type_peel(&declared, &inner)) {
			write_members(stream, &inner, comma, nr_left);
		}
	}
}

char *ps_typed_members(Dwarf_Die *type)
{
	char *text = NULL;
	size_t size;
	const char *comma = "";
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return NULL;
	unsigned int nr_left = MAX_INNER;
	if (ps_type_is_structure(type))
		write_members(stream, type, &comma, &nr_left);
	if (fclose(stream) || !size) {
		free(text);
		return NULL;
	}
	return text;
}

/** Where the bits of a bit field lie; false: they are no part of one word. */
static bool set_bits(struct ps_typed *typed, Dwarf_Die *member)
{
	Dwarf_Attribute attribute;
	Dwarf_Word width = 0, at;
	uint64_t size;
	if (!dwarf_attr_integrate(member, DW_AT_bit_size, &attribute))
		return true;
	if (dwarf_formudata(&attribute, &width) || typed->is_void ||
	    !ps_type_size(&typed->type, &size) || !size || size > 8 || width > 8 * size)
		return false;
	if (!dwarf_formudata(dwarf_attr_integrate(member, DW_AT_data_bit_offset, &attribute),
			     &at)) {
		typed->fetch.offset += at / (8 * size) * size;
		at %= 8 * size;
	} else if (!dwarf_formudata(dwarf_attr_integrate(member, DW_AT_bit_offset, &attribute),
				    &at)) {
		at = 8 * size - at - width; // counted from the highest bit
	} else {
		return false;
	}
	typed->bit_width = width;
	typed->bit_shift = at;
	typed->container_size = size;
	return at <= 8 * size - width;
}

static struct ps_error *no_member(struct ps_typed *typed, const char *name, size_t length)
{
	_cleanup_free_ char *type = ps_type_text(&typed->type);
	_cleanup_free_ char *members = ps_typed_members(&typed->type);
	if (dwarf_hasattr(&typed->type, DW_AT_declaration))
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "the members of %s are described elsewhere",
				       type ? type : "it");
	return ps_error_format(PS_ERROR_NOT_FOUND, "%s has no member %.*s%s%s", type ? type : "it",
			       (int)length, name, members ? "; there are " : "",
			       members ? members : "");
}

/** Go to the member at *@path, behind the dot or arrow. */
static struct ps_error *enter_member(struct ps_typed *typed, const char **path)
{
	const char *name = *path;
	size_t length = 0;
	while (isalnum((unsigned char)name[length]) || name[length] == '_')
		length++;
	*path += length;
	struct member member;
	unsigned int nr_left = MAX_INNER;
	if (!ps_type_is_structure(&typed->type) || !length ||
	    !find_member(&typed->type, name, length, 0, &nr_left, &member))
		return no_member(typed, name, length);
	if (typed->fetch.kind == PS_FETCH_VALUE)
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "%.*s is in a register with other members, which the kernel "
				       "cannot take apart",
				       (int)length, name);
	typed->fetch.offset += member.offset;
	const char *reason = ps_typed_enter(typed, &member.die);
	if (!reason && !set_bits(typed, &member.die))
		reason = "its bits are no part of one word";
	return reason ? ps_error_format(PS_ERROR_UNSUPPORTED, "%.*s: %s", (int)length, name, reason)
		      : NULL;
}

static struct ps_error *follow_pointer(struct ps_typed *typed)
{
	Dwarf_Die pointer = typed->type;
	if (typed->is_void || dwarf_tag(&pointer) != DW_TAG_pointer_type)
		return ps_error_format(PS_ERROR_USAGE, "what stands before -> is no pointer");
	if (!ps_fetch_deref(&typed->fetch))
		return ps_error_format(PS_ERROR_UNSUPPORTED, "%s", too_long);
	const char *reason = ps_typed_enter(typed, &pointer);
	if (!reason && typed->is_void)
		reason = "it points to void";
	return reason ? ps_error_format(PS_ERROR_USAGE, "%s", reason) : NULL;
}

/** The number of elements of the array @type; false: not known, or of several dimensions. */
static bool array_length(Dwarf_Die *type, uint64_t *ret)
{
	Dwarf_Die range, second;
	Dwarf_Attribute attribute;
	Dwarf_Word bound;
	if (dwarf_child(type, &range) || !dwarf_siblingof(&range, &second))
		return false;
	if (!dwarf_formudata(dwarf_attr(&range, DW_AT_count, &attribute), &bound))
		*ret = bound;
	else if (!dwarf_formudata(dwarf_attr(&range, DW_AT_upper_bound, &attribute), &bound))
		*ret = bound + 1;
	else
		return false;
	return true;
}

/** Go to the element at *@path, behind the bracket. */
static struct ps_error *enter_element(struct ps_typed *typed, const char **path)
{
	char *end;
	unsigned long index = strtoul(*path, &end, 0);
	if (!isdigit((unsigned char)**path) || *end != ']')
		return ps_error_format(PS_ERROR_USAGE, "a number and ] belong behind [");
	*path = end + 1;
	int tag = typed->is_void ? 0 : dwarf_tag(&typed->type);
	if (tag != DW_TAG_pointer_type && tag != DW_TAG_array_type)
		return ps_error_format(PS_ERROR_USAGE,
				       "what stands before [ is no array and no pointer");
	uint64_t length, size;
	Dwarf_Die outer = typed->type, second;
	if (tag == DW_TAG_array_type && !dwarf_child(&outer, &second) &&
	    !dwarf_siblingof(&second, &second))
		return ps_error_format(PS_ERROR_UNSUPPORTED, "it has several dimensions");
	if (tag == DW_TAG_array_type && array_length(&outer, &length) && index >= length)
		return ps_error_format(PS_ERROR_USAGE, "[%lu] lies beyond its %llu elements", index,
				       (unsigned long long)length);
	if (typed->fetch.kind == PS_FETCH_VALUE && tag == DW_TAG_array_type)
		return ps_error_format(PS_ERROR_UNSUPPORTED, "the array is in a register");
	if (tag == DW_TAG_pointer_type && !ps_fetch_deref(&typed->fetch))
		return ps_error_format(PS_ERROR_UNSUPPORTED, "%s", too_long);
	const char *reason = ps_typed_enter(typed, &outer);
	if (!reason && (typed->is_void || !ps_type_size(&typed->type, &size)))
		reason = "the size of an element is not known";
	if (reason)
		return ps_error_format(PS_ERROR_UNSUPPORTED, "%s", reason);
	int64_t distance;
	if (__builtin_mul_overflow(index, size, &distance) || distance > MAX_DISTANCE ||
	    typed->fetch.offset > MAX_DISTANCE)
		return ps_error_format(PS_ERROR_USAGE, "[%lu] lies beyond all memory", index);
	typed->fetch.offset += distance;
	return NULL;
}

struct ps_error *ps_typed_follow(struct ps_typed *typed, const char *path)
{
	struct ps_error *error = NULL;
	while (*path && !error) {
		if (typed->bit_width)
			return ps_error_format(PS_ERROR_USAGE, "a bit field has no parts");
		if (*path == '[') {
			path++;
			error = enter_element(typed, &path);
			continue;
		}
		bool is_arrow = !strncmp(path, "->", 2);
		if (!is_arrow && *path != '.')
			return ps_error_format(PS_ERROR_USAGE, "%s is not understood", path);
		if (!is_arrow && !typed->is_void && dwarf_tag(&typed->type) == DW_TAG_pointer_type)
			return ps_error_format(PS_ERROR_USAGE,
					       "what stands before . is a pointer: use ->");
		path += 1 + is_arrow;
		error = is_arrow ? follow_pointer(typed) : NULL;
		if (!error)
			error = enter_member(typed, &path);
	}
	return error;
}

/** The kernel's type of a scalar; NULL, or why it has none. */
static const char *choose_scalar(Dwarf_Die *type, char ret[32])
{
	static const char *const kinds[] = { "u", "s" };
	Dwarf_Attribute attribute;
	Dwarf_Word encoding = DW_ATE_unsigned;
	uint64_t size;
	int tag = dwarf_tag(type);
	Dwarf_Die inner, peeled;
	if (tag == DW_TAG_enumeration_type && !dwarf_hasattr(type, DW_AT_encoding) &&
	    ps_type_of(type, &inner) && ps_type_peel(&inner, &peeled) &&
	    dwarf_tag(&peeled) != DW_TAG_enumeration_type)
		return choose_scalar(&peeled, ret);
	if (tag == DW_TAG_base_type || tag == DW_TAG_enumeration_type)
		dwarf_formudata(dwarf_attr(type, DW_AT_encoding, &attribute), &encoding);
	else if (tag != DW_TAG_pointer_type)
		return "the kernel has no type for it";
	if (encoding == DW_ATE_float || encoding == DW_ATE_complex_float)
		return "it is a float, which the kernel cannot show";
	if (!ps_type_size(type, &size) || (size != 1 && size != 2 && size != 4 && size != 8))
		return "its size is not 1, 2, 4 or 8 bytes";
	bool is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	snprintf(ret, 32, "%s%u", tag == DW_TAG_pointer_type ? "x" : kinds[is_signed],
		 8 * (unsigned int)size);
	return NULL;
}

/** Whether the pointer or array @type is one of char. */
static bool is_of_char(Dwarf_Die *type)
{
	Dwarf_Die declared, inner;
	return ps_type_of(type, &declared) && ps_type_peel(&declared, &inner) &&
	       ps_type_is_char(&inner);
}

#define MAX_ELEMENTS 64 // the kernel's MAX_ARRAY_LEN

static const char *choose_array(struct ps_typed *typed, char ret[32])
{
	Dwarf_Die declared, element;
	uint64_t length;
	char scalar[32];
	if (typed->fetch.kind == PS_FETCH_VALUE)
		return "it is an array in a register";
	if (!array_length(&typed->type, &length))
		return "it is an array of no known length: name an element, as [0]";
	if (is_of_char(&typed->type)) {
		strcpy(ret, "ustring");
		return NULL;
	}
	if (!ps_type_of(&typed->type, &declared) || !ps_type_peel(&declared, &element) ||
	    choose_scalar(&element, scalar))
		return "it is an array of what the kernel cannot show: name an element, as [0]";
	if (!length || length > MAX_ELEMENTS)
		return "it is an array of more than 64 elements: name one, as [0]";
	snprintf(ret, 32, "%.8s[%u]", scalar, (unsigned int)length);
	return NULL;
}

const char *ps_typed_choose(struct ps_typed *typed, char ret[32])
{
	if (typed->is_void)
		return "it is void";
	int tag = dwarf_tag(&typed->type);
	if (ps_type_is_structure(&typed->type))
		return "it is a structure: name a member";
	if (tag == DW_TAG_array_type)
		return choose_array(typed, ret);
	if (tag == DW_TAG_pointer_type && is_of_char(&typed->type)) {
		strcpy(ret, "ustring");
		return ps_fetch_deref(&typed->fetch) ? NULL : too_long;
	}
	const char *reason = choose_scalar(&typed->type, ret);
	if (reason || !typed->bit_width)
		return reason;
	if (ret[0] == 's')
		return "it is a bit field with a sign, which the kernel cannot extend";
	snprintf(ret, 32, "b%u@%u/%u", typed->bit_width, typed->bit_shift,
		 8 * typed->container_size);
	return NULL;
}
