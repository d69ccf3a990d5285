// SPDX-License-Identifier: MIT
#include "test.h"
#include "symbol_programs.h"

#include <signal.h>
#include <sys/wait.h>

// Longer than the period in which a map is not looked at again.
#define PAUSE_US 250000

static void *map_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
}

static FILE *open_map_of(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	return fopen(path, "w");
}

static void remove_map_of(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
}

TEST(symbol, code_made_at_run_time_has_the_name_that_was_told_last)
{
	struct view view = view_of(false);
	void *code = map_code();
	uint64_t at = (uintptr_t)code;
	ASSERT_STR_EQ(show(&view, getpid(), at + 1, 0), "//anon!?+0");
	FILE *file = open_map_of(getpid());
	fprintf(file, "%lx 10 first version\n%lx 20 py::second:<string>\nnonsense\n%lx 8 half", at,
		at + 16, at + 64);
	fflush(file);
	usleep(PAUSE_US);
	ASSERT_STR_EQ(show(&view, getpid(), at + 1, 0), "[perf map]!first version+1");
	ASSERT_STR_EQ(show(&view, getpid(), at + 16, PS_ADDRESS_RETURN),
		      "[perf map]!first version+10");
	ASSERT_STR_EQ(show(&view, getpid(), at + 16, 0), "[perf map]!py::second:<string>+0");
	ASSERT_STR_EQ(show(&view, getpid(), at + 48, 0), "//anon!?+0");
	ASSERT_STR_EQ(show(&view, getpid(), at + 64, 0), "//anon!?+0");
	fprintf(file, " and whole\n0x%lx 0x8 newer\n", at);
	fclose(file);
	usleep(PAUSE_US);
	ASSERT_STR_EQ(show(&view, getpid(), at + 1, 0), "[perf map]!newer+1");
	ASSERT_STR_EQ(show(&view, getpid(), at + 8, 0), "[perf map]!first version+8");
	ASSERT_STR_EQ(show(&view, getpid(), at + 64, 0), "[perf map]!half and whole+0");
	remove_map_of(getpid());
	munmap(code, 4096);
	view_end(&view);
}

TEST(symbol, names_that_come_between_those_known_already_are_found)
{
	struct view view = view_of(false);
	void *code = map_code();
	uint64_t at = (uintptr_t)code;
	FILE *file = open_map_of(getpid());
	// The odd ones, the even ones from the last to the first, and one of the odd ones once more.
	for (int i = 1; i < 64; i += 2)
		fprintf(file, "%lx 10 f%d\n", at + 16 * i, i);
	fflush(file);
	ASSERT_STR_EQ(show(&view, getpid(), at + 16 * 9, 0), "[perf map]!f9+0");
	for (int i = 62; i >= 0; i -= 2)
		fprintf(file, "0X%lX\t10  f%d\n", at + 16 * i, i);
	fprintf(file, "%lx 10 again\n%lx 10x no\n%lx\nx 10 no\n%lx 10\n", at + 16 * 9, at, at, at);
	fclose(file);
	usleep(PAUSE_US);
	for (int i = 0; i < 64; i++) {
		char name[64];
		snprintf(name, sizeof(name), i == 9 ? "[perf map]!again+3" : "[perf map]!f%d+3", i);
		ASSERT_STR_EQ(show(&view, getpid(), at + 16 * i + 3, 0), name);
	}
	remove_map_of(getpid());
	munmap(code, 4096);
	view_end(&view);
}

TEST(symbol, lines_of_a_perf_map_may_begin_with_blanks_and_numbers_with_zeros)
{
	struct view view = view_of(false);
	void *code = map_code();
	uint64_t at = (uintptr_t)code;
	FILE *file = open_map_of(getpid());
	fprintf(file, "  %lx 10 blanks\n\t%lx 10 tab\n", at, at + 16);
	fprintf(file, "%024lx %020x zeros\n", at + 32, 16);
	// Seventeen digits are no address; cut to sixteen, these would be the first line's.
	fprintf(file, "1%016lx 10 too long\n%lx 10000000000000010 too large\n", at, at);
	fclose(file);
	ASSERT_STR_EQ(show(&view, getpid(), at + 1, 0), "[perf map]!blanks+1");
	ASSERT_STR_EQ(show(&view, getpid(), at + 17, 0), "[perf map]!tab+1");
	ASSERT_STR_EQ(show(&view, getpid(), at + 47, 0), "[perf map]!zeros+f");
	ASSERT_STR_EQ(show(&view, getpid(), at + 48, 0), "//anon!?+0");
	remove_map_of(getpid());
	munmap(code, 4096);
	view_end(&view);
}

