// SPDX-License-Identifier: MIT
#include "cfi_rules.h"

#include <dwarf.h>
#include <stdlib.h>

#define NR_RULES 16384

// Numbers of DWARF, from the ABI document of the processor.
#if defined(__x86_64__)
#define FRAME_POINTER 6
#define STACK_POINTER 7
#define RETURN_ADDRESS 16
#else
#define FRAME_POINTER -1
#define STACK_POINTER -1
#define RETURN_ADDRESS -1
#endif

struct cfi_rules {
	struct cfi_rule rules[NR_RULES];
};

struct cfi_rules *cfi_rules_create(void)
{
	return calloc(1, sizeof(struct cfi_rules));
}

void cfi_rules_destroy(struct cfi_rules *rules)
{
	free(rules);
}

struct cfi_rule *cfi_rules_find(struct cfi_rules *rules, uint64_t file_id, uint64_t offset)
{
	uint64_t hash = (offset + (file_id << 40)) * 0x9e3779b97f4a7c15ULL >> 40;
	struct cfi_rule *rule = &rules->rules[hash % NR_RULES];
	if (rule->offset != offset || rule->file_id != file_id)
		*rule = (struct cfi_rule){ .offset = offset, .file_id = file_id };
	return rule;
}

static bool is_small(Dwarf_Sword value)
{
	return value == (int32_t)value;
}

/** The CFA of @frame is the frame pointer or the stack pointer and a number. */
static bool read_cfa(struct cfi_rule *rule, Dwarf_Frame *frame)
{
	Dwarf_Op *ops;
	size_t nr;
	if (dwarf_frame_cfa(frame, &ops, &nr) || nr != 1)
		return false;
	bool is_short = ops->atom >= DW_OP_breg0 && ops->atom <= DW_OP_breg31;
	if (!is_short && ops->atom != DW_OP_bregx)
		return false;
	int reg = is_short ? ops->atom - DW_OP_breg0 : (int)ops->number;
	Dwarf_Sword offset = is_short ? ops->number : ops->number2;
	rule->is_from_frame_pointer = reg == FRAME_POINTER;
	rule->cfa = offset;
	return (reg == FRAME_POINTER || reg == STACK_POINTER) && is_small(offset);
}

/** What becomes of a register in the caller. */
enum place { PLACE_SAME, PLACE_LOST, PLACE_SAVED, PLACE_OTHER };

/** Where @reg of the caller is; @ret: less the CFA, where it is saved. */
static enum place find_register(Dwarf_Frame *frame, int reg, int32_t *ret)
{
	Dwarf_Op memory[3], *ops;
	size_t nr;
	if (dwarf_frame_register(frame, reg, memory, &ops, &nr))
		return PLACE_OTHER;
	if (!nr)
		return ops ? PLACE_LOST : PLACE_SAME;
	if (nr > 2 || ops[0].atom != DW_OP_call_frame_cfa)
		return PLACE_OTHER;
	if (nr == 2 && (ops[1].atom != DW_OP_plus_uconst || !is_small(ops[1].number)))
		return PLACE_OTHER;
	*ret = nr == 2 ? ops[1].number : 0;
	return PLACE_SAVED;
}

static enum cfi_kind read_frame(struct cfi_rule *rule, Dwarf_Frame *frame)
{
	bool is_signal;
	Dwarf_Addr start, end;
	int return_address = dwarf_frame_info(frame, &start, &end, &is_signal);
	if (return_address != RETURN_ADDRESS || is_signal)
		return CFI_COMPLEX;
	enum place place = find_register(frame, RETURN_ADDRESS, &rule->return_address);
	if (place == PLACE_LOST)
		return CFI_OUTERMOST;
	if (place != PLACE_SAVED || !read_cfa(rule, frame))
		return CFI_COMPLEX;
	place = find_register(frame, FRAME_POINTER, &rule->frame_pointer);
	rule->is_frame_pointer_saved = place == PLACE_SAVED;
	rule->is_frame_pointer_lost = place == PLACE_LOST;
	return place == PLACE_OTHER ? CFI_COMPLEX : CFI_SIMPLE;
}

void cfi_rule_make(struct cfi_rule *rule, Dwarf_CFI *cfi, Dwarf_Addr address)
{
	Dwarf_Frame *frame;
	rule->kind = CFI_COMPLEX;
	if (!cfi || STACK_POINTER < 0 || dwarf_cfi_addrframe(cfi, address, &frame))
		return;
	rule->kind = read_frame(rule, frame);
	free(frame);
}
