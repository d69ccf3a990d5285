// SPDX-License-Identifier: MIT
#include "test.h"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <perfscope/spec.h>

/** The one event of @text. */
static struct ps_spec_list parse_one(const char *text)
{
	struct ps_spec_list list = {};
	ASSERT_OK(ps_spec_parse(text, &list));
	ASSERT_EQ(list.nr_specs, 1);
	ASSERT_STR_EQ(list.specs[0].text, text);
	return list;
}

/** @text is refused with @message, the caret at @column. */
static void assert_refused(const char *text, size_t column, const char *message)
{
	struct ps_spec_list list = {};
	struct ps_error *error = ps_spec_parse(text, &list);
	ASSERT_NOT_NULL(error);
	ASSERT_STR_EQ(error->message, message);
	ASSERT_EQ(error->kind, PS_ERROR_USAGE);
	ASSERT_NOT_NULL(error->detail);
	const char *line = strchr(error->detail, '\n');
	ASSERT_NOT_NULL(line);
	ASSERT_EQ(strlen(line + 1), 4 + column + 1);
	ASSERT_EQ(list.nr_specs, 0);
	ASSERT_NULL(list.specs);
	ps_error_destroy(error);
}

TEST(spec, a_word_is_a_counter)
{
	struct ps_spec_list list = parse_one("LLC-load-misses");
	ASSERT_EQ(list.specs[0].kind, PS_SPEC_COUNTER);
	ASSERT_STR_EQ(list.specs[0].name, "LLC-load-misses");
	ASSERT_NULL(list.specs[0].system);
	ASSERT_NULL(list.specs[0].modifiers);
	ASSERT_FALSE(list.specs[0].is_modified);
	ps_spec_list_deinit(&list);
}

TEST(spec, a_word_and_a_name_are_a_tracepoint)
{
	struct ps_spec_list list = parse_one("sched:sched_*");
	ASSERT_EQ(list.specs[0].kind, PS_SPEC_TRACEPOINT);
	ASSERT_STR_EQ(list.specs[0].system, "sched");
	ASSERT_STR_EQ(list.specs[0].name, "sched_*");
	ASSERT_NULL(list.specs[0].filter);
	ps_spec_list_deinit(&list);
}

TEST(spec, a_filter_keeps_its_commas_quotes_and_slashes)
{
	struct ps_spec_list list = parse_one(
		"sched:sched_switch/prev_pid>0 && (comm~\"b,a/*\" || x == 'c/d')/alias=x,stack/:u");
	const struct ps_spec *spec = &list.specs[0];
	ASSERT_STR_EQ(spec->filter, "prev_pid>0 && (comm~\"b,a/*\" || x == 'c/d')");
	ASSERT_STR_EQ(spec->alias, "x");
	ASSERT_TRUE(spec->has_stack);
	ASSERT_STR_EQ(spec->modifiers, "u");
	ps_spec_list_deinit(&list);
}

TEST(spec, an_empty_filter_is_none)
{
	struct ps_spec_list list = parse_one("sched:sched_switch//stack/");
	ASSERT_NULL(list.specs[0].filter);
	ASSERT_TRUE(list.specs[0].has_stack);
	ps_spec_list_deinit(&list);
}

TEST(spec, attributes_are_parted_by_commas_or_slashes)
{
	struct ps_spec_list list =
		parse_one("a:b/ x>1 /alias=c/max-stack=7 , cpus=0-3,8,ip/period=0x10,branch/");
	const struct ps_spec *spec = &list.specs[0];
	ASSERT_STR_EQ(spec->filter, "x>1");
	ASSERT_STR_EQ(spec->alias, "c");
	ASSERT_EQ(spec->max_stack, 7);
	ASSERT_TRUE(spec->has_stack);
	ASSERT_STR_EQ(spec->cpus, "0-3,8");
	ASSERT_EQ(spec->period, 16);
	ASSERT_EQ(spec->sample_type, PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK);
	ps_spec_list_deinit(&list);
}

