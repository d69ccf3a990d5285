// SPDX-License-Identifier: MIT
#include "probe_find.h"

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

void ps_probe_places_deinit(struct ps_probe_places *places)
{
	for (size_t i = 0; i < places->nr_places; i++) {
		free(places->places[i].name);
		free(places->places[i].path);
		free(places->places[i].symbol);
		free(places->places[i].args);
	}
	free(places->places);
	*places = (struct ps_probe_places){ 0 };
}

struct ps_error *ps_probe_places_add(struct ps_probe_places *places,
				     const struct ps_probe_place *place)
{
	struct ps_probe_place *bigger =
		reallocarray(places->places, places->nr_places + 1, sizeof(*bigger));
	if (!bigger) {
		free(place->name);
		free(place->path);
		free(place->symbol);
		free(place->args);
		return &ps_enomem;
	}
	places->places = bigger;
	bigger[places->nr_places++] = *place;
	return NULL;
}

bool ps_probe_is_glob(const char *pattern)
{
	return strpbrk(pattern, "*?");
}

typedef char *(*demangle_function)(const char *name, char *buffer, size_t *size, int *status);

/**
 * What C++ calls @name, which the caller frees; NULL: it is no name of C++, or its library is not here. Loaded when
 * first needed: most programs have no C++.
 */
static char *demangle(const char *name)
{
	static demangle_function function;
	static bool is_tried;
	if (strncmp(name, "_Z", 2))
		return NULL;
	if (!is_tried) {
		void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
		*(void **)&function = library ? dlsym(library, "__cxa_demangle") : NULL;
		is_tried = true;
	}
	return function ? function(name, NULL, NULL, NULL) : NULL;
}

static bool matches_one(const char *pattern, const char *name)
{
	// "operator*" and "f(char*)" are names too.
	return !strcmp(pattern, name) ||
	       (ps_probe_is_glob(pattern) && !fnmatch(pattern, name, FNM_NOESCAPE));
}

bool ps_probe_matches(const char *pattern, const char *name)
{
	if (matches_one(pattern, name))
		return true;
	_cleanup_free_ char *cxx = strncmp(pattern, "_Z", 2) ? demangle(name) : NULL;
	if (!cxx)
		return false;
	if (matches_one(pattern, cxx))
		return true;
	char *parameters = strchr(cxx, '(');
	if (!parameters || parameters == cxx)
		return false;
	*parameters = '\0';
	return matches_one(pattern, cxx);
}

/** A search for functions. */
struct search {
	const struct ps_spec *spec;
	struct ps_elf elf;
	struct ps_probe_places places;
	uint64_t largest; // size of a function that the offset lies beyond
};

static bool is_known_place(const struct search *search, uint64_t offset)
{
	for (size_t i = 0; i < search->places.nr_places; i++) {
		if (search->places.places[i].offset == offset)
			return true;
	}
	return false;
}

/** Add the place @offset of the file, called @name with the offset of the spec; false: no memory. */
static bool add_place(struct search *search, const char *name, uint64_t offset)
{
	const struct ps_spec *spec = search->spec;
	struct ps_probe_place place = { .offset = offset, .path = strdup(search->elf.path) };
	int length = spec->offset ? asprintf(&place.name, "%s+0x%" PRIx64, name, spec->offset)
				  : asprintf(&place.name, "%s", name);
	if (length < 0)
		place.name = NULL;
	place.args = spec->args ? strdup(spec->args) : NULL;
	if (!place.path || !place.name || (spec->args && !place.args)) {
		free(place.path);
		free(place.name);
		free(place.args);
		return false;
	}
	return !ps_probe_places_add(&search->places, &place);
}

static bool visit_function(const struct ps_elf_function *function, void *argument)
{
	struct search *search = argument;
	const struct ps_spec *spec = search->spec;
	if (!ps_probe_matches(spec->name, function->name))
		return true;
	uint64_t offset;
	if (function->size && spec->offset >= function->size) {
		search->largest = function->size;
		return true;
	}
	if (!ps_elf_code_offset(&search->elf, function->address + spec->offset, &offset) ||
	    is_known_place(search, offset))
		return true;
	return add_place(search, function->name, offset);
}

