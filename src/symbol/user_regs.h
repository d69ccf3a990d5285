// SPDX-License-Identifier: MIT
/**
 * The registers of a sample, as DWARF numbers them.
 */
#ifndef PERFSCOPE_SYMBOL_USER_REGS_H
#define PERFSCOPE_SYMBOL_USER_REGS_H

#include <perfscope/symbol.h>

#define USER_REGS_MAX 33

struct user_regs {
	uint64_t values[USER_REGS_MAX]; // by DWARF's number; pc is apart
	uint64_t known;			// a bit for each
	uint64_t pc, sp;
};

/** Sort the registers of @state; false: the program counter or the stack pointer is not among them. */
bool user_regs_read(const struct ps_user_state *state, struct user_regs *ret);

#endif
