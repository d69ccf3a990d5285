// SPDX-License-Identifier: MIT
/**
 * `__options__` of a script, found without running it: they decide what is done before the interpreter starts.
 *
 * A scanner of as much of Python's grammar as tells statements from what lies in strings, brackets and comments.
 */
#include "location.h"

#include <ctype.h>
#include <perfscope/script.h>
#include <string.h>
#include <sys/stat.h>

#define OPTIONS_NAME "__options__"

struct scanner {
	const char *at; // NUL behind the text
	const char *text;
	unsigned int depth;    // of brackets
	bool is_new_statement; // at the start of a line that continues no other
};

struct prefix {
	size_t length;
	bool is_raw;
	bool is_text; // no b, no f
};

/** Whether a string literal starts at @at; @ret tells of the letters before its quote. */
static bool scan_prefix(const char *at, struct prefix *ret)
{
	size_t length = 0;
	struct prefix prefix = { .is_text = true };
	while (length < 2 && at[length] && strchr("rRbBuUfF", at[length])) {
		prefix.is_raw |= strchr("rR", at[length]) != NULL;
		prefix.is_text &= !strchr("bBfF", at[length]);
		length++;
	}
	if (at[length] != '"' && at[length] != '\'')
		return false;
	prefix.length = length;
	*ret = prefix;
	return true;
}

static int hex_digit(char digit)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = digit ? strchr(digits, tolower((unsigned char)digit)) : NULL;
	return found ? found - digits : -1;
}

/** In a string \x is a character, not a byte: two bytes of UTF-8 beyond ASCII. */
static void put_character(int code, FILE *out)
{
	if (code >= 0x80)
		putc(0xc0 | code >> 6, out);
	putc(code < 0x80 ? code : 0x80 | (code & 0x3f), out);
}

/**
 * Put the escape that starts with the backslash at @at to @out; return how many bytes it took.
 *
 * As Python does, but for the rare ones (octal, \u, \N), which are kept as they are.
 */
static size_t unescape(const char *at, FILE *out)
{
	static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
	const char *simple = at[1] ? strchr(from, at[1]) : NULL;
	if (simple) {
		putc(to[simple - from], out);
		return 2;
	}
	if (at[1] == '\n')
		return 2;
	if (at[1] == '\r' && at[2] == '\n')
		return 3;
	int high = at[1] == 'x' ? hex_digit(at[2]) : -1;
	int low = high >= 0 ? hex_digit(at[3]) : -1;
	if (low >= 0) {
		put_character(high << 4 | low, out);
		return 4;
	}
	putc('\\', out);
	return 1;
}

/** Step over the string literal at the scanner; its text goes to @out where that is not NULL. */
static void scan_string(struct scanner *scanner, const struct prefix *prefix, FILE *out)
{
	const char *at = scanner->at + prefix->length;
	char quotes[4] = { *at };
	if (at[1] == *at && at[2] == *at)
		memset(quotes, *at, 3);
	size_t nr_quotes = strlen(quotes);
	at += nr_quotes;
	while (*at && strncmp(at, quotes, nr_quotes)) {
		// An open string ends with its line: the rest of the text is read as well as it can be.
		if (*at == '\n' && nr_quotes == 1)
			break;
		size_t size = *at == '\\' && at[1] ? 2 : 1;
		if (out && size == 2 && !prefix->is_raw)
			size = unescape(at, out);
		else if (out)
			fwrite(at, 1, size, out);
		at += size;
	}
	scanner->at = strncmp(at, quotes, nr_quotes) ? at : at + nr_quotes;
}

/** Step over blanks and continued lines; inside brackets over line ends and comments too. */
static void skip_blanks(struct scanner *scanner, unsigned int depth)
{
	for (;;) {
		const char *at = scanner->at;
		size_t newline = at[0] == '\\' ? (at[1] == '\r' ? 2 : 1) : 0;
		if (*at == ' ' || *at == '\t' || *at == '\f' || *at == '\r' ||
		    (depth && *at == '\n'))
			scanner->at++;
		else if (newline && at[newline] == '\n')
			scanner->at += newline + 1;
		else if (depth && *at == '#')
			scanner->at += strcspn(at, "\n");
		else
			return;
	}
}

/** The value behind the `=`: string literals side by side, in brackets or not, and nothing else. False: another. */
static bool scan_value(struct scanner *scanner, FILE *out)
{
	unsigned int depth = 0, nr_strings = 0;
	for (;;) {
		struct prefix prefix;
		skip_blanks(scanner, depth);
		if (*scanner->at == '(' && !nr_strings) {
			depth++;
			scanner->at++;
		} else if (*scanner->at == ')' && depth) {
			depth--;
			scanner->at++;
		} else if (scan_prefix(scanner->at, &prefix) && prefix.is_text) {
			scan_string(scanner, &prefix, out);
			nr_strings++;
		} else {
			break;
		}
	}
	return nr_strings && !depth && (!*scanner->at || strchr("\n;#", *scanner->at));
}

