// SPDX-License-Identifier: MIT
#include "test.h"
#include "symbol_programs.h"

#include <signal.h>
#include <sys/auxv.h>
#include <sys/wait.h>

#define BASE UINT64_C(0x7f0000400000)

static const char c_program[] = "#include <stdlib.h>\n"
				"#include <unistd.h>\n"
				"volatile int sink;\n"
				"static inline __attribute__((always_inline)) void inner(int n)\n"
				"{\n"
				"	sink += n;\n"
				"}\n"
				"static inline __attribute__((always_inline)) void middle(int n)\n"
				"{\n"
				"	inner(n + 1);\n"
				"	sink++;\n"
				"}\n"
				"__attribute__((noinline)) void outer(int n)\n"
				"{\n"
				"	for (int i = 0; i < n; i++)\n"
				"		middle(i);\n"
				"}\n"
				"static __attribute__((noinline)) void local(int n)\n"
				"{\n"
				"	outer(n);\n"
				"	sink = getppid();\n"
				"}\n"
				"__attribute__((noinline)) void stop(void)\n"
				"{\n"
				"	abort();\n"
				"}\n"
				"int main(int argc, char **argv)\n"
				"{\n"
				"	local(argc);\n"
				"	if (argc > 99)\n"
				"		stop();\n"
				"	if (argc > 1)\n"
				"		pause();\n"
				"	return 0;\n"
				"}\n";

static void build_c(const char *name, const char *options)
{
	write_file("program.c", c_program);
	run("gcc -g %s -o %s program.c", options, name);
}

/** The same text as show(), by addr2line, without "prog!" and offsets. */
static void ask_addr2line(FILE *pipe, char *ret)
{
	char line[512], place[512];
	size_t at = 0;
	// "0xaddress", then name and place in turn, until the next address.
	while (fgets(line, sizeof(line), pipe) && strncmp(line, "0x", 2)) {
		ASSERT_NOT_NULL(fgets(place, sizeof(place), pipe));
		line[strcspn(line, "\n")] = 0;
		place[strcspn(place, " \n")] = 0;
		at += sprintf(ret + at, "%s%s %s", at ? "<" : "", line, place);
	}
}

static const char *without_offsets(const char *text)
{
	static char shown[8192];
	char *to = shown;
	for (text = strchr(text, '!') + 1; *text; text++) {
		// addr2line does not tell the cold parts of functions apart.
		if (!strncmp(text, ".cold", 5))
			text += 5;
		if (*text == '+')
			text += 1 + strspn(text + 1, "0123456789abcdef");
		if (!*text)
			break;
		*to++ = *text;
	}
	*to = 0;
	return shown;
}

/** Compare each byte of the functions of the program with what addr2line says. */
static void compare_with_addr2line(const char *name, uint64_t base)
{
	static const char *const functions[] = { "main", "outer", "local", "stop" };
	struct view view = view_of(true);
	load_at(view.maps, NOBODY, name, base);
	for (size_t i = 0; i < PS_ARRAY_SIZE(functions); i++) {
		uint64_t start = nm(name, functions[i]);
		char command[PATH_MAX + 256], line[64];
		snprintf(command, sizeof(command),
			 "seq %ju %ju | xargs printf '0x%%x ' | xargs addr2line -aifse %s",
			 (uintmax_t)start, (uintmax_t)start + 10, path_of(name));
		FILE *pipe = popen(command, "r");
		ASSERT_NOT_NULL(fgets(line, sizeof(line), pipe));
		for (uint64_t address = start; address <= start + 10; address++) {
			char expected[8192] = "";
			ask_addr2line(pipe, expected);
			ASSERT_STR_EQ(without_offsets(show(&view, NOBODY, base + address, 0)),
				      expected);
		}
		pclose(pipe);
	}
	view_end(&view);
}