TEST(spec, a_counter_has_attributes_in_one_pair_of_slashes)
{
	struct ps_spec_list list = parse_one("cpu-clock/freq=997,stack/k");
	const struct ps_spec *spec = &list.specs[0];
	ASSERT_EQ(spec->kind, PS_SPEC_COUNTER);
	ASSERT_STR_EQ(spec->name, "cpu-clock");
	ASSERT_EQ(spec->freq, 997);
	ASSERT_TRUE(spec->has_stack);
	ASSERT_EQ(spec->nr_terms, 0);
	ASSERT_TRUE(spec->exclude_user && spec->exclude_hv && !spec->exclude_kernel);
	ps_spec_list_deinit(&list);
}

TEST(spec, a_pmu_mixes_terms_and_attributes)
{
	struct ps_spec_list list = parse_one("cpu/event=0x3c,umask=0,alias=x,edge,addr=\"1,2\"/u");
	const struct ps_spec *spec = &list.specs[0];
	ASSERT_EQ(spec->kind, PS_SPEC_PMU);
	ASSERT_STR_EQ(spec->system, "cpu");
	ASSERT_NULL(spec->name);
	ASSERT_EQ(spec->nr_terms, 4);
	ASSERT_STR_EQ(spec->terms[0].name, "event");
	ASSERT_STR_EQ(spec->terms[0].value, "0x3c");
	ASSERT_EQ(spec->terms[1].column, 15);
	ASSERT_STR_EQ(spec->terms[2].name, "edge");
	ASSERT_NULL(spec->terms[2].value);
	ASSERT_STR_EQ(spec->terms[3].name, "addr");
	ASSERT_STR_EQ(spec->terms[3].value, "1,2");
	ASSERT_STR_EQ(spec->alias, "x");
	ASSERT_STR_EQ(spec->modifiers, "u");
	ps_spec_list_deinit(&list);
}

TEST(spec, r_and_hex_digits_are_raw)
{
	struct ps_spec_list list = parse_one("r1A8:pp");
	ASSERT_EQ(list.specs[0].kind, PS_SPEC_RAW);
	ASSERT_EQ(list.specs[0].config, 0x1a8);
	ASSERT_EQ(list.specs[0].precise_ip, 2);
	ASSERT_TRUE(list.specs[0].exclude_guest);
	ASSERT_FALSE(list.specs[0].is_modified);
	ps_spec_list_deinit(&list);
	list = parse_one("ref-cycles");
	ASSERT_EQ(list.specs[0].kind, PS_SPEC_COUNTER);
	ps_spec_list_deinit(&list);
}

TEST(spec, a_name_of_libpfm4_may_name_its_pmu)
{
	struct ps_spec_list list = parse_one("skx::INST_RETIRED.ANY_P:u");
	ASSERT_EQ(list.specs[0].kind, PS_SPEC_COUNTER);
	ASSERT_STR_EQ(list.specs[0].name, "skx::INST_RETIRED.ANY_P");
	ASSERT_TRUE(list.specs[0].exclude_kernel);
	ps_spec_list_deinit(&list);
}

TEST(spec, a_breakpoint_has_length_access_attributes_and_modifiers)
{
	struct ps_spec_list list = parse_one("mem:0xffff8000/8:rw/alias=x/:k");
	const struct ps_spec *spec = &list.specs[0];
	ASSERT_EQ(spec->kind, PS_SPEC_BREAKPOINT);
	ASSERT_EQ(spec->config, 0xffff8000);
	ASSERT_EQ(spec->breakpoint_size, 8);
	ASSERT_EQ(spec->breakpoint_type, HW_BREAKPOINT_RW);
	ASSERT_STR_EQ(spec->alias, "x");
	ASSERT_TRUE(spec->exclude_user);
	ps_spec_list_deinit(&list);
}

TEST(spec, a_bare_breakpoint_is_four_bytes_read_or_written)
{
	struct ps_spec_list list = parse_one("mem:4096:u");
	ASSERT_EQ(list.specs[0].config, 4096);
	ASSERT_EQ(list.specs[0].breakpoint_size, 4);
	ASSERT_EQ(list.specs[0].breakpoint_type, HW_BREAKPOINT_RW);
	ASSERT_TRUE(list.specs[0].exclude_kernel);
	ps_spec_list_deinit(&list);
	list = parse_one("mem:0x10/alias=y/");
	ASSERT_EQ(list.specs[0].breakpoint_size, 4);
	ASSERT_STR_EQ(list.specs[0].alias, "y");
	ps_spec_list_deinit(&list);
	list = parse_one("mem:0x10:x");
	ASSERT_EQ(list.specs[0].breakpoint_size, sizeof(long));
	ASSERT_EQ(list.specs[0].breakpoint_type, HW_BREAKPOINT_X);
	ps_spec_list_deinit(&list);
}

