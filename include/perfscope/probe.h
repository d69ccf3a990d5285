// SPDX-License-Identifier: MIT
/**
 * Probes: places in programs, libraries and the kernel, found by name, and the events that are made there.
 */
#ifndef PERFSCOPE_PROBE_H
#define PERFSCOPE_PROBE_H

#include <linux/perf_event.h>
#include <perfscope/spec.h>

/** A place for a probe. */
struct ps_probe_place {
	char *name;	    // behind the system: "parse", "parse+0x1c", "python:gc__start"
	char *path;	    // absolute; NULL: in the kernel
	char *symbol;	    // in the kernel: what @offset is counted from; NULL: an address
	uint64_t offset;    // in the file
	uint64_t semaphore; // usdt: where in the file its use is counted, 0: nowhere
	char *args;	    // the kernel's fetch arguments, NULL: none
};

struct ps_probe_places {
	struct ps_probe_place *places;
	size_t nr_places;
};

/**
 * The places that a PS_SPEC_PROBE names, in the order of their names and addresses.
 *
 * FILE is a path where it has a slash; else it is looked for in PATH, the folders of libraries and the current one. A
 * name may have several places: functions of one name, a usdt probe that was inlined. PS_ERROR_NOT_FOUND has the
 * nearest names.
 */
struct ps_error *ps_probe_find(const struct ps_spec *spec, struct ps_probe_places *ret);
void ps_probe_places_deinit(struct ps_probe_places *places);

/** The event made at a place: what perf_event_attr needs, and how its raw data is laid out. */
struct ps_probe {
	uint32_t type;
	uint64_t config;
	uint64_t config1; // may point into the probe, which must outlive the opening
	uint64_t config2;
	char *format; // as in tracefs
	size_t format_size;
	char *path;   // what config1 points to
	char *remove; // the line that removes it from tracefs, NULL: it ends with its descriptors
	bool is_kernel;
	struct ps_probe *next; // of those to be removed
};

/**
 * Make the event of @spec at @place: of the PMU where it has neither arguments nor a filter and is not inherited, else
 * in tracefs, under a group of this process's own.
 *
 * Where an event of the PMU is inherited, the kernel reads the path anew, from the memory of the thread that makes a new
 * one: there is none, and the observed program can start no thread (seen on Linux 6.18).
 *
 * Errors: PS_ERROR_UNSUPPORTED names the kernel's option; PS_ERROR_USAGE is the kernel's word on the arguments.
 */
struct ps_error *ps_probe_create(const struct ps_spec *spec, const struct ps_probe_place *place,
				 bool is_inherited, struct ps_probe **ret);

/** Remove it from tracefs, once its descriptors are closed; takes NULL. */
void ps_probe_destroy(struct ps_probe *probe);

/**
 * Close all descriptors but the standard ones and remove every probe of this process. For ends at once: it may be
 * called in a signal handler. Nothing is done where there are no probes, or in a child of the process that made them.
 */
void ps_probe_remove_all(void);

/** Remove from @tracefs the probes of perfscopes that were killed; one that may not look does nothing. */
void ps_probe_sweep(const char *tracefs);

/** What a probe can name. The texts are borrowed. */
struct ps_probe_name {
	const char *name;
	const char *cxx; // what C++ calls it, NULL: it is none of C++
	const char *
		details; // "NAME\tTYPE\n" for each argument that can be had there by name; NULL: not asked for
};

/** Called for each name, sorted; an error ends the walk and is returned. */
typedef struct ps_error *(*ps_probe_visit)(const struct ps_probe_name *name, void *argument);

/**
 * Visit what @system, "uprobe", "uretprobe" or "usdt", can name in @file, matching @pattern (* and ?), once each.
 * @has_details: with the arguments, which takes time.
 */
struct ps_error *ps_probe_walk(const char *file, const char *system, const char *pattern,
			       bool has_details, ps_probe_visit visit, void *argument);

/** The same for `kprobe:`; PS_ERROR_UNSUPPORTED where this kernel has none. */
struct ps_error *ps_probe_walk_kernel(const char *pattern, ps_probe_visit visit, void *argument);

#endif