/** Step over `__options__ =` or `__options__: str =`; false, and nothing stepped over, where it is something else. */
static bool scan_assignment(struct scanner *scanner)
{
	struct scanner ahead = *scanner;
	if (strncmp(ahead.at, OPTIONS_NAME, strlen(OPTIONS_NAME)))
		return false;
	ahead.at += strlen(OPTIONS_NAME);
	skip_blanks(&ahead, 0);
	if (*ahead.at == ':')
		ahead.at += strcspn(ahead.at, "=\n");
	if (ahead.at[0] != '=' || ahead.at[1] == '=')
		return false;
	ahead.at++;
	*scanner = ahead;
	return true;
}

static void scan_token(struct scanner *scanner)
{
	struct prefix prefix;
	const char *at = scanner->at;
	scanner->is_new_statement = false;
	if (scan_prefix(at, &prefix)) {
		scan_string(scanner, &prefix, NULL);
		return;
	}
	if (*at == '#')
		scanner->at += strcspn(at, "\n");
	else if (*at == '\\' && at[1])
		scanner->at += at[1] == '\r' && at[2] == '\n' ? 3 : 2;
	else if (isalnum((unsigned char)*at) || *at == '_')
		// As a whole: the r of `bar"` is no prefix.
		while (isalnum((unsigned char)*scanner->at) || *scanner->at == '_')
			scanner->at++;
	else
		scanner->at++;
	if (strchr("([{", *at))
		scanner->depth++;
	else if (strchr(")]}", *at) && scanner->depth)
		scanner->depth--;
	else if (*at == '\n')
		scanner->is_new_statement = !scanner->depth;
}

static unsigned int line_of(const struct scanner *scanner, const char *at)
{
	unsigned int line = 1;
	for (const char *newline = scanner->text; (newline = memchr(newline, '\n', at - newline));)
		newline++, line++;
	return line;
}

/** The last assignment counts, as it would when run. */
static struct ps_error *scan_options(const char *text, const char *path, char **ret)
{
	struct scanner scanner = { .at = text, .text = text, .is_new_statement = true };
	if (!strncmp(text, "\xef\xbb\xbf", 3))
		scanner.at += 3;
	_cleanup_free_ char *options = NULL;
	while (*scanner.at) {
		const char *start = scanner.at;
		if (!scanner.is_new_statement || !scan_assignment(&scanner)) {
			scan_token(&scanner);
			continue;
		}
		char *value = NULL;
		size_t size;
		FILE *out = open_memstream(&value, &size);
		if (!out)
			return &ps_enomem;
		bool is_literal = scan_value(&scanner, out);
		if (fclose(out)) {
			free(value);
			return &ps_enomem;
		}
		free(options);
		options = value;
		if (!is_literal)
			return ps_error_format(PS_ERROR_SCRIPT,
					       "script %s, line %u: " OPTIONS_NAME
					       " is read without running the script and must be a "
					       "plain string",
					       path, line_of(&scanner, start));
		scanner.is_new_statement = false;
	}
	*ret = take_ptr(options);
	return NULL;
}

/** Where the text of the script @name lies, as far as that can be told without an interpreter. */
static struct ps_error *locate(const char *name, struct ps_location *ret)
{
	struct ps_error *error = ps_location_find(name, ret);
	if (error || ret->kind != PS_LOCATION_MODULE)
		return error;
	ps_location_deinit(ret);
	error = ps_location_find_module(name, ret);
	if (!error && !ret->path)
		error = ps_location_find_shipped(name, ret);
	return error;
}

/** A pipe is read once, when it is loaded. */
static bool is_readable_ahead(const struct ps_location *location)
{
	struct stat status;
	return location->path && location->kind == PS_LOCATION_SOURCE &&
	       !stat(location->path, &status) && S_ISREG(status.st_mode);
}

struct ps_error *ps_script_find_options(const char *name, char **ret)
{
	struct ps_location location = { 0 };
	struct ps_error *error = locate(name, &location);
	if (error)
		return error;
	_cleanup_free_ char *text = NULL;
	size_t size;
	char *options = NULL;
	if (is_readable_ahead(&location)) {
		error = ps_file_read(location.path, &text, &size);
		if (!error)
			error = scan_options(text, name, &options);
	}
	ps_location_deinit(&location);
	if (!error)
		*ret = options;
	return error;
}
