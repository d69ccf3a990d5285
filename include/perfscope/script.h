// SPDX-License-Identifier: MIT
/**
 * Script: the user's module and the functions of it that are called.
 */
#ifndef PERFSCOPE_SCRIPT_H
#define PERFSCOPE_SCRIPT_H

#include <perfscope/source.h>
#include <stdio.h>

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
	const char *doc;       // one line, for the template and messages
};
extern const struct ps_callback_info ps_callbacks[PS_NR_CALLBACKS];

/**
 * Start the interpreter for @nr @arguments (sys.argv: the script and its arguments). The calling thread has the GIL.
 *
 * An active $VIRTUAL_ENV of the same version is used; one of another version is refused in words.
 */
struct ps_error *ps_interp_start(int nr, char **arguments);

/** End it: flush sys.stdout and sys.stderr, run atexit. The exit status that this adds: 0, or 1 where it failed. */
int ps_interp_finish(void);

/** The version of Python that runs scripts, "3.11.2"; static. Needs no interpreter. */
const char *ps_interp_version(void);

/** Let the script's threads run while the caller waits; pass what it returns to ps_interp_acquire. */
void *ps_interp_release(void);
void ps_interp_acquire(void *state);

/** Raise KeyboardInterrupt in the running script code. Safe in a signal handler. */
void ps_interp_interrupt(void);

struct ps_script;

/** Find `__options__` of the script @name without running it: the string, owned by the caller, or NULL. No interpreter is needed. */
struct ps_error *ps_script_find_options(const char *name, char **ret);

/**
 * Import @name: a .py path, a file without suffix, an extension module, a module name, or a shipped script's name.
 *
 * Errors, kind PS_ERROR_SCRIPT: missing or unreadable file, folder, syntax error, exception (with the traceback as
 * detail). Where the module raised SystemExit or KeyboardInterrupt while it was loaded: NULL, *ret is NULL, and
 * @ret_status the exit status.
 */
struct ps_error *ps_script_load(const char *name, struct ps_script **ret, int *ret_status);

/**
 * Bind callbacks and a handler for each source. Errors: wrong arity, not callable, nothing to call. A function that
 * looks like a handler of an event that is not in -e is told as a warning. With @has_tables (-i) there is something to
 * see also where there is nothing to call.
 */
struct ps_error *ps_script_bind(struct ps_script *script, const struct ps_source_list *sources,
				bool has_tables);
void ps_script_destroy(struct ps_script *script); // takes NULL

/**
 * Write a script template for @sources to @file. @options: what stands besides -e and -r in its first line, each word
 * with a blank before it: " -g -F 99".
 */
struct ps_error *ps_template_write(const struct ps_source_list *sources, const char *options,
				   FILE *file);

#endif
