// SPDX-License-Identifier: MIT
/**
 * usdt probes: notes like "-4@%edi 8@-8(%rbp)" to places and the kernel's fetch arguments.
 */
#include "probe_dwarf.h"
#include "probe_find.h"

#include <ctype.h>
#include <perfscope/log.h>
#include <string.h>

// What one fetch argument may be long, with its name.
#define MAX_OPERAND 128
#define MAX_ARGS 12

/** One argument: how to fetch it, without its type. */
struct operand {
	char fetch[MAX_OPERAND]; // "": the kernel cannot
	char type[8];		 // "s32"
	bool is_float;
	const char *text; // as the note has it, borrowed
	size_t length;
};

/** The kernel's name of the x86 register @name: "edi", "dil" and "rdi" are "di". */
static bool x86_register(const char *name, size_t length, char *ret)
{
	static const char *const plain[] = { "ax", "bx", "cx", "dx", "si", "di", "bp", "sp" };
	if (length < 2 || length > 4)
		return false;
	if (name[0] == 'r' && isdigit((unsigned char)name[1])) { // r8, r8d, r8w, r8b
		size_t digits = strspn(name + 1, "0123456789");
		snprintf(ret, 8, "r%.*s", (int)(digits < 2 ? digits : 2), name + 1);
		return true;
	}
	bool is_long = (name[0] == 'r' || name[0] == 'e') && length == 3;
	const char *rest = name + is_long;
	size_t rest_length = length - is_long;
	for (size_t i = 0; i < PS_ARRAY_SIZE(plain); i++) {
		const char *known = plain[i];
		bool is_word = rest_length == 2 && !strncmp(rest, known, 2);
		bool is_low = rest_length == 3 && rest[2] == 'l' && !strncmp(rest, known, 2);
		bool is_letter = rest_length == 2 && known[1] == 'x' && rest[0] == known[0] &&
				 rest[1] == 'l';
		if (!is_word && !is_low && !is_letter)
			continue;
		snprintf(ret, 8, "%s", known);
		return true;
	}
	return false;
}

/** Write "%di", "+8(%bp)" or "\5" for the operand of AT&T's assembler. */
static void translate_x86(const char *text, size_t length, char *ret)
{
	char name[8];
	const char *end = text + length, *open = memchr(text, '(', length);
	if (*text == '$') {
		snprintf(ret, MAX_OPERAND, "\\%.*s", (int)length - 1, text + 1);
		return;
	}
	if (*text == '%') {
		if (x86_register(text + 1, length - 1, name))
			snprintf(ret, MAX_OPERAND, "%%%s", name);
		return;
	}
	// Neither indexed operands nor symbols can be fetched.
	if (!open || open[1] != '%' || end[-1] != ')' ||
	    !x86_register(open + 2, end - open - 3, name))
		return;
	char *digits_end = (char *)open;
	long displacement = open == text ? 0 : strtol(text, &digits_end, 0);
	if (digits_end == open)
		snprintf(ret, MAX_OPERAND, "%+ld(%%%s)", displacement, name);
}

/** The kernel's name of the arm64 register @name: "w0" and "x0" are "x0". */
static bool arm64_register(const char *name, size_t length, char *ret)
{
	if (length == 2 && !strncmp(name, "sp", 2)) {
		strcpy(ret, "sp");
		return true;
	}
	if (length < 2 || length > 3 || (name[0] != 'x' && name[0] != 'w') ||
	    !isdigit((unsigned char)name[1]))
		return false;
	snprintf(ret, 8, "x%.*s", (int)length - 1, name + 1);
	return true;
}

/** The same for arm64: "x0", "[sp, 16]", "5". */
static void translate_arm64(const char *text, size_t length, char *ret)
{
	char name[8];
	if (arm64_register(text, length, name)) {
		snprintf(ret, MAX_OPERAND, "%%%s", name);
		return;
	}
	if (isdigit((unsigned char)*text) || *text == '-') {
		snprintf(ret, MAX_OPERAND, "\\%.*s", (int)length, text);
		return;
	}
	size_t register_length = *text == '[' ? strcspn(text + 1, ",]") : 0;
	if (!register_length || text[length - 1] != ']' ||
	    !arm64_register(text + 1, register_length, name))
		return;
	const char *rest = text + 1 + register_length;
	char *end = (char *)rest;
	long displacement = *rest == ',' ? strtol(rest + 1, &end, 0) : 0;
	if (*end == ']')
		snprintf(ret, MAX_OPERAND, "%+ld(%%%s)", displacement, name);
}

