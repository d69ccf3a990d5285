// SPDX-License-Identifier: MIT
#include "location.h"

#include <ctype.h>
#include <string.h>

// Soft keywords (match, type, ...) are good names.
static const char *const keywords[] = {
	"False", "None",     "True",  "and",	"as",	"assert", "async",  "await",	"break",
	"class", "continue", "def",   "del",	"elif", "else",	  "except", "finally",	"for",
	"from",	 "global",   "if",    "import", "in",	"is",	  "lambda", "nonlocal", "not",
	"or",	 "pass",     "raise", "return", "try",	"while",  "with",   "yield",
};

static bool is_keyword(const char *name)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(keywords); i++) {
		if (!strcmp(name, keywords[i]))
			return true;
	}
	return false;
}

static bool is_identifier_byte(unsigned char byte)
{
	return isalnum(byte) || byte == '_' || byte >= 0x80;
}

bool ps_is_identifier(const char *name)
{
	if (!*name || isdigit((unsigned char)*name) || is_keyword(name))
		return false;
	for (const char *at = name; *at; at++) {
		if (!is_identifier_byte(*at))
			return false;
	}
	return true;
}

char *ps_identifier_from(const char *name)
{
	char *identifier;
	bool needs_front = !*name || isdigit((unsigned char)*name);
	if (asprintf(&identifier, "%s%s%s", needs_front ? "_" : "", name,
		     is_keyword(name) ? "_" : "") < 0)
		return NULL;
	for (char *at = identifier; *at; at++) {
		if (!is_identifier_byte(*at))
			*at = '_';
	}
	return identifier;
}
