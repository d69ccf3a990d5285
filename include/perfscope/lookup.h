// SPDX-License-Identifier: MIT
/**
 * Who ran, and what lies where: what is known beside the record itself.
 */
#ifndef PERFSCOPE_LOOKUP_H
#define PERFSCOPE_LOOKUP_H

#include <perfscope/symbol.h>
#include <perfscope/tasks.h>

/** All borrowed; each NULL where it is not followed. */
struct ps_lookup {
	struct ps_tasks *tasks; // NULL: names come from /proc
	struct ps_maps *maps;
	struct ps_symbolizer *symbolizer;
};

#endif
