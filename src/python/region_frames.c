// SPDX-License-Identifier: MIT
/**
 * Regions of code that is suspended: generators and coroutines.
 *
 * A region that is entered in one is tied to its frame. While the frame is suspended, the thread runs other code,
 * so the pass is paused, exactly from where the frame hands over to where it goes on.
 */
#include "region.h"

#define MAX_DEPTH                                                                                  \
	8 // frames between a region and the code that it belongs to: helpers of contextlib

#define SUSPENDABLE (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)

#define MIN_BUCKETS 1024

static struct tie **bucket_of(const struct ps_region_frames *frames, const PyFrameObject *frame)
{
	uintptr_t bits = (uintptr_t)frame;
	return &frames->buckets[(bits >> 4 ^ bits >> 14) & (frames->nr_buckets - 1)];
}

static void put(struct ps_region_frames *frames, struct tie *tie)
{
	struct tie **bucket = bucket_of(frames, tie->frame);
	tie->next = *bucket;
	*bucket = tie;
}

/** Twice the buckets, or as many as before where there is no memory. */
static void grow(struct ps_region_frames *frames)
{
	struct ps_region_frames larger = { .nr_buckets = 2 * frames->nr_buckets };
	larger.buckets = calloc(larger.nr_buckets, sizeof(struct tie *));
	if (!larger.buckets)
		return;
	for (size_t i = 0; i < frames->nr_buckets; i++) {
		for (struct tie *tie = frames->buckets[i], *next; tie; tie = next) {
			next = tie->next;
			put(&larger, tie);
		}
	}
	free(frames->buckets);
	frames->buckets = larger.buckets;
	frames->nr_buckets = larger.nr_buckets;
}

void region_pause_frame(struct ps_region_frames *frames, const PyFrameObject *frame)
{
	for (struct tie *tie = *bucket_of(frames, frame); tie; tie = tie->next) {
		if (tie->frame != frame)
			continue;
		if (!tie->is_paused)
			ps_region_pause(tie->region->region, &tie->parts);
		else
			tie->is_missed = true;
		tie->is_paused = true;
	}
}

void region_resume_frame(struct ps_region_frames *frames, const PyFrameObject *frame)
{
	for (struct tie *tie = *bucket_of(frames, frame); tie; tie = tie->next) {
		if (tie->frame != frame)
			continue;
		if (tie->is_paused)
			ps_region_resume(tie->region->region);
		else
			tie->is_missed = true;
		tie->thread = PyThreadState_Get();
		tie->is_paused = false;
	}
}

void region_miss_ties(struct ps_region_frames *frames)
{
	for (size_t i = 0; frames->nr && i < frames->nr_buckets; i++) {
		for (struct tie *tie = frames->buckets[i]; tie; tie = tie->next)
			tie->is_missed |= tie->thread == PyThreadState_Get();
	}
}

/* Which frame a region belongs to. */

static bool is_same_text(PyObject *left, PyObject *right)
{
	return left == right || (PyUnicode_GET_LENGTH(left) == PyUnicode_GET_LENGTH(right) &&
				 PyUnicode_Compare(left, right) == 0);
}

/** Whether the code of @frame makes passes for who called it: the methods of context managers, and contextlib. */
static bool is_helper(const struct ps_region_frames *frames, const frame_t *frame)
{
	const PyCodeObject *code = frame_code(frame);
	return code->co_name == frames->enter_name || code->co_name == frames->async_enter_name ||
	       (frames->helper_file && is_same_text(code->co_filename, frames->helper_file));
}

static void keep_plain(Region *region, const frame_t *frame)
{
	PyObject *code = (PyObject *)frame_code(frame);
	Py_INCREF(code);
	Py_XSETREF(region->plain, code);
}

/**
 * The frame whose suspension suspends the pass of @region that is entered now, in @frame; NULL: none.
 *
 * What a context manager begins belongs to the frame of the `with`, whose body it hands over to: contextlib runs
 * generators as such.
 */
static frame_t *find_suspendable(Region *region, frame_t *frame)
{
	const struct ps_region_frames *frames = region->state->region_frames;
	bool is_helped = false;
	for (int depth = 0; frame && depth < MAX_DEPTH; depth++) {
		frame_t *back = frame_before(frame);
		if (is_helper(frames, frame)) {
			is_helped = true;
		} else if (!(frame_code(frame)->co_flags & SUSPENDABLE)) {
			if (!is_helped)
				keep_plain(region, frame);
			return NULL;
		} else if (!back || !is_helper(frames, back)) {
			return frame;
		} else {
			is_helped = true;
		}
		frame = back;
	}
	return NULL;
}

