// SPDX-License-Identifier: MIT
/** Call stacks as Python values: a list of frames, innermost first. */
#include <perfscope/python_types.h>

#define MAX_ADDRESSES 1024 // of an unwound stack
#define MAX_FRAMES 64	   // of one address

/** The stack as it is put together. */
struct stack {
	PerfEvent *event;
	struct ps_module_state *state;
	const struct ps_lookup *lookup;
	pid_t pid;
	PyObject *list; // owned by the caller
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

/** The frames of @address, made new. *@ret_may_change: they are not to be kept. */
static PyObject *make_frames(const struct stack *stack, uint64_t address, unsigned int flags,
			     bool *ret_may_change)
{
	struct ps_frame frames[MAX_FRAMES] = {
		{ .address = address, .is_kernel = flags & PS_ADDRESS_KERNEL },
	};
	size_t nr = 1;
	if (stack->lookup && stack->lookup->symbolizer)
		nr = ps_symbolize(stack->lookup->symbolizer, stack->pid, address,
				  (enum ps_address_flags)flags, frames, MAX_FRAMES);
	*ret_may_change = frames[0].may_change;
	_cleanup_pydecref_ PyObject *list = PyList_New(0);
	for (size_t i = 0; list && i < nr; i++) {
		_cleanup_pydecref_ PyObject *frame = make_frame(&frames[i]);
		if (!frame || PyList_Append(list, frame) < 0)
			return NULL;
	}
	return_ptr(list);
}

/** Where the frames of an address are kept; NULL: no memory. */
static struct ps_stack_frames *find_place(struct ps_module_state *state, uint64_t address)
{
	if (!state->stack_frames)
		state->stack_frames = calloc(PS_NR_STACK_FRAMES, sizeof(*state->stack_frames));
	uint64_t hash = address * 0x9e3779b97f4a7c15ULL >> 40;
	return state->stack_frames ? &state->stack_frames[hash % PS_NR_STACK_FRAMES] : NULL;
}

/** Another number where @address may mean something else than it did. */
static uint64_t generation_of(const struct stack *stack, uint64_t address, unsigned int flags)
{
	const struct ps_lookup *lookup = stack->lookup;
	if (flags & PS_ADDRESS_KERNEL)
		return lookup && lookup->symbolizer
			       ? ps_symbolizer_kernel_generation(lookup->symbolizer, address)
			       : 0;
	return lookup && lookup->maps ? ps_maps_generation(lookup->maps, stack->pid) : 0;
}

/** The frames of @address: those of last time where nothing changed there. New reference. */
static PyObject *find_frames(const struct stack *stack, uint64_t address, unsigned int flags)
{
	uint64_t generation = generation_of(stack, address, flags);
	struct ps_stack_frames *place = find_place(stack->state, address);
	if (place && place->frames && place->address == address &&
	    place->generation == generation && place->flags == flags) {
		Py_INCREF(place->frames);
		return place->frames;
	}
	bool may_change;
	PyObject *frames = make_frames(stack, address, flags, &may_change);
	if (!frames || !place || may_change)
		return frames;
	PyObject *before = place->frames;
	Py_INCREF(frames);
	*place = (struct ps_stack_frames){ address, generation, flags, frames };
	Py_XDECREF(before);
	return frames;
}

/** Append copies of the frames of @address: what a script changes in them is its own. */
static int add_address(struct stack *stack, uint64_t address, unsigned int flags)
{
	_cleanup_pydecref_ PyObject *frames = find_frames(stack, address, flags);
	if (!frames)
		return -1;
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(frames); i++) {
		_cleanup_pydecref_ PyObject *copy = PyDict_Copy(PyList_GET_ITEM(frames, i));
		if (!copy || PyList_Append(stack->list, copy) < 0)
			return -1;
	}
	return 0;
}

/** The kernel's chain: addresses, and marks of what space those behind them are of (enum perf_callchain_context). */
static int add_chain(struct stack *stack, struct ps_bytes chain)
{
	uint64_t nr = 0, address;
	unsigned int flags = 0;
	ps_bytes_u64(chain, 0, &nr);
	for (uint64_t i = 0; i < nr && ps_bytes_u64(chain, 8 + 8 * i, &address); i++) {
		if (address >= (uint64_t)PERF_CONTEXT_MAX) {
			flags = address == (uint64_t)PERF_CONTEXT_KERNEL ? PS_ADDRESS_KERNEL : 0;
			continue;
		}
		if (add_address(stack, address, flags) < 0)
			return -1;
		flags |= PS_ADDRESS_RETURN; // only the first of its space is where it was
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
	};
	size_t nr = ps_unwind_user(stack->lookup->symbolizer, stack->pid, &state, addresses,
				   MAX_ADDRESSES);
	for (size_t i = 0; i < nr; i++) {
		if (add_address(stack, addresses[i], i ? PS_ADDRESS_RETURN : 0) < 0)
			return -1;
	}
	return 0;
}

PyObject *PerfEvent_decode_callchain(PerfEvent *self)
{
	const struct ps_sample_layout *layout = &self->type->layout;
	_cleanup_pydecref_ PyObject *list = PyList_New(0);
	if (!list)
		return NULL;
	struct ps_module_state *state = ps_module_state(self->type->module);
	struct ps_sample_parts parts;
	ps_sample_walk(layout, self->header, &parts);
	struct ps_bytes record = { (const uint8_t *)self->header, self->header->size };
	uint32_t pid = 0;
	ps_bytes_u32(record, layout->tid, &pid);
	struct stack stack = { self, state, state->host ? &state->host->lookup : NULL, (pid_t)pid,
			       list };
	struct ps_bytes chain;
	if (parts.callchain &&
	    ps_bytes_slice(record, parts.callchain, record.size - parts.callchain, &chain) &&
	    add_chain(&stack, chain) < 0)
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

void ps_stack_frames_clear(struct ps_module_state *state)
{
	for (size_t i = 0; state->stack_frames && i < PS_NR_STACK_FRAMES; i++)
		Py_CLEAR(state->stack_frames[i].frames);
	free(state->stack_frames);
	state->stack_frames = NULL;
}
