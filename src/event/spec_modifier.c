// SPDX-License-Identifier: MIT
/**
 * The letters behind an event: levels and sides that are counted, and precision.
 */
#include "spec_parse.h"

#include <ctype.h>
#include <string.h>

#define MODIFIERS "ukhGHp"
#define MAX_PRECISE 3

size_t ps_spec_span_modifiers(const char *text)
{
	return strspn(text, MODIFIERS);
}

/**
 * Apply one letter: the first of u, k, h excludes the levels that are not named, likewise G and H.
 */
static void apply_modifier(struct ps_spec *spec, char letter)
{
	bool is_level_named = spec->exclude_user || spec->exclude_kernel || spec->exclude_hv;
	bool is_side_named = spec->exclude_host || spec->exclude_guest;
	switch (letter) {
	case 'u':
	case 'k':
	case 'h':
		if (!is_level_named)
			spec->exclude_user = spec->exclude_kernel = spec->exclude_hv = true;
		*(letter == 'u'	  ? &spec->exclude_user
		  : letter == 'k' ? &spec->exclude_kernel
				  : &spec->exclude_hv) = false;
		spec->is_modified = true;
		break;
	case 'G':
	case 'H':
		if (!is_side_named)
			spec->exclude_host = spec->exclude_guest = true;
		*(letter == 'G' ? &spec->exclude_guest : &spec->exclude_host) = false;
		spec->is_modified = true;
		break;
	case 'p':
		spec->precise_ip++;
		// Precise sampling of a guest from its host is refused by processors.
		if (!is_side_named)
			spec->exclude_guest = true;
		break;
	}
}

static struct ps_error *add_modifiers(struct ps_spec *spec, const char *letters, size_t nr)
{
	char *modifiers;
	if (asprintf(&modifiers, "%s%.*s", spec->modifiers ? spec->modifiers : "", (int)nr,
		     letters) < 0)
		return &ps_enomem;
	free(spec->modifiers);
	spec->modifiers = modifiers;
	for (size_t i = 0; i < nr; i++)
		apply_modifier(spec, letters[i]);
	return NULL;
}

static size_t count_precise(const char *letters, size_t nr)
{
	size_t count = 0;
	for (size_t i = 0; i < nr; i++)
		count += letters[i] == 'p';
	return count;
}

struct ps_error *ps_spec_parse_modifiers(struct ps_reader *reader, struct ps_spec *specs, size_t nr)
{
	const char *letters = reader->text + reader->at;
	size_t nr_letters = ps_spec_span_modifiers(letters);
	if (!nr_letters || isalnum((unsigned char)letters[nr_letters]))
		return ps_reader_error(reader, reader->at + nr_letters,
				       "modifiers are letters of u k h G H p");
	size_t nr_precise = count_precise(letters, nr_letters);
	for (size_t i = 0; i < nr; i++) {
		if (specs[i].precise_ip + nr_precise > MAX_PRECISE)
			return ps_reader_error(reader, reader->at, "p stands at most three times");
		struct ps_error *error = add_modifiers(&specs[i], letters, nr_letters);
		if (error)
			return error;
	}
	reader->at += nr_letters;
	return NULL;
}
