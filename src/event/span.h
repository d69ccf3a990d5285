// SPDX-License-Identifier: MIT
/**
 * A piece of a text, and what is taken from its start.
 */
#ifndef PERFSCOPE_SPAN_H
#define PERFSCOPE_SPAN_H

#include <stdbool.h>
#include <stddef.h>

/** A piece of a text, borrowed. */
struct ps_span {
	const char *start;
	size_t size;
};

/** Of a name in C. */
bool ps_is_word(char c);

bool ps_span_starts(struct ps_span span, const char *prefix);
bool ps_span_is(struct ps_span span, const char *text);
void ps_span_skip(struct ps_span *span, size_t size);

/** Skip @prefix if @span starts with it. */
bool ps_span_take(struct ps_span *span, const char *prefix);

/** Take a decimal number up to @max. */
bool ps_span_take_number(struct ps_span *span, unsigned int max, unsigned int *ret);

/** @span without white space at both ends. */
struct ps_span ps_span_trim(struct ps_span span);

/** The word at the start of @text. */
struct ps_span ps_span_word(struct ps_span text);

/** Move @i from the quote that starts a string in @text to the one that ends it; false where it does not end. */
bool ps_span_skip_string(struct ps_span text, size_t *i);

#endif
