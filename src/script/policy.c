// SPDX-License-Identifier: MIT
#include <perfscope/log.h>
#include <perfscope/policy.h>
#include <poll.h>

bool ps_policy_init(struct ps_policy *policy, bool stop_on_error)
{
	*policy = (struct ps_policy){ .stop_on_error = stop_on_error, .seen = PyDict_New() };
	return policy->seen != NULL;
}

void ps_policy_deinit(struct ps_policy *policy)
{
	Py_CLEAR(policy->seen);
}

/** Nobody reads stdout any more (`| head`). */
static bool is_stdout_broken(void)
{
	struct pollfd pollfd = { .fd = STDOUT_FILENO };
	return poll(&pollfd, 1, 0) == 1 && pollfd.revents & (POLLERR | POLLHUP);
}

/** The exit status that SystemExit with @code asks for; its message goes to stderr. Both as Python itself does. */
static int status_of_code(PyObject *code)
{
	if (!code || code == Py_None)
		return 0;
	if (PyLong_Check(code)) {
		int overflow;
		long status = PyLong_AsLongAndOverflow(code, &overflow);
		return overflow ? 0xff : status & 0xff;
	}
	PyObject *file = PySys_GetObject("stderr"); // borrowed
	if (file && file != Py_None && !PyFile_WriteObject(code, file, Py_PRINT_RAW))
		PyFile_WriteString("\n", file);
	PyErr_Clear();
	return 1;
}

static void take_exit(struct ps_policy *policy)
{
	PyObject *type, *value, *traceback;
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	_cleanup_pydecref_ PyObject *code = value ? PyObject_GetAttrString(value, "code") : NULL;
	PyErr_Clear();
	policy->is_exit = true;
	policy->exit_status = status_of_code(code);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
}

bool ps_policy_take_end(struct ps_policy *policy)
{
	if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
		PyErr_Clear();
		policy->is_interrupted = true;
	} else if (PyErr_ExceptionMatches(PyExc_BrokenPipeError) && is_stdout_broken()) {
		PyErr_Clear();
	} else if (PyErr_ExceptionMatches(PyExc_SystemExit)) {
		take_exit(policy);
	} else {
		return false;
	}
	policy->is_over = true;
	return true;
}

/** (function, file, line) of where @traceback ends. New reference, NULL with an exception set. */
static PyObject *place_of(const char *name, PyObject *traceback)
{
	_cleanup_pydecref_ PyObject *at = traceback;
	Py_XINCREF(at);
	PyObject *next;
	while (at && (next = PyObject_GetAttrString(at, "tb_next"))) {
		if (next == Py_None) {
			Py_DECREF(next);
			break;
		}
		Py_DECREF(at);
		at = next;
	}
	_cleanup_pydecref_ PyObject *line = at ? PyObject_GetAttrString(at, "tb_lineno") : NULL;
	_cleanup_pydecref_ PyObject *frame = line ? PyObject_GetAttrString(at, "tb_frame") : NULL;
	_cleanup_pydecref_ PyObject *code = frame ? PyObject_GetAttrString(frame, "f_code") : NULL;
	_cleanup_pydecref_ PyObject *file =
		code ? PyObject_GetAttrString(code, "co_filename") : NULL;
	PyErr_Clear();
	return Py_BuildValue("(sOO)", name, file ? file : Py_None, line ? line : Py_None);
}

/** Count one more at @place; whether it is the first there. */
static bool count_place(struct ps_policy *policy, PyObject *place)
{
	PyObject *before = place ? PyDict_GetItemWithError(policy->seen, place) : NULL;
	unsigned long long count = before ? PyLong_AsUnsignedLongLong(before) : 0;
	_cleanup_pydecref_ PyObject *now = PyLong_FromUnsignedLongLong(count + 1);
	if (place && now)
		PyDict_SetItem(policy->seen, place, now);
	PyErr_Clear();
	return count == 0;
}

static void take_other(struct ps_policy *policy, const char *name)
{
	PyObject *type, *value, *traceback;
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	if (traceback)
		PyException_SetTraceback(value, traceback);
	_cleanup_pydecref_ PyObject *place = place_of(name, traceback);
	PyErr_Clear();
	policy->nr_raised++;
	bool is_first = count_place(policy, place);
	if (policy->stop_on_error)
		policy->is_over = true;
	if (!is_first) {
		policy->nr_quiet++;
		Py_XDECREF(type);
		Py_XDECREF(value);
		Py_XDECREF(traceback);
		return;
	}
	PyErr_Restore(type, value, traceback);
	struct ps_error *error = ps_python_take_error(name);
	ps_log_error(PS_LOG_ERROR, error);
	ps_error_destroy(error);
}

void ps_policy_take(struct ps_policy *policy, const char *name)
{
	if (!ps_policy_take_end(policy))
		take_other(policy, name);
}

void ps_policy_flush(struct ps_policy *policy)
{
	PyObject *file = PySys_GetObject("stdout"); // borrowed
	if (!file || file == Py_None)
		return;
	_cleanup_pydecref_ PyObject *result = PyObject_CallMethod(file, "flush", NULL);
	if (!result)
		ps_policy_take(policy, "sys.stdout.flush");
}

void ps_policy_report(const struct ps_policy *policy)
{
	if (!policy->nr_raised)
		return;
	ps_log(PS_LOG_ERROR, "the script raised %llu exception%s; %llu shown above",
	       (unsigned long long)policy->nr_raised, policy->nr_raised == 1 ? "" : "s",
	       (unsigned long long)(policy->nr_raised - policy->nr_quiet));
}
