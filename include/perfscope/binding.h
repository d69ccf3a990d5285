// SPDX-License-Identifier: MIT
/**
 * Binding: the Python objects of a script, for src/script/ alone.
 */
#ifndef PERFSCOPE_BINDING_H
#define PERFSCOPE_BINDING_H

#include <perfscope/python.h>
#include <perfscope/script.h>

struct ps_script {
	char *name;			       // as it was given, owned
	PyObject *module;		       // owned
	PyObject *perfscope;		       // the module perfscope, owned
	PyObject *callbacks[PS_NR_CALLBACKS];  // owned; NULL: not defined
	unsigned int nr_args[PS_NR_CALLBACKS]; // how many positional arguments to give
	PyObject **handlers; // owned, by source index; NULL: neither its own nor __sample__
	size_t nr_handlers;
	PyObject **region_handlers; // owned, by region; NULL: it has none
	size_t nr_region_handlers;
};

/** How many positional arguments a callable takes. */
struct ps_arity {
	unsigned int min, max; // max is UINT_MAX for *args
	bool is_known;	       // false: a builtin that does not say
	bool is_lazy;	       // a coroutine or generator function: a call runs nothing of it
	bool needs_keywords;   // has keyword-only parameters without default
	const char *file;      // borrowed from the callable's code, NULL: not known
	unsigned int line;     // 0: not known
};

/** Learn the arity of @callable; false with an exception set. */
bool ps_arity_read(PyObject *callable, struct ps_arity *ret);

/**
 * Warn of functions that look like a handler, or like a function of ps_callbacks, and are neither: a name mistyped, or
 * an event that is not in -e.
 */
void ps_script_warn_unbound(const struct ps_script *script, const struct ps_source_list *sources);

#endif
