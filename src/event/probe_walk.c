// SPDX-License-Identifier: MIT
/**
 * What can be named in a file, for lists.
 */
#include "probe_dwarf.h"
#include "probe_find.h"

#include <string.h>

/** Names of a walk, with doubles. */
struct names {
	const char *pattern;
	char **names;
	size_t nr;
};

static bool add_name(struct names *names, const char *name)
{
	if (!ps_probe_matches(names->pattern, name))
		return true;
	// Doubled at each power of two.
	if (!(names->nr & (names->nr - 1))) {
		size_t capacity = names->nr ? 2 * names->nr : 1;
		char **bigger = reallocarray(names->names, capacity, sizeof(*bigger));
		if (!bigger)
			return false;
		names->names = bigger;
	}
	names->names[names->nr] = strdup(name);
	return names->names[names->nr] && ++names->nr;
}

static bool name_function(const struct ps_elf_function *function, void *names)
{
	return add_name(names, function->name);
}

static bool name_note(const struct ps_elf_note *note, void *names)
{
	_cleanup_free_ char *name = NULL;
	if (asprintf(&name, "%s:%s", note->provider, note->name) < 0) {
		name = NULL;
		return false;
	}
	return add_name(names, name);
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

struct ps_error *ps_probe_walk(const char *file, bool is_usdt, const char *pattern,
			       ps_probe_visit visit, void *argument)
{
	_cleanup_free_ char *path = NULL;
	struct ps_elf elf;
	struct ps_error *error = ps_probe_file_path(file, &path);
	if (!error)
		error = ps_elf_open(path, &elf);
	if (error)
		return error;
	struct names names = { .pattern = pattern };
	if (is_usdt)
		ps_elf_walk_notes(&elf, name_note, &names);
	else if (!ps_elf_walk(&elf, name_function, &names))
		error = &ps_enomem;
	if (names.nr)
		qsort(names.names, names.nr, sizeof(*names.names), compare_names);
	for (size_t i = 0; i < names.nr; i++) {
		bool is_double = i && !strcmp(names.names[i], names.names[i - 1]);
		if (!error && !is_double)
			error = visit(names.names[i], argument);
	}
	for (size_t i = 0; i < names.nr; i++)
		free(names.names[i]);
	free(names.names);
	ps_elf_close(&elf);
	return error;
}
