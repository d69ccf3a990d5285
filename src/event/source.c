// SPDX-License-Identifier: MIT
#include "pmu_model.h"
#include "source_check.h"
#include "source_resolve.h"

#include <perfscope/pmu.h>
#include <perfscope/tracepoint.h>
#include <string.h>

/** The schema of a tracepoint: of an earlier source of the same name, or from its format. */
static struct ps_error *find_schema(const struct resolver *resolver, const char *system,
				    const char *name, const char *full_name, struct ps_schema **ret)
{
	for (size_t i = 0; i < resolver->list.nr_sources; i++) {
		const struct ps_source *source = resolver->list.sources[i];
		if (source->attr.type != PERF_TYPE_TRACEPOINT || strcmp(source->name, full_name))
			continue;
		*ret = ps_schema_ref(source->schema);
		return NULL;
	}
	_cleanup_free_ char *text = NULL;
	size_t size;
	struct ps_error *error =
		ps_tracepoint_read_format(resolver->tracefs, system, name, &text, &size);
	return error ? error : ps_schema_create_tracepoint(system, text, size, ret);
}

static bool has_wildcard(const char *text)
{
	return strpbrk(text, "*?");
}

static struct ps_error *add_tracepoint(const char *system, const char *name, void *argument)
{
	struct resolver *resolver = argument;
	// ftrace's own records have formats too, but are no events of perf.
	const struct ps_spec *spec = resolver->spec;
	bool is_pattern = has_wildcard(spec->system) || has_wildcard(spec->name);
	if (is_pattern && !strcmp(system, "ftrace"))
		return NULL;
	_cleanup_free_ char *full_name = NULL;
	if (asprintf(&full_name, "%s:%s", system, name) < 0) {
		full_name = NULL;
		return &ps_enomem;
	}
	_cleanup_source_ struct ps_source *source = NULL;
	struct ps_error *error = source_create(resolver, full_name, system, name, &source);
	if (error)
		return error;
	uint64_t id;
	error = ps_tracepoint_read_id(resolver->tracefs, system, name, &id);
	if (!error)
		error = find_schema(resolver, system, name, full_name, &source->schema);
	if (error)
		return error;
	source->attr.type = PERF_TYPE_TRACEPOINT;
	source->attr.config = id;
	// The kernel alone makes them, so that without it not one would come. Those of system calls count as user space's:
	// they come all the same, and this is how a user without privileges may have those of its own threads.
	if (strcmp(system, "syscalls"))
		source->attr.exclude_kernel = 0;
	source->is_glob = is_pattern;
	source_make_records(resolver, source);
	return source_append(resolver, take_ptr(source));
}

/** Append the source of one place of the probe at hand. */
static struct ps_error *add_probe(struct resolver *resolver, const struct ps_probe_place *place)
{
	const char *system = resolver->spec->system;
	_cleanup_free_ char *name = NULL;
	if (asprintf(&name, "%s:%s", system, place->name) < 0) {
		name = NULL;
		return &ps_enomem;
	}
	_cleanup_source_ struct ps_source *source = NULL;
	struct ps_error *error = source_create(resolver, name, system, place->name, &source);
	if (!error)
		error = ps_probe_create(resolver->spec, place, resolver->options->is_inherited,
					&source->probe);
	if (!error)
		error = ps_schema_create_probe(name, source->probe->format,
					       source->probe->format_size, &source->schema);
	if (error)
		return error;
	source->attr.type = source->probe->type;
	source->attr.config = source->probe->config;
	source->attr.config1 = source->probe->config1;
	source->attr.config2 = source->probe->config2;
	source_make_records(resolver, source);
	return source_append(resolver, take_ptr(source));
}

/** Remove what perfscopes that were killed left behind, before something is added to it. */
static void sweep(struct resolver *resolver)
{
	if (resolver->is_swept)
		return;
	resolver->is_swept = true;
	struct ps_error *error = resolver->tracefs ? NULL : ps_tracefs_path(&resolver->tracefs);
	if (!error)
		ps_probe_sweep(resolver->tracefs);
	ps_error_destroy(error);
}

