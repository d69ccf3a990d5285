// SPDX-License-Identifier: MIT
/**
 * The numbers of the running kernel's enumerators, from its type information (BTF).
 *
 * Print formats name some by their names only: the kernel replaces those that its own headers ask it to.
 */
#ifndef PERFSCOPE_KERNEL_ENUM_H
#define PERFSCOPE_KERNEL_ENUM_H

#include "span.h"

#include <perfscope/cleanup.h>
#include <stdint.h>

#define PS_KERNEL_BTF "/sys/kernel/btf/vmlinux"

struct ps_kernel_enums;

/** Read the type information at @path. NULL: there is none, it is of another version, or there is no memory. */
struct ps_kernel_enums *ps_kernel_enums_read(const char *path);
void ps_kernel_enums_destroy(struct ps_kernel_enums *enums);

/** The number of @name; false where it is unknown, or where enumerations differ on it. Any bytes are safe. */
bool ps_kernel_enums_find(const struct ps_kernel_enums *enums, struct ps_span name, int64_t *ret);

PS_DEFINE_CLEANUP(struct ps_kernel_enums *, ps_kernel_enums, ps_kernel_enums_destroy)
#define _cleanup_kernel_enums_ _cleanup_(ps_kernel_enums_p)

#endif
