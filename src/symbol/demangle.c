// SPDX-License-Identifier: MIT
#include "demangle.h"

#include <libiberty/demangle.h>
#include <perfscope/cleanup.h>
#include <string.h>

// A longer name is shown as it is: the library's work can grow faster than its length.
#define MAX_MANGLED 8192

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R') && strlen(name) < MAX_MANGLED;
}

static char *demangle(const char *name)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;
	char *text = rust_demangle(name, options);
	return text ? text : cplus_demangle_v3(name, options);
}

const char *demangle_keep(struct strings *strings, const char *name)
{
	_cleanup_free_ char *text = is_mangled(name) ? demangle(name) : NULL;
	return strings_keep(strings, text ? text : name);
}
