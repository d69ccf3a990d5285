// SPDX-License-Identifier: MIT
#include "test.h"

#include "../../src/event/probe_find.h"
#include "../../src/event/probe_tracefs.h"

#include <inttypes.h>

static void assert_arguments(const char *args, unsigned int machine, const char *expected)
{
	char *text;
	ASSERT_OK(ps_usdt_arguments(args, NULL, machine, &text));
	ASSERT_STR_EQ(text, expected);
	free(text);
}

TEST(probe, usdt_arguments_of_x86_become_fetch_arguments)
{
	assert_arguments("", EM_X86_64, "");
	assert_arguments("-4@%edi 8@-8(%rbp)", EM_X86_64, "arg1=%di:s32 arg2=-8(%bp):u64");
	assert_arguments(
		"8@%rax 1@%al 2@%ax 1@%dil -1@%r10b 4@%r8d", EM_X86_64,
		"arg1=%ax:u64 arg2=%ax:u8 arg3=%ax:u16 arg4=%di:u8 arg5=%r10:s8 arg6=%r8:u32");
	assert_arguments("8@(%rsp) -4@112(%rsp) 8@0x10(%r15)", EM_X86_64,
			 "arg1=+0(%sp):u64 arg2=+112(%sp):s32 arg3=+16(%r15):u64");
	assert_arguments("-4@$-7 8@$0x5", EM_X86_64, "arg1=\\-7:s32 arg2=\\0x5:u64");
	assert_arguments("%rbx", EM_X86_64, "arg1=%bx:u64");
}

TEST(probe, usdt_arguments_that_cannot_be_fetched_are_left_out)
{
	assert_arguments("8f@%xmm0 4@%esi", EM_X86_64, "arg2=%si:u32");
	assert_arguments("4@table+4(%rip) 8@8(%rax,%rbx,4) 1@%ah", EM_X86_64, "");
	assert_arguments("8@%rdi", EM_PPC64, "");
}

TEST(probe, usdt_arguments_of_arm64)
{
	assert_arguments(
		"-4@w0 8@x21 8@[sp, 16] 8@[x3] -4@5 8@[x0, x1]", EM_AARCH64,
		"arg1=%x0:s32 arg2=%x21:u64 arg3=+16(%sp):u64 arg4=+0(%x3):u64 arg5=\\5:s32");
}

TEST(probe, own_arguments_of_a_usdt_probe_name_its_operands)
{
	char *text;
	const char *args = "8@%rbp -4@-12(%rbp) 8f@%xmm0";
	ASSERT_OK(ps_usdt_arguments(args, "file=+0($arg1):ustring n=$arg2:s32", EM_X86_64, &text));
	ASSERT_STR_EQ(text, "file=+0(%bp):ustring n=-12(%bp):s32");
	free(text);
	ASSERT_ERROR(ps_usdt_arguments(args, "$arg4", EM_X86_64, &text), PS_ERROR_USAGE,
		     "there is no $arg4: the probe has 3 arguments");
	ASSERT_ERROR(ps_usdt_arguments(args, "$arg3", EM_X86_64, &text), PS_ERROR_UNSUPPORTED,
		     "$arg3 is a float, which the kernel cannot show");
	ASSERT_ERROR(ps_usdt_arguments("8@(%rax,%rbx,4)", "$arg1", EM_X86_64, &text),
		     PS_ERROR_UNSUPPORTED,
		     "$arg1 lies where the kernel cannot fetch it: 8@(%rax,%rbx,4) (it takes one "
		     "register and an offset; ");
	ASSERT_ERROR(
		ps_usdt_arguments("4@%eax 8@counter(%rip)", "$arg2", EM_X86_64, &text),
		PS_ERROR_UNSUPPORTED,
		"$arg2 lies where the kernel cannot fetch it: 8@counter(%rip) (it takes one "
		"register and an offset; a global variable can be named instead, where there is "
		"debug information)");
}

TEST(probe, a_group_of_ours_names_its_process)
{
	int pid;
	unsigned long long start;
	ASSERT_TRUE(ps_probe_group_owner("perfscope_12_345_4026531836", 4026531836, &pid, &start));
	ASSERT_EQ(pid, 12);
	ASSERT_EQ(start, 345);
	static const char *const others[] = {
		"perfscope_12_345_4026531837",	 "perfscope_12_345",
		"perfscope_12_345_4026531836_1", "probes",
		"perfscope_-1_345_4026531836",
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(others); i++)
		ASSERT_FALSE(ps_probe_group_owner(others[i], 4026531836, &pid, &start));
}

