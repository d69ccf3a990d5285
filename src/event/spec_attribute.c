// SPDX-License-Identifier: MIT
/**
 * The parts of an event text that many kinds share: attributes, terms, numbers, quotes.
 */
#include "spec_parse.h"

#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <perfscope/nearest.h>
#include <perfscope/text.h>
#include <string.h>

struct ps_error *ps_reader_error(const struct ps_reader *reader, size_t column, const char *format,
				 ...)
{
	va_list arguments;
	va_start(arguments, format);
	_cleanup_free_ char *message = ps_text_format(format, arguments);
	va_end(arguments);
	if (!message)
		return &ps_enomem;
	struct ps_error *error = ps_error_format(PS_ERROR_USAGE, "%s", message);
	return ps_error_caret(error, reader->text, column);
}

struct ps_error *ps_reader_copy(const struct ps_reader *reader, size_t start, size_t end,
				char **ret)
{
	char *copy = strndup(reader->text + start, end - start);
	if (!copy)
		return &ps_enomem;
	*ret = copy;
	return NULL;
}

void ps_reader_trim(const struct ps_reader *reader, size_t *start, size_t *end)
{
	while (*start < *end && isspace((unsigned char)reader->text[*start]))
		++*start;
	while (*end > *start && isspace((unsigned char)reader->text[*end - 1]))
		--*end;
}

/** The number in @text, all of which must be digits up to @end. */
static bool parse_number(const char *text, char **end, uint64_t *ret)
{
	bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = is_hex ? text + 2 : text;
	if (!(is_hex ? isxdigit((unsigned char)*digits) : isdigit((unsigned char)*digits)))
		return false;
	errno = 0;
	unsigned long long number = strtoull(digits, end, is_hex ? 16 : 10);
	if (errno)
		return false;
	*ret = number;
	return true;
}

struct ps_error *ps_reader_number(struct ps_reader *reader, const char *what, uint64_t *ret)
{
	char *end;
	if (!parse_number(reader->text + reader->at, &end, ret))
		return ps_reader_error(reader, reader->at,
				       "%s is to be a number of at most 64 bits, as 16 or 0x10",
				       what);
	reader->at = end - reader->text;
	return NULL;
}

struct ps_error *ps_reader_find_slash(const struct ps_reader *reader, size_t start, size_t opening,
				      size_t *ret)
{
	size_t at = start;
	for (; reader->text[at] != '/'; at++) {
		char c = reader->text[at];
		if (!c)
			return ps_reader_error(reader, opening,
					       "a closing slash is missing; filters, terms and "
					       "attributes end with one");
		if (c != '"' && c != '\'')
			continue;
		const char *closing = strchr(reader->text + at + 1, c);
		if (!closing)
			return ps_reader_error(reader, at, "this quote is not closed");
		at = closing - reader->text;
	}
	*ret = at;
	return NULL;
}

enum attribute_kind {
	ATTRIBUTE_ALIAS,
	ATTRIBUTE_CPUS,
	ATTRIBUTE_STACK,
	ATTRIBUTE_MAX_STACK,
	ATTRIBUTE_FREQ,
	ATTRIBUTE_PERIOD,
	ATTRIBUTE_SAMPLE,
	ATTRIBUTE_AUX,
};

static const struct attribute {
	const char *name;
	enum attribute_kind kind;
	const char *value;    // what stands behind '=', NULL: nothing
	uint64_t sample_type; // ATTRIBUTE_SAMPLE
} attributes[] = {
	{ "alias", ATTRIBUTE_ALIAS, "NAME", 0 },
	{ "name", ATTRIBUTE_ALIAS, "NAME", 0 }, // perf's word
	{ "cpus", ATTRIBUTE_CPUS, "LIST", 0 },
	{ "stack", ATTRIBUTE_STACK, NULL, 0 },
	{ "max-stack", ATTRIBUTE_MAX_STACK, "N", 0 },
	{ "freq", ATTRIBUTE_FREQ, "HZ", 0 },
	{ "period", ATTRIBUTE_PERIOD, "N", 0 },
	{ "ip", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_IP },
	{ "id", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_ID },
	// PERF_SAMPLE_IDENTIFIER is in every record, for ourselves.
	{ "identifier", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_ID },
	{ "stream-id", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_STREAM_ID },
	{ "addr", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_ADDR },
	{ "read", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_READ },
	{ "regs", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR },
	{ "stack-user", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_STACK_USER },
	{ "weight", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_WEIGHT },
	{ "data-src", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_DATA_SRC },
	{ "transaction", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_TRANSACTION },
	{ "phys-addr", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_PHYS_ADDR },
	{ "cgroup", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_CGROUP },
	{ "page-size", ATTRIBUTE_SAMPLE, NULL,
	  PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE },
	{ "branch", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_BRANCH_STACK },
	{ "raw", ATTRIBUTE_SAMPLE, NULL, PERF_SAMPLE_RAW },
	{ "aux", ATTRIBUTE_AUX, NULL, 0 },
};

