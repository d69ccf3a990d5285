// SPDX-License-Identifier: MIT
#include "test.h"
#include "map_records.h"

#include <asm/perf_regs.h>
#include <fcntl.h>
#include <perfscope/symbol.h>
#include <ucontext.h>

#if defined(__x86_64__)

#define MAX_DEPTH 64

// What the registers and the stack were at the bottom of the calls below.
static ucontext_t context;
static uint8_t stack[16384];
static ssize_t stack_size;
static volatile int sink;
static volatile int room_size = 7; // not known to the compiler

/** Take registers and stack, here, and the stack as it must be: where each caller goes on. */
__attribute__((noinline, optimize("no-omit-frame-pointer"))) static void take_state(void)
{
	getcontext(&context);
	// As the kernel copies it: up to where the stack ends.
	int fd = open("/proc/self/mem", O_RDONLY);
	stack_size = pread(fd, stack, sizeof(stack), context.uc_mcontext.gregs[REG_RSP]);
	close(fd);
	sink++;
}

static uint64_t places[3]; // the return addresses into level_1, level_2 and level_3

__attribute__((noinline, noclone)) static int level_1(int n)
{
	take_state();
	return n + (sink & 1);
}

__attribute__((noinline, noclone)) static int level_2(int n)
{
	char room[n + 100]; // the frame has no fixed size
	memset(room, 1, sizeof(room));
	places[0] = (uintptr_t)__builtin_return_address(0);
	return level_1(n) + room[n];
}

__attribute__((noinline, noclone)) static int level_3(int n)
{
	sink += n > 0 ? level_3(n - 1) : level_2(room_size); // written behind the call: no loop
	return sink;
}

__attribute__((noinline)) static struct ps_user_state take(int depth, uint64_t *regs)
{
	static const uint8_t order[] = { REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
					 REG_RBP, REG_RSP, REG_RIP, REG_R8,  REG_R9,  REG_R10,
					 REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
	sink = 0;
	level_3(depth);
	for (size_t i = 0; i < sizeof(order); i++)
		regs[i] = context.uc_mcontext.gregs[order[i]];
	return (struct ps_user_state){
		.regs = regs,
		.mask = 0x1ff | UINT64_C(0xff) << PERF_REG_X86_R8,
		.stack = { stack, stack_size },
	};
}

struct view {
	struct ps_maps *maps;
	struct ps_symbolizer *symbolizer;
};

static struct view view_of_self(void)
{
	struct view view;
	ASSERT_OK(ps_maps_create(&view.maps));
	ASSERT_OK(ps_symbolizer_create(view.maps, NULL, &view.symbolizer));
	return view;
}

static void view_end(struct view *view)
{
	ps_symbolizer_destroy(view->symbolizer);
	ps_maps_destroy(view->maps);
}

static const char *name_at(struct view *view, pid_t pid, uint64_t address)
{
	struct ps_frame frame;
	ps_symbolize(view->symbolizer, pid, address, PS_ADDRESS_RETURN, &frame, 1);
	return frame.symbol ? frame.symbol : "?";
}

/** take_state, level_1, level_2, level_3 as often as it was called, and so on up to main. */
static void expect_calls(struct view *view, pid_t pid, int depth)
{
	uint64_t regs[32], addresses[MAX_DEPTH];
	struct ps_user_state user = take(depth, regs);
	size_t nr = ps_unwind_user(view->symbolizer, pid, &user, addresses, MAX_DEPTH);
	ASSERT_TRUE(nr > (size_t)depth + 7);
	ASSERT_EQ(addresses[0], context.uc_mcontext.gregs[REG_RIP]);
	ASSERT_STR_EQ(name_at(view, pid, addresses[0] + 1), "take_state");
	ASSERT_STR_EQ(name_at(view, pid, addresses[1]), "level_1");
	ASSERT_STR_EQ(name_at(view, pid, addresses[2]), "level_2");
	for (int i = 0; i <= depth; i++)
		ASSERT_STR_EQ(name_at(view, pid, addresses[3 + i]), "level_3");
	ASSERT_EQ(addresses[3], places[0]);
	ASSERT_STR_EQ(name_at(view, pid, addresses[4 + depth]), "take");
	ASSERT_STR_EQ(name_at(view, pid, addresses[5 + depth]), "expect_calls");
	ASSERT_STR_EQ(name_at(view, pid, addresses[nr - 1]), "_start");
}

TEST(unwind, a_stack_is_unwound_up_to_where_the_program_starts)
{
	struct view view = view_of_self();
	expect_calls(&view, getpid(), 0);
	expect_calls(&view, getpid(), 20);
	expect_calls(&view, getpid(), 3);
	view_end(&view);
}

/** Tell of all code of this process as of @pid's, by records. */
static void follow_own_maps(struct ps_maps *maps, pid_t pid)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[512], path[256];
	unsigned long start, end, offset;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx r-xp %lx %*s %*s %255s", &start, &end, &offset, path) ==
		    4)
			follow_mmap2(maps, pid, start, end - start, offset, path);
	}
	fclose(file);
}

