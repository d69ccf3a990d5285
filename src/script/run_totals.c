// SPDX-License-Identifier: MIT
#include <perfscope/run_totals.h>

#include <perfscope/monotonic.h>

struct ps_error *ps_run_totals_init(struct ps_run_totals *totals, const struct ps_session *session)
{
	size_t nr = session->sources->nr_sources;
	*totals = (struct ps_run_totals){ .session = session };
	totals->start = calloc(nr + 1, sizeof(*totals->start));
	totals->last = calloc(nr + 1, sizeof(*totals->last));
	return totals->start && totals->last ? NULL : &ps_enomem;
}

void ps_run_totals_deinit(struct ps_run_totals *totals)
{
	free(totals->start);
	free(totals->last);
	totals->start = totals->last = NULL;
}

void ps_run_totals_begin(struct ps_run_totals *totals)
{
	ps_session_count_all(totals->session, totals->start);
	memcpy(totals->last, totals->start,
	       totals->session->sources->nr_sources * sizeof(*totals->last));
	totals->start_ns = totals->last_ns = ps_monotonic_ns();
}

/** {"run": PerfEventTotals} of what was counted between @before and @now. */
static PyObject *totals_between(const struct ps_run_totals *totals, PyObject *module,
				const struct ps_count *before, const struct ps_count *now,
				uint64_t elapsed_ns)
{
	const struct ps_source_list *sources = totals->session->sources;
	_cleanup_free_ struct ps_total *values =
		calloc(ps_sources_nr_shown(sources) + 1, sizeof(*values));
	if (!values)
		return PyErr_NoMemory();
	for (size_t i = 0; i < ps_sources_nr_shown(sources); i++) {
		struct ps_count count = ps_count_between(&before[i], &now[i]);
		values[i] = (struct ps_total){
			.name = sources->sources[i]->label,
			.value = count.value,
			.enabled_ns = count.enabled_ns,
			.running_ns = count.running_ns,
			.is_valid = count.is_valid,
		};
	}
	struct ps_totals_head head = { .calls = 1, .seconds = elapsed_ns / 1e9 };
	_cleanup_pydecref_ PyObject *run =
		ps_totals_create(module, &head, values, ps_sources_nr_shown(sources));
	return run ? Py_BuildValue("{sO}", "run", run) : NULL;
}

PyObject *ps_run_totals_interval(struct ps_run_totals *totals, PyObject *module)
{
	size_t nr = totals->session->sources->nr_sources;
	_cleanup_free_ struct ps_count *now = calloc(nr + 1, sizeof(*now));
	if (!now)
		return PyErr_NoMemory();
	ps_session_count_all(totals->session, now);
	uint64_t now_ns = ps_monotonic_ns();
	PyObject *result =
		totals_between(totals, module, totals->last, now, now_ns - totals->last_ns);
	memcpy(totals->last, now, nr * sizeof(*now));
	totals->last_ns = now_ns;
	return result;
}

PyObject *ps_run_totals_whole(struct ps_run_totals *totals, PyObject *module)
{
	size_t nr = totals->session->sources->nr_sources;
	_cleanup_free_ struct ps_count *now = calloc(nr + 1, sizeof(*now));
	if (!now)
		return PyErr_NoMemory();
	ps_session_count_all(totals->session, now);
	return totals_between(totals, module, totals->start, now,
			      ps_monotonic_ns() - totals->start_ns);
}
