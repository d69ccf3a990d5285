// SPDX-License-Identifier: MIT
#include "pmu_sysfs.h"

#include <ctype.h>
#include <errno.h>
#include <perfscope/nearest.h>
#include <perfscope/text.h>
#include <string.h>

#define MAX_TEXT 4096

const char *ps_pmu_folder(void)
{
	const char *folder = secure_getenv("PERFSCOPE_PMUS");
	return folder && *folder ? folder : "/sys/bus/event_source/devices";
}

/**
 * Open @folder/pmu/part/name; NULL where there is none. Names that lead out of the folder are
 * none.
 */
static FILE *open_part(const char *pmu, const char *part, const char *name)
{
	if (pmu[0] == '.' || name[0] == '.' || strchr(pmu, '/') || strchr(name, '/'))
		return NULL;
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/%s/%s%s%s", ps_pmu_folder(), pmu, part, *part ? "/" : "", name) <
	    0) {
		path = NULL;
		return NULL;
	}
	return fopen(path, "re");
}

/** Read the first line of a part; false where there is none. */
static bool read_part(const char *pmu, const char *part, const char *name, char *line, size_t size)
{
	_cleanup_fclose_ FILE *file = open_part(pmu, part, name);
	if (!file || !fgets(line, size, file))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

bool ps_pmu_exists(const char *name)
{
	char line[32];
	return read_part(name, "", "type", line, sizeof(line));
}

/** Called for each name in a folder, sorted; false ends the walk. */
typedef bool (*visit_name)(const char *name, void *argument);

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static bool walk_folder(const char *path, visit_name visit, void *argument)
{
	struct dirent **entries;
	int nr = scandir(path, &entries, is_visible, alphasort);
	if (nr < 0)
		return true;
	bool goes_on = true;
	for (int i = 0; i < nr; i++) {
		goes_on = goes_on && visit(entries[i]->d_name, argument);
		free(entries[i]);
	}
	free(entries);
	return goes_on;
}

static bool offer_name(const char *name, void *nearest)
{
	ps_nearest_add(nearest, name);
	return true;
}

/** PS_ERROR_NOT_FOUND: the formatted text, and the names in the @nr @folders nearest to @wanted. */
__attribute__((format(printf, 4, 5))) static struct ps_error *
not_found(const char *wanted, const char *const *folders, size_t nr, const char *format, ...)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, wanted);
	for (size_t i = 0; i < nr; i++)
		walk_folder(folders[i], offer_name, &nearest);
	_cleanup_free_ char *names = ps_nearest_text(&nearest);
	ps_nearest_deinit(&nearest);
	va_list arguments;
	va_start(arguments, format);
	_cleanup_free_ char *message = ps_text_format(format, arguments);
	va_end(arguments);
	if (!message)
		return &ps_enomem;
	return ps_error_format(PS_ERROR_NOT_FOUND, "%s%s", message, names ? names : "");
}

struct ps_error *ps_pmu_unknown(const char *name)
{
	const char *folder = ps_pmu_folder();
	return not_found(name, &folder, 1, "%s: no PMU or counter is called so here", name);
}

static struct ps_error *unknown_term(const char *pmu, const char *term)
{
	_cleanup_free_ char *format = NULL, *events = NULL;
	if (asprintf(&format, "%s/%s/format", ps_pmu_folder(), pmu) < 0) {
		format = NULL;
		return &ps_enomem;
	}
	if (asprintf(&events, "%s/%s/events", ps_pmu_folder(), pmu) < 0) {
		events = NULL;
		return &ps_enomem;
	}
	const char *const folders[] = { format, events };
	return not_found(term, folders, 2,
			 "%s: the PMU %s has no such term or event, and no attribute is called so",
			 term, pmu);
}

/** The word of @attr that @text, "config1:0-7", begins with; *@text moves behind the colon. */
static __u64 *find_word(const char **text, struct perf_event_attr *attr)
{
	const struct {
		const char *name;
		__u64 *word;
	} words[] = {
		{ "config", &attr->config },
		{ "config1", &attr->config1 },
		{ "config2", &attr->config2 },
	};
	size_t length = strcspn(*text, ":");
	for (size_t i = 0; i < PS_ARRAY_SIZE(words); i++) {
		if (strlen(words[i].name) != length || strncmp(words[i].name, *text, length))
			continue;
		*text += length + ((*text)[length] == ':');
		return words[i].word;
	}
	return NULL;
}

/** Read "FIRST[-LAST]" and the comma behind it; false where @text is not of that form. */
static bool take_range(const char **text, unsigned int *first, unsigned int *last)
{
	int length = 0;
	if (sscanf(*text, "%u%n", first, &length) != 1)
		return false;
	*text += length;
	*last = *first;
	if (**text == '-') {
		if (sscanf(*text, "-%u%n", last, &length) != 1)
			return false;
		*text += length;
	}
	if (**text == ',')
		++*text;
	else if (**text)
		return false;
	return *first <= *last && *last < 64;
}

