// SPDX-License-Identifier: MIT
#include "kernel_enum.h"
#include "print_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/** Whether @word, which starts at @at of @print, may be an enumerator: in capitals, no function, no type and no field. */
static bool is_enumerator(struct ps_span print, size_t at, struct ps_span word)
{
	if (!isupper((unsigned char)word.start[0]) || word.size < 2 || ps_span_is(word, "REC"))
		return false;
	for (size_t i = 0; i < word.size; i++) {
		if (islower((unsigned char)word.start[i]))
			return false;
	}
	return (at < 2 || memcmp(print.start + at - 2, "->", 2)) &&
	       (at + word.size == print.size || word.start[word.size] != '(');
}

/** Write the word at @at of @print, or its number. @enums is read when first needed. */
static void write_word(struct ps_span print, size_t at, struct ps_span word,
		       struct ps_kernel_enums **enums, FILE *stream)
{
	int64_t value;
	bool is_name = is_enumerator(print, at, word);
	if (is_name && !*enums)
		*enums = ps_kernel_enums_read(PS_KERNEL_BTF);
	if (is_name && *enums && ps_kernel_enums_find(*enums, word, &value))
		fprintf(stream, "%" PRId64, value);
	else
		fwrite(word.start, 1, word.size, stream);
}

/** Write what a condition chooses where it has no string: the kernel shows NULL as "(null)", cut by a precision. */
static bool write_null(struct ps_span *rest, FILE *stream)
{
	if (!ps_span_take(rest, ": ((void *)0)"))
		return false;
	fputs(": \"(null)\"", stream);
	return true;
}

/**
 * Whether the bracket at @at of @print is the right side of an operator.
 *
 * libtraceevent 1.7.1 takes a bracket there apart where the operator inside binds less: `a & (b | c)` becomes
 * `(a & b) | c`. It lets a cast alone.
 */
static bool is_right_side(struct ps_span print, size_t at)
{
	if (print.start[at] != '(')
		return false;
	while (at && print.start[at - 1] == ' ')
		at--;
	return at && strchr("&|+-*<>=", print.start[at - 1]);
}

char *ps_print_text_replace(struct ps_span print)
{
	_cleanup_kernel_enums_ struct ps_kernel_enums *enums = NULL;
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return NULL;
	for (size_t at = 0; at < print.size;) {
		size_t start = at;
		struct ps_span rest = { print.start + at, print.size - at };
		if (write_null(&rest, stream)) {
			at = rest.start - print.start;
			continue;
		}
		struct ps_span word = ps_span_word(rest);
		if (word.size) {
			write_word(print, at, word, &enums, stream);
			at += word.size;
			continue;
		}
		if (is_right_side(print, at))
			fputs("(" PS_PRINT_CAST ")", stream);
		if (strchr("\"'", print.start[at]))
			ps_span_skip_string(print, &at);
		at++;
		fwrite(print.start + start, 1, at - start, stream);
	}
	return ps_stream_finish(stream, &text);
}