TEST(spec, a_probe_has_function_offset_file_and_arguments)
{
	struct ps_spec_list list =
		parse_one("uprobe:f+0x1c@/usr/bin/x name=+0(%di):ustring n=%si:s32");
	const struct ps_spec *spec = &list.specs[0];
	ASSERT_EQ(spec->kind, PS_SPEC_PROBE);
	ASSERT_STR_EQ(spec->system, "uprobe");
	ASSERT_STR_EQ(spec->name, "f");
	ASSERT_EQ(spec->offset, 0x1c);
	ASSERT_STR_EQ(spec->file, "/usr/bin/x");
	ASSERT_STR_EQ(spec->args, "name=+0(%di):ustring n=%si:s32");
	ps_spec_list_deinit(&list);
}

TEST(spec, a_probe_with_quoted_file_takes_filter_and_attributes)
{
	struct ps_spec_list list = parse_one("uretprobe:f@\"/a b,c/x\"/arg1>0/stack/:u");
	ASSERT_STR_EQ(list.specs[0].file, "/a b,c/x");
	ASSERT_STR_EQ(list.specs[0].filter, "arg1>0");
	ASSERT_TRUE(list.specs[0].has_stack);
	ASSERT_NULL(list.specs[0].args);
	ps_spec_list_deinit(&list);
}

TEST(spec, a_quoted_name_keeps_the_pair_of_quotes_of_an_operator)
{
	struct ps_spec_list list = parse_one("uprobe:\"operator\"\" _km\"+4@./p");
	ASSERT_STR_EQ(list.specs[0].name, "operator\"\" _km");
	ASSERT_EQ(list.specs[0].offset, 4);
	ASSERT_STR_EQ(list.specs[0].file, "./p");
	ps_spec_list_deinit(&list);
}

TEST(spec, arguments_of_a_probe_end_before_a_filter_but_not_in_a_bit_field)
{
	struct ps_spec_list list = parse_one("kprobe:f+8 a=%di:b4@0/32 s=\\\"x/y\" /a>1/alias=z/");
	ASSERT_STR_EQ(list.specs[0].system, "kprobe");
	ASSERT_EQ(list.specs[0].offset, 8);
	ASSERT_NULL(list.specs[0].file);
	ASSERT_STR_EQ(list.specs[0].args, "a=%di:b4@0/32 s=\\\"x/y\"");
	ASSERT_STR_EQ(list.specs[0].filter, "a>1");
	ASSERT_STR_EQ(list.specs[0].alias, "z");
	ps_spec_list_deinit(&list);
}

TEST(spec, usdt_names_provider_and_name)
{
	struct ps_spec_list list = {};
	ASSERT_OK(ps_spec_parse("{usdt:python:gc__start@./py , cycles}", &list));
	ASSERT_EQ(list.nr_specs, 2);
	ASSERT_STR_EQ(list.specs[0].system, "usdt");
	ASSERT_STR_EQ(list.specs[0].name, "python:gc__start");
	ASSERT_STR_EQ(list.specs[0].file, "./py");
	ASSERT_NULL(list.specs[0].args);
	ps_spec_list_deinit(&list);
}

TEST(spec, profile_takes_the_options_of_the_command)
{
	static const char *const texts[] = {
		"profile/-F 997 -g/",	 "profile/-F997,-g/",	     "profile/--freq=997 stack/",
		"profile/freq=997 -g/u", "profile/-g --freq 997/:u",
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(texts); i++) {
		struct ps_spec_list list = parse_one(texts[i]);
		ASSERT_EQ(list.specs[0].kind, PS_SPEC_PROFILE);
		ASSERT_EQ(list.specs[0].freq, 997);
		ASSERT_TRUE(list.specs[0].has_stack);
		ps_spec_list_deinit(&list);
	}
	assert_refused("profile/-x 3/", 8, "profile takes -F HZ, -c N, -g and --max-stack N");
	assert_refused("profile/-F/", 8, "freq needs a value: freq=HZ");
}

