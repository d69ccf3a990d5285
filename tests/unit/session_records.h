// SPDX-License-Identifier: MIT
/** A session of sources made by hand, and a tally of its records. */
#ifndef PERFSCOPE_SESSION_RECORDS_H
#define PERFSCOPE_SESSION_RECORDS_H

#include "live_session.h"

static struct ps_merge *merge;
static struct ps_tally {
	uint64_t nr_samples, nr_lost_told, nr_comm, nr_exit, nr_fork;
} tally;

static inline void open_session(const struct ps_target *target, uint64_t ring_bytes)
{
	struct ps_session_options options = { .ring_bytes = ring_bytes, .want_tasks = true };
	ASSERT_OK(ps_session_open(&list, target, &options, &session));
	ASSERT_OK(ps_merge_create(session, true, &merge));
	tally = (struct ps_tally){ 0 };
}

static inline void close_session(void)
{
	ps_merge_destroy(merge);
	ps_session_destroy(session);
	clear_sources();
}

static inline void tally_record(const struct ps_record *record)
{
	const uint8_t *bytes = (const uint8_t *)record->header;
	switch (record->header->type) {
	case PERF_RECORD_SAMPLE:
		tally.nr_samples++;
		record->stream->delivered++;
		break;
	case PERF_RECORD_LOST: {
		uint64_t lost;
		memcpy(&lost, bytes + 16, sizeof(lost));
		tally.nr_lost_told += lost;
		break;
	}
	case PERF_RECORD_COMM:
		tally.nr_comm++;
		break;
	case PERF_RECORD_EXIT:
		tally.nr_exit++;
		break;
	case PERF_RECORD_FORK:
		tally.nr_fork++;
		break;
	}
}

static inline void drain(void)
{
	ps_session_disable(session);
	ps_merge_flush(merge);
	ps_merge_begin(merge);
	for (const struct ps_record *record; (record = ps_merge_next(merge));)
		tally_record(record);
	ps_merge_release(merge);
	ASSERT_EQ(ps_merge_counts(merge).nr_bad, 0);
	ASSERT_EQ(ps_merge_counts(merge).nr_unknown, 0);
}

#endif
