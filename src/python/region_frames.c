// SPDX-License-Identifier: MIT
/**
 * Regions of code that is suspended: generators and coroutines.
 *
 * A region that is entered in one is tied to its frame. While the frame is suspended, the thread runs other code,
 * so the pass is paused, exactly from where the frame hands over to where it goes on. Python tells that: since 3.12
 * by monitoring of the one code object, before by the thread's profile function, set while such a pass is open.
 */
#include <perfscope/python_types.h>
#include <frameobject.h>
#include <string.h>

#define NR_BUCKETS 1024
#define MAX_DEPTH                                                                                  \
	8 // frames between a region and the code that it belongs to: helpers of contextlib

#define SUSPENDABLE (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)

/** A pass that is open in a frame. */
struct tie {
	struct tie *next;     // in its bucket
	PyFrameObject *frame; // owned
	struct ps_region *region;
	const PyThreadState *thread; // that it last ran in; to be compared alone
	bool is_paused;
	bool is_missed; // it was suspended or went on where nobody told: what it counted is wrong
};

struct ps_region_frames {
	struct tie *buckets[NR_BUCKETS];
	size_t nr;	       // of ties
	PyObject *helper_file; // co_filename of contextlib, owned
	bool is_watching;      // watch_init was called
#if PY_VERSION_HEX >= 0x030C0000
	PyObject *monitoring; // sys.monitoring, owned
	PyObject *codes;      // set of those that tell
	int tool, yield_event, resume_event;
#endif
};

static struct tie **bucket_of(struct ps_region_frames *frames, const PyFrameObject *frame)
{
	uintptr_t bits = (uintptr_t)frame;
	return &frames->buckets[(bits >> 4 ^ bits >> 14) % NR_BUCKETS];
}

/** The place of a tie of @frame, and with a @region, of it; NULL there: there is none. */
static struct tie **find_tie(struct ps_region_frames *frames, const PyFrameObject *frame,
			     const struct ps_region *region)
{
	struct tie **tie = bucket_of(frames, frame);
	while (*tie && ((*tie)->frame != frame || (region && (*tie)->region != region)))
		tie = &(*tie)->next;
	return tie;
}

static void pause_frame(struct ps_region_frames *frames, const PyFrameObject *frame)
{
	for (struct tie *tie = *bucket_of(frames, frame); tie; tie = tie->next) {
		if (tie->frame != frame)
			continue;
		if (!tie->is_paused)
			ps_region_pause(tie->region);
		else
			tie->is_missed = true;
		tie->is_paused = true;
	}
}

static void resume_frame(struct ps_region_frames *frames, const PyFrameObject *frame)
{
	for (struct tie *tie = *bucket_of(frames, frame); tie; tie = tie->next) {
		if (tie->frame != frame)
			continue;
		if (tie->is_paused)
			ps_region_resume(tie->region);
		else
			tie->is_missed = true;
		tie->thread = PyThreadState_Get();
		tie->is_paused = false;
	}
}

/* Which frame a region belongs to. */

static bool is_same_text(PyObject *left, PyObject *right)
{
	return left == right || (PyUnicode_GET_LENGTH(left) == PyUnicode_GET_LENGTH(right) &&
				 PyUnicode_Compare(left, right) == 0);
}

/** The flags of @frame's code; *@ret_is_helper: it is of contextlib. */
static int code_flags(struct ps_region_frames *frames, PyFrameObject *frame, bool *ret_is_helper)
{
	PyCodeObject *code = PyFrame_GetCode(frame);
	int flags = code->co_flags;
	*ret_is_helper = is_same_text(code->co_filename, frames->helper_file);
	Py_DECREF(code);
	return flags;
}

/** The frame that called @frame, which is given up. New reference; NULL: none. */
static PyFrameObject *step_back(PyFrameObject *frame)
{
	PyFrameObject *back = PyFrame_GetBack(frame);
	Py_DECREF(frame);
	return back;
}

