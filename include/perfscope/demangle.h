// SPDX-License-Identifier: MIT
/**
 * Names of C++ and Rust, as they were written.
 */
#ifndef PERFSCOPE_DEMANGLE_H
#define PERFSCOPE_DEMANGLE_H

/** @name as it was written, which the caller frees: "ns::f(int)"; NULL: it is not mangled, or there is no memory. */
char *ps_demangle(const char *name);

/**
 * The path alone of what ps_demangle() gave: without parameters, arguments of templates and type of return: "ns::box::f"
 * for "int ns::box<long>::f<int>(int)". The caller frees it; NULL: no memory.
 */
char *ps_demangled_path(const char *demangled);

#endif
