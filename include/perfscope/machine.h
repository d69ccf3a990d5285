// SPDX-License-Identifier: MIT
/**
 * Machine: the one that wrote the records. Decoding asks it, never the machine that this was compiled for.
 */
#ifndef PERFSCOPE_MACHINE_H
#define PERFSCOPE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/** Whose registers a mask names. */
enum ps_arch {
	PS_ARCH_OTHER,
	PS_ARCH_X86, // i386 too: its registers are the first of x86-64's
	PS_ARCH_ARM64,
};

struct ps_machine {
	enum ps_arch arch;
	uint8_t long_size; // bytes of the kernel's long: 4 or 8
	bool is_swapped;   // its byte order is the other one than ours
};

/** This one; also what NULL stands for. */
extern const struct ps_machine ps_this_machine;

static inline const struct ps_machine *ps_machine_or_this(const struct ps_machine *machine)
{
	return machine ? machine : &ps_this_machine;
}

/** The machine that `uname -m` calls @name; one that is not known has no names of registers and longs of 8 bytes. */
struct ps_machine ps_machine_of(const char *name, bool is_swapped);

/** The name of register @number of a mask of @arch, perf's name in small letters; NULL: none. */
const char *ps_register_name(enum ps_arch arch, unsigned int number);

#endif
