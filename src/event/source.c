// SPDX-License-Identifier: MIT
#include <perfscope/source.h>

#include "pmu_model.h"
#include "source_check.h"

#include <perfscope/pmu.h>
#include <perfscope/probe.h>
#include <perfscope/sample.h>
#include <perfscope/tracepoint.h>
#include <string.h>

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

/** One call of ps_sources_resolve. */
struct resolver {
	const struct ps_source_options *options;
	const char *tracefs;	    // NULL: not needed yet
	bool is_swept;		    // what killed runs left is removed
	const struct ps_spec *spec; // the one at hand
	const struct ps_spec *told; // the last whose lacks were told: a pattern's are told once
	struct ps_source_list list;
};

static void source_destroy(struct ps_source *source)
{
	if (!source)
		return;
	free(source->name);
	free(source->label);
	free(source->handler);
	free(source->filter);
	free(source->cpus);
	free(source->missing_reason);
	ps_schema_unref(source->schema);
	ps_probe_destroy(source->probe);
	free(source);
}

PS_DEFINE_CLEANUP(struct ps_source *, source, source_destroy)
#define _cleanup_source_ _cleanup_(source_p)

void ps_source_list_deinit(struct ps_source_list *list)
{
	for (size_t i = 0; i < list->nr_sources; i++)
		source_destroy(list->sources[i]);
	free(list->sources);
	*list = (struct ps_source_list){};
}

// Every register that the kernel gives by number (asm/perf_regs.h).
#if defined(__x86_64__)
#define REGISTERS 0xff0fffULL // without ds, es, fs and gs, which it refuses
#elif defined(__aarch64__)
#define REGISTERS 0x1ffffffffULL
#else
#define REGISTERS 0ULL
#endif

#define STACK_USER_BYTES 8192 // of the stack that stack-user copies

/** Add the parts of samples that the spec asks for. */
static void set_parts(const struct ps_spec *spec, struct perf_event_attr *attr)
{
	attr->sample_type |= spec->sample_type;
	if (spec->sample_type & PERF_SAMPLE_REGS_USER)
		attr->sample_regs_user = REGISTERS;
	if (spec->sample_type & PERF_SAMPLE_REGS_INTR)
		attr->sample_regs_intr = REGISTERS;
	if (spec->sample_type & PERF_SAMPLE_STACK_USER)
		attr->sample_stack_user = STACK_USER_BYTES;
	if (spec->sample_type & PERF_SAMPLE_BRANCH_STACK)
		attr->branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
}

static void attr_init(const struct resolver *resolver, struct perf_event_attr *attr)
{
	const struct ps_spec *spec = resolver->spec;
	const struct ps_source_options *options = resolver->options;
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.sample_type = PS_SAMPLE_BASE,
		.read_format = TIMES | PERF_FORMAT_ID,
		.disabled = 1,
		.sample_id_all = 1,
		.precise_ip = spec->precise_ip,
		.exclude_user = spec->exclude_user || options->exclude_user,
		.exclude_kernel = spec->exclude_kernel || options->exclude_kernel,
		.exclude_hv = spec->exclude_hv,
		.exclude_host = spec->exclude_host || options->exclude_host,
		.exclude_guest = spec->exclude_guest || options->exclude_guest,
	};
	set_parts(spec, attr);
}

/** Copy @text, which may be NULL; false: no memory. */
static bool copy_text(const char *text, char **ret)
{
	*ret = text ? strdup(text) : NULL;
	return *ret || !text;
}

static bool is_label_taken(const struct ps_source_list *list, const char *label)
{
	for (size_t i = 0; i < list->nr_sources; i++) {
		if (!strcmp(list->sources[i]->label, label))
			return true;
	}
	return false;
}

/**
 * The alias, or the name with its modifiers; "#2" and so on behind it where another has it
 * already.
 */
