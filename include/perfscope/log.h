// SPDX-License-Identifier: MIT
/**
 * What the tool says of itself: stderr, one line each, "perfscope: " first.
 */
#ifndef PERFSCOPE_LOG_H
#define PERFSCOPE_LOG_H

#include <perfscope/error.h>

enum ps_log_level {
	PS_LOG_ERROR,	// what ends the run; always shown
	PS_LOG_WARNING, // what is lost, missing or replaced; not with -q
	PS_LOG_INFO,	// what was done; with -v
	PS_LOG_DEBUG,	// each raw record; with -vv
};

/** Show levels up to @level; the start value is PS_LOG_WARNING. */
void ps_log_set_level(enum ps_log_level level);
enum ps_log_level ps_log_level(void);

/** Write one line to stderr in one write. Control characters in it are shown as \xNN. */
void ps_log(enum ps_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Write @error and its detail lines at @level; @error stays the caller's. */
void ps_log_error(enum ps_log_level level, const struct ps_error *error);

#endif
