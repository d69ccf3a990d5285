// SPDX-License-Identifier: MIT
/**
 * Options: the command line of `perfscope python`, read by one table that also gives --help and the man page.
 */
#ifndef PERFSCOPE_OPTIONS_H
#define PERFSCOPE_OPTIONS_H

#include <perfscope/clock.h>
#include <perfscope/error.h>
#include <perfscope/source.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** The kernel lists a ring's pages in one block of at most 4 MiB, of which it needs a bit itself. */
#define PS_RING_MAX_BYTES (1ULL << 30)

enum ps_option_kind {
	PS_OPTION_FLAG,	    // bool: true
	PS_OPTION_FLAG_OFF, // bool: false
	PS_OPTION_COUNT,    // uint64_t: one more each time
	PS_OPTION_TEXT,	    // const char *
	PS_OPTION_EVENT,    // appended to events
	PS_OPTION_REGION,   // appended to regions
	PS_OPTION_NUMBER,   // uint64_t from min to max
	PS_OPTION_SIGNED,   // int64_t
	PS_OPTION_SECONDS,  // uint64_t: seconds as a decimal fraction, in ns
	PS_OPTION_SIZE,	    // ring_bytes and is_ring_rounded
	PS_OPTION_CLOCK,    // enum ps_clock_kind
	PS_OPTION_ON_ERROR, // bool: true for stop
	PS_OPTION_STACK,    // enum ps_stack_kind: its value is optional, behind "="; stack_bytes
	PS_OPTION_RUN,	    // char **: all words that follow
	PS_OPTION_LATER,    // known, refused: it must not become the script's
};

/** Options of one group replace each other: what the command line gives, the script's defaults do not. */
enum ps_option_group {
	PS_GROUP_NONE,
	PS_GROUP_EVENTS,
	PS_GROUP_TARGET,
	PS_GROUP_CHILDREN,
	PS_GROUP_INTERVAL,
	PS_GROUP_SAMPLING,
	PS_GROUP_STACK,
	PS_GROUP_RING,
	PS_GROUP_WATERMARK,
	PS_GROUP_LATENCY,
	PS_GROUP_ORDER,
	PS_GROUP_MAX_EVENTS,
	PS_GROUP_DURATION,
	PS_GROUP_ON_ERROR,
	PS_GROUP_CLOCK,
	PS_GROUP_CLOCK_OFFSET,
	PS_GROUP_OUTPUT,
	PS_GROUP_VERBOSITY,
	PS_GROUP_USER,
	PS_GROUP_USAGE,
	PS_GROUP_REGIONS,
};

struct ps_option {
	char letter;	      // 0: none
	const char *name;     // without the dashes
	const char *argument; // its name in help; NULL: takes none
	enum ps_option_kind kind;
	enum ps_option_group group;
	size_t offset; // of its value in struct ps_options
	uint64_t min, max;
	const char *help;
};

struct ps_options {
	const char **events; // each -e, in order; the texts are borrowed from argv or from defaults
	size_t nr_events;
	const char **regions; // each -r, the same
	size_t nr_regions;
	bool is_all_cpus;
	const char *cpus, *pids, *tids, *cgroup; // as typed, NULL: not given
	char **run;				 // command of --run, ends with NULL; NULL: none
	bool inherit;
	uint64_t interval_ms; // 0: none
	uint64_t ring_bytes;  // 0: not given; a power of two
	bool is_ring_rounded;
	uint64_t watermark_percent; // 0: not given
	uint64_t latency_ms;
	bool is_ordered;
	uint64_t freq, period;	  // -F, -c: 0, not given
	enum ps_stack_kind stack; // -g
	uint32_t stack_bytes;	  // --call-graph=dwarf,SIZE; 0: not given
	bool with_user_stack, with_kernel_stack;
	uint64_t max_stack; // 0: the kernel's
	bool has_debuginfod;
	uint64_t max_events;  // 0: no limit
	uint64_t duration_ns; // 0: no limit
	bool stop_on_error, is_strict;
	enum ps_clock_kind clock;
	bool is_tsc;
	int64_t clock_offset_ns;
	bool exclude_user, exclude_kernel, exclude_host, exclude_guest;
	const char *output; // NULL: stdout stays
	uint64_t verbosity;
	bool is_quiet;
	const char *user;  // NULL: stay who we are
	uint64_t usage_ms; // 0: none
	bool wants_help;
	char **script;	  // SCRIPT and its arguments, ends with NULL; the words are borrowed
	size_t nr_script; // 0: no SCRIPT
	uint32_t given;	  // bit of each group that was given
	char **defaults;  // words of the script's __options__, owned; ends with NULL
};

/**
 * Read @argv, which starts behind the word `python` and ends with NULL; it is borrowed by @ret.
 *
 * Fails with PS_ERROR_USAGE. What it takes to run (a script, events, one target) is checked by ps_options_check.
 */
struct ps_error *ps_options_parse(char **argv, struct ps_options *ret);

/** Read @text, the `__options__` of @script, as defaults below what was parsed already. */
struct ps_error *ps_options_add_defaults(struct ps_options *options, const char *text,
					 const char *script);

/** Whether @options can be run; PS_ERROR_USAGE says what is missing or does not go together. */
struct ps_error *ps_options_check(struct ps_options *options);

void ps_options_deinit(struct ps_options *options);

/** All options, in the order of the help; a row whose letter and name are both 0 ends it. */
extern const struct ps_option ps_option_table[];

/** Write the help of `perfscope python`. */
void ps_options_help(FILE *file);

/** Write the options as a list for the man page (roff, man(7)). */
void ps_options_man(FILE *file);

/**
 * Store @value, which @option takes from the command line, into @options; NULL where it takes none.
 *
 * PS_ERROR_USAGE names the option, the value and what it may be.
 */
struct ps_error *ps_option_store(const struct ps_option *option, const char *value,
				 struct ps_options *options);

/** "-i/--interval", for messages; in @buffer of @size bytes, which is returned. */
const char *ps_option_title(const struct ps_option *option, char *buffer, size_t size);

/**
 * Split @text into words as a shell does: blanks, '...', "..." and \ are understood, nothing is expanded.
 *
 * The caller frees @ret with ps_words_destroy; it ends with NULL.
 */
struct ps_error *ps_words_split(const char *text, char ***ret);
void ps_words_destroy(char **words); // takes NULL

#endif
