// SPDX-License-Identifier: MIT
/**
 * The parser of event texts: lists, groups and the names of each kind. docs/events.md has the
 * grammar.
 */
#include <perfscope/spec.h>

#include "counter_table.h"
#include "spec_parse.h"

#include <ctype.h>
#include <linux/hw_breakpoint.h>
#include <string.h>

static const char *const probes[] = { "uprobe", "uretprobe", "kprobe", "kretprobe", "usdt" };

static char peek(const struct ps_reader *reader)
{
	return reader->text[reader->at];
}

static bool is_space(char c)
{
	return isspace((unsigned char)c);
}

/** Whether an event has ended at @c. */
static bool is_end(char c)
{
	return !c || c == ',' || c == '}' || is_space(c);
}

static void skip_space(struct ps_reader *reader)
{
	while (is_space(peek(reader)))
		reader->at++;
}

static void skip_blanks(struct ps_reader *reader)
{
	while (peek(reader) == ' ' || peek(reader) == '\t')
		reader->at++;
}

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
	} while (!is_end(peek(reader)) && peek(reader) != ':');
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
	if (is_end(peek(reader)) || peek(reader) == ':')
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
	if (is_end(peek(reader)) || peek(reader) == ':')
		return NULL;
	return ps_spec_parse_modifiers(reader, spec, 1);
}

/** Parse what may stand behind the name of any event. */
static struct ps_error *parse_tail(struct ps_reader *reader, struct ps_spec *spec)
{
	struct ps_error *error = NULL;
	if (peek(reader) == '/') {
		bool has_filter = spec->kind == PS_SPEC_TRACEPOINT || spec->kind == PS_SPEC_PROBE;
		error = has_filter ? parse_filter(reader, spec) : parse_terms(reader, spec);
	}
	if (!error && peek(reader) == ':') {
		reader->at++;
		error = ps_spec_parse_modifiers(reader, spec, 1);
	}
	if (error || is_end(peek(reader)))
		return error;
	if (peek(reader) == '/')
		return ps_reader_error(reader, reader->at, "modifiers stand at the end");
	return ps_reader_error(reader, reader->at, "this does not belong to an event");
}

/**
 * The column behind the fetch arguments at the reader: a comma, line, slash or brace that is not
 * theirs.
 */
static struct ps_error *find_arguments_end(const struct ps_reader *reader, size_t *ret)
{
	size_t at = reader->at;
	for (;; at++) {
		char c = reader->text[at];
		if (!c || c == ',' || c == '\n' || (c == '}' && reader->is_in_braces))
			break;
		if (c == '"') {
			const char *closing = strchr(reader->text + at + 1, '"');
			if (!closing)
				return ps_reader_error(reader, at, "this quote is not closed");
			at = closing - reader->text;
		}
		if (c != '/')
			continue;
		// The slash of a bit field (%di:b4@0/32) belongs to the argument.
		size_t digits = at;
		while (digits > reader->at && isdigit((unsigned char)reader->text[digits - 1]))
			digits--;
		if (digits == at || digits == reader->at || reader->text[digits - 1] != '@')
			break;
	}
	*ret = at;
	return NULL;
}

static struct ps_error *parse_arguments(struct ps_reader *reader, struct ps_spec *spec)
{
	size_t start = reader->at, end;
	skip_blanks(reader);
	if (is_end(peek(reader)) || peek(reader) == '/') {
		reader->at = start;
		return NULL;
	}
	struct ps_error *error = find_arguments_end(reader, &end);
	if (error)
		return error;
	start = reader->at;
	reader->at = end;
	ps_reader_trim(reader, &start, &end);
	return ps_reader_copy(reader, start, end, &spec->args);
}

/** Parse FILE: in quotes, or up to the next space, comma or end. */
static struct ps_error *parse_file(struct ps_reader *reader, struct ps_spec *spec)
{
	size_t start = reader->at, end;
	if (peek(reader) == '"') {
		const char *closing = strchr(reader->text + ++start, '"');
		if (!closing)
			return ps_reader_error(reader, reader->at, "this quote is not closed");
		end = closing - reader->text;
		reader->at = end + 1;
	} else {
		while (peek(reader) && peek(reader) != ',' && !is_space(peek(reader)) &&
		       !(peek(reader) == '}' && reader->is_in_braces))
			reader->at++;
		end = reader->at;
	}
	if (start == end)
		return ps_reader_error(reader, start, "a file is missing after @");
	return ps_reader_copy(reader, start, end, &spec->file);
}

