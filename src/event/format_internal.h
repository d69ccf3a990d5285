// SPDX-License-Identifier: MIT
/**
 * What the files of a format share: its parts, and the printer of one print format.
 */
#ifndef PERFSCOPE_FORMAT_INTERNAL_H
#define PERFSCOPE_FORMAT_INTERNAL_H

#include "format_text.h"
#include "print_text.h"

#include <perfscope/format.h>
#include <sys/types.h>

struct tep_event;
struct tep_handle;

/** A print format, ready to be evaluated. */
struct ps_printer {
	struct tep_handle *tep;
	struct tep_event *event;
	bool is_usable;		// false: libtraceevent would show something else than the kernel
	bool *must_be_positive; // by field: it is read as if it were unsigned
	bool *is_length;	// by field: counts bytes of the record
	bool *is_shift;		// by field: 1 is shifted by so many bits
};

struct ps_symbolic;

struct ps_format {
	struct ps_machine machine; // whose records it tells about
	char *text;		   // the parts borrow from it
	struct ps_format_text parts;
	char *system;
	char *name;
	struct ps_field *fields;
	size_t nr_fields;
	struct ps_printer *printer; // of the whole print format, made when first asked for
	struct ps_symbolic *symbolics;
};

/** The index of the field that @name is, or -1. */
ssize_t ps_format_find_field(const struct ps_format *format, const char *name);

/** Parse the fields of @format with @print as print format. NULL: no memory, or libtraceevent refuses the fields. */
struct tep_event *ps_format_parse_event(const struct ps_format *format, struct ps_span print,
					struct tep_handle **ret);

/**
 * The printer of @print over the fields of @format; NULL: no memory.
 *
 * One that cannot be used is made too, so that this is found out once.
 */
struct ps_printer *ps_printer_create(const struct ps_format *format, struct ps_span print);
void ps_printer_destroy(struct ps_printer *printer);

/** The text of @raw; the caller frees it. NULL: it cannot be evaluated; takes a @printer of NULL. */
char *ps_printer_print(const struct ps_printer *printer, const struct ps_format *format,
		       struct ps_bytes raw);

/**
 * Whether libtraceevent shows what the kernel shows of @print, as parsed into @printer's event.
 *
 * Notes in @printer which fields must be looked at in each record for that.
 */
bool ps_printer_vet(struct ps_printer *printer, const struct ps_format *format,
		    const struct ps_print_text *print);

#endif
