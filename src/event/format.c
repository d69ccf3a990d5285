// SPDX-License-Identifier: MIT
#include <perfscope/format.h>

#include "field_type.h"
#include "format_text.h"
#include "print_grammar.h"

#include <ctype.h>
#include <string.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

/** A print format, ready to be evaluated. */
struct printer {
	struct tep_handle *tep;
	struct tep_event *event;
	bool is_usable;		// false: libtraceevent would show something else than the kernel
	bool *must_be_positive; // by field: see vet_field()
	bool *is_length;	// by field: counts bytes of the record
};

/** What shows one field alone, made when first asked for. */
struct symbolic {
	char *name;
	struct printer *printer; // NULL: the print format does not show it
	struct symbolic *next;
};

struct ps_format {
	char *text; // the parts borrow from it
	struct ps_format_text parts;
	char *system;
	char *name;
	struct ps_field *fields;
	size_t nr_fields;
	struct printer *printer; // of the whole print format, made when first asked for
	struct symbolic *symbolics;
};

/** Parse the fields of @format with @print as print format. NULL: no memory, or libtraceevent refuses the fields. */
static struct tep_event *parse_event(const struct ps_format *format, struct ps_span print,
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
	tep_set_long_size(tep, sizeof(long));
	tep_set_file_bigendian(tep, tep_is_bigendian() ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	struct tep_event *event = NULL;
	tep_parse_format(tep, &event, text, size, format->system);
	if (event) {
		*ret = tep;
		return event;
	}
	tep_free(tep);
	return NULL;
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
		ps_field_classify(field, from->flags & TEP_FIELD_IS_SIGNED,
				  ps_span_shows_bitmap(format->parts.print, from->name));
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
		parse_event(format, (struct ps_span){ "\"\"", strlen("\"\"") }, &tep);
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
	_cleanup_format_ struct ps_format *format = calloc(1, sizeof(*format));
	if (!format)
		return &ps_enomem;
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

static void printer_destroy(struct printer *printer)
{
	if (!printer)
		return;
	if (printer->tep)
		tep_free(printer->tep);
	free(printer->must_be_positive);
	free(printer->is_length);
	free(printer);
}

void ps_format_destroy(struct ps_format *format)
{
	if (!format)
		return;
	while (format->symbolics) {
		struct symbolic *symbolic = format->symbolics;
		format->symbolics = symbolic->next;
		printer_destroy(symbolic->printer);
		free(symbolic->name);
		free(symbolic);
	}
	printer_destroy(format->printer);
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

int ps_format_id(const struct ps_format *format)
{
	return format->parts.id;
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

/*
 * libtraceevent evaluates everything unsigned, reads where a record tells it to, and shows 0 or nothing for what it
 * cannot do. What follows decides, before the first record, whether a print format comes out as the kernel's would,
 * and which fields must be looked at in each record for that.
 */

/** What is being decided. */
struct vetting {
	const struct ps_format *format;
	struct printer *printer;
};

// How much of a value must be right: so many of its low bytes, or as a number that is compared or divided.
#define EXACT_NUMBER 9

static bool vet_number(struct vetting *vetting, const struct tep_print_arg *arg,
		       unsigned int width);

/** The index of the field that @name is, or -1. */
static ssize_t find_field(const struct ps_format *format, const char *name)
{
	for (size_t i = 0; i < format->nr_fields; i++) {
		if (!strcmp(format->fields[i].name, name))
			return i;
	}
	return -1;
}

static const struct ps_field *field_of(const struct vetting *vetting,
				       const struct tep_print_arg *arg)
{
	if (arg->type != TEP_PRINT_FIELD)
		return NULL;
	ssize_t at = find_field(vetting->format, arg->field.name);
	return at < 0 ? NULL : &vetting->format->fields[at];
}

static bool is_number(const struct tep_print_arg *arg)
{
	if (arg->type != TEP_PRINT_ATOM || !isdigit((unsigned char)arg->atom.atom[0]))
		return false;
	char *end;
	strtoull(arg->atom.atom, &end, 0);
	return !end[strspn(end, "uUlL")];
}

static bool is_unsigned_long(const struct tep_print_arg *arg)
{
	return is_number(arg) && strpbrk(arg->atom.atom, "uU") && strpbrk(arg->atom.atom, "lL");
}

static unsigned long long number_of(const struct tep_print_arg *arg)
{
	return strtoull(arg->atom.atom, NULL, 0);
}

/** A signed field is read as if it were unsigned: where more than its own bytes count, it must not be negative. */
static bool vet_field(struct vetting *vetting, const struct tep_print_arg *arg, unsigned int width)
{
	const struct ps_field *field = field_of(vetting, arg);
	const struct tep_format_field *slot =
		tep_find_any_field(vetting->printer->event, arg->field.name);
	if (!field || !slot || field->kind != PS_FIELD_INT)
		return false;
	if (slot->flags & TEP_FIELD_IS_SIGNED && width > field->size)
		vetting->printer->must_be_positive[field - vetting->format->fields] = true;
	return true;
}

/** Bytes that a cast to a signed type leaves; 8 for what it does not cut. */
static unsigned int signed_cast_size(const char *type)
{
	static const struct {
		const char *name;
		unsigned int size;
	} casts[] = {
		{ "int", 4 },  { "s32", 4 }, { "short", 2 },	   { "s16", 2 },
		{ "char", 1 }, { "s8", 1 },  { "signed char", 1 },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(casts); i++) {
		if (!strcmp(type, casts[i].name))
			return casts[i].size;
	}
	return 8;
}

/** `REC->args[2]`: an element inside a fixed array. */
static bool vet_element(struct vetting *vetting, const struct tep_print_arg_op *op,
			unsigned int width)
{
	const struct ps_field *field = field_of(vetting, op->left);
	if (!field || field->place != PS_PLACE_FIXED || !is_number(op->right))
		return false;
	if (field->kind == PS_FIELD_INT || field->kind == PS_FIELD_CPUMASK)
		return false;
	const struct tep_format_field *slot =
		tep_find_any_field(vetting->printer->event, field->name);
	return slot && slot->elementsize == field->element_size &&
	       number_of(op->right) < field->size / field->element_size &&
	       (!field->is_signed || width <= field->element_size);
}

static bool vet_both(struct vetting *vetting, const struct tep_print_arg_op *op,
		     unsigned int left_width, unsigned int right_width)
{
	return vet_number(vetting, op->left, left_width) &&
	       vet_number(vetting, op->right, right_width);
}

static bool vet_op(struct vetting *vetting, const struct tep_print_arg_op *op, unsigned int width)
{
	if (!op->left || !op->right)
		return false;
	if (!strcmp(op->op, "["))
		return vet_element(vetting, op, width);
	if (!strcmp(op->op, "?"))
		return op->right->type == TEP_PRINT_OP && vet_number(vetting, op->left, 0) &&
		       vet_both(vetting, &op->right->op, width, width);
	if (!strcmp(op->op, "&&") || !strcmp(op->op, "||") || !strcmp(op->op, "!"))
		return vet_both(vetting, op, 0, 0);
	if (!strcmp(op->op, "==") || !strcmp(op->op, "!="))
		return vet_both(vetting, op, 8, 8);
	if (!strcmp(op->op, "/") || !strcmp(op->op, "%"))
		return is_number(op->right) && number_of(op->right) &&
		       vet_number(vetting, op->left, EXACT_NUMBER);
	if (!strcmp(op->op, "<<"))
		return is_number(op->right) && number_of(op->right) < 64 &&
		       vet_number(vetting, op->left, width);
	if (!strcmp(op->op, ">>"))
		return is_number(op->right) && number_of(op->right) < 64 &&
		       vet_number(vetting, op->left, EXACT_NUMBER);
	if (strchr("<>", op->op[0]))
		return vet_both(vetting, op, EXACT_NUMBER, EXACT_NUMBER);
	// What is below zero in C is far above it here; of -9ULL that is true in C as well.
	if (strchr("-~", op->op[0]) && width == EXACT_NUMBER)
		return op->op[0] == '-' && op->left->type == TEP_PRINT_NULL &&
		       is_unsigned_long(op->right);
	return strchr("-~+*&|", op->op[0]) && !op->op[1] && vet_both(vetting, op, width, width);
}

static bool vet_number(struct vetting *vetting, const struct tep_print_arg *arg, unsigned int width)
{
	unsigned int cast_size;
	switch (arg->type) {
	case TEP_PRINT_NULL: // the left side of -x, !x, ~x
		return true;
	case TEP_PRINT_ATOM:
		return is_number(arg);
	case TEP_PRINT_FIELD:
		return vet_field(vetting, arg, width);
	case TEP_PRINT_TYPE:
		cast_size = signed_cast_size(arg->typecast.type);
		return (cast_size == 8 || width <= cast_size) &&
		       vet_number(vetting, arg->typecast.item, width);
	case TEP_PRINT_OP:
		return vet_op(vetting, &arg->op, width);
	case TEP_PRINT_DYNAMIC_ARRAY_LEN:
		return arg->dynarray.field;
	default:
		return false;
	}
}

static bool is_dynamic(const struct vetting *vetting, const char *name)
{
	ssize_t at = find_field(vetting->format, name);
	if (at < 0)
		return false;
	enum ps_field_place place = vetting->format->fields[at].place;
	return place == PS_PLACE_DATA_LOC || place == PS_PLACE_REL_LOC;
}

/** How many bytes are shown: no more than the record has. */
static bool vet_length(struct vetting *vetting, const struct tep_print_arg *arg)
{
	const struct ps_field *field = field_of(vetting, arg);
	if (!field)
		return arg->type == TEP_PRINT_DYNAMIC_ARRAY_LEN && arg->dynarray.field;
	vetting->printer->is_length[field - vetting->format->fields] = true;
	return vet_field(vetting, arg, EXACT_NUMBER);
}

static bool vet_hex(struct vetting *vetting, const struct tep_print_arg_hex *hex)
{
	bool is_there;
	if (hex->field->type == TEP_PRINT_DYNAMIC_ARRAY) {
		const struct tep_format_field *slot = hex->field->dynarray.field;
		// A relative location is taken for an absolute one here.
		is_there = slot && is_dynamic(vetting, slot->name) &&
			   !(slot->flags & TEP_FIELD_IS_RELATIVE);
	} else {
		const struct ps_field *field = field_of(vetting, hex->field);
		is_there = field && field->place == PS_PLACE_FIXED && field->kind != PS_FIELD_INT;
	}
	return is_there && vet_length(vetting, hex->size);
}

/** Names that the kernel left in its text instead of their numbers would count as 0. */
static bool has_numbers(const struct tep_print_flag_sym *flags)
{
	for (; flags; flags = flags->next) {
		if (!isdigit((unsigned char)flags->value[0]) && flags->value[0] != '-')
			return false;
	}
	return true;
}

static bool vet_string(struct vetting *vetting, const struct tep_print_arg *arg)
{
	const struct ps_field *field;
	switch (arg->type) {
	case TEP_PRINT_ATOM:
		return true;
	case TEP_PRINT_FIELD:
		// A pointer to a string in the kernel would come out as an address.
		field = field_of(vetting, arg);
		return field && field->kind == PS_FIELD_STRING &&
		       (field->place == PS_PLACE_FIXED || field->place == PS_PLACE_REST);
	case TEP_PRINT_FLAGS:
		return has_numbers(arg->flags.flags) && vet_number(vetting, arg->flags.field, 8);
	case TEP_PRINT_SYMBOL:
		return has_numbers(arg->symbol.symbols) &&
		       vet_number(vetting, arg->symbol.field, 8);
	case TEP_PRINT_HEX:
	case TEP_PRINT_HEX_STR:
		return vet_hex(vetting, &arg->hex);
	case TEP_PRINT_STRING:
		return is_dynamic(vetting, arg->string.string);
	case TEP_PRINT_BITMASK:
	case TEP_PRINT_CPUMASK:
		return is_dynamic(vetting, arg->bitmask.bitmask);
	case TEP_PRINT_OP:
		return !strcmp(arg->op.op, "?") && arg->op.right->type == TEP_PRINT_OP &&
		       vet_number(vetting, arg->op.left, 0) &&
		       vet_string(vetting, arg->op.right->op.left) &&
		       vet_string(vetting, arg->op.right->op.right);
	default:
		return false; // __print_array among them: its brackets and its hex are missing here
	}
}

/** %pI4 and the like, which show the bytes of a field. */
static bool vet_pointer(struct vetting *vetting, const struct tep_print_arg *arg, const char *kind)
{
	static const struct {
		const char *kind;
		unsigned int size;
	} addresses[] = {
		{ "I4", 4 }, { "I6", 16 }, { "i6", 16 }, { "IS", 16 },
		{ "M", 6 },  { "m", 6 },   { "U", 16 },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(addresses); i++) {
		if (strncmp(kind, addresses[i].kind, strlen(addresses[i].kind)))
			continue;
		const struct ps_field *field = field_of(vetting, arg);
		return field && field->place == PS_PLACE_FIXED && field->kind != PS_FIELD_INT &&
		       field->size >= addresses[i].size;
	}
	return vet_number(vetting, arg, 8);
}

static bool vet_conversion(struct vetting *vetting, const struct ps_conversion *conversion,
			   const struct tep_print_arg *arg)
{
	static const struct {
		const char *length;
		unsigned int size;
	} lengths[] = { { "", 4 },   { "hh", 1 }, { "h", 2 }, { "l", 8 },
			{ "ll", 8 }, { "z", 8 },  { "L", 8 } };
	if (conversion->is_string)
		return vet_string(vetting, arg);
	if (conversion->pointer_kind)
		return vet_pointer(vetting, arg, conversion->pointer_kind);
	for (size_t i = 0; i < PS_ARRAY_SIZE(lengths); i++) {
		if (!strcmp(conversion->length, lengths[i].length))
			return vet_number(vetting, arg, lengths[i].size);
	}
	return false;
}

static bool vet_print(struct vetting *vetting, const struct ps_print_text *print)
{
	const struct tep_event *event = vetting->printer->event;
	if (event->flags & (TEP_EVENT_FL_FAILED | TEP_EVENT_FL_ISBPRINT))
		return false;
	const struct tep_print_arg *arg = event->print_fmt.args;
	for (size_t i = 0; i < print->nr_conversions; i++) {
		const struct ps_conversion *conversion = &print->conversions[i];
		if (conversion->star.size) {
			if (!arg || !vet_number(vetting, arg, 4))
				return false;
			arg = arg->next;
		}
		if (!arg || !vet_conversion(vetting, conversion, arg))
			return false;
		arg = arg->next;
	}
	return !arg;
}

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
static bool printer_parse(struct printer *printer, const struct ps_format *format,
			  struct ps_span print)
{
	struct ps_print_text parts;
	if (!ps_print_text_parse(print, &parts))
		return false;
	_cleanup_free_ char *text =
		check_grammar(format, &parts) ? ps_print_text_translate(print, &parts) : NULL;
	if (text)
		printer->event =
			parse_event(format, (struct ps_span){ text, strlen(text) }, &printer->tep);
	struct vetting vetting = { format, printer };
	bool is_usable = printer->event && find_field(format, "common_type") >= 0 &&
			 vet_print(&vetting, &parts);
	ps_print_text_deinit(&parts);
	return is_usable;
}

static struct printer *printer_create(const struct ps_format *format, struct ps_span print)
{
	struct printer *printer = calloc(1, sizeof(*printer));
	if (!printer)
		return NULL;
	printer->must_be_positive = calloc(format->nr_fields + 1, sizeof(bool));
	printer->is_length = calloc(format->nr_fields + 1, sizeof(bool));
	if (!printer->must_be_positive || !printer->is_length) {
		printer_destroy(printer);
		return NULL;
	}
	printer->is_usable = printer_parse(printer, format, print);
	return printer;
}

/** Whether all fields lie inside @raw and those that vetting asked for are in range. */
static bool is_printable(const struct printer *printer, const struct ps_format *format,
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
	memcpy(copy + format->fields[find_field(format, "common_type")].offset, &type,
	       sizeof(type));
	return copy;
}

static char *printer_print(const struct printer *printer, const struct ps_format *format,
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

char *ps_format_print(struct ps_format *format, struct ps_bytes raw)
{
	if (!format->printer)
		format->printer = printer_create(format, format->parts.print);
	return printer_print(format->printer, format, raw);
}

static struct symbolic *symbolic_create(const struct ps_format *format, const char *name)
{
	struct symbolic *symbolic = calloc(1, sizeof(*symbolic));
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
			printer_create(format, (struct ps_span){ print, strlen(print) });
	return symbolic;
}

char *ps_format_symbolic(struct ps_format *format, const char *name, struct ps_bytes raw)
{
	if (find_field(format, name) < 0)
		return NULL;
	struct symbolic *symbolic = format->symbolics;
	while (symbolic && strcmp(symbolic->name, name))
		symbolic = symbolic->next;
	if (!symbolic) {
		symbolic = symbolic_create(format, name);
		if (!symbolic)
			return NULL;
		symbolic->next = format->symbolics;
		format->symbolics = symbolic;
	}
	return printer_print(symbolic->printer, format, raw);
}
