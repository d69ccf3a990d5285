// SPDX-License-Identifier: MIT
/**
 * The parser of probes: uprobe, uretprobe, kprobe, kretprobe and usdt.
 */
#include "spec_parse.h"

#include <ctype.h>
#include <perfscope/nearest.h>
#include <string.h>

static const char *const probes[] = { "uprobe", "uretprobe", "kprobe", "kretprobe", "usdt" };

const char *ps_spec_probe_kind(const char *text)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(probes); i++) {
		size_t length = strlen(probes[i]);
		if (!strncmp(text, probes[i], length) && text[length] == ':')
			return probes[i];
	}
	return NULL;
}

struct ps_error *ps_spec_unknown_probe(const struct ps_reader *reader, const struct ps_spec *spec)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, spec->system);
	for (size_t i = 0; i < PS_ARRAY_SIZE(probes); i++) {
		if (*probes[i] == 'u') // those of the kernel have none
			ps_nearest_add(&nearest, probes[i]);
	}
	_cleanup_free_ char *text = ps_nearest_text(&nearest);
	ps_nearest_deinit(&nearest);
	return ps_reader_error(reader, reader->at, "%s is no kind of probe%s", spec->system,
			       text && *text ? text : " (uprobe, uretprobe and usdt have a file)");
}

/**
 * The column behind the fetch arguments at the reader: a comma, line, slash or brace that is not
 * theirs.
 */
static struct ps_error *find_arguments_end(const struct ps_reader *reader, size_t *ret)
{
	size_t at = reader->at;
	for (;; at++) {
		char c = reader->text[at];
		if (!c || c == ',' || c == '\n' || (c == '}' && reader->is_in_braces))
			break;
		if (c == '"') {
			const char *closing = strchr(reader->text + at + 1, '"');
			if (!closing)
				return ps_reader_error(reader, at, "this quote is not closed");
			at = closing - reader->text;
		}
		if (c != '/')
			continue;
		// The slash of a bit field (%di:b4@0/32) belongs to the argument.
		size_t digits = at;
		while (digits > reader->at && isdigit((unsigned char)reader->text[digits - 1]))
			digits--;
		if (digits == at || digits == reader->at || reader->text[digits - 1] != '@')
			break;
	}
	*ret = at;
	return NULL;
}

static struct ps_error *parse_arguments(struct ps_reader *reader, struct ps_spec *spec)
{
	size_t start = reader->at, end;
	ps_reader_skip_blanks(reader);
	if (ps_spec_is_end(ps_reader_peek(reader)) || ps_reader_peek(reader) == '/') {
		reader->at = start;
		return NULL;
	}
	struct ps_error *error = find_arguments_end(reader, &end);
	if (error)
		return error;
	start = reader->at;
	reader->at = end;
	ps_reader_trim(reader, &start, &end);
	return ps_reader_copy(reader, start, end, &spec->args);
}

/** Parse FILE: in quotes, or up to the next space, comma or end. */
static struct ps_error *parse_file(struct ps_reader *reader, struct ps_spec *spec)
{
	size_t start = reader->at, end;
	if (ps_reader_peek(reader) == '"') {
		const char *closing = strchr(reader->text + ++start, '"');
		if (!closing)
			return ps_reader_error(reader, reader->at, "this quote is not closed");
		end = closing - reader->text;
		reader->at = end + 1;
	} else {
		while (ps_reader_peek(reader) && ps_reader_peek(reader) != ',' &&
		       !ps_is_space(ps_reader_peek(reader)) &&
		       !(ps_reader_peek(reader) == '}' && reader->is_in_braces))
			reader->at++;
		end = reader->at;
	}
	if (start == end)
		return ps_reader_error(reader, start, "a file is missing after @");
	return ps_reader_copy(reader, start, end, &spec->file);
}

/** The quote that closes a name of which @text is behind the first; not the pair in operator"" _km. NULL: there is none. */
static const char *find_closing(const char *text)
{
	const char *at = strchr(text, '"');
	while (at && at[1] == '"')
		at = strchr(at + 2, '"');
	return at;
}

/** Move over the name of a probe: in quotes, as "f(int, char*)", or a word; "::" is part of names of C++. */
static struct ps_error *skip_probe_name(struct ps_reader *reader, bool is_usdt, size_t *ret_start,
					size_t *ret_end)
{
	const char *text = reader->text;
	*ret_start = reader->at;
	if (ps_reader_peek(reader) == '"') {
		const char *closing = find_closing(text + ++*ret_start);
		if (!closing)
			return ps_reader_error(reader, reader->at, "this quote is not closed");
		*ret_end = closing - text;
		reader->at = *ret_end + 1;
		return NULL;
	}
	for (;;) {
		reader->at += strcspn(text + reader->at, is_usdt ? "@/,{} \t\n" : "@+:/,{} \t\n");
		if (is_usdt || strncmp(text + reader->at, "::", 2))
			break;
		reader->at += 2;
	}
	*ret_end = reader->at;
	return NULL;
}

/** Parse FUNC[+OFF], or PROVIDER:NAME of usdt. */
static struct ps_error *parse_probe_name(struct ps_reader *reader, bool is_usdt,
					 struct ps_spec *spec)
{
	size_t start = reader->at, end = start;
	struct ps_error *error = skip_probe_name(reader, is_usdt, &start, &end);
	if (!error)
		error = ps_reader_copy(reader, start, end, &spec->name);
	if (error)
		return error;
	const char *colon = strchr(spec->name, ':');
	if (is_usdt && (!colon || colon == spec->name || !colon[1] || strchr(colon + 1, ':')))
		return ps_reader_error(reader, start, "usdt names a PROVIDER:NAME");
	if (start == end)
		return ps_reader_error(reader, start, "a function is missing here");
	if (is_usdt || ps_reader_peek(reader) != '+')
		return NULL;
	reader->at++;
	return ps_reader_number(reader, "an offset", &spec->offset);
}

struct ps_error *ps_spec_parse_probe(struct ps_reader *reader, const char *kind,
				     struct ps_spec *spec)
{
	spec->kind = PS_SPEC_PROBE;
	spec->system = strdup(kind);
	if (!spec->system)
		return &ps_enomem;
	reader->at += strlen(kind) + 1;
	struct ps_error *error = parse_probe_name(reader, !strcmp(kind, "usdt"), spec);
	if (error)
		return error;
	bool has_file = kind[0] == 'u';
	if (has_file != (ps_reader_peek(reader) == '@'))
		return ps_reader_error(reader, reader->at, "%s",
				       has_file ? "the file is missing: FUNC@FILE"
						: "a kernel function is in no file");
	if (has_file) {
		reader->at++;
		error = parse_file(reader, spec);
	}
	if (!error && (ps_reader_peek(reader) == ' ' || ps_reader_peek(reader) == '\t'))
		error = parse_arguments(reader, spec);
	return error ? error : ps_spec_parse_tail(reader, spec);
}