/** The same as find_suspendable(), where @frame, which is given up, is not all. */
static PyFrameObject *search_suspendable(struct ps_region_frames *frames, PyFrameObject *frame)
{
	for (int depth = 0; frame && depth < MAX_DEPTH; depth++) {
		bool is_helper, is_helper_called;
		int flags = code_flags(frames, frame, &is_helper);
		if (is_helper) {
			frame = step_back(frame);
			continue;
		}
		if (!(flags & SUSPENDABLE))
			break;
		PyFrameObject *back = PyFrame_GetBack(frame);
		if (!back)
			return frame;
		code_flags(frames, back, &is_helper_called);
		if (!is_helper_called) {
			Py_DECREF(back);
			return frame;
		}
		Py_DECREF(frame);
		frame = back;
	}
	Py_XDECREF(frame);
	return NULL;
}

/**
 * The frame whose suspension suspends the pass that is entered now. New reference; NULL: none.
 *
 * contextlib runs generators as context managers: those hand over to the body of the `with`, which belongs to the pass.
 */
static PyFrameObject *find_suspendable(struct ps_region_frames *frames)
{
	PyFrameObject *frame = PyEval_GetFrame();
	bool is_helper;
	if (!frame)
		return NULL;
	if (PS_LIKELY(!(code_flags(frames, frame, &is_helper) & SUSPENDABLE) && !is_helper))
		return NULL;
	Py_INCREF(frame);
	return search_suspendable(frames, frame);
}

/** The tie of @region that ends here: of this frame or of one that called it. */
static struct tie **find_open_tie(struct ps_region_frames *frames, const struct ps_region *region)
{
	PyFrameObject *frame = PyEval_GetFrame();
	Py_XINCREF(frame);
	for (int depth = 0; frame && depth < 2 * MAX_DEPTH; depth++) {
		struct tie **tie = find_tie(frames, frame, region);
		if (*tie) {
			Py_DECREF(frame);
			return tie;
		}
		frame = step_back(frame);
	}
	Py_XDECREF(frame);
	return NULL;
}

/* How suspension is noticed. */

#if PY_VERSION_HEX < 0x030C0000

// What the function that on_profile is called with is bound to: a tuple of these.
enum { WATCH_MODULE, WATCH_BEFORE, WATCH_BEFORE_OBJECT, NR_WATCH };

static struct ps_region_frames *frames_of_watch(PyObject *watch)
{
	return ps_module_state(PyTuple_GET_ITEM(watch, WATCH_MODULE))->region_frames;
}

static int on_profile(PyObject *function, PyFrameObject *frame, int what, PyObject *arg)
{
	PyObject *watch = PyCFunction_GET_SELF(function);
	struct ps_region_frames *frames = frames_of_watch(watch);
	if (what == PyTrace_CALL)
		resume_frame(frames, frame);
	PyObject *before = PyTuple_GET_ITEM(watch, WATCH_BEFORE);
	int status = 0;
	if (PS_UNLIKELY(before != Py_None)) {
		Py_tracefunc call = (Py_tracefunc)PyLong_AsVoidPtr(before);
		PyObject *object = PyTuple_GET_ITEM(watch, WATCH_BEFORE_OBJECT);
		status = call(object == Py_None ? NULL : object, frame, what, arg);
	}
	if (what == PyTrace_RETURN)
		pause_frame(frames, frame);
	return status;
}

static bool is_watched(void)
{
	return PyThreadState_Get()->c_profilefunc == on_profile;
}

