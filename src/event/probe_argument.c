// SPDX-License-Identifier: MIT
/**
 * Arguments by the names of the program: "len name:string size=buf->size" to the kernel's fetch arguments.
 */
#include "probe_dwarf.h"

#include "probe_member.h"

#include <dwarf.h>

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/** One word of the arguments, taken apart; the texts point into it and have no end of their own. */
struct word {
	const char *text, *body, *type;
	size_t length, name_length, body_length, type_length; // 0: not given
};

static bool is_name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static size_t identifier_length(const char *text)
{
	size_t length = 0;
	while (isalnum((unsigned char)text[length]) || text[length] == '_')
		length++;
	return length;
}

/** Take the word at @text apart: [NAME=]BODY[:TYPE]. */
static struct word read_word(const char *text)
{
	struct word word = { .text = text, .body = text, .length = strcspn(text, " \t\n") };
	size_t length = identifier_length(text);
	if (length && text[length] == '=') {
		word.name_length = length;
		word.body += length + 1;
	}
	word.body_length = word.text + word.length - word.body;
	const char *colon = memchr(word.body, ':', word.body_length);
	if (colon) {
		word.type = colon + 1;
		word.type_length = word.text + word.length - word.type;
		word.body_length = colon - word.body;
	}
	return word;
}

static bool is_argument_number(const struct word *word)
{
	return word->body_length > 4 && !strncmp(word->body, "$arg", 4) &&
	       strspn(word->body + 4, "0123456789") == word->body_length - 4;
}

static const char returned[] = "$retval";

/** Whether @body is what is returned, or a path from there. */
static bool is_returned(const char *body)
{
	size_t length = strlen(returned);
	return !strncmp(body, returned, length) && !identifier_length(body + length);
}

struct ps_error *ps_arguments_vet(const char *args)
{
	bool is_text = false;
	for (const char *at = args; *at; at++) {
		is_text ^= *at == '"';
		if (is_text || strncmp(at, returned, strlen(returned)))
			continue;
		size_t length = 1 + identifier_length(at + 1);
		if (length > strlen(returned))
			return ps_error_format(PS_ERROR_USAGE, "there is no %.*s; nearest: %s",
					       (int)length, at, returned);
	}
	return NULL;
}

bool ps_arguments_need_translation(const char *args)
{
	while (*(args += strspn(args, " \t\n"))) {
		struct word word = read_word(args);
		if (is_name_start(*word.body) || is_argument_number(&word) ||
		    is_returned(word.body))
			return true;
		args += word.length;
	}
	return false;
}

/** Names that are there, for messages. */
struct names {
	const struct ps_scope *scope;
	FILE *stream;
	const char *comma;
};

static bool write_name(Dwarf_Die *variable, void *argument)
{
	struct names *names = argument;
	struct ps_fetch fetch;
	Dwarf_Die declared, type;
	bool is_float = ps_type_of(variable, &declared) && ps_type_peel(&declared, &type) &&
			ps_type_is_float(&type);
	if (is_float || ps_fetch_locate(names->scope, variable, &fetch))
		return true;
	fprintf(names->stream, "%s%s", names->comma, dwarf_diename(variable));
	names->comma = ", ";
	return true;
}

/** "; there are a, b" of what can be fetched. The caller frees it; NULL: no memory. */
static char *available(const struct ps_scope *scope)
{
	char *text = NULL;
	size_t size;
	struct names names = { scope, open_memstream(&text, &size), "; there are " };
	if (!names.stream)
		return NULL;
	ps_scope_walk(scope, write_name, &names);
	uint64_t ready = scope->is_return ? 0 : ps_scope_ready(scope);
	if (ready)
		fprintf(names.stream, " (all are known from +0x%" PRIx64 " on)", ready);
	if (fclose(names.stream)) {
		free(text);
		return NULL;
	}
	return text;
}

static bool list_name(Dwarf_Die *variable, void *argument)
{
	// The compiler's own, as __PRETTY_FUNCTION__; a parameter that it made is this.
	if (dwarf_tag(variable) == DW_TAG_variable && dwarf_hasattr(variable, DW_AT_artificial))
		return true;
	struct names *names = argument;
	struct ps_typed typed = { 0 };
	char kernel[32];
	Dwarf_Die declared;
	if (ps_fetch_locate(names->scope, variable, &typed.fetch) ||
	    ps_typed_enter(&typed, variable) || !ps_type_of(variable, &declared))
		return true;
	// The members of a structure can be had, a float cannot.
	_cleanup_free_ char *members = typed.is_void ? NULL : ps_typed_members(&typed.type);
	_cleanup_free_ char *text = ps_type_text(&declared);
	if (text && (members || !ps_typed_choose(&typed, kernel)))
		fprintf(names->stream, "%s\t%s\n", dwarf_diename(variable), text);
	return true;
}

