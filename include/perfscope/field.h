// SPDX-License-Identifier: MIT
/**
 * Field: one declared value of an event, and how its bytes become a value.
 */
#ifndef PERFSCOPE_FIELD_H
#define PERFSCOPE_FIELD_H

#include <perfscope/bytes.h>
#include <stdbool.h>
#include <stdint.h>

/** What a field's value is; fixed by its declaration, never by its bytes. */
enum ps_field_kind {
	PS_FIELD_INT,	    // 1, 2, 4 or 8 bytes, signed or not
	PS_FIELD_STRING,    // char array: text up to the first NUL
	PS_FIELD_BYTES,	    // array of 1-byte integers, or anything else
	PS_FIELD_INT_ARRAY, // array of 2-, 4- or 8-byte integers
	PS_FIELD_CPUMASK,   // bitmap: the set of its bits
};

/** Where the bytes of a field lie in the raw data. */
enum ps_field_place {
	PS_PLACE_FIXED,	   // at offset, size bytes
	PS_PLACE_DATA_LOC, // 4 bytes at offset: size << 16 | offset from the start of the raw data
	PS_PLACE_REL_LOC,  // 4 bytes at offset: size << 16 | offset from the end of this word
	PS_PLACE_DATA_LOC16, // 2 bytes at offset: where a string starts (kernels before 2.6.32)
	PS_PLACE_REST,	     // an array of no declared length at the end: all that follows offset
};

struct ps_field {
	char *name;
	char *type_name; // as declared: "unsigned long", "char[16]", "__data_loc char[]"
	enum ps_field_kind kind;
	enum ps_field_place place;
	bool is_signed;
	bool is_swapped;      // its integers lie in the other byte order than ours
	uint8_t element_size; // bytes of one integer; 1 for strings and bytes, 8 for cpumasks
	uint32_t offset;
	uint32_t size; // bytes at offset
};

/** A decoded value; it borrows the record's bytes. */
struct ps_value {
	enum ps_field_kind kind;
	bool is_signed;	      // integers, arrays
	bool is_swapped;      // arrays, cpumasks: their bytes are as in the record
	uint8_t element_size; // arrays, cpumasks
	union {
		int64_t i64;	       // PS_FIELD_INT, is_signed
		uint64_t u64;	       // PS_FIELD_INT, not is_signed
		struct ps_bytes bytes; // others; of strings up to the NUL
	};
};

/**
 * Decode @field of the raw data @raw.
 *
 * False, and @ret untouched, when the field lies outside. Allocates nothing; safe with any bytes.
 */
bool ps_field_decode(const struct ps_field *field, struct ps_bytes raw, struct ps_value *ret);

/** Free @nr fields and their names; takes NULL. */
void ps_fields_destroy(struct ps_field *fields, size_t nr);

#endif
