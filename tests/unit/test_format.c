// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/schema.h>

#define COMMON                                                                                     \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"             \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FORMAT(fields, print)                                                                      \
	"name: made\nID: 77\nformat:\n" COMMON fields "\nprint fmt: " print "\n"
#define FIELD(declaration, offset, size, sign)                                                     \
	"\tfield:" declaration ";\toffset:" #offset ";\tsize:" #size ";\tsigned:" #sign ";\n"

static struct ps_format *parse(const char *text)
{
	struct ps_format *format = NULL;
	ASSERT_OK(ps_format_parse(text, strlen(text), "test", &format));
	return format;
}

static void assert_refused(const char *text)
{
	struct ps_format *format = NULL;
	ASSERT_ERROR(ps_format_parse(text, strlen(text), "test", &format), PS_ERROR_BAD_DATA,
		     "format of test");
	ASSERT_NULL(format);
}

struct expected_field {
	const char *declaration; // all but the name, which is "it"
	uint32_t size;
	bool says_signed;
	const char *type_name;
	enum ps_field_kind kind;
	enum ps_field_place place;
	uint8_t element_size;
	bool is_signed;
};

static void assert_field(const struct expected_field *expected)
{
	char *text;
	assert_true(asprintf(&text,
			     "name: made\nID: 77\nformat:\n" COMMON
			     "\tfield:%s;\toffset:8;\tsize:%u;\tsigned:%d;\n\nprint fmt: \"\"\n",
			     expected->declaration, expected->size, expected->says_signed) > 0);
	struct ps_format *format = parse(text);
	struct ps_field *fields;
	size_t nr;
	ASSERT_OK(ps_format_fields(format, &fields, &nr));
	ASSERT_EQ(nr, 5);
	ASSERT_STR_EQ(fields[4].name, "it");
	ASSERT_STR_EQ(fields[4].type_name, expected->type_name);
	ASSERT_EQ(fields[4].kind, expected->kind);
	ASSERT_EQ(fields[4].place, expected->place);
	ASSERT_EQ(fields[4].element_size, expected->element_size);
	ASSERT_EQ(fields[4].is_signed, expected->is_signed);
	ASSERT_EQ(fields[4].offset, 8);
	ASSERT_EQ(fields[4].size, expected->size);
	ps_fields_destroy(fields, nr);
	ps_format_destroy(format);
	free(text);
}

static void assert_fields(const struct expected_field *expected, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		assert_field(&expected[i]);
}

#define I PS_FIELD_INT, PS_PLACE_FIXED

TEST(format, integers_have_the_width_and_sign_of_their_declaration)
{
	static const struct expected_field expected[] = {
		{ "int it", 4, true, "int", I, 4, true },
		{ "pid_t it", 4, true, "pid_t", I, 4, true },
		{ "unsigned long it", 8, false, "unsigned long", I, 8, false },
		{ "long it", 8, true, "long", I, 8, true },
		{ "bool it", 1, false, "bool", I, 1, false },
		{ "char it", 1, false, "char", I, 1, false },
		{ "gfp_t it", 4, false, "gfp_t", I, 4, false },
		{ "enum zone_type it", 4, false, "enum zone_type", I, 4, false },
		{ "enum xfs_group_type it", 1, false, "enum xfs_group_type", I, 1, false },
		{ "xfs_daddr_t it", 8, true, "xfs_daddr_t", I, 8, true },
		{ "const char * it", 8, false, "const char *", I, 8, false },
		{ "struct iocb * * it", 8, false, "struct iocb * *", I, 8, false },
		{ "struct pair it", 8, false, "struct pair", I, 8, false },
	};
	assert_fields(expected, PS_ARRAY_SIZE(expected));
}