/** Enter what the function of @scope returns. NULL, or why it cannot be fetched: a clause about "it". */
static const char *enter_returned(const struct ps_scope *scope, struct ps_typed *ret)
{
	Dwarf_Die function = scope->function;
	*ret = (struct ps_typed){ .fetch = { .kind = PS_FETCH_VALUE, .scope = scope } };
	strcpy(ret->fetch.base, returned);
	const char *reason = ps_typed_enter(ret, &function);
	if (!reason && ret->is_void)
		reason = "the function returns nothing";
	if (!reason && ps_type_is_float(&ret->type))
		reason = "it is a float, which the kernel cannot show";
	return reason;
}

static void list_returned(const struct ps_scope *scope, FILE *stream)
{
	struct ps_typed typed;
	Dwarf_Die function = scope->function, declared;
	if (enter_returned(scope, &typed) || !ps_type_of(&function, &declared))
		return;
	_cleanup_free_ char *text = ps_type_text(&declared);
	if (text)
		fprintf(stream, "%s\t%s\n", returned, text);
}

void ps_arguments_list(const struct ps_scope *scope, FILE *stream)
{
	if (scope->is_return)
		list_returned(scope, stream);
	struct names names = { scope, stream, "" };
	ps_scope_walk(scope, list_name, &names);
}

static struct ps_error *unavailable(const struct ps_scope *scope, enum ps_error_kind kind,
				    const char *name, const char *reason)
{
	_cleanup_free_ char *names = available(scope);
	return ps_error_format(kind, "%s: %s%s", name, reason, names ? names : "");
}

static struct ps_error *locate_returned(const struct ps_scope *scope, const char *path,
					struct ps_typed *ret)
{
	const char *reason = enter_returned(scope, ret);
	// Where it lies is told by none of the registers, or by two.
	if (!reason && *path && ret->fetch.kind == PS_FETCH_VALUE &&
	    ps_type_is_structure(&ret->type))
		reason = "a structure is returned, not a pointer to one";
	if (reason)
		return ps_error_format(PS_ERROR_UNSUPPORTED, "%s: %s", returned, reason);
	return ps_error_context(ps_typed_follow(ret, path), "%s%s", returned, path);
}

/** Find what the body of a word names. */
static struct ps_error *locate(const struct ps_scope *scope, const char *body, struct ps_typed *ret)
{
	if (is_returned(body))
		return locate_returned(scope, body + strlen(returned), ret);
	size_t length = identifier_length(body);
	_cleanup_free_ char *name = strndup(body, length);
	if (!name)
		return &ps_enomem;
	Dwarf_Die variable;
	if (!ps_scope_find(scope, name, &variable))
		return unavailable(scope, PS_ERROR_NOT_FOUND, name,
				   scope->is_return
					   ? "a return knows $retval and global variables only"
					   : "no variable of this name is there");
	Dwarf_Die declared, type;
	const char *reason = ps_fetch_locate(scope, &variable, &ret->fetch);
	if (reason && ps_type_of(&variable, &declared) && ps_type_peel(&declared, &type) &&
	    ps_type_is_float(&type))
		reason = "it is a float, which the kernel cannot show";
	if (!reason)
		reason = ps_typed_enter(ret, &variable);
	if (reason)
		return unavailable(scope, PS_ERROR_UNSUPPORTED, name, reason);
	return ps_error_context(ps_typed_follow(ret, body + length), "%s", body);
}

/** The type of @word in the kernel's words; text is followed to where it lies. */
static struct ps_error *choose_type(const struct word *word, const char *body,
				    struct ps_typed *typed, char ret[32])
{
	if (!word->type_length) {
		const char *reason = ps_typed_choose(typed, ret);
		if (!reason)
			return NULL;
		_cleanup_free_ char *members =
			typed->is_void ? NULL : ps_typed_members(&typed->type);
		return ps_error_format(PS_ERROR_UNSUPPORTED, "%s: %s%s%s", body, reason,
				       members ? "; there are " : "", members ? members : "");
	}
	snprintf(ret, 32, "%.*s", (int)word->type_length, word->type);
	char own[32];
	bool is_text = !strcmp(ret, "string") || !strcmp(ret, "ustring");
	// A pointer to any bytes can be read as text.
	if (is_text && !typed->is_void && dwarf_tag(&typed->type) == DW_TAG_pointer_type &&
	    !ps_fetch_deref(&typed->fetch))
		return ps_error_format(PS_ERROR_UNSUPPORTED, "%s: too many pointers", body);
	if (!is_text && typed->bit_width && !ps_typed_choose(typed, own))
		return ps_error_format(PS_ERROR_USAGE, "%s: a bit field has the type %s", body,
				       own);
	return NULL;
}