TEST(symbol, inlined_frames_and_lines_are_what_addr2line_says)
{
	build_c("pie", "-O2 -pie -fPIE");
	compare_with_addr2line("pie", BASE);
	build_c("no-pie", "-O2 -no-pie -fno-PIE");
	compare_with_addr2line("no-pie", 0);
	build_c("unoptimised", "-O0");
	compare_with_addr2line("unoptimised", BASE);
	build_c("dwarf4", "-O2 -gdwarf-4 -gz");
	compare_with_addr2line("dwarf4", BASE);
}

TEST(symbol, inlined_frames_are_what_was_written)
{
	build_c("pie", "-O2 -pie -fPIE");
	struct view view = view_of(true);
	load_at(view.maps, NOBODY, "pie", BASE);
	uint64_t outer = nm("pie", "outer");
	bool is_inner = false, is_middle = false, is_outer = false;
	for (uint64_t at = outer; at < outer + 64; at++) {
		const char *text = without_offsets(show(&view, NOBODY, BASE + at, 0));
		is_inner |=
			!strcmp(text, "inner program.c:6<middle program.c:10<outer program.c:16");
		is_middle |= !strcmp(text, "middle program.c:11<outer program.c:16");
		is_outer |= !strcmp(text, "outer program.c:15");
	}
	ASSERT_TRUE(is_inner);
	ASSERT_TRUE(is_middle);
	ASSERT_TRUE(is_outer);
	view_end(&view);
}

TEST(symbol, a_return_address_is_of_the_call_before_it)
{
	build_c("stops", "-O2 -fno-stack-protector");
	struct view view = view_of(false);
	load_at(view.maps, NOBODY, "stops", BASE);
	// stop() ends with its call of abort(): where that returns to is the next function.
	uint64_t end = nm("stops", "stop");
	while (strstr(show(&view, NOBODY, BASE + end, 0), "!stop+"))
		end++;
	char expected[64];
	sprintf(expected, "stops!stop+%jx", (uintmax_t)(end - nm("stops", "stop")));
	ASSERT_STR_EQ(show(&view, NOBODY, BASE + end, PS_ADDRESS_RETURN), expected);
	ASSERT_NULL(strstr(show(&view, NOBODY, BASE + end, 0), "!stop+"));
	ASSERT_STR_EQ(show(&view, NOBODY, BASE + end, PS_ADDRESS_RETURN), expected);
	view_end(&view);
}

TEST(symbol, calls_of_other_files_have_the_name_of_their_plt_entry)
{
	static const char *const options[] = { "-O2 -Wl,-z,lazy",
					       "-O2 -Wl,-z,now -fcf-protection=none",
					       "-O2 -no-pie -Wl,-z,lazy -fcf-protection=none",
					       "-O2 -Wl,-z,ibtplt -Wl,-z,lazy" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(options); i++) {
		build_c("plt", options[i]);
		// objdump names the entries too.
		char command[PATH_MAX + 64];
		snprintf(command, sizeof(command),
			 "objdump -d %s | grep '^[0-9a-f]* <getppid@plt>:'", path_of("plt"));
		FILE *pipe = popen(command, "r");
		unsigned long address;
		ASSERT_EQ(fscanf(pipe, "%lx", &address), 1);
		pclose(pipe);
		struct view view = view_of(false);
		uint64_t base = strstr(options[i], "no-pie") ? 0 : BASE;
		load_at(view.maps, NOBODY, "plt", base);
		ASSERT_STR_EQ(show(&view, NOBODY, base + address, 0), "plt!getppid@plt+0");
		ASSERT_STR_EQ(show(&view, NOBODY, base + address + 6, 0), "plt!getppid@plt+6");
		view_end(&view);
	}
}

