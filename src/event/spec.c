// SPDX-License-Identifier: MIT
/**
 * The parser of event texts: lists and groups. docs/events.md has the grammar.
 */
#include <perfscope/spec.h>

#include "spec_parse.h"

#include <ctype.h>
#include <string.h>

static void spec_deinit(struct ps_spec *spec)
{
	for (size_t i = 0; i < spec->nr_terms; i++) {
		free(spec->terms[i].name);
		free(spec->terms[i].value);
	}
	free(spec->terms);
	free(spec->text);
	free(spec->system);
	free(spec->name);
	free(spec->file);
	free(spec->args);
	free(spec->filter);
	free(spec->alias);
	free(spec->cpus);
	free(spec->modifiers);
}

void ps_spec_list_deinit(struct ps_spec_list *list)
{
	for (size_t i = 0; i < list->nr_specs; i++)
		spec_deinit(&list->specs[i]);
	free(list->specs);
	*list = (struct ps_spec_list){};
}

static struct ps_error *append_event(struct ps_reader *reader, unsigned int group,
				     struct ps_spec_list *list)
{
	struct ps_spec *specs = reallocarray(list->specs, list->nr_specs + 1, sizeof(*specs));
	if (!specs)
		return &ps_enomem;
	list->specs = specs;
	struct ps_spec *spec = &specs[list->nr_specs++];
	*spec = (struct ps_spec){ .group = group };
	struct ps_error *error = ps_spec_parse_event(reader, spec);
	return error ? error : ps_reader_copy(reader, spec->column, reader->at, &spec->text);
}

/** Move over a comma or a line's end between events; @ret is false where the list ends instead. */
static struct ps_error *parse_separator(struct ps_reader *reader, bool *ret)
{
	size_t start = reader->at;
	ps_reader_skip_space(reader);
	char c = ps_reader_peek(reader);
	bool is_list_end = !c || (c == '}' && reader->is_in_braces);
	*ret = !is_list_end;
	if (is_list_end)
		return NULL;
	if (c == '}')
		return ps_reader_error(reader, reader->at, "this brace was not opened");
	if (c != ',') {
		bool is_new_line = memchr(reader->text + start, '\n', reader->at - start);
		return is_new_line ? NULL
				   : ps_reader_error(reader, reader->at,
						     "a comma is missing between the events");
	}
	size_t comma = reader->at++;
	ps_reader_skip_space(reader);
	if (!ps_reader_peek(reader) || ps_reader_peek(reader) == ',' ||
	    ps_reader_peek(reader) == '}')
		return ps_reader_error(reader, comma, "an event is missing after the comma");
	return NULL;
}

static struct ps_error *parse_group(struct ps_reader *reader, struct ps_spec_list *list)
{
	size_t brace = reader->at++, first = list->nr_specs;
	unsigned int group = ++list->nr_groups;
	reader->is_in_braces = true;
	for (bool has_more = true; has_more;) {
		ps_reader_skip_space(reader);
		if (ps_reader_peek(reader) == '{')
			return ps_reader_error(reader, reader->at, "groups do not stand in groups");
		struct ps_error *error = append_event(reader, group, list);
		if (!error)
			error = parse_separator(reader, &has_more);
		if (error)
			return error;
	}
	reader->is_in_braces = false;
	if (ps_reader_peek(reader) != '}')
		return ps_reader_error(reader, brace, "this brace is not closed");
	reader->at++;
	if (ps_reader_peek(reader) != ':')
		return NULL;
	reader->at++;
	return ps_spec_parse_modifiers(reader, list->specs + first, list->nr_specs - first);
}

static struct ps_error *parse_list(struct ps_reader *reader, struct ps_spec_list *list)
{
	ps_reader_skip_space(reader);
	for (bool has_more = true; has_more;) {
		struct ps_error *error = ps_reader_peek(reader) == '{'
						 ? parse_group(reader, list)
						 : append_event(reader, 0, list);
		if (!error)
			error = parse_separator(reader, &has_more);
		if (error)
			return error;
	}
	return NULL;
}

struct ps_error *ps_spec_parse(const char *text, struct ps_spec_list *list)
{
	if (strnlen(text, PS_SPEC_MAX_SIZE + 1) > PS_SPEC_MAX_SIZE)
		return ps_error_format(PS_ERROR_USAGE, "an event text is at most %d bytes long",
				       PS_SPEC_MAX_SIZE);
	struct ps_reader reader = { .text = text };
	struct ps_spec_list parsed = { .nr_groups = list->nr_groups };
	struct ps_error *error = parse_list(&reader, &parsed);
	struct ps_spec *specs =
		error ? NULL
		      : reallocarray(list->specs, list->nr_specs + parsed.nr_specs, sizeof(*specs));
	if (!specs) {
		ps_spec_list_deinit(&parsed);
		return error ? error : &ps_enomem;
	}
	memcpy(specs + list->nr_specs, parsed.specs, parsed.nr_specs * sizeof(*specs));
	list->specs = specs;
	list->nr_specs += parsed.nr_specs;
	list->nr_groups = parsed.nr_groups;
	free(parsed.specs);
	return NULL;
}

char *ps_spec_handler_name(const char *system, const char *name)
{
	char *handler;
	if (asprintf(&handler, "%s%s%s", system ? system : "", system ? "__" : "", name) < 0)
		return NULL;
	for (char *at = handler; *at; at++) {
		if (!isalnum((unsigned char)*at))
			*at = '_';
	}
	return handler;
}
