// SPDX-License-Identifier: MIT
#include <perfscope/counter.h>

#include <ctype.h>
#include <linux/perf_event.h>
#include <perfscope/nearest.h>
#include <string.h>
#include <strings.h>

#define HARDWARE(name, config)                                                                     \
	{                                                                                          \
		name, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config                                   \
	}
#define SOFTWARE(name, config)                                                                     \
	{                                                                                          \
		name, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config                                   \
	}

const struct ps_known_counter ps_counter_names[] = {
	HARDWARE("cycles", CPU_CYCLES),
	HARDWARE("instructions", INSTRUCTIONS),
	HARDWARE("cache-references", CACHE_REFERENCES),
	HARDWARE("cache-misses", CACHE_MISSES),
	HARDWARE("branches", BRANCH_INSTRUCTIONS),
	HARDWARE("branch-misses", BRANCH_MISSES),
	SOFTWARE("cpu-clock", CPU_CLOCK),
	SOFTWARE("task-clock", TASK_CLOCK),
	SOFTWARE("page-faults", PAGE_FAULTS),
	SOFTWARE("context-switches", CONTEXT_SWITCHES),
	{ NULL, 0, 0 },
};

static const struct {
	const char *alias, *name;
} aliases[] = {
	{ "cpu-cycles", "cycles" },
	{ "branch-instructions", "branches" },
	{ "faults", "page-faults" },
	{ "cs", "context-switches" },
};

static const struct ps_known_counter *find_name(const char *name)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(aliases); i++) {
		if (!strcasecmp(aliases[i].alias, name))
			name = aliases[i].name;
	}
	for (const struct ps_known_counter *known = ps_counter_names; known->name; known++) {
		if (!strcasecmp(known->name, name))
			return known;
	}
	return NULL;
}

static struct ps_error *unknown_error(const char *name)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, name);
	for (const struct ps_known_counter *known = ps_counter_names; known->name; known++)
		ps_nearest_add(&nearest, known->name);
	_cleanup_free_ char *hint = ps_nearest_text(&nearest);
	ps_nearest_deinit(&nearest);
	return ps_error_format(PS_ERROR_USAGE, "unknown counter '%s'%s", name, hint ? hint : "");
}

static bool is_taken(const struct ps_counter *counters, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++) {
		if (!strcmp(counters[i].name, name))
			return true;
	}
	return false;
}

static struct ps_error *add_name(const char *name, struct ps_counter *counters, size_t *nr)
{
	const struct ps_known_counter *known = find_name(name);
	if (!known)
		return unknown_error(name);
	if (is_taken(counters, *nr, known->name))
		return NULL;
	if (*nr == PS_MAX_COUNTERS)
		return ps_error_format(PS_ERROR_USAGE, "more than %d counters", PS_MAX_COUNTERS);
	struct ps_counter counter = { .type = known->type, .config = known->config };
	strcpy(counter.name, known->name);
	counters[(*nr)++] = counter;
	return NULL;
}

/** Cut blanks off both ends, in place. */
static char *trim(char *word)
{
	while (isspace((unsigned char)*word))
		word++;
	char *end = word + strlen(word);
	while (end > word && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return word;
}

struct ps_error *ps_counters_parse(const char *text, struct ps_counter counters[PS_MAX_COUNTERS],
				   size_t *ret_nr)
{
	_cleanup_free_ char *copy = strdup(text);
	if (!copy)
		return &ps_enomem;
	struct ps_counter found[PS_MAX_COUNTERS];
	size_t nr = 0;
	char *rest = copy;
	for (char *word; (word = strsep(&rest, ",")) != NULL;) {
		word = trim(word);
		struct ps_error *error = *word ? add_name(word, found, &nr) : NULL;
		if (error)
			return error;
	}
	if (!nr)
		return ps_error_format(PS_ERROR_USAGE, "no counters named");
	memcpy(counters, found, nr * sizeof(*found));
	*ret_nr = nr;
	return NULL;
}
