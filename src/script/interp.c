// SPDX-License-Identifier: MIT
#include "venv.h"

#include <errno.h>
#include <fcntl.h>
#include <perfscope/log.h>
#include <perfscope/python.h>
#include <perfscope/script.h>
#include <signal.h>
#include <string.h>

#define STRING_(text) #text
#define STRING(text) STRING_(text)
#define BUILT_WITH STRING(PY_MAJOR_VERSION) "." STRING(PY_MINOR_VERSION)

static int finish_status;
static volatile sig_atomic_t is_ending; // no script code is left that could be interrupted

const char *ps_interp_version(void)
{
	static char version[32];
	const char *full = Py_GetVersion();
	snprintf(version, sizeof(version), "%.*s", (int)strcspn(full, " "), full);
	return version;
}

/** The loader may have found another library than the one that this was compiled for. */
static struct ps_error *check_library(void)
{
	const char *version = ps_interp_version();
	size_t length = strlen(BUILT_WITH);
	if (!strncmp(version, BUILT_WITH, length) && version[length] == '.')
		return NULL;
	return ps_error_format(PS_ERROR_UNSUPPORTED,
			       "built with Python " BUILT_WITH ", but the libpython found is %s "
			       "(look at LD_LIBRARY_PATH, or build again)",
			       version);
}

/**
 * The program that Python takes itself for: its prefix and its site-packages follow from where that lies.
 *
 * In a virtual environment the standard library stays that of the build: the environment may come from another Python
 * of the same version, whose library needs its own libpython.
 */
static PyStatus set_program(PyConfig *config, const char *venv_executable)
{
	if (!venv_executable)
		return PyConfig_SetBytesString(config, &config->program_name, PS_PYTHON_EXECUTABLE);
	PyStatus status = PyConfig_SetBytesString(config, &config->program_name, venv_executable);
	if (!PyStatus_Exception(status) && !getenv("PYTHONHOME"))
		status = PyConfig_SetBytesString(config, &config->home, PS_PYTHON_HOME);
	return status;
}

static PyStatus initialize(int nr, char **arguments, const char *venv_executable)
{
	PyConfig config;
	PyConfig_InitPythonConfig(&config);
	config.parse_argv = 0;
	// SIGINT's handler raises KeyboardInterrupt, SIGPIPE is ignored: both as in Python.
	config.install_signal_handlers = 1;
	PyStatus status = PyConfig_SetBytesArgv(&config, nr, arguments);
	if (!PyStatus_Exception(status))
		status = set_program(&config, venv_executable);
	// Names of the kernel that are not UTF-8 are printed as the bytes that they are.
	if (!PyStatus_Exception(status) && !getenv("PYTHONIOENCODING"))
		status = PyConfig_SetBytesString(&config, &config.stdio_errors, "surrogateescape");
	if (!PyStatus_Exception(status))
		status = Py_InitializeFromConfig(&config);
	PyConfig_Clear(&config);
	return status;
}

/** Flush @name of sys. False, with the exception set, where that fails. */
static bool flush(const char *name)
{
	PyObject *file = PySys_GetObject(name); // borrowed
	if (!file || file == Py_None)
		return true;
	Py_INCREF(file);
	PyObject *closed = PyObject_GetAttrString(file, "closed");
	PyErr_Clear();
	bool is_open = closed != Py_True;
	Py_XDECREF(closed);
	PyObject *result = is_open ? PyObject_CallMethod(file, "flush", NULL) : NULL;
	Py_XDECREF(result);
	Py_DECREF(file);
	return result || !is_open;
}

/** What is still in the buffer goes nowhere, so that Python does not complain of it once more. */
static void discard_stdout(void)
{
	_cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null >= 0)
		dup2(null, STDOUT_FILENO);
}

/**
 * Take SIGINT from Python, which would give it its default back when it ends: one that comes late would then end the
 * process. Ours stays as it is.
 */
