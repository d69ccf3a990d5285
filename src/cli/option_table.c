// SPDX-License-Identifier: MIT
#include <perfscope/options.h>

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(struct ps_options, member)
#define MAX_MS 86400000 // a day

#define FLAG(letter, name, group, member, help)                                                    \
	{                                                                                          \
		letter, name, NULL, PS_OPTION_FLAG, PS_GROUP_##group, AT(member), 0, 0, help       \
	}
#define TEXT(letter, name, argument, group, member, help)                                          \
	{                                                                                          \
		letter, name, argument, PS_OPTION_TEXT, PS_GROUP_##group, AT(member), 0, 0, help   \
	}
#define NUMBER(letter, name, argument, group, member, min, max, help)                              \
	{                                                                                          \
		letter, name, argument, PS_OPTION_NUMBER, PS_GROUP_##group, AT(member), min, max,  \
			help                                                                       \
	}
#define VALUE(letter, name, argument, kind, group, member, help)                                   \
	{                                                                                          \
		letter, name, argument, PS_OPTION_##kind, PS_GROUP_##group, AT(member), 0, 0, help \
	}
#define LATER(letter, name)                                                                        \
	{                                                                                          \
		letter, name, NULL, PS_OPTION_LATER, PS_GROUP_NONE, 0, 0, 0, NULL                  \
	}

const struct ps_option ps_option_table[] = {
	VALUE('e', "event", "EVENT[,EVENT...]", EVENT, EVENTS, events,
	      "events to open, repeatable; perfscope list shows them"),
	VALUE('r', "region", "NAME=BEGIN..END", REGION, REGIONS, regions,
	      "total the counters of -e between two events of a thread, or in a function: "
	      "NAME=func:FUNC@FILE; repeatable"),
	FLAG('a', "all-cpus", TARGET, is_all_cpus, "observe all CPUs (the default)"),
	TEXT('C', "cpu", "LIST", TARGET, cpus, "observe these CPUs: 0-3,8"),
	TEXT('p', "pid", "LIST", TARGET, pids, "observe these processes, all their threads"),
	TEXT('t', "tid", "LIST", TARGET, tids, "observe these threads"),
	TEXT(0, "cgroup", "PATH", TARGET, cgroup, "observe a cgroup (version 2)"),
	VALUE(0, "run", "CMD...", RUN, TARGET, run,
	      "start and observe a program; takes all that follows"),
	FLAG(0, "inherit", CHILDREN, inherit, "follow children of the target"),
	NUMBER('i', "interval", "MS", INTERVAL, interval_ms, 1, MAX_MS,
	       "call __interval__, or print a summary where there is none"),
	NUMBER('F', "freq", "HZ", SAMPLING, freq, 1, UINT32_MAX,
	       "sample the counters of -e so many times a second"),
	NUMBER('c', "count", "N", SAMPLING, period, 1, INT64_MAX,
	       "sample the counters of -e every N occurrences"),
	{ 'g', "call-graph", NULL, PS_OPTION_STACK, PS_GROUP_STACK, AT(stack), 0, 0,
	  "call stacks of tracepoints and samples; --call-graph=fp (the default), dwarf[,SIZE] or lbr" },
	FLAG(0, "user-callchain", STACK, with_user_stack,
	     "with the user's part of stacks (the default)"),
	{ 0, "no-user-callchain", NULL, PS_OPTION_FLAG_OFF, PS_GROUP_STACK, AT(with_user_stack), 0,
	  0, "without it" },
	FLAG(0, "kernel-callchain", STACK, with_kernel_stack,
	     "with the kernel's part of stacks (the default)"),
	{ 0, "no-kernel-callchain", NULL, PS_OPTION_FLAG_OFF, PS_GROUP_STACK, AT(with_kernel_stack),
	  0, 0, "without it" },
	NUMBER(0, "max-stack", "N", STACK, max_stack, 1, UINT16_MAX, "at most N addresses a stack"),
	FLAG(0, "debuginfod", NONE, has_debuginfod,
	     "fetch debug files that are not here from the servers of DEBUGINFOD_URLS"),
	VALUE('m', "mmap-pages", "N", SIZE, RING, ring_bytes,
	      "ring size per CPU, in pages or as 512K; a power of two (default 4M)"),
	NUMBER(0, "watermark", "PERCENT", WATERMARK, watermark_percent, 1, 100,
	       "wake up when a ring is so full (default 25)"),
	NUMBER(0, "latency", "MS", LATENCY, latency_ms, 1, 60000,
	       "at most so long from event to handler (default 100); ordering takes 6 of them"),
	FLAG(0, "order", ORDER, is_ordered,
	     "records of all CPUs in the order of their time (the default)"),
	{ 0, "no-order", NULL, PS_OPTION_FLAG_OFF, PS_GROUP_ORDER, AT(is_ordered), 0, 0,
	  "records ring by ring, without delay" },
	NUMBER('N', "exit-n", "N", MAX_EVENTS, max_events, 1, UINT64_MAX, "stop after N events"),
	VALUE(0, "duration", "SECONDS", SECONDS, DURATION, duration_ns, "stop after this time"),
	VALUE(0, "on-error", "continue|stop", ON_ERROR, ON_ERROR, stop_on_error,
	      "what an exception in a handler does (default continue)"),
	FLAG(0, "strict", NONE, is_strict, "a counter that this machine lacks ends the run"),
	VALUE(0, "clock", "NAME", CLOCK, CLOCK, clock,
	      "clock of _time: monotonic (the default), monotonic_raw, boottime, realtime, "
	      "tai, perf"),
	FLAG(0, "tsc", CLOCK, is_tsc, "_time is the time stamp counter"),
	VALUE(0, "clock-offset", "NS", SIGNED, CLOCK_OFFSET, clock_offset_ns, "add this to _time"),
	FLAG(0, "exclude-user", NONE, exclude_user, "leave out user space, for every event"),
	FLAG(0, "exclude-kernel", NONE, exclude_kernel, "leave out the kernel, for every event"),
	FLAG(0, "exclude-host", NONE, exclude_host, "leave out the host, for every event"),
	FLAG(0, "exclude-guest", NONE, exclude_guest, "leave out guests, for every event"),
	TEXT('o', "output", "FILE", OUTPUT, output, "write stdout to FILE; SIGHUP opens it anew"),
	FLAG('q', "quiet", VERBOSITY, is_quiet, "say errors only"),
	VALUE('v', "verbose", NULL, COUNT, VERBOSITY, verbosity,
	      "say more; -vv shows each raw record"),
	TEXT(0, "user", "NAME", USER, user,
	     "become this user once the events are open, before the script is "
	     "loaded; the program of --run stays what it was"),
	NUMBER(0, "usage", "MS", USAGE, usage_ms, 1, MAX_MS,
	       "print perfscope's own CPU share, memory, events, lost, held back"),
	FLAG('h', "help", NONE, wants_help, "with -e: print a script template; else this help"),
	LATER(0, "input"),
	LATER(0, "save"),
	{ 0 },
};

