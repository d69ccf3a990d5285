// SPDX-License-Identifier: MIT
/**
 * Stand-in: the counter of the kernel's own that is nearest to one of hardware that is not there.
 */
#ifndef PERFSCOPE_STAND_IN_H
#define PERFSCOPE_STAND_IN_H

#include <stdint.h>

/** The name of what stands in for @type and @config of a perf_event_attr; NULL: nothing does. */
const char *ps_stand_in(uint32_t type, uint64_t config);

#endif
