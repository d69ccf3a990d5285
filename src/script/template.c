// SPDX-License-Identifier: MIT
/**
 * A script to start from: valid for any event, and it runs as it is.
 */
#include "location.h"

#include <perfscope/sample_field.h>
#include <perfscope/script.h>
#include <string.h>

/** Names that are no field of the event by dot: PerfEvent's own come first. Without those that start with `_`. */
static const char *const methods[] = { "symbolic", "print", "get",    "keys",
				       "values",   "items", "to_dict" };

static bool is_shadowed(const char *name)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(methods); i++) {
		if (!strcmp(name, methods[i]))
			return true;
	}
	// Common fields, Python's own names, and what a class body would mangle.
	return *name == '_';
}

/** Put @text inside a docstring or a comment: nothing of it may end either. */
static void put_text(FILE *file, const char *text)
{
	for (; *text; text++) {
		unsigned char byte = *text;
		if (byte == '\\' || byte == '"')
			putc('\\', file);
		putc(byte < 0x20 || byte == 0x7f ? ' ' : byte, file);
	}
}

static bool is_safe_in_shell(const char *text)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "_-+=:,./@%";
	return *text && !text[strspn(text, safe)];
}

/** @text as one word of a shell, on one line. */
static void put_word(FILE *file, const char *text)
{
	if (is_safe_in_shell(text)) {
		fputs(text, file);
		return;
	}
	putc('\'', file);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", file);
		else
			putc(*text == '\n' || *text == '\r' || *text == '\f' ? ' ' : *text, file);
	}
	putc('\'', file);
}

/** The -e of @sources: each text as it was typed, braces around groups. The caller frees it. */
static char *event_text(const struct ps_source_list *sources)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return NULL;
	unsigned int group = 0;
	const struct ps_spec *last = NULL;
	for (size_t i = 0; i < ps_sources_nr_shown(sources); i++) {
		const struct ps_source *source = sources->sources[i];
		// The events of a glob stand side by side.
		if (source->spec && source->spec == last)
			continue;
		last = source->spec;
		// The group of regions is not one that was typed.
		unsigned int own = source->group == sources->region_group ? 0 : source->group;
		if (group && own != group)
			putc('}', stream);
		fprintf(stream, "%s%s", i ? "," : "", own && own != group ? "{" : "");
		group = own;
		fputs(source->spec ? source->spec->text : source->name, stream);
	}
	if (group)
		putc('}', stream);
	if (fclose(stream)) {
		free(text);
		return NULL;
	}
	return text;
}

static struct ps_error *write_head(const struct ps_source_list *sources, const char *options,
				   FILE *file)
{
	_cleanup_free_ char *events = event_text(sources);
	if (!events)
		return &ps_enomem;
	fputs("# perfscope python", file);
	if (*events) {
		fputs(" -e ", file);
		put_word(file, events);
	}
	for (size_t i = 0; sources->regions && i < sources->regions->nr_regions; i++) {
		fputs(" -r ", file);
		put_word(file, sources->regions->regions[i].text);
	}
	fprintf(file, "%s this_file.py\n", options);
	fputs("\"\"\"A script for perfscope: each function is called as its docstring says; each "
	      "is "
	      "optional.\"\"\"\n"
	      "import perfscope\n"
	      "\n"
	      "TYPE_CHECKING = False  # editors and type checkers take it for True\n",
	      file);
	return NULL;
}

/** What is to be written for @source: one handler serves all sources that share its name. */
static bool is_wanted(const struct ps_source_list *sources, size_t index)
{
	const struct ps_source *source = sources->sources[index];
	if (!source->is_sampling)
		return false;
	for (size_t i = 0; i < index; i++) {
		if (sources->sources[i]->is_sampling &&
		    !strcmp(sources->sources[i]->handler, source->handler))
			return false;
	}
	return true;
}

