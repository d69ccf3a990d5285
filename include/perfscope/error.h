// SPDX-License-Identifier: MIT
/**
 * Error objects of the cold paths: NULL is success, each level adds one clause.
 */
#ifndef PERFSCOPE_ERROR_H
#define PERFSCOPE_ERROR_H

#include <perfscope/cleanup.h>

enum ps_error_kind {
	PS_ERROR_NO_MEMORY,
	PS_ERROR_USAGE,	      // the command line or an event text is wrong: exit status 2
	PS_ERROR_NOT_FOUND,   // a name, file, event or counter does not exist
	PS_ERROR_PERMISSION,  // this user may not; the message names the knob
	PS_ERROR_LIMIT,	      // a resource limit: descriptors, locked memory
	PS_ERROR_UNSUPPORTED, // this machine or kernel cannot
	PS_ERROR_BAD_DATA,    // the kernel's or a file's text or bytes make no sense
	PS_ERROR_OS,	      // any other failed system call
	PS_ERROR_SCRIPT,      // the script cannot be loaded or raised
};

struct ps_error {
	enum ps_error_kind kind;
	int os_errno;  // errno of the failed call, or 0
	char *message; // one line, no "perfscope: ", no full stop, no newline
	char *detail;  // further lines to show below (the text and a caret, a traceback), or NULL
};

/** Returned where an error cannot be allocated. Destroying it does nothing. */
extern struct ps_error ps_enomem;

/** A new error. The caller owns it; never NULL. */
struct ps_error *ps_error_format(enum ps_error_kind kind, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** A new error for a failed call: the formatted text, then ": " and what @os_errno means. */
struct ps_error *ps_error_os(int os_errno, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Put "text: " before the message of @error, which is taken over and returned. NULL passes through. */
struct ps_error *ps_error_context(struct ps_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Add " (text)" behind the message of @error, which is taken over and returned. NULL passes through. */
struct ps_error *ps_error_hint(struct ps_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Set the detail of @error: @text with a caret below @column (bytes, from 0). */
struct ps_error *ps_error_caret(struct ps_error *error, const char *text, size_t column);

/** Free @error; takes NULL. */
void ps_error_destroy(struct ps_error *error);

PS_DEFINE_CLEANUP(struct ps_error *, ps_error, ps_error_destroy)
#define _cleanup_error_ _cleanup_(ps_error_p)

#endif