/** Read "-4" of "-4@%edi" as a type of the kernel's; "8f" is a float, which it cannot show. */
static bool read_type(const char *size, char *ret)
{
	char *end;
	long bytes = strtol(size, &end, 10);
	long width = bytes < 0 ? -bytes : bytes;
	if (*end != '@' || (width != 1 && width != 2 && width != 4 && width != 8))
		return false;
	snprintf(ret, 8, "%c%ld", bytes < 0 ? 's' : 'u', 8 * width);
	return true;
}

/** The length of the argument at @text: blanks in brackets belong to it. */
static size_t argument_length(const char *text)
{
	const char *at = text;
	for (bool is_inside = false; *at && (is_inside || *at != ' '); at++)
		is_inside = *at == '[' || (is_inside && *at != ']');
	return at - text;
}

static struct operand read_operand(const char *text, size_t length, unsigned int machine)
{
	struct operand operand = { .type = "u64", .text = text, .length = length };
	const char *at = memchr(text, '@', length);
	operand.is_float = at && at[-1] == 'f';
	if (at && !read_type(text, operand.type))
		return operand;
	const char *body = at ? at + 1 : text;
	length -= body - text;
	if (!length || length >= MAX_OPERAND - 32)
		return operand;
	if (machine == EM_X86_64 || machine == EM_386)
		translate_x86(body, length, operand.fetch);
	else if (machine == EM_AARCH64)
		translate_arm64(body, length, operand.fetch);
	return operand;
}

/** The arguments of a note; their number. */
static size_t read_operands(const char *args, unsigned int machine, struct operand *ret)
{
	size_t nr = 0;
	while (nr < MAX_ARGS && *(args += strspn(args, " "))) {
		size_t length = argument_length(args);
		ret[nr++] = read_operand(args, length, machine);
		args += length;
	}
	return nr;
}

static void write_all(const struct operand *operands, size_t nr, FILE *stream)
{
	const char *blank = "";
	for (size_t i = 0; i < nr; i++) {
		if (!*operands[i].fetch) {
			ps_log(PS_LOG_INFO, "argument %zu of a usdt probe cannot be fetched",
			       i + 1);
			continue;
		}
		fprintf(stream, "%sarg%zu=%s:%s", blank, i + 1, operands[i].fetch,
			operands[i].type);
		blank = " ";
	}
}

static struct ps_error *explain_operand(const struct operand *operand, size_t number)
{
	if (operand->is_float)
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "$arg%zu is a float, which the kernel cannot show", number);
	return ps_error_format(
		PS_ERROR_UNSUPPORTED,
		"$arg%zu lies where the kernel cannot fetch it: %.*s (it takes one "
		"register and an offset; a global variable can be named instead, where "
		"there is debug information)",
		number, (int)operand->length, operand->text);
}

/** Write @wanted with each $argN replaced. */
static struct ps_error *write_wanted(const char *wanted, const struct operand *operands, size_t nr,
				     FILE *stream)
{
	for (const char *at = wanted; *at;) {
		if (strncmp(at, "$arg", 4) || !isdigit((unsigned char)at[4])) {
			putc(*at++, stream);
			continue;
		}
		char *end;
		size_t number = strtoul(at + 4, &end, 10);
		if (!number || number > nr)
			return ps_error_format(PS_ERROR_USAGE,
					       "there is no $arg%zu: the probe has %zu argument%s",
					       number, nr, nr == 1 ? "" : "s");
		const struct operand *operand = &operands[number - 1];
		if (!*operand->fetch)
			return explain_operand(operand, number);
		fputs(operands[number - 1].fetch, stream);
		at = end;
	}
	return NULL;
}

