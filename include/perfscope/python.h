// SPDX-License-Identifier: MIT
/**
 * The module `perfscope` as the rooms to its right use it: wrap a record as a PerfEvent, make totals.
 */
#ifndef PERFSCOPE_PYTHON_H
#define PERFSCOPE_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <perfscope/cleanup.h>
#include <perfscope/passes.h>
#include <perfscope/record.h>
#include <perfscope/lookup.h>
#include <perfscope/region_table.h>

/** A guard for a reference that a local variable owns. */
static inline void ps_pydecref_p(void *object)
{
	Py_XDECREF(*(PyObject **)object);
}
#define _cleanup_pydecref_ _cleanup_(ps_pydecref_p)

PyMODINIT_FUNC PyInit_perfscope(void);

/** What the module's functions do while a session runs. All are called with the GIL. */
struct ps_host {
	void *argument;
	struct ps_lookup lookup;
	void (*stop)(void *argument);	    // perfscope.stop()
	void (*print_stat)(void *argument); // perfscope.print_stat()
	struct ps_region_table *regions;    // of the run, borrowed; NULL: none
	// Where there are regions: what regions() returns, names of counters, and {counter: why it has no value}. New references.
	PyObject *(*make_regions)(void *argument, bool by_thread);
	PyObject *(*make_region_events)(void *argument);
	PyObject *(*make_region_reasons)(void *argument);
};

/** Set or, with NULL, clear the host of @module (borrowed by it until cleared). */
void ps_python_set_host(PyObject *module, const struct ps_host *host);

/**
 * The type of @source's events. @streams of a group give the names of `_counters`.
 *
 * New reference, or NULL with an exception set. It owns what it needs of @source.
 */
PyObject *ps_event_type_create(PyObject *module, const struct ps_session *session,
			       const struct ps_source *source);

/**
 * Learn the ids that the counters of @source's group have now, beside those they had: a CPU that came back gives new
 * ones. 0, or -1 with an exception set.
 */
int ps_event_type_name_counters(PyObject *event_type, const struct ps_session *session,
				const struct ps_source *source);

/** Wall clock minus the session's clock, for `_realtime` of events of this type, ns. */
void ps_event_type_set_realtime_offset(PyObject *event_type, int64_t offset_ns);

/** A PerfEvent that borrows @record. New reference, or NULL with an exception set. */
PyObject *ps_event_wrap(PyObject *event_type, const struct ps_record *record);

/**
 * Give up @event (steals it): back to the freelist, or, where the script kept it, with a copy of its record.
 */
void ps_event_release(PyObject *event);

/** One counter of a PerfEventTotals. */
struct ps_total {
	const char *name;
	uint64_t value;
	uint64_t enabled_ns, running_ns;
	bool is_valid; // false: reads None
};

/** What a PerfEventTotals says beside its counters. */
struct ps_totals_head {
	uint64_t calls, incomplete, open;
	double seconds;
};

/** A PerfEventTotals. New reference, or NULL with an exception set. */
PyObject *ps_totals_create(PyObject *module, const struct ps_totals_head *head,
			   const struct ps_total *totals, size_t nr);

/** What a RegionPass is made of. */
struct ps_region_pass {
	PyObject *name;	    // str
	PyObject *counters; // tuple of str, in the order of the pass's counters
	const struct ps_pass *pass;
	const char *comm;    // PS_COMM_SIZE bytes, or NULL: not known
	uint64_t begin, end; // as the script is shown them
};

/** A RegionPass. It borrows nothing. New reference, or NULL with an exception set. */
PyObject *ps_region_pass_create(PyObject *module, const struct ps_region_pass *given);

/** Take the current exception as an error with its traceback as detail; the exception is cleared. */
struct ps_error *ps_python_take_error(const char *what);

#endif
