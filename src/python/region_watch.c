// SPDX-License-Identifier: MIT
/**
 * How it is noticed that a frame with an open pass is suspended and goes on.
 *
 * Python tells that: since 3.12 by monitoring of the one code object, before by the thread's profile function, set
 * while such a pass is open.
 */
#include "region.h"

#if PY_VERSION_HEX < 0x030C0000

// What the function that on_profile is called with is bound to: a tuple of these.
enum { WATCH_MODULE, WATCH_BEFORE, WATCH_BEFORE_OBJECT, NR_WATCH };

/** NULL: the module is being taken down. */
static struct ps_region_frames *frames_of_watch(PyObject *watch)
{
	return ps_module_state(PyTuple_GET_ITEM(watch, WATCH_MODULE))->region_frames;
}

static int on_profile(PyObject *function, PyFrameObject *frame, int what, PyObject *arg)
{
	PyObject *watch = PyCFunction_GET_SELF(function);
	struct ps_region_frames *frames = frames_of_watch(watch);
	if (PS_UNLIKELY(!frames))
		return 0;
	if (what == PyTrace_CALL)
		region_resume_frame(frames, frame);
	PyObject *before = PyTuple_GET_ITEM(watch, WATCH_BEFORE);
	int status = 0;
	if (PS_UNLIKELY(before != Py_None)) {
		Py_tracefunc call = (Py_tracefunc)PyLong_AsVoidPtr(before);
		PyObject *object = PyTuple_GET_ITEM(watch, WATCH_BEFORE_OBJECT);
		status = call(object == Py_None ? NULL : object, frame, what, arg);
	}
	if (what == PyTrace_RETURN)
		region_pause_frame(frames, frame);
	return status;
}

/** Whether the calling thread's profile function is ours. */
static bool is_ours(void)
{
	return PyThreadState_Get()->c_profilefunc == on_profile;
}

bool region_is_watched(const struct ps_region_frames *frames)
{
	return is_ours();
}

/** No pass is open in a frame: leave this thread as it was. Others go on being watched until they have a pass again. */
void region_unwatch(void)
{
	if (!is_ours())
		return;
	_cleanup_pydecref_ PyObject *function = PyThreadState_Get()->c_profileobj;
	Py_INCREF(function);
	PyObject *watch = PyCFunction_GET_SELF(function);
	PyObject *before = PyTuple_GET_ITEM(watch, WATCH_BEFORE);
	PyObject *object = PyTuple_GET_ITEM(watch, WATCH_BEFORE_OBJECT);
	PyEval_SetProfile(before == Py_None ? NULL : (Py_tracefunc)PyLong_AsVoidPtr(before),
			  object == Py_None ? NULL : object);
}

static PyObject *watch_again(PyObject *watch, PyObject *const *args, Py_ssize_t nr);

static PyMethodDef watch_method = { "perfscope_watch", (PyCFunction)(void (*)(void))watch_again,
				    METH_FASTCALL, NULL };

/** A profile function of ours that calls @function, with @object, as well; NULL: none. New reference. */
static PyObject *make_function(PyObject *module, Py_tracefunc function, PyObject *object)
{
	_cleanup_pydecref_ PyObject *before = Py_None;
	Py_INCREF(before);
	if (function)
		Py_SETREF(before, PyLong_FromVoidPtr((void *)function));
	_cleanup_pydecref_ PyObject *watch =
		before ? PyTuple_Pack(NR_WATCH, module, before, object ? object : Py_None) : NULL;
	return watch ? PyCFunction_New(&watch_method, watch) : NULL;
}

/** The calling thread was not watched until now: what became of its frames is not known. */
static void start_watch(struct ps_region_frames *frames, PyObject *function)
{
	region_miss_ties(frames);
	PyEval_SetProfile(on_profile, function);
}

/** The program set what sys.getprofile() gave it while we watched, and Python calls that as (frame, event, arg). */
static PyObject *watch_again(PyObject *watch, PyObject *const *args, Py_ssize_t nr)
{
	// Who calls us has borrowed us from the thread.
	_cleanup_pydecref_ PyObject *ours = PyThreadState_Get()->c_profileobj;
	Py_XINCREF(ours);
	if (nr != 3 || !PyFrame_Check(args[0]) || !PyUnicode_Check(args[1])) {
		PyErr_SetString(PyExc_TypeError, "a profile function is called by Python");
		return NULL;
	}
	struct ps_region_frames *frames = frames_of_watch(watch);
	if (!frames)
		Py_RETURN_NONE;
	_cleanup_pydecref_ PyObject *function = PyCFunction_New(&watch_method, watch);
	if (!function)
		return NULL;
	start_watch(frames, function);
	PyFrameObject *frame = (PyFrameObject *)args[0];
	if (!PyUnicode_CompareWithASCIIString(args[1], "call"))
		region_resume_frame(frames, frame);
	else if (!PyUnicode_CompareWithASCIIString(args[1], "return"))
		region_pause_frame(frames, frame);
	if (!frames->nr)
		region_unwatch();
	Py_RETURN_NONE;
}

/** Let the calling thread tell of its calls; the profile function that it has is called as before. */
int region_watch(PyObject *module, PyFrameObject *frame)
{
	struct ps_region_frames *frames = ps_module_state(module)->region_frames;
	if (region_is_watched(frames))
		return 0;
	PyThreadState *thread = PyThreadState_Get();
	if (PS_LIKELY(!thread->c_profilefunc)) {
		// The same each time: to make one takes as long as the two clocks of a pass.
		if (!frames->profile)
			frames->profile = make_function(module, NULL, NULL);
		if (frames->profile)
			start_watch(frames, frames->profile);
		return frames->profile ? 0 : -1;
	}
	_cleanup_pydecref_ PyObject *function =
		make_function(module, thread->c_profilefunc, thread->c_profileobj);
	if (function)
		start_watch(frames, function);
	return function ? 0 : -1;
}

