// SPDX-License-Identifier: MIT
#ifndef PERFSCOPE_DECODE_BRANCH_H
#define PERFSCOPE_DECODE_BRANCH_H

#include <stdbool.h>
#include <stdint.h>

/** The flags of a struct perf_branch_entry as a machine of the other byte order places them; the bytes are in order. */
uint64_t branch_flags_mirror(uint64_t flags, bool to_big_endian);

#endif
