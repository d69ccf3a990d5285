// SPDX-License-Identifier: MIT
#include <perfscope/merge.h>

// How far past the clock a record's time may lie before it is taken for a glitch and let through: a clock that is
// stepped, or that two CPUs disagree on, must not hold up a ring until that time has come.
#define FUTURE_LIMIT_NS 1000000000

// Without order: so many records of one ring, then the next ring's.
#define RECORDS_PER_TURN 64

/** The next record of a ring, read ahead. */
struct slot {
	struct ps_record record; // header NULL: none before head
	struct ps_ring *ring;	 // borrowed
	uint64_t nr_read;	 // in this round
};

/** A ring that waits with a record. */
struct entry {
	uint64_t key; // time, or the turn without order
	uint32_t ring;
};

struct ps_merge {
	struct ps_session *session; // borrowed
	struct slot *slots;	    // by ring
	struct slot *current; // whose record was handed out last, NULL: none; the top of the heap
	struct entry *heap;   // the rings that have a record, the least key at the top
	size_t nr_heap;
	uint64_t
		limit; // the current ring goes on up to this key: the least of the others, or the horizon
	uint64_t horizon;   // no key above it is handed out in this round
	uint64_t future_ns; // a time above it is a glitch
	uint64_t last_ns;   // the latest time handed out
	uint64_t nr_late, nr_short, nr_unknown;
	uint32_t first; // without order: the ring that the next round begins with
	bool is_ordered;
	bool is_flushed;
};

struct ps_error *ps_merge_create(struct ps_session *session, bool is_ordered, struct ps_merge **ret)
{
	struct ps_merge *merge = calloc(1, sizeof(*merge));
	if (!merge)
		return &ps_enomem;
	merge->session = session;
	merge->is_ordered = is_ordered;
	// Rings that come later have their place already.
	size_t nr = session->max_rings;
	merge->slots = calloc(nr + 1, sizeof(*merge->slots));
	merge->heap = calloc(nr + 1, sizeof(*merge->heap));
	if (!merge->slots || !merge->heap) {
		ps_merge_destroy(merge);
		return &ps_enomem;
	}
	for (size_t i = 0; i < nr; i++)
		merge->slots[i].ring = &session->rings[i];
	*ret = merge;
	return NULL;
}

void ps_merge_destroy(struct ps_merge *merge)
{
	if (!merge)
		return;
	free(merge->heap);
	free(merge->slots);
	free(merge);
}

/** Move the entry at @at down to its place. */
static void heap_sift(struct ps_merge *merge, size_t at)
{
	struct entry moved = merge->heap[at];
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= merge->nr_heap)
			break;
		if (child + 1 < merge->nr_heap &&
		    merge->heap[child + 1].key < merge->heap[child].key)
			child++;
		if (moved.key <= merge->heap[child].key)
			break;
		merge->heap[at] = merge->heap[child];
		at = child;
	}
	merge->heap[at] = moved;
}

/** Read the record at the tail into @slot, over what names nobody. False: there is none before head. */
static __attribute__((noinline)) bool slot_load(struct ps_merge *merge, struct slot *slot)
{
	uint32_t index = slot - merge->slots;
	const struct perf_event_header *header;
	while ((header = ps_ring_peek(slot->ring))) {
		if (ps_record_read(merge->session, header, index, &slot->record))
			return true;
		if (header->size < 16)
			merge->nr_short++;
		else
			merge->nr_unknown++;
		ps_ring_advance(slot->ring, header);
	}
	slot->record.header = NULL;
	return false;
}

/** Where the record of @slot stands in the order. */
static inline uint64_t slot_key(const struct ps_merge *merge, const struct slot *slot)
{
	if (!merge->is_ordered)
		return slot->nr_read / RECORDS_PER_TURN;
	uint64_t time_ns = slot->record.time_ns;
	return PS_UNLIKELY(time_ns > merge->future_ns) ? 0 : time_ns;
}

static void limit_update(struct ps_merge *merge)
{
	merge->limit = merge->horizon;
	for (size_t i = 1; i < merge->nr_heap && i < 3; i++) {
		if (merge->heap[i].key < merge->limit)
			merge->limit = merge->heap[i].key;
	}
}

/** Step over the record handed out last, and read its ring's next one. False: none is left in it. */
static inline __attribute__((always_inline)) bool current_step(struct ps_merge *merge)
{
	struct slot *slot = merge->current;
	// Only now: the handler read the record in place.
	ps_ring_advance(slot->ring, slot->record.header);
	slot->nr_read++;
	// The common case in line, without the loop.
	const struct perf_event_header *header = ps_ring_peek(slot->ring);
	if (PS_LIKELY(header &&
		      ps_record_read(merge->session, header, slot->record.ring, &slot->record)))
		return true;
	return slot_load(merge, slot);
}

