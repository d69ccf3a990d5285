// SPDX-License-Identifier: MIT
/**
 * Child: a process that script code forked, once that code returns in it.
 *
 * It shares descriptors, the program of --run and the output with its parent, which goes on with the events. So it ends as
 * a Python program does, and touches none of them. For src/script/ and src/cli/run.c.
 */
#ifndef PERFSCOPE_CHILD_H
#define PERFSCOPE_CHILD_H

#include <perfscope/error.h>
#include <signal.h>
#include <stdbool.h>

/** From now on know forked processes, and set *@flag in them; NULL: only know them. */
struct ps_error *ps_child_watch(volatile sig_atomic_t *flag);

/** Whether this process was forked since ps_child_watch was called. */
bool ps_child_is_here(void);

/** End the interpreter (flush, atexit) and then this process, with @status or, where that is 0, the interpreter's. */
void ps_child_end(int status) __attribute__((noreturn));

#endif
