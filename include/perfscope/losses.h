// SPDX-License-Identifier: MIT
/**
 * Losses: delivered plus lost equals what happened.
 */
#ifndef PERFSCOPE_LOSSES_H
#define PERFSCOPE_LOSSES_H

#include <perfscope/merge.h>

/** A gap in the samples of one ring. */
struct ps_loss {
	uint64_t start_ns; // of the last sample before it, 0: there was none
	uint64_t end_ns;   // of the first sample after it, or of the end
	uint64_t nr;
	bool is_unknown; // nobody counted: the CPU was away for a while, nr is 0
};

struct ps_ring_losses {
	uint64_t last_ns; // of the last sample
	uint64_t pending; // told by records since
	uint64_t dropped; // left in the ring at the end
	uint64_t told;	  // told to the script
	uint64_t
		gap_ns; // the first sample at or after this one ends a gap that nobody counted; 0: none
};

struct ps_losses {
	struct ps_ring_losses *rings; // owned
	size_t nr_rings;
	uint64_t nr_told;
	uint64_t nr_throttled; // stretches, of all streams
};

struct ps_error *ps_losses_init(struct ps_losses *losses, size_t nr_rings);
void ps_losses_deinit(struct ps_losses *losses);

/** Take a LOST or LOST_SAMPLES record; others are passed over. */
void ps_losses_follow(struct ps_losses *losses, const struct ps_record *record);

/**
 * Count a THROTTLE record, in the stream too; others are passed over.
 *
 * From there to the next tick the kernel makes no samples of that event, which has had as many as its limit allows
 * (kernel.perf_event_max_sample_rate). How many it would have made nobody knows: they are in no count of losses.
 */
void ps_losses_throttle(struct ps_losses *losses, const struct ps_record *record);

/** @ring was silent until @time_ns, for a time in which nobody counted what happened. */
void ps_losses_gap(struct ps_losses *losses, uint32_t ring, uint64_t time_ns);

/** What ps_losses_sample does where something was lost. */
bool ps_losses_sample_slow(struct ps_ring_losses *at, uint64_t time_ns, struct ps_loss *ret);

/** A sample of @ring at @time_ns: whether a gap ends here. To be called until there is none any more. Hot. */
static inline bool ps_losses_sample(struct ps_losses *losses, uint32_t ring, uint64_t time_ns,
				    struct ps_loss *ret)
{
	struct ps_ring_losses *at = &losses->rings[ring];
	if (PS_UNLIKELY(at->pending | at->gap_ns) && ps_losses_sample_slow(at, time_ns, ret)) {
		losses->nr_told += ret->nr;
		return true;
	}
	at->last_ns = time_ns;
	return false;
}

/** A sample that is counted as lost: the run ends before it could be handed out. */
void ps_losses_drop(struct ps_losses *losses, uint32_t ring);

/**
 * At the end: what @ring lost and nobody told yet, also where the kernel wrote no record of it (its own count,
 * PERF_FORMAT_LOST, is in the streams). Whether there is any; to be called until there is none.
 */
bool ps_losses_finish(struct ps_losses *losses, const struct ps_session *session, uint32_t ring,
		      uint64_t now_ns, struct ps_loss *ret);

#endif
