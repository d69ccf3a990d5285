// SPDX-License-Identifier: MIT
#ifndef PERFSCOPE_SCRIPT_VENV_H
#define PERFSCOPE_SCRIPT_VENV_H

#include <perfscope/error.h>

/**
 * The Python of the active virtual environment $VIRTUAL_ENV; the caller frees it. NULL: none is active.
 *
 * An environment of a Python other than @version ("3.11") is refused; what is no environment is passed over with a
 * warning.
 */
struct ps_error *ps_venv_executable(const char *version, char **ret);

#endif
