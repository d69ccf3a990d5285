// SPDX-License-Identifier: MIT
/**
 * The grammar of the arguments of a print format, as far as libtraceevent evaluates them.
 */
#ifndef PERFSCOPE_PRINT_GRAMMAR_H
#define PERFSCOPE_PRINT_GRAMMAR_H

#include "span.h"

#include <perfscope/field.h>

/**
 * Whether @argument is an expression of this grammar that names only @fields.
 *
 * libtraceevent crashes on texts that are not; nothing else may reach it.
 */
bool ps_print_argument_check(struct ps_span argument, const struct ps_field *fields,
			     size_t nr_fields);

#endif