static void assert_definition(char *system, struct ps_probe_place place, const char *expected)
{
	struct ps_spec spec = { .system = system };
	char *text = ps_probe_definition(&spec, &place, "g/e", place.path);
	ASSERT_STR_EQ(text, expected);
	free(text);
}

TEST(probe, definitions_are_what_tracefs_takes)
{
	struct ps_probe_place place = { .path = "/bin/x", .offset = 0x1129 };
	assert_definition("uprobe", place, "p:g/e /bin/x:0x1129\n");
	assert_definition("uretprobe", place, "r:g/e /bin/x:0x1129\n");
	place.semaphore = 0x20;
	place.args = "arg1=%di:s32";
	assert_definition("usdt", place, "p:g/e /bin/x:0x1129(0x20) arg1=%di:s32\n");
	place = (struct ps_probe_place){ .symbol = "vfs_read", .offset = 4 };
	assert_definition("kprobe", place, "p:g/e vfs_read+4\n");
	assert_definition("kretprobe", place, "r:g/e vfs_read+4\n");
	place = (struct ps_probe_place){ .offset = 0xffffffff81000000 };
	assert_definition("kprobe", place, "p:g/e 0xffffffff81000000\n");
}

TEST(probe, arguments_of_the_kernel_are_written_as_they_are)
{
	// Names are the kernel's matter: it knows its own variables by BTF, and $argN by the calling convention.
	static const struct {
		char *system, *args;
		const char *expected;
	} cases[] = {
		{ "kprobe", "count=%dx:u64 name=+0(+8(%si)):string",
		  "p:g/e vfs_read+0 count=%dx:u64 name=+0(+8(%si)):string\n" },
		{ "kprobe", "n=$arg3:u64 count", "p:g/e vfs_read+0 n=$arg3:u64 count\n" },
		{ "kprobe", "path=+u0(%x1):ustring n=%x2:s32",
		  "p:g/e vfs_read+0 path=+u0(%x1):ustring n=%x2:s32\n" },
		{ "kretprobe", "ret=$retval:s64 $comm",
		  "r:g/e vfs_read+0 ret=$retval:s64 $comm\n" },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(cases); i++) {
		struct ps_probe_place place = { .symbol = "vfs_read", .args = cases[i].args };
		assert_definition(cases[i].system, place, cases[i].expected);
	}
}

TEST(probe, a_name_of_cxx_matches_mangled_and_demangled)
{
	ASSERT_TRUE(ps_probe_matches("_ZN2ns1fEi", "_ZN2ns1fEi"));
	ASSERT_TRUE(ps_probe_matches("f*", "f1"));
	ASSERT_FALSE(ps_probe_matches("f", "f1"));
	ASSERT_FALSE(ps_probe_matches("f?", "f"));
	ASSERT_TRUE(ps_probe_matches("ns::f(int)", "_ZN2ns1fEi"));
	ASSERT_TRUE(ps_probe_matches("ns::f", "_ZN2ns1fEi"));
	ASSERT_TRUE(ps_probe_matches("ns::*", "_ZN2ns1fEi"));
	ASSERT_FALSE(ps_probe_matches("ns::f(long)", "_ZN2ns1fEi"));
	ASSERT_FALSE(ps_probe_matches("ns", "_ZN2ns1fEi"));
}

TEST(probe, a_template_matches_without_its_arguments)
{
	// int ns::box<long>::f<int>(int)
	const char *name = "_ZN2ns3boxIlE1fIiEEiT_";
	ASSERT_TRUE(ps_probe_matches("int ns::box<long>::f<int>(int)", name));
	ASSERT_TRUE(ps_probe_matches("ns::box::f", name));
	ASSERT_FALSE(ps_probe_matches("ns::box", name));
	ASSERT_FALSE(ps_probe_matches("f", name));
}

TEST(probe, a_name_of_rust_matches_without_its_hash)
{
	const char *name = "_ZN2rs4shop13Cart$LT$T$GT$3sum17h58be473c2b44d1a2E";
	ASSERT_TRUE(ps_probe_matches("rs::shop::Cart<T>::sum", name));
	ASSERT_TRUE(ps_probe_matches("rs::shop::Cart::sum", name));
	ASSERT_TRUE(ps_probe_matches("rs::shop::spin", "_RNvNtCs1234_2rs4shop4spin"));
	ASSERT_FALSE(ps_probe_matches("rs::shop::sum", name));
}

/** Where they are is known here. */
int first_probed(int value);
int second_probed(int value);

__attribute__((noinline, used)) int first_probed(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value;
}

__attribute__((noinline, used)) int second_probed(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value + 1;
}

