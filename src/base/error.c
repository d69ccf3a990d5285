// SPDX-License-Identifier: MIT
#include <perfscope/error.h>

#include <errno.h>
#include <perfscope/text.h>
#include <string.h>
#include <sys/resource.h>

struct ps_error ps_enomem = {
	.kind = PS_ERROR_NO_MEMORY,
	.os_errno = ENOMEM,
	.message = (char *)"out of memory",
};

/** Takes over @message; NULL stands for no memory. */
static struct ps_error *error_create(enum ps_error_kind kind, int os_errno, char *message)
{
	struct ps_error *error = message ? calloc(1, sizeof(*error)) : NULL;
	if (!error) {
		free(message);
		return &ps_enomem;
	}
	error->kind = kind;
	error->os_errno = os_errno;
	error->message = message;
	return error;
}

struct ps_error *ps_error_format(enum ps_error_kind kind, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *message = ps_text_format(format, arguments);
	va_end(arguments);
	return error_create(kind, 0, message);
}

static enum ps_error_kind kind_of_errno(int os_errno)
{
	switch (os_errno) {
	case ENOMEM:
		return PS_ERROR_NO_MEMORY;
	case ENOENT:
	case ENOTDIR:
	case ESRCH:
		return PS_ERROR_NOT_FOUND;
	case EACCES:
	case EPERM:
		return PS_ERROR_PERMISSION;
	case EMFILE:
	case ENFILE:
		return PS_ERROR_LIMIT;
	default:
		return PS_ERROR_OS;
	}
}

struct ps_error *ps_error_os(int os_errno, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	_cleanup_free_ char *text = ps_text_format(format, arguments);
	va_end(arguments);
	if (!text)
		return &ps_enomem;
	char *message;
	if (asprintf(&message, "%s: %s", text, strerror(os_errno)) < 0)
		return &ps_enomem;
	struct ps_error *error = error_create(kind_of_errno(os_errno), os_errno, message);
	struct rlimit limit;
	if (os_errno == EMFILE && !getrlimit(RLIMIT_NOFILE, &limit))
		error = ps_error_hint(error, "the limit is %llu: raise it, ulimit -n",
				      (unsigned long long)limit.rlim_cur);
	return error;
}

/** Replace the message of @error by @message, which is taken over; NULL leaves it. */
static struct ps_error *error_replace(struct ps_error *error, char *message)
{
	if (!message || error == &ps_enomem) {
		free(message);
		return error;
	}
	free(error->message);
	error->message = message;
	return error;
}

struct ps_error *ps_error_context(struct ps_error *error, const char *format, ...)
{
	if (!error)
		return NULL;
	va_list arguments;
	va_start(arguments, format);
	_cleanup_free_ char *text = ps_text_format(format, arguments);
	va_end(arguments);
	char *message;
	if (!text || asprintf(&message, "%s: %s", text, error->message) < 0)
		return error;
	return error_replace(error, message);
}

struct ps_error *ps_error_hint(struct ps_error *error, const char *format, ...)
{
	if (!error)
		return NULL;
	va_list arguments;
	va_start(arguments, format);
	_cleanup_free_ char *text = ps_text_format(format, arguments);
	va_end(arguments);
	char *message;
	if (!text || asprintf(&message, "%s (%s)", error->message, text) < 0)
		return error;
	return error_replace(error, message);
}

// Of a long text, what stands this far on either side of the caret is shown.
#define CARET_CONTEXT 60

struct ps_error *ps_error_caret(struct ps_error *error, const char *text, size_t column)
{
	if (!error || error == &ps_enomem)
		return error;
	size_t length = strlen(text);
	if (column > length)
		column = length;
	size_t start = column > CARET_CONTEXT ? column - CARET_CONTEXT : 0;
	size_t shown = length - start < 2 * CARET_CONTEXT ? length - start : 2 * CARET_CONTEXT;
	_cleanup_free_ char *line = strndup(text + start, shown);
	if (!line)
		return error;
	for (char *at = line; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = ' ';
	}
	char *detail;
	if (asprintf(&detail, "    %s\n    %*s^", line, (int)(column - start), "") < 0)
		return error;
	free(error->detail);
	error->detail = detail;
	return error;
}

void ps_error_destroy(struct ps_error *error)
{
	if (!error || error == &ps_enomem)
		return;
	free(error->message);
	free(error->detail);
	free(error);
}
