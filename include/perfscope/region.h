// SPDX-License-Identifier: MIT
/**
 * Regions: counters for named stretches of a program's execution. For C and C++; link with -lperfscope-region.
 *
 *	perfscope_region_begin("parse");
 *	parse(input);
 *	perfscope_region_end("parse");
 *
 * Under `perfscope python -e instructions,page-faults SCRIPT --run ./program` the totals arrive in the script's
 * __exit__(totals). Without perfscope, perfscope_region_configure makes the program count for itself. Where nobody looks,
 * begin and end are a load and a branch.
 *
 * What is counted is the calling thread's own, from begin to end; begin and end of a pass belong in one thread. A name
 * that is begun again before it ended counts once in the values and each time in the calls. Safe to call
 * from any thread; not from a signal handler.
 */
#ifndef PERFSCOPE_REGION_H
#define PERFSCOPE_REGION_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Whether someone looks. Not to be written. */
extern int perfscope_region_is_active;

void perfscope_region_begin_active(const char *name);
void perfscope_region_end_active(const char *name);

/**
 * Begin a pass. @name: at most 63 bytes, of a longer one these are it; a string constant is found quickest.
 *
 * Nothing is counted for "", NULL and "run", as perfscope_region_error() then says.
 */
static inline void perfscope_region_begin(const char *name)
{
	if (__builtin_expect(__atomic_load_n(&perfscope_region_is_active, __ATOMIC_RELAXED), 0))
		perfscope_region_begin_active(name);
}

/** End a pass. One that was not begun in this thread is counted as incomplete. */
static inline void perfscope_region_end(const char *name)
{
	if (__builtin_expect(__atomic_load_n(&perfscope_region_is_active, __ATOMIC_RELAXED), 0))
		perfscope_region_end_active(name);
}

enum perfscope_region_flags {
	PERFSCOPE_REGION_USER_ONLY = 1 << 0, // leave the kernel out
	PERFSCOPE_REGION_STRICT = 1 << 1,    // a single refused counter is an error
	PERFSCOPE_REGION_INHERIT = 1 << 2,   // threads born inside a region count in it
	PERFSCOPE_REGION_SUBTRACT = 1 << 3,  // take the cost of an empty pass off what is told
};

/**
 * Count @events ("instructions,task-clock") from now on. 0, or -1 with the reason in perfscope_region_error().
 *
 * The calling thread makes some empty passes, whose cost perfscope_region_overhead tells.
 */
int perfscope_region_configure(const char *events, unsigned int flags);

/** Why the last call of this thread that failed did; never NULL, and the library's until the next. */
const char *perfscope_region_error(void);

/** Values of one counter over the passes of a region. */
struct perfscope_region_value {
	const char *name; // the library's, until the next configure
	int is_valid; // 0: it could not be counted in all of them; value and scaled mean nothing
	uint64_t value;
	double scaled;	 // the estimate for the whole time, where counters had to take turns
	double coverage; // part of the time in which it counted, 0 to 1
};

/** Totals of one region. */
struct perfscope_region_total {
	uint64_t calls;
	uint64_t incomplete; // passes that had no begin or no end
	uint64_t
		open; // passes that have begun and not ended yet: they are in none of the other numbers
	double seconds; // wall time
	size_t nr_values;
	struct perfscope_region_value values[16];
};

/** Totals of @name over all threads of this process; 0, or -1 where there is no such region. */
int perfscope_region_totals(const char *name, struct perfscope_region_total *ret);

/** What an empty pass counts by itself, the median of as many as @ret->calls; 0, or -1 where it was not measured. */
int perfscope_region_overhead(struct perfscope_region_total *ret);

/** Totals start from zero again. 0, or -1 where there is no memory. */
int perfscope_region_reset(void);

/** Write a table of all regions to @file; 0, or -1 where it could not be written. */
int perfscope_region_report(FILE *file);

/** The scope that PERFSCOPE_REGION leaves. */
static inline void perfscope_region_end_scope(const char *const *name)
{
	perfscope_region_end(*name);
}

#define PERFSCOPE_REGION_JOIN_(a, b) a##b
#define PERFSCOPE_REGION_JOIN(a, b) PERFSCOPE_REGION_JOIN_(a, b)

#ifdef __cplusplus
}

namespace perfscope
{
/** A pass from here to the end of the scope, however it is left. */
class region
{
      public:
	explicit region(const char *name) : name_(name)
	{
		perfscope_region_begin(name_);
	}
	~region()
	{
		perfscope_region_end(name_);
	}
	region(const region &) = delete;
	region &operator=(const region &) = delete;

      private:
	const char *name_;
};
} // namespace perfscope

#define PERFSCOPE_REGION(name)                                                                     \
	::perfscope::region PERFSCOPE_REGION_JOIN(perfscope_region_, __LINE__)(name)
#else
/** A pass from here to the end of the block, however it is left. */
#define PERFSCOPE_REGION(name)                                                                     \
	const char *const PERFSCOPE_REGION_JOIN(perfscope_region_, __LINE__)                       \
		__attribute__((cleanup(perfscope_region_end_scope), unused)) =                     \
			(perfscope_region_begin(name), (name))
#endif

#endif
