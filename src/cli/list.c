// SPDX-License-Identifier: MIT
#include <perfscope/list.h>

#include "list_form.h"

#include <errno.h>
#include <fnmatch.h>
#include <perfscope/log.h>
#include <perfscope/nearest.h>
#include <perfscope/pmu.h>
#include <perfscope/probe.h>
#include <perfscope/schema.h>
#include <perfscope/tracepoint.h>
#include <string.h>

static const struct kind {
	const char *name; // also a pattern: all of the kind
	const char *title;
} kinds[] = {
	{ "hardware", "hardware counters" },
	{ "cache", "cache counters" },
	{ "software", "software counters" },
	{ "pmu", "events of PMUs" },
	{ "libpfm4", "counters of this processor model (libpfm4)" },
	{ "custom", "events of your own, by what stands in capitals" },
	{ "tracepoint", "tracepoints" },
	{ "uprobe", "functions" },
	{ "usdt", "usdt probes" },
	{ "kprobe", "functions of the kernel" },
};

struct pattern {
	const char *text; // borrowed from argv
	bool has_matched;
	bool is_probe;	 // uprobe:NAME@FILE: of that file alone
	bool has_failed; // why is told
	struct ps_nearest nearest;
};

/** One run of the command, and the section that is being written. */
struct list {
	bool is_verbose;
	struct pattern *patterns;
	size_t nr_patterns; // 0: everything
	const struct kind *kind;
	FILE *section; // NULL: no section is open
	char *text;
	size_t size;
	const char *reason; // why the first that cannot be opened cannot, NULL: all can
	size_t nr_names;
	bool has_sections; // one is written already
	int write_errno;   // of stdout, 0: all is written
	const char *tracefs;
};

static const struct kind *find_kind(const char *name)
{
	size_t i = 0;
	while (strcmp(kinds[i].name, name))
		i++;
	return &kinds[i];
}

/** Flush stdout, and keep the first error: a later call would not know its number. */
static void flush_output(struct list *list)
{
	if ((fflush(stdout) || ferror(stdout)) && !list->write_errno)
		list->write_errno = errno ? errno : EIO;
}

/** Write the section and end it; one without names leaves no trace. */
static void end_section(struct list *list)
{
	if (!list->section)
		return;
	fclose(list->section);
	list->section = NULL;
	if (list->nr_names) {
		errno = 0;
		printf("%s%s", list->has_sections ? "\n" : "", list->kind->title);
		if (list->reason)
			printf(" (%s)", list->reason);
		putchar('\n');
		fwrite(list->text, 1, list->size, stdout);
		flush_output(list);
		list->has_sections = true;
	}
	free(list->text);
	list->text = NULL;
}

static struct ps_error *begin_section(struct list *list, const struct kind *kind)
{
	end_section(list);
	list->section = open_memstream(&list->text, &list->size);
	if (!list->section)
		return &ps_enomem;
	list->kind = kind;
	list->reason = NULL;
	list->nr_names = 0;
	return NULL;
}

/** A glob where the pattern has a wildcard, else a part of the name; case does not matter. */
static bool matches_name(const char *pattern, const char *name)
{
	if (!name)
		return false;
	if (strpbrk(pattern, "*?["))
		return !fnmatch(pattern, name, FNM_CASEFOLD);
	return strcasestr(name, pattern);
}

/** Whether @name or @alias of @kind is wanted; each pattern notes whether it was this one. */
static bool is_wanted(struct list *list, const char *kind, const char *name, const char *alias)
{
	bool is_match = !list->nr_patterns;
	for (size_t i = 0; i < list->nr_patterns; i++) {
		struct pattern *pattern = &list->patterns[i];
		if (pattern->is_probe)
			continue;
		if (!strcmp(pattern->text, kind) || matches_name(pattern->text, name) ||
		    matches_name(pattern->text, alias)) {
			pattern->has_matched = is_match = true;
			continue;
		}
		if (pattern->has_matched)
			continue;
		ps_nearest_add(&pattern->nearest, name);
		if (alias)
			ps_nearest_add(&pattern->nearest, alias);
	}
	return is_match;
}

#define NAME_WIDTH 50

