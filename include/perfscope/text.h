// SPDX-License-Identifier: MIT
/**
 * Text: what a printf format gives, as memory of its own.
 */
#ifndef PERFSCOPE_TEXT_H
#define PERFSCOPE_TEXT_H

#include <stdarg.h>
#include <stdio.h>

/** The text of @format, owned by the caller; NULL: no memory. */
__attribute__((format(printf, 1, 0))) static inline char *ps_text_format(const char *format,
									 va_list arguments)
{
	char *text;
	return vasprintf(&text, format, arguments) < 0 ? NULL : text;
}

#endif
