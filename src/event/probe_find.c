// SPDX-License-Identifier: MIT
#include "probe_dwarf.h"
#include "probe_find.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <perfscope/demangle.h>
#include <perfscope/log.h>
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

/** Whether @text begins as mangled names do. */
static bool is_mangled(const char *text)
{
	return !strncmp(text, "_Z", 2) || !strncmp(text, "_R", 2);
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
	_cleanup_free_ char *written = is_mangled(pattern) ? NULL : ps_demangle(name);
	if (!written)
		return false;
	if (matches_one(pattern, written))
		return true;
	_cleanup_free_ char *path = ps_demangled_path(written);
	char *parameters = strchr(written, '(');
	if (parameters)
		*parameters = '\0';
	return matches_one(pattern, written) || (path && matches_one(pattern, path));
}

/** A search for functions. */
struct search {
	const struct ps_spec *spec;
	struct ps_elf elf;
	struct ps_probe_places places;
	struct ps_dwarf dwarf;
	bool has_dwarf;
	uint64_t largest;  // size of a function that the offset lies beyond
	size_t nr_inlined; // functions that were inlined somewhere, and not probed there
	bool is_inlined;   // debug information knows it as inlined
	struct ps_error *error;
};

static bool is_known_place(const struct search *search, uint64_t offset)
{
	for (size_t i = 0; i < search->places.nr_places; i++) {
		if (search->places.places[i].offset == offset)
			return true;
	}
	return false;
}

/** The arguments of the spec at @scope, NULL: nothing is known of the place. */
static struct ps_error *make_arguments(struct search *search, struct ps_scope *scope, char **ret)
{
	const struct ps_spec *spec = search->spec;
	*ret = NULL;
	if (!spec->args)
		return NULL;
	if (ps_arguments_need_translation(spec->args)) {
		if (scope)
			scope->is_return = strstr(spec->system, "ret");
		return ps_arguments_translate(&search->dwarf, scope, spec->args, ret);
	}
	*ret = strdup(spec->args);
	return *ret ? NULL : &ps_enomem;
}

static char *make_name(const struct ps_spec *spec, const char *name)
{
	char *text;
	int length = spec->offset ? asprintf(&text, "%s+0x%" PRIx64, name, spec->offset)
				  : asprintf(&text, "%s", name);
	return length < 0 ? NULL : text;
}

/** Add the place @offset of the file, called @name with the offset of the spec. */
static struct ps_error *add_place(struct search *search, const char *name, uint64_t offset,
				  struct ps_scope *scope)
{
	struct ps_probe_place place = { .offset = offset };
	struct ps_error *error = make_arguments(search, scope, &place.args);
	if (error)
		return error;
	place.path = strdup(search->elf.path);
	place.name = make_name(search->spec, name);
	if (place.path && place.name)
		return ps_probe_places_add(&search->places, &place);
	free(place.path);
	free(place.name);
	free(place.args);
	return &ps_enomem;
}

/** Add the code at @address. */
static struct ps_error *add_address(struct search *search, const char *name, uint64_t address,
				    uint64_t offset)
{
	struct ps_scope scope;
	bool has_scope = search->spec->args && search->has_dwarf &&
			 ps_scope_at(&search->dwarf, address, &scope);
	return add_place(search, name, offset, has_scope ? &scope : NULL);
}

/** Whether @name is the pattern, also as "f.isra.0", a copy of f() with parameters of its own. */
static bool matches_function(const char *pattern, const char *name)
{
	if (ps_probe_matches(pattern, name))
		return true;
	const char *const copies[] = { ".isra.", ".constprop." };
	for (size_t i = 0; i < PS_ARRAY_SIZE(copies); i++) {
		const char *dot = strstr(name, copies[i]);
		_cleanup_free_ char *plain = dot ? strndup(name, dot - name) : NULL;
		if (plain && ps_probe_matches(pattern, plain))
			return true;
	}
	return false;
}

static bool visit_function(const struct ps_elf_function *function, void *argument)
{
	struct search *search = argument;
	const struct ps_spec *spec = search->spec;
	if (!matches_function(spec->name, function->name))
		return true;
	uint64_t offset, address = function->address + spec->offset;
	if (function->size && spec->offset >= function->size) {
		search->largest = function->size;
		return true;
	}
	if (!ps_elf_code_offset(&search->elf, address, &offset) || is_known_place(search, offset))
		return true;
	search->error = add_address(search, function->name, address, offset);
	return !search->error;
}

