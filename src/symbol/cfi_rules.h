// SPDX-License-Identifier: MIT
/**
 * How the caller of an address is found, where a few words tell it: kept by place, so that all processes share it.
 */
#ifndef PERFSCOPE_SYMBOL_CFI_RULES_H
#define PERFSCOPE_SYMBOL_CFI_RULES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

enum cfi_kind {
	CFI_UNKNOWN, // never asked for
	CFI_SIMPLE,
	CFI_OUTERMOST, // there is no caller
	CFI_COMPLEX,   // only libdw can tell
};

struct cfi_rule {
	uint64_t offset; // of the address in its file
	uint64_t file_id;
	uint8_t kind;
	bool is_from_frame_pointer; // the CFA, else from the stack pointer
	bool is_frame_pointer_saved;
	bool is_frame_pointer_lost;
	int32_t cfa;			       // less the register
	int32_t return_address, frame_pointer; // where they are saved, less the CFA
};

struct cfi_rules;

/** NULL: no memory. */
struct cfi_rules *cfi_rules_create(void);
void cfi_rules_destroy(struct cfi_rules *rules);

/** The place of the rule at @offset of the file; of kind CFI_UNKNOWN where it is to be made. */
struct cfi_rule *cfi_rules_find(struct cfi_rules *rules, uint64_t file_id, uint64_t offset);

/** Make @rule from what @cfi says of @address, as @cfi counts. NULL: nothing is said. */
void cfi_rule_make(struct cfi_rule *rule, Dwarf_CFI *cfi, Dwarf_Addr address);

#endif
