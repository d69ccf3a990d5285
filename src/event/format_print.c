// SPDX-License-Identifier: MIT
#include "format_internal.h"

#include "print_grammar.h"

#include <string.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

static bool check_grammar(const struct ps_format *format, const struct ps_print_text *print)
{
	for (size_t i = 0; i < print->nr_conversions; i++) {
		const struct ps_conversion *conversion = &print->conversions[i];
		if (!ps_print_argument_check(conversion->value, format->fields, format->nr_fields))
			return false;
		if (conversion->star.size &&
		    !ps_print_argument_check(conversion->star, format->fields, format->nr_fields))
			return false;
	}
	return true;
}

/** Parse @print and decide whether it can be used. */
static bool printer_parse(struct ps_printer *printer, const struct ps_format *format,
			  struct ps_span print)
{
	_cleanup_free_ char *replaced = ps_print_text_replace(print);
	if (!replaced)
		return false;
	print = (struct ps_span){ replaced, strlen(replaced) };
	struct ps_print_text parts;
	if (!ps_print_text_parse(print, &parts))
		return false;
	_cleanup_free_ char *text =
		check_grammar(format, &parts) ? ps_print_text_translate(print, &parts) : NULL;
	if (text)
		printer->event = ps_format_parse_event(
			format, (struct ps_span){ text, strlen(text) }, &printer->tep);
	bool is_usable = printer->event && ps_format_find_field(format, "common_type") >= 0 &&
			 ps_printer_vet(printer, format, &parts);
	ps_print_text_deinit(&parts);
	return is_usable;
}

struct ps_printer *ps_printer_create(const struct ps_format *format, struct ps_span print)
{
	struct ps_printer *printer = calloc(1, sizeof(*printer));
	if (!printer)
		return NULL;
	printer->must_be_positive = calloc(format->nr_fields + 1, sizeof(bool));
	printer->is_length = calloc(format->nr_fields + 1, sizeof(bool));
	printer->is_shift = calloc(format->nr_fields + 1, sizeof(bool));
	if (!printer->must_be_positive || !printer->is_length || !printer->is_shift) {
		ps_printer_destroy(printer);
		return NULL;
	}
	printer->is_usable = printer_parse(printer, format, print);
	return printer;
}

/** Whether all fields lie inside @raw and those that vetting asked for are in range. */
static bool is_printable(const struct ps_printer *printer, const struct ps_format *format,
			 struct ps_bytes raw)
{
	for (size_t i = 0; i < format->nr_fields; i++) {
		struct ps_value value;
		if (!ps_field_decode(&format->fields[i], raw, &value))
			return false;
		if (printer->must_be_positive[i] && value.i64 < 0)
			return false;
		if (printer->is_length[i] && value.u64 > raw.size)
			return false;
		if (printer->is_shift[i] && value.u64 >= 31)
			return false;
	}
	return true;
}

/** A copy of @raw that ends in zeros, as many as a printed length may overshoot it, with the type of @format. */
static uint8_t *copy_record(const struct ps_format *format, struct ps_bytes raw)
{
	uint8_t *copy = calloc(2, raw.size + 64);
	if (!copy)
		return NULL;
	memcpy(copy, raw.data, raw.size);
	uint16_t type = format->parts.id;
	if (format->machine.is_swapped)
		type = __builtin_bswap16(type);
	memcpy(copy + format->fields[ps_format_find_field(format, "common_type")].offset, &type,
	       sizeof(type));
	return copy;
}

char *ps_printer_print(const struct ps_printer *printer, const struct ps_format *format,
		       struct ps_bytes raw)
{
	if (!printer || !printer->is_usable || !is_printable(printer, format, raw))
		return NULL;
	_cleanup_free_ uint8_t *copy = copy_record(format, raw);
	if (!copy)
		return NULL;
	struct tep_record record = { .size = raw.size, .record_size = raw.size, .data = copy };
	struct trace_seq seq;
	trace_seq_init(&seq);
	tep_print_event(printer->tep, &seq, &record, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&seq);
	bool is_printed =
		seq.state == TRACE_SEQ__GOOD && !(printer->event->flags & TEP_EVENT_FL_FAILED);
	char *text = is_printed ? strdup(seq.buffer) : NULL;
	trace_seq_destroy(&seq);
	return text;
}

void ps_printer_destroy(struct ps_printer *printer)
{
	if (!printer)
		return;
	if (printer->tep)
		tep_free(printer->tep);
	free(printer->must_be_positive);
	free(printer->is_length);
	free(printer->is_shift);
	free(printer);
}
