// SPDX-License-Identifier: MIT
#include "user_regs.h"

#include <asm/perf_regs.h>

#define NONE 0xff

// DWARF's number of each of the kernel's, from the ABI documents of the processors.
#if defined(__x86_64__)
static const uint8_t dwarf_numbers[64] = {
	[PERF_REG_X86_AX] = 0,	     [PERF_REG_X86_BX] = 3,    [PERF_REG_X86_CX] = 2,
	[PERF_REG_X86_DX] = 1,	     [PERF_REG_X86_SI] = 4,    [PERF_REG_X86_DI] = 5,
	[PERF_REG_X86_BP] = 6,	     [PERF_REG_X86_SP] = 7,    [PERF_REG_X86_IP] = NONE,
	[PERF_REG_X86_FLAGS] = NONE, [PERF_REG_X86_CS] = NONE, [PERF_REG_X86_SS] = NONE,
	[PERF_REG_X86_DS] = NONE,    [PERF_REG_X86_ES] = NONE, [PERF_REG_X86_FS] = NONE,
	[PERF_REG_X86_GS] = NONE,    [PERF_REG_X86_R8] = 8,    [PERF_REG_X86_R9] = 9,
	[PERF_REG_X86_R10] = 10,     [PERF_REG_X86_R11] = 11,  [PERF_REG_X86_R12] = 12,
	[PERF_REG_X86_R13] = 13,     [PERF_REG_X86_R14] = 14,  [PERF_REG_X86_R15] = 15,
};
#define NR_REGS (PERF_REG_X86_R15 + 1)
#define REG_PC PERF_REG_X86_IP
#define REG_SP PERF_REG_X86_SP
static uint8_t dwarf_number(uint32_t reg)
{
	return reg < NR_REGS ? dwarf_numbers[reg] : NONE;
}
#elif defined(__aarch64__)
#define REG_PC PERF_REG_ARM64_PC
#define REG_SP PERF_REG_ARM64_SP
static uint8_t dwarf_number(uint32_t reg)
{
	return reg <= PERF_REG_ARM64_SP ? reg : NONE; // x0 to x30 and sp, as DWARF has them
}
#else
#define REG_PC 63
#define REG_SP 63
static uint8_t dwarf_number(uint32_t reg)
{
	return NONE;
}
#endif

bool user_regs_read(const struct ps_user_state *state, struct user_regs *ret)
{
	const uint64_t needed = UINT64_C(1) << REG_PC | UINT64_C(1) << REG_SP;
	if (REG_PC == REG_SP || (state->mask & needed) != needed)
		return false;
	*ret = (struct user_regs){};
	const uint64_t *value = state->regs;
	for (uint32_t reg = 0; reg < 64; reg++) {
		if (!(state->mask >> reg & 1))
			continue;
		uint8_t number = dwarf_number(reg);
		if (number != NONE) {
			ret->values[number] = *value;
			ret->known |= UINT64_C(1) << number;
		}
		if (reg == REG_PC)
			ret->pc = *value;
		if (reg == REG_SP)
			ret->sp = *value;
		value++;
	}
	return true;
}
