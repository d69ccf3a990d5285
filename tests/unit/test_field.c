// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/field.h>

static struct ps_field int_field(uint32_t size, bool is_signed)
{
	return (struct ps_field){
		.kind = PS_FIELD_INT,
		.is_signed = is_signed,
		.element_size = size,
		.size = size,
	};
}

#define BYTES(array) ((struct ps_bytes){ array, sizeof(array) })

static int64_t decode_signed(uint32_t size, struct ps_bytes raw)
{
	struct ps_field field = int_field(size, true);
	struct ps_value value = { 0 };
	ASSERT_TRUE(ps_field_decode(&field, raw, &value));
	ASSERT_EQ(value.kind, PS_FIELD_INT);
	ASSERT_TRUE(value.is_signed);
	return value.i64;
}

static uint64_t decode_unsigned(uint32_t size, struct ps_bytes raw)
{
	struct ps_field field = int_field(size, false);
	struct ps_value value = { 0 };
	ASSERT_TRUE(ps_field_decode(&field, raw, &value));
	ASSERT_EQ(value.kind, PS_FIELD_INT);
	ASSERT_FALSE(value.is_signed);
	return value.u64;
}

static const uint8_t high_bytes[8] = { 0xf9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

TEST(field, signed_integers_of_each_width_are_negative)
{
	for (uint32_t size = 1; size <= 8; size *= 2)
		ASSERT_EQ(decode_signed(size, BYTES(high_bytes)), -7);
}

TEST(field, unsigned_integers_of_each_width_stay_positive)
{
	ASSERT_EQ(decode_unsigned(1, BYTES(high_bytes)), 0xf9);
	ASSERT_EQ(decode_unsigned(2, BYTES(high_bytes)), 0xfff9);
	ASSERT_EQ(decode_unsigned(4, BYTES(high_bytes)), 0xfffffff9);
	ASSERT_TRUE(decode_unsigned(8, BYTES(high_bytes)) == 0xfffffffffffffff9);
	const uint8_t top_bit[8] = { 5, 0, 0, 0, 0, 0, 0, 0x80 };
	ASSERT_TRUE(decode_unsigned(8, BYTES(top_bit)) == 0x8000000000000005);
}

TEST(field, a_narrow_type_in_a_wide_slot_is_its_low_end)
{
	const uint8_t raw[8] = { 0x9c, 0xff, 0xff, 0xff, 0, 0, 0, 0 };
	struct ps_field field = int_field(8, true);
	field.element_size = 4;
	struct ps_value value;
	ASSERT_TRUE(ps_field_decode(&field, BYTES(raw), &value));
	ASSERT_EQ(value.i64, -100);
}

TEST(field, an_integer_partly_outside_is_refused_and_leaves_the_value)
{
	const uint8_t raw[62] = { 0 };
	struct ps_field field = int_field(8, false);
	field.offset = 60;
	struct ps_value value = { .u64 = 77 };
	ASSERT_FALSE(ps_field_decode(&field, BYTES(raw), &value));
	field.offset = UINT32_MAX;
	ASSERT_FALSE(ps_field_decode(&field, BYTES(raw), &value));
	ASSERT_EQ(value.u64, 77);
	field.offset = 54;
	ASSERT_TRUE(ps_field_decode(&field, BYTES(raw), &value));
	ASSERT_EQ(value.u64, 0);
}

/** Decode and compare with @size bytes from @offset of @raw. */
static void assert_slice(const struct ps_field *field, struct ps_bytes raw, size_t offset,
			 size_t size)
{
	struct ps_value value;
	ASSERT_TRUE(ps_field_decode(field, raw, &value));
	ASSERT_EQ(value.kind, field->kind);
	ASSERT_EQ(value.element_size, field->element_size);
	assert_ptr_equal(value.bytes.data, raw.data + offset);
	ASSERT_EQ(value.bytes.size, size);
}

TEST(field, a_string_ends_at_its_first_nul_or_with_its_array)
{
	const uint8_t raw[] = "ab\0cdefgh";
	struct ps_field field = { .kind = PS_FIELD_STRING, .element_size = 1, .size = 8 };
	assert_slice(&field, BYTES(raw), 0, 2);
	field.offset = 3;
	field.size = 4;
	assert_slice(&field, BYTES(raw), 3, 4);
}

TEST(field, bytes_keep_their_nuls)
{
	const uint8_t raw[] = { 10, 0, 0, 1, 9 };
	struct ps_field field = { .kind = PS_FIELD_BYTES, .element_size = 1, .size = 4 };
	assert_slice(&field, BYTES(raw), 0, 4);
}

TEST(field, a_data_location_counts_from_the_start_of_the_record)
{
	const uint8_t raw[] = { 9, 9, 9, 9, 10, 0, 3, 0, 'x', 'x', 'h', 'i', 0, 'y' };
	struct ps_field field = {
		.kind = PS_FIELD_STRING,
		.place = PS_PLACE_DATA_LOC,
		.element_size = 1,
		.offset = 4,
		.size = 4,
	};
	assert_slice(&field, BYTES(raw), 10, 2);
}

TEST(field, a_data_location_of_length_0_is_empty)
{
	const uint8_t raw[] = { 4, 0, 0, 0, 'n', 'e', 'x', 't' };
	struct ps_field field = {
		.kind = PS_FIELD_STRING,
		.place = PS_PLACE_DATA_LOC,
		.element_size = 1,
		.size = 4,
	};
	assert_slice(&field, BYTES(raw), 4, 0);
}

TEST(field, a_relative_location_counts_from_behind_its_word)
{
	const uint8_t raw[] = { 9, 9, 9, 9, 2, 0, 3, 0, 'x', 'x', 'h', 'i', 0, 'y' };
	struct ps_field field = {
		.kind = PS_FIELD_STRING,
		.place = PS_PLACE_REL_LOC,
		.element_size = 1,
		.offset = 4,
		.size = 4,
	};
	assert_slice(&field, BYTES(raw), 10, 2);
}

TEST(field, a_location_beyond_the_record_is_refused)
{
	const uint8_t beyond_end[] = { 4, 0, 5, 0, 'a', 'b', 'c', 0 };
	const uint8_t beyond_start[] = { 9, 0, 0, 0, 'a', 'b', 'c', 0 };
	struct ps_field field = {
		.kind = PS_FIELD_STRING,
		.place = PS_PLACE_DATA_LOC,
		.element_size = 1,
		.size = 4,
	};
	struct ps_value value;
	ASSERT_FALSE(ps_field_decode(&field, BYTES(beyond_end), &value));
	ASSERT_FALSE(ps_field_decode(&field, BYTES(beyond_start), &value));
	field.place = PS_PLACE_REL_LOC;
	ASSERT_FALSE(ps_field_decode(&field, BYTES(beyond_end), &value));
	field.offset = 6;
	ASSERT_FALSE(ps_field_decode(&field, BYTES(beyond_end), &value));
}

TEST(field, the_old_location_of_2_bytes_names_where_a_string_starts)
{
	const uint8_t raw[] = { 3, 0, 'x', 'o', 'k', 0, 'z' };
	const uint8_t beyond[] = { 8, 0, 'x', 'o', 'k', 0, 'z' };
	struct ps_field field = {
		.kind = PS_FIELD_STRING,
		.place = PS_PLACE_DATA_LOC16,
		.element_size = 1,
		.size = 2,
	};
	assert_slice(&field, BYTES(raw), 3, 2);
	struct ps_value value;
	ASSERT_FALSE(ps_field_decode(&field, BYTES(beyond), &value));
}

TEST(field, an_array_without_length_takes_the_whole_elements_that_follow)
{
	const uint8_t raw[4 + 8 + 8 + 3] = { 0 };
	struct ps_field field = {
		.kind = PS_FIELD_INT_ARRAY,
		.place = PS_PLACE_REST,
		.element_size = 8,
		.offset = 4,
	};
	assert_slice(&field, BYTES(raw), 4, 16);
	field.offset = sizeof(raw);
	assert_slice(&field, BYTES(raw), sizeof(raw), 0);
	field.offset++;
	struct ps_value value;
	ASSERT_FALSE(ps_field_decode(&field, BYTES(raw), &value));
}

TEST(field, a_cpumask_keeps_all_its_bytes)
{
	const uint8_t raw[] = { 4, 0, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0x80 };
	struct ps_field field = {
		.kind = PS_FIELD_CPUMASK,
		.place = PS_PLACE_DATA_LOC,
		.element_size = 8,
		.size = 4,
	};
	assert_slice(&field, BYTES(raw), 4, 8);
}

static const uint8_t high_bytes_turned[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf9 };

/** The last @size bytes of high_bytes_turned as an integer of the other byte order. */
static struct ps_value decode_turned(uint32_t size, bool is_signed)
{
	struct ps_field field = int_field(size, is_signed);
	field.is_swapped = true;
	field.offset = 8 - size;
	struct ps_value value = { 0 };
	ASSERT_TRUE(ps_field_decode(&field, BYTES(high_bytes_turned), &value));
	return value;
}

TEST(field, integers_of_the_other_byte_order_have_their_value_and_sign)
{
	for (uint32_t size = 1; size <= 8; size *= 2)
		ASSERT_EQ(decode_turned(size, true).i64, -7);
	ASSERT_EQ(decode_turned(1, false).u64, 0xf9);
	ASSERT_EQ(decode_turned(2, false).u64, 0xfff9);
	ASSERT_EQ(decode_turned(4, false).u64, 0xfffffff9);
	ASSERT_TRUE(decode_turned(8, false).u64 == 0xfffffffffffffff9);
}

TEST(field, a_narrow_type_in_a_wide_slot_of_the_other_order_is_its_high_end)
{
	const uint8_t raw[8] = { 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x9c };
	struct ps_field field = int_field(8, true);
	field.element_size = 4;
	field.is_swapped = true;
	struct ps_value value;
	ASSERT_TRUE(ps_field_decode(&field, BYTES(raw), &value));
	ASSERT_EQ(value.i64, -100);
}

TEST(field, locations_of_the_other_byte_order_are_found)
{
	const uint8_t raw[] = { 9, 9, 9, 9, 0, 3, 0, 10, 'x', 'x', 'h', 'i', 0, 'y' };
	const uint8_t old[] = { 0, 3, 'x', 'o', 'k', 0, 'z' };
	struct ps_field field = {
		.kind = PS_FIELD_STRING,
		.place = PS_PLACE_DATA_LOC,
		.is_swapped = true,
		.element_size = 1,
		.offset = 4,
		.size = 4,
	};
	assert_slice(&field, BYTES(raw), 10, 2);
	field.place = PS_PLACE_REL_LOC;
	field.offset = 0; // 9 << 16 | ... is beyond the end
	struct ps_value value;
	ASSERT_FALSE(ps_field_decode(&field, BYTES(raw), &value));
	const uint8_t relative[] = { 0, 3, 0, 2, 'x', 'x', 'h', 'i', 0, 'y' };
	assert_slice(&field, BYTES(relative), 6, 2);
	field.place = PS_PLACE_DATA_LOC16;
	field.size = 2;
	assert_slice(&field, BYTES(old), 3, 2);
}

TEST(field, destroying_no_fields_is_nothing)
{
	ps_fields_destroy(NULL, 3);
}