// profile/-F 997 -g/ takes the options of the command.
static const struct option {
	const char *name;
	const char *attribute;
} options[] = {
	{ "-F", "freq" },
	{ "--freq", "freq" },
	{ "-c", "period" },
	{ "--count", "period" },
	{ "-g", "stack" },
	{ "--call-graph", "stack" },
	{ "--max-stack", "max-stack" },
};

/** An attribute as typed: NAME[=VALUE], both trimmed. */
struct item {
	const char *name;
	const char *value; // NULL: none
	size_t column;
	size_t value_column;
};

static const struct attribute *find_attribute(const char *name)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(attributes); i++) {
		if (!strcmp(attributes[i].name, name))
			return &attributes[i];
	}
	return NULL;
}

bool ps_spec_is_attribute(const char *name)
{
	return find_attribute(name);
}

static struct ps_error *unknown_attribute(const struct ps_reader *reader, const struct item *item)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, item->name);
	for (size_t i = 0; i < PS_ARRAY_SIZE(attributes); i++)
		ps_nearest_add(&nearest, attributes[i].name);
	_cleanup_free_ char *text = ps_nearest_text(&nearest);
	ps_nearest_deinit(&nearest);
	return ps_reader_error(reader, item->column, "unknown attribute %s%s", item->name,
			       text ? text : "");
}

static struct ps_error *set_alias(const struct ps_reader *reader, const struct item *item,
				  struct ps_spec *spec)
{
	if (spec->alias)
		return ps_reader_error(reader, item->column, "%s: there is an alias already",
				       item->name);
	bool is_good = isalpha((unsigned char)*item->value) || *item->value == '_';
	for (const char *at = item->value; *at && is_good; at++)
		is_good = isalnum((unsigned char)*at) || strchr("_-.:", *at);
	if (!is_good)
		return ps_reader_error(reader, item->value_column,
				       "an alias is a letter, then letters, digits and _ - . :");
	spec->alias = strdup(item->value);
	return spec->alias ? NULL : &ps_enomem;
}

static bool is_cpu_list(const char *text)
{
	return isdigit((unsigned char)*text) && text[strspn(text, "0123456789-,")] == '\0';
}

/** Set or, for what follows a comma, lengthen the list of CPUs. */
static struct ps_error *add_cpus(const struct ps_reader *reader, const struct item *item,
				 struct ps_spec *spec)
{
	if (!is_cpu_list(item->value))
		return ps_reader_error(reader, item->value_column,
				       "cpus is to be a list of CPUs, as 0-3,8");
	char *cpus;
	if (asprintf(&cpus, "%s%s%s", spec->cpus ? spec->cpus : "", spec->cpus ? "," : "",
		     item->value) < 0)
		return &ps_enomem;
	free(spec->cpus);
	spec->cpus = cpus;
	return NULL;
}

static struct ps_error *set_number(const struct ps_reader *reader, const struct item *item,
				   uint64_t max, uint64_t *ret)
{
	char *end;
	uint64_t number;
	if (!parse_number(item->value, &end, &number) || *end || !number || number > max)
		return ps_reader_error(reader, item->value_column,
				       "%s is to be a number from 1 to %llu", item->name,
				       (unsigned long long)max);
	*ret = number;
	return NULL;
}

static struct ps_error *set_max_stack(const struct ps_reader *reader, const struct item *item,
				      struct ps_spec *spec)
{
	uint64_t number;
	// perf_event_attr.sample_max_stack has 16 bits.
	struct ps_error *error = set_number(reader, item, UINT16_MAX, &number);
	if (error)
		return error;
	spec->max_stack = number;
	spec->has_stack = true;
	return NULL;
}

