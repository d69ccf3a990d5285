// SPDX-License-Identifier: MIT
/**
 * Binding: the Python objects of a script, for src/script/ alone.
 */
#ifndef PERFSCOPE_BINDING_H
#define PERFSCOPE_BINDING_H

#include <perfscope/python.h>
#include <perfscope/script.h>

struct ps_script {
	PyObject *module;		       // owned
	PyObject *perfscope;		       // the module perfscope, owned
	PyObject *callbacks[PS_NR_CALLBACKS];  // owned; NULL: not defined
	unsigned int nr_args[PS_NR_CALLBACKS]; // how many positional arguments to give
	PyObject **handlers;		       // owned, by source index; NULL: neither its own nor __sample__
	size_t nr_handlers;
};

#endif
