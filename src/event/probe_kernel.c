// SPDX-License-Identifier: MIT
#include "probe_find.h"

#include "pmu_sysfs.h"

#include <inttypes.h>
#include <perfscope/tracepoint.h>
#include <string.h>

struct ps_error *ps_probe_check_kernel(void)
{
	const char *tracefs;
	_cleanup_free_ char *path = NULL;
	if (ps_pmu_exists("kprobe"))
		return NULL;
	_cleanup_error_ struct ps_error *error = ps_tracefs_path(&tracefs);
	if (!error && asprintf(&path, "%s/kprobe_events", tracefs) < 0) {
		path = NULL;
		return &ps_enomem;
	}
	if (path && !access(path, F_OK))
		return NULL;
	return ps_error_format(PS_ERROR_UNSUPPORTED,
			       "this kernel has no kprobes (CONFIG_KPROBE_EVENTS is off)");
}

static struct ps_error *add_symbol(const struct ps_spec *spec, const char *symbol,
				   struct ps_probe_places *places)
{
	struct ps_probe_place place = { .offset = spec->offset };
	uint64_t address;
	bool is_address = ps_probe_parse_address(symbol, &address);
	if (is_address)
		place.offset += address;
	int length = spec->offset ? asprintf(&place.name, "%s+0x%" PRIx64, symbol, spec->offset)
				  : asprintf(&place.name, "%s", symbol);
	if (length < 0)
		place.name = NULL;
	place.symbol = is_address ? NULL : strdup(symbol);
	place.args = spec->args ? strdup(spec->args) : NULL;
	if (place.name && (is_address || place.symbol) && (!spec->args || place.args))
		return ps_probe_places_add(places, &place);
	free(place.name);
	free(place.symbol);
	free(place.args);
	return &ps_enomem;
}

char *ps_kallsyms_function(char *line)
{
	char *save, *type, *name;
	if (!strtok_r(line, " \n", &save) || !(type = strtok_r(NULL, " \n", &save)) ||
	    !(name = strtok_r(NULL, " \t\n", &save)))
		return NULL;
	return strchr("tTwW", *type) ? name : NULL;
}

static bool has_place(const struct ps_probe_places *places, const char *symbol)
{
	for (size_t i = 0; i < places->nr_places; i++) {
		if (!strcmp(places->places[i].symbol, symbol))
			return true;
	}
	return false;
}

static int compare_symbols(const void *left, const void *right)
{
	return strcmp(((const struct ps_probe_place *)left)->name,
		      ((const struct ps_probe_place *)right)->name);
}

/** The next function that kallsyms names; NULL: there is none. @line is what it lies in. */
static const char *next_function(FILE *file, char *line, int size)
{
	const char *name = NULL;
	while (!name && fgets(line, size, file))
		name = ps_kallsyms_function(line);
	return name;
}

static struct ps_error *add_matches(const struct ps_spec *spec, FILE *file,
				    struct ps_probe_places *places)
{
	char line[1024];
	const char *name;
	while ((name = next_function(file, line, sizeof(line)))) {
		if (!ps_probe_matches(spec->name, name) || has_place(places, name))
			continue;
		struct ps_error *error = add_symbol(spec, name, places);
		// Others of that name would be the same probe.
		if (error || !ps_probe_is_glob(spec->name))
			return error;
	}
	return NULL;
}

/** How near each of so many names is takes a tenth of a second: it is asked only when there is nothing else to tell. */
static struct ps_error *unknown_function(const struct ps_spec *spec, FILE *file)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, spec->name);
	char line[1024];
	const char *name;
	rewind(file);
	while ((name = next_function(file, line, sizeof(line))))
		ps_nearest_add(&nearest, name);
	_cleanup_free_ char *names = ps_nearest_text(&nearest);
	ps_nearest_deinit(&nearest);
	return ps_error_format(PS_ERROR_NOT_FOUND, "the kernel has no function %s%s", spec->name,
			       names ? names : "");
}

struct ps_error *ps_probe_find_kernel(const struct ps_spec *spec, struct ps_probe_places *places)
{
	struct ps_error *error = ps_probe_check_kernel();
	if (error)
		return error;
	_cleanup_fclose_ FILE *file = fopen("/proc/kallsyms", "re");
	// Without the list the kernel itself tells whether it knows the name.
	uint64_t address;
	if (ps_probe_parse_address(spec->name, &address) ||
	    (!file && !ps_probe_is_glob(spec->name)))
		return add_symbol(spec, spec->name, places);
	if (!file)
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "* and ? need /proc/kallsyms, which is not here");
	error = add_matches(spec, file, places);
	if (error)
		return error;
	if (!places->nr_places)
		return unknown_function(spec, file);
	qsort(places->places, places->nr_places, sizeof(*places->places), compare_symbols);
	return NULL;
}
