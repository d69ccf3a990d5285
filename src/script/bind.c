// SPDX-License-Identifier: MIT
#include "location.h"

#include <limits.h>
#include <perfscope/binding.h>
#include <perfscope/log.h>
#include <string.h>

const struct ps_callback_info ps_callbacks[PS_NR_CALLBACKS] = {
	[PS_CALLBACK_INIT] = { "__init__", 0, 0, "__init__()",
			       "Called once, after the events are open, before they are enabled." },
	[PS_CALLBACK_EXIT] = { "__exit__", 0, 1, "__exit__() or __exit__(totals)",
			       "Called once, however the run ends, with the whole run's totals." },
	[PS_CALLBACK_INTERVAL] = { "__interval__", 0, 1, "__interval__() or __interval__(totals)",
				   "Called every -i milliseconds, with the totals since the "
				   "last." },
	[PS_CALLBACK_LOST] = { "__lost__", 2, 3,
			       "__lost__(lost_start, lost_end) or "
			       "__lost__(lost_start, lost_end, lost)",
			       "Called for each loss of events, with the times around it in ns and "
			       "how many "
			       "were lost; None: nobody counted, as while a CPU was offline." },
	[PS_CALLBACK_PRINT_STAT] = { "__print_stat__", 1, 1, "__print_stat__(indent)",
				     "Called on SIGUSR2, with perfscope's own counts." },
	[PS_CALLBACK_SAMPLE] = { "__sample__", 1, 1, "__sample__(event)",
				 "Called for each event that has no handler of its own." },
};

/** A callable of the script, and how it may be called. */
struct wish {
	const char *name, *signature;
	unsigned int min_args, max_args;
};

/** "FILE:LINE" of the callable, or "script NAME" where it does not tell. The caller frees it. */
static char *place_of(const struct ps_script *script, const struct ps_arity *arity)
{
	char *place;
	int length = arity->file && arity->line
			     ? asprintf(&place, "%s:%u", arity->file, arity->line)
			     : asprintf(&place, "script %s", script->name);
	return length < 0 ? NULL : place;
}

static void describe_arity(const struct ps_arity *arity, char *ret, size_t size)
{
	if (arity->needs_keywords)
		snprintf(ret, size, "takes arguments by keyword alone");
	else if (arity->max == UINT_MAX)
		snprintf(ret, size, "takes %u or more arguments", arity->min);
	else if (arity->min != arity->max)
		snprintf(ret, size, "takes %u to %u arguments", arity->min, arity->max);
	else if (arity->max == 0)
		snprintf(ret, size, "takes no argument");
	else
		snprintf(ret, size, "takes %u argument%s", arity->max, arity->max > 1 ? "s" : "");
}

static struct ps_error *wrong_arity(const struct ps_script *script, const struct wish *wish,
				    const struct ps_arity *arity)
{
	_cleanup_free_ char *place = place_of(script, arity);
	char takes[64];
	describe_arity(arity, takes, sizeof(takes));
	return ps_error_format(PS_ERROR_SCRIPT, "%s: %s %s; define %s", place ? place : "script",
			       wish->name, takes, wish->signature);
}

static struct ps_error *lazy_function(const struct ps_script *script, const struct wish *wish,
				      const struct ps_arity *arity)
{
	_cleanup_free_ char *place = place_of(script, arity);
	return ps_error_format(PS_ERROR_SCRIPT,
			       "%s: %s is a coroutine or generator, of which a call runs nothing; "
			       "make it a plain function",
			       place ? place : "script", wish->name);
}

