// SPDX-License-Identifier: MIT
#include "test.h"

#include "../../src/event/kernel_enum.h"

#include <linux/btf.h>

#define KIND(kind, nr) ((uint32_t)(kind) << 24 | (nr))
#define SIGNED (1u << 31)
#define NAMES "\0ONE\0TWO\0BELOW\0WIDE\0TOP\0SAME\0DIFFERENT\0UNUSED"

enum { ONE = 1, TWO = 5, BELOW = 9, WIDE = 15, TOP = 20, SAME = 24, DIFFERENT = 29 };

static const uint32_t types[] = {
	0,
	KIND(BTF_KIND_INT, 0),
	4,
	32, // what stands before is stepped over
	0,
	KIND(BTF_KIND_STRUCT, 1),
	4,
	ONE,
	1,
	0,
	0,
	KIND(BTF_KIND_ENUM, 4),
	4,
	ONE,
	1,
	TWO,
	2,
	TOP,
	0xffffffff,
	DIFFERENT,
	1,
	0,
	KIND(BTF_KIND_PTR, 0),
	1,
	0,
	KIND(BTF_KIND_ENUM, 2) | SIGNED,
	4,
	BELOW,
	(uint32_t)-3,
	SAME,
	7,
	0,
	KIND(BTF_KIND_ENUM64, 1),
	8,
	WIDE,
	5,
	1,
	0,
	KIND(BTF_KIND_ENUM, 2),
	4,
	SAME,
	7,
	DIFFERENT,
	2,
};

static void write_file(const char *path, const void *head, size_t head_size)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(head, 1, head_size, file), head_size);
	assert_int_equal(fwrite(types, 1, sizeof(types), file), sizeof(types));
	assert_int_equal(fwrite(NAMES, 1, sizeof(NAMES), file), sizeof(NAMES));
	fclose(file);
}

static struct ps_kernel_enums *read_made(const struct btf_header *header)
{
	char path[] = "/tmp/perfscope-test-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	write_file(path, header, sizeof(*header));
	struct ps_kernel_enums *enums = ps_kernel_enums_read(path);
	unlink(path);
	return enums;
}

static const struct btf_header whole = {
	.magic = BTF_MAGIC,
	.version = BTF_VERSION,
	.hdr_len = sizeof(struct btf_header),
	.type_len = sizeof(types),
	.str_off = sizeof(types),
	.str_len = sizeof(NAMES),
};

static bool find(const struct ps_kernel_enums *enums, const char *name, int64_t *ret)
{
	return ps_kernel_enums_find(enums, (struct ps_span){ name, strlen(name) }, ret);
}

TEST(kernel_enum, each_name_has_its_number)
{
	static const struct {
		const char *name;
		int64_t value;
	} expected[] = {
		{ "ONE", 1 },	       { "TWO", 2 },  { "BELOW", -3 }, { "WIDE", 0x100000005 },
		{ "TOP", 0xffffffff }, { "SAME", 7 },
	};
	struct ps_kernel_enums *enums = read_made(&whole);
	for (size_t i = 0; i < PS_ARRAY_SIZE(expected); i++) {
		int64_t value = 0;
		assert_true(find(enums, expected[i].name, &value));
		ASSERT_EQ(value, expected[i].value);
	}
	ps_kernel_enums_destroy(enums);
}

TEST(kernel_enum, what_is_unknown_or_differs_has_none)
{
	static const char *const names[] = { "DIFFERENT", "UNUSED", "ON", "NE", "THREE", "" };
	struct ps_kernel_enums *enums = read_made(&whole);
	for (size_t i = 0; i < PS_ARRAY_SIZE(names); i++) {
		int64_t value = 77;
		assert_false(find(enums, names[i], &value));
		ASSERT_EQ(value, 77);
	}
	ps_kernel_enums_destroy(enums);
}

TEST(kernel_enum, what_is_no_type_information_is_refused)
{
	struct btf_header headers[] = { whole, whole, whole, whole, whole };
	headers[0].magic = 1;
	headers[1].version = 2;
	headers[2].hdr_len = 0xffffff;
	headers[3].type_len = 0xffffffff;
	headers[4].str_len = 2; // ends within a name
	for (size_t i = 0; i < PS_ARRAY_SIZE(headers); i++)
		ASSERT_NULL(read_made(&headers[i]));
	ASSERT_NULL(ps_kernel_enums_read("/nonexistent"));
}

TEST(kernel_enum, types_that_are_cut_anywhere_are_no_harm)
{
	for (size_t size = 0; size < sizeof(types); size++) {
		struct btf_header header = whole;
		header.type_len = size;
		struct ps_kernel_enums *enums = read_made(&header);
		int64_t value;
		assert_false(find(enums, "WIDE", &value) && value != 0x100000005);
		ps_kernel_enums_destroy(enums);
	}
}
