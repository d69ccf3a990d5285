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

static bool span_starts(struct ps_span span, const char *prefix)
{
	size_t length = strlen(prefix);
	return span.size >= length && !memcmp(span.start, prefix, length);
}

static bool span_is(struct ps_span span, const char *text)
{
	return span.size == strlen(text) && !memcmp(span.start, text, span.size);
}

static void span_skip(struct ps_span *span, size_t size)
{
	span->start += size;
	span->size -= size;
}

static bool span_take(struct ps_span *span, const char *prefix)
{
	if (!span_starts(*span, prefix))
		return false;
	span_skip(span, strlen(prefix));
	return true;
}

/** Take a line, without its newline. */
static struct ps_span span_take_line(struct ps_span *span)
{
	const char *end = memchr(span->start, '\n', span->size);
	size_t size = end ? (size_t)(end - span->start) : span->size;
	struct ps_span line = { span->start, size };
	span_skip(span, end ? size + 1 : size);
	return line;
}

static struct ps_span span_trim(struct ps_span span)
{
	while (span.size && isspace((unsigned char)span.start[0]))
		span_skip(&span, 1);
	while (span.size && isspace((unsigned char)span.start[span.size - 1]))
		span.size--;
	return span;
}

/** Take a decimal number up to @max. */
static bool span_take_number(struct ps_span *span, unsigned int max, unsigned int *ret)
{
	unsigned int value = 0;
	size_t i = 0;
	for (; i < span->size && isdigit((unsigned char)span->start[i]); i++) {
		value = value * 10 + (span->start[i] - '0');
		if (value > max)
			return false;
	}
	if (!i)
		return false;
	span_skip(span, i);
	*ret = value;
	return true;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
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
		if (is_word(c)) {
			if (!i || !is_word(text.start[i - 1]))
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
	if (!span_take(&line, "\tfield:") && !span_take(&line, "\tfield special:"))
		return false;
	const char *end = memchr(line.start, ';', line.size);
	if (!end)
		return false;
	size_t size = end - line.start;
	if (!is_declaration((struct ps_span){ line.start, size }))
		return false;
	span_skip(&line, size);
	unsigned int offset, bytes, sign;
	if (!span_take(&line, ";\toffset:") || !span_take_number(&line, MAX_RAW_SIZE, &offset) ||
	    !span_take(&line, ";\tsize:") || !span_take_number(&line, MAX_RAW_SIZE, &bytes) ||
	    !span_take(&line, ";"))
		return false;
	if (!line.size)
		return true;
	return span_take(&line, "\tsigned:") && span_take_number(&line, 1, &sign) &&
	       span_take(&line, ";") && !line.size;
}

static bool is_name_line(struct ps_span line)
{
	if (!span_take(&line, "name: ") || !line.size)
		return false;
	for (size_t i = 0; i < line.size; i++) {
		if (!is_word(line.start[i]) && !strchr("-.", line.start[i]))
			return false;
	}
	return true;
}

static bool is_id_line(struct ps_span line, int *ret)
{
	unsigned int id;
	if (!span_take(&line, "ID: ") || !span_take_number(&line, UINT16_MAX, &id) || line.size)
		return false;
	*ret = id;
	return true;
}

/**
 * Step over the string that starts at @i of @text; false where it does not end.
 */
static bool skip_string(struct ps_span text, size_t *i)
{
	char quote = text.start[*i];
	for (size_t at = *i + 1; at < text.size; at++) {
		if (text.start[at] == '\\') {
			at++;
		} else if (text.start[at] == quote) {
			*i = at;
			return true;
		}
	}
	return false;
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
		} else if ((c == '"' || c == '\'') && !skip_string(text, &i)) {
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
	if (!span_is(line, "format:"))
		return bad_line("the start of the fields of a format", line);

	bool is_print = false;
	halves.head.size = rest.start - text.start;
	while (rest.size && !is_print) {
		line = span_take_line(&rest);
		is_print = span_take(&line, "print fmt:");
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
		halves.print = span_trim(halves.print);
		if (!is_sane_print(halves.print))
			halves.print.size = 0;
	}
	*ret = halves;
	return NULL;
}

/** Take the next argument, up to a comma that is in no bracket and no string. */
static struct ps_span take_argument(struct ps_span *rest)
{
	unsigned int depth = 0;
	size_t i = 0;
	for (; i < rest->size; i++) {
		char c = rest->start[i];
		if (strchr("({[", c))
			depth++;
		else if (strchr(")}]", c))
			depth--;
		else if (c == '"' || c == '\'')
			skip_string(*rest, &i);
		else if (c == ',' && !depth)
			break;
	}
	struct ps_span argument = span_trim((struct ps_span){ rest->start, i });
	span_skip(rest, i < rest->size ? i + 1 : i);
	return argument;
}

/** Take what follows "%p": the kinds that libtraceevent knows as the kernel does. */
static bool take_pointer_kind(struct ps_span *rest)
{
	static const char *const kinds[] = {
		"I6c", "I6", "i6c", "i6", "I4", "i4", "ISpc", "ISc", "ISp", "IS", "UL",
		"Ul",  "UB", "Ub",  "U",  "MF", "M",  "m",    "S",   "s",   "F",  "f",
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(kinds); i++) {
		if (span_take(rest, kinds[i]))
			return true;
	}
	return !rest->size || !isalnum((unsigned char)rest->start[0]);
}

/** Take "*" or at most three digits. */
static bool take_width(struct ps_span *rest, bool *has_star)
{
	unsigned int width;
	if (span_take(rest, "*")) {
		if (*has_star)
			return false;
		*has_star = true;
		return true;
	}
	if (rest->size && isdigit((unsigned char)rest->start[0]))
		return span_take_number(rest, 999, &width);
	return true;
}

static void take_length(struct ps_span *rest, char length[3])
{
	static const char *const lengths[] = { "hh", "h", "ll", "l", "L", "z" };
	length[0] = '\0';
	for (size_t i = 0; i < PS_ARRAY_SIZE(lengths); i++) {
		if (span_take(rest, lengths[i])) {
			memcpy(length, lengths[i], strlen(lengths[i]) + 1);
			return;
		}
	}
}

/** Take the conversion at the start of @rest. A star is only known before the 's' of "%.*s". */
static bool take_conversion(struct ps_span *rest, struct ps_conversion *ret, bool *has_star)
{
	const char *start = rest->start;
	bool has_width_star = false;
	*has_star = false;
	span_skip(rest, 1);
	while (rest->size && strchr("-#0", rest->start[0]))
		span_skip(rest, 1);
	if (!take_width(rest, &has_width_star) || has_width_star)
		return false;
	if (span_take(rest, ".") && !take_width(rest, has_star))
		return false;
	take_length(rest, ret->length);
	if (!rest->size)
		return false;
	char kind = rest->start[0];
	span_skip(rest, 1);
	ret->is_string = kind == 's';
	ret->pointer_kind = kind == 'p' ? rest->start : NULL;
	if (kind == 'p' ? !take_pointer_kind(rest) : !strchr("diuxXos", kind))
		return false;
	if (*has_star && kind != 's')
		return false;
	ret->text = (struct ps_span){ start, rest->start - start };
	return true;
}

static bool print_text_append(struct ps_print_text *print, const struct ps_conversion *conversion)
{
	size_t size = (print->nr_conversions + 1) * sizeof(*conversion);
	struct ps_conversion *bigger = realloc(print->conversions, size);
	if (!bigger)
		return false;
	bigger[print->nr_conversions++] = *conversion;
	print->conversions = bigger;
	return true;
}

/** Give @conversion its one or two arguments. */
static bool take_arguments(struct ps_span *arguments, bool has_star, struct ps_conversion *ret)
{
	if (has_star) {
		ret->star = take_argument(arguments);
		if (!ret->star.size)
			return false;
	}
	ret->value = take_argument(arguments);
	return ret->value.size;
}

static bool parse_conversions(struct ps_span format, struct ps_span arguments,
			      struct ps_print_text *print)
{
	bool is_joined = false;
	while (format.size) {
		if (format.start[0] != '%') {
			is_joined = false;
			// A backslash takes the character behind it along.
			span_skip(&format, format.start[0] == '\\' && format.size > 1 ? 2 : 1);
			continue;
		}
		if (span_take(&format, "%%")) {
			is_joined = false;
			continue;
		}
		struct ps_conversion conversion = { .is_joined = is_joined };
		bool has_star;
		if (!take_conversion(&format, &conversion, &has_star) ||
		    !take_arguments(&arguments, has_star, &conversion) ||
		    !print_text_append(print, &conversion))
			return false;
		is_joined = true;
	}
	return !span_trim(arguments).size;
}

bool ps_print_text_parse(struct ps_span print, struct ps_print_text *ret)
{
	size_t end = 0;
	*ret = (struct ps_print_text){ 0 };
	if (!print.size || print.start[0] != '"' || !skip_string(print, &end))
		return false;
	struct ps_span format = { print.start + 1, end - 1 };
	struct ps_span rest =
		span_trim((struct ps_span){ print.start + end + 1, print.size - end - 1 });
	// Strings that follow each other ("a" "b") are one format in C; no kernel leaves them in its text.
	if (rest.size && !span_take(&rest, ","))
		return false;
	if (parse_conversions(format, rest, ret))
		return true;
	ps_print_text_deinit(ret);
	return false;
}

void ps_print_text_deinit(struct ps_print_text *print)
{
	free(print->conversions);
	*print = (struct ps_print_text){ 0 };
}

/** Write @conversion as libtraceevent shows what the kernel means by it. */
static void write_conversion(FILE *stream, const struct ps_conversion *conversion)
{
	struct ps_span text = conversion->text;
	// It would write (nil) and 0x..., the kernel has all digits and no more.
	if (span_is(text, "%p"))
		fputs("%016lx", stream);
	else
		fprintf(stream, "%.*s", (int)text.size, text.start);
}

static char *finish_text(FILE *stream, char **text)
{
	if (!fclose(stream))
		return *text;
	free(*text);
	return NULL;
}

char *ps_print_text_translate(struct ps_span print, const struct ps_print_text *parts)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return NULL;
	const char *at = print.start;
	for (size_t i = 0; i < parts->nr_conversions; i++) {
		const struct ps_conversion *conversion = &parts->conversions[i];
		fwrite(at, 1, conversion->text.start - at, stream);
		write_conversion(stream, conversion);
		at = conversion->text.start + conversion->text.size;
	}
	fwrite(at, 1, print.start + print.size - at, stream);
	return finish_text(stream, &text);
}

