// SPDX-License-Identifier: MIT
#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <perfscope/nearest.h>
#include <sys/ioctl.h>

// The kernel copies one page of a filter's text, and 256 bytes of each string in it.
#define MAX_FILTER_SIZE 4096
#define MAX_STRING_SIZE 256

// What can be filtered on in every event, beside its fields.
static const char *const generic_fields[] = { "comm", "COMM",	    "cpu",
					      "CPU",  "stacktrace", "STACKTRACE" };

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool is_known_field(const struct ps_source *source, const char *name)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(generic_fields); i++) {
		if (!strcmp(name, generic_fields[i]))
			return true;
	}
	for (size_t i = 0; source->schema && i < source->schema->nr_fields; i++) {
		if (!strcmp(name, source->schema->fields[i].name))
			return true;
	}
	return false;
}

/** Behind the string that starts at the quote @at; its end where the quote is not closed. */
static const char *skip_string(const char *at)
{
	const char *end = strchr(at + 1, *at);
	return end ? end + 1 : at + strlen(at);
}

/** The first name in @source's filter that stands where a field does and is none; the caller frees it. NULL: none. */
static char *find_unknown_field(const struct ps_source *source)
{
	bool is_start = true; // of a comparison
	const char *at = source->filter;
	while (*at) {
		const char *start = at;
		if (*at == '"' || *at == '\'') {
			at = skip_string(at);
			is_start = false;
		} else if (is_name(*at)) {
			while (is_name(*at))
				at++;
			if (!is_start)
				continue;
			is_start = false;
			_cleanup_free_ char *name = strndup(start, at - start);
			if (name && !is_known_field(source, name))
				return_ptr(name);
		} else if (!strncmp(at, "&&", 2) || !strncmp(at, "||", 2)) {
			is_start = true;
			at += 2;
		} else {
			at++;
		}
	}
	return NULL;
}

static bool has_long_string(const char *filter)
{
	for (const char *at = filter; *at;) {
		if (*at != '"' && *at != '\'') {
			at++;
			continue;
		}
		const char *end = skip_string(at);
		if (end - at - 2 >= MAX_STRING_SIZE)
			return true;
		at = end;
	}
	return false;
}

static struct ps_error *unknown_field_error(const struct ps_source *source, const char *field)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, field);
	for (size_t i = 0; source->schema && i < source->schema->nr_fields; i++)
		ps_nearest_add(&nearest, source->schema->fields[i].name);
	_cleanup_free_ char *text = ps_nearest_text(&nearest);
	ps_nearest_deinit(&nearest);
	return ps_error_format(PS_ERROR_USAGE, "unknown field %s%s", field, text ? text : "");
}

static struct ps_error *invalid_filter_error(const struct ps_source *source)
{
	if (source->attr.type != PERF_TYPE_TRACEPOINT)
		return ps_error_format(PS_ERROR_USAGE,
				       "this event takes no filter (tracepoints and probes do)");
	if (strlen(source->filter) >= MAX_FILTER_SIZE)
		return ps_error_format(PS_ERROR_USAGE,
				       "it is longer than the %d bytes that the "
				       "kernel takes; make it shorter",
				       MAX_FILTER_SIZE - 1);
	if (has_long_string(source->filter))
		return ps_error_format(PS_ERROR_USAGE,
				       "a string in it is longer than the %d bytes "
				       "that the kernel takes; make it shorter",
				       MAX_STRING_SIZE - 1);
	_cleanup_free_ char *field = find_unknown_field(source);
	if (field)
		return unknown_field_error(source, field);
	return ps_error_format(
		PS_ERROR_USAGE,
		"the kernel refuses it; compare as in prev_pid == 1 or comm ~ \"ba*\", a "
		"string with == != ~ only, an unsigned field with no negative number");
}

/** What is wrong in @source's filter, from the kernel's own numbers for it. */
static struct ps_error *filter_error(int os_errno, const struct ps_source *source)
{
	switch (os_errno) {
	case ENOENT:
		return ps_error_format(PS_ERROR_USAGE, "a parenthesis is open; close it");
	case EPERM: // not a permission: the kernel's parser returns -1
		return ps_error_format(PS_ERROR_USAGE,
				       "a parenthesis is closed that was not opened");
	case ESRCH:
		return ps_error_format(PS_ERROR_USAGE, "a quote is open; close it");
	case EINVAL:
	case EOPNOTSUPP:
		return invalid_filter_error(source);
	case ENOMEM:
		return &ps_enomem;
	default:
		return ps_error_os(os_errno, "the kernel refuses it");
	}
}

struct ps_error *ps_filter_apply(const struct ps_source *source, int fd)
{
	if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, source->filter) == 0)
		return NULL;
	return ps_error_context(filter_error(errno, source), "%s: filter '%.200s'", source->name,
				source->filter);
}
