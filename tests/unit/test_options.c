// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/options.h>

#define ARGV(...)                                                                                  \
	(char *[])                                                                                 \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static struct ps_options parse(char **argv)
{
	struct ps_options options;
	ASSERT_OK(ps_options_parse(argv, &options));
	return options;
}

#define ASSERT_USAGE(text, ...)                                                                    \
	do {                                                                                       \
		struct ps_options options_;                                                        \
		ASSERT_ERROR(ps_options_parse(ARGV(__VA_ARGS__), &options_), PS_ERROR_USAGE,       \
			     text);                                                                \
	} while (0)

#define ASSERT_CHECK(text, ...)                                                                    \
	do {                                                                                       \
		struct ps_options options_ = parse(ARGV(__VA_ARGS__));                             \
		ASSERT_ERROR(ps_options_check(&options_), PS_ERROR_USAGE, text);                   \
		ps_options_deinit(&options_);                                                      \
	} while (0)

TEST(options, defaults_are_those_of_the_help)
{
	struct ps_options options = parse(ARGV("-e", "cycles", "x.py"));
	ASSERT_EQ(options.latency_ms, 100);
	ASSERT_TRUE(options.is_ordered);
	ASSERT_EQ(options.clock, PS_CLOCK_MONOTONIC);
	ASSERT_EQ(options.ring_bytes, 0);
	ASSERT_EQ(options.nr_events, 1);
	ASSERT_STR_EQ(options.events[0], "cycles");
	ASSERT_EQ(options.nr_script, 1);
	ASSERT_STR_EQ(options.script[0], "x.py");
	ASSERT_NULL(options.script[1]);
	ASSERT_OK(ps_options_check(&options));
	ps_options_deinit(&options);
}

TEST(options, every_form_of_a_value_is_read)
{
	struct ps_options options = parse(ARGV("-e", "a", "-eb", "--event=c=1", "--event", "d",
					       "-i1000", "-vvqN5", "--duration=.5", "x.py"));
	ASSERT_EQ(options.nr_events, 4);
	ASSERT_STR_EQ(options.events[1], "b");
	ASSERT_STR_EQ(options.events[2], "c=1");
	ASSERT_STR_EQ(options.events[3], "d");
	ASSERT_EQ(options.interval_ms, 1000);
	ASSERT_EQ(options.verbosity, 2);
	ASSERT_TRUE(options.is_quiet);
	ASSERT_EQ(options.max_events, 5);
	ASSERT_EQ(options.duration_ns, 500000000);
	ps_options_deinit(&options);
}

TEST(options, known_ones_behind_the_script_are_ours)
{
	struct ps_options options =
		parse(ARGV("x.py", "-e", "cycles", "--color", "-x", "file", "-vx", "-v", "-"));
	ASSERT_EQ(options.nr_events, 1);
	ASSERT_EQ(options.verbosity, 1);
	ASSERT_EQ(options.nr_script, 6);
	ASSERT_STR_EQ(options.script[1], "--color");
	ASSERT_STR_EQ(options.script[2], "-x");
	ASSERT_STR_EQ(options.script[3], "file");
	ASSERT_STR_EQ(options.script[4], "-vx");
	ASSERT_STR_EQ(options.script[5], "-");
	ps_options_deinit(&options);
}

TEST(options, all_behind_two_dashes_are_the_scripts)
{
	struct ps_options options = parse(ARGV("-e", "a", "--", "x.py", "-v", "--run", "ls", "--"));
	ASSERT_EQ(options.verbosity, 0);
	ASSERT_NULL(options.run);
	ASSERT_EQ(options.nr_script, 5);
	ASSERT_STR_EQ(options.script[4], "--");
	ps_options_deinit(&options);
}

TEST(options, two_dashes_behind_the_script_are_taken_away)
{
	struct ps_options options = parse(ARGV("x.py", "-v", "--", "-v", "--event"));
	ASSERT_EQ(options.verbosity, 1);
	ASSERT_EQ(options.nr_script, 3);
	ASSERT_STR_EQ(options.script[1], "-v");
	ASSERT_STR_EQ(options.script[2], "--event");
	ps_options_deinit(&options);
}

