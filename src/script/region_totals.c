// SPDX-License-Identifier: MIT
#include <perfscope/region_totals.h>

#include <string.h>

/** A region's sums as one row of numbers. */
enum { ROW_CALLS, ROW_INCOMPLETE, ROW_ELAPSED_NS, ROW_COUNTS };

static size_t nr_counts(const struct ps_region_totals *totals)
{
	return PS_PASS_NR_TIMES + ps_boundaries_nr_counters(totals->boundaries);
}

static size_t row_size(const struct ps_region_totals *totals)
{
	return ROW_COUNTS + nr_counts(totals);
}

struct ps_error *ps_region_totals_init(struct ps_region_totals *totals,
				       const struct ps_boundaries *boundaries,
				       const struct ps_region_spec_list *regions)
{
	*totals = (struct ps_region_totals){ boundaries, regions, NULL, { 0 } };
	if (!boundaries)
		return NULL;
	totals->last = calloc(regions->nr_regions * row_size(totals) + 1, sizeof(*totals->last));
	return totals->last ? NULL : &ps_enomem;
}

void ps_region_totals_deinit(struct ps_region_totals *totals)
{
	free(totals->last);
	totals->last = NULL;
}

static void read_row(const struct ps_region_totals *totals, size_t region, uint64_t *ret)
{
	const struct ps_pass_sums *sums = ps_boundaries_sums(totals->boundaries, region);
	ret[ROW_CALLS] = sums->calls;
	ret[ROW_INCOMPLETE] = sums->incomplete;
	ret[ROW_ELAPSED_NS] = sums->elapsed_ns;
	memcpy(ret + ROW_COUNTS, sums->counts, nr_counts(totals) * sizeof(*ret));
}

/** A PerfEventTotals of @row, in a time told by @count. New reference, or NULL with an exception set. */
static PyObject *make_totals(const struct ps_region_totals *totals, PyObject *module, size_t region,
			     const uint64_t *row, const struct ps_count *count)
{
	size_t nr = ps_boundaries_nr_counters(totals->boundaries);
	uint64_t invalid = ps_boundaries_sums(totals->boundaries, region)->invalid;
	_cleanup_free_ struct ps_total *values = calloc(nr + 1, sizeof(*values));
	if (!values)
		return PyErr_NoMemory();
	for (size_t i = 0; i < nr; i++) {
		const struct ps_source *source = ps_boundaries_counter(totals->boundaries, i);
		values[i] = (struct ps_total){
			.name = source->label,
			.value = row[ROW_COUNTS + PS_PASS_NR_TIMES + i],
			.enabled_ns = count->enabled_ns,
			.running_ns = count->running_ns,
			.is_valid = !source->is_missing && !(invalid >> i & 1),
		};
	}
	struct ps_totals_head head = {
		.calls = row[ROW_CALLS],
		.incomplete = row[ROW_INCOMPLETE],
		.open = ps_boundaries_sums(totals->boundaries, region)->open,
		.seconds = row[ROW_ELAPSED_NS] / 1e9,
	};
	return ps_totals_create(module, &head, values, nr);
}

/** New reference: what @region counted, since @last where that is given, in a time told by @count. */
static PyObject *make_region(struct ps_region_totals *totals, PyObject *module, size_t region,
			     const struct ps_count *count, uint64_t *last)
{
	size_t size = row_size(totals);
	_cleanup_free_ uint64_t *row = calloc(size, sizeof(*row));
	_cleanup_free_ uint64_t *now = calloc(size, sizeof(*now));
	if (!row || !now)
		return PyErr_NoMemory();
	read_row(totals, region, now);
	for (size_t i = 0; i < size; i++)
		row[i] = now[i] - (last ? last[i] : 0);
	if (last)
		memcpy(last, now, size * sizeof(*last));
	return make_totals(totals, module, region, row, count);
}

static bool add_region(struct ps_region_totals *totals, PyObject *module, PyObject *dict,
		       size_t region, const struct ps_count *count, uint64_t *last)
{
	_cleanup_pydecref_ PyObject *object = make_region(totals, module, region, count, last);
	const char *name = totals->regions->regions[region].name;
	return object && PyDict_SetItemString(dict, name, object) == 0;
}

bool ps_region_totals_add_interval(struct ps_region_totals *totals, PyObject *module,
				   PyObject *dict)
{
	if (!totals->boundaries)
		return true;
	struct ps_count now, count;
	ps_boundaries_count(totals->boundaries, &now);
	count = ps_count_between(&totals->last_count, &now);
	totals->last_count = now;
	for (size_t i = 0; i < totals->regions->nr_regions; i++) {
		uint64_t *last = totals->last + i * row_size(totals);
		if (!add_region(totals, module, dict, i, &count, last))
			return false;
	}
	return true;
}

/** All threads together, under 0: passes are matched by thread, and not added up by it. */
static bool add_threads(struct ps_region_totals *totals, PyObject *module, PyObject *dict,
			size_t region, const struct ps_count *count)
{
	_cleanup_pydecref_ PyObject *object = make_region(totals, module, region, count, NULL);
	_cleanup_pydecref_ PyObject *threads = object ? Py_BuildValue("{iO}", 0, object) : NULL;
	const char *name = totals->regions->regions[region].name;
	return threads && PyDict_SetItemString(dict, name, threads) == 0;
}

bool ps_region_totals_add_whole(struct ps_region_totals *totals, PyObject *module, PyObject *dict,
				bool by_thread)
{
	if (!totals->boundaries)
		return true;
	struct ps_count count;
	ps_boundaries_count(totals->boundaries, &count);
	for (size_t i = 0; i < totals->regions->nr_regions; i++) {
		if (by_thread ? !add_threads(totals, module, dict, i, &count)
			      : !add_region(totals, module, dict, i, &count, NULL))
			return false;
	}
	return true;
}