/** Move over the name of a probe: in quotes, as "f(int, char*)", or a word; "::" is part of names of C++. */
static struct ps_error *skip_probe_name(struct ps_reader *reader, bool is_usdt, size_t *ret_start,
					size_t *ret_end)
{
	const char *text = reader->text;
	*ret_start = reader->at;
	if (peek(reader) == '"') {
		const char *closing = strchr(text + ++*ret_start, '"');
		if (!closing)
			return ps_reader_error(reader, reader->at, "this quote is not closed");
		*ret_end = closing - text;
		reader->at = *ret_end + 1;
		return NULL;
	}
	for (;;) {
		reader->at += strcspn(text + reader->at, is_usdt ? "@/,{} \t\n" : "@+:/,{} \t\n");
		if (is_usdt || strncmp(text + reader->at, "::", 2))
			break;
		reader->at += 2;
	}
	*ret_end = reader->at;
	return NULL;
}

/** Parse FUNC[+OFF], or PROVIDER:NAME of usdt. */
static struct ps_error *parse_probe_name(struct ps_reader *reader, bool is_usdt,
					 struct ps_spec *spec)
{
	size_t start = reader->at, end = start;
	struct ps_error *error = skip_probe_name(reader, is_usdt, &start, &end);
	if (!error)
		error = ps_reader_copy(reader, start, end, &spec->name);
	if (error)
		return error;
	const char *colon = strchr(spec->name, ':');
	if (is_usdt && (!colon || colon == spec->name || !colon[1] || strchr(colon + 1, ':')))
		return ps_reader_error(reader, start, "usdt names a PROVIDER:NAME");
	if (start == end)
		return ps_reader_error(reader, start, "a function is missing here");
	if (is_usdt || peek(reader) != '+')
		return NULL;
	reader->at++;
	return ps_reader_number(reader, "an offset", &spec->offset);
}

static struct ps_error *parse_probe(struct ps_reader *reader, const char *kind,
				    struct ps_spec *spec)
{
	spec->kind = PS_SPEC_PROBE;
	spec->system = strdup(kind);
	if (!spec->system)
		return &ps_enomem;
	reader->at += strlen(kind) + 1;
	struct ps_error *error = parse_probe_name(reader, !strcmp(kind, "usdt"), spec);
	if (error)
		return error;
	bool has_file = kind[0] == 'u';
	if (has_file != (peek(reader) == '@'))
		return ps_reader_error(reader, reader->at, "%s",
				       has_file ? "the file is missing: FUNC@FILE"
						: "a kernel function is in no file");
	if (has_file) {
		reader->at++;
		error = parse_file(reader, spec);
	}
	if (!error && (peek(reader) == ' ' || peek(reader) == '\t'))
		error = parse_arguments(reader, spec);
	return error ? error : parse_tail(reader, spec);
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
	return parse_tail(reader, spec);
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
	else if (peek(reader) != '/' || ps_counter_find(spec->name, &attr))
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
	if (nr && (is_end(letters[nr]) || letters[nr] == '/'))
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
	return error ? error : parse_tail(reader, spec);
}

/** Parse one event into @spec, which the caller deinitialises also on failure. */
static struct ps_error *parse_event(struct ps_reader *reader, struct ps_spec *spec)
{
	size_t start = spec->column = reader->at;
	const char *text = reader->text + start;
	for (size_t i = 0; i < PS_ARRAY_SIZE(probes); i++) {
		size_t length = strlen(probes[i]);
		if (!strncmp(text, probes[i], length) && text[length] == ':')
			return parse_probe(reader, probes[i], spec);
	}
	if (!strncmp(text, "mem:", 4))
		return parse_breakpoint(reader, spec);
	skip_word(reader);
	if (reader->at == start)
		return ps_reader_error(reader, start, "an event is missing here");
	struct ps_error *error = ps_reader_copy(reader, start, reader->at, &spec->name);
	if (error)
		return error;
	if (peek(reader) == ':' && !has_modifiers(reader, spec))
		return parse_tracepoint(reader, spec);
	error = classify(reader, spec);
	return error ? error : parse_tail(reader, spec);
}

static void spec_deinit(struct ps_spec *spec)
{
	for (size_t i = 0; i < spec->nr_terms; i++) {
		free(spec->terms[i].name);
		free(spec->terms[i].value);
	}
	free(spec->terms);
	free(spec->text);
	free(spec->system);
	free(spec->name);
	free(spec->file);
	free(spec->args);
	free(spec->filter);
	free(spec->alias);
	free(spec->cpus);
	free(spec->modifiers);
}