static struct ps_error *add_part(const struct ps_reader *reader, const struct item *item,
				 uint64_t part, struct ps_spec *spec)
{
	bool has_fields = spec->kind == PS_SPEC_TRACEPOINT || spec->kind == PS_SPEC_PROBE;
	if (part == PERF_SAMPLE_RAW && has_fields)
		return ps_reader_error(reader, item->column,
				       "the raw data of a tracepoint or probe are its fields; all "
				       "bytes of them are in event._raw without asking");
	spec->sample_type |= part;
	return NULL;
}

static struct ps_error *set_attribute(const struct ps_reader *reader, const struct item *item,
				      const struct attribute *attribute, struct ps_spec *spec)
{
	if (attribute->value && !item->value)
		return ps_reader_error(reader, item->column, "%s needs a value: %s=%s",
				       attribute->name, attribute->name, attribute->value);
	if (!attribute->value && item->value)
		return ps_reader_error(reader, item->value_column, "%s takes no value",
				       attribute->name);
	switch (attribute->kind) {
	case ATTRIBUTE_ALIAS:
		return set_alias(reader, item, spec);
	case ATTRIBUTE_CPUS:
		if (spec->cpus)
			return ps_reader_error(reader, item->column, "cpus is given twice");
		return add_cpus(reader, item, spec);
	case ATTRIBUTE_STACK:
		spec->has_stack = true;
		return NULL;
	case ATTRIBUTE_MAX_STACK:
		return set_max_stack(reader, item, spec);
	case ATTRIBUTE_FREQ:
		if (spec->period)
			return ps_reader_error(reader, item->column,
					       "freq and period exclude each other");
		return set_number(reader, item, UINT32_MAX, &spec->freq);
	case ATTRIBUTE_PERIOD:
		if (spec->freq)
			return ps_reader_error(reader, item->column,
					       "freq and period exclude each other");
		return set_number(reader, item, INT64_MAX, &spec->period);
	case ATTRIBUTE_SAMPLE:
		return add_part(reader, item, attribute->sample_type, spec);
	case ATTRIBUTE_AUX:
		return ps_reader_error(reader, item->column,
				       "aux needs a trace of the processor (intel_pt, arm_spe) "
				       "that leads the event's group and fills an AUX area, and "
				       "perfscope records no such traces");
	}
	return NULL;
}

static struct ps_error *add_term(const struct item *item, struct ps_spec *spec)
{
	struct ps_term *terms = reallocarray(spec->terms, spec->nr_terms + 1, sizeof(*terms));
	if (!terms)
		return &ps_enomem;
	spec->terms = terms;
	_cleanup_free_ char *name = strdup(item->name);
	_cleanup_free_ char *value = item->value ? strdup(item->value) : NULL;
	if (!name || (item->value && !value))
		return &ps_enomem;
	terms[spec->nr_terms++] = (struct ps_term){
		.name = take_ptr(name),
		.value = take_ptr(value),
		.column = item->column,
	};
	return NULL;
}

static struct ps_error *add_item(const struct ps_reader *reader, const struct item *item,
				 struct ps_spec *spec)
{
	// The comma of cpus=0-3,8 looks like one between attributes.
	if (spec->cpus && !item->value && is_cpu_list(item->name))
		return add_cpus(reader,
				&(struct item){ .value = item->name, .value_column = item->column },
				spec);
	const struct attribute *attribute = find_attribute(item->name);
	bool is_pmu = spec->kind == PS_SPEC_PMU;
	// A PMU may have a term of its own that is called addr, say: it takes a value.
	if (is_pmu && (!attribute || (attribute->kind == ATTRIBUTE_SAMPLE && item->value)))
		return add_term(item, spec);
	if (!attribute)
		return unknown_attribute(reader, item);
	return set_attribute(reader, item, attribute, spec);
}

/** Copy the value in [@start, @end), without the quotes around it. */
static struct ps_error *copy_value(const struct ps_reader *reader, size_t start, size_t end,
				   char **ret)
{
	char first = reader->text[start];
	if (end - start >= 2 && (first == '"' || first == '\'') && reader->text[end - 1] == first) {
		start++;
		end--;
	}
	return ps_reader_copy(reader, start, end, ret);
}