/** The word at the start of @text. */
static struct ps_span leading_word(struct ps_span text)
{
	size_t size = 0;
	while (size < text.size && is_word(text.start[size]))
		size++;
	return (struct ps_span){ text.start, size };
}

/** Whether a field is named at the start of @text: REC->NAME, __get_str(NAME), __get_rel_bitmask(NAME), ... */
static bool take_mention(struct ps_span text, struct ps_span *ret)
{
	if (!span_take(&text, "REC->")) {
		if (!span_take(&text, "__get_"))
			return false;
		span_skip(&text, leading_word(text).size);
		if (!span_take(&text, "("))
			return false;
		text = span_trim(text);
	}
	*ret = leading_word(text);
	return true;
}

/** What the fields are that an argument reads. */
enum mention {
	MENTION_NONE,	// no field
	MENTION_ONLY,	// this one and no other
	MENTION_OTHERS, // another one, perhaps this one too
};

static enum mention mentions(struct ps_span argument, const char *name)
{
	enum mention mention = MENTION_NONE;
	for (size_t i = 0; i < argument.size; i++) {
		if (strchr("\"'", argument.start[i]) && !skip_string(argument, &i))
			break;
		struct ps_span rest = { argument.start + i, argument.size - i }, word;
		if ((i && is_word(argument.start[i - 1])) || !take_mention(rest, &word))
			continue;
		// An element is not the field: `args[0]` alone would pose as all of `args`.
		if (!span_is(word, name) || word.start[word.size] == '[')
			return MENTION_OTHERS;
		mention = MENTION_ONLY;
	}
	return mention;
}

