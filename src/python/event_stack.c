// SPDX-License-Identifier: MIT
/** Call stacks as Python values: a list of frames, innermost first. */
#include <perfscope/python_types.h>
#include <perfscope/sample_text.h>

#define MAX_ADDRESSES 1024 // of an unwound stack
#define MAX_FRAMES 64	   // of one address

/** The stack as it is put together. */
struct stack {
	PerfEvent *event;
	struct ps_module_state *state;
	const struct ps_lookup *lookup;
	pid_t pid;
	uint64_t generation;	    // of the maps of pid; 0: not asked for yet
	uint64_t memory_generation; // of its perf maps; 0: not asked for yet
	PyObject *list;		    // owned
	Py_ssize_t nr, nr_reserved; // places at the start of the list that are filled; of all
	uint32_t number;	    // of this stack
};

static int set_steal(PyObject *dict, const char *name, PyObject *value)
{
	_cleanup_pydecref_ PyObject *owned = value;
	return owned ? PyDict_SetItemString(dict, name, owned) : -1;
}

static PyObject *text_or_none(const char *text)
{
	if (!text)
		Py_RETURN_NONE;
	return ps_text_to_python(text, strlen(text));
}

static PyObject *make_frame(const struct ps_frame *frame)
{
	_cleanup_pydecref_ PyObject *dict = PyDict_New();
	if (!dict || set_steal(dict, "addr", ps_unsigned_to_python(frame->address)) < 0 ||
	    set_steal(dict, "symbol", text_or_none(frame->symbol)) < 0 ||
	    set_steal(dict, "offset", ps_unsigned_to_python(frame->offset)) < 0 ||
	    set_steal(dict, "kernel", PyBool_FromLong(frame->is_kernel)) < 0 ||
	    set_steal(dict, "dso", text_or_none(frame->dso)) < 0)
		return NULL;
	if (frame->line && set_steal(dict, "line", text_or_none(frame->line)) < 0)
		return NULL;
	return_ptr(dict);
}

/** The frames of @address, made new. @ret: the first of them; its texts may have gone. */
static PyObject *make_frames(const struct stack *stack, uint64_t address, unsigned int flags,
			     struct ps_frame *ret)
{
	struct ps_frame frames[MAX_FRAMES] = {
		{ .address = address, .is_kernel = flags & PS_ADDRESS_KERNEL },
	};
	size_t nr = 1;
	if (stack->lookup && stack->lookup->symbolizer)
		nr = ps_symbolize(stack->lookup->symbolizer, stack->pid, address,
				  (enum ps_address_flags)flags, frames, MAX_FRAMES);
	*ret = frames[0];
	_cleanup_pydecref_ PyObject *list = PyList_New(0);
	for (size_t i = 0; list && i < nr; i++) {
		_cleanup_pydecref_ PyObject *frame = make_frame(&frames[i]);
		if (!frame || PyList_Append(list, frame) < 0)
			return NULL;
	}
	return_ptr(list);
}

/** Where the frames of an address are kept, if they are; NULL: no memory. */
static struct ps_stack_frames *find_place(struct ps_module_state *state, uint64_t address,
					  uint64_t generation, unsigned int flags)
{
	if (PS_UNLIKELY(!state->stack_frames))
		state->stack_frames = calloc(PS_NR_STACK_FRAMES, sizeof(*state->stack_frames));
	uint64_t key = address + generation * 0xff51afd7ed558ccdULL + flags;
	uint64_t hash = key * 0x9e3779b97f4a7c15ULL >> 40;
	return state->stack_frames ? &state->stack_frames[hash % PS_NR_STACK_FRAMES] : NULL;
}

static uint64_t generation_of_maps(struct stack *stack)
{
	if (!stack->generation && stack->lookup->maps)
		stack->generation = ps_maps_generation(stack->lookup->maps, stack->pid);
	return stack->generation;
}

