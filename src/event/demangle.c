// SPDX-License-Identifier: MIT
#include <perfscope/demangle.h>

#include <libiberty/demangle.h>
#include <perfscope/cleanup.h>
#include <stdbool.h>
#include <string.h>

// A longer name is shown as it is: the library's work can grow faster than its length.
#define MAX_MANGLED 8192

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R') && strlen(name) < MAX_MANGLED;
}

char *ps_demangle(const char *name)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;
	if (!is_mangled(name))
		return NULL;
	char *text = rust_demangle(name, options);
	return text ? text : cplus_demangle_v3(name, options);
}

/** The length of the operator at @text that begins with "<", without the arguments of a template; 0: there is none. */
static size_t less_length(const char *text)
{
	static const char *const operators[] = { "<=>", "<<=", "<<", "<=", "<" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(operators); i++) {
		if (!strncmp(text, operators[i], strlen(operators[i])))
			return strlen(operators[i]);
	}
	return 0;
}

/** How long the text at @text is that is one piece of a name although it has brackets or blanks; 0: it is none. */
static size_t piece_length(const char *text, bool is_start)
{
	static const char anonymous[] = "(anonymous namespace)", word[] = "operator";
	if (!strncmp(text, anonymous, strlen(anonymous)))
		return strlen(anonymous);
	if (!is_start || strncmp(text, word, strlen(word)))
		return 0;
	size_t length = strlen(word);
	if (!strncmp(text + length, "()", 2))
		return length + 2;
	// "operator new", "operator bool", and the suffix of a literal: operator"" _km
	if (text[length] == ' ' || !strncmp(text + length, "\"\"", 2))
		return strcspn(text, "(<");
	// "operator+<int>" has the arguments of a template behind it.
	size_t symbols = strspn(text + length, ">-=+*/%^&|~!,[]");
	if (!symbols)
		symbols = less_length(text + length);
	return symbols ? length + symbols : 0;
}

char *ps_demangled_path(const char *demangled)
{
	char *path = strdup(demangled), *end = path;
	unsigned int depth = 0;
	for (const char *at = demangled; path && *at;) {
		size_t length = piece_length(at, at == demangled || strchr(" :", at[-1]));
		length = length ? length : 1;
		if (length == 1 && *at == '<')
			depth++;
		if (length == 1 && !depth && *at == '(')
			break;
		if (!depth) {
			memmove(end, at, length);
			end += length;
		}
		// What stood before a blank was the type of what is returned, but in "operator< <int>".
		if (length == 1 && !depth && *at == ' ')
			end = at[1] == '<' ? end - 1 : path;
		if (length == 1 && depth && *at == '>' && at[-1] != '-')
			depth--;
		at += length;
	}
	if (end)
		*end = '\0';
	return path;
}
