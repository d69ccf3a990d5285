// SPDX-License-Identifier: MIT
/**
 * Where a variable is, as debug information says it, in the kernel's syntax.
 */
#include "probe_dwarf.h"

#include <dwarf.h>
#include <inttypes.h>
#include <string.h>

bool ps_dwarf_register(unsigned int machine, unsigned int number, char ret[8])
{
	static const char *const x86[] = { "ax", "dx", "cx", "bx", "si", "di", "bp", "sp" };
	if (machine == EM_X86_64 && number < PS_ARRAY_SIZE(x86))
		snprintf(ret, 8, "%%%s", x86[number]);
	else if (machine == EM_X86_64 && number < 16)
		snprintf(ret, 8, "%%r%u", number);
	else if (machine == EM_AARCH64 && number < 31)
		snprintf(ret, 8, "%%x%u", number);
	else if (machine == EM_AARCH64 && number == 31)
		snprintf(ret, 8, "%%sp");
	else
		return false;
	return true;
}

bool ps_fetch_text(const struct ps_fetch *fetch, char ret[PS_FETCH_SIZE])
{
	int length;
	if (fetch->kind == PS_FETCH_VALUE)
		length = snprintf(ret, PS_FETCH_SIZE, "%s", fetch->base);
	else if (fetch->kind == PS_FETCH_MEMORY)
		length = snprintf(ret, PS_FETCH_SIZE, "%+" PRId64 "(%s)", fetch->offset,
				  fetch->base);
	else {
		// The kernel adds the distance of the probe from its offset in the file: that of the code's segment.
		uint64_t in_file = 0;
		ps_elf_code_offset(fetch->scope->dwarf->elf, fetch->scope->address, &in_file);
		uint64_t distance = fetch->scope->address - in_file;
		length = snprintf(ret, PS_FETCH_SIZE, "@+0x%" PRIx64, fetch->offset - distance);
	}
	return length < PS_FETCH_SIZE;
}

bool ps_fetch_deref(struct ps_fetch *fetch)
{
	char text[PS_FETCH_SIZE];
	if (!ps_fetch_text(fetch, text))
		return false;
	memcpy(fetch->base, text, sizeof(text));
	fetch->kind = PS_FETCH_MEMORY;
	fetch->offset = 0;
	return true;
}

static const char too_hard[] = "the kernel cannot compute where it is";

static const char *at_register(const struct ps_scope *scope, unsigned int number, int64_t offset,
			       struct ps_fetch *ret)
{
	ret->kind = PS_FETCH_MEMORY;
	ret->offset = offset;
	return ps_dwarf_register(scope->dwarf->machine, number, ret->base)
		       ? NULL
		       : "the kernel cannot fetch the register it is in";
}

static const char *run_first(const struct ps_scope *scope, const Dwarf_Op *op,
			     struct ps_fetch *ret);

/** The address of the frame, as the unwind tables of @elf or of the debug information say. */
static const char *locate_frame(const struct ps_scope *scope, struct ps_fetch *ret)
{
	Dwarf_CFI *eh_frame = dwarf_getcfi_elf(scope->dwarf->elf->elf);
	Dwarf_Frame *frame = NULL;
	if ((!eh_frame || dwarf_cfi_addrframe(eh_frame, scope->address, &frame)) &&
	    dwarf_cfi_addrframe(dwarf_getcfi(scope->dwarf->dwarf), scope->address, &frame))
		frame = NULL;
	Dwarf_Op *ops;
	size_t nr = 0;
	const char *reason = too_hard;
	// It is described by neither itself nor what is counted from it.
	if (frame && !dwarf_frame_cfa(frame, &ops, &nr) && nr == 1 &&
	    ops[0].atom != DW_OP_call_frame_cfa && ops[0].atom != DW_OP_fbreg)
		reason = run_first(scope, &ops[0], ret);
	free(frame);
	if (eh_frame)
		dwarf_cfi_end(eh_frame);
	return reason;
}