/** Lay the bits of @value, lowest first, on the ranges of @format; false: not a format. */
static bool lay_bits(const char *format, uint64_t value, struct perf_event_attr *attr,
		     unsigned int *ret_nr_bits)
{
	__u64 *word = find_word(&format, attr);
	if (!word)
		return false;
	unsigned int nr_bits = 0;
	while (*format) {
		unsigned int first, last;
		if (!take_range(&format, &first, &last))
			return false;
		for (unsigned int bit = first; bit <= last; bit++, nr_bits++) {
			__u64 is_set = nr_bits < 64 ? value >> nr_bits & 1 : 0;
			*word = (*word & ~(UINT64_C(1) << bit)) | is_set << bit;
		}
	}
	*ret_nr_bits = nr_bits;
	return true;
}

static struct ps_error *set_term(const char *pmu, const char *name, const char *value,
				 const char *format, struct perf_event_attr *attr)
{
	uint64_t number = 1;
	if (value) {
		char *end;
		errno = 0;
		number = strtoull(value, &end, 0);
		if (errno || end == value || *end || *value == '-')
			return ps_error_format(PS_ERROR_USAGE, "%s=%s: the value is to be a number",
					       name, value);
	}
	unsigned int nr_bits;
	if (!lay_bits(format, number, attr, &nr_bits))
		return ps_error_format(PS_ERROR_BAD_DATA,
				       "PMU %s: the format of %s, %s, cannot be read", pmu, name,
				       format);
	if (nr_bits < 64 && number >> nr_bits)
		return ps_error_format(PS_ERROR_USAGE, "%s=%s: %s has only %u bits", name,
				       value ? value : "1", name, nr_bits);
	return NULL;
}

static struct ps_error *apply_term(const char *pmu, const char *name, const char *value,
				   bool is_inner, struct perf_event_attr *attr);

/** Apply the terms "event=0x3c,umask=1" of a named event. */
static struct ps_error *apply_event(const char *pmu, const char *event, char *terms,
				    struct perf_event_attr *attr)
{
	char *rest = terms;
	for (char *term; (term = strsep(&rest, ",")) != NULL;) {
		char *value = strchr(term, '=');
		if (value)
			*value++ = '\0';
		if (value && *value == '?')
			return ps_error_format(PS_ERROR_USAGE,
					       "%s/%s/ needs a value for %s: give %s's terms "
					       "yourself",
					       pmu, event, term, event);
		struct ps_error *error = apply_term(pmu, term, value, true, attr);
		if (error)
			return ps_error_context(error, "PMU %s, event %s", pmu, event);
	}
	return NULL;
}

/** Apply one term; @is_inner: of a named event, which cannot name another. */
static struct ps_error *apply_term(const char *pmu, const char *name, const char *value,
				   bool is_inner, struct perf_event_attr *attr)
{
	char text[MAX_TEXT];
	if (read_part(pmu, "format", name, text, sizeof(text)))
		return set_term(pmu, name, value, text, attr);
	if (!value && !is_inner && read_part(pmu, "events", name, text, sizeof(text)))
		return apply_event(pmu, name, text, attr);
	const char *whole = name;
	if (value && find_word(&whole, attr) && !*whole) {
		snprintf(text, sizeof(text), "%s:0-63", name);
		return set_term(pmu, name, value, text, attr);
	}
	return unknown_term(pmu, name);
}

struct ps_error *ps_pmu_encode(const struct ps_spec *spec, struct perf_event_attr *attr)
{
	char line[32];
	if (!read_part(spec->system, "", "type", line, sizeof(line)))
		return ps_pmu_unknown(spec->system);
	unsigned int type;
	if (sscanf(line, "%u", &type) != 1)
		return ps_error_format(PS_ERROR_BAD_DATA, "PMU %s: its type is not a number",
				       spec->system);
	attr->type = type;
	for (size_t i = 0; i < spec->nr_terms; i++) {
		const struct ps_term *term = &spec->terms[i];
		struct ps_error *error =
			apply_term(spec->system, term->name, term->value, false, attr);
		if (error)
			return error;
	}
	return NULL;
}

struct walk {
	ps_counter_visit visit;
	void *argument;
	const char *pmu;
};

static bool visit_event(const char *event, void *argument)
{
	// events/NAME.unit and the like describe an event, they are none.
	if (strchr(event, '.'))
		return true;
	struct walk *walk = argument;
	_cleanup_free_ char *text = NULL;
	if (asprintf(&text, "%s/%s/", walk->pmu, event) < 0) {
		text = NULL;
		return true;
	}
	struct ps_term term = { .name = (char *)event };
	struct ps_spec spec = {
		.kind = PS_SPEC_PMU, .system = (char *)walk->pmu, .terms = &term, .nr_terms = 1
	};
	struct ps_counter_name name = { .kind = "pmu",
					.name = text,
					.attr.size = sizeof(name.attr) };
	_cleanup_error_ struct ps_error *error = ps_pmu_encode(&spec, &name.attr);
	// An event with a parameter (core=?) is named all the same.
	return walk->visit(&name, walk->argument);
}

static bool visit_pmu(const char *pmu, void *argument)
{
	struct walk *walk = argument;
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/%s/events", ps_pmu_folder(), pmu) < 0) {
		path = NULL;
		return true;
	}
	walk->pmu = pmu;
	return walk_folder(path, visit_event, walk);
}

bool ps_pmu_walk(ps_counter_visit visit, void *argument)
{
	struct walk walk = { .visit = visit, .argument = argument };
	return walk_folder(ps_pmu_folder(), visit_pmu, &walk);
}