TEST(symbol, names_of_cxx_are_as_they_were_written)
{
	write_file(
		"names.cc",
		"namespace ns {\n"
		"template <typename T> struct box {\n"
		"	__attribute__((noinline)) int get(T value, const char *);\n"
		"};\n"
		"template <typename T> int box<T>::get(T value, const char *) { return value; }\n"
		"template struct box<unsigned>;\n"
		"}\n"
		"extern \"C\" int plain() { return 1; }\n");
	run("g++ -O2 -shared -fPIC -o libnames.so names.cc");
	struct view view = view_of(false);
	load_at(view.maps, NOBODY, "libnames.so", BASE);
	uint64_t get = nm("libnames.so", "_ZN2ns3boxIjE3getEjPKc");
	ASSERT_STR_EQ(show(&view, NOBODY, BASE + get, 0),
		      "libnames.so!ns::box<unsigned int>::get(unsigned int, char const*)+0");
	ASSERT_STR_EQ(show(&view, NOBODY, BASE + nm("libnames.so", "plain"), 0),
		      "libnames.so!plain+0");
	view_end(&view);
}

TEST(symbol, names_of_rust_are_as_they_were_written)
{
	write_file("rust.s", ".text\n"
			     ".globl _ZN4core3fmt5Write9write_fmt17h0123456789abcdefE\n"
			     ".type _ZN4core3fmt5Write9write_fmt17h0123456789abcdefE,@function\n"
			     "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE: ret\n"
			     ".globl _RNvCs15kBYyAo9fc_7mycrate7example\n"
			     ".type _RNvCs15kBYyAo9fc_7mycrate7example,@function\n"
			     "_RNvCs15kBYyAo9fc_7mycrate7example: ret\n"
			     ".section .note.GNU-stack\n");
	run("gcc -shared -o librust.so rust.s");
	struct view view = view_of(false);
	load_at(view.maps, NOBODY, "librust.so", BASE);
	uint64_t foo = nm("librust.so", "_RNvCs15kBYyAo9fc_7mycrate7example");
	ASSERT_STR_EQ(show(&view, NOBODY, BASE + foo - 1, 0),
		      "librust.so!core::fmt::Write::write_fmt+0");
	ASSERT_STR_EQ(show(&view, NOBODY, BASE + foo, 0), "librust.so!mycrate::example+0");
	view_end(&view);
}

TEST(symbol, of_names_of_one_address_the_global_one_with_fewest_underscores_is_shown)
{
	write_file("alias.s", ".text\n"
			      ".type local_alias_with_a_long_name,@function\n"
			      "local_alias_with_a_long_name:\n"
			      ".globl __global\n.type __global,@function\n__global:\n"
			      ".globl global\n.type global,@function\nglobal:\n"
			      ".weak weak_name\n.type weak_name,@function\nweak_name: ret\n"
			      ".section .note.GNU-stack\n");
	run("gcc -shared -o libalias.so alias.s");
	struct view view = view_of(false);
	load_at(view.maps, NOBODY, "libalias.so", BASE);
	ASSERT_STR_EQ(show(&view, NOBODY, BASE + nm("libalias.so", "global"), 0),
		      "libalias.so!global+0");
	view_end(&view);
}

static void expect_local(const char *name, uint64_t address, bool has_symbol)
{
	struct view view = view_of(true);
	load_at(view.maps, NOBODY, name, BASE);
	char expected[64];
	snprintf(expected, sizeof(expected), has_symbol ? "%s!local+0 program.c:19" : "%s!?+0",
		 name);
	ASSERT_STR_EQ(show(&view, NOBODY, BASE + address, 0), expected);
	view_end(&view);
}

TEST(symbol, a_stripped_file_is_read_with_its_debug_file_by_build_id)
{
	build_c("whole", "-O2 -Wl,--build-id=0xabcdef0123456789abcdef0123456789abcdef01");
	uint64_t local = nm("whole", "local");
	run("strip -o stripped whole && mkdir -p debug/.build-id/ab");
	expect_local("stripped", local, false);
	run("objcopy --only-keep-debug whole "
	    "debug/.build-id/ab/cdef0123456789abcdef0123456789abcdef01.debug");
	expect_local("stripped", local, true);
	build_c("other", "-O2 -Wl,--build-id=0xbb");
	run("cp other debug/.build-id/ab/cdef0123456789abcdef0123456789abcdef01.debug");
	expect_local("stripped", local, false);
	run("rm -r debug");
}

