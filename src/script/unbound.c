// SPDX-License-Identifier: MIT
#include "location.h"

#include <perfscope/binding.h>
#include <perfscope/log.h>
#include <perfscope/nearest.h>
#include <string.h>

static bool is_dunder(const char *name)
{
	size_t length = strlen(name);
	return length > 4 && !strncmp(name, "__", 2) && !strcmp(name + length - 2, "__");
}

/** sys__name, as the handlers of tracepoints and probes are called. */
static bool is_handler_like(const char *name)
{
	return *name != '_' && strstr(name, "__");
}

/** Whether @value is a function that the script itself defined; @ret tells how it is called. */
static bool is_own_function(const struct ps_script *script, PyObject *value, struct ps_arity *ret)
{
	if (!PyFunction_Check(value))
		return false;
	_cleanup_pydecref_ PyObject *module = PyObject_GetAttrString(value, "__module__");
	_cleanup_pydecref_ PyObject *own = PyModule_GetNameObject(script->module);
	bool is_own = module && own && PyObject_RichCompareBool(module, own, Py_EQ) == 1;
	is_own = is_own && ps_arity_read(value, ret);
	PyErr_Clear();
	return is_own;
}

static void tell(const struct ps_arity *arity, const char *name, const char *reason,
		 const struct ps_nearest *nearest)
{
	_cleanup_free_ char *text = ps_nearest_text(nearest);
	ps_log(PS_LOG_WARNING, "%s:%u: %s is never called%s%s", arity->file ? arity->file : "",
	       arity->line, name, reason, text ? text : "");
}

static bool is_callback(const char *name)
{
	for (size_t i = 0; i < PS_NR_CALLBACKS; i++) {
		if (!strcmp(name, ps_callbacks[i].name))
			return true;
	}
	return false;
}

/** `__intervall__`: only where something is near; modules have other functions of this form (`__getattr__`). */
static void check_dunder(const struct ps_arity *arity, const char *name)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, name);
	for (size_t i = 0; i < PS_NR_CALLBACKS; i++) {
		if (ps_edit_distance(name, ps_callbacks[i].name) <= 2)
			ps_nearest_add(&nearest, ps_callbacks[i].name);
	}
	if (nearest.nr && !is_callback(name))
		tell(arity, name, "", &nearest);
	ps_nearest_deinit(&nearest);
}

static void check_handler(const struct ps_source_list *sources, const struct ps_arity *arity,
			  const char *name)
{
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, name);
	bool is_bound = false;
	for (size_t i = 0; i < ps_sources_nr_shown(sources) && !is_bound; i++) {
		_cleanup_free_ char *handler = ps_identifier_from(sources->sources[i]->handler);
		is_bound = handler && !strcmp(handler, name);
		if (handler)
			ps_nearest_add(&nearest, handler);
	}
	bool is_region = !strncmp(name, "region__", strlen("region__"));
	size_t nr_regions = sources->regions ? sources->regions->nr_regions : 0;
	for (size_t i = 0; i < nr_regions && !is_bound; i++) {
		is_bound = !strcmp(sources->regions->regions[i].handler, name);
		ps_nearest_add(&nearest, sources->regions->regions[i].handler);
	}
	if (!is_bound)
		tell(arity, name, is_region ? ": -r has no such region" : ": -e has no such event",
		     &nearest);
	ps_nearest_deinit(&nearest);
}

void ps_script_warn_unbound(const struct ps_script *script, const struct ps_source_list *sources)
{
	PyObject *key, *value;
	Py_ssize_t position = 0;
	while (PyDict_Next(PyModule_GetDict(script->module), &position, &key, &value)) {
		const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : NULL;
		struct ps_arity arity;
		PyErr_Clear();
		if (!name || !is_own_function(script, value, &arity))
			continue;
		if (is_dunder(name))
			check_dunder(&arity, name);
		else if (is_handler_like(name) && arity.min <= 1 && arity.max >= 1)
			check_handler(sources, &arity, name);
	}
}
