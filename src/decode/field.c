// SPDX-License-Identifier: MIT
#include <perfscope/field.h>

#include <perfscope/cleanup.h>
#include <stdlib.h>

#define IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/** The range that the word at the field names. */
static inline bool locate_by_word(const struct ps_field *field, struct ps_bytes raw, size_t base,
				  struct ps_bytes *ret)
{
	uint32_t word;
	if (!ps_bytes_u32(raw, field->offset, &word))
		return false;
	if (PS_UNLIKELY(field->is_swapped))
		word = __builtin_bswap32(word);
	return ps_bytes_slice(raw, base + (word & 0xffff), word >> 16, ret);
}

static inline bool locate_to_end(struct ps_bytes raw, size_t offset, struct ps_bytes *ret)
{
	if (offset > raw.size)
		return false;
	return ps_bytes_slice(raw, offset, raw.size - offset, ret);
}

static inline bool locate(const struct ps_field *field, struct ps_bytes raw, struct ps_bytes *ret)
{
	uint16_t start;
	switch (field->place) {
	case PS_PLACE_FIXED:
		return ps_bytes_slice(raw, field->offset, field->size, ret);
	case PS_PLACE_DATA_LOC:
		return locate_by_word(field, raw, 0, ret);
	case PS_PLACE_REL_LOC:
		return locate_by_word(field, raw, (size_t)field->offset + sizeof(uint32_t), ret);
	case PS_PLACE_DATA_LOC16:
		if (!ps_bytes_u16(raw, field->offset, &start))
			return false;
		if (PS_UNLIKELY(field->is_swapped))
			start = __builtin_bswap16(start);
		return locate_to_end(raw, start, ret);
	case PS_PLACE_REST:
		return locate_to_end(raw, field->offset, ret);
	}
	return false;
}

/** The integer of @size bytes, its sign carried into the upper ones if it has one. */
static inline bool read_int(const uint8_t *data, unsigned int size, bool is_signed, uint64_t *ret)
{
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
	} value;
	switch (size) {
	case 1:
		memcpy(&value, data, 1);
		*ret = is_signed ? (uint64_t)(int8_t)value.u8 : value.u8;
		return true;
	case 2:
		memcpy(&value, data, 2);
		*ret = is_signed ? (uint64_t)(int16_t)value.u16 : value.u16;
		return true;
	case 4:
		memcpy(&value, data, 4);
		*ret = is_signed ? (uint64_t)(int32_t)value.u32 : value.u32;
		return true;
	case 8:
		memcpy(ret, data, 8);
		return true;
	}
	return false;
}

/**
 * The integer in @bytes.
 *
 * Where the slot is wider than the declared type (system call arguments), the value is the low end of it: the kernel
 * takes no more of the register either.
 */
static inline bool decode_int(const struct ps_field *field, struct ps_bytes bytes,
			      struct ps_value *ret)
{
	unsigned int size = field->element_size;
	uint8_t turned[sizeof(uint64_t)];
	if (size > bytes.size || size > sizeof(turned))
		return false;
	if (IS_BIG_ENDIAN != field->is_swapped)
		bytes.data += bytes.size - size;
	if (PS_UNLIKELY(field->is_swapped)) {
		for (unsigned int i = 0; i < size; i++)
			turned[i] = bytes.data[size - 1 - i];
		bytes.data = turned;
	}
	struct ps_value value = {
		.kind = PS_FIELD_INT,
		.is_signed = field->is_signed,
		.element_size = size,
	};
	bool is_read = read_int(bytes.data, size, field->is_signed, &value.u64);
	if (is_read)
		*ret = value;
	return is_read;
}

bool ps_field_decode(const struct ps_field *field, struct ps_bytes raw, struct ps_value *ret)
{
	struct ps_bytes bytes;
	if (field->kind == PS_FIELD_INT && field->place == PS_PLACE_FIXED)
		return ps_bytes_slice(raw, field->offset, field->size, &bytes) &&
		       decode_int(field, bytes, ret);
	if (!locate(field, raw, &bytes))
		return false;
	switch (field->kind) {
	case PS_FIELD_INT:
		return decode_int(field, bytes, ret);
	case PS_FIELD_STRING:
		bytes.size = strnlen((const char *)bytes.data, bytes.size);
		break;
	case PS_FIELD_INT_ARRAY:
		// A piece of an element at the end is padding.
		bytes.size -= bytes.size % field->element_size;
		break;
	case PS_FIELD_BYTES:
	case PS_FIELD_CPUMASK:
		break;
	}
	*ret = (struct ps_value){
		.kind = field->kind,
		.is_signed = field->is_signed,
		.is_swapped = field->is_swapped,
		.element_size = field->element_size,
		.bytes = bytes,
	};
	return true;
}

void ps_fields_destroy(struct ps_field *fields, size_t nr)
{
	if (!fields)
		return;
	for (size_t i = 0; i < nr; i++) {
		free(fields[i].name);
		free(fields[i].type_name);
	}
	free(fields);
}
