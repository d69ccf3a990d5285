// SPDX-License-Identifier: MIT
/**
 * The kernel's format text of a tracepoint, through libtraceevent: fields, and printing as the kernel does.
 */
#ifndef PERFSCOPE_FORMAT_H
#define PERFSCOPE_FORMAT_H

#include <perfscope/bytes.h>
#include <perfscope/error.h>
#include <perfscope/field.h>
#include <perfscope/machine.h>

struct ps_format;

/**
 * Parse the format @text of an event of @system.
 *
 * Any text is taken: one that is not a format gives PS_ERROR_BAD_DATA, never a crash or a hang. A text whose fields
 * are readable and whose print format is not is accepted; printing then fails.
 */
struct ps_error *ps_format_parse(const char *text, size_t size, const char *system,
				 struct ps_format **ret);

/** The same of a format of another machine; NULL: this one. */
struct ps_error *ps_format_parse_of(const struct ps_machine *machine, const char *text, size_t size,
				    const char *system, struct ps_format **ret);

void ps_format_destroy(struct ps_format *format);

const char *ps_format_name(const struct ps_format *format);

/** The fields, the common ones first, in the order of the text. The caller owns the array (ps_fields_destroy). */
struct ps_error *ps_format_fields(const struct ps_format *format, struct ps_field **ret,
				  size_t *ret_nr);

/** The print format evaluated over @raw; the caller frees it; NULL: it cannot be evaluated here. */
char *ps_format_print(struct ps_format *format, struct ps_bytes raw);

/**
 * The part of the print format that shows the field @name alone, evaluated over @raw ("R+" for prev_state).
 *
 * The caller frees it; NULL: the print format does not show it, or cannot be evaluated.
 */
char *ps_format_symbolic(struct ps_format *format, const char *name, struct ps_bytes raw);

PS_DEFINE_CLEANUP(struct ps_format *, ps_format, ps_format_destroy)
#define _cleanup_format_ _cleanup_(ps_format_p)

#endif