TEST(format, arguments_of_system_calls_have_the_width_and_sign_of_their_type)
{
	static const struct expected_field expected[] = {
		{ "int it", 8, false, "int", I, 4, true },
		{ "const int it", 8, false, "const int", I, 4, true },
		{ "unsigned int it", 8, false, "unsigned int", I, 4, false },
		{ "umode_t it", 8, false, "umode_t", I, 2, false },
		{ "pid_t it", 8, false, "pid_t", I, 4, true },
		{ "long it", 8, false, "long", I, 8, true },
		{ "loff_t it", 8, false, "loff_t", I, 8, true },
		{ "size_t it", 8, false, "size_t", I, 8, false },
		{ "const enum landlock_rule_type it", 8, false, "const enum landlock_rule_type", I,
		  4, false },
		{ "cap_user_header_t it", 8, false, "cap_user_header_t", I, 8, false },
	};
	assert_fields(expected, PS_ARRAY_SIZE(expected));
}

TEST(format, arrays_are_text_bytes_or_integers_by_their_type)
{
	static const struct expected_field expected[] = {
		{ "char it[16]", 16, false, "char[16]", PS_FIELD_STRING, PS_PLACE_FIXED, 1, false },
		{ "char it[TASK_COMM_LEN]", 16, true, "char[TASK_COMM_LEN]", PS_FIELD_STRING,
		  PS_PLACE_FIXED, 1, false },
		{ "__u8 it[4]", 4, false, "__u8[4]", PS_FIELD_BYTES, PS_PLACE_FIXED, 1, false },
		{ "unsigned char it[6]", 6, false, "unsigned char[6]", PS_FIELD_BYTES,
		  PS_PLACE_FIXED, 1, false },
		{ "unsigned long it[6]", 48, false, "unsigned long[6]", PS_FIELD_INT_ARRAY,
		  PS_PLACE_FIXED, 8, false },
		{ "long it[3]", 24, true, "long[3]", PS_FIELD_INT_ARRAY, PS_PLACE_FIXED, 8, true },
		{ "u16 it[3]", 6, false, "u16[3]", PS_FIELD_INT_ARRAY, PS_PLACE_FIXED, 2, false },
		{ "struct pair it[2]", 16, false, "struct pair[2]", PS_FIELD_BYTES, PS_PLACE_FIXED,
		  1, false },
		{ "struct odd it", 12, false, "struct odd", PS_FIELD_BYTES, PS_PLACE_FIXED, 1,
		  false },
		{ "unsigned long it[]", 0, false, "unsigned long[]", PS_FIELD_INT_ARRAY,
		  PS_PLACE_REST, 8, false },
		{ "char it[]", 0, false, "char[]", PS_FIELD_STRING, PS_PLACE_REST, 1, false },
	};
	assert_fields(expected, PS_ARRAY_SIZE(expected));
}

TEST(format, dynamic_fields_lie_where_their_word_says)
{
	static const struct expected_field expected[] = {
		{ "__data_loc char[] it", 4, false, "__data_loc char[]", PS_FIELD_STRING,
		  PS_PLACE_DATA_LOC, 1, false },
		{ "__rel_loc char[] it", 4, false, "__rel_loc char[]", PS_FIELD_STRING,
		  PS_PLACE_REL_LOC, 1, false },
		{ "__data_loc char[] it", 2, false, "__data_loc char[]", PS_FIELD_STRING,
		  PS_PLACE_DATA_LOC16, 1, false },
		{ "__data_loc u8[] it", 4, false, "__data_loc u8[]", PS_FIELD_BYTES,
		  PS_PLACE_DATA_LOC, 1, false },
		{ "__data_loc unsigned char[] it", 4, false, "__data_loc unsigned char[]",
		  PS_FIELD_BYTES, PS_PLACE_DATA_LOC, 1, false },
		{ "__data_loc unsigned int[] it", 4, false, "__data_loc unsigned int[]",
		  PS_FIELD_INT_ARRAY, PS_PLACE_DATA_LOC, 4, false },
		{ "__data_loc u64[] it", 4, false, "__data_loc u64[]", PS_FIELD_INT_ARRAY,
		  PS_PLACE_DATA_LOC, 8, false },
		{ "__data_loc s32[] it", 4, false, "__data_loc s32[]", PS_FIELD_INT_ARRAY,
		  PS_PLACE_DATA_LOC, 4, true },
		{ "__data_loc cpumask_t it", 4, false, "__data_loc cpumask_t", PS_FIELD_CPUMASK,
		  PS_PLACE_DATA_LOC, 8, false },
		{ "__data_loc struct odd[] it", 4, false, "__data_loc struct odd[]", PS_FIELD_BYTES,
		  PS_PLACE_DATA_LOC, 1, false },
	};
	assert_fields(expected, PS_ARRAY_SIZE(expected));
}

