// SPDX-License-Identifier: MIT
/**
 * Names as they were written, for C++ and Rust.
 */
#ifndef PERFSCOPE_SYMBOL_DEMANGLE_H
#define PERFSCOPE_SYMBOL_DEMANGLE_H

#include "strings.h"

/** @name as it was written, kept; itself where it is not mangled; NULL: no memory. */
const char *demangle_keep(struct strings *strings, const char *name);

#endif
