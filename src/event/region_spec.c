// SPDX-License-Identifier: MIT
/**
 * The parser of regions: NAME=BEGIN..END. docs/regions.md tells what they mean.
 */
#include <perfscope/region_spec.h>

#include <ctype.h>
#include <perfscope/cleanup.h>
#include <string.h>

#define BETWEEN ".."
#define FUNCTION "func:"

static void region_deinit(struct ps_region_spec *region)
{
	free(region->text);
	free(region->name);
	free(region->handler);
}

void ps_region_spec_list_deinit(struct ps_region_spec_list *regions)
{
	for (size_t i = 0; i < regions->nr_regions; i++)
		region_deinit(&regions->regions[i]);
	free(regions->regions);
	*regions = (struct ps_region_spec_list){ 0 };
}

static bool is_good_name(const char *name)
{
	for (const char *at = name; *at; at++) {
		if (!isalnum((unsigned char)*at) && !strchr("_-.:", *at))
			return false;
	}
	return *name && strlen(name) <= PS_REGION_NAME_MAX;
}

static struct ps_error *check_name(const char *name, const struct ps_region_spec_list *regions)
{
	if (!*name)
		return ps_error_format(PS_ERROR_USAGE, "NAME is missing before the =");
	if (!is_good_name(name))
		return ps_error_format(PS_ERROR_USAGE,
				       "NAME is up to %d letters, digits and _ - . : long",
				       PS_REGION_NAME_MAX);
	if (!strcmp(name, "run"))
		return ps_error_format(PS_ERROR_USAGE,
				       "this name is the whole run's; choose another");
	for (size_t i = 0; i < regions->nr_regions; i++) {
		if (!strcmp(name, regions->regions[i].name))
			return ps_error_format(PS_ERROR_USAGE,
					       "another -r has this name; choose another");
	}
	return NULL;
}

/** Whether @spec is an event and a filter, and nothing that has no meaning here. */
static struct ps_error *check_boundary(const struct ps_spec *spec)
{
	bool is_tracepoint = spec->kind == PS_SPEC_TRACEPOINT;
	if (!is_tracepoint && spec->kind != PS_SPEC_PROBE)
		return ps_error_format(
			PS_ERROR_USAGE,
			"%s: a region begins and ends with a tracepoint or a probe, not a counter",
			spec->text);
	if (is_tracepoint && (strpbrk(spec->system, "*?") || strpbrk(spec->name, "*?")))
		return ps_error_format(PS_ERROR_USAGE, "%s: name one event, without * and ?",
				       spec->text);
	if (spec->alias || spec->cpus || spec->has_stack || spec->max_stack || spec->freq ||
	    spec->period || spec->sample_type || spec->modifiers)
		return ps_error_format(PS_ERROR_USAGE,
				       "%s: an event of a region has a filter, but no attributes "
				       "and no modifiers",
				       spec->text);
	return NULL;
}

/** Parse @text, which is to be one boundary event, into the empty @list. */
static struct ps_error *parse_boundary(const char *text, struct ps_spec_list *list)
{
	struct ps_error *error = ps_spec_parse(text, list);
	if (error)
		return error;
	if (list->nr_specs != 1 || list->nr_groups)
		return ps_error_format(PS_ERROR_USAGE, "%s: one event is wanted here", text);
	return check_boundary(&list->specs[0]);
}

/** BEGIN and END, parsed. */
struct pair {
	struct ps_spec_list begin, end;
};

static void pair_deinit(struct pair *pair)
{
	ps_spec_list_deinit(&pair->begin);
	ps_spec_list_deinit(&pair->end);
}

static struct ps_error *parse_pair(const char *begin, const char *end, struct pair *ret)
{
	if (!*begin)
		return ps_error_format(PS_ERROR_USAGE, "BEGIN is missing before the %s", BETWEEN);
	if (!*end)
		return ps_error_format(PS_ERROR_USAGE, "END is missing after the %s", BETWEEN);
	struct ps_error *error = parse_boundary(begin, &ret->begin);
	if (error)
		return ps_error_context(error, "BEGIN");
	return ps_error_context(parse_boundary(end, &ret->end), "END");
}

/** Whether @text has more than one "..", and none in a file's path or a filter. */
static bool has_third_event(const char *text)
{
	const char *first = strstr(text, BETWEEN);
	return first && strstr(first + strlen(BETWEEN), BETWEEN) && !strpbrk(text, "@/");
}

/**
 * Split @text where both sides are events: a file's path may have ".." in it, too. Of several failures, the one that
 * got as far as END is told, else the first.
 */
static struct ps_error *parse_range(const char *text, struct pair *ret)
{
	if (has_third_event(text))
		return ps_error_format(PS_ERROR_USAGE,
				       "one BEGIN and one END are wanted, with one %s between them",
				       BETWEEN);
	struct ps_error *failure = NULL;
	bool is_at_end = false;
	const char *at = strstr(text, BETWEEN);
	for (; at; at = strstr(at + 1, BETWEEN)) {
		_cleanup_free_ char *begin = strndup(text, at - text);
		if (!begin) {
			ps_error_destroy(failure);
			return &ps_enomem;
		}
		struct ps_error *error = parse_pair(begin, at + strlen(BETWEEN), ret);
		if (!error) {
			ps_error_destroy(failure);
			return NULL;
		}
		bool is_further = !failure || (!is_at_end && ret->begin.nr_specs);
		is_at_end |= ret->begin.nr_specs != 0;
		pair_deinit(ret);
		ps_error_destroy(is_further ? failure : error);
		failure = is_further ? error : failure;
	}
	if (failure)
		return failure;
	return ps_error_format(PS_ERROR_USAGE, "%s is missing between BEGIN and END", BETWEEN);
}