TEST(format, an_array_that_is_printed_as_a_bitmap_is_one)
{
	struct ps_format *format = parse(FORMAT(FIELD("__data_loc unsigned long[] cpus", 8, 4, 0),
						"\"%s\", __get_bitmask(cpus)"));
	struct ps_field *fields;
	size_t nr;
	ASSERT_OK(ps_format_fields(format, &fields, &nr));
	ASSERT_EQ(fields[4].kind, PS_FIELD_CPUMASK);
	ps_fields_destroy(fields, nr);
	ps_format_destroy(format);
}

TEST(format, headers_of_other_kernels_are_read_from_the_text)
{
	static const char *const extra[] = {
		FIELD("unsigned char common_preempt_lazy_count", 8, 1, 0),
		FIELD("unsigned char common_migrate_disable", 8, 1, 0)
			FIELD("unsigned char common_preempt_lazy_count", 9, 1, 0),
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(extra); i++) {
		char *text;
		assert_true(asprintf(&text,
				     "name: made\nID: 77\nformat:\n%.*s%s\n%s\nprint fmt: \"%%d\", "
				     "REC->it\n",
				     (int)strlen(COMMON) - 1, COMMON, extra[i],
				     FIELD("int it", 12, 4, 1)) > 0);
		struct ps_format *format = parse(text);
		struct ps_field *fields;
		size_t nr;
		ASSERT_OK(ps_format_fields(format, &fields, &nr));
		ASSERT_EQ(nr, 6 + i);
		ASSERT_EQ(fields[4].offset, 8);
		ASSERT_EQ(fields[nr - 1].offset, 12);
		uint8_t raw[16] = { [12] = 41 };
		char *shown = ps_format_print(format, (struct ps_bytes){ raw, sizeof(raw) });
		ASSERT_STR_EQ(shown, "41");
		free(shown);
		ps_fields_destroy(fields, nr);
		ps_format_destroy(format);
		free(text);
	}
}

TEST(format, a_text_without_signs_is_read)
{
	struct ps_format *format =
		parse("name: old\nID: 5\nformat:\n"
		      "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\n\n"
		      "\tfield:int it;\toffset:4;\tsize:4;\n\nprint fmt: \"%d\", REC->it\n");
	ASSERT_STR_EQ(ps_format_name(format), "old");
	ps_format_destroy(format);
}

TEST(format, what_is_no_format_is_refused)
{
	assert_refused("");
	assert_refused("\n");
	assert_refused("name: x");
	assert_refused("name: x\nID: 1\n");
	assert_refused("name: x\nID: many\nformat:\n");
	assert_refused("name: x\nID: 99999\nformat:\n");
	assert_refused("name: x/y\nID: 1\nformat:\n");
	assert_refused("name: x\nID: 1\nformat:\n\tfield:i;\toffset:0;\tsize:4;\tsigned:1;\n");
	assert_refused("name: x\nID: 1\nformat:\n\tfield:int x;\toffset:0;\tsize:4;\tsign");
	assert_refused("name: x\nID: 1\nformat:\n\tfield:int x;\toffset:-1;\tsize:4;\tsigned:1;\n");
	assert_refused("name: x\nID: 1\nformat:\n\tfield:int "
		       "x;\toffset:0;\tsize:99999999999;\tsigned:1;\n");
	assert_refused("name: x\nID: 1\nformat:\n\tfield:int x[;\toffset:0;\tsize:4;\tsigned:1;\n");
	assert_refused(
		"name: x\nID: 1\nformat:\n\tfield:int \x80x;\toffset:0;\tsize:4;\tsigned:1;\n");
	assert_refused("name: x\nID: 1\nformat:\n\tfield:int x\\");
}

