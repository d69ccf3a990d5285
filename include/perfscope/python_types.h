// SPDX-License-Identifier: MIT
/**
 * The module's types and state, for src/python/ alone.
 */
#ifndef PERFSCOPE_PYTHON_TYPES_H
#define PERFSCOPE_PYTHON_TYPES_H

#include <perfscope/machine.h>
#include <perfscope/python.h>
#include <perfscope/regions.h>
#include <perfscope/sample_field.h>

// A free-threaded Python could be told to run this module with the GIL, but not its user to leave it on.
#ifdef Py_GIL_DISABLED
#error "perfscope relies on the GIL, which this Python is built without"
#endif

// Flags that 3.9 does not know; there, Py_tp_new is taken away by hand.
#if PY_VERSION_HEX < 0x030A0000
#define PS_TYPE_NOT_CALLABLE 0
#define PS_TYPE_IMMUTABLE 0
// 3.9 takes the signature off a docstring before it looks for it there: it is given a second one.
#define PS_CLASS_SIGNATURE(text) text text
#else
#define PS_TYPE_NOT_CALLABLE Py_TPFLAGS_DISALLOW_INSTANTIATION
#define PS_TYPE_IMMUTABLE Py_TPFLAGS_IMMUTABLETYPE
#define PS_CLASS_SIGNATURE(text) text
#endif

#if PY_VERSION_HEX < 0x030A0000
static inline int PyModule_AddObjectRef(PyObject *module, const char *name, PyObject *value)
{
	Py_XINCREF(value);
	if (value && PyModule_AddObject(module, name, value) == 0)
		return 0;
	Py_XDECREF(value);
	return -1;
}
#endif

// Names of threads that were made into strings lately, by the low bits of the thread id.
#define PS_NR_COMM_STRINGS 64

struct ps_comm_string {
	char comm[PS_COMM_SIZE];
	PyObject *text; // owned, NULL: none yet
};

// Frames of addresses that were asked for lately, by hash of the address.
#define PS_NR_STACK_FRAMES 8192

/** A copy of a frame that a script got, and may hold and change. */
struct ps_lent_frame {
	PyObject *dict; // owned, NULL: none
	uint64_t version;
};

struct ps_stack_frames {
	uint64_t address;
	uint64_t generation;	    // of the process's maps; 0: the kernel
	uint64_t memory_generation; // ps_frame's
	PyObject *frames;	    // owned, a list of dicts, which no script sees; NULL: none yet
	unsigned int flags;	    // enum ps_address_flags
	uint32_t stack;		    // the last one in which they are
	uint32_t nr_lent;	    // to that one
	uint32_t max_lent;
	struct ps_lent_frame *lent; // max_lent, owned
};

// Regions whose name was the same object as when they were made, as literals are.
#define PS_NR_QUICK_REGIONS 64

/** State of one module object. */
struct ps_module_state {
	PyTypeObject *event_type; // EventType
	PyTypeObject *perf_event;
	PyTypeObject *totals;
	PyTypeObject *region_pass;
	PyTypeObject *region;
	PyTypeObject *kept_method;
	PyTypeObject *counter_group;
	PyObject *regions; // dict: name to Region
	// Some of these, by the low bits of the name's address; borrowed, NULL: none yet.
	PyObject *quick_regions[PS_NR_QUICK_REGIONS];
	PyObject *region_tools;			// module of region_tools.py; NULL: not used yet
	struct ps_region_frames *region_frames; // owned; NULL: no region was entered yet
	PyObject *perf_event_error;
	PyObject *decode_error;
	const struct ps_host *host; // borrowed, NULL outside a run
	struct ps_comm_string comms[PS_NR_COMM_STRINGS];
	struct ps_stack_frames
		*stack_frames; // PS_NR_STACK_FRAMES, owned; NULL: no stack was read yet
	uint32_t nr_stacks;    // that were read; it may go round
};

struct ps_module_state *ps_module_state(PyObject *module);

/** A field that every event has; the one table of them (event_type.c). */
enum ps_common_slot {
	PS_SLOT_PID,
	PS_SLOT_TID,
	PS_SLOT_TIME,
	PS_SLOT_CPU,
	PS_SLOT_PERIOD,
	PS_SLOT_EVENT,
	PS_SLOT_REALTIME,
	PS_SLOT_COMM,
	PS_SLOT_CALLCHAIN,
	PS_SLOT_COUNTERS,
	PS_SLOT_RAW,
	PS_NR_COMMON_SLOTS,
};