/** Another number where @address may mean something else than it did. */
static inline uint64_t generation_of(struct stack *stack, uint64_t address, unsigned int flags)
{
	if (!stack->lookup)
		return 0;
	if (!(flags & PS_ADDRESS_KERNEL))
		return generation_of_maps(stack);
	return stack->lookup->symbolizer
		       ? ps_symbolizer_kernel_generation(stack->lookup->symbolizer, address)
		       : 0;
}

/** Whether the perf maps have not changed since the frames of @place were made, where they are of such. */
static inline bool is_as_named(struct stack *stack, const struct ps_stack_frames *place)
{
	if (PS_LIKELY(!place->memory_generation))
		return true;
	// Looked at once a stack: all of it happened at one moment.
	if (!stack->memory_generation)
		stack->memory_generation =
			ps_symbolizer_memory_generation(stack->lookup->symbolizer, stack->pid);
	return place->memory_generation == stack->memory_generation;
}

/** Append @frame, which is taken over; NULL: an exception is set. */
static inline int append(struct stack *stack, PyObject *frame)
{
	if (PS_UNLIKELY(!frame))
		return -1;
	if (PS_LIKELY(stack->nr < stack->nr_reserved)) {
		PyList_SET_ITEM(stack->list, stack->nr++, frame);
		return 0;
	}
	_cleanup_pydecref_ PyObject *owned = frame;
	return PyList_Append(stack->list, owned);
}

/** Append the frames of @place: what a script changes in them is its own. */
static inline int append_lent(struct stack *stack, struct ps_stack_frames *place)
{
	PyObject *frames = place->frames;
	// That it stays is looked at each time: the collector may run a script's code, and that look at a stack.
	for (Py_ssize_t i = 0; place->frames == frames && i < PyList_GET_SIZE(frames); i++) {
		if (append(stack, ps_stack_frames_lend(place, stack->number, i)) < 0)
			return -1;
	}
	return 0;
}

/** Append @frames, which are of this stack alone. */
static int append_new(struct stack *stack, PyObject *frames)
{
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(frames); i++) {
		PyObject *frame = PyList_GET_ITEM(frames, i);
		Py_INCREF(frame);
		if (append(stack, frame) < 0)
			return -1;
	}
	return 0;
}

/** Append the frames of @address: those of last time where nothing changed there. */
static int add_address(struct stack *stack, uint64_t address, unsigned int flags)
{
	uint64_t generation = generation_of(stack, address, flags);
	struct ps_stack_frames *place = find_place(stack->state, address, generation, flags);
	if (PS_LIKELY(place && place->frames && place->address == address &&
		      place->generation == generation && place->flags == flags &&
		      is_as_named(stack, place)))
		return append_lent(stack, place);
	struct ps_frame first;
	_cleanup_pydecref_ PyObject *frames = make_frames(stack, address, flags, &first);
	stack->generation = 0; // it may have looked the process up
	if (!frames)
		return -1;
	// Between an exec and its first map there is no number for what is there.
	bool is_numbered = generation || flags & PS_ADDRESS_KERNEL || !stack->lookup;
	if (!place || first.may_change || !is_numbered)
		return append_new(stack, frames);
	ps_stack_frames_set(place, address, generation, flags, frames);
	place->memory_generation = first.memory_generation;
	return append_lent(stack, place);
}

/**
 * Whether what follows @mark is not asked for. It is there all the same where the stack was made for another event of the
 * kind (ps_attr_shares_samples).
 */
static bool is_left_out(const EventType *type, uint64_t mark)
{
	return (mark == (uint64_t)PERF_CONTEXT_KERNEL && type->has_no_kernel_stack) ||
	       (mark == (uint64_t)PERF_CONTEXT_USER && type->has_no_user_stack);
}

/** How many of the @nr words of @chain are no marks, and asked for. */
static Py_ssize_t count_addresses(const EventType *type, struct ps_bytes chain, uint64_t nr)
{
	uint64_t address;
	Py_ssize_t count = 0;
	bool is_out = false;
	for (uint64_t i = 0; i < nr && ps_bytes_u64(chain, 8 + 8 * i, &address); i++) {
		if (address >= (uint64_t)PERF_CONTEXT_MAX)
			is_out = is_left_out(type, address);
		else
			count += !is_out;
	}
	return count;
}

