// SPDX-License-Identifier: MIT
#include <perfscope/program_regions.h>

#include <perfscope/python.h>

/** Whether regions can count what @source does. */
static bool is_region_counter(const struct ps_source *source)
{
	return !source->is_sampling && !source->is_missing && !source->probe && !source->cpus &&
	       source->attr.type != PERF_TYPE_TRACEPOINT &&
	       source->attr.type != PERF_TYPE_BREAKPOINT;
}

static struct ps_counter make_counter(const struct ps_source *source)
{
	const struct perf_event_attr *attr = &source->attr;
	struct ps_counter counter = {
		.type = attr->type,
		.config = attr->config,
		.config1 = attr->config1,
		.config2 = attr->config2,
		.exclude = (attr->exclude_user ? PS_EXCLUDE_USER : 0) |
			   (attr->exclude_kernel ? PS_EXCLUDE_KERNEL : 0) |
			   (attr->exclude_hv ? PS_EXCLUDE_HV : 0) |
			   (attr->exclude_host ? PS_EXCLUDE_HOST : 0) |
			   (attr->exclude_guest ? PS_EXCLUDE_GUEST : 0),
	};
	snprintf(counter.name, sizeof(counter.name), "%s", source->label);
	return counter;
}

size_t ps_program_regions_counters(const struct ps_source_list *sources,
				   struct ps_counter ret[PS_MAX_COUNTERS], size_t *ret_nr)
{
	size_t nr = 0;
	for (size_t i = 0; i < ps_sources_nr_shown(sources); i++) {
		if (!is_region_counter(sources->sources[i]))
			continue;
		if (nr < PS_MAX_COUNTERS)
			ret[nr] = make_counter(sources->sources[i]);
		nr++;
	}
	*ret_nr = nr < PS_MAX_COUNTERS ? nr : PS_MAX_COUNTERS;
	return nr - *ret_nr;
}

/** Fill @values, of the counting sources, from @sums; returns how many. */
static size_t fill_values(const struct ps_source_list *sources, const struct ps_region_sums *sums,
			  struct ps_total *values)
{
	size_t nr = 0, counter = 0;
	for (size_t i = 0; i < ps_sources_nr_shown(sources); i++) {
		const struct ps_source *source = sources->sources[i];
		if (source->is_sampling)
			continue;
		struct ps_total *value = &values[nr++];
		*value = (struct ps_total){ .name = source->label };
		if (!is_region_counter(source) || counter == PS_MAX_COUNTERS)
			continue;
		const struct ps_counter_reading *counted = &sums->counted[counter];
		value->value = counted->value;
		value->enabled_ns = counted->enabled_ns;
		value->running_ns = counted->running_ns;
		value->is_valid = !(sums->invalid >> counter & 1);
		counter++;
	}
	return nr;
}

/** A PerfEventTotals of @sums, with each counter of the run; @open passes go on. New reference, or NULL with an exception set. */
static PyObject *make_totals(const struct ps_program_regions *regions, PyObject *module,
			     const struct ps_region_sums *sums, uint64_t open)
{
	_cleanup_free_ struct ps_total *values =
		calloc(regions->sources->nr_sources + 1, sizeof(*values));
	if (!values)
		return PyErr_NoMemory();
	size_t nr = fill_values(regions->sources, sums, values);
	struct ps_totals_head head = {
		.calls = sums->calls,
		.incomplete = sums->incomplete,
		.open = open,
		.seconds = sums->elapsed_ns / 1e9,
	};
	return ps_totals_create(module, &head, values, nr);
}

_Static_assert(PS_MAX_COUNTERS == 16, "as reason_of() says");

/** Why counter @index of those that regions count, or what @source is in place of one, has no value; NULL: it has. */
static const char *reason_of(const struct ps_program_regions *regions,
			     const struct ps_source *source, size_t index)
{
	if (source->is_missing)
		return source->missing_reason;
	if (!is_region_counter(source))
		return "not a counter that threads can have in regions";
	if (index >= PS_MAX_COUNTERS)
		return "regions count the first 16 counters";
	return ps_region_table_reason(regions->table, index);
}

void *ps_program_regions_make_reasons(const struct ps_program_regions *regions)
{
	_cleanup_pydecref_ PyObject *reasons = PyDict_New();
	size_t index = 0;
	for (size_t i = 0; reasons && i < ps_sources_nr_shown(regions->sources); i++) {
		const struct ps_source *source = regions->sources->sources[i];
		if (source->is_sampling)
			continue;
		const char *reason = reason_of(regions, source, index);
		index += is_region_counter(source);
		_cleanup_pydecref_ PyObject *text = reason ? PyUnicode_FromString(reason) : NULL;
		if (reason && (!text || PyDict_SetItemString(reasons, source->label, text) < 0))
			return NULL;
	}
	return_ptr(reasons);
}

void *ps_program_regions_make_events(const struct ps_program_regions *regions)
{
	_cleanup_pydecref_ PyObject *events = PyList_New(0);
	for (size_t i = 0; events && i < ps_sources_nr_shown(regions->sources); i++) {
		const struct ps_source *source = regions->sources->sources[i];
		if (source->is_sampling)
			continue;
		_cleanup_pydecref_ PyObject *label = PyUnicode_FromString(source->label);
		if (!label || PyList_Append(events, label) < 0)
			return NULL;
	}
	return events ? PyList_AsTuple(events) : NULL;
}

