// SPDX-License-Identifier: MIT
/**
 * Script: the user's module and the functions of it that are called.
 */
#ifndef PERFSCOPE_SCRIPT_H
#define PERFSCOPE_SCRIPT_H

#include <perfscope/python.h>

/** The functions that a script may define beside handlers; each is optional. */
enum ps_callback {
	PS_CALLBACK_INIT,
	PS_CALLBACK_EXIT,
	PS_CALLBACK_INTERVAL,
	PS_CALLBACK_LOST,
	PS_CALLBACK_PRINT_STAT,
	PS_CALLBACK_SAMPLE,
	PS_NR_CALLBACKS,
};

/** Name and accepted numbers of positional arguments of each callback: the one table of them. */
struct ps_callback_info {
	const char *name; // "__exit__"
	unsigned int min_args, max_args;
	const char *signature; // "__exit__() or __exit__(totals)"
	const char *doc;       // one line, for the template
};
extern const struct ps_callback_info ps_callbacks[PS_NR_CALLBACKS];

/** Start the interpreter for @nr arguments (sys.argv: script and its arguments). */
struct ps_error *ps_interp_start(int nr, char **arguments);

/** End it: flush sys.stdout and sys.stderr, run atexit. Returns the exit status it adds (0, 1 or 120). */
int ps_interp_finish(void);

struct ps_script {
	PyObject *module;			// owned
	PyObject *callbacks[PS_NR_CALLBACKS];	// owned; NULL: not defined
	unsigned int nr_args[PS_NR_CALLBACKS];	// how many positional arguments to give
	PyObject **handlers;			// owned, by source index; NULL: neither its own nor __sample__
	size_t nr_handlers;
};

/** Find `__options__` of the script @name without running it: the string, owned by the caller, or NULL. */
struct ps_error *ps_script_find_options(const char *name, char **ret);

/**
 * Import @name: a .py path, a file without suffix, an extension module, a module name, or a shipped script's name.
 *
 * Errors: missing or unreadable file, folder, syntax error and exception (with the traceback as detail). SystemExit
 * gives PS_ERROR_SCRIPT with is_exit set.
 */
struct ps_error *ps_script_load(const char *name, struct ps_script *ret);

/**
 * Bind callbacks and a handler for each source. Errors: wrong arity, not callable, nothing to call, a handler named
 * after an event that is not in -e is told as a warning.
 */
struct ps_error *ps_script_bind(struct ps_script *script, const struct ps_source_list *sources);
void ps_script_deinit(struct ps_script *script);

/** Write a script template for @sources to @file. */
struct ps_error *ps_template_write(const struct ps_source_list *sources, FILE *file);

#endif