/** Write a name's line; where it cannot be opened, say so, and why if that is not the section's reason. */
static void write_name(struct list *list, const char *name, const char *alias, const char *reason)
{
	int width =
		fprintf(list->section, "  %s%s%s", name, alias ? " or " : "", alias ? alias : "");
	int gap = width < NAME_WIDTH ? NAME_WIDTH - width : 2;
	if (reason && list->reason && !strcmp(reason, list->reason))
		fprintf(list->section, "%*snot here", gap, "");
	else if (reason)
		fprintf(list->section, "%*snot here: %s", gap, "", reason);
	putc('\n', list->section);
	list->nr_names++;
}

static void write_counter(struct list *list, const struct ps_counter_name *name)
{
	const char *reason = list_reason(list_try(name->attr));
	if (reason && !list->reason)
		list->reason = reason;
	write_name(list, name->name, name->alias, reason);
}

static bool visit_counter(const struct ps_counter_name *name, void *argument)
{
	struct list *list = argument;
	if (!is_wanted(list, name->kind, name->name, name->alias))
		return true;
	const struct kind *kind = find_kind(name->kind);
	if (!list->section || list->kind != kind) {
		struct ps_error *error = begin_section(list, kind);
		if (error) {
			ps_log_error(PS_LOG_ERROR, error);
			return false;
		}
	}
	write_counter(list, name);
	return !list->write_errno;
}

static struct ps_error *list_forms(struct list *list)
{
	struct ps_error *error = begin_section(list, find_kind("custom"));
	for (size_t i = 0; i < list_nr_forms && !error; i++) {
		if (is_wanted(list, "custom", list_forms_of_own[i].name, NULL))
			write_name(list, list_forms_of_own[i].name, NULL,
				   list_forms_of_own[i].reason ? list_forms_of_own[i].reason()
							       : NULL);
	}
	end_section(list);
	return error;
}

/** Write each field of a tracepoint: its name, type as declared, and type in Python. */
static struct ps_error *write_fields(struct list *list, const char *system, const char *name)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	struct ps_error *error =
		ps_tracepoint_read_format(list->tracefs, system, name, &text, &size);
	_cleanup_schema_ struct ps_schema *schema = NULL;
	if (!error)
		error = ps_schema_create_tracepoint(system, text, size, &schema);
	if (error)
		return error;
	for (size_t i = 0; i < schema->nr_fields; i++) {
		const struct ps_field *field = &schema->fields[i];
		fprintf(list->section, "      %-24s %-32s %s\n", field->name, field->type_name,
			ps_field_annotation(field));
	}
	return NULL;
}

/** Why tracepoints cannot be opened here, tried on one: each try patches the running kernel. */
static const char *tracepoint_reason(const struct list *list, const char *system, const char *name)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW,
	};
	uint64_t id;
	struct ps_error *error = ps_tracepoint_read_id(list->tracefs, system, name, &id);
	ps_error_destroy(error);
	if (error)
		return "tracefs is closed to this user";
	attr.config = id;
	return list_reason(list_try(attr));
}

static struct ps_error *visit_tracepoint(const char *system, const char *name, void *argument)
{
	struct list *list = argument;
	// Formats of ftrace's own records; they are no events of perf.
	if (!strcmp(system, "ftrace"))
		return NULL;
	_cleanup_free_ char *full_name = NULL;
	if (asprintf(&full_name, "%s:%s", system, name) < 0) {
		full_name = NULL;
		return &ps_enomem;
	}
	if (!is_wanted(list, "tracepoint", full_name, NULL)) {
		// A name without its system is a pattern too.
		for (size_t i = 0; i < list->nr_patterns; i++)
			ps_nearest_add(&list->patterns[i].nearest, name);
		return NULL;
	}
	if (!list->nr_names++)
		list->reason = tracepoint_reason(list, system, name);
	fprintf(list->section, "  %s\n", full_name);
	return list->is_verbose ? write_fields(list, system, name) : NULL;
}

static struct ps_error *list_tracepoints(struct list *list)
{
	struct ps_error *error = ps_tracefs_path(&list->tracefs);
	if (!error)
		error = begin_section(list, find_kind("tracepoint"));
	if (!error)
		error = ps_tracepoint_glob(list->tracefs, "*", "*", visit_tracepoint, list);
	end_section(list);
	return ps_error_context(error, "tracepoints");
}

/** What a walk over a file is to write: SYSTEM:NAME@FILE; without a file it is one over the kernel. */
struct file_walk {
	struct list *list;
	struct pattern *pattern;
	const char *system, *file;
};