static struct ps_error *resolve_probe(struct resolver *resolver)
{
	struct ps_probe_places places = { 0 };
	struct ps_error *error = ps_probe_find(resolver->spec, &places);
	for (size_t i = 0; i < places.nr_places && !error; i++)
		error = add_probe(resolver, &places.places[i]);
	ps_probe_places_deinit(&places);
	return error;
}

/** The name of a counter as it was typed, without attributes and modifiers. */
static char *counter_name(const struct ps_spec *spec)
{
	char *name = NULL;
	size_t size;
	FILE *stream = open_memstream(&name, &size);
	if (!stream)
		return NULL;
	if (spec->kind == PS_SPEC_BREAKPOINT) {
		fprintf(stream, "mem:0x%llx/%llu:%s%s%s", (unsigned long long)spec->config,
			(unsigned long long)spec->breakpoint_size,
			spec->breakpoint_type & 1 ? "r" : "", spec->breakpoint_type & 2 ? "w" : "",
			spec->breakpoint_type & 4 ? "x" : "");
	} else {
		fputs(spec->kind == PS_SPEC_PMU ? spec->system : spec->name, stream);
	}
	for (size_t i = 0; i < spec->nr_terms; i++) {
		const struct ps_term *term = &spec->terms[i];
		fprintf(stream, "%c%s%s%s", i ? ',' : '/', term->name, term->value ? "=" : "",
			term->value ? term->value : "");
	}
	if (fclose(stream)) {
		free(name);
		return NULL;
	}
	return name;
}

/** Append a counter whose type and config are those of @named. */
static struct ps_error *add_counter(struct resolver *resolver, const char *handler,
				    const struct perf_event_attr *named)
{
	const struct ps_spec *spec = resolver->spec;
	_cleanup_free_ char *name = NULL;
	if (asprintf(&name, "%s%s", handler, spec->nr_terms ? "/" : "") < 0) {
		name = NULL;
		return &ps_enomem;
	}
	_cleanup_source_ struct ps_source *source = NULL;
	struct ps_error *error = source_create(resolver, name, NULL, handler, &source);
	if (!error)
		error = ps_schema_create_counter(name, &source->schema);
	if (error)
		return error;
	struct perf_event_attr *attr = &source->attr;
	attr->type = named->type;
	attr->config = named->config;
	attr->config1 = named->config1;
	attr->config2 = named->config2;
	attr->bp_type = named->bp_type;
	attr->precise_ip = named->precise_ip;
	source->is_sampling = source_set_sampling(resolver, attr);
	source_set_stack(resolver, source);
	error = source_check_parts(spec, source);
	return error ? error : source_append(resolver, take_ptr(source));
}

static struct ps_error *resolve_counter(struct resolver *resolver)
{
	struct perf_event_attr attr = {};
	struct ps_error *error = ps_pmu_resolve(resolver->spec, &attr);
	if (error)
		return error;
	_cleanup_free_ char *name = counter_name(resolver->spec);
	return name ? add_counter(resolver, name, &attr) : &ps_enomem;
}

/**
 * A name of libpfm4 with its unit mask, INST_RETIRED:ANY, looks like a tracepoint. Returns @error,
 * which is taken
 * over, where it is none.
 */
static struct ps_error *try_model(struct resolver *resolver, struct ps_error *error)
{
	const struct ps_spec *spec = resolver->spec;
	if (spec->filter || has_wildcard(spec->system) || has_wildcard(spec->name))
		return error;
	_cleanup_free_ char *name = NULL;
	if (asprintf(&name, "%s:%s", spec->system, spec->name) < 0) {
		name = NULL;
		return error;
	}
	struct perf_event_attr attr = { .precise_ip = spec->precise_ip };
	bool is_known;
	struct ps_error *model_error = ps_model_encode(name, &attr, &is_known);
	if (!model_error && !is_known)
		return error;
	ps_error_destroy(error);
	return model_error ? model_error : add_counter(resolver, name, &attr);
}