static char *make_label(const struct resolver *resolver, const char *name)
{
	const struct ps_spec *spec = resolver->spec;
	bool has_modifiers = !spec->alias && spec->modifiers;
	// cycles:u, cpu/event=1/u
	bool has_colon = has_modifiers && name[strlen(name) - 1] != '/';
	_cleanup_free_ char *base = NULL;
	if (asprintf(&base, "%s%s%s", spec->alias ? spec->alias : name, has_colon ? ":" : "",
		     has_modifiers ? spec->modifiers : "") < 0) {
		base = NULL;
		return NULL;
	}
	_cleanup_free_ char *label = strdup(base);
	for (unsigned int number = 2; label && is_label_taken(&resolver->list, label); number++) {
		free(label);
		if (asprintf(&label, "%s#%u", base, number) < 0)
			label = NULL;
	}
	return_ptr(label);
}

/**
 * A source of the spec at hand, with all that is the same for every kind.
 *
 * @system and @handler name the handler where no alias does; @system is NULL for counters.
 */
static struct ps_error *source_create(const struct resolver *resolver, const char *name,
				      const char *system, const char *handler,
				      struct ps_source **ret)
{
	const struct ps_spec *spec = resolver->spec;
	_cleanup_source_ struct ps_source *source = calloc(1, sizeof(*source));
	if (!source)
		return &ps_enomem;
	source->spec = spec;
	source->group = spec->group;
	source->name = strdup(name);
	source->label = make_label(resolver, name);
	source->handler = ps_spec_handler_name(system, spec->alias ? spec->alias : handler);
	if (!source->name || !source->label || !source->handler ||
	    !copy_text(spec->filter, &source->filter) || !copy_text(spec->cpus, &source->cpus))
		return &ps_enomem;
	attr_init(resolver, &source->attr);
	*ret = take_ptr(source);
	return NULL;
}

/** Append @source, which is taken over also on failure. */
static struct ps_error *append_source(struct resolver *resolver, struct ps_source *source)
{
	struct ps_source_list *list = &resolver->list;
	// Doubled at each power of two.
	if (!(list->nr_sources & (list->nr_sources - 1))) {
		size_t capacity = list->nr_sources ? 2 * list->nr_sources : 1;
		struct ps_source **bigger = reallocarray(list->sources, capacity, sizeof(*bigger));
		if (!bigger) {
			source_destroy(source);
			return &ps_enomem;
		}
		list->sources = bigger;
	}
	if (resolver->told != resolver->spec)
		source_tell_without_pmu(resolver->spec, source);
	resolver->told = resolver->spec;
	source->index = list->nr_sources;
	list->sources[list->nr_sources++] = source;
	return NULL;
}

/** The bytes of raw data that each record of @schema has. */
static size_t fixed_size(const struct ps_schema *schema)
{
	size_t size = 0;
	for (size_t i = 0; i < schema->nr_fields; i++) {
		const struct ps_field *field = &schema->fields[i];
		size_t end =
			field->offset + (field->place == PS_PLACE_REST ? (size_t)0 : field->size);
		if (end > size)
			size = end;
	}
	return size;
}

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

/**
 * The kernel gives each occurrence of these its sample where samples are to tell their period, whatever the period
 * (perf_swevent_event() in kernel/events/core.c); without that part it counts up to the period.
 */
static void tell_period_once(struct perf_event_attr *attr, bool is_software)
{
	bool is_timer =
		attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
						     attr->config == PERF_COUNT_SW_TASK_CLOCK);
	if (is_software && !is_timer && !attr->freq && attr->sample_period > 1)
		attr->sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
}

