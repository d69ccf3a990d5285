// SPDX-License-Identifier: MIT
#include "format_internal.h"

#include "field_type.h"

#include <string.h>
#include <traceevent/event-parse.h>

/** What shows one field alone, made when first asked for. */
struct ps_symbolic {
	char *name;
	struct ps_printer *printer; // NULL: the print format does not show it
	struct ps_symbolic *next;
};

struct tep_event *ps_format_parse_event(const struct ps_format *format, struct ps_span print,
					struct tep_handle **ret)
{
	const struct ps_span head = format->parts.head;
	_cleanup_free_ char *text = NULL;
	int size = asprintf(&text, "%.*s\nprint fmt: %.*s\n", (int)head.size, head.start,
			    (int)print.size, print.start);
	if (size < 0) {
		text = NULL;
		return NULL;
	}
	// It writes to stderr by itself otherwise; what it cannot parse is told by what we return.
	tep_set_loglevel(TEP_LOG_NONE);
	struct tep_handle *tep = tep_alloc();
	if (!tep)
		return NULL;
	tep_set_long_size(tep, format->machine.long_size);
	bool is_big_endian = tep_is_bigendian() != format->machine.is_swapped;
	tep_set_file_bigendian(tep, is_big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	struct tep_event *event = NULL;
	tep_parse_format(tep, &event, text, size, format->system);
	if (event) {
		*ret = tep;
		return event;
	}
	tep_free(tep);
	return NULL;
}

ssize_t ps_format_find_field(const struct ps_format *format, const char *name)
{
	for (size_t i = 0; i < format->nr_fields; i++) {
		if (!strcmp(format->fields[i].name, name))
			return i;
	}
	return -1;
}

static struct ps_error *append_fields(struct ps_format *format, const struct tep_format_field *from)
{
	for (; from; from = from->next) {
		struct ps_field *field = &format->fields[format->nr_fields++];
		field->name = strdup(from->name);
		field->type_name = strdup(from->type);
		if (!field->name || !field->type_name)
			return &ps_enomem;
		field->offset = from->offset;
		field->size = from->size;
		field->is_swapped = format->machine.is_swapped;
		ps_field_classify(field, from->flags & TEP_FIELD_IS_SIGNED,
				  ps_span_shows_bitmap(format->parts.print, from->name),
				  format->machine.long_size);
	}
	return NULL;
}

static size_t count_fields(const struct tep_format_field *fields)
{
	size_t nr = 0;
	for (; fields; fields = fields->next)
		nr++;
	return nr;
}

static struct ps_error *read_fields(struct ps_format *format)
{
	struct tep_handle *tep;
	struct tep_event *event =
		ps_format_parse_event(format, (struct ps_span){ "\"\"", strlen("\"\"") }, &tep);
	if (!event)
		return ps_error_format(PS_ERROR_BAD_DATA, "libtraceevent cannot parse the fields");
	const struct tep_format *from = &event->format;
	size_t nr = count_fields(from->common_fields) + count_fields(from->fields);
	format->name = strdup(event->name);
	format->fields = calloc(nr + 1, sizeof(*format->fields));
	struct ps_error *error = format->name && format->fields ? NULL : &ps_enomem;
	if (!error)
		error = append_fields(format, from->common_fields);
	if (!error)
		error = append_fields(format, from->fields);
	tep_free(tep);
	return error;
}

struct ps_error *ps_format_parse(const char *text, size_t size, const char *system,
				 struct ps_format **ret)
{
	return ps_format_parse_of(NULL, text, size, system, ret);
}

struct ps_error *ps_format_parse_of(const struct ps_machine *machine, const char *text, size_t size,
				    const char *system, struct ps_format **ret)
{
	_cleanup_format_ struct ps_format *format = calloc(1, sizeof(*format));
	if (!format)
		return &ps_enomem;
	format->machine = *ps_machine_or_this(machine);
	format->system = strdup(system);
	format->text = malloc(size + 1);
	if (!format->system || !format->text)
		return &ps_enomem;
	memcpy(format->text, text, size);
	format->text[size] = '\0';
	struct ps_error *error =
		ps_format_text_split((struct ps_span){ format->text, size }, &format->parts);
	if (!error)
		error = read_fields(format);
	if (error)
		return ps_error_context(error, "format of %s", system);
	*ret = take_ptr(format);
	return NULL;
}

void ps_format_destroy(struct ps_format *format)
{
	if (!format)
		return;
	while (format->symbolics) {
		struct ps_symbolic *symbolic = format->symbolics;
		format->symbolics = symbolic->next;
		ps_printer_destroy(symbolic->printer);
		free(symbolic->name);
		free(symbolic);
	}
	ps_printer_destroy(format->printer);
	ps_fields_destroy(format->fields, format->nr_fields);
	free(format->name);
	free(format->system);
	free(format->text);
	free(format);
}

const char *ps_format_name(const struct ps_format *format)
{
	return format->name;
}

struct ps_error *ps_format_fields(const struct ps_format *format, struct ps_field **ret,
				  size_t *ret_nr)
{
	struct ps_field *fields = calloc(format->nr_fields + 1, sizeof(*fields));
	if (!fields)
		return &ps_enomem;
	for (size_t i = 0; i < format->nr_fields; i++) {
		fields[i] = format->fields[i];
		fields[i].name = strdup(format->fields[i].name);
		fields[i].type_name = strdup(format->fields[i].type_name);
		if (!fields[i].name || !fields[i].type_name) {
			ps_fields_destroy(fields, i + 1);
			return &ps_enomem;
		}
	}
	*ret = fields;
	*ret_nr = format->nr_fields;
	return NULL;
}

char *ps_format_print(struct ps_format *format, struct ps_bytes raw)
{
	if (!format->printer)
		format->printer = ps_printer_create(format, format->parts.print);
	return ps_printer_print(format->printer, format, raw);
}

static struct ps_symbolic *symbolic_create(const struct ps_format *format, const char *name)
{
	struct ps_symbolic *symbolic = calloc(1, sizeof(*symbolic));
	if (!symbolic)
		return NULL;
	symbolic->name = strdup(name);
	if (!symbolic->name) {
		free(symbolic);
		return NULL;
	}
	_cleanup_free_ char *print = ps_print_text_of_field(format->parts.print, name);
	if (print)
		symbolic->printer =
			ps_printer_create(format, (struct ps_span){ print, strlen(print) });
	return symbolic;
}

char *ps_format_symbolic(struct ps_format *format, const char *name, struct ps_bytes raw)
{
	if (ps_format_find_field(format, name) < 0)
		return NULL;
	struct ps_symbolic *symbolic = format->symbolics;
	while (symbolic && strcmp(symbolic->name, name))
		symbolic = symbolic->next;
	if (!symbolic) {
		symbolic = symbolic_create(format, name);
		if (!symbolic)
			return NULL;
		symbolic->next = format->symbolics;
		format->symbolics = symbolic;
	}
	return ps_printer_print(symbolic->printer, format, raw);
}