struct ps_error *ps_usdt_arguments(const char *args, const char *wanted, unsigned int machine,
				   char **ret)
{
	struct operand operands[MAX_ARGS];
	size_t nr = read_operands(args, machine, operands), size;
	_cleanup_free_ char *text = NULL;
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return &ps_enomem;
	struct ps_error *error = NULL;
	if (wanted)
		error = write_wanted(wanted, operands, nr, stream);
	else
		write_all(operands, nr, stream);
	if (fclose(stream) && !error)
		error = &ps_enomem;
	if (!error)
		*ret = take_ptr(text);
	return error;
}

/** A search for the probe of a spec. */
struct search {
	const struct ps_spec *spec;
	const struct ps_elf *elf;
	const struct ps_dwarf *dwarf;
	bool has_dwarf;
	struct ps_probe_places *places;
	struct ps_nearest nearest;
	struct ps_error *error;
};

/** The arguments of @note: its own, or those wanted, in which names are of the function that the place lies in. */
static struct ps_error *note_arguments(const struct search *search, const struct ps_elf_note *note,
				       char **ret)
{
	_cleanup_free_ char *args = NULL;
	struct ps_error *error =
		ps_usdt_arguments(note->args, search->spec->args, search->dwarf->machine, &args);
	if (error)
		return error;
	if (!ps_arguments_need_translation(args)) {
		*ret = take_ptr(args);
		return NULL;
	}
	struct ps_scope scope;
	bool has_scope = search->has_dwarf && ps_scope_at(search->dwarf, note->address, &scope);
	return ps_arguments_translate(search->dwarf, has_scope ? &scope : NULL, args, ret);
}

static struct ps_error *add_note(struct search *search, const struct ps_elf_note *note,
				 const char *name)
{
	_cleanup_free_ char *args = NULL;
	struct ps_error *error = note_arguments(search, note, &args);
	struct ps_probe_place place = { 0 };
	if (error)
		return error;
	if (!ps_elf_code_offset(search->elf, note->address, &place.offset) ||
	    (note->semaphore &&
	     !ps_elf_file_offset(search->elf, note->semaphore, &place.semaphore)))
		return ps_error_format(PS_ERROR_BAD_DATA,
				       "the note of %s points outside of the file", name);
	place.name = strdup(name);
	place.path = strdup(search->elf->path);
	place.args = *args ? take_ptr(args) : NULL;
	if (place.name && place.path)
		return ps_probe_places_add(search->places, &place);
	free(place.name);
	free(place.path);
	free(place.args);
	return &ps_enomem;
}

static bool visit_note(const struct ps_elf_note *note, void *argument)
{
	struct search *search = argument;
	_cleanup_free_ char *name = NULL;
	if (asprintf(&name, "%s:%s", note->provider, note->name) < 0) {
		name = NULL;
		search->error = &ps_enomem;
	} else if (ps_probe_matches(search->spec->name, name)) {
		search->error = add_note(search, note, name);
	} else {
		ps_nearest_add(&search->nearest, name);
	}
	return !search->error;
}

static int compare_places(const void *left, const void *right)
{
	const struct ps_probe_place *a = left, *b = right;
	int order = strcmp(a->name, b->name);
	return order ? order : (a->offset > b->offset) - (a->offset < b->offset);
}

struct ps_error *ps_probe_find_usdt(const struct ps_spec *spec, const struct ps_dwarf *dwarf,
				    bool has_dwarf, struct ps_probe_places *places)
{
	const struct ps_elf *elf = dwarf->elf;
	struct search search = { spec, elf, dwarf, has_dwarf, .places = places };
	ps_nearest_init(&search.nearest, spec->name);
	ps_elf_walk_notes(elf, visit_note, &search);
	_cleanup_free_ char *names = ps_nearest_text(&search.nearest);
	ps_nearest_deinit(&search.nearest);
	if (search.error)
		return search.error;
	if (!places->nr_places)
		return ps_error_format(PS_ERROR_NOT_FOUND, "%s has no usdt probe %s%s", elf->path,
				       spec->name, names ? names : "");
	qsort(places->places, places->nr_places, sizeof(*places->places), compare_places);
	return NULL;
}
