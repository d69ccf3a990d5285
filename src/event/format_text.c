// SPDX-License-Identifier: MIT
#include "format_text.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

// Raw data is shorter than this: the size of a record is 16 bits wide.
#define MAX_RAW_SIZE 65536
// Far above the longest of any kernel (some 5 KiB); the parser recurses over it.
#define MAX_PRINT_SIZE 16384
#define MAX_DEPTH 64
// Of "!!!!x" and the like; the parser recurses over them too.
#define MAX_OPERATORS 8

/** Take a line, without its newline. */
static struct ps_span span_take_line(struct ps_span *span)
{
	const char *end = memchr(span->start, '\n', span->size);
	size_t size = end ? (size_t)(end - span->start) : span->size;
	struct ps_span line = { span->start, size };
	ps_span_skip(span, end ? size + 1 : size);
	return line;
}

static bool is_sane_text(struct ps_span text)
{
	for (size_t i = 0; i < text.size; i++) {
		unsigned char c = text.start[i];
		if (c != '\n' && c != '\t' && (c < 0x20 || c > 0x7e))
			return false;
	}
	return true;
}

/** "unsigned long args[6]": a type of one word at least, a name, at most one pair of brackets. */
static bool is_declaration(struct ps_span text)
{
	unsigned int nr_words = 0, nr_brackets = 0, depth = 0;
	for (size_t i = 0; i < text.size; i++) {
		char c = text.start[i];
		if (ps_is_word(c)) {
			if (!i || !ps_is_word(text.start[i - 1]))
				nr_words++;
		} else if (c == '[') {
			if (nr_brackets++)
				return false;
			depth++;
		} else if (c == ']' || c == ')') {
			if (!depth--)
				return false;
		} else if (c == '(') {
			depth++;
		} else if (!strchr(" *.,+-", c)) {
			return false;
		}
	}
	return nr_words >= 2 && !depth &&
	       (isalpha((unsigned char)text.start[0]) || text.start[0] == '_');
}

/** "\tfield:TYPE NAME;\toffset:N;\tsize:N;\tsigned:N;", the last of which old kernels leave out. */
static bool is_field_line(struct ps_span line)
{
	if (!ps_span_take(&line, "\tfield:") && !ps_span_take(&line, "\tfield special:"))
		return false;
	const char *end = memchr(line.start, ';', line.size);
	if (!end)
		return false;
	size_t size = end - line.start;
	if (!is_declaration((struct ps_span){ line.start, size }))
		return false;
	ps_span_skip(&line, size);
	unsigned int offset, bytes, sign;
	if (!ps_span_take(&line, ";\toffset:") ||
	    !ps_span_take_number(&line, MAX_RAW_SIZE, &offset) ||
	    !ps_span_take(&line, ";\tsize:") || !ps_span_take_number(&line, MAX_RAW_SIZE, &bytes) ||
	    !ps_span_take(&line, ";"))
		return false;
	if (!line.size)
		return true;
	return ps_span_take(&line, "\tsigned:") && ps_span_take_number(&line, 1, &sign) &&
	       ps_span_take(&line, ";") && !line.size;
}

static bool is_name_line(struct ps_span line)
{
	if (!ps_span_take(&line, "name: ") || !line.size)
		return false;
	for (size_t i = 0; i < line.size; i++) {
		if (!ps_is_word(line.start[i]) && !strchr("-.", line.start[i]))
			return false;
	}
	return true;
}

static bool is_id_line(struct ps_span line, int *ret)
{
	unsigned int id;
	if (!ps_span_take(&line, "ID: ") || !ps_span_take_number(&line, UINT16_MAX, &id) ||
	    line.size)
		return false;
	*ret = id;
	return true;
}

/** Brackets that match, strings that end, and no nesting that makes a parser recurse without end. */
static bool is_sane_print(struct ps_span text)
{
	char open[MAX_DEPTH];
	unsigned int depth = 0, nr_operators = 0;
	if (text.size > MAX_PRINT_SIZE || !text.size || text.start[0] != '"')
		return false;
	for (size_t i = 0; i < text.size; i++) {
		char c = text.start[i];
		nr_operators = strchr("!~-+*&|<>=?:%^/ ", c) ? nr_operators + (c != ' ') : 0;
		if (nr_operators > MAX_OPERATORS)
			return false;
		if (strchr("({[", c)) {
			if (depth == MAX_DEPTH)
				return false;
			open[depth++] = c == '(' ? ')' : c == '{' ? '}' : ']';
		} else if (strchr(")}]", c)) {
			if (!depth || open[--depth] != c)
				return false;
		} else if ((c == '"' || c == '\'') && !ps_span_skip_string(text, &i)) {
			return false;
		} else if (strchr("\n\\@#$`;", c)) {
			return false;
		}
	}
	return !depth;
}

static struct ps_error *bad_line(const char *what, struct ps_span line)
{
	int shown = line.size < 100 ? line.size : 100;
	return ps_error_format(PS_ERROR_BAD_DATA, "not %s: \"%.*s\"", what, shown, line.start);
}

struct ps_error *ps_format_text_split(struct ps_span text, struct ps_format_text *ret)
{
	if (!is_sane_text(text))
		return ps_error_format(PS_ERROR_BAD_DATA,
				       "the format text holds unprintable bytes");
	struct ps_format_text halves = { .head.start = text.start };
	struct ps_span rest = text;
	struct ps_span line = span_take_line(&rest);
	if (!is_name_line(line))
		return bad_line("the name of a format", line);
	line = span_take_line(&rest);
	if (!is_id_line(line, &halves.id))
		return bad_line("the ID of a format", line);
	line = span_take_line(&rest);
	if (!ps_span_is(line, "format:"))
		return bad_line("the start of the fields of a format", line);

	bool is_print = false;
	halves.head.size = rest.start - text.start;
	while (rest.size && !is_print) {
		line = span_take_line(&rest);
		is_print = ps_span_take(&line, "print fmt:");
		if (is_print)
			break;
		if (line.size && !is_field_line(line))
			return bad_line("a field of a format", line);
		halves.head.size = rest.start - text.start;
	}
	if (halves.head.start[halves.head.size - 1] != '\n')
		return ps_error_format(PS_ERROR_BAD_DATA, "the format text ends within a line");
	if (is_print) {
		halves.print = (struct ps_span){ line.start, text.start + text.size - line.start };
		halves.print = ps_span_trim(halves.print);
		if (!is_sane_print(halves.print))
			halves.print.size = 0;
	}
	*ret = halves;
	return NULL;
}