TEST(symbol, a_stripped_file_is_read_with_its_debug_file_by_debuglink)
{
	build_c("whole", "-O2 -Wl,--build-id=none");
	uint64_t local = nm("whole", "local");
	run("objcopy --only-keep-debug whole linked.debug");
	run("strip -o linked whole && objcopy --add-gnu-debuglink=linked.debug linked");
	expect_local("linked", local, true);
	run("mkdir .debug && mv linked.debug .debug");
	expect_local("linked", local, true);
	run("mkdir -p debug%s && mv .debug/linked.debug debug%s", folder, folder);
	expect_local("linked", local, true);
	run("printf x >>debug%s/linked.debug", folder);
	expect_local("linked", local, false);
	run("rm -r debug");
}

/** Start the program @name, which waits; returns once it does. */
static pid_t start(const char *name)
{
	pid_t pid = fork();
	if (!pid) {
		execl(path_of(name), name, "wait", NULL);
		_exit(127);
	}
	char path[64], text[256] = "";
	snprintf(path, sizeof(path), "/proc/%d/wchan", pid);
	for (int i = 0; i < 5000 && !strstr(text, "pause"); i++) {
		usleep(1000);
		char syscall_path[64];
		snprintf(syscall_path, sizeof(syscall_path), "/proc/%d/syscall", pid);
		FILE *file = fopen(syscall_path, "r");
		// pause() is 34 on x86-64; ppoll-based elsewhere.
		if (file && fgets(text, sizeof(text), file) && !strncmp(text, "34 ", 3))
			strcpy(text, "pause");
		if (file)
			fclose(file);
	}
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/** Where the code of @name lies in @pid, less the address in the file. */
static uint64_t bias_of(pid_t pid, const char *name)
{
	char path[64], line[PATH_MAX + 128];
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *file = fopen(path, "r");
	unsigned long start, offset;
	while (fgets(line, sizeof(line), file)) {
		char text[PATH_MAX] = "";
		if (sscanf(line, "%lx-%*x %*s %lx %*s %*s %4000s", &start, &offset, text) == 3 &&
		    !strcmp(text, path_of(name)) && !offset) {
			fclose(file);
			return start;
		}
	}
	fail_msg("%s is not mapped", name);
	return 0;
}

TEST(symbol, a_running_program_that_ended_before_is_still_resolved)
{
	build_c("runs", "-O2");
	struct view view = view_of(true);
	pid_t pid = start("runs");
	uint64_t address = bias_of(pid, "runs") + nm("runs", "local");
	ASSERT_TRUE(ps_maps_snapshot_pid(view.maps, pid));
	stop(pid);
	follow_exit(view.maps, pid);
	ASSERT_STR_EQ(show(&view, pid, address, 0), "runs!local+0 program.c:19");
	view_end(&view);
}

TEST(symbol, a_deleted_program_is_read_as_long_as_it_runs)
{
	if (geteuid())
		SKIP("/proc/PID/map_files needs root");
	build_c("deleted", "-O2");
	uint64_t local = nm("deleted", "local");
	struct view view = view_of(true), later = view_of(true), cut = view_of(true);
	pid_t pid = start("deleted");
	uint64_t base = bias_of(pid, "deleted"), address = base + local;
	// As when a part of it got other rights since.
	struct mmap2 record = mmap2(pid, base + 0x1000, 0x20000, 0x1000, path_of("deleted"));
	struct stat stat_old;
	ASSERT_EQ(stat(path_of("deleted"), &stat_old), 0);
	record.inode = stat_old.st_ino;
	ps_maps_follow(cut.maps, &record.header, 0);
	run("rm deleted");
	ASSERT_STR_EQ(show(&cut, pid, address, 0), "deleted!local+0 program.c:19");
	view_end(&cut);
	ASSERT_TRUE(ps_maps_snapshot_pid(view.maps, pid));
	ASSERT_TRUE(ps_maps_snapshot_pid(later.maps, pid));
	ASSERT_STR_EQ(show(&view, pid, address, 0), "deleted!local+0 program.c:19");
	stop(pid);
	ASSERT_STR_EQ(show(&later, pid, address, 0), "deleted [deleted]!?+0");
	view_end(&view);
	view_end(&later);
}

TEST(symbol, a_file_that_was_replaced_gives_no_symbols)
{
	build_c("replaced", "-O2");
	build_c("new", "-O0");
	struct view view = view_of(true);
	load_at(view.maps, NOBODY, "replaced", BASE);
	struct stat stat_old;
	ASSERT_EQ(stat(path_of("replaced"), &stat_old), 0);
	uint64_t main_address = nm("replaced", "main");
	run("mv new replaced");
	ASSERT_STR_EQ(show(&view, NOBODY, BASE + main_address, 0), "replaced [deleted]!?+0");
	view_end(&view);
}

TEST(symbol, a_file_that_was_written_over_gives_no_symbols)
{
	build_c("written", "-O2");
	struct view view = view_of(false);
	load_at(view.maps, NOBODY, "written", BASE);
	uint64_t main_address = nm("written", "main");
	run("sleep 0.02; cp written copy; cat copy >written");
	ASSERT_STR_EQ(show(&view, NOBODY, BASE + main_address, 0), "written [deleted]!?+0");
	view_end(&view);
}

TEST(symbol, a_file_of_another_build_gives_no_symbols)
{
	build_c("build", "-O2 -Wl,--build-id=0xabcdef0123");
	struct view view = view_of(false);
	ps_maps_believe_build_ids(view.maps);
	struct mmap2 record = mmap2(NOBODY, BASE, 0x10000, 0x1000, path_of("build"));
	record.header.misc = PERF_RECORD_MISC_MMAP_BUILD_ID;
	record.inode = record.generation = 0;
	record.build_id_size = 5;
	memcpy(record.build_id, "\xab\xcd\xef\x01\x23", 5);
	ps_maps_follow(view.maps, &record.header, 0);
	uint64_t in_map = nm("build", "local") - 0x1000;
	ASSERT_STR_EQ(show(&view, NOBODY, BASE + in_map, 0), "build!local+0");
	record.pid = record.tid = NOBODY + 1;
	record.build_id[4]++;
	ps_maps_follow(view.maps, &record.header, 0);
	ASSERT_STR_EQ(show(&view, NOBODY + 1, BASE + in_map, 0), "build [deleted]!?+0");
	view_end(&view);
}

TEST(symbol, files_that_are_no_programs_and_pipes_have_no_symbols)
{
	write_file("text", "no program");
	run("mkfifo pipe");
	struct view view = view_of(true);
	follow_mmap2(view.maps, NOBODY, 0x1000, 0x1000, 0, path_of("text"));
	follow_mmap2(view.maps, NOBODY, 0x2000, 0x1000, 0, path_of("pipe"));
	follow_mmap2(view.maps, NOBODY, 0x3000, 0x1000, 0, "/");
	follow_mmap2(view.maps, NOBODY, 0x4000, 0x1000, 0, "[uprobes]");
	ASSERT_STR_EQ(show(&view, NOBODY, 0x1000, 0), "text!?+0");
	ASSERT_STR_EQ(show(&view, NOBODY, 0x2000, 0), "pipe [deleted]!?+0");
	ASSERT_STR_EQ(show(&view, NOBODY, 0x4000, 0), "[uprobes]!?+0");
	ASSERT_STR_EQ(show(&view, NOBODY, 0x5000, 0), "-!?+0");
	view_end(&view);
}

TEST(symbol, the_vdso_has_the_names_that_it_has_in_this_process)
{
	char *image = (char *)getauxval(AT_SYSINFO_EHDR);
	if (!image)
		SKIP("this kernel has no vdso");
	write_file("vdso", "");
	int fd = open(path_of("vdso"), O_WRONLY);
	ASSERT_EQ(write(fd, image, 4096), 4096);
	(void)!write(fd, image + 4096, 4096);
	close(fd);
	struct view view = view_of(false);
	const char *name = "__vdso_getcpu@@LINUX_2.6";
	uint64_t address = (uintptr_t)image + nm("vdso", name);
	const char *text = show(&view, getpid(), address, 0);
	// It also goes by a name without underscores, which is weak.
	ASSERT_STR_EQ(text, "[vdso]!__vdso_getcpu+0");
	view_end(&view);
}

TEST(symbol, a_kernel_symbol_is_what_kallsyms_says)
{
	unsigned long address = 0;
	char name[256], letter;
	FILE *file = fopen("/proc/kallsyms", "r");
	while (file && fscanf(file, "%lx %c %255s%*[^\n]", &address, &letter, name) == 3 &&
	       strcmp(name, "vfs_read"))
		;
	if (file)
		fclose(file);
	if (!address || strcmp(name, "vfs_read"))
		SKIP("/proc/kallsyms hides the addresses");
	struct view view = view_of(true);
	ASSERT_OK(ps_symbolizer_load_kernel(view.symbolizer));
	struct ps_frame frame;
	ASSERT_EQ(ps_symbolize(view.symbolizer, 0, address + 5, PS_ADDRESS_KERNEL, &frame, 1), 1);
	ASSERT_STR_EQ(frame.symbol, "vfs_read");
	ASSERT_STR_EQ(frame.dso, "[kernel.kallsyms]");
	ASSERT_EQ(frame.offset, 5);
	ASSERT_TRUE(frame.is_kernel);
	ASSERT_NULL(frame.line);
	view_end(&view);
}

TEST(symbol, the_cache_has_a_bound_and_what_went_is_found_again)
{
	build_c("cached", "-O2");
	struct view view = view_of(false);
	load_at(view.maps, NOBODY, "cached", BASE);
	uint64_t local = nm("cached", "local");
	follow_mmap2(view.maps, NOBODY, 0x10000000, 0x10000000, 0, path_of("cached"));
	struct ps_frame frame;
	for (uint64_t i = 0; i < 4 * PS_SYMBOL_CACHE_SIZE; i++)
		ps_symbolize(view.symbolizer, NOBODY, 0x10000000 + i * 16, 0, &frame, 1);
	size_t nr = ps_symbolizer_nr_cached(view.symbolizer);
	ASSERT_TRUE(nr > PS_SYMBOL_CACHE_SIZE / 2);
	ASSERT_TRUE(nr <= PS_SYMBOL_CACHE_SIZE);
	ASSERT_STR_EQ(show(&view, NOBODY, BASE + local, 0), "cached!local+0");
	view_end(&view);
	ps_symbolizer_destroy(NULL);
}

TEST(symbol, at_most_as_many_frames_as_asked_for)
{
	build_c("pie", "-O2 -pie -fPIE");
	struct view view = view_of(true);
	load_at(view.maps, NOBODY, "pie", BASE);
	for (uint64_t at = nm("pie", "outer"), end = at + 64; at < end; at++) {
		struct ps_frame frames[2] = { {}, { .line = "untouched" } };
		ASSERT_EQ(ps_symbolize(view.symbolizer, NOBODY, BASE + at, 0, frames, 1), 1);
		ASSERT_STR_EQ(frames[1].line, "untouched");
	}
	view_end(&view);
}