TEST(symbol, a_child_has_the_names_that_its_parent_made_until_its_exec)
{
	struct view view = view_of(false);
	FILE *file = open_map_of(NOBODY);
	fprintf(file, "1000 10 of the parent\n1010 10 of both\n");
	fclose(file);
	file = open_map_of(NOBODY + 1);
	fprintf(file, "1010 10 of the child\n");
	fclose(file);
	follow_mmap2(view.maps, NOBODY, 0x1000, 0x1000, 0, "//anon");
	follow_fork(view.maps, NOBODY, NOBODY + 1);
	follow_fork(view.maps, NOBODY + 1, NOBODY + 2);
	ASSERT_STR_EQ(show(&view, NOBODY + 1, 0x1001, 0), "[perf map]!of the parent+1");
	ASSERT_STR_EQ(show(&view, NOBODY + 1, 0x1010, 0), "[perf map]!of the child+0");
	ASSERT_STR_EQ(show(&view, NOBODY + 2, 0x1001, 0), "[perf map]!of the parent+1");
	ASSERT_STR_EQ(show(&view, NOBODY + 2, 0x1010, 0), "[perf map]!of the child+0");
	follow_exit(view.maps, NOBODY);
	ASSERT_STR_EQ(show(&view, NOBODY + 2, 0x1001, 0), "[perf map]!of the parent+1");
	follow_exec_at(view.maps, NOBODY + 1, 0);
	follow_mmap2(view.maps, NOBODY + 1, 0x1000, 0x1000, 0, "//anon");
	ASSERT_STR_EQ(show(&view, NOBODY + 1, 0x1001, 0), "//anon!?+0");
	remove_map_of(NOBODY);
	remove_map_of(NOBODY + 1);
	view_end(&view);
}

/** Fork a process that waits until @hold is closed. */
static pid_t fork_waiting(int hold[2], bool is_exec)
{
	ASSERT_EQ(pipe2(hold, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child)
		return child;
	char byte;
	close(hold[1]);
	dup2(hold[0], 0);
	if (is_exec)
		execlp("cat", "cat", NULL);
	_exit(read(0, &byte, 1));
}

TEST(symbol, a_child_from_before_has_the_names_that_its_parent_made)
{
	int hold_exec[2], hold[2];
	void *code = map_code();
	uint64_t at = (uintptr_t)code;
	pid_t other = fork_waiting(hold_exec, true);
	close(hold_exec[0]);
	pid_t child = fork_waiting(hold, false);
	FILE *file = open_map_of(getpid());
	fprintf(file, "%jx 10 of the parent\n", (uintmax_t)at);
	fclose(file);
	usleep(PAUSE_US); // for the exec
	struct view view = view_of(false);
	ps_maps_snapshot(view.maps, NULL, 0);
	ASSERT_STR_EQ(show(&view, child, at, 0), "[perf map]!of the parent+0");
	struct ps_process_id process = ps_maps_process(view.maps, other);
	ASSERT_TRUE(process.id);
	ASSERT_EQ(ps_maps_forked_from(view.maps, process).id, 0);
	ASSERT_EQ(ps_maps_parent(view.maps, other), getpid());
	kill(child, SIGKILL);
	kill(other, SIGKILL);
	waitpid(child, NULL, 0);
	waitpid(other, NULL, 0);
	close(hold[0]);
	close(hold[1]);
	close(hold_exec[1]);
	remove_map_of(getpid());
	munmap(code, 4096);
	view_end(&view);
}

TEST(symbol, names_that_may_change_are_not_to_be_kept)
{
	struct view view = view_of(false);
	follow_mmap2(view.maps, NOBODY, 0x1000, 0x1000, 0, "//anon");
	follow_mmap2(view.maps, NOBODY, 0x2000, 0x1000, 0, "/nothing");
	struct ps_frame frame;
	ps_symbolize(view.symbolizer, NOBODY, 0x1000, 0, &frame, 1);
	ASSERT_FALSE(frame.may_change);
	ASSERT_TRUE(frame.memory_generation != 0);
	ps_symbolize(view.symbolizer, NOBODY, 0x2000, 0, &frame, 1);
	ASSERT_FALSE(frame.may_change);
	ASSERT_EQ(frame.memory_generation, 0);
	view_end(&view);
}

static uint64_t generation_of(struct view *view, pid_t pid)
{
	return ps_symbolizer_memory_generation(view->symbolizer, pid);
}

/** Add @line to the perf map of @pid, and wait until it is looked at again. */
static void tell(pid_t pid, const char *line)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	FILE *file = fopen(path, "a");
	ASSERT_TRUE(file != NULL);
	fputs(line, file);
	fclose(file);
	usleep(PAUSE_US);
}