TEST(unwind, a_stack_of_a_process_that_is_gone_is_unwound)
{
	struct view view = view_of_self();
	follow_own_maps(view.maps, NOBODY);
	follow_exit(view.maps, NOBODY);
	expect_calls(&view, NOBODY, 5);
	follow_fork(view.maps, NOBODY, NOBODY + 1);
	expect_calls(&view, NOBODY + 1, 5);
	view_end(&view);
}

TEST(unwind, a_stack_ends_where_its_bytes_end)
{
	struct view view = view_of_self();
	uint64_t regs[32], addresses[MAX_DEPTH] = {};
	struct ps_user_state user = take(5, regs);
	size_t whole = ps_unwind_user(view.symbolizer, getpid(), &user, addresses, MAX_DEPTH);
	ASSERT_EQ(ps_unwind_user(view.symbolizer, getpid(), &user, addresses, 4), 4);
	size_t last = 0;
	for (size_t size = 0; size <= 2048; size += 8) {
		user.stack.size = size;
		size_t nr = ps_unwind_user(view.symbolizer, getpid(), &user, addresses, MAX_DEPTH);
		ASSERT_TRUE(nr >= 1 && nr >= last && nr <= whole);
		last = nr;
	}
	ASSERT_TRUE(last > 8);
	view_end(&view);
}

TEST(unwind, stacks_that_are_cut_are_counted)
{
	struct view view = view_of_self();
	uint64_t regs[32], addresses[MAX_DEPTH] = {};
	struct ps_user_state user = take(5, regs);
	ps_unwind_user(view.symbolizer, getpid(), &user, addresses, MAX_DEPTH);
	struct ps_unwind_counts counts = ps_symbolizer_unwind_counts(view.symbolizer);
	ASSERT_EQ(counts.nr_stacks, 1);
	ASSERT_EQ(counts.nr_by_rules, 1);
	ASSERT_EQ(counts.nr_above + counts.nr_deep + counts.nr_slow, 0);
	ps_unwind_user(view.symbolizer, getpid(), &user, addresses, 4);
	ASSERT_EQ(ps_symbolizer_unwind_counts(view.symbolizer).nr_deep, 1);
	user.stack.size = 256;
	ps_unwind_user(view.symbolizer, getpid(), &user, addresses, MAX_DEPTH);
	ASSERT_EQ(ps_symbolizer_unwind_counts(view.symbolizer).nr_above, 0); // it ends there
	user.is_cut = true;
	ps_unwind_user(view.symbolizer, getpid(), &user, addresses, MAX_DEPTH);
	counts = ps_symbolizer_unwind_counts(view.symbolizer);
	ASSERT_EQ(counts.nr_above, 1);
	ASSERT_EQ(counts.nr_deep, 1);
	ASSERT_EQ(counts.nr_stacks, 4);
	view_end(&view);
}

TEST(unwind, registers_that_are_not_enough_give_nothing)
{
	struct view view = view_of_self();
	uint64_t regs[32], addresses[MAX_DEPTH];
	struct ps_user_state user = take(1, regs);
	user.mask &= ~(UINT64_C(1) << PERF_REG_X86_SP);
	ASSERT_EQ(ps_unwind_user(view.symbolizer, getpid(), &user, addresses, MAX_DEPTH), 0);
	user.mask = 1 << PERF_REG_X86_SP | 1 << PERF_REG_X86_IP;
	regs[0] = (uintptr_t)stack;
	regs[1] = 0x10; // in no file
	ASSERT_EQ(ps_unwind_user(view.symbolizer, getpid(), &user, addresses, MAX_DEPTH), 1);
	ASSERT_EQ(addresses[0], 0x10);
	user.mask = 0;
	ASSERT_EQ(ps_unwind_user(view.symbolizer, getpid(), &user, addresses, MAX_DEPTH), 0);
	view_end(&view);
}

TEST(unwind, noise_instead_of_a_stack_gives_few_frames_and_no_crash)
{
	struct view view = view_of_self();
	uint64_t regs[32], addresses[MAX_DEPTH];
	struct ps_user_state user = take(3, regs);
	uint64_t random = 88172645463325252;
	for (int round = 0; round < 300; round++) {
		for (size_t i = 0; i < sizeof(stack); i += 8) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			uint64_t word = random % 3 ? regs[random % 17] + random % 4096 : random;
			memcpy(stack + i, &word, 8);
		}
		size_t nr = ps_unwind_user(view.symbolizer, getpid(), &user, addresses, MAX_DEPTH);
		ASSERT_TRUE(nr >= 1 && nr <= MAX_DEPTH);
	}
	view_end(&view);
}

#else
TEST(unwind, a_stack_is_unwound)
{
	SKIP("the test knows the registers of x86-64 only");
}
#endif
