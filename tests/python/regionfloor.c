// SPDX-License-Identifier: MIT
/**
 * The floor of an empty region: one read() of the same group of counters at each end, in C, in the thread that asks.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <perfscope/counter.h>
#include <time.h>

static int64_t thread_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/** pass_ns(fd, nr): CPU time of @nr passes, ns for each. */
static PyObject *pass_ns(PyObject *module, PyObject *args)
{
	int fd, nr;
	if (!PyArg_ParseTuple(args, "ii", &fd, &nr))
		return NULL;
	uint64_t data[3 + PS_MAX_COUNTERS];
	int64_t start_ns = thread_ns();
	for (int i = 0; i < 2 * nr; i++) {
		if (read(fd, data, sizeof(data)) < 0)
			return PyErr_SetFromErrno(PyExc_OSError);
	}
	return PyFloat_FromDouble((double)(thread_ns() - start_ns) / nr);
}

static PyMethodDef methods[] = {
	{ "pass_ns", pass_ns, METH_VARARGS, NULL },
	{ NULL },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "regionfloor",
	.m_methods = methods,
};

PyMODINIT_FUNC PyInit_regionfloor(void)
{
	return PyModule_Create(&definition);
}
