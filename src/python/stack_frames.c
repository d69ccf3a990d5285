// SPDX-License-Identifier: MIT
/** Frames as dicts that are lent to scripts, which may change and keep them, and are lent again when they come back. */
#include <perfscope/python_types.h>

// Dicts of one address that are lent again: one stack holds many where a function calls itself.
#define MAX_LENT 64

// From 3.12 on the version of a dict is not for others to read.
#if PY_VERSION_HEX < 0x030C0000
#define HAS_DICT_VERSION 1
#else
#define HAS_DICT_VERSION 0
#endif

/** A number that another state of @dict does not have; 0: this Python tells none. */
static inline uint64_t version_of(PyObject *dict)
{
#if HAS_DICT_VERSION
	return ((PyDictObject *)dict)->ma_version_tag;
#else
	return 0;
#endif
}

/** Whether both have the very same objects in the same order. */
static bool is_same(PyObject *left, PyObject *right)
{
	PyObject *left_key, *left_value, *right_key, *right_value;
	Py_ssize_t left_at = 0, right_at = 0;
	if (PyDict_Size(left) != PyDict_Size(right))
		return false;
	while (PyDict_Next(left, &left_at, &left_key, &left_value) &&
	       PyDict_Next(right, &right_at, &right_key, &right_value)) {
		if (left_key != right_key || left_value != right_value)
			return false;
	}
	return true;
}

/** Whether @lent is back, as it was lent. */
static inline bool is_back(const struct ps_lent_frame *lent, PyObject *frame)
{
	if (!lent->dict || Py_REFCNT(lent->dict) != 1)
		return false;
	return HAS_DICT_VERSION ? version_of(lent->dict) == lent->version
				: is_same(lent->dict, frame);
}

/** Make room for a dict at @at; false: there is none, or no memory. */
static bool reserve(struct ps_stack_frames *place, uint32_t at)
{
	if (PS_LIKELY(at < place->max_lent))
		return true;
	uint32_t max = place->max_lent ? 2 * place->max_lent : PyList_GET_SIZE(place->frames);
	if (at >= MAX_LENT || at >= max)
		return false;
	struct ps_lent_frame *lent = PyMem_Realloc(place->lent, max * sizeof(*lent));
	if (!lent)
		return false;
	memset(lent + place->max_lent, 0, (max - place->max_lent) * sizeof(*lent));
	place->lent = lent;
	place->max_lent = max;
	return true;
}

/** Copy @frame, to be lent again from @at. New reference. */
static PyObject *lend_new(struct ps_stack_frames *place, PyObject *frame, uint32_t at)
{
	PyObject *dict = PyDict_Copy(frame);
	if (!dict || !reserve(place, at))
		return dict;
	PyObject *before = place->lent[at].dict;
	place->lent[at] = (struct ps_lent_frame){ dict, version_of(dict) };
	Py_INCREF(dict);
	Py_XDECREF(before);
	return dict;
}

PyObject *ps_stack_frames_lend(struct ps_stack_frames *place, uint32_t stack, Py_ssize_t index)
{
	if (place->stack != stack)
		place->nr_lent = 0;
	place->stack = stack;
	uint32_t at = place->nr_lent++;
	PyObject *frame = PyList_GET_ITEM(place->frames, index);
	if (PS_UNLIKELY(at >= place->max_lent || !is_back(&place->lent[at], frame)))
		return lend_new(place, frame, at);
	Py_INCREF(place->lent[at].dict);
	return place->lent[at].dict;
}

static void place_clear(struct ps_stack_frames *place)
{
	struct ps_stack_frames before = *place;
	*place = (struct ps_stack_frames){ 0 };
	for (uint32_t i = 0; i < before.max_lent; i++)
		Py_XDECREF(before.lent[i].dict);
	PyMem_Free(before.lent);
	Py_XDECREF(before.frames);
}

void ps_stack_frames_set(struct ps_stack_frames *place, uint64_t address, uint64_t generation,
			 unsigned int flags, PyObject *frames)
{
	place_clear(place);
	Py_INCREF(frames);
	*place = (struct ps_stack_frames){
		.address = address,
		.generation = generation,
		.flags = flags,
		.frames = frames,
	};
}

void ps_stack_frames_clear(struct ps_module_state *state)
{
	for (size_t i = 0; state->stack_frames && i < PS_NR_STACK_FRAMES; i++)
		place_clear(&state->stack_frames[i]);
	free(state->stack_frames);
	state->stack_frames = NULL;
}