static bool shows_only(const struct ps_conversion *conversion, const char *name)
{
	return mentions(conversion->value, name) == MENTION_ONLY &&
	       mentions(conversion->star, name) != MENTION_OTHERS;
}

/** `"%s%s", argument, argument` of the @nr conversions from @first on. */
static char *join_conversions(const struct ps_conversion *first, size_t nr)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return NULL;
	putc('"', stream);
	for (size_t i = 0; i < nr; i++)
		fprintf(stream, "%.*s", (int)first[i].text.size, first[i].text.start);
	putc('"', stream);
	for (size_t i = 0; i < nr; i++) {
		if (first[i].star.size)
			fprintf(stream, ", %.*s", (int)first[i].star.size, first[i].star.start);
		fprintf(stream, ", %.*s", (int)first[i].value.size, first[i].value.start);
	}
	return finish_text(stream, &text);
}

/** The length of the run that starts at @at of @print; *@ret_has_string: it shows a text. */
static size_t run_length(const struct ps_print_text *print, size_t at, const char *name,
			 bool *ret_has_string)
{
	size_t end = at;
	*ret_has_string = false;
	while (end < print->nr_conversions && shows_only(&print->conversions[end], name) &&
	       (end == at || print->conversions[end].is_joined)) {
		*ret_has_string |= print->conversions[end].is_string;
		end++;
	}
	return end - at;
}

char *ps_print_text_of_field(struct ps_span print, const char *name)
{
	struct ps_print_text parts;
	if (!ps_print_text_parse(print, &parts))
		return NULL;
	size_t best = 0, best_length = 0;
	bool has_string = false;
	for (size_t at = 0; at < parts.nr_conversions && !has_string;) {
		size_t length = run_length(&parts, at, name, &has_string);
		if (length && (!best_length || has_string)) {
			best = at;
			best_length = length;
		}
		at += length ? length : 1;
	}
	char *text = best_length ? join_conversions(&parts.conversions[best], best_length) : NULL;
	ps_print_text_deinit(&parts);
	return text;
}

bool ps_span_shows_bitmap(struct ps_span print, const char *name)
{
	static const char *const calls[] = { "__get_bitmask(", "__get_cpumask(",
					     "__get_rel_bitmask(", "__get_rel_cpumask(" };
	while (print.size) {
		struct ps_span rest = print;
		for (size_t i = 0; i < PS_ARRAY_SIZE(calls); i++) {
			if (span_take(&rest, calls[i]) && span_is(leading_word(rest), name))
				return true;
		}
		span_skip(&print, 1);
	}
	return false;
}