TEST(spec, events_are_parted_by_commas_and_new_lines)
{
	struct ps_spec_list list = {};
	ASSERT_OK(ps_spec_parse(" cycles , cs\n\tsched:sched_switch/a>1,b/,\n faults \n", &list));
	ASSERT_EQ(list.nr_specs, 4);
	ASSERT_STR_EQ(list.specs[1].name, "cs");
	ASSERT_STR_EQ(list.specs[2].text, "sched:sched_switch/a>1,b/");
	ASSERT_STR_EQ(list.specs[3].text, "faults");
	ASSERT_EQ(list.specs[3].column, 42);
	ps_spec_list_deinit(&list);
}

TEST(spec, braces_make_groups_and_add_their_modifiers)
{
	struct ps_spec_list list = {};
	ASSERT_OK(ps_spec_parse("{cycles:u,instructions}:k,cs", &list));
	ASSERT_OK(ps_spec_parse("{ faults }", &list));
	ASSERT_EQ(list.nr_specs, 4);
	ASSERT_EQ(list.nr_groups, 2);
	const unsigned int groups[] = { 1, 1, 0, 2 };
	for (size_t i = 0; i < 4; i++)
		ASSERT_EQ(list.specs[i].group, groups[i]);
	ASSERT_STR_EQ(list.specs[0].modifiers, "uk");
	ASSERT_FALSE(list.specs[0].exclude_user || list.specs[0].exclude_kernel);
	ASSERT_TRUE(list.specs[0].exclude_hv);
	ASSERT_TRUE(list.specs[1].exclude_user);
	ASSERT_NULL(list.specs[2].modifiers);
	ps_spec_list_deinit(&list);
}

TEST(spec, modifiers_mean_what_they_mean_to_perf)
{
	static const struct {
		const char *text;
		bool user, kernel, hv, host, guest;
		uint8_t precise;
	} rows[] = {
		{ "cycles:u", false, true, true, false, false, 0 },
		{ "cycles:uk", false, false, true, false, false, 0 },
		{ "cycles:h", true, true, false, false, false, 0 },
		{ "cycles:G", false, false, false, true, false, 0 },
		{ "cycles:H", false, false, false, false, true, 0 },
		{ "cycles:GH", false, false, false, false, false, 0 },
		{ "cycles:ppp", false, false, false, false, true, 3 },
		{ "cycles:Gp", false, false, false, true, false, 1 },
		{ "cycles:uH", false, true, true, false, true, 0 },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(rows); i++) {
		struct ps_spec_list list = parse_one(rows[i].text);
		ASSERT_EQ(list.specs[0].exclude_user, rows[i].user);
		ASSERT_EQ(list.specs[0].exclude_kernel, rows[i].kernel);
		ASSERT_EQ(list.specs[0].exclude_hv, rows[i].hv);
		ASSERT_EQ(list.specs[0].exclude_host, rows[i].host);
		ASSERT_EQ(list.specs[0].exclude_guest, rows[i].guest);
		ASSERT_EQ(list.specs[0].precise_ip, rows[i].precise);
		ps_spec_list_deinit(&list);
	}
}

