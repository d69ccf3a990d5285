// SPDX-License-Identifier: MIT
#include "source_resolve.h"

#include "source_check.h"

#include <string.h>

void source_destroy(struct ps_source *source)
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

void ps_source_list_deinit(struct ps_source_list *list)
{
	for (size_t i = 0; i < list->nr_sources; i++)
		source_destroy(list->sources[i]);
	free(list->sources);
	*list = (struct ps_source_list){};
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

struct ps_error *source_create(const struct resolver *resolver, const char *name,
			       const char *system, const char *handler, struct ps_source **ret)
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
	source_attr_init(resolver, &source->attr);
	*ret = take_ptr(source);
	return NULL;
}

struct ps_error *source_append(struct resolver *resolver, struct ps_source *source)
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

struct ps_error *source_append_copy(struct resolver *resolver, const struct ps_source *source)
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
	return source_append(resolver, take_ptr(copy));
}