static int compare_places(const void *left, const void *right)
{
	const struct ps_probe_place *a = left, *b = right;
	int order = strcmp(a->name, b->name);
	return order ? order : (a->offset > b->offset) - (a->offset < b->offset);
}

static bool offer_name(const struct ps_elf_function *function, void *nearest)
{
	ps_nearest_add(nearest, function->name);
	return true;
}

/** "; did you mean ...": a walk of its own, as edit distances to all names of a large file take long. NULL: no memory. */
static char *nearest_functions(const struct search *search)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, search->spec->name);
	ps_elf_walk(&search->elf, offer_name, &nearest);
	char *names = ps_nearest_text(&nearest);
	ps_nearest_deinit(&nearest);
	return names;
}

static struct ps_error *no_function(const struct search *search)
{
	const struct ps_spec *spec = search->spec;
	if (search->largest)
		return ps_error_format(PS_ERROR_USAGE,
				       "%s: +%" PRIu64 " lies beyond its end: it has %" PRIu64
				       " bytes",
				       spec->name, spec->offset, search->largest);
	if (ps_probe_is_inlined(&search->elf, spec->name))
		return ps_error_format(PS_ERROR_NOT_FOUND,
				       "%s has no code of %s: it was inlined wherever it is called "
				       "(build it with __attribute__((noinline)))",
				       search->elf.path, spec->name);
	_cleanup_free_ char *names = nearest_functions(search);
	const char *why = ps_elf_is_stripped(&search->elf)
				  ? " (it is stripped: only exported functions have names)"
				  : "";
	return ps_error_format(PS_ERROR_NOT_FOUND, "%s has no function %s%s%s", search->elf.path,
			       spec->name, why, names ? names : "");
}

static struct ps_error *find_functions(struct search *search)
{
	if (!ps_elf_walk(&search->elf, visit_function, search))
		return &ps_enomem;
	if (!search->places.nr_places)
		return no_function(search);
	qsort(search->places.places, search->places.nr_places, sizeof(*search->places.places),
	      compare_places);
	return NULL;
}

/** The address that FUNC is; false: it is a name. */
static bool parse_address(const char *name, uint64_t *ret)
{
	if (strncmp(name, "0x", 2) || !name[2])
		return false;
	char *end;
	*ret = strtoull(name, &end, 16);
	return !*end;
}

static struct ps_error *find_address(struct search *search, uint64_t address)
{
	const struct ps_spec *spec = search->spec;
	uint64_t offset;
	if (!ps_elf_code_offset(&search->elf, address + spec->offset, &offset))
		return ps_error_format(PS_ERROR_NOT_FOUND,
				       "%s has no code at 0x%" PRIx64
				       " (the address is that of nm and objdump)",
				       search->elf.path, address + spec->offset);
	return add_place(search, spec->name, offset) ? NULL : &ps_enomem;
}

static struct ps_error *find_in_file(struct search *search)
{
	const struct ps_spec *spec = search->spec;
	uint64_t address;
	if (!strcmp(spec->system, "usdt"))
		return ps_probe_find_usdt(spec, &search->elf, &search->places);
	if (parse_address(spec->name, &address))
		return find_address(search, address);
	return find_functions(search);
}

struct ps_error *ps_probe_find(const struct ps_spec *spec, struct ps_probe_places *ret)
{
	struct search search = { .spec = spec };
	struct ps_error *error;
	if (spec->offset && strstr(spec->system, "ret")) {
		// The kernel would take what stands on top of the stack for the return address.
		error = ps_error_format(PS_ERROR_USAGE,
					"a return is of a whole function: leave out the offset");
	} else if (!spec->file) {
		error = ps_probe_find_kernel(spec, &search.places);
	} else {
		_cleanup_free_ char *path = NULL;
		error = ps_probe_file_path(spec->file, &path);
		if (!error)
			error = ps_elf_open(path, &search.elf);
		if (error && strstr(spec->file, "//"))
			error = ps_error_hint(error, "FILE stands in quotes where a filter or "
						     "attributes follow");
		if (!error) {
			error = find_in_file(&search);
			ps_elf_close(&search.elf);
		}
	}
	if (error) {
		ps_probe_places_deinit(&search.places);
		return ps_error_context(error, "%s", spec->text);
	}
	*ret = search.places;
	return NULL;
}

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