/** No pass is open in a frame: leave this thread as it was. Others go on being watched until they have a pass again. */
static void unwatch(void)
{
	if (!is_watched())
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

/** The calling thread was not watched until now: what became of its frames is not known. */
static void miss_ties(struct ps_region_frames *frames)
{
	for (size_t i = 0; frames->nr && i < NR_BUCKETS; i++) {
		for (struct tie *tie = frames->buckets[i]; tie; tie = tie->next)
			tie->is_missed |= tie->thread == PyThreadState_Get();
	}
}

static int start_watch(PyObject *watch)
{
	miss_ties(frames_of_watch(watch));
	_cleanup_pydecref_ PyObject *function = PyCFunction_New(&watch_method, watch);
	if (!function)
		return -1;
	PyEval_SetProfile(on_profile, function);
	return 0;
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
	if (start_watch(watch) < 0)
		return NULL;
	PyFrameObject *frame = (PyFrameObject *)args[0];
	if (!PyUnicode_CompareWithASCIIString(args[1], "call"))
		resume_frame(frames_of_watch(watch), frame);
	else if (!PyUnicode_CompareWithASCIIString(args[1], "return"))
		pause_frame(frames_of_watch(watch), frame);
	if (!frames_of_watch(watch)->nr)
		unwatch();
	Py_RETURN_NONE;
}

/** Let the calling thread tell of its calls; the profile function that it has is called as before. */
static int watch(PyObject *module, PyFrameObject *frame)
{
	if (is_watched())
		return 0;
	PyThreadState *thread = PyThreadState_Get();
	_cleanup_pydecref_ PyObject *before = Py_None;
	Py_INCREF(before);
	if (thread->c_profilefunc)
		Py_SETREF(before, PyLong_FromVoidPtr((void *)thread->c_profilefunc));
	_cleanup_pydecref_ PyObject *watch =
		before ? PyTuple_Pack(NR_WATCH, module, before,
				      thread->c_profileobj ? thread->c_profileobj : Py_None)
		       : NULL;
	return watch ? start_watch(watch) : -1;
}

static int watch_init(PyObject *module, struct ps_region_frames *frames)
{
	return 0;
}

#else

static PyObject *on_suspend(PyObject *module, PyObject *const *args, Py_ssize_t nr)
{
	pause_frame(ps_module_state(module)->region_frames, PyEval_GetFrame());
	Py_RETURN_NONE;
}

static PyObject *on_resume(PyObject *module, PyObject *const *args, Py_ssize_t nr)
{
	resume_frame(ps_module_state(module)->region_frames, PyEval_GetFrame());
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

/** Take a number among the tools that watch; those of debugger, coverage and profiler are left to them. */
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
	PyErr_SetString(PyExc_RuntimeError,
			"a region in a generator or coroutine needs a tool of sys.monitoring, and "
			"3 and 4 are taken");
	return -1;
}

static int watch_init(PyObject *module, struct ps_region_frames *frames)
{
	int throw_event;
	frames->monitoring = PySys_GetObject("monitoring"); // borrowed
	Py_XINCREF(frames->monitoring);
	frames->codes = PySet_New(NULL);
	if (!frames->monitoring || !frames->codes || take_tool(frames) < 0 ||
	    listen(module, frames, "PY_YIELD", &suspend_method, &frames->yield_event) < 0 ||
	    listen(module, frames, "PY_RESUME", &resume_method, &frames->resume_event) < 0 ||
	    listen(module, frames, "PY_THROW", &resume_method, &throw_event) < 0)
		return -1;
	// An exception that is thrown into a frame cannot be watched for by code.
	_cleanup_pydecref_ PyObject *result = PyObject_CallMethod(frames->monitoring, "set_events",
								  "ii", frames->tool, throw_event);
	return result ? 0 : -1;
}

/** Let the code of @frame tell when it is suspended and goes on, from now on. */
static int watch(PyObject *module, PyFrameObject *frame)
{
	struct ps_region_frames *frames = ps_module_state(module)->region_frames;
	_cleanup_pydecref_ PyObject *code = (PyObject *)PyFrame_GetCode(frame);
	int is_watched = PySet_Contains(frames->codes, code);
	if (is_watched)
		return is_watched < 0 ? -1 : 0;
	_cleanup_pydecref_ PyObject *result =
		PyObject_CallMethod(frames->monitoring, "set_local_events", "iOi", frames->tool,
				    code, frames->yield_event | frames->resume_event);
	return result ? PySet_Add(frames->codes, code) : -1;
}

static void unwatch(void)
{
}

static bool is_watched(void)
{
	return true;
}

#endif

/* Passes. */

/** What is kept of frames, made when the first region is entered. NULL with an exception set. */
static struct ps_region_frames *get_frames(PyObject *module)
{
	struct ps_module_state *state = ps_module_state(module);
	if (PS_LIKELY(state->region_frames))
		return state->region_frames;
	_cleanup_pydecref_ PyObject *contextlib = PyImport_ImportModule("contextlib");
	_cleanup_pydecref_ PyObject *helper =
		contextlib ? PyObject_GetAttrString(contextlib, "contextmanager") : NULL;
	_cleanup_pydecref_ PyObject *code =
		helper ? PyObject_GetAttrString(helper, "__code__") : NULL;
	PyObject *file = code ? PyObject_GetAttrString(code, "co_filename") : NULL;
	struct ps_region_frames *frames = file ? calloc(1, sizeof(*frames)) : NULL;
	if (!frames) {
		Py_XDECREF(file);
		return file ? (PyErr_NoMemory(), NULL) : NULL;
	}
	frames->helper_file = file;
	state->region_frames = frames;
	return frames;
}

void ps_region_frames_destroy(struct ps_region_frames *frames)
{
	for (size_t i = 0; frames && i < NR_BUCKETS; i++) {
		for (struct tie *tie = frames->buckets[i]; tie; tie = frames->buckets[i]) {
			frames->buckets[i] = tie->next;
			Py_DECREF(tie->frame);
			free(tie);
		}
	}
	if (frames) {
		Py_XDECREF(frames->helper_file);
#if PY_VERSION_HEX >= 0x030C0000
		Py_XDECREF(frames->monitoring);
		Py_XDECREF(frames->codes);
#endif
	}
	free(frames);
}

/** Tie a pass of @region to @frame, which is taken over. */
static int tie_pass(PyObject *module, PyFrameObject *frame, struct ps_region *region)
{
	struct ps_region_frames *frames = ps_module_state(module)->region_frames;
	_cleanup_pydecref_ PyObject *owned = (PyObject *)frame;
	if (!frames->is_watching && watch_init(module, frames) < 0)
		return -1;
	frames->is_watching = true;
	struct tie *tie = watch(module, frame) < 0 ? NULL : malloc(sizeof(*tie));
	if (!tie) {
		if (!PyErr_Occurred())
			PyErr_NoMemory();
		return -1;
	}
	struct tie **bucket = bucket_of(frames, frame);
	*tie = (struct tie){ *bucket, take_ptr(frame), region, PyThreadState_Get(), false, false };
	owned = NULL;
	*bucket = tie;
	frames->nr++;
	return 0;
}

int ps_region_frames_enter(PyObject *module, struct ps_region *region)
{
	struct ps_region_frames *frames = get_frames(module);
	if (!frames)
		return -1;
	PyFrameObject *frame = find_suspendable(frames);
	if (PS_UNLIKELY(frame) && tie_pass(module, frame, region) < 0)
		return -1;
	ps_region_enter(region);
	return 0;
}

/** End the pass of @tie: as incomplete, where its frame was suspended or went on unseen. */
static void leave_tied(const struct tie *tie)
{
	if (tie->is_paused)
		ps_region_resume(tie->region);
	if (tie->is_paused || tie->is_missed || !is_watched())
		ps_region_abandon(tie->region);
	else
		ps_region_leave(tie->region);
}

void ps_region_frames_leave(PyObject *module, struct ps_region *region)
{
	struct ps_region_frames *frames = ps_module_state(module)->region_frames;
	struct tie **place = frames && frames->nr ? find_open_tie(frames, region) : NULL;
	struct tie *tie = place ? *place : NULL;
	if (!tie) {
		ps_region_leave(region);
		return;
	}
	leave_tied(tie);
	*place = tie->next;
	Py_DECREF(tie->frame);
	free(tie);
	if (!--frames->nr)
		unwatch();
}