static const char *locate_frame_base(const struct ps_scope *scope, int64_t offset,
				     struct ps_fetch *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t nr;
	Dwarf_Die function;
	// An inlined instance has the frame of the function that it lies in.
	struct ps_scope outer = *scope;
	if (dwarf_tag(&outer.function) != DW_TAG_subprogram &&
	    !ps_scope_at(scope->dwarf, scope->address, &outer))
		return too_hard;
	function = outer.function;
	if (!dwarf_attr_integrate(&function, DW_AT_frame_base, &attribute) ||
	    dwarf_getlocation_addr(&attribute, scope->address, &ops, &nr, 1) != 1 || nr != 1 ||
	    ops[0].atom == DW_OP_fbreg)
		return too_hard;
	const char *reason = run_first(scope, &ops[0], ret);
	// A frame base in a register is that register's value.
	if (!reason && ret->kind == PS_FETCH_VALUE)
		ret->kind = PS_FETCH_MEMORY;
	// A broken one may be any number.
	ret->offset += (uint64_t)offset;
	return reason;
}

/** A constant that is the value itself, once stack_value follows. */
static bool read_constant(const Dwarf_Op *op, int64_t *ret)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		*ret = op->atom - DW_OP_lit0;
	else if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts)
		*ret = op->number;
	else
		return false;
	return true;
}

/** What the first operation of an expression says. */
static const char *run_first(const struct ps_scope *scope, const Dwarf_Op *op, struct ps_fetch *ret)
{
	*ret = (struct ps_fetch){ .scope = scope };
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
		const char *reason = at_register(scope, op->atom - DW_OP_reg0, 0, ret);
		ret->kind = PS_FETCH_VALUE;
		return reason;
	}
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return at_register(scope, op->atom - DW_OP_breg0, op->number, ret);
	switch (op->atom) {
	case DW_OP_bregx:
		return at_register(scope, op->number, op->number2, ret);
	case DW_OP_fbreg:
		return locate_frame_base(scope, op->number, ret);
	case DW_OP_call_frame_cfa:
		return locate_frame(scope, ret);
	case DW_OP_addr:
		ret->kind = PS_FETCH_STATIC;
		ret->offset = op->number;
		return NULL;
	case DW_OP_regx:
		return "it is a float, or in a register that the kernel cannot fetch";
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		return "it is optimized out: it points to what has no place";
	default:
		return too_hard;
	}
}

static bool is_entry_value(const Dwarf_Op *op)
{
	return op->atom == DW_OP_entry_value || op->atom == DW_OP_GNU_entry_value;
}

/** Apply the operations behind the first. */
static const char *run_rest(const Dwarf_Op *ops, size_t nr, struct ps_fetch *fetch)
{
	for (size_t i = 0; i < nr; i++) {
		switch (ops[i].atom) {
		case DW_OP_plus_uconst:
			fetch->offset += ops[i].number;
			break;
		case DW_OP_deref:
			if (!ps_fetch_deref(fetch))
				return too_hard;
			break;
		case DW_OP_stack_value:
			// The address is the value: the kernel cannot add to a register without reading there.
			if (fetch->kind != PS_FETCH_MEMORY || fetch->offset)
				return "its value is computed, which the kernel cannot do";
			fetch->kind = PS_FETCH_VALUE;
			break;
		case DW_OP_piece:
		case DW_OP_bit_piece:
			return "it lies in several pieces";
		case DW_OP_form_tls_address:
		case DW_OP_GNU_push_tls_address:
			return "it is of each thread (thread-local)";
		default:
			return too_hard;
		}
	}
	return NULL;
}

static const char *set_constant(int64_t value, struct ps_fetch *ret)
{
	ret->kind = PS_FETCH_VALUE;
	snprintf(ret->base, sizeof(ret->base), "\\%" PRId64, value);
	return NULL;
}

static const char *run(const struct ps_scope *scope, Dwarf_Op *ops, size_t nr, struct ps_fetch *ret)
{
	*ret = (struct ps_fetch){ .scope = scope };
	int64_t constant;
	if (!nr)
		return "it is optimized out there";
	if (read_constant(&ops[0], &constant) && nr > 1 && ops[1].atom == DW_OP_stack_value)
		return set_constant(constant, ret);
	if (is_entry_value(&ops[0]))
		return "only its value at the function's start is known there";
	if (nr > 1 &&
	    (ops[1].atom == DW_OP_form_tls_address || ops[1].atom == DW_OP_GNU_push_tls_address))
		return "it is of each thread (thread-local)";
	const char *reason = run_first(scope, &ops[0], ret);
	return reason ? reason : run_rest(ops + 1, nr - 1, ret);
}