/** The object of @frame, which is the calling thread's innermost or one of those that called it. New reference. */
static PyFrameObject *make_frame_object(const frame_t *frame)
{
	PyFrameObject *object = PyEval_GetFrame(); // borrowed
	Py_XINCREF(object);
	while (object && frame_object(frame) != object) {
		PyFrameObject *back = PyFrame_GetBack(object);
		Py_DECREF(object);
		object = back;
	}
	return object;
}

/** The tie of @region that is open here: of the frame that runs or of one that called it. NULL: there is none. */
static struct tie **find_open_tie(struct ps_region_frames *frames, const Region *region)
{
	frame_t *frame = frame_current();
	for (int depth = 0; frame && depth < 2 * MAX_DEPTH; depth++) {
		const PyFrameObject *object = frame_object(frame);
		struct tie **tie = bucket_of(frames, object);
		while (object && *tie && ((*tie)->frame != object || (*tie)->region != region))
			tie = &(*tie)->next;
		if (object && *tie)
			return tie;
		frame = frame_before(frame);
	}
	return NULL;
}

/* Passes. */

/** What is kept of frames, made when the first region is entered. -1 with an exception set. */
static int make_frames(struct ps_module_state *state)
{
	struct ps_region_frames *frames = calloc(1, sizeof(*frames));
	if (!frames) {
		PyErr_NoMemory();
		return -1;
	}
	frames->nr_buckets = MIN_BUCKETS;
	frames->buckets = calloc(MIN_BUCKETS, sizeof(*frames->buckets));
	// Names of code are interned too.
	frames->enter_name = PyUnicode_InternFromString("__enter__");
	frames->async_enter_name = PyUnicode_InternFromString("__aenter__");
	if (frames->buckets && frames->enter_name && frames->async_enter_name) {
		state->region_frames = frames;
		return 0;
	}
	if (!PyErr_Occurred())
		PyErr_NoMemory();
	ps_region_frames_destroy(frames);
	return -1;
}

/**
 * Learn where contextlib's code is from, once it is loaded; before, no frame is of it. To load it here would take a
 * process that has a region 2 ms. -1 with an exception set.
 */
static int find_helper_file(struct ps_region_frames *frames)
{
	_cleanup_pydecref_ PyObject *name = PyUnicode_InternFromString("contextlib");
	_cleanup_pydecref_ PyObject *contextlib = name ? PyImport_GetModule(name) : NULL;
	if (!contextlib)
		return PyErr_Occurred() ? -1 : 0;
	_cleanup_pydecref_ PyObject *helper = PyObject_GetAttrString(contextlib, "contextmanager");
	_cleanup_pydecref_ PyObject *code =
		helper ? PyObject_GetAttrString(helper, "__code__") : NULL;
	PyObject *file = code ? PyObject_GetAttrString(code, "co_filename") : NULL;
	if (!file && PyErr_ExceptionMatches(PyExc_AttributeError)) {
		PyErr_Clear(); // it is being loaded
		return 0;
	}
	Py_XSETREF(frames->helper_file, file);
	return file ? 0 : -1;
}

/** Remove the tie at @place, whose memory is kept. */
static void untie(struct ps_region_frames *frames, struct tie **place)
{
	struct tie *tie = *place;
	*place = tie->next;
	tie->next = frames->spare;
	frames->spare = tie;
	frames->nr--;
	tie->region->nr_ties--;
	Py_DECREF(tie->frame);
	Py_DECREF(tie->region);
}

/** Tie @region to @frame. False: no memory. */
static bool tie(struct ps_region_frames *frames, PyFrameObject *frame, Region *region)
{
	struct tie *tie = frames->spare ? frames->spare : calloc(1, sizeof(*tie));
	if (!tie)
		return false;
	if (tie == frames->spare)
		frames->spare = tie->next;
	if (frames->nr >= frames->nr_buckets)
		grow(frames);
	Py_INCREF(frame);
	Py_INCREF(region);
	tie->frame = frame;
	tie->region = region;
	tie->thread = PyThreadState_Get();
	tie->nr_plain = 0;
	tie->is_paused = false;
	tie->is_missed = !region_is_watched(frames);
	tie->parts.setup = 0; // the rest means nothing then
	put(frames, tie);
	frames->nr++;
	region->nr_ties++;
	return true;
}

int ps_region_frames_traverse(struct ps_region_frames *frames, visitproc visit, void *arg)
{
	if (frames)
		Py_VISIT(frames->profile);
	return 0;
}

