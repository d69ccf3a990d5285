// SPDX-License-Identifier: MIT
/**
 * The parser of one event: the names of each kind, and what may stand behind them.
 */
#include "counter_table.h"
#include "spec_parse.h"

#include <ctype.h>
#include <linux/hw_breakpoint.h>
#include <string.h>

/** Move over name characters; "::" is one of them (PMU::EVENT of libpfm4), ':' is not. */
static void skip_word(struct ps_reader *reader)
{
	for (;;) {
		const char *at = reader->text + reader->at;
		if (at[0] == ':' && at[1] == ':' && isalnum((unsigned char)at[2]))
			reader->at += 2;
		else if (isalnum((unsigned char)at[0]) || (at[0] && strchr("_.-*?", at[0])))
			reader->at++;
		else
			return;
	}
}

/** Parse "/attributes/" parts that follow each other, the reader behind the opening slash. */
static struct ps_error *parse_sections(struct ps_reader *reader, size_t opening,
				       struct ps_spec *spec)
{
	do {
		size_t slash;
		struct ps_error *error = ps_reader_find_slash(reader, reader->at, opening, &slash);
		if (!error)
			error = ps_spec_parse_attributes(reader, reader->at, slash, spec);
		if (error)
			return error;
		opening = slash;
		reader->at = slash + 1;
	} while (!ps_spec_is_end(ps_reader_peek(reader)) && ps_reader_peek(reader) != ':');
	return NULL;
}

/** Parse "/FILTER/[ATTR/...]", the reader at the first slash. */
static struct ps_error *parse_filter(struct ps_reader *reader, struct ps_spec *spec)
{
	size_t opening = reader->at, start = opening + 1, slash;
	struct ps_error *error = ps_reader_find_slash(reader, start, opening, &slash);
	if (error)
		return error;
	size_t end = slash;
	ps_reader_trim(reader, &start, &end);
	if (start < end)
		error = ps_reader_copy(reader, start, end, &spec->filter);
	if (error)
		return error;
	reader->at = slash + 1;
	if (ps_spec_is_end(ps_reader_peek(reader)) || ps_reader_peek(reader) == ':')
		return NULL;
	return parse_sections(reader, slash, spec);
}

/** Parse "/terms,attributes/[MODIFIERS]" of a counter, the reader at the first slash. */
static struct ps_error *parse_terms(struct ps_reader *reader, struct ps_spec *spec)
{
	size_t opening = reader->at++, slash;
	struct ps_error *error = ps_reader_find_slash(reader, reader->at, opening, &slash);
	if (!error)
		error = ps_spec_parse_attributes(reader, reader->at, slash, spec);
	if (error)
		return error;
	reader->at = slash + 1;
	if (ps_spec_is_end(ps_reader_peek(reader)) || ps_reader_peek(reader) == ':')
		return NULL;
	return ps_spec_parse_modifiers(reader, spec, 1);
}

struct ps_error *ps_spec_parse_tail(struct ps_reader *reader, struct ps_spec *spec)
{
	struct ps_error *error = NULL;
	if (ps_reader_peek(reader) == '/') {
		bool has_filter = spec->kind == PS_SPEC_TRACEPOINT || spec->kind == PS_SPEC_PROBE;
		error = has_filter ? parse_filter(reader, spec) : parse_terms(reader, spec);
	}
	if (!error && ps_reader_peek(reader) == ':') {
		reader->at++;
		error = ps_spec_parse_modifiers(reader, spec, 1);
	}
	if (error || ps_spec_is_end(ps_reader_peek(reader)))
		return error;
	if (ps_reader_peek(reader) == '/')
		return ps_reader_error(reader, reader->at, "modifiers stand at the end");
	if (ps_reader_peek(reader) == '@' && spec->kind == PS_SPEC_TRACEPOINT)
		return ps_spec_unknown_probe(reader, spec);
	return ps_reader_error(reader, reader->at, "this does not belong to an event");
}