/** @text is "FUNC@FILE": from the function's entry to its return. */
static struct ps_error *parse_function(const char *text, struct pair *ret)
{
	_cleanup_free_ char *begin = NULL, *end = NULL;
	if (strstr(text, BETWEEN FUNCTION))
		return ps_error_format(PS_ERROR_USAGE,
				       FUNCTION
				       "FUNC@FILE is a whole region; between two functions, "
				       "write uprobe:FUNC@FILE%suretprobe:FUNC@FILE",
				       BETWEEN);
	if (asprintf(&begin, "uprobe:%s", text) < 0) {
		begin = NULL;
		return &ps_enomem;
	}
	if (asprintf(&end, "uretprobe:%s", text) < 0) {
		end = NULL;
		return &ps_enomem;
	}
	struct ps_error *error = parse_pair(begin, end, ret);
	if (error)
		return error;
	const struct ps_spec *spec = &ret->begin.specs[0];
	if (spec->filter || spec->args || spec->offset)
		return ps_error_format(PS_ERROR_USAGE,
				       FUNCTION
				       "%s: FUNC@FILE is all that stands here, a FILE with "
				       "blanks in quotes; for more, write "
				       "uprobe:FUNC@FILE%suretprobe:FUNC@FILE",
				       text, BETWEEN);
	return NULL;
}

/** Move the one event of @from to @specs, or find it there; its number. False: no memory. */
static bool take_boundary(struct ps_spec_list *from, struct ps_spec_list *specs,
			  struct ps_region_spec_list *regions, unsigned int *ret)
{
	for (size_t i = 0; i < specs->nr_specs; i++) {
		*ret = specs->specs[i].boundary;
		if (*ret && !strcmp(specs->specs[i].text, from->specs[0].text))
			return true;
	}
	struct ps_spec *bigger =
		reallocarray(specs->specs, specs->nr_specs + 1, sizeof(*specs->specs));
	if (!bigger)
		return false;
	specs->specs = bigger;
	specs->specs[specs->nr_specs] = from->specs[0];
	specs->specs[specs->nr_specs++].boundary = *ret = ++regions->nr_boundaries;
	from->nr_specs = 0; // its texts have moved
	return true;
}

/** Append the region @name from the events of @pair. */
static struct ps_error *append(const char *text, const char *name, struct pair *pair,
			       struct ps_spec_list *specs, struct ps_region_spec_list *regions)
{
	struct ps_region_spec *bigger =
		reallocarray(regions->regions, regions->nr_regions + 1, sizeof(*bigger));
	if (!bigger)
		return &ps_enomem;
	regions->regions = bigger;
	struct ps_region_spec region = {
		.text = strdup(text),
		.name = strdup(name),
		.handler = ps_spec_handler_name("region", name),
	};
	if (!region.text || !region.name || !region.handler ||
	    !take_boundary(&pair->begin, specs, regions, &region.begin) ||
	    !take_boundary(&pair->end, specs, regions, &region.end)) {
		region_deinit(&region);
		return &ps_enomem;
	}
	if (region.begin == region.end) {
		region_deinit(&region);
		return ps_error_format(
			PS_ERROR_USAGE,
			"BEGIN and END are one event; filters can make two of it: sys:name/a==1/");
	}
	regions->regions[regions->nr_regions++] = region;
	return NULL;
}

struct ps_error *ps_region_spec_parse(const char *text, struct ps_spec_list *specs,
				      struct ps_region_spec_list *regions)
{
	const char *equals = strchr(text, '=');
	if (!equals)
		return ps_error_format(PS_ERROR_USAGE, "'%s' is not NAME=BEGIN..END", text);
	_cleanup_free_ char *name = strndup(text, equals - text);
	if (!name)
		return &ps_enomem;
	struct pair pair = { 0 };
	const char *range = equals + 1;
	struct ps_error *error = check_name(name, regions);
	if (!error && !strncmp(range, FUNCTION, strlen(FUNCTION)))
		error = parse_function(range + strlen(FUNCTION), &pair);
	else if (!error)
		error = parse_range(range, &pair);
	if (!error)
		error = append(text, name, &pair, specs, regions);
	pair_deinit(&pair);
	return ps_error_context(error, "region '%s'", name);
}

struct ps_error *ps_region_spec_add_switches(struct ps_spec_list *specs,
					     struct ps_region_spec_list *regions)
{
	struct ps_spec_list list = { 0 };
	struct ps_error *error = parse_boundary("sched:sched_switch", &list);
	if (!error && !take_boundary(&list, specs, regions, &regions->switches))
		error = &ps_enomem;
	ps_spec_list_deinit(&list);
	return error;
}
