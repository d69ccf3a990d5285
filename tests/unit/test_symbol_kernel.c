// SPDX-License-Identifier: MIT
#include "test.h"
#include "symbol_programs.h"

static struct view view_of_kernel(const char *symbols)
{
	write_file("kallsyms", symbols);
	struct ps_symbol_options options = { .kallsyms = path_of("kallsyms") };
	struct view view;
	ASSERT_OK(ps_maps_create(&view.maps));
	ASSERT_OK(ps_symbolizer_create(view.maps, &options, &view.symbolizer));
	return view;
}

TEST(symbol, kernel_symbols_of_one_address_modules_and_gaps)
{
	struct view view = view_of_kernel("ffffffff81000000 t local_name_that_is_long\n"
					  "ffffffff81000000 T __underscored\n"
					  "ffffffff81000000 T longer_than_the_last\n"
					  "ffffffff81000000 T global\n"
					  "ffffffff81000100 t second\n"
					  "ffffffff81000200 D data\n"
					  "ffffffff81000300 D more_data\n"
					  "ffffffffc0000000 t init\t[ext4]\n"
					  "ffffffffc0001000 t prog_1\t[bpf]\n");
	ASSERT_STR_EQ(show(&view, 1, 0xffffffff81000000, PS_ADDRESS_KERNEL),
		      "[kernel.kallsyms]!global+0");
	ASSERT_STR_EQ(show(&view, 1, 0xffffffff81000100, PS_ADDRESS_KERNEL | PS_ADDRESS_RETURN),
		      "[kernel.kallsyms]!global+100");
	ASSERT_STR_EQ(show(&view, 1, 0xffffffff810001ff, PS_ADDRESS_KERNEL),
		      "[kernel.kallsyms]!second+ff");
	ASSERT_STR_EQ(show(&view, 1, 0xffffffff81000300, PS_ADDRESS_KERNEL),
		      "[kernel.kallsyms]!?+0");
	ASSERT_STR_EQ(show(&view, 1, 0xffffffffc0000fff, PS_ADDRESS_KERNEL), "[ext4]!init+fff");
	ASSERT_STR_EQ(show(&view, 1, 0xffffffffc0001001, PS_ADDRESS_KERNEL), "[bpf]!prog_1+1");
	ASSERT_STR_EQ(show(&view, 1, 0xffffffffff001001, PS_ADDRESS_KERNEL),
		      "[kernel.kallsyms]!?+0");
	view_end(&view);
}

TEST(symbol, a_kernel_that_hides_its_addresses_has_no_symbols)
{
	struct view view = view_of_kernel("0000000000000000 T global\n0000000000000000 t local\n");
	ASSERT_ERROR(ps_symbolizer_load_kernel(view.symbolizer), PS_ERROR_PERMISSION,
		     "kptr_restrict");
	ASSERT_STR_EQ(show(&view, 1, 0xffffffff81000000, PS_ADDRESS_KERNEL),
		      "[kernel.kallsyms]!?+0");
	view_end(&view);
}

static void follow_ksymbol(struct view *view, uint64_t address, uint32_t size, uint16_t type,
			   bool is_removed, const char *name)
{
	struct {
		struct perf_event_header header;
		uint64_t address;
		uint32_t size;
		uint16_t type, flags;
		char name[64];
	} record = {
		{ PERF_RECORD_KSYMBOL, 0, sizeof(record) }, address, size, type, is_removed, ""
	};
	strncpy(record.name, name, sizeof(record.name));
	ps_symbolizer_follow(view->symbolizer, &record.header);
}

#define BPF_AT UINT64_C(0xffffffffc0001000)

