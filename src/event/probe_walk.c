// SPDX-License-Identifier: MIT
/**
 * What can be named in a file, for lists.
 */
#include "probe_dwarf.h"
#include "probe_find.h"

#include <perfscope/demangle.h>
#include <string.h>

/** A name of a walk, and where it is. */
struct found {
	char *name;
	uint64_t address;
	const char *args; // of usdt's note, borrowed from the file
};

/** Names of a walk, with doubles. */
struct names {
	const char *pattern;
	bool is_return; // what can be named is what is there when the function has returned
	struct found *names;
	size_t nr;
};

static bool add_name(struct names *names, const char *name, uint64_t address, const char *args)
{
	if (!ps_probe_matches(names->pattern, name))
		return true;
	// Doubled at each power of two.
	if (!(names->nr & (names->nr - 1))) {
		size_t capacity = names->nr ? 2 * names->nr : 1;
		struct found *bigger = reallocarray(names->names, capacity, sizeof(*bigger));
		if (!bigger)
			return false;
		names->names = bigger;
	}
	names->names[names->nr] = (struct found){ strdup(name), address, args };
	return names->names[names->nr].name && ++names->nr;
}

static bool name_function(const struct ps_elf_function *function, void *names)
{
	return add_name(names, function->name, function->address, NULL);
}

static bool name_note(const struct ps_elf_note *note, void *names)
{
	_cleanup_free_ char *name = NULL;
	if (asprintf(&name, "%s:%s", note->provider, note->name) < 0) {
		name = NULL;
		return false;
	}
	return add_name(names, name, note->address, note->args);
}

static int compare_names(const void *left, const void *right)
{
	const struct found *a = left, *b = right;
	int order = strcmp(a->name, b->name);
	return order ? order : (a->address > b->address) - (a->address < b->address);
}

/** Write the arguments of a note, "arg1=%di:s32 ...", as lines. */
static void list_operands(const struct ps_dwarf *dwarf, const char *args, FILE *stream)
{
	_cleanup_free_ char *text = NULL;
	struct ps_error *error = ps_usdt_arguments(args, NULL, dwarf->machine, &text);
	ps_error_destroy(error);
	char *save, *word = text ? strtok_r(text, " ", &save) : NULL;
	for (; word; word = strtok_r(NULL, " ", &save)) {
		const char *type = strrchr(word, ':');
		fprintf(stream, "%.*s\t%s\n", (int)strcspn(word, "="), word, type ? type + 1 : "");
	}
}

static char *make_details(const struct ps_dwarf *dwarf, const struct found *found, bool is_return)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return NULL;
	struct ps_scope scope;
	if (found->args)
		list_operands(dwarf, found->args, stream);
	if (dwarf->dwarf && ps_scope_at(dwarf, found->address, &scope)) {
		scope.is_return = is_return;
		ps_arguments_list(&scope, stream);
	}
	if (fclose(stream)) {
		free(text);
		return NULL;
	}
	return text;
}

/** Visit the sorted names; @dwarf is NULL where no details are asked for. */
static struct ps_error *visit_names(const struct names *names, const struct ps_dwarf *dwarf,
				    ps_probe_visit visit, void *argument)
{
	struct ps_error *error = NULL;
	for (size_t i = 0; i < names->nr && !error; i++) {
		const struct found *found = &names->names[i];
		if (i && !strcmp(found->name, found[-1].name))
			continue;
		_cleanup_free_ char *cxx = ps_demangle(found->name);
		_cleanup_free_ char *details =
			dwarf ? make_details(dwarf, found, names->is_return) : NULL;
		error = visit(&(struct ps_probe_name){ found->name, cxx, details }, argument);
	}
	return error;
}

static void names_deinit(struct names *names)
{
	for (size_t i = 0; i < names->nr; i++)
		free(names->names[i].name);
	free(names->names);
}

struct ps_error *ps_probe_walk(const char *file, const char *system, const char *pattern,
			       bool has_details, ps_probe_visit visit, void *argument)
{
	_cleanup_free_ char *path = NULL;
	struct ps_elf elf;
	struct ps_dwarf dwarf = { 0 };
	struct ps_error *error = ps_probe_file_path(file, &path);
	if (!error)
		error = ps_elf_open(path, &elf);
	if (error)
		return error;
	struct names names = { .pattern = pattern, .is_return = !strcmp(system, "uretprobe") };
	if (!strcmp(system, "usdt"))
		ps_elf_walk_notes(&elf, name_note, &names);
	else if (!ps_elf_walk(&elf, name_function, &names))
		error = &ps_enomem;
	if (names.nr)
		qsort(names.names, names.nr, sizeof(*names.names), compare_names);
	if (has_details)
		ps_dwarf_open(&elf, &dwarf);
	if (!error)
		error = visit_names(&names, has_details ? &dwarf : NULL, visit, argument);
	names_deinit(&names);
	ps_dwarf_close(&dwarf);
	ps_elf_close(&elf);
	return error;
}

/** Add what the kernel can trace: the first word of each line. */
static bool read_functions(FILE *file, struct names *names)
{
	char line[1024];
	while (fgets(line, sizeof(line), file)) {
		const char *name = ps_kallsyms_function(line);
		if (name && !add_name(names, name, 0, NULL))
			return false;
	}
	return true;
}

struct ps_error *ps_probe_walk_kernel(const char *pattern, ps_probe_visit visit, void *argument)
{
	struct ps_error *error = ps_probe_check_kernel();
	if (error)
		return error;
	_cleanup_fclose_ FILE *file = fopen("/proc/kallsyms", "re");
	if (!file)
		return ps_error_format(PS_ERROR_UNSUPPORTED, "/proc/kallsyms is not here");
	struct names names = { .pattern = pattern };
	if (!read_functions(file, &names))
		error = &ps_enomem;
	if (names.nr)
		qsort(names.names, names.nr, sizeof(*names.names), compare_names);
	if (!error)
		error = visit_names(&names, NULL, visit, argument);
	names_deinit(&names);
	return error;
}
