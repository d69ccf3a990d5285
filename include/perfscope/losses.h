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
};

struct ps_ring_losses {
	uint64_t last_ns; // of the last sample
	uint64_t pending; // told by records since
	uint64_t dropped; // left in the ring at the end
	uint64_t told;	  // told to the script
};

struct ps_losses {
	struct ps_ring_losses *rings; // owned
	size_t nr_rings;
	uint64_t nr_told;
};

struct ps_error *ps_losses_init(struct ps_losses *losses, size_t nr_rings);
void ps_losses_deinit(struct ps_losses *losses);

/** Take a LOST or LOST_SAMPLES record; others are passed over. */
void ps_losses_follow(struct ps_losses *losses, const struct ps_record *record);

/** A sample of @ring at @time_ns: whether a gap ends here. Hot. */
static inline bool ps_losses_sample(struct ps_losses *losses, uint32_t ring, uint64_t time_ns,
				    struct ps_loss *ret)
{
	struct ps_ring_losses *at = &losses->rings[ring];
	uint64_t pending = at->pending;
	if (PS_UNLIKELY(pending)) {
		*ret = (struct ps_loss){ at->last_ns, time_ns, pending };
		at->pending = 0;
		at->told += pending;
		losses->nr_told += pending;
	}
	at->last_ns = time_ns;
	return pending != 0;
}

/** A sample that is counted as lost: the run ends before it could be handed out. */
void ps_losses_drop(struct ps_losses *losses, uint32_t ring);

/**
 * At the end: what @ring lost and nobody told yet, also where the kernel wrote no record of it (its own count,
 * PERF_FORMAT_LOST, is in the streams). Whether there is any.
 */
bool ps_losses_finish(struct ps_losses *losses, const struct ps_session *session, uint32_t ring,
		      uint64_t now_ns, struct ps_loss *ret);

#endif