/** Write the arguments that a probe has by name, "NAME\tTYPE\n" each. */
static void write_details(FILE *section, const char *details)
{
	while (details && *details) {
		size_t name = strcspn(details, "\t"), line = strcspn(details, "\n");
		fprintf(section, "      %-24.*s %.*s\n", (int)name, details, (int)(line - name - 1),
			details + name + 1);
		details += line + 1;
	}
}

static struct ps_error *visit_probe(const struct ps_probe_name *name, void *argument)
{
	struct file_walk *walk = argument;
	FILE *section = walk->list->section;
	walk->pattern->has_matched = true;
	walk->list->nr_names++;
	int width = fprintf(section, "  %s:%s%s%s", walk->system, name->name, walk->file ? "@" : "",
			    walk->file ? walk->file : "");
	if (name->cxx)
		fprintf(section, "%*s%s", width < NAME_WIDTH ? NAME_WIDTH - width : 2, "",
			name->cxx);
	putc('\n', section);
	write_details(section, name->details);
	return NULL;
}

/** @text without the quotes around it, as -e takes it. */
static char *unquote(char *text)
{
	size_t length = strlen(text);
	if (length < 2 || text[0] != '"' || text[length - 1] != '"')
		return text;
	text[length - 1] = '\0';
	return text + 1;
}

/** Take FILE out of @text. */
static char *take_file(char *text)
{
	char *file = strchr(text, '@');
	if (!file)
		return NULL;
	*file++ = '\0';
	return unquote(file);
}

/** List what SYSTEM:NAME[@FILE], which @text is a copy of, names. */
static struct ps_error *list_file(struct list *list, struct pattern *pattern, char *text)
{
	char *file = take_file(text), *name = strchr(text, ':');
	*name++ = '\0';
	name = unquote(name);
	const char *kind = !strcmp(text, "usdt") ? "usdt" : file ? "uprobe" : "kprobe";
	struct ps_error *error = begin_section(list, find_kind(kind));
	struct file_walk walk = { list, pattern, text, file };
	if (!error && file)
		error = ps_probe_walk(file, text, name, list->is_verbose, visit_probe, &walk);
	else if (!error)
		error = ps_probe_walk_kernel(name, visit_probe, &walk);
	end_section(list);
	return error;
}

/** List what the patterns that name files match; the number of these patterns is *@ret. */
static struct ps_error *list_probes(struct list *list, size_t *ret)
{
	for (size_t i = 0; i < list->nr_patterns; i++) {
		struct pattern *pattern = &list->patterns[i];
		if (!pattern->is_probe)
			continue;
		++*ret;
		_cleanup_free_ char *text = strdup(pattern->text);
		struct ps_error *error = text ? list_file(list, pattern, text) : &ps_enomem;
		if (error)
			pattern->has_failed = true;
		if (error)
			return ps_error_context(error, "%s", pattern->text);
	}
	return NULL;
}

/** Whether @text is SYSTEM:NAME@FILE of a probe, or kprobe:NAME. */
static bool is_probe_pattern(const char *text)
{
	static const char *const systems[] = { "uprobe:", "uretprobe:", "usdt:" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(systems); i++) {
		if (!strncmp(text, systems[i], strlen(systems[i])))
			return strchr(text, '@');
	}
	return !strncmp(text, "kprobe:", 7) || !strncmp(text, "kretprobe:", 10);
}

static struct ps_error *note_probe(const struct ps_probe_name *name, void *argument)
{
	(void)name;
	*(bool *)argument = true;
	return NULL;
}

/** The FILE in @text, a copy of a pattern that nothing matches, where it has no usdt probes at all; else NULL. */
static const char *find_file_without_usdt(char *text)
{
	bool has_any = false;
	char *file = strncmp(text, "usdt:", 5) ? NULL : take_file(text);
	if (!file)
		return NULL;
	struct ps_error *error = ps_probe_walk(file, "usdt", "*", false, note_probe, &has_any);
	bool is_known = !error;
	ps_error_destroy(error);
	return is_known && !has_any ? file : NULL;
}

static void report_pattern(struct pattern *pattern)
{
	_cleanup_free_ char *names = ps_nearest_text(&pattern->nearest);
	_cleanup_free_ char *text = strdup(pattern->text);
	const char *file = text ? find_file_without_usdt(text) : NULL;
	if (file)
		ps_log(PS_LOG_ERROR, "%s: %s has no usdt probes", pattern->text, file);
	else
		ps_log(PS_LOG_ERROR, "%s: no event matches%s", pattern->text, names ? names : "");
}