/** Whether @text, of what is translated already, has an argument called @name. */
static bool is_name_taken(const char *text, const char *name, size_t length)
{
	for (const char *at = text; (at = strstr(at, name)); at++) {
		if ((at == text || at[-1] == ' ') && at[length] == '=')
			return true;
	}
	return false;
}

/** What the value is called: the last name in its path, else the whole path with "_". The caller frees it. */
static char *make_name(const char *body, const char *before)
{
	size_t start = 0, length = 0;
	for (size_t i = 0; body[i]; i++) {
		if (is_name_start(body[i]) && (!i || !identifier_length(body + i - 1)))
			start = i;
	}
	length = identifier_length(body + start);
	_cleanup_free_ char *name = strndup(body + start, length);
	if (!name || !is_name_taken(before, name, length))
		return_ptr(name);
	free(name);
	name = calloc(1, strlen(body) + 1);
	length = 0;
	for (size_t i = 0; name && body[i]; i++) {
		bool is_part = identifier_length(body + i) > 0;
		if (is_part || (length && name[length - 1] != '_'))
			name[length++] = is_part ? body[i] : '_';
	}
	if (name && length && name[length - 1] == '_')
		name[length - 1] = '\0';
	return_ptr(name);
}

/** Write the word that names a variable; @before is what is translated already. */
static struct ps_error *write_variable(const struct ps_scope *scope, const struct word *word,
				       const char *before, FILE *stream)
{
	_cleanup_free_ char *body = strndup(word->body, word->body_length);
	struct ps_typed typed = { 0 };
	char type[32], text[PS_FETCH_SIZE];
	struct ps_error *error = body ? locate(scope, body, &typed) : &ps_enomem;
	bool is_plain_return = body && !strcmp(body, returned);
	if (!error && is_plain_return && ps_type_is_structure(&typed.type)) {
		fprintf(stream, "%.*s", (int)word->length, word->text);
		return NULL;
	}
	if (!error)
		error = choose_type(word, body, &typed, type);
	if (error)
		return error;
	if (!ps_fetch_text(&typed.fetch, text))
		return ps_error_format(PS_ERROR_UNSUPPORTED, "%s: too many pointers", body);
	if (is_plain_return && !word->name_length) {
		fprintf(stream, "%s:%s", text, type);
		return NULL;
	}
	_cleanup_free_ char *name = word->name_length ? strndup(word->text, word->name_length)
						      : make_name(body, before);
	if (!name)
		return &ps_enomem;
	fprintf(stream, "%s=%s:%s", name, text, type);
	return NULL;
}

/** Write a word with $argN: by the calling convention, where the function begins. */
static struct ps_error *write_number(const struct ps_dwarf *dwarf, const struct ps_scope *scope,
				     const struct word *word, FILE *stream)
{
	char text[32];
	unsigned long number = strtoul(word->body + 4, NULL, 10);
	if (scope && (scope->is_return || scope->address != scope->entry))
		return ps_error_format(PS_ERROR_USAGE,
				       "$arg%lu is known where the function begins only", number);
	if (!number || number > 64 || !ps_integer_argument(dwarf->machine, number - 1, text))
		return ps_error_format(PS_ERROR_USAGE, "there is no $arg%lu", number);
	if (word->name_length)
		fprintf(stream, "%.*s=", (int)word->name_length, word->text);
	else
		fprintf(stream, "arg%lu=", number);
	fputs(text, stream);
	if (word->type_length)
		fprintf(stream, ":%.*s", (int)word->type_length, word->type);
	return NULL;
}

static struct ps_error *write_word(const struct ps_dwarf *dwarf, const struct ps_scope *scope,
				   const struct word *word, const char *before, FILE *stream)
{
	if (is_argument_number(word))
		return write_number(dwarf, scope, word, stream);
	bool is_known_return = is_returned(word->body) && scope && scope->dwarf && scope->is_return;
	if (!is_name_start(*word->body) && !is_known_return) {
		fprintf(stream, "%.*s", (int)word->length, word->text);
		return NULL;
	}
	if (scope && scope->dwarf)
		return write_variable(scope, word, before, stream);
	return ps_error_format(PS_ERROR_NOT_FOUND,
			       "%.*s: %s has no debug information on what is there (build it with "
			       "-g, or name a register: %%di)",
			       (int)word->body_length, word->body, dwarf->elf->path);
}

struct ps_error *ps_arguments_translate(const struct ps_dwarf *dwarf, const struct ps_scope *scope,
					const char *args, char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return &ps_enomem;
	struct ps_error *error = NULL;
	const char *blank = "";
	while (!error && *(args += strspn(args, " \t\n"))) {
		struct word word = read_word(args);
		fputs(blank, stream);
		fflush(stream);
		error = write_word(dwarf, scope, &word, text, stream);
		blank = " ";
		args += word.length;
	}
	if (fclose(stream) && !error)
		error = &ps_enomem;
	if (!error)
		*ret = take_ptr(text);
	return error;
}