static struct ps_error *find(const char *text, struct ps_probe_places *ret)
{
	struct ps_spec_list specs = { 0 };
	ASSERT_OK(ps_spec_parse(text, &specs));
	struct ps_error *error = ps_probe_find(&specs.specs[0], ret);
	ps_spec_list_deinit(&specs);
	return error;
}

/** The offset in this program's file of what is mapped at @address. */
static uint64_t offset_of(const void *address)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	uint64_t start, end, offset, at = (uintptr_t)address;
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) ==
			    3 &&
		    at >= start && at < end) {
			fclose(maps);
			return at - start + offset;
		}
	}
	fail();
	return 0;
}

TEST(probe, a_function_is_found_where_it_is_mapped_from)
{
	struct ps_probe_places places;
	ASSERT_OK(find("uprobe:first_probed@/proc/self/exe n=%di", &places));
	ASSERT_EQ(places.nr_places, 1);
	ASSERT_STR_EQ(places.places[0].name, "first_probed");
	ASSERT_STR_EQ(places.places[0].path, "/proc/self/exe");
	ASSERT_STR_EQ(places.places[0].args, "n=%di");
	ASSERT_EQ(places.places[0].offset, offset_of(first_probed));
	ASSERT_EQ(places.places[0].semaphore, 0);
	ps_probe_places_deinit(&places);
	ASSERT_OK(find("uretprobe:*_probed@/proc/self/exe", &places));
	ASSERT_EQ(places.nr_places, 2);
	ASSERT_STR_EQ(places.places[1].name, "second_probed");
	ASSERT_EQ(places.places[1].offset, offset_of(second_probed));
	ps_probe_places_deinit(&places);
}

TEST(probe, an_offset_is_counted_from_the_function)
{
	struct ps_probe_places places;
	ASSERT_OK(find("uprobe:first_probed+0x2@/proc/self/exe", &places));
	ASSERT_STR_EQ(places.places[0].name, "first_probed+0x2");
	ASSERT_EQ(places.places[0].offset, offset_of(first_probed) + 2);
	ps_probe_places_deinit(&places);
	ASSERT_ERROR(find("uprobe:first_probed+9999@/proc/self/exe", &places), PS_ERROR_USAGE,
		     "first_probed: +9999 lies beyond its end");
}

TEST(probe, what_is_not_there_is_told_with_the_nearest)
{
	struct ps_probe_places places;
	ASSERT_ERROR(find("uprobe:first_probe@/proc/self/exe", &places), PS_ERROR_NOT_FOUND,
		     "has no function first_probe; did you mean first_probed?");
	ASSERT_ERROR(find("uretprobe:first_probed+2@/proc/self/exe", &places), PS_ERROR_USAGE,
		     "a return is of a whole function: leave out the offset");
	ASSERT_ERROR(find("uprobe:0x1@/proc/self/exe", &places), PS_ERROR_NOT_FOUND,
		     "has no code at 0x1");
	ASSERT_ERROR(find("usdt:a:b@/proc/self/exe", &places), PS_ERROR_NOT_FOUND,
		     "has no usdt probe a:b");
	ASSERT_ERROR(find("uprobe:f@/nowhere", &places), PS_ERROR_NOT_FOUND, "/nowhere");
	ASSERT_ERROR(find("uprobe:f@/etc/passwd", &places), PS_ERROR_BAD_DATA,
		     "/etc/passwd: not an ELF program or library");
	ASSERT_ERROR(find("uprobe:f@/tmp", &places), PS_ERROR_BAD_DATA, "/tmp: not an ELF");
	ASSERT_ERROR(find("uprobe:f@/bin/x//alias=y/", &places), PS_ERROR_NOT_FOUND,
		     "FILE stands in quotes where a filter or attributes follow");
	ASSERT_ERROR(find("uprobe:f@no-such-program", &places), PS_ERROR_NOT_FOUND,
		     "no such program in PATH");
}

TEST(probe, a_bare_name_is_searched_in_path_and_libraries)
{
	char *path;
	setenv("PATH", "/nonexistent:/usr/bin:/bin", 1);
	ASSERT_OK(ps_probe_file_path("env", &path));
	ASSERT_STR_EQ(path, "/usr/bin/env");
	free(path);
	ASSERT_OK(ps_probe_file_path("libc.so.6", &path));
	ASSERT_NOT_NULL(strstr(path, "/libc.so.6"));
	free(path);
	ASSERT_OK(ps_probe_file_path("/proc/1/root/x", &path));
	ASSERT_STR_EQ(path, "/proc/1/root/x");
	free(path);
}
