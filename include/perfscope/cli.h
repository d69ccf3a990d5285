// SPDX-License-Identifier: MIT
/**
 * The commands: each takes argv from its own name on and returns the exit status.
 */
#ifndef PERFSCOPE_CLI_H
#define PERFSCOPE_CLI_H

#include <perfscope/doctor.h>
#include <perfscope/error.h>
#include <perfscope/list.h>

/** `perfscope python`: run a script on events. */
int ps_cli_python(int argc, char **argv);

#endif
