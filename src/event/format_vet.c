// SPDX-License-Identifier: MIT
#include "format_internal.h"

#include <ctype.h>
#include <string.h>
#include <traceevent/event-parse.h>

/*
 * libtraceevent evaluates everything unsigned, reads where a record tells it to, and shows 0 or nothing for what it
 * cannot do. What follows decides, before the first record, whether a print format comes out as the kernel's would,
 * and which fields must be looked at in each record for that.
 */

/** What is being decided. */
struct vetting {
	const struct ps_format *format;
	struct ps_printer *printer;
};

// How much of a value must be right: so many of its low bytes, or as a number that is compared or divided.
#define EXACT_NUMBER 9

static bool vet_number(struct vetting *vetting, const struct tep_print_arg *arg,
		       unsigned int width);

static const struct ps_field *field_of(const struct vetting *vetting,
				       const struct tep_print_arg *arg)
{
	if (arg->type != TEP_PRINT_FIELD)
		return NULL;
	ssize_t at = ps_format_find_field(vetting->format, arg->field.name);
	return at < 0 ? NULL : &vetting->format->fields[at];
}

/** @arg without the casts that ps_print_text_replace() puts in. */
static const struct tep_print_arg *uncast(const struct tep_print_arg *arg)
{
	while (arg->type == TEP_PRINT_TYPE && !strcmp(arg->typecast.type, PS_PRINT_CAST))
		arg = arg->typecast.item;
	return arg;
}

static bool is_number(const struct tep_print_arg *arg)
{
	arg = uncast(arg);
	if (arg->type != TEP_PRINT_ATOM || !isdigit((unsigned char)arg->atom.atom[0]))
		return false;
	char *end;
	strtoull(arg->atom.atom, &end, 0);
	return !end[strspn(end, "uUlL")];
}

static bool is_unsigned_long(const struct tep_print_arg *arg)
{
	if (!is_number(arg))
		return false;
	const char *number = uncast(arg)->atom.atom;
	return strpbrk(number, "uU") && strpbrk(number, "lL");
}

static unsigned long long number_of(const struct tep_print_arg *arg)
{
	return strtoull(uncast(arg)->atom.atom, NULL, 0);
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

/** `1 << REC->bit`: no more than an int has, so that it is the same in any width. */
static bool vet_shift(struct vetting *vetting, const struct tep_print_arg *bit)
{
	if (is_number(bit))
		return number_of(bit) < 64;
	const struct ps_field *field = field_of(vetting, uncast(bit));
	if (!field || field->kind != PS_FIELD_INT)
		return false;
	vetting->printer->is_shift[field - vetting->format->fields] = true;
	return true;
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
	if (!strcmp(op->op, "<<") && is_number(op->left) && number_of(op->left) == 1)
		return vet_shift(vetting, op->right);
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
	ssize_t at = ps_format_find_field(vetting->format, name);
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

bool ps_printer_vet(struct ps_printer *printer, const struct ps_format *format,
		    const struct ps_print_text *print)
{
	struct vetting it = { format, printer }, *vetting = &it;
	const struct tep_event *event = printer->event;
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