/** Tell the patterns that nothing matches; the exit status. */
static int report_unmatched(struct list *list)
{
	int status = 0;
	for (size_t i = 0; i < list->nr_patterns; i++) {
		struct pattern *pattern = &list->patterns[i];
		if (pattern->has_matched)
			continue;
		status = 1;
		if (!pattern->has_failed)
			report_pattern(pattern);
	}
	return status;
}

/** @status, or 1 where what was written is lost. A reader who has gone is no failure. */
static int finish(struct list *list, int status)
{
	flush_output(list);
	if (!list->write_errno)
		return status;
	if (list->write_errno == EPIPE)
		return 0;
	ps_log(PS_LOG_ERROR, "the list cannot be written: %s", strerror(list->write_errno));
	return 1;
}

static int run(struct list *list)
{
	size_t nr_probes = 0;
	struct ps_error *error = list_probes(list, &nr_probes);
	bool has_others = !nr_probes || nr_probes < list->nr_patterns;
	if (!error && has_others)
		error = ps_counter_walk(visit_counter, list);
	end_section(list);
	if (!error && has_others && !list->write_errno)
		error = list_forms(list);
	if (!error && has_others && !list->write_errno)
		error = list_tracepoints(list);
	// What could be listed has been.
	if (error)
		ps_log_error(PS_LOG_WARNING, error);
	ps_error_destroy(error);
	int status = list->write_errno ? 1 : report_unmatched(list);
	return finish(list, status);
}

static const char help[] =
	"Usage: perfscope list [-v] [PATTERN...]\n"
	"\n"
	"List the events that can be named in -e, by kind: hardware, cache and software counters,\n"
	"events of PMUs, counters of the processor's model, the forms of probes and breakpoints,\n"
	"tracepoints. What cannot be opened here is marked, and the title of its kind or the line\n"
	"says why.\n"
	"\n"
	"PATTERN is a glob where it has * ? or [, else a part of a name, or a kind: hardware, "
	"cache,\n"
	"software, pmu, libpfm4, custom, tracepoint. The functions and the usdt probes of a\n"
	"program or library: 'uprobe:*parse*@FILE', 'usdt:*@FILE'; of the kernel: "
	"'kprobe:*read*'.\n"
	"\n"
	"  -v, --verbose   with the fields of tracepoints: name, type as declared, type in "
	"Python;\n"
	"                  with the arguments of probes that can be had by name\n"
	"  -h, --help      this help\n";

/** Read the options. False: the command ends here with *@ret_status. */
static bool parse_options(int argc, char **argv, struct list *list, int *ret_first, int *ret_status)
{
	int i = 1;
	for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
		const char *option = argv[i];
		if (!strcmp(option, "--")) {
			i++;
			break;
		}
		if (!strcmp(option, "-h") || !strcmp(option, "--help")) {
			fputs(help, stdout);
			*ret_status = finish(list, 0);
			return false;
		}
		if (strcmp(option, "-v") && strcmp(option, "--verbose")) {
			ps_log(PS_LOG_ERROR,
			       "list: unknown option %s; perfscope list --help lists them", option);
			*ret_status = 2;
			return false;
		}
		list->is_verbose = true;
	}
	*ret_first = i;
	return true;
}

int ps_cli_list(int argc, char **argv)
{
	struct list list = {};
	int first, status;
	if (!parse_options(argc, argv, &list, &first, &status))
		return status;
	list.nr_patterns = argc - first;
	_cleanup_free_ struct pattern *patterns = calloc(list.nr_patterns + 1, sizeof(*patterns));
	if (!patterns) {
		ps_log_error(PS_LOG_ERROR, &ps_enomem);
		return 1;
	}
	for (size_t i = 0; i < list.nr_patterns; i++) {
		patterns[i].text = argv[first + i];
		patterns[i].is_probe = is_probe_pattern(patterns[i].text);
		ps_nearest_init(&patterns[i].nearest, patterns[i].text);
	}
	list.patterns = patterns;
	status = run(&list);
	for (size_t i = 0; i < list.nr_patterns; i++)
		ps_nearest_deinit(&patterns[i].nearest);
	return status;
}
