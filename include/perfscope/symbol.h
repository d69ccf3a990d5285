// SPDX-License-Identifier: MIT
/**
 * Symbols: the name, file and source line of an address, and the stack of a thread from its registers and bytes.
 */
#ifndef PERFSCOPE_SYMBOL_H
#define PERFSCOPE_SYMBOL_H

#include <perfscope/bytes.h>
#include <perfscope/maps.h>

/** Distinct places (an address of a file) whose frames are kept; the least lately used make room. */
#define PS_SYMBOL_CACHE_SIZE 65536

/** Bytes of distinct names, paths and lines after which all are forgotten, and looked up again. */
#define PS_SYMBOL_MAX_TEXT (64u << 20)

/** Frames that one address can stand for: functions inlined into each other. */
#define PS_SYMBOL_MAX_INLINED 64

/** How an address is to be read. */
enum ps_address_flags {
	PS_ADDRESS_KERNEL = 1,
	// It is where a call returns to: the call itself lies before it, perhaps at the end of its function.
	PS_ADDRESS_RETURN = 2,
};

/** A function at an address. Strings live until the next call on the symbolizer. */
struct ps_frame {
	uint64_t address; // as asked for
	uint64_t
		offset; // from the start of the symbol, or of the symbol it is inlined into; 0: unknown
	const char *symbol; // demangled; NULL: unknown
	// "[kernel.kallsyms]", "[module]", path, "path [deleted]", "[vdso]", "//anon", "[perf map]"; NULL: in no map
	const char *dso;
	const char *line; // "file.c:12", or NULL
	bool is_kernel;
	bool is_inlined; // into the frame behind it
	bool may_change; // not to be kept: a module may name it otherwise later
	// Of memory that a perf map may name: to be kept while ps_symbolizer_memory_generation() is this. 0: of no such.
	uint64_t memory_generation;
};

struct ps_symbol_options {
	bool has_lines; // read debug info: inlined frames and source lines
	// Where separate debug files are searched, instead of /usr/lib/debug; borrowed. NULL: there.
	const char *debug_folder;
	// Fetch debug files that are not here from the servers of DEBUGINFOD_URLS; nothing else uses the network.
	bool has_debuginfod;
	bool (*is_stopping)(void); // asked while one is fetched; NULL: never
	const char *kallsyms;	   // instead of /proc/kallsyms, for tests; borrowed
	size_t max_text_bytes;	   // 0: PS_SYMBOL_MAX_TEXT
};

struct ps_symbolizer;

/** @maps must outlive it. @options may be NULL: all off. Nothing is read before the first address is. */
struct ps_error *ps_symbolizer_create(struct ps_maps *maps, const struct ps_symbol_options *options,
				      struct ps_symbolizer **ret);
void ps_symbolizer_destroy(struct ps_symbolizer *symbolizer);

/**
 * The frames of @address in process @pid, innermost first: at least one, at most @max.
 *
 * @max is not 0. An unknown symbol is no error: symbol is NULL.
 */
size_t ps_symbolize(struct ps_symbolizer *symbolizer, pid_t pid, uint64_t address,
		    enum ps_address_flags flags, struct ps_frame *frames, size_t max);

/**
 * Read the kernel's symbols now, as a process that gives its privileges up must.
 *
 * PS_ERROR_PERMISSION: the kernel hides its addresses (kptr_restrict); kernel frames then have no symbol.
 */
struct ps_error *ps_symbolizer_load_kernel(struct ps_symbolizer *symbolizer);

/** Follow a KSYMBOL record, which tells of a function that the kernel made or removed; others are passed over. */
void ps_symbolizer_follow(struct ps_symbolizer *symbolizer, const struct perf_event_header *header);

/** A number that is another one after each change of what records told of the kernel's @address; 0: nothing yet. */
uint64_t ps_symbolizer_kernel_generation(const struct ps_symbolizer *symbolizer, uint64_t address);

/**
 * A number that is another one after each change of the perf maps that name the memory of @pid: its own, and those of
 * the processes that it was forked from. They are looked at again after a moment (JIT_PERIOD_MS). 0: it is not known.
 */
uint64_t ps_symbolizer_memory_generation(struct ps_symbolizer *symbolizer, pid_t pid);

/** The registers and the piece of stack of a sample of a user's thread. */
struct ps_user_state {
	const uint64_t *regs;  // in the order of the bits of mask
	uint64_t mask;	       // PERF_REG_*, as sample_regs_user
	struct ps_bytes stack; // from the stack pointer up; dyn_size of it
	bool is_cut; // the stack may go on above the piece: it has the size that was asked for
};

/** No stack is unwound for longer, but for the time that it takes to open a file. */
#define PS_UNWIND_LIMIT_NS 100000000

/** How many stacks were unwound, and how many of them not to their end, and why. */
struct ps_unwind_counts {
	uint64_t nr_stacks;
	uint64_t nr_by_rules; // without libdw, which is slower
	uint64_t nr_above;    // the rest lies above the piece of the stack
	uint64_t nr_deep;     // there was no more room for addresses
	uint64_t nr_slow;     // it took too long
};

/**
 * Unwind the stack of a thread of @pid by call frame information; where there is none, by frame pointers.
 *
 * @ret gets at most @max addresses, the innermost first; all but that are where calls return to. Returns their number,
 * 0 where the registers lack the program counter or the stack pointer.
 */
size_t ps_unwind_user(struct ps_symbolizer *symbolizer, pid_t pid,
		      const struct ps_user_state *state, uint64_t *ret, size_t max);

struct ps_unwind_counts ps_symbolizer_unwind_counts(const struct ps_symbolizer *symbolizer);

/** Places in the cache, for tests and --usage. */
size_t ps_symbolizer_nr_cached(const struct ps_symbolizer *symbolizer);
/** Bytes of names, paths and lines, and of perf maps. */
size_t ps_symbolizer_nr_text_bytes(const struct ps_symbolizer *symbolizer);
size_t ps_symbolizer_nr_jit_bytes(const struct ps_symbolizer *symbolizer);

#endif
