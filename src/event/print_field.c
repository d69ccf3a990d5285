// SPDX-License-Identifier: MIT
#include "print_text.h"

#include <perfscope/cleanup.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Whether a field is named at the start of @text: REC->NAME, __get_str(NAME), __get_rel_bitmask(NAME), ... */
static bool take_mention(struct ps_span text, struct ps_span *ret)
{
	if (!ps_span_take(&text, "REC->")) {
		if (!ps_span_take(&text, "__get_"))
			return false;
		ps_span_skip(&text, ps_span_word(text).size);
		if (!ps_span_take(&text, "("))
			return false;
		text = ps_span_trim(text);
	}
	*ret = ps_span_word(text);
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
		if (strchr("\"'", argument.start[i]) && !ps_span_skip_string(argument, &i))
			break;
		struct ps_span rest = { argument.start + i, argument.size - i }, word;
		if ((i && ps_is_word(argument.start[i - 1])) || !take_mention(rest, &word))
			continue;
		// An element is not the field: `args[0]` alone would pose as all of `args`.
		if (!ps_span_is(word, name) || word.start[word.size] == '[')
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
	return ps_stream_finish(stream, &text);
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
			if (ps_span_take(&rest, calls[i]) && ps_span_is(ps_span_word(rest), name))
				return true;
		}
		ps_span_skip(&print, 1);
	}
	return false;
}