TEST(spec, what_is_wrong_is_shown_at_its_column)
{
	assert_refused("", 0, "an event is missing here");
	assert_refused("cycles,,cs", 6, "an event is missing after the comma");
	assert_refused("cycles, ", 6, "an event is missing after the comma");
	assert_refused("cycles cs", 7, "a comma is missing between the events");
	assert_refused("cycles:x", 7, "modifiers are letters of u k h G H p");
	assert_refused("cycles:pppp", 7, "p stands at most three times");
	assert_refused("sched:", 6, "a tracepoint's name is missing after the colon");
	assert_refused("sched:a:u/x/", 9, "modifiers stand at the end");
	assert_refused("sched:a/pid>1", 7,
		       "a closing slash is missing; filters, terms and attributes end with one");
	assert_refused("sched:a/c==\"x/", 11, "this quote is not closed");
	assert_refused("sched:a//stak/", 9, "unknown attribute stak; did you mean stack?");
	assert_refused("cycles/foo=1/", 7, "unknown attribute foo");
	assert_refused("cycles/period=1,aux/", 16,
		       "aux needs a trace of the processor (intel_pt, arm_spe) that leads the "
		       "event's group and fills an AUX area, and perfscope records no such traces");
	const char *own =
		"the raw data of a tracepoint or probe are its fields; all bytes of them are in "
		"event._raw without asking";
	assert_refused("sched:a//raw/", 9, own);
	assert_refused("uprobe:f@\"./p\"//raw/", 16, own);
	assert_refused("sched:a//alias/", 9, "alias needs a value: alias=NAME");
	assert_refused("sched:a//alias=1/", 15,
		       "an alias is a letter, then letters, digits and _ - . :");
	assert_refused("sched:a//stack=1/", 15, "stack takes no value");
	assert_refused("sched:a//stack,/", 14, "an attribute is missing after the comma");
	assert_refused("cycles/freq=0/", 12, "freq is to be a number from 1 to 4294967295");
	assert_refused("uprob:f@./prog", 7, "uprob is no kind of probe; did you mean uprobe?");
	assert_refused("sys:f@./prog", 5,
		       "sys is no kind of probe (uprobe, uretprobe and usdt have a file)");
	assert_refused("cycles/freq=1,period=1/", 14, "freq and period exclude each other");
	assert_refused("cycles/cpus=a/", 12, "cpus is to be a list of CPUs, as 0-3,8");
	assert_refused("{cycles", 0, "this brace is not closed");
	assert_refused("{cycles,{cs}}", 8, "groups do not stand in groups");
	assert_refused("cycles}", 6, "this brace was not opened");
	assert_refused("{}", 1, "an event is missing here");
	assert_refused("cpu-*", 0, "* and ? stand in names of tracepoints only, as sched:*");
	assert_refused("mem:x", 4,
		       "an address is to be a number of at most 64 bits, as 16 or 0x10");
	assert_refused("mem:8/3", 6, "a breakpoint is 1, 2, 4 or 8 bytes long");
	assert_refused("uprobe:f", 8, "the file is missing: FUNC@FILE");
	assert_refused("uprobe:f@", 9, "a file is missing after @");
	assert_refused("kprobe:f@/x", 8, "a kernel function is in no file");
	assert_refused("usdt:a@/x", 5, "usdt names a PROVIDER:NAME");
	assert_refused("kprobe:", 7, "a function is missing here");
	assert_refused("cycles;", 6, "this does not belong to an event");
}

TEST(spec, a_failure_leaves_the_list_as_it_was)
{
	struct ps_spec_list list = {};
	ASSERT_OK(ps_spec_parse("{cycles,cs}", &list));
	ASSERT_ERROR(ps_spec_parse("{faults},{cs", &list), PS_ERROR_USAGE, "not closed");
	ASSERT_EQ(list.nr_specs, 2);
	ASSERT_EQ(list.nr_groups, 1);
	ASSERT_STR_EQ(list.specs[1].name, "cs");
	ps_spec_list_deinit(&list);
}

TEST(spec, a_text_beyond_the_limit_is_refused)
{
	char *text = malloc(PS_SPEC_MAX_SIZE + 2);
	memset(text, 'a', PS_SPEC_MAX_SIZE + 1);
	text[PS_SPEC_MAX_SIZE + 1] = 0;
	struct ps_spec_list list = {};
	ASSERT_ERROR(ps_spec_parse(text, &list), PS_ERROR_USAGE, "at most 65536 bytes");
	text[PS_SPEC_MAX_SIZE] = 0;
	ASSERT_OK(ps_spec_parse(text, &list));
	ps_spec_list_deinit(&list);
	free(text);
}

TEST(spec, a_handler_is_named_by_system_and_name)
{
	char *name = ps_spec_handler_name("sched", "sched_switch");
	ASSERT_STR_EQ(name, "sched__sched_switch");
	free(name);
	name = ps_spec_handler_name(NULL, "cpu-clock.x:y");
	ASSERT_STR_EQ(name, "cpu_clock_x_y");
	free(name);
}
