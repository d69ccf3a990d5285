// SPDX-License-Identifier: MIT
/**
 * Boundary: the records of events that begin and end regions, and what the regions count between them.
 */
#ifndef PERFSCOPE_BOUNDARY_H
#define PERFSCOPE_BOUNDARY_H

#include <perfscope/passes.h>
#include <perfscope/record.h>
#include <perfscope/session.h>

struct ps_boundaries;

/** For the regions of @session's sources; the session must outlive it. *@ret is NULL where there are none. */
struct ps_error *ps_boundaries_create(const struct ps_session *session, struct ps_boundaries **ret);
void ps_boundaries_destroy(struct ps_boundaries *boundaries); // takes NULL

/** Called for each pass that ends. */
typedef void (*ps_pass_function)(void *argument, const struct ps_pass *pass);

/** Take a sample of a source that is a boundary. Hot. */
void ps_boundaries_sample(struct ps_boundaries *boundaries, const struct ps_record *record,
			  ps_pass_function call, void *argument);

/** Take a record that is no sample: deaths and losses matter. */
void ps_boundaries_follow(struct ps_boundaries *boundaries, const struct ps_record *record);

/** For a while nothing was written to @ring. */
void ps_boundaries_gap(struct ps_boundaries *boundaries, uint32_t ring);

/** The sample @record, of a source, is passed over: what begins or ends there is incomplete. */
void ps_boundaries_drop(struct ps_boundaries *boundaries, const struct ps_record *record);

/** Nothing comes any more: what is open is incomplete. */
void ps_boundaries_finish(struct ps_boundaries *boundaries);

/** The counters of all regions, in the order of pass->counts behind its times: sources of the user's. */
size_t ps_boundaries_nr_counters(const struct ps_boundaries *boundaries);
const struct ps_source *ps_boundaries_counter(const struct ps_boundaries *boundaries, size_t index);

/** What @region, an index into the sources' regions, added up so far. Borrowed, it changes. */
const struct ps_pass_sums *ps_boundaries_sums(const struct ps_boundaries *boundaries,
					      size_t region);

/**
 * How long the counters of regions could count so far, and how long they did: for the rest they gave way to others on the
 * PMU, and the events that begin and end passes made no records.
 */
void ps_boundaries_count(const struct ps_boundaries *boundaries, struct ps_count *ret);

/** Passes that were not followed since too many threads are in regions at a time. */
uint64_t ps_boundaries_nr_missed(const struct ps_boundaries *boundaries);

#endif
