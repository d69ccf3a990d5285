// SPDX-License-Identifier: MIT
/**
 * A print format taken apart: its conversions, their arguments, and the part that shows one field.
 */
#ifndef PERFSCOPE_PRINT_TEXT_H
#define PERFSCOPE_PRINT_TEXT_H

#include "span.h"

#include <stdio.h>

/** One conversion of a print format: "%5d", "%.*s". */
struct ps_conversion {
	struct ps_span text;
	bool is_joined;		  // nothing stands between the one before and this
	bool is_string;		  // %s
	const char *pointer_kind; // what follows %p in the text, NULL: no pointer
	char length[3];		  // "", "hh", "h", "l", "ll", "z"
	struct ps_span star;	  // the argument of '*'; empty: none
	struct ps_span value;	  // the argument that is shown
};

struct ps_print_text {
	struct ps_conversion *conversions; // owned
	size_t nr_conversions;
};

/**
 * Take the print format @print apart: `"...", argument, ...`.
 *
 * False where it is none, where arguments and conversions do not match, or where a conversion is one that
 * libtraceevent shows otherwise than the kernel.
 */
bool ps_print_text_parse(struct ps_span print, struct ps_print_text *ret);
void ps_print_text_deinit(struct ps_print_text *print);

/**
 * @print, of which @parts are the parts, with the conversions that libtraceevent shows otherwise than the kernel
 * replaced by ones that come out the same. The caller frees it; NULL: no memory.
 */
char *ps_print_text_translate(struct ps_span print, const struct ps_print_text *parts);

/** The type of a cast that changes nothing, which keeps libtraceevent from taking a bracket apart. */
#define PS_PRINT_CAST "u64"

/**
 * @print with what libtraceevent cannot evaluate replaced by what is shown alike: the kernel's enumerators by their
 * numbers, the NULL of a condition by its text, and a bracket to the right of an operator by a cast one.
 *
 * A name that is not known stays. The caller frees it; NULL: no memory.
 */
char *ps_print_text_replace(struct ps_span print);

/**
 * The part of @print that shows the field @name alone, as a print format: the first run of conversions, with nothing
 * between them, whose arguments read this field and no other; one with a text (%s) goes before one with a number.
 *
 * The caller frees it; NULL: there is none.
 */
char *ps_print_text_of_field(struct ps_span print, const char *name);

/** Whether @print shows the field @name as a bitmap. */
bool ps_span_shows_bitmap(struct ps_span print, const char *name);

/** Close @stream, which writes to @text, and return that; NULL: no memory, and @text is freed. */
char *ps_stream_finish(FILE *stream, char **text);

#endif