/** Where the function of @scope has stored its parameters: behind its first instructions. */
static uint64_t prologue_end(const struct ps_scope *scope)
{
	uint64_t end = scope->entry;
	Dwarf_Die function = scope->function;
	Dwarf_Addr *places = NULL;
	if (dwarf_tag(&function) != DW_TAG_subprogram)
		return end;
	int nr = dwarf_entry_breakpoints(&function, &places);
	for (int i = 0; i < nr; i++) {
		if (places[i] > end)
			end = places[i];
	}
	free(places);
	return end;
}

/** Whether @op is a place above the frame of the function: its caller has put the parameter there. */
static bool is_of_caller(const struct ps_scope *scope, const Dwarf_Op *op)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t nr;
	Dwarf_Die function = scope->function;
	return op->atom == DW_OP_fbreg && (int64_t)op->number >= 0 &&
	       dwarf_tag(&function) == DW_TAG_subprogram &&
	       dwarf_attr_integrate(&function, DW_AT_frame_base, &attribute) &&
	       dwarf_getlocation_addr(&attribute, scope->address, &ops, &nr, 1) == 1 && nr == 1 &&
	       ops[0].atom == DW_OP_call_frame_cfa;
}

/** Whether @attribute names one place for the whole function: it is right only once the function has stored it there. */
static bool is_stored_later(const struct ps_scope *scope, Dwarf_Attribute *attribute,
			    const Dwarf_Op *op, size_t nr)
{
	unsigned int form = dwarf_whatform(attribute);
	bool is_list = form == DW_FORM_sec_offset || form == DW_FORM_loclistx ||
		       form == DW_FORM_data4 || form == DW_FORM_data8;
	return !is_list && nr && op->atom == DW_OP_fbreg && !is_of_caller(scope, op) &&
	       (scope->address == scope->entry || scope->address < prologue_end(scope));
}

uint64_t ps_scope_ready(const struct ps_scope *scope)
{
	uint64_t end = prologue_end(scope);
	return scope->address < end ? end - scope->entry : 0;
}

static const char *locate_constant(Dwarf_Die *variable, struct ps_fetch *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Sword value;
	if (!dwarf_attr_integrate(variable, DW_AT_const_value, &attribute))
		return "it is optimized out";
	if (dwarf_formsdata(&attribute, &value))
		return too_hard;
	return set_constant(value, ret);
}

/** An address that stands in a table of the unit, as clang writes them. */
static const char *locate_indexed(Dwarf_Attribute *attribute, Dwarf_Op *ops, size_t nr,
				  struct ps_fetch *ret)
{
	Dwarf_Attribute place;
	Dwarf_Addr address;
	if (dwarf_getlocation_attr(attribute, &ops[0], &place) || dwarf_formaddr(&place, &address))
		return too_hard;
	ret->kind = PS_FETCH_STATIC;
	ret->offset = address;
	return run_rest(ops + 1, nr - 1, ret);
}

const char *ps_fetch_locate(const struct ps_scope *scope, Dwarf_Die *variable, struct ps_fetch *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t nr;
	*ret = (struct ps_fetch){ .scope = scope };
	if (!dwarf_attr(variable, DW_AT_location, &attribute))
		return locate_constant(variable, ret);
	if (dwarf_getlocation_addr(&attribute, scope->address, &ops, &nr, 1) != 1)
		return "it has no value there";
	if (nr && ops[0].atom == DW_OP_addrx)
		return locate_indexed(&attribute, ops, nr, ret);
	if (!is_stored_later(scope, &attribute, &ops[0], nr))
		return run(scope, ops, nr, ret);
	if (dwarf_tag(variable) == DW_TAG_formal_parameter &&
	    ps_fetch_argument(scope, variable, ret))
		return NULL;
	return "it has no place yet where the function begins";
}