void ps_region_frames_destroy(struct ps_region_frames *frames)
{
	if (!frames)
		return;
	for (size_t i = 0; frames->buckets && i < frames->nr_buckets; i++) {
		while (frames->buckets[i])
			untie(frames, &frames->buckets[i]);
	}
	for (struct tie *tie = frames->spare, *next; tie; tie = next) {
		next = tie->next;
		free(tie);
	}
	free(frames->buckets);
	Py_XDECREF(frames->helper_file);
	Py_XDECREF(frames->enter_name);
	Py_XDECREF(frames->async_enter_name);
	Py_XDECREF(frames->profile);
#if PY_VERSION_HEX >= 0x030C0000
	Py_XDECREF(frames->monitoring);
#endif
	free(frames);
}

/** Tie a pass of @region to @frame. -1 with an exception set. */
static int tie_pass(Region *region, const frame_t *frame)
{
	struct ps_region_frames *frames = region->state->region_frames;
	if (!frames->is_watching && region_watch_init(region->module, frames) < 0)
		return -1;
	_cleanup_pydecref_ PyObject *object = (PyObject *)make_frame_object(frame);
	if (!object || region_watch(region->module, (PyFrameObject *)object) < 0)
		return object || PyErr_Occurred() ? -1 : 0;
	if (tie(frames, (PyFrameObject *)object, region))
		return 0;
	PyErr_NoMemory();
	return -1;
}

/** A pass begins that no frame has: its end is not that of the one in which it lies. */
static void count_plain(struct ps_region_frames *frames, const Region *region)
{
	struct tie **place = region->nr_ties ? find_open_tie(frames, region) : NULL;
	if (place)
		(*place)->nr_plain++;
}

/** Whether what ends here in the frame of @tie, or in a function that it called, is not the pass of @tie but one inside. */
static bool is_plain_end(const struct tie *tie)
{
	return tie->nr_plain && frame_object(frame_current()) != tie->frame;
}

/** The same as region_enter(), where the code that runs is not known to be plain, or passes of @region are open in frames. */
static int enter_new(Region *region)
{
	if (!region->state->region_frames && make_frames(region->state) < 0)
		return -1;
	struct ps_region_frames *frames = region->state->region_frames;
	if (PS_UNLIKELY(!frames->helper_file) && find_helper_file(frames) < 0)
		return -1;
	frame_t *frame = find_suspendable(region, frame_current());
	if (!frame)
		count_plain(region->state->region_frames, region);
	else if (tie_pass(region, frame) < 0)
		return -1;
	ps_region_enter(region->region);
	return 0;
}

int region_enter(Region *region)
{
	const frame_t *frame = frame_innermost();
	if (PS_UNLIKELY(!frame || region->nr_ties ||
			(PyObject *)frame_code(frame) != region->plain))
		return enter_new(region);
	ps_region_enter(region->region);
	return 0;
}

/** End the pass of @tie: as incomplete, where its frame was suspended or went on unseen. */
static void end_tied(const struct ps_region_frames *frames, const struct tie *tie)
{
	struct ps_region *region = tie->region->region;
	if (tie->is_paused)
		ps_region_resume(region);
	if (tie->is_paused || tie->is_missed || !region_is_watched(frames))
		ps_region_abandon(region, &tie->parts);
	else if (tie->parts.setup)
		ps_region_leave_with(region, &tie->parts);
	else
		ps_region_leave(region);
}

/** The tie of @region to a frame of this thread that came to its end without leaving it. NULL: there is none. */
static struct tie **find_finished_tie(struct ps_region_frames *frames, const Region *region)
{
	for (size_t i = 0; i < frames->nr_buckets; i++) {
		struct tie **tie = &frames->buckets[i];
		for (; *tie; tie = &(*tie)->next) {
			if ((*tie)->region == region && (*tie)->thread == PyThreadState_Get() &&
			    frame_is_finished((*tie)->frame))
				return tie;
		}
	}
	return NULL;
}

/**
 * The tie of the pass of @region that ends here. NULL: no frame has it.
 *
 * One coroutine may begin it and another end it, as __aenter__ and __aexit__ do: in between nobody knew whose it was.
 */
static struct tie **find_ending_tie(struct ps_region_frames *frames, const Region *region)
{
	struct tie **place = find_open_tie(frames, region);
	if (place && is_plain_end(*place)) {
		(*place)->nr_plain--;
		return NULL;
	}
	return place || ps_region_is_open(region->region) ? place
							  : find_finished_tie(frames, region);
}

/** The same as region_leave(), where a pass of @region is open in some frame. */
static void leave_tied(Region *region)
{
	struct ps_region_frames *frames = region->state->region_frames;
	struct tie **place = find_ending_tie(frames, region);
	if (!place) {
		ps_region_leave(region->region);
		return;
	}
	end_tied(frames, *place);
	untie(frames, place);
	if (!frames->nr)
		region_unwatch();
}

void region_leave(Region *region)
{
	if (PS_UNLIKELY(region->nr_ties))
		leave_tied(region);
	else
		ps_region_leave(region->region);
}
