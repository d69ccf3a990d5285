// SPDX-License-Identifier: MIT
/**
 * What the two halves of the parser of event texts share.
 */
#ifndef PERFSCOPE_SPEC_PARSE_H
#define PERFSCOPE_SPEC_PARSE_H

#include <perfscope/spec.h>

struct ps_reader {
	const char *text; // all of one -e, borrowed
	size_t at;
	bool is_in_braces;
};

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

/** The number of modifier letters at @text. */
size_t ps_spec_span_modifiers(const char *text);

/** Read modifiers, and add them to each of the @nr @specs. */
struct ps_error *ps_spec_parse_modifiers(struct ps_reader *reader, struct ps_spec *specs,
					 size_t nr);

#endif