static struct ps_error *parse_item(const struct ps_reader *reader, size_t start, size_t end,
				   struct ps_spec *spec)
{
	ps_reader_trim(reader, &start, &end);
	if (start == end)
		return ps_reader_error(reader, start, "an attribute is missing here");
	const char *equals = memchr(reader->text + start, '=', end - start);
	struct item item = { .column = start };
	_cleanup_free_ char *value = NULL;
	size_t name_end = end;
	struct ps_error *error = NULL;
	if (equals) {
		name_end = equals - reader->text;
		item.value_column = name_end + 1;
		ps_reader_trim(reader, &item.value_column, &end);
		error = copy_value(reader, item.value_column, end, &value);
		if (error)
			return error;
		item.value = value;
		ps_reader_trim(reader, &start, &name_end);
	}
	_cleanup_free_ char *name = NULL;
	error = ps_reader_copy(reader, start, name_end, &name);
	if (error)
		return error;
	item.name = name;
	if (!*name)
		return ps_reader_error(reader, start, "a name is missing before =");
	return add_item(reader, &item, spec);
}

/**
 * The end of the item at @start: @end, or the first comma or, of options, blank that stands in no
 * quotes.
 */
static size_t item_end(const struct ps_reader *reader, size_t start, size_t end, bool is_option)
{
	char quote = 0;
	for (size_t at = start; at < end; at++) {
		char c = reader->text[at];
		if (quote)
			quote = c == quote ? 0 : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else if (c == ',' || (is_option && isspace((unsigned char)c)))
			return at;
	}
	return end;
}

static const struct option *find_option(const char *name, size_t length)
{
	for (size_t i = 0; i < PS_ARRAY_SIZE(options); i++) {
		size_t size = strlen(options[i].name);
		bool is_short = options[i].name[1] != '-';
		if (!strncmp(options[i].name, name, size) &&
		    (length == size || (is_short && length > size)))
			return &options[i];
	}
	return NULL;
}

/** Parse one option of profile at *@at, whose value may be attached, or follow '=' or a blank. */
static struct ps_error *parse_option(const struct ps_reader *reader, size_t *at, size_t end,
				     struct ps_spec *spec)
{
	size_t start = *at, stop = item_end(reader, start, end, true);
	const char *equals = memchr(reader->text + start, '=', stop - start);
	size_t name_end = equals ? (size_t)(equals - reader->text) : stop;
	const struct option *option = find_option(reader->text + start, name_end - start);
	if (!option)
		return ps_reader_error(reader, start,
				       "profile takes -F HZ, -c N, -g and --max-stack N");
	const struct attribute *attribute = find_attribute(option->attribute);
	struct item item = { .name = option->attribute, .column = start };
	size_t value = equals ? name_end + 1 : start + strlen(option->name);
	if (attribute->value && value == stop && !equals) {
		while (value < end && isspace((unsigned char)reader->text[value]))
			value++;
		stop = item_end(reader, value, end, true);
	}
	*at = stop;
	_cleanup_free_ char *copy = NULL;
	if (value < stop) {
		struct ps_error *error = copy_value(reader, value, stop, &copy);
		if (error)
			return error;
	}
	item.value = copy;
	item.value_column = value;
	return set_attribute(reader, &item, attribute, spec);
}

struct ps_error *ps_spec_parse_attributes(const struct ps_reader *reader, size_t start, size_t end,
					  struct ps_spec *spec)
{
	ps_reader_trim(reader, &start, &end);
	while (start < end) {
		struct ps_error *error;
		size_t stop = start;
		bool is_option = spec->kind == PS_SPEC_PROFILE && reader->text[start] == '-';
		if (is_option) {
			error = parse_option(reader, &stop, end, spec);
		} else {
			stop = item_end(reader, start, end, spec->kind == PS_SPEC_PROFILE);
			error = parse_item(reader, start, stop, spec);
		}
		if (error)
			return error;
		if (stop < end && reader->text[stop] == ',' && stop + 1 == end)
			return ps_reader_error(reader, stop,
					       "an attribute is missing after the comma");
		start = stop + (stop < end);
		while (start < end && isspace((unsigned char)reader->text[start]))
			start++;
	}
	return NULL;
}