TEST(options, run_takes_all_that_follows)
{
	struct ps_options options =
		parse(ARGV("-e", "a", "x.py", "arg", "--run", "ls", "-v", "--"));
	ASSERT_EQ(options.nr_script, 2);
	ASSERT_EQ(options.verbosity, 0);
	ASSERT_STR_EQ(options.run[0], "ls");
	ASSERT_STR_EQ(options.run[1], "-v");
	ASSERT_STR_EQ(options.run[2], "--");
	ASSERT_NULL(options.run[3]);
	ps_options_deinit(&options);
	options = parse(ARGV("x.py", "--run=ls", "-l"));
	ASSERT_STR_EQ(options.run[0], "ls");
	ASSERT_STR_EQ(options.run[1], "-l");
	ps_options_deinit(&options);
}

TEST(options, unknown_one_before_the_script_names_the_nearest)
{
	ASSERT_USAGE("--intervall: no such option; did you mean --interval?", "--intervall=3", "x");
	ASSERT_USAGE("-x: no such option; perfscope python -h lists them", "-x", "x.py");
	ASSERT_USAGE("--inter: no such option; did you mean --interval?", "--inter", "3");
}

TEST(options, later_ones_are_refused_everywhere)
{
	ASSERT_USAGE("-g/--call-graph: 'x' is none of fp, dwarf, dwarf,SIZE, lbr", "--call-graph=x",
		     "x.py");
	ASSERT_USAGE("--save: not in this version", "x.py", "--save", "f");
	struct ps_options options = parse(ARGV("--", "x.py", "-F", "99"));
	ASSERT_EQ(options.nr_script, 3);
	ps_options_deinit(&options);
}

TEST(options, stacks_are_copied_in_the_size_asked_for)
{
	struct ps_options options = parse(ARGV("--call-graph=dwarf,65528", "x.py"));
	ASSERT_EQ(options.stack, PS_STACK_DWARF);
	ASSERT_EQ(options.stack_bytes, 65528);
	ps_options_deinit(&options);
	options = parse(ARGV("--call-graph=dwarf,1024", "--call-graph=dwarf", "x.py"));
	ASSERT_EQ(options.stack, PS_STACK_DWARF);
	ASSERT_EQ(options.stack_bytes, 0);
	ps_options_deinit(&options);
	const char *sizes[] = { "0", "12", "65536", "8k", "", "-8" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(sizes); i++) {
		char option[64], message[256];
		snprintf(option, sizeof(option), "--call-graph=dwarf,%s", sizes[i]);
		snprintf(message, sizeof(message),
			 "-g/--call-graph: '%s' is not a size of a stack's copy: bytes, a multiple "
			 "of 8, at most 65528, which is what a record can hold",
			 sizes[i]);
		ASSERT_USAGE(message, option, "x.py");
	}
	ASSERT_USAGE("-g/--call-graph: fp takes no size, dwarf does", "--call-graph=fp,8", "x.py");
}

TEST(options, missing_and_needless_values_are_told)
{
	ASSERT_USAGE("-e/--event needs EVENT[,EVENT...]", "-e");
	ASSERT_USAGE("-i/--interval needs MS", "x.py", "--interval");
	ASSERT_USAGE("--run needs CMD...", "x.py", "--run");
	ASSERT_USAGE("--strict takes no value", "--strict=1");
	ASSERT_USAGE("-e/--event: its value is empty", "-e", "");
}

TEST(options, numbers_outside_their_range_are_told)
{
	ASSERT_USAGE("-i/--interval: '0' is not a whole number from 1 to 86400000", "-i0");
	ASSERT_USAGE("-i/--interval: '1.5' is not", "-i", "1.5");
	ASSERT_USAGE("--watermark: '101' is not a whole number from 1 to 100", "--watermark=101");
	ASSERT_USAGE("-N/--exit-n: '-1' is not a whole number of 1 or more", "-N", "-1");
	ASSERT_USAGE("-N/--exit-n: '18446744073709551616'", "-N", "18446744073709551616");
	ASSERT_USAGE("--duration: '0' is not a number of seconds", "--duration", "0");
	ASSERT_USAGE("--duration: 'nan' is not", "--duration", "nan");
	ASSERT_USAGE("--clock-offset: '1s' is not", "--clock-offset", "1s");
	ASSERT_USAGE("--on-error: 'abort' is neither continue nor stop", "--on-error=abort");
}