static void disown_interrupt(void)
{
	sigset_t interrupt, before;
	struct sigaction ours;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	pthread_sigmask(SIG_BLOCK, &interrupt, &before);
	sigaction(SIGINT, NULL, &ours);
	PyObject *signal = PyImport_ImportModule("_signal");
	PyObject *handler = signal ? PyObject_GetAttrString(signal, "SIG_DFL") : NULL;
	PyObject *result =
		handler ? PyObject_CallMethod(signal, "signal", "iO", SIGINT, handler) : NULL;
	PyErr_Clear(); // it stays Python's: as it would have been
	Py_XDECREF(result);
	Py_XDECREF(handler);
	Py_XDECREF(signal);
	sigaction(SIGINT, &ours, NULL);
	is_ending = true;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/** Registered with atexit before the script can register anything: runs last, all threads joined. */
static PyObject *flush_at_exit(PyObject *self, PyObject *unused)
{
	if (!flush("stdout")) {
		struct ps_error *error = NULL;
		if (!PyErr_ExceptionMatches(PyExc_BrokenPipeError))
			error = ps_python_take_error("write to stdout");
		PyErr_Clear();
		if (error) {
			ps_log(PS_LOG_ERROR, "%s", error->message);
			finish_status = 1;
		}
		ps_error_destroy(error);
		discard_stdout();
	}
	if (!flush("stderr"))
		PyErr_Clear();
	disown_interrupt();
	Py_RETURN_NONE;
}

static bool register_flush(void)
{
	static PyMethodDef method = { "flush_at_exit", flush_at_exit, METH_NOARGS, NULL };
	PyObject *function = PyCFunction_New(&method, NULL);
	PyObject *atexit = function ? PyImport_ImportModule("atexit") : NULL;
	PyObject *result = atexit ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
	Py_XDECREF(result);
	Py_XDECREF(atexit);
	Py_XDECREF(function);
	return result;
}

/**
 * Let ps_interp_interrupt work where SIGINT came ignored (a job in a shell's background): Python then sets no handler
 * of its own. The signal itself stays ignored.
 */
static bool ensure_interrupt(const struct sigaction *before)
{
	if (before->sa_handler != SIG_IGN)
		return true;
	PyObject *signal = PyImport_ImportModule("_signal");
	PyObject *handler = signal ? PyObject_GetAttrString(signal, "default_int_handler") : NULL;
	PyObject *result =
		handler ? PyObject_CallMethod(signal, "signal", "iO", SIGINT, handler) : NULL;
	Py_XDECREF(result);
	Py_XDECREF(handler);
	Py_XDECREF(signal);
	sigaction(SIGINT, before, NULL);
	return result;
}

static struct ps_error *cannot_start(const PyStatus *status)
{
	struct ps_error *error =
		ps_error_format(PS_ERROR_UNSUPPORTED, "start Python %s: %s%s%s", BUILT_WITH,
				status->func ? status->func : "", status->func ? ": " : "",
				status->err_msg ? status->err_msg : "it asked to exit");
	const char *home = getenv("PYTHONHOME");
	return home && *home ? ps_error_hint(error, "PYTHONHOME is %s: unset it", home) : error;
}

struct ps_error *ps_interp_start(int nr, char **arguments)
{
	struct ps_error *error = check_library();
	if (error)
		return error;
	_cleanup_free_ char *venv_executable = NULL;
	error = ps_venv_executable(BUILT_WITH, &venv_executable);
	if (error)
		return error;
	struct sigaction interrupt;
	sigaction(SIGINT, NULL, &interrupt);
	if (PyImport_AppendInittab("perfscope", PyInit_perfscope) < 0)
		return &ps_enomem;
	PyStatus status = initialize(nr, arguments, venv_executable);
	if (PyStatus_Exception(status))
		return cannot_start(&status);
	if (!register_flush() || !ensure_interrupt(&interrupt))
		return ps_python_take_error("start Python " BUILT_WITH);
	return NULL;
}

int ps_interp_finish(void)
{
	if (!Py_IsInitialized())
		return 0;
	return Py_FinalizeEx() < 0 ? 1 : finish_status;
}

void *ps_interp_release(void)
{
	return PyEval_SaveThread();
}

void ps_interp_acquire(void *state)
{
	PyEval_RestoreThread(state);
}

void ps_interp_interrupt(void)
{
	if (!is_ending)
		PyErr_SetInterrupt();
}