#define SWITCH                                                                                     \
	FORMAT(FIELD("char prev_comm[16]", 8, 16, 0) FIELD("pid_t prev_pid", 24, 4, 1)             \
		       FIELD("int prev_prio", 28, 4, 1) FIELD("long prev_state", 32, 8, 1),        \
	       "\"prev_comm=%s prev_pid=%d prev_state=%s%s\", REC->prev_comm, REC->prev_pid, "     \
	       "(REC->prev_state & ((((0x0 | 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x40) + 1) << " \
	       "1) - 1)) ? "                                                                       \
	       "__print_flags(REC->prev_state & ((((0x0 | 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | "  \
	       "0x40) + 1) << 1) - 1), \"|\", "                                                    \
	       "{ 0x1, \"S\" }, { 0x2, \"D\" }, { 0x4, \"T\" }, { 0x8, \"t\" }, { 0x10, \"X\" }, " \
	       "{ 0x20, \"Z\" }, { 0x40, \"P\" }, { 0x80, \"I\" }) : \"R\", "                      \
	       "REC->prev_state & (((0x0 | 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x40) + 1) << "   \
	       "1) ? \"+\" : \"\"")

static void assert_symbolic(struct ps_format *format, const char *name, const void *raw,
			    size_t size, const char *expected)
{
	char *text = ps_format_symbolic(format, name, (struct ps_bytes){ raw, size });
	if (expected)
		ASSERT_STR_EQ(text ? text : "(nothing)", expected);
	else
		ASSERT_NULL(text);
	free(text);
}

static void assert_print(struct ps_format *format, const void *raw, size_t size,
			 const char *expected)
{
	char *text = ps_format_print(format, (struct ps_bytes){ raw, size });
	if (expected)
		ASSERT_STR_EQ(text ? text : "(nothing)", expected);
	else
		ASSERT_NULL(text);
	free(text);
}

TEST(format, the_letters_of_prev_state_come_from_the_print_format)
{
	static const struct {
		uint64_t state;
		const char *letters;
	} states[] = {
		{ 0, "R" },    { 1, "S" },	{ 2, "D" },	 { 4, "T" },
		{ 8, "t" },    { 0x10, "X" },	{ 0x20, "Z" },	 { 0x40, "P" },
		{ 0x80, "I" }, { 0x100, "R+" }, { 0x101, "S+" }, { 3, "S|D" },
	};
	struct ps_format *format = parse(SWITCH);
	for (size_t i = 0; i < PS_ARRAY_SIZE(states); i++) {
		uint8_t raw[40] = { 0 };
		memcpy(raw + 32, &states[i].state, 8);
		assert_symbolic(format, "prev_state", raw, sizeof(raw), states[i].letters);
	}
	ps_format_destroy(format);
}

TEST(format, a_record_is_printed_as_the_kernel_does)
{
	struct ps_format *format = parse(SWITCH);
	uint8_t raw[40] = { [8] = 'm', 'e', [24] = 0xff, 0xff, 0xff, 0xff, [33] = 1 };
	assert_print(format, raw, sizeof(raw), "prev_comm=me prev_pid=-1 prev_state=R+");
	assert_symbolic(format, "prev_pid", raw, sizeof(raw), "-1");
	assert_symbolic(format, "prev_comm", raw, sizeof(raw), "me");
	ps_format_destroy(format);
}

TEST(format, a_field_that_is_not_shown_or_unknown_has_no_text)
{
	struct ps_format *format = parse(SWITCH);
	uint8_t raw[40] = { 0 };
	assert_symbolic(format, "prev_prio", raw, sizeof(raw), NULL);
	assert_symbolic(format, "nothing", raw, sizeof(raw), NULL);
	ps_format_destroy(format);
}