static bool visit_inlined(struct ps_scope *scope, const char *name, void *argument)
{
	struct search *search = argument;
	uint64_t offset;
	if (!scope) {
		search->is_inlined = true;
		return true;
	}
	if (strstr(search->spec->system, "ret") || search->spec->offset) {
		search->nr_inlined++;
		return true;
	}
	if (!ps_elf_code_offset(&search->elf, scope->address, &offset) ||
	    is_known_place(search, offset))
		return true;
	search->error = add_place(search, name, offset, scope);
	return !search->error;
}

static int compare_places(const void *left, const void *right)
{
	const struct ps_probe_place *a = left, *b = right;
	int order = strcmp(a->name, b->name);
	return order ? order : (a->offset > b->offset) - (a->offset < b->offset);
}

static bool offer_name(const struct ps_elf_function *function, void *argument)
{
	struct ps_nearest *nearest = argument;
	_cleanup_free_ char *written =
		is_mangled(nearest->wanted) ? NULL : ps_demangle(function->name);
	_cleanup_free_ char *path = written ? ps_demangled_path(written) : NULL;
	ps_nearest_add(nearest, path ? path : function->name);
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
	if (search->nr_inlined)
		return ps_error_format(
			PS_ERROR_NOT_FOUND,
			"%s has no code of %s: it was inlined wherever it is called, "
			"and %s (build it with __attribute__((noinline)))",
			search->elf.path, spec->name,
			spec->offset ? "an offset would be of another function"
				     : "returns nowhere");
	if (search->is_inlined)
		return ps_error_format(
			PS_ERROR_NOT_FOUND,
			"%s has no code of %s: it was inlined, and nothing is left of it",
			search->elf.path, spec->name);
	if (ps_elf_imports(&search->elf, spec->name))
		return ps_error_format(PS_ERROR_NOT_FOUND,
				       "%s calls %s, but does not have it: name the library that "
				       "has, one of those that ldd lists",
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
	const struct ps_spec *spec = search->spec;
	if (!ps_elf_walk(&search->elf, visit_function, search))
		return search->error ? search->error : &ps_enomem;
	if (search->has_dwarf && !ps_probe_is_glob(spec->name) &&
	    !ps_dwarf_walk_inlined(&search->dwarf, spec->name, visit_inlined, search))
		return search->error;
	if (!search->places.nr_places)
		return no_function(search);
	if (search->nr_inlined)
		ps_log(PS_LOG_WARNING,
		       "%s: not seen where it was inlined, at %zu place%s: there it %s", spec->text,
		       search->nr_inlined, search->nr_inlined == 1 ? "" : "s",
		       spec->offset ? "has no offset" : "does not return");
	qsort(search->places.places, search->places.nr_places, sizeof(*search->places.places),
	      compare_places);
	return NULL;
}

bool ps_probe_parse_address(const char *name, uint64_t *ret)
{
	if (strncmp(name, "0x", 2) || !name[2])
		return false;
	char *end;
	errno = 0;
	*ret = strtoull(name, &end, 16);
	return !*end && !errno;
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
	return add_address(search, spec->name, address + spec->offset, offset);
}

static struct ps_error *find_in_file(struct search *search)
{
	const struct ps_spec *spec = search->spec;
	uint64_t address;
	search->dwarf.elf = &search->elf;
	search->has_dwarf = ps_dwarf_open(&search->elf, &search->dwarf);
	if (!strcmp(spec->system, "usdt"))
		return ps_probe_find_usdt(spec, &search->dwarf, search->has_dwarf, &search->places);
	if (ps_probe_parse_address(spec->name, &address))
		return find_address(search, address);
	return find_functions(search);
}

/** Whether what @error is about is a filter behind a FILE without quotes. */
static bool may_have_filter(const struct ps_error *error, const char *file)
{
	return strstr(file, "//") || file[strlen(file) - 1] == '/' || error->os_errno == ENOTDIR;
}

struct ps_error *ps_probe_find(const struct ps_spec *spec, struct ps_probe_places *ret)
{
	struct search search = { .spec = spec };
	struct ps_error *error = NULL;
	if (spec->args && (error = ps_arguments_vet(spec->args)))
		return ps_error_context(error, "%s", spec->text);
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
		if (error && may_have_filter(error, spec->file))
			error = ps_error_hint(error, "FILE stands in quotes where a filter or "
						     "attributes follow");
		if (!error) {
			error = ps_elf_check_machine(&search.elf);
			if (!error)
				error = find_in_file(&search);
			ps_dwarf_close(&search.dwarf);
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