static void write_stub_field(const struct ps_field *field, FILE *file)
{
	const char *type = ps_field_annotation(field);
	_cleanup_free_ char *name = ps_identifier_from(field->name);
	// By dot a keyword gets its underscore, another name is as it is or is not.
	bool is_by_dot = name && !is_shadowed(field->name) &&
			 !strncmp(name, field->name, strlen(field->name));
	if (is_by_dot) {
		fprintf(file, "        %s: %s\n", name, type);
		return;
	}
	fputs("        # event[\"", file);
	put_text(file, field->name);
	fprintf(file, "\"]: %s\n", type);
}

/** Whether samples of @source show @field by name. */
static bool has_part(const struct ps_source *source, const struct ps_sample_field *field)
{
	return ps_sample_has_field(source->attr.sample_type, source->schema->nr_fields, field);
}

static void write_stub(const struct ps_source *source, const char *handler, FILE *file)
{
	fprintf(file, "\n    class %s_event(perfscope.PerfEvent):\n", handler);
	fputs("        \"\"\"", file);
	put_text(file, source->name);
	fputs(".\"\"\"\n", file);
	for (size_t i = 0; i < source->schema->nr_fields; i++)
		write_stub_field(&source->schema->fields[i], file);
	for (size_t i = 0; i < ps_nr_sample_fields; i++) {
		const struct ps_sample_field *field = &ps_sample_fields[i];
		if (has_part(source, field))
			fprintf(file, "        %s: %s\n", field->name, field->annotation);
	}
}

/** What is made of the kernel's addresses is what a script wants. */
static const char stack_field[] = "_callchain";

static int longest_name(const struct ps_source *source)
{
	size_t longest = 0;
	for (size_t i = 0; i < source->schema->nr_fields; i++) {
		size_t length = strlen(source->schema->fields[i].name);
		longest = length > longest ? length : longest;
	}
	if (source->attr.sample_type & PERF_SAMPLE_CALLCHAIN)
		longest = longest > strlen(stack_field) ? longest : strlen(stack_field);
	for (size_t i = 0; i < ps_nr_sample_fields; i++) {
		size_t length = strlen(ps_sample_fields[i].name);
		if (has_part(source, &ps_sample_fields[i]))
			longest = length > longest ? length : longest;
	}
	return longest;
}

static void write_sample_fields(const struct ps_source *source, int width, FILE *file)
{
	for (size_t i = 0; i < ps_nr_sample_fields; i++) {
		const struct ps_sample_field *field = &ps_sample_fields[i];
		if (has_part(source, field))
			fprintf(file, "    %-*s  %-15s  %s\n", width, field->name,
				field->annotation, field->doc);
	}
}

static void write_handler(const struct ps_source *source, const char *handler, FILE *file)
{
	const struct ps_schema *schema = source->schema;
	fprintf(file, "\n\ndef %s(event: \"%s_event\") -> None:\n    \"\"\"Called for each ",
		handler, handler);
	put_text(file, source->name);
	fputs(".", file);
	int width = longest_name(source);
	if (width)
		fputs(" Its fields, their types in Python and as declared:\n\n", file);
	for (size_t i = 0; i < schema->nr_fields; i++) {
		const struct ps_field *field = &schema->fields[i];
		fputs("    ", file);
		put_text(file, field->name);
		fprintf(file, "%*s  %-15s  ", width - (int)strlen(field->name), "",
			ps_field_annotation(field));
		put_text(file, field->type_name);
		putc('\n', file);
	}
	write_sample_fields(source, width, file);
	bool has_stack = source->attr.sample_type & PERF_SAMPLE_CALLCHAIN;
	if (has_stack)
		fprintf(file, "    %-*s  %-15s  the call stack with names, innermost first\n",
			width, stack_field, "list[dict]");
	// str() has one line, without the stack.
	fprintf(file, "%s\"\"\"\n    %s\n", width ? "    " : "",
		has_stack ? "event.print()" : "print(event)");
}