TEST(format, a_record_that_is_too_short_is_not_printed)
{
	struct ps_format *format = parse(SWITCH);
	uint8_t raw[39] = { 0 };
	assert_print(format, raw, sizeof(raw), NULL);
	assert_symbolic(format, "prev_state", raw, sizeof(raw), NULL);
	assert_print(format, raw, 0, NULL);
	ps_format_destroy(format);
}

TEST(format, a_text_goes_before_a_number_of_the_same_field)
{
	struct ps_format *format =
		parse(FORMAT(FIELD("unsigned int vec", 8, 4, 0),
			     "\"vec=%u [action=%s]\", REC->vec, __print_symbolic(REC->vec, { 0, "
			     "\"HI\" }, { 3, \"NET_RX\" })"));
	uint8_t raw[12] = { [8] = 3 };
	assert_symbolic(format, "vec", raw, sizeof(raw), "NET_RX");
	assert_print(format, raw, sizeof(raw), "vec=3 [action=NET_RX]");
	ps_format_destroy(format);
}

TEST(format, an_element_does_not_pose_as_its_array)
{
	struct ps_format *format = parse(FORMAT(FIELD("unsigned long args[2]", 8, 16, 0),
						"\"(%lx, %lx)\", REC->args[0], REC->args[1]"));
	uint8_t raw[24] = { [8] = 5, [16] = 6 };
	assert_symbolic(format, "args", raw, sizeof(raw), NULL);
	assert_print(format, raw, sizeof(raw), "(5, 6)");
	ps_format_destroy(format);
}

TEST(format, dynamic_strings_are_printed_and_one_beyond_the_record_is_not)
{
	struct ps_format *format = parse(FORMAT(FIELD("__data_loc char[] one", 8, 4, 0)
							FIELD("__rel_loc char[] two", 12, 4, 0),
						"\"%s-%s\", __get_str(one), __get_rel_str(two)"));
	uint8_t raw[22] = { [8] = 16, 0, 3, 0, [12] = 3, 0, 3, 0, [16] = 'a', 'b', 0, 'c', 'd', 0 };
	assert_print(format, raw, sizeof(raw), "ab-cd");
	assert_symbolic(format, "two", raw, sizeof(raw), "cd");
	raw[14] = 4;
	assert_print(format, raw, sizeof(raw), NULL);
	ps_format_destroy(format);
}

TEST(format, sizes_and_pointers_are_printed_whole)
{
	struct ps_format *format =
		parse(FORMAT(FIELD("size_t bytes", 8, 8, 0) FIELD("void * at", 16, 8, 0),
			     "\"%zu %p\", REC->bytes, REC->at"));
	uint64_t raw[3] = { 0, 5000000000, 0xffff888000000010 };
	assert_print(format, raw, sizeof(raw), "5000000000 ffff888000000010");
	ps_format_destroy(format);
}

TEST(format, a_zero_has_its_prefix_as_in_the_kernel)
{
	struct ps_format *format = parse(FORMAT(FIELD("int it", 8, 4, 1),
						"\"%#x %#X %#o %#08x %#010lx\", REC->it, REC->it, "
						"REC->it, REC->it, (unsigned long)REC->it"));
	const uint8_t zero[12] = { 0 }, ten[12] = { [8] = 10 };
	assert_print(format, zero, sizeof(zero), "0x0 0X0 0 0x000000 0x00000000");
	assert_print(format, ten, sizeof(ten), "0xa 0XA 012 0x00000a 0x0000000a");
	ps_format_destroy(format);
}

