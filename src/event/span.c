// SPDX-License-Identifier: MIT
#include "span.h"

#include <ctype.h>
#include <string.h>

bool ps_span_starts(struct ps_span span, const char *prefix)
{
	size_t length = strlen(prefix);
	return span.size >= length && !memcmp(span.start, prefix, length);
}

bool ps_span_is(struct ps_span span, const char *text)
{
	return span.size == strlen(text) && !memcmp(span.start, text, span.size);
}

void ps_span_skip(struct ps_span *span, size_t size)
{
	span->start += size;
	span->size -= size;
}

bool ps_span_take(struct ps_span *span, const char *prefix)
{
	if (!ps_span_starts(*span, prefix))
		return false;
	ps_span_skip(span, strlen(prefix));
	return true;
}

struct ps_span ps_span_trim(struct ps_span span)
{
	while (span.size && isspace((unsigned char)span.start[0]))
		ps_span_skip(&span, 1);
	while (span.size && isspace((unsigned char)span.start[span.size - 1]))
		span.size--;
	return span;
}

bool ps_span_take_number(struct ps_span *span, unsigned int max, unsigned int *ret)
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
	ps_span_skip(span, i);
	*ret = value;
	return true;
}

bool ps_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

struct ps_span ps_span_word(struct ps_span text)
{
	size_t size = 0;
	while (size < text.size && ps_is_word(text.start[size]))
		size++;
	return (struct ps_span){ text.start, size };
}

bool ps_span_skip_string(struct ps_span text, size_t *i)
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