/** Tell with how many arguments @callable is to be called: the most that both sides know. */
static struct ps_error *fit(const struct ps_script *script, PyObject *callable,
			    const struct wish *wish, unsigned int *ret_nr_args)
{
	if (!PyCallable_Check(callable))
		return ps_error_format(PS_ERROR_SCRIPT,
				       "script %s: %s is of type %s, not a function; define %s",
				       script->name, wish->name, Py_TYPE(callable)->tp_name,
				       wish->signature);
	struct ps_arity arity;
	if (!ps_arity_read(callable, &arity))
		return ps_python_take_error(wish->name);
	if (arity.is_lazy)
		return lazy_function(script, wish, &arity);
	if (!arity.is_known) {
		// With all there is, as in the template: what has defaults takes that too.
		*ret_nr_args = wish->max_args;
		return NULL;
	}
	unsigned int nr = arity.max < wish->max_args ? arity.max : wish->max_args;
	if (nr < wish->min_args || nr < arity.min || arity.needs_keywords)
		return wrong_arity(script, wish, &arity);
	*ret_nr_args = nr;
	return NULL;
}

/** What the module itself, not its type, calls @name. Borrowed; NULL: nothing. */
static PyObject *find(const struct ps_script *script, const char *name)
{
	return PyDict_GetItemString(PyModule_GetDict(script->module), name);
}

static struct ps_error *bind_callbacks(struct ps_script *script)
{
	for (size_t i = 0; i < PS_NR_CALLBACKS; i++) {
		const struct ps_callback_info *info = &ps_callbacks[i];
		PyObject *callable = find(script, info->name);
		if (!callable)
			continue;
		struct wish wish = { info->name, info->signature, info->min_args, info->max_args };
		struct ps_error *error = fit(script, callable, &wish, &script->nr_args[i]);
		if (error)
			return error;
		Py_INCREF(callable);
		script->callbacks[i] = callable;
	}
	return NULL;
}

/** The script's own handler of @source, checked. Borrowed; NULL: it has none. */
static struct ps_error *find_handler(const struct ps_script *script, const struct ps_source *source,
				     PyObject **ret)
{
	_cleanup_free_ char *name = ps_identifier_from(source->handler), *signature = NULL;
	if (!name || asprintf(&signature, "%s(event)", name) < 0) {
		signature = NULL;
		return &ps_enomem;
	}
	*ret = find(script, name);
	if (!*ret)
		return NULL;
	unsigned int nr_args;
	return fit(script, *ret, &(struct wish){ name, signature, 1, 1 }, &nr_args);
}

static void warn_of_counter(const struct ps_script *script, const struct ps_source *source)
{
	if (!source->is_sampling && !source->is_missing)
		ps_log(PS_LOG_WARNING,
		       "script %s: %s(event) is never called: %s only counts (sample it: "
		       "%s/freq=HZ/)",
		       script->name, source->handler, source->name, source->name);
}

static struct ps_error *bind_handlers(struct ps_script *script,
				      const struct ps_source_list *sources, bool *ret_has_own)
{
	script->handlers = calloc(ps_sources_nr_shown(sources) + 1, sizeof(*script->handlers));
	if (!script->handlers)
		return &ps_enomem;
	script->nr_handlers = ps_sources_nr_shown(sources);
	for (size_t i = 0; i < ps_sources_nr_shown(sources); i++) {
		PyObject *handler;
		struct ps_error *error = find_handler(script, sources->sources[i], &handler);
		if (error)
			return error;
		if (handler)
			warn_of_counter(script, sources->sources[i]);
		*ret_has_own |= handler != NULL;
		script->handlers[i] = handler ? handler : script->callbacks[PS_CALLBACK_SAMPLE];
		Py_XINCREF(script->handlers[i]);
	}
	return NULL;
}