/**
 * The first @nr words of the kernel's chain: addresses, and marks of what space those behind them are of (enum
 * perf_callchain_context).
 */
static int add_chain(struct stack *stack, struct ps_bytes chain, uint64_t nr)
{
	uint64_t address;
	unsigned int flags = 0;
	bool is_out = false;
	for (uint64_t i = 0; i < nr && ps_bytes_u64(chain, 8 + 8 * i, &address); i++) {
		if (address >= (uint64_t)PERF_CONTEXT_MAX) {
			flags = address == (uint64_t)PERF_CONTEXT_KERNEL ? PS_ADDRESS_KERNEL : 0;
			is_out = is_left_out(stack->event->type, address);
			continue;
		}
		if (PS_UNLIKELY(is_out))
			continue;
		if (add_address(stack, address, flags) < 0)
			return -1;
		flags |= PS_ADDRESS_RETURN; // only the first of its space is where it was
	}
	return 0;
}

/** How many words of @chain there are up to the first address of user space; 0: there is none. */
static uint64_t find_user(struct ps_bytes chain)
{
	uint64_t nr = 0, word;
	ps_bytes_u64(chain, 0, &nr);
	for (uint64_t i = 0; i + 1 < nr && ps_bytes_u64(chain, 8 + 8 * i, &word); i++) {
		if (word == (uint64_t)PERF_CONTEXT_USER)
			return i + 2;
	}
	return 0;
}

/** The calls of @branches that have not returned, the last one first: each is where it was made. */
static int add_calls(struct stack *stack, struct ps_bytes branches)
{
	size_t at;
	uint64_t nr = EventType_find_branches(stack->event->type, branches, &at);
	struct ps_branch call;
	for (uint64_t i = 0; i < nr && ps_branch_read(branches, at, &call); i++) {
		if (add_address(stack, call.from, 0) < 0)
			return -1;
		at += PS_BRANCH_SIZE;
	}
	return 0;
}

/** The user's part from the copy of its stack. */
static int add_unwound(struct stack *stack, const struct ps_sample_parts *parts)
{
	const struct ps_sample_layout *layout = &stack->event->type->layout;
	const uint8_t *record = (const uint8_t *)stack->event->header;
	uint64_t regs[64], abi, size, addresses[MAX_ADDRESSES];
	memcpy(&abi, record + parts->regs_user, sizeof(abi));
	memcpy(&size, record + parts->stack_user, sizeof(size));
	if (!abi || !size || !stack->lookup || !stack->lookup->symbolizer)
		return 0;
	memcpy(regs, record + parts->regs_user + 8,
	       8 * __builtin_popcountll(layout->regs_user_mask));
	uint64_t filled;
	memcpy(&filled, record + parts->stack_user + 8 + size, sizeof(filled));
	struct ps_user_state state = {
		.regs = regs,
		.mask = layout->regs_user_mask,
		.stack = { record + parts->stack_user + 8, filled < size ? filled : size },
		.is_cut = filled >= size,
	};
	size_t nr = ps_unwind_user(stack->lookup->symbolizer, stack->pid, &state, addresses,
				   MAX_ADDRESSES);
	for (size_t i = 0; i < nr; i++) {
		if (add_address(stack, addresses[i], i ? PS_ADDRESS_RETURN : 0) < 0)
			return -1;
	}
	return 0;
}

/** The record from @offset of a part on; empty where that is 0: it has none. */
static struct ps_bytes find_part(const PerfEvent *self, uint32_t offset)
{
	struct ps_bytes record = { (const uint8_t *)self->header, self->header->size };
	struct ps_bytes part = { record.data, 0 };
	if (offset)
		ps_bytes_slice(record, offset, record.size - offset, &part);
	return part;
}

