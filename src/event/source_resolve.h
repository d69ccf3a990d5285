// SPDX-License-Identifier: MIT
/**
 * What the files that resolve sources share: source.c has what is particular to each kind, source_list.c makes and keeps
 * them, source_attr.c says how they sample.
 */
#ifndef PERFSCOPE_EVENT_SOURCE_RESOLVE_H
#define PERFSCOPE_EVENT_SOURCE_RESOLVE_H

#include <perfscope/probe.h>
#include <perfscope/source.h>

/** One call of ps_sources_resolve. */
struct resolver {
	const struct ps_source_options *options;
	const char *tracefs;	    // NULL: not needed yet
	bool is_swept;		    // what killed runs left is removed
	const struct ps_spec *spec; // the one at hand
	const struct ps_spec *told; // the last whose lacks were told: a pattern's are told once
	struct ps_source_list list;
};

void source_destroy(struct ps_source *source);
PS_DEFINE_CLEANUP(struct ps_source *, source, source_destroy)
#define _cleanup_source_ _cleanup_(source_p)

/**
 * A source of the spec at hand, with all that is the same for every kind.
 *
 * @system and @handler name the handler where no alias does; @system is NULL for counters.
 */
struct ps_error *source_create(const struct resolver *resolver, const char *name,
			       const char *system, const char *handler, struct ps_source **ret);

/** Append @source, which is taken over also on failure. */
struct ps_error *source_append(struct resolver *resolver, struct ps_source *source);

/** A second source of what @source counts. */
struct ps_error *source_append_copy(struct resolver *resolver, const struct ps_source *source);

void source_attr_init(const struct resolver *resolver, struct perf_event_attr *attr);

/** Let the source at hand have call stacks where it or the command asks for them. */
void source_set_stack(const struct resolver *resolver, struct ps_source *source);

/** How the counter at hand samples; false: it counts. */
bool source_set_sampling(const struct resolver *resolver, struct perf_event_attr *attr);

/** Each occurrence of @source, a tracepoint or a probe, makes a record with raw data; or as its spec says. */
void source_make_records(const struct resolver *resolver, struct ps_source *source);

#endif