TEST(format, a_bit_that_a_field_names_is_shown_as_far_as_an_int_has_it)
{
	struct ps_format *format = parse(
		FORMAT(FIELD("u8 it", 8, 1, 0),
		       "\"%d %s\", 1 << REC->it, __print_flags((1 << REC->it), \" | \", { 1 << 0, "
		       "\"REALTIME\" }, { 1 << 1, \"BOOTTIME\" })"));
	uint8_t raw[12] = { [8] = 1 };
	assert_print(format, raw, sizeof(raw), "2 BOOTTIME");
	raw[8] = 30;
	assert_print(format, raw, sizeof(raw), "1073741824 0x40000000");
	raw[8] = 31;
	assert_print(format, raw, sizeof(raw), NULL);
	ps_format_destroy(format);
}

TEST(format, a_name_that_is_not_there_is_shown_by_its_length)
{
	struct ps_format *format =
		parse(FORMAT(FIELD("int len", 8, 4, 1) FIELD("__data_loc char[] name", 12, 4, 0),
			     "\"name %.*s.\", REC->len, REC->len ? __get_str(name) : ((void *)0)"));
	uint8_t raw[20] = { [8] = 2, [12] = 16, 0, 4, 0, [16] = 'a', 'b', 'c', 0 };
	assert_print(format, raw, sizeof(raw), "name ab.");
	raw[8] = 0;
	assert_print(format, raw, sizeof(raw), "name .");
	ps_format_destroy(format);
}

TEST(format, brackets_stay_together_behind_an_operator)
{
	struct ps_format *format = parse(FORMAT(
		FIELD("u32 it", 8, 4, 0),
		"\"%u %u %u %s\", REC->it & (0x10 | 0x20), REC->it * (1 + 2), 100 - (REC->it + 1) "
		"+ 5, "
		"__print_flags(REC->it & (0x10 | 0x20), \"|\", { 0x10, \"A\" }, { 0x20, \"B\" })"));
	const uint8_t raw[12] = { [8] = 0x15 };
	assert_print(format, raw, sizeof(raw), NULL);
	ps_format_destroy(format);
	format = parse(FORMAT(
		FIELD("u32 it", 8, 4, 0),
		"\"%u %u %u %s\", REC->it & (0x10 | 0x20), REC->it * (1 + 2), 100 - (REC->it + 1), "
		"__print_flags(REC->it & (0x10 | 0x20), \"|\", { 0x10, \"A\" }, { 0x20, \"B\" })"));
	assert_print(format, raw, sizeof(raw), "16 63 78 A");
	ps_format_destroy(format);
}

