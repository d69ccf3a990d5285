// SPDX-License-Identifier: MIT
/**
 * What the files of the parser of event texts share: spec.c has lists, spec_event.c one event, spec_probe.c probes,
 * spec_attribute.c and spec_modifier.c what stands behind a name.
 */
#ifndef PERFSCOPE_SPEC_PARSE_H
#define PERFSCOPE_SPEC_PARSE_H

#include <ctype.h>
#include <perfscope/spec.h>

struct ps_reader {
	const char *text; // all of one -e, borrowed
	size_t at;
	bool is_in_braces;
};

static inline char ps_reader_peek(const struct ps_reader *reader)
{
	return reader->text[reader->at];
}

static inline bool ps_is_space(char c)
{
	return isspace((unsigned char)c);
}

/** Whether an event has ended at @c. */
static inline bool ps_spec_is_end(char c)
{
	return !c || c == ',' || c == '}' || ps_is_space(c);
}

static inline void ps_reader_skip_space(struct ps_reader *reader)
{
	while (ps_is_space(ps_reader_peek(reader)))
		reader->at++;
}

static inline void ps_reader_skip_blanks(struct ps_reader *reader)
{
	while (ps_reader_peek(reader) == ' ' || ps_reader_peek(reader) == '\t')
		reader->at++;
}

/** PS_ERROR_USAGE with a caret at @column. */
struct ps_error *ps_reader_error(const struct ps_reader *reader, size_t column, const char *format,
				 ...) __attribute__((format(printf, 3, 4)));

/** A copy of the text from @start to @end, owned by the caller; PS_ERROR_NO_MEMORY. */
struct ps_error *ps_reader_copy(const struct ps_reader *reader, size_t start, size_t end,
				char **ret);

/** Move [@start, @end) inwards over white space at both ends. */
void ps_reader_trim(const struct ps_reader *reader, size_t *start, size_t *end);

/** Read a decimal or 0x number, which @what names in the message. */
struct ps_error *ps_reader_number(struct ps_reader *reader, const char *what, uint64_t *ret);

/**
 * The next slash from @start that stands in no quotes. Fails where there is none, or a quote is
 * left open.
 */
struct ps_error *ps_reader_find_slash(const struct ps_reader *reader, size_t start, size_t opening,
				      size_t *ret);

/** Parse the attributes, and a PMU's terms, from @start to @end. */
struct ps_error *ps_spec_parse_attributes(const struct ps_reader *reader, size_t start, size_t end,
					  struct ps_spec *spec);

/** Parse one event into @spec, which the caller deinitialises also on failure. */
struct ps_error *ps_spec_parse_event(struct ps_reader *reader, struct ps_spec *spec);

/** Which kind of probe the event at @text is, "uprobe"; NULL: none. */
const char *ps_spec_probe_kind(const char *text);

/** Parse the probe of @kind at the reader. */
struct ps_error *ps_spec_parse_probe(struct ps_reader *reader, const char *kind,
				     struct ps_spec *spec);

/** The error for the event of @spec, which is no probe but has a file. */
struct ps_error *ps_spec_unknown_probe(const struct ps_reader *reader, const struct ps_spec *spec);

/** Parse what may stand behind the name of any event. */
struct ps_error *ps_spec_parse_tail(struct ps_reader *reader, struct ps_spec *spec);

/** The number of modifier letters at @text. */
size_t ps_spec_span_modifiers(const char *text);

/** Read modifiers, and add them to each of the @nr @specs. */
struct ps_error *ps_spec_parse_modifiers(struct ps_reader *reader, struct ps_spec *specs,
					 size_t nr);

#endif