/** @name, or with "#2" behind it where @dict has one that counts in another way. New reference. */
static PyObject *find_free_name(PyObject *dict, const char *name)
{
	PyObject *text = PyUnicode_DecodeUTF8(name, strlen(name), "surrogateescape");
	for (unsigned int number = 2; text; number++) {
		int is_taken = PyDict_Contains(dict, text);
		if (!is_taken)
			return text;
		Py_DECREF(text);
		_cleanup_free_ char *numbered = NULL;
		if (is_taken < 0)
			return NULL;
		if (asprintf(&numbered, "%s#%u", name, number) < 0) {
			numbered = NULL;
			return PyErr_NoMemory();
		}
		text = PyUnicode_DecodeUTF8(numbered, strlen(numbered), "surrogateescape");
	}
	return NULL;
}

static bool add(const struct ps_program_regions *regions, PyObject *module, PyObject *dict,
		const char *name, const struct ps_region_sums *sums, uint64_t open)
{
	_cleanup_pydecref_ PyObject *key = find_free_name(dict, name);
	_cleanup_pydecref_ PyObject *totals = key ? make_totals(regions, module, sums, open) : NULL;
	return totals && PyDict_SetItem(dict, key, totals) == 0;
}

/** The dict of @total's name in @dict, made where there is none. @names: to the keys in @dict. Borrowed, or NULL with an exception set. */
static PyObject *threads_of(PyObject *names, PyObject *dict, const struct ps_region_total *total)
{
	_cleanup_pydecref_ PyObject *name = PyBytes_FromString(total->name);
	PyObject *threads = name ? PyDict_GetItemWithError(names, name) : NULL; // borrowed
	if (threads || PyErr_Occurred())
		return threads;
	_cleanup_pydecref_ PyObject *key = find_free_name(dict, total->name);
	_cleanup_pydecref_ PyObject *empty = key ? PyDict_New() : NULL;
	if (!empty || PyDict_SetItem(dict, key, empty) < 0 ||
	    PyDict_SetItem(names, name, empty) < 0)
		return NULL;
	return empty; // @dict has it
}

static bool add_threads(const struct ps_program_regions *regions, PyObject *module, PyObject *dict,
			const struct ps_region_total *totals, size_t nr)
{
	_cleanup_pydecref_ PyObject *names = PyDict_New();
	for (size_t i = 0; names && i < nr; i++) {
		PyObject *threads = threads_of(names, dict, &totals[i]); // borrowed
		_cleanup_pydecref_ PyObject *tid = threads ? PyLong_FromLong(totals[i].tid) : NULL;
		_cleanup_pydecref_ PyObject *object =
			tid ? make_totals(regions, module, &totals[i].sums, 0) : NULL;
		if (!object || PyDict_SetItem(threads, tid, object) < 0)
			return false;
	}
	return names;
}

/** What @name had when the last interval ended; NULL: nothing. Names keep their order, so @hint is mostly its place. */
static const struct ps_region_sums *find_last(const struct ps_program_regions *regions,
					      const char *name, size_t hint)
{
	if (hint < regions->nr_last && !strcmp(regions->last[hint].name, name))
		return &regions->last[hint].sums;
	for (size_t i = 0; i < regions->nr_last; i++) {
		if (!strcmp(regions->last[i].name, name))
			return &regions->last[i].sums;
	}
	return NULL;
}

static struct ps_region_sums sums_between(const struct ps_region_sums *before,
					  const struct ps_region_sums *now)
{
	struct ps_region_sums sums = *now;
	if (!before)
		return sums;
	sums.calls -= before->calls;
	sums.incomplete -= before->incomplete;
	sums.elapsed_ns -= before->elapsed_ns;
	for (size_t i = 0; i < PS_MAX_COUNTERS; i++) {
		sums.counted[i].value -= before->counted[i].value;
		sums.counted[i].enabled_ns -= before->counted[i].enabled_ns;
		sums.counted[i].running_ns -= before->counted[i].running_ns;
	}
	return sums;
}

/** The totals as an array that the caller frees; false with an exception set. */
static bool read_table(const struct ps_program_regions *regions, bool by_thread, bool at_end,
		       struct ps_region_total **ret, size_t *ret_nr)
{
	_cleanup_error_ struct ps_error *error =
		ps_region_table_read(regions->table, by_thread, at_end, ret, ret_nr);
	if (error)
		PyErr_SetString(PyExc_MemoryError, error->message);
	return !error;
}

bool ps_program_regions_add_interval(struct ps_program_regions *regions, void *module, void *dict)
{
	struct ps_region_total *now;
	size_t nr;
	if (!regions->table)
		return true;
	if (!read_table(regions, false, false, &now, &nr))
		return false;
	bool is_added = true;
	for (size_t i = 0; is_added && i < nr; i++) {
		struct ps_region_sums sums =
			sums_between(find_last(regions, now[i].name, i), &now[i].sums);
		is_added = add(regions, module, dict, now[i].name, &sums, now[i].open);
	}
	free(regions->last);
	regions->last = now;
	regions->nr_last = nr;
	return is_added;
}

bool ps_program_regions_add_whole(const struct ps_program_regions *regions, void *module,
				  void *dict, bool by_thread, bool at_end)
{
	_cleanup_free_ struct ps_region_total *now = NULL;
	size_t nr;
	if (!regions->table)
		return true;
	if (!read_table(regions, by_thread, at_end, &now, &nr))
		return false;
	if (by_thread)
		return add_threads(regions, module, dict, now, nr);
	bool is_added = true;
	for (size_t i = 0; is_added && i < nr; i++)
		is_added = add(regions, module, dict, now[i].name, &now[i].sums, now[i].open);
	return is_added;
}