// Attribute names are interned, so most lookups end at a pointer compare in this small table. A name stands at its
// hash or in one of the places behind it; one that finds no room there is found by hash in by_dot.
#define PS_NR_ATTRIBUTES 128
#define PS_NR_PROBES 4

struct ps_attribute {
	PyObject *name;	 // borrowed from by_dot, or from the class for a method
	Py_ssize_t slot; // -1: a method
};

/** How the integer of a slot is read where it has a fixed place. */
struct ps_loader {
	bool is_int;	// false: the slot is decoded by its kind
	bool is_in_raw; // offset and end count from the raw data, else from the record
	bool is_signed;
	uint8_t shift; // 64 less the bits of the integer
	uint32_t offset;
	uint32_t end; // of the field
};

typedef struct PerfEvent PerfEvent;

/**
 * One kind of event: its schema, its names, its freelist.
 *
 * Slots: the common ones, the schema's fields, the parts of the sample that have names.
 */
typedef struct {
	PyObject_HEAD
	PyObject *module;	  // owned
	struct ps_schema *schema; // a reference
	struct ps_sample_layout layout;
	enum ps_arch arch; // whose registers the samples have
	struct ps_time_view time_view;
	int64_t realtime_offset_ns;
	bool is_unwound;       // the user's part of a stack comes from stack_user
	bool has_branch_calls; // the user's part but its first address comes from branch_stack
	bool has_no_user_stack, has_no_kernel_stack; // in the kernel's part of a stack
	uint64_t period;			     // of each sample, where samples do not tell it
	const struct ps_sample_field **samples;	     // by slot behind the schema's, owned array
	size_t nr_samples;
	Py_ssize_t nr_slots;
	struct ps_loader *loaders; // by slot, owned
	PyObject *name;		   // str, _event
	PyObject *by_dot;	   // dict: str to slot, without methods
	PyObject *by_key;	   // dict: str to slot
	PyObject *keys;		   // tuple of str: each name once, in order of slots
	Py_ssize_t *key_slots;	   // slot of each of keys
	PyObject *empty;	   // dict of all keys, for to_dict
	PyObject *counters;	   // dict: id to label of the group's streams; NULL: no group
	PyObject *missing; // dict: label to None of the group's missing counters; NULL: no group
	PerfEvent *free;   // one spare event, without a reference to this type
	struct ps_attribute attributes[PS_NR_ATTRIBUTES + PS_NR_PROBES];
} EventType;

/** Attached (header is the ring's), detached (header is owned), or expired (header is NULL). */
struct PerfEvent {
	PyObject_VAR_HEAD
	EventType *type; // owned, but NULL in the freelist
	const struct perf_event_header *header;
	bool is_owner;
	uint64_t loaded;   // bit of each slot that is; the last bit stands for all slots from 63
	PyObject *slots[]; // NULL: not read yet
};

/** The first of the PS_NR_PROBES places in which @name can stand. */
static inline struct ps_attribute *EventType_places(EventType *type, PyObject *name)
{
	uintptr_t bits = (uintptr_t)name;
	return &type->attributes[((bits >> 4) ^ (bits >> 11)) % PS_NR_ATTRIBUTES];
}

/** The entry of @name in the pointer table; NULL: it is not there. */
static inline const struct ps_attribute *EventType_find_attribute(EventType *type, PyObject *name)
{
	const struct ps_attribute *places = EventType_places(type, name);
	for (int i = 0; i < PS_NR_PROBES; i++) {
		if (places[i].name == name)
			return &places[i];
	}
	return NULL;
}

/** The slot of @name by dot or key; -1: none, or not a string; no exception is set. */
Py_ssize_t EventType_find_dot(EventType *type, PyObject *name);
Py_ssize_t EventType_find_key(EventType *type, PyObject *name);

/** Set @exception for @name, with the nearest names. */
void EventType_raise_missing(EventType *type, PyObject *exception, PyObject *name);

/** Where the raw data of @self is; false: cut. */
bool PerfEvent_find_raw(PerfEvent *self, struct ps_bytes *ret);

/** The value in @slot, decoded when first asked for. New reference. */
PyObject *PerfEvent_load(PerfEvent *self, Py_ssize_t slot);

/** The value of a common field, decoded. New reference. */
PyObject *PerfEvent_decode_common(PerfEvent *self, enum ps_common_slot slot);