/** Bind region__NAME(region) of each region. */
static struct ps_error *bind_regions(struct ps_script *script,
				     const struct ps_region_spec_list *regions, bool *ret_has_own)
{
	size_t nr = regions ? regions->nr_regions : 0;
	script->region_handlers = calloc(nr + 1, sizeof(*script->region_handlers));
	if (!script->region_handlers)
		return &ps_enomem;
	for (size_t i = 0; i < nr; i++) {
		const char *name = regions->regions[i].handler;
		_cleanup_free_ char *signature = NULL;
		if (asprintf(&signature, "%s(region)", name) < 0) {
			signature = NULL;
			return &ps_enomem;
		}
		PyObject *handler = find(script, name);
		unsigned int nr_args;
		struct ps_error *error =
			handler ? fit(script, handler, &(struct wish){ name, signature, 1, 1 },
				      &nr_args)
				: NULL;
		if (error)
			return error;
		*ret_has_own |= handler != NULL;
		Py_XINCREF(handler);
		script->region_handlers[script->nr_region_handlers++] = handler;
	}
	return NULL;
}

static bool has_callback(const struct ps_script *script)
{
	for (size_t i = 0; i < PS_NR_CALLBACKS; i++) {
		if (script->callbacks[i])
			return true;
	}
	return false;
}

// So many handlers are named in a message; a glob may have hundreds.
#define MAX_NAMED 3

/** Those of events that have samples. */
static void name_handlers(const struct ps_source_list *sources, FILE *stream)
{
	size_t nr = 0;
	for (size_t i = 0; i < ps_sources_nr_shown(sources); i++) {
		if (sources->sources[i]->is_sampling && nr++ < MAX_NAMED)
			fprintf(stream, "%s(event), ", sources->sources[i]->handler);
	}
	if (nr > MAX_NAMED)
		fprintf(stream, "... (%zu more), ", nr - MAX_NAMED);
}

static struct ps_error *nothing_to_call(const struct ps_script *script,
					const struct ps_source_list *sources)
{
	_cleanup_free_ char *names = NULL;
	size_t size;
	FILE *stream = open_memstream(&names, &size);
	if (!stream)
		return &ps_enomem;
	name_handlers(sources, stream);
	for (size_t i = 0; sources->regions && i < sources->regions->nr_regions && i < MAX_NAMED;
	     i++)
		fprintf(stream, "%s(region), ", sources->regions->regions[i].handler);
	for (size_t i = 0; i < PS_NR_CALLBACKS; i++)
		fprintf(stream, "%s%s", ps_callbacks[i].name, i + 1 < PS_NR_CALLBACKS ? ", " : "");
	if (fclose(stream))
		return &ps_enomem;
	return ps_error_format(
		PS_ERROR_SCRIPT,
		"script %s: defines nothing to call; it may define %s (-h prints a template; "
		"-i MS shows tables without any)",
		script->name, names);
}

/** A script whose one function is for samples, of events that only count, would run and never be called. */
static void warn_of_idleness(const struct ps_script *script, const struct ps_source_list *sources)
{
	bool has_regions = sources->regions && sources->regions->nr_regions;
	if (!script->callbacks[PS_CALLBACK_SAMPLE] || script->callbacks[PS_CALLBACK_INTERVAL] ||
	    script->callbacks[PS_CALLBACK_EXIT] || has_regions)
		return;
	for (size_t i = 0; i < ps_sources_nr_shown(sources); i++) {
		if (sources->sources[i]->is_sampling)
			return;
	}
	ps_log(PS_LOG_WARNING,
	       "script %s: __sample__(event) is never called: the events of -e only count "
	       "(period=N "
	       "or freq=HZ makes them sample; what was counted comes in __exit__(totals))",
	       script->name);
}

struct ps_error *ps_script_bind(struct ps_script *script, const struct ps_source_list *sources,
				bool has_tables)
{
	bool has_own = false;
	struct ps_error *error = bind_callbacks(script);
	if (!error)
		error = bind_handlers(script, sources, &has_own);
	if (!error)
		error = bind_regions(script, sources->regions, &has_own);
	if (error)
		return error;
	ps_script_warn_unbound(script, sources);
	warn_of_idleness(script, sources);
	if (has_own || has_tables || has_callback(script))
		return NULL;
	return nothing_to_call(script, sources);
}