TEST(options, signed_offset_takes_both_signs)
{
	struct ps_options options = parse(ARGV("--clock-offset", "-5", "x.py"));
	ASSERT_EQ(options.clock_offset_ns, -5);
	ps_options_deinit(&options);
}

static uint64_t ring_bytes(const char *size, bool is_rounded)
{
	struct ps_options options = parse(ARGV("-m", (char *)size, "x.py"));
	ASSERT_EQ(options.is_ring_rounded, is_rounded);
	uint64_t bytes = options.ring_bytes;
	ps_options_deinit(&options);
	return bytes;
}

TEST(options, each_exclusion_stands_for_itself)
{
	static char *const names[] = { "--exclude-user", "--exclude-kernel", "--exclude-host",
				       "--exclude-guest" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(names); i++) {
		struct ps_options options = parse(ARGV("-ea", names[i], "x.py"));
		ASSERT_EQ(options.exclude_user, i == 0);
		ASSERT_EQ(options.exclude_kernel, i == 1);
		ASSERT_EQ(options.exclude_host, i == 2);
		ASSERT_EQ(options.exclude_guest, i == 3);
		ps_options_deinit(&options);
	}
}

TEST(options, ring_sizes_are_pages_or_bytes_rounded_up)
{
	uint64_t page = sysconf(_SC_PAGESIZE);
	ASSERT_EQ(ring_bytes("3", true), 4 * page);
	ASSERT_EQ(ring_bytes("4", false), 4 * page);
	ASSERT_EQ(ring_bytes("512K", false), 524288);
	ASSERT_EQ(ring_bytes("513k", true), 1048576);
	ASSERT_EQ(ring_bytes("4M", false), 4194304);
	ASSERT_EQ(ring_bytes("1G", false), 1073741824);
	ASSERT_EQ(ring_bytes("1B", true), page);
}

TEST(options, ring_sizes_that_cannot_be_say_why)
{
	ASSERT_USAGE(
		"-m/--mmap-pages: 100000000 is too large, a ring has at most 1G (262144 pages)",
		"-m", "100000000");
	ASSERT_USAGE("is too large", "-m", "18446744073709551615G");
	ASSERT_USAGE("-m/--mmap-pages: '0' is not a size", "-m", "0");
	ASSERT_USAGE("-m/--mmap-pages: '4X' is not a size", "-m", "4X");
	ASSERT_USAGE("-m/--mmap-pages: '4MB' is not a size", "-m", "4MB");
}

TEST(options, order_can_be_turned_off_and_on)
{
	struct ps_options options = parse(ARGV("--no-order", "x.py"));
	ASSERT_FALSE(options.is_ordered);
	ps_options_deinit(&options);
	options = parse(ARGV("--no-order", "--order", "x.py"));
	ASSERT_TRUE(options.is_ordered);
	ps_options_deinit(&options);
}

TEST(options, help_is_an_option_or_stands_for_the_script)
{
	struct ps_options options = parse(ARGV("-e", "a", "--help"));
	ASSERT_TRUE(options.wants_help);
	ps_options_deinit(&options);
	options = parse(ARGV("-e", "a", "help"));
	ASSERT_TRUE(options.wants_help);
	ps_options_deinit(&options);
	options = parse(ARGV("-e", "a", "x.py", "help"));
	ASSERT_FALSE(options.wants_help);
	ps_options_deinit(&options);
}

TEST(options, check_names_what_is_missing_or_too_much)
{
	ASSERT_CHECK("no SCRIPT; perfscope python -h shows how", "-e", "a");
	ASSERT_CHECK("no SCRIPT before --run, which takes all that follows", "--run", "x.py");
	ASSERT_CHECK("no event: give -e EVENT, or __options__ in the script", "x.py");
	ASSERT_CHECK("-a and -p exclude each other", "-a", "-p1", "x.py");
	ASSERT_CHECK("-F and -c exclude each other", "-F99", "-c3", "x.py");
	ASSERT_CHECK("-t and --run exclude each other", "-t1", "x.py", "--run", "ls");
	ASSERT_CHECK("--tsc needs the clock perf", "--tsc", "--clock=tai", "-ea", "x.py");
}