/** What libtraceevent would show otherwise than the kernel is not shown. */
static void assert_unprintable(const char *fields, const char *print)
{
	char *text;
	assert_true(asprintf(&text, "name: made\nID: 77\nformat:\n" COMMON "%s\nprint fmt: %s\n",
			     fields, print) > 0);
	struct ps_format *format = parse(text);
	uint8_t raw[64] = { [8] = 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	assert_print(format, raw, sizeof(raw), NULL);
	ps_format_destroy(format);
	free(text);
}

TEST(format, operators_that_would_be_taken_from_the_right_are_not_printed)
{
	static const char *const prints[] = {
		"\"%u\", 9 - REC->it - 1",     "\"%u\", 9 - REC->it * 2 + 1",
		"\"%u\", REC->it * 9 / 2",     "\"%u\", REC->it / 2 * 9",
		"\"%u\", 1 << 2 << 3",	       "\"%u\", REC->it == 2 == 0",
		"\"%u\", REC->it + 1 - 2 - 3",
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(prints); i++)
		assert_unprintable(FIELD("u32 it", 8, 4, 0), prints[i]);
	struct ps_format *format = parse(FORMAT(
		FIELD("u32 it", 8, 4, 0),
		"\"%u %u %u\", REC->it + 5 - 2, 2 * REC->it + 1, REC->it >= 1 && REC->it <= 8"));
	const uint8_t raw[12] = { [8] = 4 };
	assert_print(format, raw, sizeof(raw), "7 9 1");
	ps_format_destroy(format);
}

TEST(format, what_would_be_printed_wrong_is_not_printed)
{
	const char *number = FIELD("int it", 8, 4, 1);
	assert_unprintable(number, "\"%s\", REC->it < 0 ? \"below\" : \"above\"");
	assert_unprintable(number, "\"%s\", __print_symbolic(REC->it, { -1, \"one\" })");
	assert_unprintable(number, "\"%s\", __print_symbolic(REC->it, { UNKNOWN_NAME, \"one\" })");
	assert_unprintable(number, "\"%lld\", (long long)REC->it");
	assert_unprintable(number, "\"%s\", __print_flags(REC->it, \"|\", { 1, \"one\" })");
	assert_unprintable(FIELD("u32 it", 8, 4, 0),
			   "\"%s\", __print_symbolic(REC->it, { UNKNOWN_NAME, \"one\" })");
	assert_unprintable(number, "\"%c\", REC->it");
	assert_unprintable(number, "\"%#8x\", REC->it");
	assert_unprintable(number, "\"%#.3x\", REC->it");
	assert_unprintable(number, "\"%d\", UNKNOWN_NAME");
	assert_unprintable(number, "\"%d\", REC->nothing");
	assert_unprintable(number, "\"%d\"");
	assert_unprintable(number, "\"%d\", REC->it, REC->it");
	assert_unprintable(number, "\"%s\", REC->it");
	assert_unprintable(number, "\"%d\", jiffies_to_msecs(REC->it)");
	assert_unprintable(FIELD("const char * it", 8, 8, 0), "\"%s\", REC->it");
	assert_unprintable(FIELD("u32 it[2]", 8, 8, 0), "\"%s\", __print_array(REC->it, 2, 4)");
}

TEST(format, a_broken_print_format_leaves_the_fields)
{
	const char *number = FIELD("int it", 8, 4, 1);
	static const char *const broken[] = {
		"",
		"\"",
		"\"\\",
		"\"%d\", (",
		"\"%d\", 1 / 0",
		"\"%d\", REC->it +",
		"\"%d\", * * 1",
		"\"%s\", ({ static const char *a[] = { \"---\" }; a; })",
		"\"%d\", REC->it[9]",
		"\"%d\", -",
		"%d",
		"\"%*d\", 2000000000, REC->it",
		"\"%999999999d\", REC->it",
		"\"%s\", __print_flags(REC->it)",
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(broken); i++)
		assert_unprintable(number, broken[i]);
}

TEST(format, a_length_that_the_record_names_stays_inside_it)
{
	struct ps_format *format =
		parse(FORMAT(FIELD("u8 it[4]", 8, 4, 0) FIELD("u32 len", 12, 4, 0),
			     "\"%s\", __print_hex_str(REC->it, REC->len)"));
	uint8_t raw[16] = { [8] = 0xab, 0xcd, 1, 2, [12] = 2 };
	assert_print(format, raw, sizeof(raw), "abcd");
	raw[13] = 0x10;
	assert_print(format, raw, sizeof(raw), NULL);
	ps_format_destroy(format);
}

TEST(format, a_negative_number_is_printed_where_its_own_width_is)
{
	struct ps_format *format = parse(FORMAT(FIELD("int it", 8, 4, 1), "\"%d\", REC->it"));
	const uint8_t raw[12] = { [8] = 0xff, 0xff, 0xff, 0xff };
	assert_print(format, raw, sizeof(raw), "-1");
	ps_format_destroy(format);
}

/** A print format of one number, behind @nr times @piece and before as many @end. */
static void assert_too_deep(const char *piece, const char *end, size_t nr)
{
	char print[9000] = "\"%llu\", ";
	for (size_t i = 0; i < nr; i++)
		strcat(print, piece);
	strcat(print, "1");
	for (size_t i = 0; i < nr; i++)
		strcat(print, end);
	assert_unprintable(FIELD("int it", 8, 4, 1), print);
}

TEST(format, deep_nesting_ends)
{
	assert_too_deep("(", ")", 4000);
	assert_too_deep("-", "", 8000);
	assert_too_deep("- ", "", 100);
	assert_too_deep("(u64)", "", 100);
	assert_too_deep("0 ? 2 : ", "", 100);
}