int region_watch_init(PyObject *module, struct ps_region_frames *frames)
{
	frames->is_watching = true;
	return 0;
}

#else

static PyObject *on_suspend(PyObject *module, PyObject *const *args, Py_ssize_t nr)
{
	struct ps_region_frames *frames = ps_module_state(module)->region_frames;
	if (PS_LIKELY(frames && frames->nr))
		region_pause_frame(frames, PyEval_GetFrame());
	Py_RETURN_NONE;
}

static PyObject *on_resume(PyObject *module, PyObject *const *args, Py_ssize_t nr)
{
	struct ps_region_frames *frames = ps_module_state(module)->region_frames;
	if (PS_LIKELY(frames && frames->nr))
		region_resume_frame(frames, PyEval_GetFrame());
	Py_RETURN_NONE;
}

static PyMethodDef suspend_method = { "on_suspend", (PyCFunction)(void (*)(void))on_suspend,
				      METH_FASTCALL, NULL };
static PyMethodDef resume_method = { "on_resume", (PyCFunction)(void (*)(void))on_resume,
				     METH_FASTCALL, NULL };

static int event_of(PyObject *monitoring, const char *name, int *ret)
{
	_cleanup_pydecref_ PyObject *events = PyObject_GetAttrString(monitoring, "events");
	_cleanup_pydecref_ PyObject *event = events ? PyObject_GetAttrString(events, name) : NULL;
	*ret = event ? PyLong_AsLong(event) : -1;
	return *ret == -1 ? -1 : 0;
}

/** Let @method be called at the events of the name @name. */
static int listen(PyObject *module, struct ps_region_frames *frames, const char *name,
		  PyMethodDef *method, int *ret_event)
{
	_cleanup_pydecref_ PyObject *function = PyCFunction_New(method, module);
	if (!function || event_of(frames->monitoring, name, ret_event) < 0)
		return -1;
	_cleanup_pydecref_ PyObject *result = PyObject_CallMethod(
		frames->monitoring, "register_callback", "iiO", frames->tool, *ret_event, function);
	return result ? 0 : -1;
}

/** Take a number among the tools that watch, or -1; those of debugger, coverage and profiler are left to them. */
static int take_tool(struct ps_region_frames *frames)
{
	static const int free_for_all[] = { 4, 3 };
	for (size_t i = 0; i < PS_ARRAY_SIZE(free_for_all); i++) {
		_cleanup_pydecref_ PyObject *result = PyObject_CallMethod(
			frames->monitoring, "use_tool_id", "is", free_for_all[i], "perfscope");
		if (result) {
			frames->tool = free_for_all[i];
			return 0;
		}
		if (!PyErr_ExceptionMatches(PyExc_ValueError))
			return -1;
		PyErr_Clear();
	}
	frames->tool = -1;
	return 0;
}

static int watch_events(PyObject *module, struct ps_region_frames *frames)
{
	int throw_event;
	if (listen(module, frames, "PY_YIELD", &suspend_method, &frames->yield_event) < 0 ||
	    listen(module, frames, "PY_RETURN", &suspend_method, &frames->return_event) < 0 ||
	    listen(module, frames, "PY_RESUME", &resume_method, &frames->resume_event) < 0 ||
	    listen(module, frames, "PY_THROW", &resume_method, &throw_event) < 0)
		return -1;
	// An exception that is thrown into a frame cannot be watched for by code.
	_cleanup_pydecref_ PyObject *result = PyObject_CallMethod(frames->monitoring, "set_events",
								  "ii", frames->tool, throw_event);
	return result ? 0 : -1;
}

int region_watch_init(PyObject *module, struct ps_region_frames *frames)
{
	if (!frames->monitoring) {
		frames->monitoring = PySys_GetObject("monitoring"); // borrowed
		Py_XINCREF(frames->monitoring);
	}
	if (!frames->monitoring || take_tool(frames) < 0)
		return -1;
	// Where no tool is left, the program goes on without us, and each new pass asks for one again.
	frames->is_watching = frames->tool >= 0;
	return frames->is_watching ? watch_events(module, frames) : 0;
}

/**
 * Let the code of @frame tell when it is suspended and goes on, from now on.
 *
 * Python is asked each time: code that was compiled a second time is equal to what we have seen, and not the same.
 */
int region_watch(PyObject *module, PyFrameObject *frame)
{
	struct ps_region_frames *frames = ps_module_state(module)->region_frames;
	if (!region_is_watched(frames))
		return 0;
	int wanted = frames->yield_event | frames->return_event | frames->resume_event;
	_cleanup_pydecref_ PyObject *code = (PyObject *)PyFrame_GetCode(frame);
	_cleanup_pydecref_ PyObject *events = PyObject_CallMethod(
		frames->monitoring, "get_local_events", "iO", frames->tool, code);
	if (!events || PyLong_AsLong(events) == wanted)
		return events ? 0 : -1;
	_cleanup_pydecref_ PyObject *result = PyObject_CallMethod(
		frames->monitoring, "set_local_events", "iOi", frames->tool, code, wanted);
	return result ? 0 : -1;
}

void region_unwatch(void)
{
}

bool region_is_watched(const struct ps_region_frames *frames)
{
	return frames->is_watching;
}

#endif