static struct ps_error *resolve_tracepoint(struct resolver *resolver)
{
	const struct ps_spec *spec = resolver->spec;
	size_t nr_before = resolver->list.nr_sources;
	struct ps_error *error = resolver->tracefs ? NULL : ps_tracefs_path(&resolver->tracefs);
	if (!error)
		error = ps_tracepoint_glob(resolver->tracefs, spec->system, spec->name,
					   add_tracepoint, resolver);
	if (error && resolver->list.nr_sources == nr_before)
		return try_model(resolver, error);
	if (!error && resolver->list.nr_sources == nr_before)
		return ps_error_format(PS_ERROR_NOT_FOUND,
				       "%s: no tracepoint that can be opened matches", spec->text);
	return error;
}

/** Make the sources of @group one: what a sample or a read of one member tells is told of all. */
static struct ps_error *bind_group(struct ps_source_list *list, unsigned int group)
{
	bool has_leader = false;
	for (size_t i = 0; i < list->nr_sources; i++) {
		struct ps_source *source = list->sources[i];
		if (source->group != group)
			continue;
		source->is_group_leader = !has_leader;
		has_leader = true;
		source->attr.read_format |= PERF_FORMAT_GROUP;
		if (source->is_sampling)
			source->attr.sample_type |= PERF_SAMPLE_READ;
	}
	return source_check_group(list, group);
}

/** Make one group of the events of regions and of all that counts. */
static struct ps_error *bind_regions(struct resolver *resolver, unsigned int group)
{
	struct ps_source_list *list = &resolver->list;
	struct ps_error *error = NULL;
	size_t nr = list->nr_sources;
	for (size_t i = 0; i < nr && !error; i++) {
		struct ps_source *source = list->sources[i];
		if (!source->is_sampling && source->group)
			error = source_append_copy(resolver, source);
		if (!source->is_sampling && source->group && !error)
			list->sources[list->nr_sources - 1]->group = group;
		if (source->boundary || (!source->is_sampling && !source->group))
			source->group = group;
		list->nr_hidden += source->boundary != 0;
	}
	list->nr_hidden += list->nr_sources - nr;
	list->regions = resolver->options->regions;
	list->region_group = group;
	return error ? error : bind_group(list, group);
}

static struct ps_error *resolve_one(struct resolver *resolver)
{
	if (resolver->spec->kind == PS_SPEC_TRACEPOINT || resolver->spec->kind == PS_SPEC_PROBE)
		sweep(resolver);
	switch (resolver->spec->kind) {
	case PS_SPEC_TRACEPOINT:
		return resolve_tracepoint(resolver);
	case PS_SPEC_PROBE:
		return resolve_probe(resolver);
	default:
		return resolve_counter(resolver);
	}
}

/** An event of a region that does not exist is a wrong region. */
static struct ps_error *boundary_error(struct ps_error *error)
{
	if (error->kind == PS_ERROR_NOT_FOUND)
		error->kind = PS_ERROR_USAGE;
	return ps_error_context(error, "-r");
}

struct ps_error *ps_sources_resolve(const struct ps_spec_list *specs,
				    const struct ps_source_options *options,
				    struct ps_source_list *ret)
{
	struct resolver resolver = { .options = options };
	struct ps_error *error = NULL;
	for (size_t i = 0; i < specs->nr_specs && !error; i++) {
		resolver.spec = &specs->specs[i];
		error = resolve_one(&resolver);
		if (error && resolver.spec->boundary)
			error = boundary_error(error);
	}
	if (!error)
		source_settle_calls(&resolver.list);
	for (unsigned int group = 1; group <= specs->nr_groups && !error; group++)
		error = bind_group(&resolver.list, group);
	if (!error && options->regions && options->regions->nr_regions)
		error = bind_regions(&resolver, specs->nr_groups + 1);
	if (error)
		ps_source_list_deinit(&resolver.list);
	else
		*ret = resolver.list;
	return error;
}
