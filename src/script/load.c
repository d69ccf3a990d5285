// SPDX-License-Identifier: MIT
/**
 * Import the script: as `python script.py` does, but under its own name instead of `__main__`.
 *
 * A function called `__init__` or `__exit__` belongs to the module then, and what the script pickles can be found by the
 * module's name. `if __name__ == "__main__":` is not taken, so that one file can be both a script and a program.
 */
#include "location.h"

#include <perfscope/binding.h>
#include <perfscope/log.h>
#include <perfscope/policy.h>
#include <string.h>

#define IMPORTLIB "_frozen_importlib"
#define IMPORTLIB_EXTERNAL "_frozen_importlib_external"

/** Take the frames of the import system from the head of the current exception's traceback. */
static void trim_traceback(void)
{
	PyObject *type, *value, *traceback;
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	while (traceback && traceback != Py_None) {
		_cleanup_pydecref_ PyObject *frame = PyObject_GetAttrString(traceback, "tb_frame");
		_cleanup_pydecref_ PyObject *code =
			frame ? PyObject_GetAttrString(frame, "f_code") : NULL;
		_cleanup_pydecref_ PyObject *file =
			code ? PyObject_GetAttrString(code, "co_filename") : NULL;
		const char *name = file ? PyUnicode_AsUTF8(file) : NULL;
		if (!name || strncmp(name, "<frozen importlib", strlen("<frozen importlib")))
			break;
		PyObject *next = PyObject_GetAttrString(traceback, "tb_next");
		Py_SETREF(traceback, next);
	}
	PyErr_Clear();
	if (traceback == Py_None)
		Py_CLEAR(traceback);
	if (value && PyExceptionInstance_Check(value) && traceback)
		PyException_SetTraceback(value, traceback);
	else if (value && PyExceptionInstance_Check(value))
		PyException_SetTraceback(value, Py_None);
	PyErr_Restore(type, value, traceback);
}

/** Where the modules of the script's folder, or of the current one for a module name, are found first. */
static bool add_to_path(const struct ps_location *location)
{
	PyObject *flags = PySys_GetObject("flags"); // borrowed
	_cleanup_pydecref_ PyObject *safe =
		flags ? PyObject_GetAttrString(flags, "safe_path") : NULL;
	PyErr_Clear(); // before 3.11 there is none
	if (safe && PyObject_IsTrue(safe))
		return true;
	// Behind symbolic links, as Python does.
	_cleanup_free_ char *folder =
		location->path ? realpath(location->path, NULL) : getcwd(NULL, 0);
	if (!folder)
		folder = strdup(location->path ? location->path : "");
	char *slash = folder && location->path ? strrchr(folder, '/') : NULL;
	if (slash)
		slash[slash == folder] = 0;
	_cleanup_pydecref_ PyObject *entry = folder ? PyUnicode_DecodeFSDefault(folder) : NULL;
	PyObject *path = PySys_GetObject("path"); // borrowed
	return entry && path && PyList_Check(path) && !PyList_Insert(path, 0, entry);
}

/** Whether Python has or would have a module of its own called @name. 1, 0, or -1 with an exception set. */
static int is_taken(PyObject *name)
{
	PyObject *builtins = PySys_GetObject("builtin_module_names"); // borrowed
	int is_builtin = builtins ? PySequence_Contains(builtins, name) : 0;
	return is_builtin ? is_builtin : PyDict_Contains(PyImport_GetModuleDict(), name);
}

/** The name for sys.modules, @wanted where it is free: a script os.py must not pose as Python's own os. */
static PyObject *free_module_name(const char *wanted)
{
	PyObject *name = PyUnicode_DecodeFSDefault(wanted);
	int taken;
	while (name && (taken = is_taken(name))) {
		PyObject *longer = taken < 0 ? NULL : PyUnicode_FromFormat("%U_", name);
		Py_SETREF(name, longer);
	}
	return name;
}

/** A module with `__spec__`, `__loader__`, `__file__` and all else that importlib sets, for the file @path. */
static PyObject *create_module(PyObject *name, PyObject *path, const char *loader_name,
			       PyObject **ret_loader)
{
	_cleanup_pydecref_ PyObject *importlib = PyImport_ImportModule(IMPORTLIB);
	_cleanup_pydecref_ PyObject *external = PyImport_ImportModule(IMPORTLIB_EXTERNAL);
	if (!importlib || !external)
		return NULL;
	_cleanup_pydecref_ PyObject *loader =
		PyObject_CallMethod(external, loader_name, "OO", name, path);
	_cleanup_pydecref_ PyObject *spec =
		loader ? PyObject_CallMethod(importlib, "spec_from_loader", "OO", name, loader)
		       : NULL;
	PyObject *module =
		spec ? PyObject_CallMethod(importlib, "module_from_spec", "O", spec) : NULL;
	if (module)
		*ret_loader = take_ptr(loader);
	return module;
}

