// SPDX-License-Identifier: MIT
#include "field_type.h"

#include <perfscope/cleanup.h>
#include <stdlib.h>

#define LONG 0 // as wide as the kernel's long

/** An integer type whose sign is the same in every kernel. */
struct int_type {
	const char *name;
	uint8_t size; // or LONG
	bool is_signed;
};

// System calls have each argument in a slot of 8 bytes, marked signed:0 whatever its type: a `dfd` of AT_FDCWD would
// read 4294967196 or worse. There the declared type decides. Everywhere else the slot is as wide as the type, and
// the sign below is what the format says; `char` is not here, as its sign is the compiler's to choose.
static const struct int_type int_types[] = {
	{ "int", 4, true },
	{ "signed int", 4, true },
	{ "short", 2, true },
	{ "long", LONG, true },
	{ "long int", LONG, true },
	{ "long long", 8, true },
	{ "signed char", 1, true },
	{ "s8", 1, true },
	{ "s16", 2, true },
	{ "s32", 4, true },
	{ "s64", 8, true },
	{ "__s8", 1, true },
	{ "__s16", 2, true },
	{ "__s32", 4, true },
	{ "__s64", 8, true },
	{ "int8_t", 1, true },
	{ "int16_t", 2, true },
	{ "int32_t", 4, true },
	{ "int64_t", 8, true },
	{ "pid_t", 4, true },
	{ "clockid_t", 4, true },
	{ "timer_t", 4, true },
	{ "mqd_t", 4, true },
	{ "key_t", 4, true },
	{ "key_serial_t", 4, true },
	{ "rwf_t", 4, true },
	{ "loff_t", 8, true },
	{ "off_t", 8, true },
	{ "ssize_t", LONG, true },
	{ "unsigned", 4, false },
	{ "unsigned int", 4, false },
	{ "uint", 4, false },
	{ "unsigned char", 1, false },
	{ "unsigned short", 2, false },
	{ "unsigned long", LONG, false },
	{ "unsigned long long", 8, false },
	{ "bool", 1, false },
	{ "u8", 1, false },
	{ "u16", 2, false },
	{ "u32", 4, false },
	{ "u64", 8, false },
	{ "__u8", 1, false },
	{ "__u16", 2, false },
	{ "__u32", 4, false },
	{ "__u64", 8, false },
	{ "uint8_t", 1, false },
	{ "uint16_t", 2, false },
	{ "uint32_t", 4, false },
	{ "uint64_t", 8, false },
	{ "umode_t", 2, false },
	{ "uid_t", 4, false },
	{ "gid_t", 4, false },
	{ "qid_t", 4, false },
	{ "size_t", LONG, false },
};

/** A declared type without qualifiers and brackets. */
struct type_word {
	const char *start;
	size_t size;
};

static bool type_take(struct type_word *type, const char *prefix)
{
	size_t length = strlen(prefix);
	if (type->size < length || memcmp(type->start, prefix, length))
		return false;
	type->start += length;
	type->size -= length;
	return true;
}

static bool type_is(struct type_word type, const char *name)
{
	return type.size == strlen(name) && !memcmp(type.start, name, type.size);
}

static const struct int_type *find_int_type(struct type_word type)
{
	static const struct int_type enumeration = { "enum", 4, false };
	if (type_take(&type, "enum "))
		return &enumeration;
	for (size_t i = 0; i < PS_ARRAY_SIZE(int_types); i++) {
		if (type_is(type, int_types[i].name))
			return &int_types[i];
	}
	return NULL;
}

static bool is_int_size(size_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/** Set the place from the prefix of @type, which is taken off. */
static enum ps_field_place take_place(struct type_word *type, const struct ps_field *field,
				      bool is_array)
{
	if (type_take(type, "__data_loc "))
		return field->size == 2 ? PS_PLACE_DATA_LOC16 : PS_PLACE_DATA_LOC;
	if (type_take(type, "__rel_loc "))
		return PS_PLACE_REL_LOC;
	return is_array && !field->size ? PS_PLACE_REST : PS_PLACE_FIXED;
}

static size_t int_size(const struct int_type *type, uint8_t long_size)
{
	return type->size == LONG ? long_size : type->size;
}

/** Bytes of one element: by the array's length where it is told, else by the type; 0: not known. */
static size_t element_size(const struct ps_field *field, const char *brackets,
			   const struct int_type *int_type, struct type_word type,
			   uint8_t long_size)
{
	char *end;
	unsigned long nr = strtoul(brackets + 1, &end, 10);
	if (field->place == PS_PLACE_FIXED && nr && *end == ']' && field->size % nr == 0)
		return field->size / nr;
	if (type_is(type, "char"))
		return 1;
	return int_type ? int_size(int_type, long_size) : 0;
}

static void classify_array(struct ps_field *field, const char *brackets, struct type_word type,
			   bool is_bitmap, uint8_t long_size)
{
	const struct int_type *int_type = find_int_type(type);
	size_t size = element_size(field, brackets, int_type, type, long_size);
	bool is_pointer = memchr(type.start, '*', type.size);
	bool is_struct = type_take(&type, "struct ") || type_take(&type, "union ");
	if (type_is(type, "char") && size == 1) {
		field->kind = PS_FIELD_STRING;
	} else if (is_bitmap) {
		field->kind = PS_FIELD_CPUMASK;
		size = long_size;
	} else if (size > 1 && is_int_size(size) && (!is_struct || is_pointer)) {
		field->kind = PS_FIELD_INT_ARRAY;
		if (int_type)
			field->is_signed = int_type->is_signed;
	} else {
		field->kind = PS_FIELD_BYTES;
		size = 1;
	}
	field->element_size = size;
}

static void classify_scalar(struct ps_field *field, struct type_word type, bool is_bitmap,
			    uint8_t long_size)
{
	if (is_bitmap || type_is(type, "cpumask_t") || type_is(type, "struct cpumask")) {
		field->kind = PS_FIELD_CPUMASK;
		field->element_size = long_size;
		return;
	}
	if (field->place != PS_PLACE_FIXED || !is_int_size(field->size)) {
		field->kind = PS_FIELD_BYTES;
		field->element_size = 1;
		return;
	}
	field->kind = PS_FIELD_INT;
	field->element_size = field->size;
	const struct int_type *int_type = find_int_type(type);
	size_t size = int_type ? int_size(int_type, long_size) : 0;
	if (!int_type || size > field->size)
		return;
	// An enumeration is as wide as its values need: its sign is known only where it sits in a wider slot.
	bool is_enum = !strcmp(int_type->name, "enum");
	if (is_enum && field->size <= size)
		return;
	field->element_size = size;
	field->is_signed = int_type->is_signed;
}

void ps_field_classify(struct ps_field *field, bool says_signed, bool is_bitmap, uint8_t long_size)
{
	const char *brackets = strchr(field->type_name, '[');
	struct type_word type = { field->type_name, strlen(field->type_name) };
	if (brackets)
		type.size = brackets - type.start;
	field->place = take_place(&type, field, brackets);
	type_take(&type, "const ");
	while (type.size && type.start[type.size - 1] == ' ')
		type.size--;
	field->is_signed = says_signed;
	if (brackets)
		classify_array(field, brackets, type, is_bitmap, long_size);
	else
		classify_scalar(field, type, is_bitmap, long_size);
	if (field->kind != PS_FIELD_INT && field->kind != PS_FIELD_INT_ARRAY)
		field->is_signed = false;
}