TEST(symbol, functions_that_the_kernel_makes_are_known_until_it_removes_them)
{
	struct view view = view_of_kernel("ffffffff81000000 T global\n"
					  "ffffffffc0001000 t from_before\t[bpf]\n");
	const uint16_t bpf = PERF_RECORD_KSYMBOL_TYPE_BPF, ool = PERF_RECORD_KSYMBOL_TYPE_OOL;
	ASSERT_STR_EQ(show(&view, 1, BPF_AT, PS_ADDRESS_KERNEL), "[bpf]!from_before+0");
	uint64_t generation = ps_symbolizer_kernel_generation(view.symbolizer, BPF_AT);
	follow_ksymbol(&view, BPF_AT, 0x40, bpf, true, "from_before");
	ASSERT_STR_EQ(show(&view, 1, BPF_AT, PS_ADDRESS_KERNEL), "[bpf]!?+0");
	ASSERT_TRUE(ps_symbolizer_kernel_generation(view.symbolizer, BPF_AT) != generation);
	follow_ksymbol(&view, BPF_AT + 0x20, 0x20, bpf, false, "bpf_prog_0123_second");
	follow_ksymbol(&view, BPF_AT, 0x20, bpf, false, "bpf_prog_4567_first");
	follow_ksymbol(&view, BPF_AT + 0x1000, 0x100, ool, false, "ftrace_trampoline");
	follow_ksymbol(&view, BPF_AT + 0x2000, 0x100, ool, false, "kprobe_insn_page");
	ASSERT_STR_EQ(show(&view, 1, BPF_AT + 0x1f, PS_ADDRESS_KERNEL),
		      "[bpf]!bpf_prog_4567_first+1f");
	ASSERT_STR_EQ(show(&view, 1, BPF_AT + 0x20, PS_ADDRESS_KERNEL | PS_ADDRESS_RETURN),
		      "[bpf]!bpf_prog_4567_first+20");
	ASSERT_STR_EQ(show(&view, 1, BPF_AT + 0x20, PS_ADDRESS_KERNEL),
		      "[bpf]!bpf_prog_0123_second+0");
	ASSERT_STR_EQ(show(&view, 1, BPF_AT + 0x10ff, PS_ADDRESS_KERNEL),
		      "[__builtin__ftrace]!ftrace_trampoline+ff");
	ASSERT_STR_EQ(show(&view, 1, BPF_AT + 0x2000, PS_ADDRESS_KERNEL),
		      "[__builtin__kprobes]!kprobe_insn_page+0");
	follow_ksymbol(&view, BPF_AT + 0x20, 0x20, bpf, true, "bpf_prog_0123_second");
	ASSERT_STR_EQ(show(&view, 1, BPF_AT + 0x20, PS_ADDRESS_KERNEL), "[bpf]!?+0");
	follow_ksymbol(&view, BPF_AT, 0x40, bpf, false, "bpf_prog_89ab_over_both");
	ASSERT_STR_EQ(show(&view, 1, BPF_AT + 0x20, PS_ADDRESS_KERNEL),
		      "[bpf]!bpf_prog_89ab_over_both+20");
	ASSERT_EQ(ps_symbolizer_kernel_generation(view.symbolizer, 0xffffffff81000000), 0);
	view_end(&view);
}

TEST(symbol, records_of_functions_of_the_kernel_that_are_cut_are_passed_over)
{
	struct view view = view_of_kernel("ffffffff81000000 T global\n");
	struct {
		struct perf_event_header header;
		uint64_t address;
		uint32_t size;
		uint16_t type, flags;
		char name[8];
	} record = { { PERF_RECORD_KSYMBOL, 0, 0 }, BPF_AT, 0x40, 1, 0, "12345678" };
	for (record.header.size = 0; record.header.size <= sizeof(record); record.header.size++)
		ps_symbolizer_follow(view.symbolizer, &record.header);
	record.name[1] = 0;
	record.address = UINT64_MAX;
	record.header.size = sizeof(record);
	ps_symbolizer_follow(view.symbolizer, &record.header);
	record.header.type = PERF_RECORD_BPF_EVENT;
	ps_symbolizer_follow(view.symbolizer, &record.header);
	ASSERT_EQ(ps_symbolizer_kernel_generation(view.symbolizer, BPF_AT), 0);
	view_end(&view);
}

TEST(symbol, functions_of_the_kernel_come_and_go_without_end)
{
	struct view view = view_of_kernel("ffffffff81000000 T global\n");
	const uint16_t bpf = PERF_RECORD_KSYMBOL_TYPE_BPF;
	for (uint64_t i = 0; i < 50000; i++) {
		follow_ksymbol(&view, BPF_AT + i * 64, 64, bpf, false, "bpf_prog_of_many");
		follow_ksymbol(&view, BPF_AT + i * 64, 64, bpf, true, "bpf_prog_of_many");
	}
	follow_ksymbol(&view, BPF_AT, 64, bpf, false, "bpf_prog_last");
	ASSERT_STR_EQ(show(&view, 1, BPF_AT, PS_ADDRESS_KERNEL), "[bpf]!bpf_prog_last+0");
	view_end(&view);
}

TEST(symbol, a_module_that_comes_later_is_found_when_the_kernel_is_read_again)
{
	struct view view = view_of_kernel("ffffffff81000000 T global\n");
	struct ps_frame frame;
	ASSERT_EQ(ps_symbolize(view.symbolizer, 1, BPF_AT + 4, PS_ADDRESS_KERNEL, &frame, 1), 1);
	ASSERT_NULL(frame.symbol);
	ASSERT_TRUE(frame.may_change);
	write_file("kallsyms", "ffffffff81000000 T global\nffffffffc0001000 t init\t[ext4]\n");
	usleep(1100000);
	ASSERT_STR_EQ(show(&view, 1, BPF_AT + 4, PS_ADDRESS_KERNEL), "[ext4]!init+4");
	write_file("kallsyms", "0000000000000000 T global\n");
	usleep(1100000);
	ASSERT_STR_EQ(show(&view, 1, BPF_AT - 4, PS_ADDRESS_KERNEL), "[kernel.kallsyms]!?+0");
	ASSERT_STR_EQ(show(&view, 1, BPF_AT + 4, PS_ADDRESS_KERNEL), "[ext4]!init+4");
	view_end(&view);
}
