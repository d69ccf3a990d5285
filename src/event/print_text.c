// SPDX-License-Identifier: MIT
#include "print_text.h"

#include <perfscope/cleanup.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
			ps_span_skip_string(*rest, &i);
		else if (c == ',' && !depth)
			break;
	}
	struct ps_span argument = ps_span_trim((struct ps_span){ rest->start, i });
	ps_span_skip(rest, i < rest->size ? i + 1 : i);
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
		if (ps_span_take(rest, kinds[i]))
			return true;
	}
	return !rest->size || !isalnum((unsigned char)rest->start[0]);
}

/** Take "*" or at most three digits. */
static bool take_width(struct ps_span *rest, bool *has_star)
{
	unsigned int width;
	if (ps_span_take(rest, "*")) {
		if (*has_star)
			return false;
		*has_star = true;
		return true;
	}
	if (rest->size && isdigit((unsigned char)rest->start[0]))
		return ps_span_take_number(rest, 999, &width);
	return true;
}

static void take_length(struct ps_span *rest, char length[3])
{
	static const char *const lengths[] = { "hh", "h", "ll", "l", "L", "z" };
	length[0] = '\0';
	for (size_t i = 0; i < PS_ARRAY_SIZE(lengths); i++) {
		if (ps_span_take(rest, lengths[i])) {
			memcpy(length, lengths[i], strlen(lengths[i]) + 1);
			return;
		}
	}
}

/** What is left of "%#08llx" behind its flags and its width. */
struct prefixed {
	unsigned int width; // 0: none
	struct ps_span rest;
};

static bool has_prefix(struct ps_span text)
{
	return memchr(text.start, '#', text.size);
}

/**
 * Take the conversion @text apart, which has a '#'.
 *
 * False where it is not a number in hexadecimal or octal, or is filled up by spaces: no kernel has such.
 */
static bool split_prefixed(struct ps_span text, struct prefixed *ret)
{
	bool is_filled_by_zeros = false;
	ret->width = 0;
	ret->rest = text;
	ps_span_skip(&ret->rest, 1);
	for (; strchr("#0", ret->rest.start[0]); ps_span_skip(&ret->rest, 1))
		is_filled_by_zeros |= ret->rest.start[0] == '0';
	bool has_width = ps_span_take_number(&ret->rest, 999, &ret->width);
	return has_width == is_filled_by_zeros && strchr("hlzxXo", ret->rest.start[0]) &&
	       strchr("xXo", text.start[text.size - 1]);
}

/** Take the conversion at the start of @rest. A star is only known before the 's' of "%.*s". */
static bool take_conversion(struct ps_span *rest, struct ps_conversion *ret, bool *has_star)
{
	const char *start = rest->start;
	bool has_width_star = false;
	*has_star = false;
	ps_span_skip(rest, 1);
	while (rest->size && strchr("-#0", rest->start[0]))
		ps_span_skip(rest, 1);
	if (!take_width(rest, &has_width_star) || has_width_star)
		return false;
	if (ps_span_take(rest, ".") && !take_width(rest, has_star))
		return false;
	take_length(rest, ret->length);
	if (!rest->size)
		return false;
	char kind = rest->start[0];
	ps_span_skip(rest, 1);
	ret->is_string = kind == 's';
	ret->pointer_kind = kind == 'p' ? rest->start : NULL;
	if (kind == 'p' ? !take_pointer_kind(rest) : !strchr("diuxXos", kind))
		return false;
	if (*has_star && kind != 's')
		return false;
	ret->text = (struct ps_span){ start, rest->start - start };
	struct prefixed prefixed;
	return !has_prefix(ret->text) || split_prefixed(ret->text, &prefixed);
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
			ps_span_skip(&format, format.start[0] == '\\' && format.size > 1 ? 2 : 1);
			continue;
		}
		if (ps_span_take(&format, "%%")) {
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
	return !ps_span_trim(arguments).size;
}

bool ps_print_text_parse(struct ps_span print, struct ps_print_text *ret)
{
	size_t end = 0;
	*ret = (struct ps_print_text){ 0 };
	if (!print.size || print.start[0] != '"' || !ps_span_skip_string(print, &end))
		return false;
	struct ps_span format = { print.start + 1, end - 1 };
	struct ps_span rest =
		ps_span_trim((struct ps_span){ print.start + end + 1, print.size - end - 1 });
	// Strings that follow each other ("a" "b") are one format in C; no kernel leaves them in its text.
	if (rest.size && !ps_span_take(&rest, ","))
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

static void write_prefixed(FILE *stream, const struct prefixed *prefixed, char kind)
{
	fprintf(stream, "0%c%%", kind);
	if (prefixed->width > 2)
		fprintf(stream, "0%u", prefixed->width - 2);
	fwrite(prefixed->rest.start, 1, prefixed->rest.size, stream);
}

/** Write @conversion as libtraceevent shows what the kernel means by it. */
static void write_conversion(FILE *stream, const struct ps_conversion *conversion)
{
	struct ps_span text = conversion->text;
	char kind = text.start[text.size - 1];
	struct prefixed prefixed;
	// It would write (nil) and 0x..., the kernel has all digits and no more.
	if (ps_span_is(text, "%p"))
		fputs("%016lx", stream);
	// It would leave out the 0x before 0, as C does; the kernel has it there too, inside the width.
	else if (has_prefix(text) && kind != 'o' && split_prefixed(text, &prefixed))
		write_prefixed(stream, &prefixed, kind);
	else
		fprintf(stream, "%.*s", (int)text.size, text.start);
}

char *ps_stream_finish(FILE *stream, char **text)
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
	return ps_stream_finish(stream, &text);
}
