// SPDX-License-Identifier: MIT
/**
 * The text of a format: what is checked before a parser sees it.
 */
#ifndef PERFSCOPE_FORMAT_TEXT_H
#define PERFSCOPE_FORMAT_TEXT_H

#include "span.h"

#include <perfscope/error.h>

/** The two halves of a format text; both borrow from it. */
struct ps_format_text {
	struct ps_span head;  // name, ID, fields; ends with a newline
	struct ps_span print; // what follows "print fmt: "; empty: there is none, or it is not sane
	int id;
};

/** Check @text and split it. PS_ERROR_BAD_DATA names the line that is wrong. */
struct ps_error *ps_format_text_split(struct ps_span text, struct ps_format_text *ret);

#endif