typedef void (*write_function)(const struct ps_source *source, const char *handler, FILE *file);

static struct ps_error *write_each(const struct ps_source_list *sources, write_function write,
				   FILE *file)
{
	for (size_t i = 0; i < ps_sources_nr_shown(sources); i++) {
		if (!is_wanted(sources, i))
			continue;
		_cleanup_free_ char *handler = ps_identifier_from(sources->sources[i]->handler);
		if (!handler)
			return &ps_enomem;
		write(sources->sources[i], handler, file);
	}
	return NULL;
}

/** Parameters and body of each callback; its name and docstring come from ps_callbacks. */
static const struct {
	const char *parameters, *body;
} callback_code[PS_NR_CALLBACKS] = {
	[PS_CALLBACK_INIT] = { "", NULL },
	[PS_CALLBACK_SAMPLE] = { "event: perfscope.PerfEvent", "    print(event)\n" },
	[PS_CALLBACK_INTERVAL] = { "totals: dict[str, perfscope.PerfEventTotals]",
				   "    for name, total in totals.items():\n"
				   "        print(name, total.values)\n" },
	[PS_CALLBACK_LOST] = { "lost_start: int, lost_end: int, lost: \"int | None\"",
			       "    print(\"events lost:\", \"unknown\" if lost is None else "
			       "lost)\n" },
	[PS_CALLBACK_PRINT_STAT] = { "indent", NULL },
	[PS_CALLBACK_EXIT] = { "totals: dict[str, perfscope.PerfEventTotals]",
			       "    for name, total in totals.items():\n"
			       "        print(name, total.values)\n" },
};

static void write_callback(enum ps_callback callback, FILE *file)
{
	fprintf(file, "\n\ndef %s(%s) -> None:\n    \"\"\"%s\"\"\"\n%s",
		ps_callbacks[callback].name, callback_code[callback].parameters,
		ps_callbacks[callback].doc,
		callback_code[callback].body ? callback_code[callback].body : "");
}

static bool has_handler(const struct ps_source_list *sources)
{
	for (size_t i = 0; i < ps_sources_nr_shown(sources); i++) {
		if (sources->sources[i]->is_sampling)
			return true;
	}
	return false;
}

/** The handler of each region; one serves all whose names differ in what is no letter. */
static void write_regions(const struct ps_region_spec_list *regions, FILE *file)
{
	for (size_t i = 0; regions && i < regions->nr_regions; i++) {
		const char *handler = regions->regions[i].handler;
		size_t first = 0;
		while (strcmp(regions->regions[first].handler, handler))
			first++;
		if (first == i)
			fprintf(file,
				"\n\ndef %s(region: perfscope.RegionPass) -> None:\n"
				"    \"\"\"Called at the end of each pass through %s.\"\"\"\n"
				"    print(region, region.values)\n",
				handler, regions->regions[i].name);
	}
}

struct ps_error *ps_template_write(const struct ps_source_list *sources, const char *options,
				   FILE *file)
{
	struct ps_error *error = write_head(sources, options, file);
	if (!error && has_handler(sources)) {
		fputs("\nif TYPE_CHECKING:\n", file);
		error = write_each(sources, write_stub, file);
	}
	if (error)
		return error;
	write_callback(PS_CALLBACK_INIT, file);
	error = write_each(sources, write_handler, file);
	if (error)
		return error;
	write_regions(sources->regions, file);
	static const enum ps_callback rest[] = { PS_CALLBACK_SAMPLE, PS_CALLBACK_INTERVAL,
						 PS_CALLBACK_LOST, PS_CALLBACK_PRINT_STAT,
						 PS_CALLBACK_EXIT };
	for (size_t i = 0; i < PS_ARRAY_SIZE(rest); i++)
		write_callback(rest[i], file);
	if (fflush(file) || ferror(file))
		return ps_error_format(PS_ERROR_OS, "write the template: output failed");
	return NULL;
}
