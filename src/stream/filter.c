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

static bool is_operator(const char *at)
{
	return !strncmp(at, "&&", 2) || !strncmp(at, "||", 2);
}

/** Behind the string that starts at the quote @at; its end where the quote is not closed. */
static const char *skip_string(const char *at)
{
	const char *end = strchr(at + 1, *at);
	return end ? end + 1 : at + strlen(at);
}

/** The first name in @source's filter that stands where a field does and is none, @ret_size bytes of it. NULL: none. */
static const char *find_unknown_field(const struct ps_source *source, size_t *ret_size)
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
			*ret_size = at - start;
			_cleanup_free_ char *name = strndup(start, at - start);
			if (name && !is_known_field(source, name))
				return start;
		} else if (is_operator(at)) {
			is_start = true;
			at += 2;
		} else {
			at++;
		}
	}
	return NULL;
}

/** The first && or || in @filter without a comparison on both sides; NULL: none. */
static const char *find_lone_operator(const char *filter)
{
	bool has_left = false; // a comparison, or the end of a parenthesis
	const char *last = NULL;
	for (const char *at = filter; *at;) {
		if (*at == '"' || *at == '\'') {
			at = skip_string(at);
			has_left = true;
		} else if (is_operator(at)) {
			if (!has_left)
				return last ? last : at;
			last = at;
			has_left = false;
			at += 2;
		} else if (*at == ')') {
			if (last && !has_left)
				return last;
			has_left = true;
			at++;
		} else {
			if (*at == '(')
				has_left = false;
			else if (!isspace((unsigned char)*at) && *at != '!')
				has_left = true;
			at++;
		}
	}
	return has_left ? NULL : last;
}

/** The parenthesis of @filter that has no other: one that is open (@is_open), or one that closes. NULL: none. */
static const char *find_parenthesis(const char *filter, bool is_open)
{
	int depth = 0;
	const char *outermost = NULL;
	for (const char *at = filter; *at;) {
		if (*at == '"' || *at == '\'') {
			at = skip_string(at);
			continue;
		}
		if (*at == '(' && depth++ == 0)
			outermost = at;
		if (*at == ')' && depth-- == 0)
			return is_open ? NULL : at;
		at++;
	}
	return is_open && depth ? outermost : NULL;
}

/** The quote of @filter that is not closed; NULL: none. */
static const char *find_open_quote(const char *filter)
{
	for (const char *at = filter; *at;) {
		if (*at != '"' && *at != '\'')
			at++;
		else if (!strchr(at + 1, *at))
			return at;
		else
			at = skip_string(at);
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

static struct ps_error *unknown_field_error(const struct ps_source *source, const char *field,
					    size_t size)
{
	_cleanup_free_ char *name = strndup(field, size);
	if (!name)
		return &ps_enomem;
	if (ps_spec_is_attribute(name))
		return ps_error_format(
			PS_ERROR_USAGE,
			"unknown field %s (attributes stand behind the filter, which "
			"may be empty: %s//%s/)",
			name, source->name, name);
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, name);
	for (size_t i = 0; source->schema && i < source->schema->nr_fields; i++)
		ps_nearest_add(&nearest, source->schema->fields[i].name);
	_cleanup_free_ char *text = ps_nearest_text(&nearest);
	ps_nearest_deinit(&nearest);
	return ps_error_format(PS_ERROR_USAGE, "unknown field %s%s", name, text ? text : "");
}

static struct ps_error *invalid_filter_error(const struct ps_source *source, const char **ret_at)
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
	size_t size;
	*ret_at = find_unknown_field(source, &size);
	if (*ret_at)
		return unknown_field_error(source, *ret_at, size);
	return ps_error_format(
		PS_ERROR_USAGE,
		"the kernel refuses it; compare as in prev_pid == 1 or comm ~ \"ba*\", a "
		"string with == != ~ only, an unsigned field with no negative number");
}

/** The kernel's parser gives EPERM, which is -1, for what it has no number for. */
static struct ps_error *unparsed_error(const struct ps_source *source, const char **ret_at)
{
	*ret_at = find_parenthesis(source->filter, false);
	if (*ret_at)
		return ps_error_format(PS_ERROR_USAGE,
				       "a parenthesis is closed that was not opened");
	return ps_error_format(PS_ERROR_USAGE,
			       "something follows a comparison; join two by && or ||");
}

/** What is wrong in @source's filter, from the kernel's own numbers for it; *@ret_at: where, as far as that is known. */
static struct ps_error *filter_error(int os_errno, const struct ps_source *source,
				     const char **ret_at)
{
	switch (os_errno) {
	case ENOENT:
		*ret_at = find_parenthesis(source->filter, true);
		return ps_error_format(PS_ERROR_USAGE, "a parenthesis is open; close it");
	case EPERM:
		return unparsed_error(source, ret_at);
	case ESRCH:
		*ret_at = find_open_quote(source->filter);
		return ps_error_format(PS_ERROR_USAGE, "a quote is open; close it");
	case EINVAL:
	case EOPNOTSUPP:
		return invalid_filter_error(source, ret_at);
	case ENOMEM:
		return &ps_enomem;
	default:
		return ps_error_os(os_errno, "the kernel refuses it");
	}
}

struct ps_error *ps_filter_apply(const struct ps_source *source, int fd)
{
	// The kernel takes "a ||" and leaves out the half that is missing.
	const char *at = find_lone_operator(source->filter);
	struct ps_error *error = NULL;
	if (at)
		error = ps_error_format(PS_ERROR_USAGE,
					"%.2s joins two comparisons; one is missing", at);
	else if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, source->filter))
		error = filter_error(errno, source, &at);
	if (!error)
		return NULL;
	error = ps_error_context(error, "%s: filter '%.200s'", source->name, source->filter);
	return at ? ps_error_caret(error, source->filter, at - source->filter) : error;
}
