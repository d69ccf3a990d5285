// SPDX-License-Identifier: MIT
/**
 * `perfscope list`: the events that can be named here, and which of them cannot be opened.
 */
#ifndef PERFSCOPE_LIST_H
#define PERFSCOPE_LIST_H

/**
 * Run the command with @argv[0] "list"; returns the exit status.
 *
 * 0: something was listed, or whoever read stdout has gone. 1: nothing matches. 2: wrong usage.
 */
int ps_cli_list(int argc, char **argv);

#endif