TEST(symbol, names_of_memory_have_another_number_after_each_change_of_the_maps_that_tell_them)
{
	struct view view = view_of(false);
	struct ps_frame frame;
	remove_map_of(NOBODY);
	remove_map_of(NOBODY + 1);
	follow_mmap2(view.maps, NOBODY, 0x1000, 0x1000, 0, "//anon");
	follow_fork(view.maps, NOBODY, NOBODY + 1);
	uint64_t before = generation_of(&view, NOBODY), child = generation_of(&view, NOBODY + 1);
	usleep(PAUSE_US);
	ASSERT_EQ(generation_of(&view, NOBODY), before);
	tell(NOBODY, "1000 10 first\n");
	uint64_t first = generation_of(&view, NOBODY);
	ASSERT_TRUE(first != before);
	ASSERT_TRUE(generation_of(&view, NOBODY + 1) != child);
	ps_symbolize(view.symbolizer, NOBODY, 0x1000, 0, &frame, 1);
	ASSERT_STR_EQ(frame.symbol, "first");
	ASSERT_EQ(frame.memory_generation, first);
	// The child's map is not its parent's.
	tell(NOBODY + 1, "1000 10 of the child\n");
	ASSERT_TRUE(generation_of(&view, NOBODY + 1) != first);
	ASSERT_EQ(generation_of(&view, NOBODY), first);
	tell(NOBODY, "1000 10 second\n");
	ps_symbolize(view.symbolizer, NOBODY, 0x1000, 0, &frame, 1);
	ASSERT_STR_EQ(frame.symbol, "second");
	ASSERT_TRUE(frame.memory_generation != first);
	remove_map_of(NOBODY);
	remove_map_of(NOBODY + 1);
	view_end(&view);
}

TEST(symbol, a_map_that_names_the_same_memory_without_end_has_a_bound)
{
	struct view view = view_of(false);
	void *code = map_code();
	uint64_t at = (uintptr_t)code;
	FILE *file = open_map_of(getpid());
	// 64 bytes a line: 128 MiB.
	for (int i = 0; i < 2 << 20; i++)
		fprintf(file, "%jx 10 function_%040d\n", (uintmax_t)(at + i % 64 * 16), i);
	fclose(file);
	ASSERT_STR_EQ(show(&view, getpid(), at + 63 * 16, 0),
		      "[perf map]!function_0000000000000000000000000000000002097151+0");
	ASSERT_TRUE(ps_symbolizer_nr_jit_bytes(view.symbolizer) < 64 << 20);
	ASSERT_STR_EQ(show(&view, getpid(), at, 0),
		      "[perf map]!function_0000000000000000000000000000000002097088+0");
	remove_map_of(getpid());
	munmap(code, 4096);
	view_end(&view);
}

TEST(symbol, of_a_map_without_end_the_newest_names_are_known)
{
	struct view view = view_of(false);
	follow_mmap2(view.maps, NOBODY, 0x100000, 0x10000000, 0, "//anon");
	FILE *file = open_map_of(NOBODY);
	for (int i = 0; i < 2 << 20; i++)
		fprintf(file, "%x 10 function_%040d\n", 0x100000 + i * 16, i);
	fclose(file);
	ASSERT_STR_EQ(show(&view, NOBODY, 0x100000 + 2097151 * 16, 0),
		      "[perf map]!function_0000000000000000000000000000000002097151+0");
	ASSERT_STR_EQ(show(&view, NOBODY, 0x100000 + 2000000 * 16, 0),
		      "[perf map]!function_0000000000000000000000000000000002000000+0");
	ASSERT_STR_EQ(show(&view, NOBODY, 0x100000, 0), "//anon!?+0");
	ASSERT_TRUE(ps_symbolizer_nr_jit_bytes(view.symbolizer) < 64 << 20);
	remove_map_of(NOBODY);
	view_end(&view);
}

