// SPDX-License-Identifier: MIT
/**
 * The symbols of the running kernel, its modules and BPF programs.
 */
#ifndef PERFSCOPE_SYMBOL_KERNEL_H
#define PERFSCOPE_SYMBOL_KERNEL_H

#include "strings.h"
#include "symtab.h"

#include <perfscope/error.h>

/** Read @path, which is written as /proc/kallsyms is. PS_ERROR_PERMISSION: addresses are hidden. */
struct ps_error *kernel_symbols_read(const char *path, struct symtab *ret);

/** The symbol at @address, and where it starts; false: none. @dso: "[module]" or "[kernel.kallsyms]". Both kept. */
bool kernel_symbol_find(const struct symtab *table, struct strings *strings, uint64_t address,
			const char **symbol, uint64_t *start, const char **dso);

#endif