/** Give the current ring, which has a record or not, its new place in the heap. */
static void current_retire(struct ps_merge *merge, bool has_record)
{
	if (has_record)
		merge->heap[0].key = slot_key(merge, merge->current);
	else
		merge->heap[0] = merge->heap[--merge->nr_heap];
	heap_sift(merge, 0);
	merge->current = NULL;
}

/** Fill the heap with all rings that have a record. */
static void heap_fill(struct ps_merge *merge)
{
	merge->nr_heap = 0;
	uint32_t nr = merge->session->nr_rings;
	// A round may be as short as one record: began each with the same ring, the others would get no turn.
	uint32_t first = merge->is_ordered || !nr ? 0 : merge->first++ % nr;
	for (uint32_t at = 0; at < nr; at++) {
		uint32_t i = first + at < nr ? first + at : first + at - nr;
		struct slot *slot = &merge->slots[i];
		slot->nr_read = 0;
		if (slot->record.header || slot_load(merge, slot))
			merge->heap[merge->nr_heap++] = (struct entry){ slot_key(merge, slot), i };
	}
	for (size_t i = merge->nr_heap / 2; i-- > 0;)
		heap_sift(merge, i);
}

/** Read every head. Whether a ring is so full that the kernel may soon find no room. */
static bool load_heads(struct ps_merge *merge)
{
	bool is_filling = false;
	for (size_t i = 0; i < merge->session->nr_rings; i++) {
		struct ps_ring *ring = &merge->session->rings[i];
		ps_ring_load_head(ring);
		// The head made no sense and all was dropped, also what was read ahead.
		if (PS_UNLIKELY(ring->head == ring->tail))
			merge->slots[i].record.header = NULL;
		is_filling |= ring->head - ring->tail > ring->mask / 2;
	}
	return is_filling;
}

void ps_merge_begin(struct ps_merge *merge)
{
	if (merge->current)
		current_retire(merge, current_step(merge));
	bool has_horizon = merge->is_ordered && !merge->is_flushed && merge->session->nr_rings > 1;
	// The clock first: what is older than it, less the slack, stands before the heads read after it.
	uint64_t now_ns = has_horizon ? ps_clock_now_ns(&merge->session->clock) : 0;
	bool is_filling = load_heads(merge);
	// No slack for a ring more than half full: a record in disorder is told, a lost one is gone.
	uint64_t slack_ns = is_filling ? 0 : PS_MERGE_SLACK_NS;
	if (has_horizon) {
		merge->horizon = now_ns > slack_ns ? now_ns - slack_ns : 0;
		merge->future_ns = now_ns + FUTURE_LIMIT_NS;
	} else {
		merge->horizon = merge->future_ns = UINT64_MAX;
	}
	heap_fill(merge);
}

void ps_merge_flush(struct ps_merge *merge)
{
	merge->is_flushed = true;
}

/** Note the time of the record that is handed out. */
static inline void note_order(struct ps_merge *merge, uint64_t time_ns)
{
	if (!merge->is_ordered)
		return;
	// A glitch into the future is late itself, and does not make late all that follow.
	if (PS_LIKELY(time_ns >= merge->last_ns && time_ns <= merge->horizon))
		merge->last_ns = time_ns;
	else
		merge->nr_late++;
}

/** Go over to the ring at the top of the heap, if its record is ready. */
static const struct ps_record *next_ring(struct ps_merge *merge)
{
	if (!merge->nr_heap || merge->heap[0].key > merge->horizon)
		return NULL;
	struct slot *slot = &merge->slots[merge->heap[0].ring];
	merge->current = slot;
	limit_update(merge);
	note_order(merge, slot->record.time_ns);
	return &slot->record;
}

const struct ps_record *ps_merge_next(struct ps_merge *merge)
{
	struct slot *slot = merge->current;
	if (PS_UNLIKELY(!slot))
		return next_ring(merge);
	bool has_record = current_step(merge);
	if (PS_UNLIKELY(!has_record || slot_key(merge, slot) > merge->limit)) {
		current_retire(merge, has_record);
		return next_ring(merge);
	}
	note_order(merge, slot->record.time_ns);
	return &slot->record;
}

void ps_merge_release(struct ps_merge *merge)
{
	if (merge->current)
		current_retire(merge, current_step(merge));
	for (size_t i = 0; i < merge->session->nr_rings; i++)
		ps_ring_publish(&merge->session->rings[i]);
}

bool ps_merge_has_waiting(const struct ps_merge *merge)
{
	return merge->nr_heap;
}

struct ps_merge_counts ps_merge_counts(const struct ps_merge *merge)
{
	struct ps_merge_counts counts = {
		.nr_late = merge->nr_late,
		.nr_bad = merge->nr_short,
		.nr_unknown = merge->nr_unknown,
	};
	for (size_t i = 0; i < merge->session->nr_rings; i++)
		counts.nr_bad += merge->session->rings[i].nr_bad;
	return counts;
}
