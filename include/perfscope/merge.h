// SPDX-License-Identifier: MIT
/**
 * Merge: the records of all rings, one after the other, in the order of their time or ring by ring.
 */
#ifndef PERFSCOPE_MERGE_H
#define PERFSCOPE_MERGE_H

#include <perfscope/record.h>

/**
 * How long after its time stamp a record may still turn up in its ring: the kernel takes the time before it
 * reserves the room, and an interrupt or a stolen CPU may come between.
 */
#define PS_MERGE_SLACK_NS 5000000

struct ps_merge;

/** @is_ordered: by time over all rings; else each ring in turn. @session must outlive it. */
struct ps_error *ps_merge_create(struct ps_session *session, bool is_ordered,
				 struct ps_merge **ret);
void ps_merge_destroy(struct ps_merge *merge);

/**
 * Begin a round: read the clock, then every head. Records younger than the clock less the slack wait for a later
 * round, unless there is one ring only or the order is off.
 */
void ps_merge_begin(struct ps_merge *merge);

/** Let everything through in the rounds to come: nothing older can arrive (all events are disabled). */
void ps_merge_flush(struct ps_merge *merge);

/**
 * The oldest record, or NULL when none is ready in this round.
 *
 * Borrowed: valid until the next call, which also gives the previous record's room back to the kernel. So a ring is
 * advanced only after the handler returned.
 */
const struct ps_record *ps_merge_next(struct ps_merge *merge);

/** Give back the room of all records handed out, at the end of a round or of a turn. */
void ps_merge_release(struct ps_merge *merge);

/** Whether records younger than the horizon wait (a further round is due within the slack). */
bool ps_merge_has_waiting(const struct ps_merge *merge);

/** Counts for the end: records out of order (older than one handed out before), malformed, of unknown id. */
struct ps_merge_counts {
	uint64_t nr_late, nr_bad, nr_unknown;
};
struct ps_merge_counts ps_merge_counts(const struct ps_merge *merge);

#endif