TEST(options, time_stamp_counter_brings_the_clock_that_it_needs)
{
	struct ps_options options = parse(ARGV("-e", "a", "--tsc", "x.py"));
	ASSERT_OK(ps_options_check(&options));
	ASSERT_EQ(options.clock, PS_CLOCK_PERF);
	ps_options_deinit(&options);
}

TEST(options, process_and_thread_lists_go_together)
{
	struct ps_options options = parse(ARGV("-e", "a", "-p1", "-t2", "-C0", "x.py"));
	ASSERT_OK(ps_options_check(&options));
	ps_options_deinit(&options);
}

TEST(options, defaults_of_the_script_stand_below_the_command_line)
{
	struct ps_options options = parse(ARGV("-i", "5", "-a", "x.py"));
	ASSERT_OK(ps_options_add_defaults(
		&options, "-e 'sched:sched_switch/pid > 1/' -i 1000 -p 1 -N 7 -e b", "x.py"));
	ASSERT_EQ(options.interval_ms, 5);
	ASSERT_EQ(options.max_events, 7);
	ASSERT_NULL(options.pids);
	ASSERT_EQ(options.nr_events, 2);
	ASSERT_STR_EQ(options.events[0], "sched:sched_switch/pid > 1/");
	ASSERT_STR_EQ(options.events[1], "b");
	ASSERT_OK(ps_options_check(&options));
	ps_options_deinit(&options);
}

TEST(options, events_of_the_command_line_replace_the_scripts)
{
	struct ps_options options = parse(ARGV("-e", "mine", "x.py"));
	ASSERT_OK(ps_options_add_defaults(&options, "-e a -e b --run ls -l", "x.py"));
	ASSERT_EQ(options.nr_events, 1);
	ASSERT_STR_EQ(options.events[0], "mine");
	ASSERT_STR_EQ(options.run[1], "-l");
	ps_options_deinit(&options);
}

TEST(options, faults_in_the_scripts_defaults_name_the_script)
{
	static const struct {
		const char *text, *message;
	} faults[] = {
		{ "-e 'a", "__options__ of x.py: a quote is not closed" },
		{ "-e a other.py", "__options__ of x.py: other.py: not an option" },
		{ "--evnt a",
		  "__options__ of x.py: --evnt: no such option; did you mean --event?" },
		{ "-i x", "__options__ of x.py: -i/--interval: 'x' is not" },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(faults); i++) {
		struct ps_options options = parse(ARGV("x.py"));
		ASSERT_ERROR(ps_options_add_defaults(&options, faults[i].text, "x.py"),
			     PS_ERROR_USAGE, faults[i].message);
		ps_options_deinit(&options);
	}
}

TEST(words, are_split_as_a_shell_does)
{
	static const char text[] = " a  'b c'd \"e\\\"f\\n\" g\\ h ''\t'\\'";
	static const char *const expected[] = { "a", "b cd", "e\"f\\n", "g h", "", "\\", NULL };
	char **words;
	ASSERT_OK(ps_words_split(text, &words));
	for (size_t i = 0; expected[i]; i++)
		ASSERT_STR_EQ(words[i], expected[i]);
	ASSERT_NULL(words[PS_ARRAY_SIZE(expected) - 1]);
	ps_words_destroy(words);
}

TEST(words, none_are_an_empty_list)
{
	char **words;
	ASSERT_OK(ps_words_split(" \n", &words));
	ASSERT_NULL(words[0]);
	ps_words_destroy(words);
}

static size_t count_lines(const char *text, const char *start)
{
	size_t nr = 0;
	for (const char *at = text; (at = strstr(at, start)); at += strlen(start))
		nr++;
	return nr;
}

TEST(options, help_and_man_page_list_the_same_options)
{
	char *help = NULL, *man = NULL;
	size_t size;
	FILE *file = open_memstream(&help, &size);
	ps_options_help(file);
	fclose(file);
	file = open_memstream(&man, &size);
	ps_options_man(file);
	fclose(file);
	size_t nr = 0;
	for (const struct ps_option *option = ps_option_table; option->name; option++)
		nr += option->help != NULL;
	ASSERT_EQ(count_lines(help, "\n  -") + count_lines(help, "\n      --"), nr);
	ASSERT_EQ(count_lines(man, ".TP\n"), nr);
	free(help);
	free(man);
}