/** The value of a part of the sample. New reference. */
PyObject *PerfEvent_decode_sample(PerfEvent *self, const struct ps_sample_field *field);

/** Write a part of the sample in words. False: it has none, or is not there. */
bool PerfEvent_write_sample(PerfEvent *self, const struct ps_sample_field *field, FILE *stream);

/** The number of branches in @bytes, a branch_stack; *@ret_at is where the first is. */
uint64_t EventType_find_branches(const EventType *type, struct ps_bytes bytes, size_t *ret_at);

/** `_callchain`: a list of frames. New reference. */
PyObject *PerfEvent_decode_callchain(PerfEvent *self);

/** The frames of `_callchain` as lines, each ended by a newline. New reference. */
PyObject *PerfEvent_stack_lines(PerfEvent *self);

/** Keep @frames (a list of dicts, which gets another reference) in @place instead of what is there. */
void ps_stack_frames_set(struct ps_stack_frames *place, uint64_t address, uint64_t generation,
			 unsigned int flags, PyObject *frames);

/** The frame at @index of @place as a dict of the caller's own; @stack is a number of the stack it is for. New reference. */
PyObject *ps_stack_frames_lend(struct ps_stack_frames *place, uint32_t stack, Py_ssize_t index);

/** Free the frames that @state keeps. */
void ps_stack_frames_clear(struct ps_module_state *state);

/** One line as `print` shows it, without a newline. New reference. */
PyObject *PerfEvent_line(PerfEvent *self, bool timestamp);

/** An int, by the quicker of the two constructors where both take 64 bits. New reference. */
static inline PyObject *ps_int_to_python(int64_t value)
{
	return sizeof(long) == sizeof(value) ? PyLong_FromLong((long)value)
					     : PyLong_FromLongLong(value);
}

static inline PyObject *ps_unsigned_to_python(uint64_t value)
{
	return value <= INT64_MAX ? ps_int_to_python((int64_t)value)
				  : PyLong_FromUnsignedLongLong(value);
}

/** A decoded value as a Python object. New reference. */
PyObject *ps_value_to_python(const struct ps_value *value);

/** Text of the kernel: UTF-8, other bytes by surrogateescape. New reference. */
PyObject *ps_text_to_python(const char *text, size_t size);

extern const char *const ps_common_names[PS_NR_COMMON_SLOTS];
/** The module's state, by an object of one of its types. */
static inline struct ps_module_state *ps_state_of(void *object)
{
	return PyType_GetModuleState(Py_TYPE((PyObject *)object));
}

/** Set @exception with the message of @error, which is taken over. Always NULL. */
PyObject *ps_raise_error(PyObject *exception, struct ps_error *error);

/** The text of the str @text, borrowed from it; NULL with an exception where it has a NUL or no UTF-8. */
const char *ps_text_from_python(PyObject *text);

/** Counters from a str, names by commas, or names of an iterable; false with an exception set. */
bool ps_counters_from_python(PyObject *events, struct ps_counter counters[PS_MAX_COUNTERS],
			     size_t *ret_nr);
/** Their names. New reference: tuple of str. */
PyObject *ps_counters_to_python(const struct ps_counter *counters, size_t nr);
/** `EVENTS`. New reference. */
PyObject *ps_known_counters_to_python(void);
PyObject *module_validate_events(PyObject *module, PyObject *events);

/** Offer `perfscope.perf_events`, once @module has all that it shows. */
int ps_perf_events_add(PyObject *module);

/** region(): the one Region of @name. New reference. */
PyObject *ps_region_get(PyObject *module, PyObject *name);

/** Let each Region keep what `with` asks it for. -1 with an exception set. */
int ps_region_keep_methods(struct ps_module_state *state);

/** configure(), regions(), reset() and report(). New references. */
PyObject *ps_regions_configure_python(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ps_regions_python(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ps_regions_reset_python(PyObject *module, PyObject *unused);
PyObject *ps_regions_report_python(PyObject *module, PyObject *args, PyObject *kwargs);

/** What @name is in region_tools.py. New reference. */
PyObject *ps_region_tool(PyObject *module, const char *name);

/** Takes NULL, as does destroy. */
int ps_region_frames_traverse(struct ps_region_frames *frames, visitproc visit, void *arg);
void ps_region_frames_destroy(struct ps_region_frames *frames);

extern PyType_Spec EventType_spec, PerfEvent_spec, PerfEventTotals_spec, RegionPass_spec,
	Region_spec, KeptMethod_spec, CounterGroup_spec;

#endif