/** Compile and run the text of the script; no bytecode is kept, as for any script. */
static bool run_source(PyObject *module, PyObject *path, const char *text, size_t size)
{
	PyObject *builtins = PyEval_GetBuiltins();		       // borrowed
	PyObject *compile = PyDict_GetItemString(builtins, "compile"); // borrowed
	_cleanup_pydecref_ PyObject *code = PyObject_CallFunction(
		compile, "y#Osii", text, (Py_ssize_t)size, path, "exec", 0, 1);
	if (!code)
		return false;
	PyObject *globals = PyModule_GetDict(module); // borrowed
	if (PyDict_SetItemString(globals, "__builtins__", builtins) < 0)
		return false;
	_cleanup_pydecref_ PyObject *result = PyEval_EvalCode(code, globals, globals);
	return result;
}

static bool run_extension(PyObject *module, PyObject *loader)
{
	_cleanup_pydecref_ PyObject *result =
		PyObject_CallMethod(loader, "exec_module", "O", module);
	return result;
}

/** Import the file at @location, whose text is @text where it is a source. */
static PyObject *load_file(const struct ps_location *location, const char *text, size_t size)
{
	bool is_source = location->kind == PS_LOCATION_SOURCE;
	// The symbol PyInit_NAME of an extension follows from its name, which must stay as it is.
	_cleanup_pydecref_ PyObject *name = is_source ? free_module_name(location->module)
						      : PyUnicode_DecodeFSDefault(location->module);
	_cleanup_pydecref_ PyObject *path = PyUnicode_DecodeFSDefault(location->path);
	if (!name || !path)
		return NULL;
	_cleanup_pydecref_ PyObject *loader = NULL;
	_cleanup_pydecref_ PyObject *module = create_module(
		name, path, is_source ? "SourceFileLoader" : "ExtensionFileLoader", &loader);
	PyObject *modules = PyImport_GetModuleDict(); // borrowed
	if (!module || PyObject_SetItem(modules, name, module) < 0)
		return NULL;
	bool is_done =
		is_source ? run_source(module, path, text, size) : run_extension(module, loader);
	if (is_done)
		return_ptr(module);
	PyObject *type, *value, *traceback;
	PyErr_Fetch(&type, &value, &traceback);
	PyObject_DelItem(modules, name);
	PyErr_Clear();
	PyErr_Restore(type, value, traceback);
	return NULL;
}

/** Whether the current exception says that the module @name, or a package it lies in, does not exist. */
static bool is_missing(const char *name)
{
	if (!PyErr_ExceptionMatches(PyExc_ModuleNotFoundError))
		return false;
	PyObject *type, *value, *traceback;
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	_cleanup_pydecref_ PyObject *missing = PyObject_GetAttrString(value, "name");
	const char *text = missing && PyUnicode_Check(missing) ? PyUnicode_AsUTF8(missing) : NULL;
	size_t length = text ? strlen(text) : 0;
	bool result = text && !strncmp(name, text, length) && strchr(".", name[length]);
	PyErr_Clear();
	PyErr_Restore(type, value, traceback);
	return result;
}

/** A folder without `__init__.py` imports well, and holds nothing. */
static bool is_mere_folder(PyObject *module)
{
	if (!PyModule_Check(module))
		return false;
	PyObject *globals = PyModule_GetDict(module);		    // borrowed
	PyObject *file = PyDict_GetItemString(globals, "__file__"); // borrowed
	return (!file || file == Py_None) && PyDict_GetItemString(globals, "__path__");
}

/** Import @name by sys.path; *@ret is NULL where there is no such module. False with an exception set. */
static bool import_module(const char *name, PyObject **ret, bool *ret_is_folder)
{
	*ret = PyImport_ImportModule(name);
	if (!*ret && is_missing(name)) {
		PyErr_Clear();
		return true;
	}
	if (!*ret)
		return false;
	*ret_is_folder = is_mere_folder(*ret);
	if (!*ret_is_folder)
		return true;
	Py_CLEAR(*ret);
	return PyMapping_DelItemString(PyImport_GetModuleDict(), name) == 0;
}