/** Where @self has calls that take the place of the user's part of @chain behind its first address; else empty. */
static struct ps_bytes find_calls(const PerfEvent *self, const struct ps_sample_parts *parts)
{
	struct ps_bytes calls =
		find_part(self, self->type->has_branch_calls ? parts->branch_stack : 0);
	uint64_t nr = 0;
	// Without any, what the kernel found by frame pointers is more.
	if (!ps_bytes_u64(calls, 0, &nr) || !nr)
		calls.size = 0;
	return calls;
}

PyObject *PerfEvent_decode_callchain(PerfEvent *self)
{
	const struct ps_sample_layout *layout = &self->type->layout;
	struct ps_module_state *state = ps_module_state(self->type->module);
	struct ps_sample_parts parts;
	ps_sample_walk(layout, self->header, &parts);
	struct ps_bytes chain = find_part(self, parts.callchain);
	struct ps_bytes calls = find_calls(self, &parts);
	struct ps_bytes record = { (const uint8_t *)self->header, self->header->size };
	uint32_t pid = 0;
	ps_bytes_u32(record, layout->tid, &pid);
	uint64_t nr_words = calls.size ? find_user(chain) : 0;
	if (!nr_words) {
		calls.size = 0;
		ps_bytes_u64(chain, 0, &nr_words);
	}
	Py_ssize_t nr = count_addresses(self->type, chain, nr_words);
	_cleanup_pydecref_ PyObject *list = PyList_New(nr);
	struct stack stack = {
		.event = self,
		.state = state,
		.lookup = state->host ? &state->host->lookup : NULL,
		.pid = (pid_t)pid,
		.list = list,
		.nr_reserved = nr,
		.number = ++state->nr_stacks,
	};
	if (!list || add_chain(&stack, chain, nr_words) < 0)
		return NULL;
	if (calls.size && add_calls(&stack, calls) < 0)
		return NULL;
	if (self->type->is_unwound && parts.regs_user && parts.stack_user &&
	    add_unwound(&stack, &parts) < 0)
		return NULL;
	return_ptr(list);
}

/** "        ffffffff81000000 symbol+0x10 (dso) file.c:12", as far as it is known. */
static PyObject *frame_line(PyObject *frame)
{
	unsigned long long address = PyLong_AsUnsignedLongLong(PyDict_GetItemString(frame, "addr"));
	unsigned long long offset =
		PyLong_AsUnsignedLongLong(PyDict_GetItemString(frame, "offset"));
	PyObject *symbol = PyDict_GetItemString(frame, "symbol");
	PyObject *dso = PyDict_GetItemString(frame, "dso");
	PyObject *line = PyDict_GetItemString(frame, "line");
	char head[40], tail[40] = "";
	snprintf(head, sizeof(head), "    %16llx ", address);
	if (symbol != Py_None)
		snprintf(tail, sizeof(tail), "+%#llx", offset);
	_cleanup_pydecref_ PyObject *unknown = PyUnicode_FromString("[unknown]");
	if (!unknown || PyErr_Occurred())
		return NULL;
	return PyUnicode_FromFormat("%s%U%s (%U)%s%V\n", head, symbol != Py_None ? symbol : unknown,
				    tail, dso != Py_None ? dso : unknown, line ? " " : "", line,
				    "");
}

PyObject *PerfEvent_stack_lines(PerfEvent *self)
{
	_cleanup_pydecref_ PyObject *stack = PerfEvent_load(self, PS_SLOT_CALLCHAIN);
	_cleanup_pydecref_ PyObject *lines = stack ? PyList_New(0) : NULL;
	_cleanup_pydecref_ PyObject *empty = lines ? PyUnicode_FromString("") : NULL;
	if (!empty)
		return NULL;
	for (Py_ssize_t i = 0; PyList_Check(stack) && i < PyList_GET_SIZE(stack); i++) {
		_cleanup_pydecref_ PyObject *line = frame_line(PyList_GET_ITEM(stack, i));
		if (!line || PyList_Append(lines, line) < 0)
			return NULL;
	}
	return PyUnicode_Join(empty, lines);
}
