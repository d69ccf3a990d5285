// SPDX-License-Identifier: MIT
#ifndef PERFSCOPE_DECODE_BRANCH_H
#define PERFSCOPE_DECODE_BRANCH_H

#include <stdint.h>

/**
 * Give the flags of a struct perf_branch_entry, written by a machine of the other byte order and turned, the places that
 * this machine gives them: bit fields begin at the other end there.
 */
void branch_flags_turn(uint8_t *flags);

#endif
