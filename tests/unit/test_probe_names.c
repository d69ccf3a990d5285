// SPDX-License-Identifier: MIT
#include "test.h"

#include "../../src/event/probe_dwarf.h"
#include "programs.h"

static const char source[] =
	"struct pair { short left; unsigned a : 3, b : 7; long values[2]; };\n"
	"int counter[3] = { 1, 2, 3 };\n"
	"int f(int n, const char *text, struct pair *pair, double x, _Bool last)\n"
	"{ return n + *text + pair->left + (int)x + last + counter[0]; }\n"
	"struct pair g(int hidden) { struct pair pair = { hidden }; return pair; }\n"
	"int main(void) { return 0; }\n";

/** Translate @args where f() begins in the program @name. */
static struct ps_error *translate(const char *name, const char *function, uint64_t offset,
				  const char *args, char **ret)
{
	struct ps_elf elf;
	struct ps_dwarf dwarf;
	struct ps_scope scope;
	ASSERT_OK(ps_elf_open(path_of(name), &elf));
	ASSERT_TRUE(ps_dwarf_open(&elf, &dwarf));
	ASSERT_TRUE(ps_scope_at(&dwarf, nm(name, function) + offset, &scope));
	struct ps_error *error = ps_arguments_translate(&dwarf, &scope, args, ret);
	ps_dwarf_close(&dwarf);
	ps_elf_close(&elf);
	return error;
}

static void assert_text(const char *name, const char *args, const char *expected)
{
	char *text;
	ASSERT_OK(translate(name, "f", 0, args, &text));
	ASSERT_STR_EQ(text, expected);
	free(text);
}

static void compile(const char *compiler, const char *name)
{
	write_file("source.c", source);
	run("%s -g -O0 -no-pie -o %s source.c", compiler, name);
}

TEST(probe_names, become_registers_and_memory_of_x86)
{
	if (system("gcc -dumpmachine | grep -q x86_64"))
		SKIP("another processor");
	compile("gcc", "x86");
	assert_text("x86", "n text pair last",
		    "n=%di:s32 text=+0(%si):ustring pair=%dx:x64 last=%cx:u8");
	assert_text("x86", "pair->left c=pair->b pair->a",
		    "left=+0(%dx):s16 c=+0(%dx):b7@19/32 a=+0(%dx):b3@16/32");
	assert_text("x86", "pair->values pair->values[1]",
		    "values=+8(%dx):s64[2] pair_values_1=+16(%dx):s64");
	assert_text("x86", "t=text:string p=text:x64 n:u8", "t=+0(%si):string p=%si:x64 n=%di:u8");
	assert_text("x86", "%ax n x=+8(%sp):u8 $arg7", "%ax n=%di:s32 x=+8(%sp):u8 arg7=+8(%sp)");
}

TEST(probe_names, become_registers_and_memory_of_arm64)
{
	if (system("aarch64-linux-gnu-gcc --version >/dev/null 2>&1"))
		SKIP("no compiler for arm64 here");
	compile("aarch64-linux-gnu-gcc", "arm");
	assert_text("arm", "n text pair last $arg8",
		    "n=%x0:s32 text=+0(%x1):ustring pair=%x2:x64 last=%x3:u8 arg8=%x7");
	assert_text("arm", "pair->left b=pair->b pair->values[1]",
		    "left=+0(%x2):s16 b=+0(%x2):b7@19/32 values=+16(%x2):s64");
	char *text;
	ASSERT_ERROR(translate("arm", "f", 0, "$arg9", &text), PS_ERROR_USAGE, "there is no $arg9");
}

TEST(probe_names, of_globals_are_counted_from_the_place)
{
	compile("gcc", "static");
	char expected[64];
	// Where code and data are loaded is what the kernel adds: the same for both.
	uint64_t code = nm("static", "f"), in_file;
	struct ps_elf elf;
	ASSERT_OK(ps_elf_open(path_of("static"), &elf));
	ASSERT_TRUE(ps_elf_code_offset(&elf, code, &in_file));
	ps_elf_close(&elf);
	uint64_t counter = nm("static", "counter") - (code - in_file);
	snprintf(expected, sizeof(expected), "counter=@+0x%lx:s32", (long)counter + 8);
	assert_text("static", "counter[2]", expected);
}

TEST(probe_names, that_are_not_sure_are_refused)
{
	compile("gcc", "refused");
	char *text;
	// The place of the result takes the first register.
	ASSERT_ERROR(
		translate("refused", "g", 0, "hidden", &text), PS_ERROR_UNSUPPORTED,
		"hidden: it has no place yet where the function begins (all are known from +0x");
	ASSERT_ERROR(translate("refused", "f", 1, "n", &text), PS_ERROR_UNSUPPORTED,
		     "n: it has no place yet where the function begins");
	ASSERT_ERROR(translate("refused", "f", 1, "$arg1", &text), PS_ERROR_USAGE,
		     "$arg1 is known where the function begins only");
	ASSERT_ERROR(
		translate("refused", "f", 0, "x", &text), PS_ERROR_UNSUPPORTED,
		"x: it is a float, which the kernel cannot show; there are n, text, pair, last");
	ASSERT_ERROR(translate("refused", "f", 0, "y", &text), PS_ERROR_NOT_FOUND,
		     "y: no variable of this name is there; there are n, text, pair, last");
	ASSERT_ERROR(translate("refused", "f", 0, "pair->", &text), PS_ERROR_NOT_FOUND,
		     "struct pair has no member ; there are left, a, b, values");
}

TEST(probe_names, elements_beyond_all_memory_are_refused)
{
	compile("gcc", "element");
	static const char *const args[] = {
		"text[18446744073709551615]",
		"text[99999999999999999999999]",
		"pair[1152921504606846976].left",
		"pair[0xaaaaaaaaaaaaaaa].left",
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(args); i++) {
		char *text;
		ASSERT_ERROR(translate("element", "f", 0, args[i], &text), PS_ERROR_USAGE,
			     "lies beyond all memory");
	}
	char *text;
	ASSERT_OK(translate("element", "f", 0, "n=pair[0x1000000000].left", &text));
	free(text);
}

TEST(probe_names, what_only_begins_as_the_returned_value_is_refused)
{
	static const char *const args[] = { "$retvalue", "n=%ax again=+0($retval1):u8" };
	static const char *const reasons[] = { "there is no $retvalue; nearest: $retval",
					       "there is no $retval1; nearest: $retval" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(args); i++)
		ASSERT_ERROR(ps_arguments_vet(args[i]), PS_ERROR_USAGE, reasons[i]);
	ASSERT_OK(ps_arguments_vet("$retval n=$retval:u8 $retval->id t=\\\"$retvalue\" $comm"));
}