void ps_spec_list_deinit(struct ps_spec_list *list)
{
	for (size_t i = 0; i < list->nr_specs; i++)
		spec_deinit(&list->specs[i]);
	free(list->specs);
	*list = (struct ps_spec_list){};
}

static struct ps_error *append_event(struct ps_reader *reader, unsigned int group,
				     struct ps_spec_list *list)
{
	struct ps_spec *specs = reallocarray(list->specs, list->nr_specs + 1, sizeof(*specs));
	if (!specs)
		return &ps_enomem;
	list->specs = specs;
	struct ps_spec *spec = &specs[list->nr_specs++];
	*spec = (struct ps_spec){ .group = group };
	struct ps_error *error = parse_event(reader, spec);
	return error ? error : ps_reader_copy(reader, spec->column, reader->at, &spec->text);
}

/** Move over a comma or a line's end between events; @ret is false where the list ends instead. */
static struct ps_error *parse_separator(struct ps_reader *reader, bool *ret)
{
	size_t start = reader->at;
	skip_space(reader);
	char c = peek(reader);
	bool is_list_end = !c || (c == '}' && reader->is_in_braces);
	*ret = !is_list_end;
	if (is_list_end)
		return NULL;
	if (c == '}')
		return ps_reader_error(reader, reader->at, "this brace was not opened");
	if (c != ',') {
		bool is_new_line = memchr(reader->text + start, '\n', reader->at - start);
		return is_new_line ? NULL
				   : ps_reader_error(reader, reader->at,
						     "a comma is missing between the events");
	}
	size_t comma = reader->at++;
	skip_space(reader);
	if (!peek(reader) || peek(reader) == ',' || peek(reader) == '}')
		return ps_reader_error(reader, comma, "an event is missing after the comma");
	return NULL;
}

static struct ps_error *parse_group(struct ps_reader *reader, struct ps_spec_list *list)
{
	size_t brace = reader->at++, first = list->nr_specs;
	unsigned int group = ++list->nr_groups;
	reader->is_in_braces = true;
	for (bool has_more = true; has_more;) {
		skip_space(reader);
		if (peek(reader) == '{')
			return ps_reader_error(reader, reader->at, "groups do not stand in groups");
		struct ps_error *error = append_event(reader, group, list);
		if (!error)
			error = parse_separator(reader, &has_more);
		if (error)
			return error;
	}
	reader->is_in_braces = false;
	if (peek(reader) != '}')
		return ps_reader_error(reader, brace, "this brace is not closed");
	reader->at++;
	if (peek(reader) != ':')
		return NULL;
	reader->at++;
	return ps_spec_parse_modifiers(reader, list->specs + first, list->nr_specs - first);
}

static struct ps_error *parse_list(struct ps_reader *reader, struct ps_spec_list *list)
{
	skip_space(reader);
	for (bool has_more = true; has_more;) {
		struct ps_error *error = peek(reader) == '{' ? parse_group(reader, list)
							     : append_event(reader, 0, list);
		if (!error)
			error = parse_separator(reader, &has_more);
		if (error)
			return error;
	}
	return NULL;
}

struct ps_error *ps_spec_parse(const char *text, struct ps_spec_list *list)
{
	if (strnlen(text, PS_SPEC_MAX_SIZE + 1) > PS_SPEC_MAX_SIZE)
		return ps_error_format(PS_ERROR_USAGE, "an event text is at most %d bytes long",
				       PS_SPEC_MAX_SIZE);
	struct ps_reader reader = { .text = text };
	struct ps_spec_list parsed = { .nr_groups = list->nr_groups };
	struct ps_error *error = parse_list(&reader, &parsed);
	struct ps_spec *specs =
		error ? NULL
		      : reallocarray(list->specs, list->nr_specs + parsed.nr_specs, sizeof(*specs));
	if (!specs) {
		ps_spec_list_deinit(&parsed);
		return error ? error : &ps_enomem;
	}
	memcpy(specs + list->nr_specs, parsed.specs, parsed.nr_specs * sizeof(*specs));
	list->specs = specs;
	list->nr_specs += parsed.nr_specs;
	list->nr_groups = parsed.nr_groups;
	free(parsed.specs);
	return NULL;
}

char *ps_spec_handler_name(const char *system, const char *name)
{
	char *handler;
	if (asprintf(&handler, "%s%s%s", system ? system : "", system ? "__" : "", name) < 0)
		return NULL;
	for (char *at = handler; *at; at++) {
		if (!isalnum((unsigned char)*at))
			*at = '_';
	}
	return handler;
}