/** Let the source at hand have call stacks where it or the command asks for them. */
static void set_stack(const struct resolver *resolver, struct ps_source *source)
{
	const struct ps_source_options *options = resolver->options;
	const struct ps_spec *spec = resolver->spec;
	struct perf_event_attr *attr = &source->attr;
	if (!source->is_sampling || (!spec->has_stack && !options->stack))
		return;
	attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	attr->sample_max_stack = spec->max_stack ? spec->max_stack : options->max_stack;
	attr->exclude_callchain_user = options->without_user_stack;
	attr->exclude_callchain_kernel = options->without_kernel_stack;
	if (options->stack == PS_STACK_LBR && !options->without_user_stack) {
		attr->sample_type |= PERF_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK;
	}
	if (options->stack != PS_STACK_DWARF || options->without_user_stack)
		return;
	attr->exclude_callchain_user = 1;
	attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = REGISTERS;
	uint32_t bytes = options->stack_bytes ? options->stack_bytes : STACK_USER_BYTES;
	// stack-user promised its own.
	if (bytes > attr->sample_stack_user)
		attr->sample_stack_user = bytes;
}

/** Where @source begins or ends regions: when, whose and the counters are read of it, and of a switch who is next. */
static void make_boundary(const struct resolver *resolver, struct ps_source *source)
{
	source->boundary = resolver->spec->boundary;
	if (!source->boundary)
		return;
	source->attr.sample_type = PS_SAMPLE_BASE & ~(uint64_t)PERF_SAMPLE_PERIOD;
	if (source->boundary == resolver->options->regions->switches)
		source->attr.sample_type |= PERF_SAMPLE_RAW;
}

/** Each occurrence of @source, a tracepoint or a probe, makes a record with raw data; or as its spec says. */
static void make_records(const struct resolver *resolver, struct ps_source *source)
{
	const struct ps_spec *spec = resolver->spec;
	source->attr.freq = spec->freq != 0;
	source->attr.sample_period = spec->freq ? spec->freq : spec->period ? spec->period : 1;
	source->attr.sample_type |= PERF_SAMPLE_RAW;
	tell_period_once(&source->attr, true);
	source->is_sampling = true;
	source->raw_size = fixed_size(source->schema);
	set_stack(resolver, source);
	make_boundary(resolver, source);
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
	make_records(resolver, source);
	return append_source(resolver, take_ptr(source));
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
	make_records(resolver, source);
	return append_source(resolver, take_ptr(source));
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

// profile samples so many times a second where it says nothing else: no whole divisor of what other timers do.
#define PROFILE_FREQ 997

/** How the counter at hand samples; false: it counts. */
static bool set_sampling(const struct resolver *resolver, struct perf_event_attr *attr)
{
	const struct ps_spec *spec = resolver->spec;
	uint64_t freq = spec->freq, period = spec->period;
	if (!freq && !period) {
		freq = resolver->options->freq;
		period = freq ? 0 : resolver->options->period;
	}
	if (!freq && !period && spec->kind == PS_SPEC_PROFILE)
		freq = PROFILE_FREQ;
	if (!freq && !period)
		return false;
	attr->freq = freq != 0;
	attr->sample_period = freq ? freq : period; // one field with sample_freq
	attr->sample_type |= PERF_SAMPLE_IP;
	tell_period_once(attr,
			 attr->type == PERF_TYPE_SOFTWARE || attr->type == PERF_TYPE_BREAKPOINT);
	return true;
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
	source->is_sampling = set_sampling(resolver, attr);
	set_stack(resolver, source);
	error = source_check_parts(spec, source);
	return error ? error : append_source(resolver, take_ptr(source));
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

/** A second source of what @source counts. */
static struct ps_error *append_copy(struct resolver *resolver, const struct ps_source *source)
{
	_cleanup_source_ struct ps_source *copy = calloc(1, sizeof(*copy));
	if (!copy || !copy_text(source->name, &copy->name) ||
	    !copy_text(source->label, &copy->label) ||
	    !copy_text(source->handler, &copy->handler) || !copy_text(source->cpus, &copy->cpus) ||
	    !copy_text(source->missing_reason, &copy->missing_reason))
		return &ps_enomem;
	copy->attr = source->attr;
	copy->schema = ps_schema_ref(source->schema);
	copy->is_missing = source->is_missing;
	copy->spec = source->spec;
	copy->original = source;
	return append_source(resolver, take_ptr(copy));
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
			error = append_copy(resolver, source);
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