/** Take the current exception: an error, or NULL where it ends the run cleanly. */
static struct ps_error *take_load_error(const char *name, int *ret_status)
{
	struct ps_policy policy = { 0 };
	if (ps_policy_take_end(&policy)) {
		*ret_status = policy.exit_status;
		return NULL;
	}
	trim_traceback();
	_cleanup_free_ char *what = NULL;
	if (asprintf(&what, "script %s", name) < 0) {
		what = NULL;
		return &ps_enomem;
	}
	return ps_python_take_error(what);
}

static struct ps_error *load_location(const char *name, const struct ps_location *location,
				      PyObject **ret, int *ret_status)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	if (location->kind == PS_LOCATION_SOURCE) {
		struct ps_error *error = ps_file_read(location->path, &text, &size);
		if (error)
			return error;
	}
	if (add_to_path(location))
		*ret = load_file(location, text, size);
	return *ret ? NULL : take_load_error(name, ret_status);
}

static struct ps_error *load_shipped(const char *name, bool is_folder, PyObject **ret,
				     int *ret_status)
{
	struct ps_location location;
	struct ps_error *error = ps_location_find_shipped(name, &location);
	if (error)
		return error;
	if (location.path)
		error = load_location(name, &location, ret, ret_status);
	else if (is_folder)
		error = ps_error_format(PS_ERROR_SCRIPT,
					"script %s: is a folder; name a file in it", name);
	else
		error = ps_error_format(PS_ERROR_SCRIPT,
					"script %s: no such file, module or shipped script", name);
	ps_location_deinit(&location);
	return error;
}

static struct ps_error *load_named(const char *name, const struct ps_location *location,
				   PyObject **ret, int *ret_status)
{
	bool is_folder = false;
	if (!add_to_path(location) || !import_module(name, ret, &is_folder))
		return take_load_error(name, ret_status);
	return *ret ? NULL : load_shipped(name, is_folder, ret, ret_status);
}

/** An extension, or a module far from here, could not be read ahead of the start. */
static void warn_of_unread_options(const char *name, PyObject *module)
{
	PyObject *options = PyDict_GetItemString(PyModule_GetDict(module), "__options__");
	if (!options)
		return;
	_cleanup_free_ char *text = NULL;
	struct ps_error *error = ps_script_find_options(name, &text);
	if (error || !text)
		ps_log(PS_LOG_WARNING,
		       "script %s: its __options__ cannot be read without running it; give them on "
		       "the command line",
		       name);
	ps_error_destroy(error);
}

/** Import @name into *@ret; NULL without an error where it ended the run cleanly. */
static struct ps_error *load(const char *name, PyObject **ret, int *ret_status)
{
	struct ps_location location;
	struct ps_error *error = ps_location_find(name, &location);
	if (error)
		return error;
	error = location.kind == PS_LOCATION_MODULE
			? load_named(name, &location, ret, ret_status)
			: load_location(name, &location, ret, ret_status);
	ps_location_deinit(&location);
	if (error || !*ret || PyModule_Check(*ret))
		return error;
	return ps_error_format(PS_ERROR_SCRIPT, "script %s: put a %s in place of its module", name,
			       Py_TYPE(*ret)->tp_name);
}

struct ps_error *ps_script_load(const char *name, struct ps_script **ret, int *ret_status)
{
	*ret = NULL;
	// Before the script: one called perfscope.py must not take its name.
	_cleanup_pydecref_ PyObject *perfscope = PyImport_ImportModule("perfscope");
	if (!perfscope)
		return ps_python_take_error("import perfscope");
	_cleanup_pydecref_ PyObject *module = NULL;
	struct ps_error *error = load(name, &module, ret_status);
	if (error || !module)
		return error;
	struct ps_script *script = calloc(1, sizeof(*script));
	char *copy = strdup(name);
	if (!script || !copy) {
		free(script);
		free(copy);
		return &ps_enomem;
	}
	script->name = copy;
	script->module = take_ptr(module);
	script->perfscope = take_ptr(perfscope);
	warn_of_unread_options(name, script->module);
	*ret = script;
	return NULL;
}

void ps_script_destroy(struct ps_script *script)
{
	if (!script)
		return;
	for (size_t i = 0; i < script->nr_handlers; i++)
		Py_XDECREF(script->handlers[i]);
	free(script->handlers);
	for (size_t i = 0; i < script->nr_region_handlers; i++)
		Py_XDECREF(script->region_handlers[i]);
	free(script->region_handlers);
	for (size_t i = 0; i < PS_NR_CALLBACKS; i++)
		Py_XDECREF(script->callbacks[i]);
	Py_XDECREF(script->perfscope);
	Py_XDECREF(script->module);
	free(script->name);
	free(script);
}