const char *ps_option_title(const struct ps_option *option, char *buffer, size_t size)
{
	if (option->letter && option->name)
		snprintf(buffer, size, "-%c/--%s", option->letter, option->name);
	else if (option->letter)
		snprintf(buffer, size, "-%c", option->letter);
	else
		snprintf(buffer, size, "--%s", option->name);
	return buffer;
}

#define HELP_COLUMN 28
#define HELP_WIDTH 80

/** Write @text from HELP_COLUMN on, broken at blanks; the cursor stands at @column. */
static void write_wrapped(FILE *file, size_t column, const char *text)
{
	if (column >= HELP_COLUMN - 1) {
		putc('\n', file);
		column = 0;
	}
	fprintf(file, "%*s", (int)(HELP_COLUMN - column), "");
	column = HELP_COLUMN;
	while (*text) {
		size_t length = strcspn(text, " ");
		if (column > HELP_COLUMN && column + 1 + length > HELP_WIDTH) {
			fprintf(file, "\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		}
		column +=
			fprintf(file, "%s%.*s", column > HELP_COLUMN ? " " : "", (int)length, text);
		text += length;
		text += strspn(text, " ");
	}
	putc('\n', file);
}

static void write_option(FILE *file, const struct ps_option *option)
{
	char left[64], letter[8] = "    ";
	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	int column = snprintf(left, sizeof(left), "  %s--%s%s%s", letter, option->name,
			      option->argument ? " " : "", option->argument ?: "");
	fputs(left, file);
	write_wrapped(file, column, option->help);
}

void ps_options_help(FILE *file)
{
	fputs("Usage: perfscope python [OPTION...] -e EVENT[,EVENT...] [--] SCRIPT [ARG...]\n"
	      "       perfscope python [OPTION...] -e EVENT... SCRIPT [ARG...] --run CMD...\n"
	      "       perfscope python -e EVENT... --help      print a script template\n"
	      "\n"
	      "Run a Python script on kernel events: its function sys__name(event) is called for\n"
	      "each event of sys:name, __sample__(event) for those without a function.\n"
	      "\n"
	      "SCRIPT is a .py file, an extension module, a module name or a shipped script.\n"
	      "Options may also stand behind SCRIPT; those not known here are the script's, and\n"
	      "so are all behind --: perfscope python -- SCRIPT -h shows the script's own help.\n"
	      "\n",
	      file);
	for (const struct ps_option *option = ps_option_table; option->letter || option->name;
	     option++) {
		if (option->help)
			write_option(file, option);
	}
}

/** Write @text with what roff would take for itself escaped. */
static void write_roff(FILE *file, const char *text)
{
	for (; *text; text++) {
		if (*text == '-' || *text == '\\')
			putc('\\', file);
		putc(*text, file);
	}
}

void ps_options_man(FILE *file)
{
	for (const struct ps_option *option = ps_option_table; option->letter || option->name;
	     option++) {
		if (!option->help)
			continue;
		fputs(".TP\n", file);
		if (option->letter)
			fprintf(file, "\\fB\\-%c\\fR, ", option->letter);
		fputs("\\fB\\-\\-", file);
		write_roff(file, option->name);
		fputs("\\fR", file);
		if (option->argument)
			fprintf(file, " \\fI%s\\fR", option->argument);
		putc('\n', file);
		write_roff(file, option->help);
		putc('\n', file);
	}
}