/** Parse "mem:ADDR[/LEN][:rwx]"; what stands behind it is the tail of any counter. */
static struct ps_error *parse_breakpoint(struct ps_reader *reader, struct ps_spec *spec)
{
	spec->kind = PS_SPEC_BREAKPOINT;
	reader->at += strlen("mem:");
	struct ps_error *error = ps_reader_number(reader, "an address", &spec->config);
	if (error)
		return error;
	const char *at = reader->text + reader->at;
	size_t column = ++reader->at;
	if (at[0] != '/' || !isdigit((unsigned char)at[1]))
		reader->at--;
	else if ((error = ps_reader_number(reader, "a length", &spec->breakpoint_size)))
		return error;
	else if (!spec->breakpoint_size || spec->breakpoint_size > 8 ||
		 spec->breakpoint_size & (spec->breakpoint_size - 1))
		return ps_reader_error(reader, column, "a breakpoint is 1, 2, 4 or 8 bytes long");
	at = reader->text + reader->at;
	size_t nr = at[0] == ':' ? strspn(at + 1, "rwx") : 0;
	for (size_t i = 1; i <= nr; i++)
		spec->breakpoint_type |= at[i] == 'r'	? HW_BREAKPOINT_R
					 : at[i] == 'w' ? HW_BREAKPOINT_W
							: HW_BREAKPOINT_X;
	reader->at += nr ? nr + 1 : 0;
	if (!spec->breakpoint_type)
		spec->breakpoint_type = HW_BREAKPOINT_RW;
	// Kernels want the size of a word for execution, whatever the instruction's.
	if (!spec->breakpoint_size)
		spec->breakpoint_size = spec->breakpoint_type == HW_BREAKPOINT_X ? sizeof(long) : 4;
	return ps_spec_parse_tail(reader, spec);
}

/** The number of rHEX; false where @word is no such thing. */
static bool parse_raw(const char *word, uint64_t *ret)
{
	if (word[0] != 'r')
		return false;
	const char *digits = word + 1;
	if (digits[0] == '0' && digits[1] == 'x')
		digits += 2;
	size_t length = strspn(digits, "0123456789abcdefABCDEF");
	if (!length || length > 16 || digits[length])
		return false;
	*ret = strtoull(digits, NULL, 16);
	return true;
}

/** Give the counter @spec, whose name has been read, its kind. */
static struct ps_error *classify(const struct ps_reader *reader, struct ps_spec *spec)
{
	struct perf_event_attr attr;
	if (!strcmp(spec->name, "profile"))
		spec->kind = PS_SPEC_PROFILE;
	else if (parse_raw(spec->name, &spec->config))
		spec->kind = PS_SPEC_RAW;
	else if (ps_reader_peek(reader) != '/' || ps_counter_find(spec->name, &attr))
		spec->kind = PS_SPEC_COUNTER;
	else
		spec->kind = PS_SPEC_PMU;
	if (strpbrk(spec->name, "*?"))
		return ps_reader_error(reader, spec->column,
				       "* and ? stand in names of tracepoints only, as sched:*");
	if (spec->kind == PS_SPEC_PMU)
		spec->system = take_ptr(spec->name);
	return NULL;
}

/**
 * Whether the colon at the reader, behind the word in @spec->name, begins modifiers and not a
 * tracepoint's name.
 */
static bool has_modifiers(const struct ps_reader *reader, const struct ps_spec *spec)
{
	const char *letters = reader->text + reader->at + 1;
	size_t nr = ps_spec_span_modifiers(letters);
	if (nr && (ps_spec_is_end(letters[nr]) || letters[nr] == '/'))
		return true;
	struct perf_event_attr attr;
	uint64_t config;
	return !strcmp(spec->name, "profile") || parse_raw(spec->name, &config) ||
	       ps_counter_find(spec->name, &attr);
}

static struct ps_error *parse_tracepoint(struct ps_reader *reader, struct ps_spec *spec)
{
	spec->kind = PS_SPEC_TRACEPOINT;
	spec->system = take_ptr(spec->name);
	size_t start = ++reader->at;
	skip_word(reader);
	if (reader->at == start)
		return ps_reader_error(reader, start,
				       "a tracepoint's name is missing after the colon");
	struct ps_error *error = ps_reader_copy(reader, start, reader->at, &spec->name);
	return error ? error : ps_spec_parse_tail(reader, spec);
}

struct ps_error *ps_spec_parse_event(struct ps_reader *reader, struct ps_spec *spec)
{
	size_t start = spec->column = reader->at;
	const char *text = reader->text + start;
	const char *probe = ps_spec_probe_kind(text);
	if (probe)
		return ps_spec_parse_probe(reader, probe, spec);
	if (!strncmp(text, "mem:", 4))
		return parse_breakpoint(reader, spec);
	skip_word(reader);
	if (reader->at == start)
		return ps_reader_error(reader, start, "an event is missing here");
	struct ps_error *error = ps_reader_copy(reader, start, reader->at, &spec->name);
	if (error)
		return error;
	if (ps_reader_peek(reader) == ':' && !has_modifiers(reader, spec))
		return parse_tracepoint(reader, spec);
	error = classify(reader, spec);
	return error ? error : ps_spec_parse_tail(reader, spec);
}
