// SPDX-License-Identifier: MIT
#include <perfscope/python_types.h>

static const char doc[] =
	"Counters of the calling thread, as a group: names of the module perfscope.";

// What `perfscope.perf_events` offers: names of the module itself.
static const char *const names[] = { "EVENTS",		"PerfEventError",  "PerfEventGroup",
				     "PerfEventTotals", "validate_events", NULL };

static int fill(PyObject *module, PyObject *submodule)
{
	_cleanup_pydecref_ PyObject *all = PyList_New(0);
	for (const char *const *name = names; all && *name; name++) {
		_cleanup_pydecref_ PyObject *value = PyObject_GetAttrString(module, *name);
		_cleanup_pydecref_ PyObject *text = PyUnicode_FromString(*name);
		if (!value || PyObject_SetAttrString(submodule, *name, value) < 0 || !text ||
		    PyList_Append(all, text) < 0)
			return -1;
	}
	// help() shows what a module has from elsewhere only where it is listed.
	return all ? PyObject_SetAttrString(submodule, "__all__", all) : -1;
}

int ps_perf_events_add(PyObject *module)
{
	_cleanup_pydecref_ PyObject *submodule = PyModule_New("perfscope.perf_events");
	if (!submodule || PyModule_SetDocString(submodule, doc) < 0 ||
	    fill(module, submodule) < 0 ||
	    PyObject_SetAttrString(module, "perf_events", submodule) < 0)
		return -1;
	// There an import looks once `perfscope` itself is imported, which is no package.
	return PyDict_SetItemString(PyImport_GetModuleDict(), "perfscope.perf_events", submodule);
}
