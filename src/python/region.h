// SPDX-License-Identifier: MIT
/**
 * Regions in Python and the frames that they are open in. All of this runs with the GIL.
 *
 * Frames are looked at as the interpreter keeps them (internal headers since 3.11): to make an object of one takes as
 * long as all else that Python does for a region.
 */
#ifndef PERFSCOPE_PYTHON_REGION_H
#define PERFSCOPE_PYTHON_REGION_H

#define Py_BUILD_CORE 1
#include <perfscope/python_types.h>
#include <frameobject.h>
#if PY_VERSION_HEX >= 0x030B0000
#include <internal/pycore_frame.h>
#endif

/** One for each name and module; kept for as long as the module. */
typedef struct {
	PyObject_HEAD
	PyObject *module;	       // owned
	struct ps_module_state *state; // its; NULL: it is being taken down, and nothing is counted
	PyObject *name;		       // str, owned
	PyObject *enter, *exit;	       // bound methods, owned; NULL: not made yet
	struct ps_region *region;
	PyObject *plain; // the code that entered last and is no generator's or helper's, owned
	size_t nr_ties;	 // passes that are open in frames
} Region;

/** A pass that is open in a frame. */
struct tie {
	struct tie *next;	     // in its bucket
	PyFrameObject *frame;	     // owned
	Region *region;		     // owned
	const PyThreadState *thread; // that it last ran in; to be compared alone
	size_t nr_plain; // passes of the region inside, of functions that the frame called
	bool is_paused;
	bool is_missed; // it was suspended or went on where nobody told: what it counted is wrong
	struct ps_region_parts parts; // until it was paused last
};

struct ps_region_frames {
	struct tie **buckets;  // owned
	size_t nr_buckets;     // a power of two, as many as there were ties at a time or more
	struct tie *spare;     // memory of ties that ended
	size_t nr;	       // of ties
	PyObject *helper_file; // co_filename of contextlib, owned; NULL: that is not loaded yet
	PyObject *enter_name, *async_enter_name; // __enter__ and __aenter__, owned
	PyObject *profile; // of threads that have none of the program's, owned; NULL: not made yet
	bool is_watching;  // suspensions can be told
#if PY_VERSION_HEX >= 0x030C0000
	PyObject *monitoring; // sys.monitoring, owned
	int tool;	      // -1: none is left
	int yield_event, return_event, resume_event;
#endif
};

/** Begin a pass: one of a generator or coroutine is paused while that is suspended. -1 with an exception set: none is begun. */
int region_enter(Region *region);
/** End it. */
void region_leave(Region *region);

/** @frame is suspended, or goes on: so do the passes that are open in it. */
void region_pause_frame(struct ps_region_frames *frames, const PyFrameObject *frame);
void region_resume_frame(struct ps_region_frames *frames, const PyFrameObject *frame);

/** The calling thread was not watched until now: what became of the frames that ran in it is not known. */
void region_miss_ties(struct ps_region_frames *frames);

/** Where @frames are not watching yet: see to it that they can. -1 with an exception set. */
int region_watch_init(PyObject *module, struct ps_region_frames *frames);
/** See to it that @frame, which runs in this thread, tells when it is suspended and goes on. -1 with an exception set. */
int region_watch(PyObject *module, PyFrameObject *frame);
/** Whether what runs in this thread tells that now; other tools may have taken our place. */
bool region_is_watched(const struct ps_region_frames *frames);
/** No pass is open in a frame any more: leave this thread as it was. Others are watched until they have a pass again. */
void region_unwatch(void);

#if PY_VERSION_HEX >= 0x030B0000
typedef struct _PyInterpreterFrame frame_t;

/** @frame or the next before it that runs code: one may be half made. NULL: none. */
static inline frame_t *frame_skip(frame_t *frame)
{
	while (frame && PS_UNLIKELY(_PyFrame_IsIncomplete(frame)))
		frame = frame->previous;
	return frame;
}

/** The innermost frame of the calling thread, which may be half made; NULL: it runs no Python code. */
static inline frame_t *frame_innermost(void)
{
#if PY_VERSION_HEX >= 0x030D0000
	return PyThreadState_Get()->current_frame;
#else
	return PyThreadState_Get()->cframe->current_frame;
#endif
}

/** The innermost frame of the calling thread; NULL: it runs no Python code. */
static inline frame_t *frame_current(void)
{
	return frame_skip(frame_innermost());
}

static inline frame_t *frame_before(const frame_t *frame)
{
	return frame_skip(frame->previous);
}

static inline PyCodeObject *frame_code(const frame_t *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
	return (PyCodeObject *)frame->f_executable;
#else
	return frame->f_code;
#endif
}

/** Its object, borrowed; NULL: nobody asked for one yet. */
static inline PyFrameObject *frame_object(const frame_t *frame)
{
	return frame->frame_obj;
}

/** Whether the code of @frame has come to its end: it is neither suspended nor running. */
static inline bool frame_is_finished(const PyFrameObject *frame)
{
	return frame->f_frame->owner == FRAME_OWNED_BY_FRAME_OBJECT;
}
#else
typedef PyFrameObject frame_t;

static inline bool frame_is_finished(const PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030A0000
	return frame->f_state > FRAME_EXECUTING;
#else
	return !frame->f_executing && !frame->f_stacktop;
#endif
}

static inline frame_t *frame_current(void)
{
	return PyThreadState_Get()->frame;
}

static inline frame_t *frame_innermost(void)
{
	return frame_current();
}

static inline frame_t *frame_before(const frame_t *frame)
{
	return frame->f_back;
}

static inline PyCodeObject *frame_code(const frame_t *frame)
{
	return frame->f_code;
}

static inline PyFrameObject *frame_object(const frame_t *frame)
{
	return (PyFrameObject *)frame;
}
#endif

#endif