TEST(symbol, a_map_is_as_quickly_read_as_it_is_large_on_the_disk)
{
	struct view view = view_of(false);
	follow_mmap2(view.maps, NOBODY, 0x1000, 0x1000, 0, "//anon");
	FILE *file = open_map_of(NOBODY);
	fprintf(file, "1000 10 oldest\n");
	fflush(file);
	// Zeros that take no place, and are one line of a terabyte.
	ASSERT_EQ(ftruncate(fileno(file), INT64_C(1) << 40), 0);
	ASSERT_STR_EQ(show(&view, NOBODY, 0x1000, 0), "//anon!?+0");
	fseeko(file, 0, SEEK_END);
	fprintf(file, "\n1000 10 newest\n");
	fclose(file);
	usleep(PAUSE_US);
	ASSERT_STR_EQ(show(&view, NOBODY, 0x1000, 0), "[perf map]!newest+0");
	remove_map_of(NOBODY);
	view_end(&view);
}

TEST(symbol, lines_of_a_map_that_are_too_long_are_passed_over)
{
	struct view view = view_of(false);
	follow_mmap2(view.maps, NOBODY, 0x1000, 0x1000, 0, "//anon");
	FILE *file = open_map_of(NOBODY);
	fprintf(file, "1000 10 first\n1010 10 %0200000d\n1020 10 second\n1030 10 %065000d\n", 0, 7);
	fprintf(file, "1040 10 %070000d", 0);
	fflush(file);
	ASSERT_STR_EQ(show(&view, NOBODY, 0x1000, 0), "[perf map]!first+0");
	ASSERT_STR_EQ(show(&view, NOBODY, 0x1010, 0), "//anon!?+0");
	ASSERT_STR_EQ(show(&view, NOBODY, 0x1020, 0), "[perf map]!second+0");
	struct ps_frame frame;
	ps_symbolize(view.symbolizer, NOBODY, 0x1030, 0, &frame, 1);
	ASSERT_EQ(strlen(frame.symbol), 65000);
	fprintf(file, "1050 10 rest\n1060 10 third\n");
	fclose(file);
	usleep(PAUSE_US);
	ASSERT_STR_EQ(show(&view, NOBODY, 0x1050, 0), "//anon!?+0");
	ASSERT_STR_EQ(show(&view, NOBODY, 0x1060, 0), "[perf map]!third+0");
	remove_map_of(NOBODY);
	view_end(&view);
}

TEST(symbol, maps_of_many_processes_have_a_bound_and_are_read_again)
{
	struct view view = view_of(false);
	for (int i = 0; i < 200; i++) {
		follow_mmap2(view.maps, NOBODY + i, 0x1000, 0x1000, 0, "//anon");
		FILE *file = open_map_of(NOBODY + i);
		fprintf(file, "1000 10 of process %d\n", i);
		fclose(file);
	}
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 200; i++) {
			char expected[64];
			sprintf(expected, "[perf map]!of process %d+0", i);
			ASSERT_STR_EQ(show(&view, NOBODY + i, 0x1000, 0), expected);
		}
	}
	ASSERT_TRUE(ps_symbolizer_nr_jit_bytes(view.symbolizer) < 64 * 16384);
	for (int i = 0; i < 200; i++)
		remove_map_of(NOBODY + i);
	view_end(&view);
}

TEST(symbol, texts_have_a_bound_and_what_went_is_found_again)
{
	struct ps_symbol_options options = { .max_text_bytes = 100000 };
	struct view view;
	ASSERT_OK(ps_maps_create(&view.maps));
	ASSERT_OK(ps_symbolizer_create(view.maps, &options, &view.symbolizer));
	write_file("program.c",
		   "int known(void) { return 1; }\nint main(void) { return known(); }\n");
	run("gcc -o program program.c");
	load_at(view.maps, NOBODY, "program", 0x7f0000000000);
	uint64_t known = 0x7f0000000000 + nm("program", "known");
	follow_mmap2(view.maps, NOBODY + 1, 0x100000, 0x1000000, 0, "//anon");
	FILE *file = open_map_of(NOBODY + 1);
	for (int i = 0; i < 10000; i++)
		fprintf(file, "%x 10 function_%040d\n", 0x100000 + i * 16, i);
	fclose(file);
	size_t most = 0;
	for (int i = 0; i < 10000; i++) {
		char expected[128];
		sprintf(expected, "[perf map]!function_%040d+0", i);
		ASSERT_STR_EQ(show(&view, NOBODY + 1, 0x100000 + i * 16, 0), expected);
		ASSERT_STR_EQ(show(&view, NOBODY, known, 0), "program!known+0");
		size_t now = ps_symbolizer_nr_text_bytes(view.symbolizer);
		most = now > most ? now : most;
	}
	ASSERT_TRUE(most > 99000 && most < 101000);
	remove_map_of(NOBODY + 1);
	view_end(&view);
}
