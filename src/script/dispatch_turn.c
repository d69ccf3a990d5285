// SPDX-License-Identifier: MIT
#include "dispatch_internal.h"

#include <perfscope/log.h>
#include <perfscope/monotonic.h>

// A turn ends after this long, so that signals, timers and the other rings get theirs; how many events that is
// follows from how long the handlers take.
#define TURN_NS 1000000
#define MAX_BUDGET 4096

static inline void call_handler(struct ps_dispatch *dispatch, const struct binding *binding,
				const struct ps_record *record)
{
	PyObject *arguments[2] = { NULL, ps_event_wrap(binding->event_type, record) };
	if (PS_UNLIKELY(!arguments[1])) {
		ps_policy_take(&dispatch->policy, binding->name);
		return;
	}
	PyObject *result = PyObject_Vectorcall(binding->handler, arguments + 1,
					       1 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
	if (PS_LIKELY(result != NULL))
		Py_DECREF(result);
	else
		ps_policy_take(&dispatch->policy, binding->name);
	ps_event_release(arguments[1]);
}

static inline void take_sample(struct ps_dispatch *dispatch, const struct ps_record *record)
{
	struct ps_loss loss;
	struct ps_stream *stream = record->stream;
	while (PS_UNLIKELY(
		ps_losses_sample(&dispatch->losses, record->ring, record->time_ns, &loss)))
		ps_dispatch_call_lost(dispatch, &loss);
	if (PS_UNLIKELY(!stream->source))
		return;
	stream->delivered++;
	if (PS_UNLIKELY(stream->source->boundary)) {
		dispatch->nr_calls++; // progress, as ps_dispatch_is_stuck asks for it
		ps_boundaries_sample(dispatch->boundaries, record, ps_dispatch_call_region,
				     dispatch);
		return;
	}
	dispatch->nr_events++;
	const struct binding *binding = &dispatch->bindings[stream->source->index];
	if (PS_LIKELY(binding->handler != NULL))
		call_handler(dispatch, binding, record);
}

/** Records that are no samples: names, births, deaths, maps, losses. */
static void take_other(struct ps_dispatch *dispatch, const struct ps_record *record)
{
	ps_losses_follow(&dispatch->losses, record);
	ps_losses_throttle(&dispatch->losses, record);
	if (dispatch->boundaries)
		ps_boundaries_follow(dispatch->boundaries, record);
	if (dispatch->lookup.tasks)
		ps_tasks_follow(dispatch->lookup.tasks, record->header, record->time_ns);
	if (dispatch->lookup.maps)
		ps_maps_follow(dispatch->lookup.maps, record->header, record->time_ns);
	if (dispatch->lookup.symbolizer)
		ps_symbolizer_follow(dispatch->lookup.symbolizer, record->header);
}

static void log_record(const struct ps_record *record)
{
	ps_log(PS_LOG_DEBUG, "record type=%u misc=%#x size=%u time=%llu ring=%u %s",
	       record->header->type, record->header->misc, record->header->size,
	       (unsigned long long)record->time_ns, record->ring,
	       record->stream && record->stream->source ? record->stream->source->name : "-");
}

/** Hand out up to @budget records; how many it was. */
static uint64_t take_records(struct ps_dispatch *dispatch, uint64_t budget)
{
	const struct ps_record *record;
	uint64_t nr = 0;
	while (nr < budget && (record = ps_merge_next(dispatch->merge))) {
		nr++;
		if (PS_UNLIKELY(ps_log_level() >= PS_LOG_DEBUG))
			log_record(record);
		if (PS_LIKELY(record->header->type == PERF_RECORD_SAMPLE))
			take_sample(dispatch, record);
		else
			take_other(dispatch, record);
		if (PS_UNLIKELY(dispatch->nr_events >= dispatch->max_events ||
				ps_dispatch_is_over(dispatch)))
			break;
	}
	return nr;
}

/** Twice as many the next time where this turn was short, fewer where it was long. */
static void adapt_budget(struct ps_dispatch *dispatch, uint64_t elapsed_ns)
{
	if (elapsed_ns < TURN_NS / 2 && dispatch->budget < MAX_BUDGET)
		dispatch->budget *= 2;
	else if (elapsed_ns > TURN_NS && dispatch->budget > 1)
		dispatch->budget = elapsed_ns > 8 * TURN_NS ? 1 : dispatch->budget / 2;
}

// The wall clock can be set while the run goes on; its offset is measured again this often.
#define SYNC_NS 1000000000ull

static void sync_clock(struct ps_dispatch *dispatch, uint64_t now_ns)
{
	if (now_ns - dispatch->synced_ns < SYNC_NS)
		return;
	dispatch->synced_ns = now_ns;
	ps_clock_sync(&dispatch->session->clock);
	for (size_t i = 0; i < dispatch->nr_bindings; i++)
		ps_event_type_set_realtime_offset(dispatch->bindings[i].event_type,
						  dispatch->session->clock.realtime_offset_ns);
}

enum ps_dispatch_state ps_dispatch_turn(struct ps_dispatch *dispatch)
{
	if (ps_dispatch_is_over(dispatch) || dispatch->nr_events >= dispatch->max_events)
		return PS_DISPATCH_STOP;
	uint64_t start_ns = ps_monotonic_ns();
	sync_clock(dispatch, start_ns);
	uint64_t budget = dispatch->budget;
	ps_merge_begin(dispatch->merge);
	ps_dispatch_enter_script(dispatch);
	uint64_t nr = take_records(dispatch, budget);
	ps_dispatch_leave_script(dispatch);
	ps_merge_release(dispatch->merge);
	adapt_budget(dispatch, ps_monotonic_ns() - start_ns);
	if (ps_dispatch_is_over(dispatch) || dispatch->nr_events >= dispatch->max_events)
		return PS_DISPATCH_STOP;
	if (nr == budget)
		return PS_DISPATCH_MORE;
	// What was printed is seen now, also on a pipe; while events stream in, the buffer decides.
	if (nr)
		ps_policy_flush(&dispatch->policy);
	return ps_dispatch_is_over(dispatch) ? PS_DISPATCH_STOP : PS_DISPATCH_IDLE;
}

/** What is still in the rings counts as lost. */
static void drop_records(struct ps_dispatch *dispatch)
{
	const struct ps_record *record;
	uint64_t nr = 0;
	while ((record = ps_merge_next(dispatch->merge))) {
		if (record->header->type != PERF_RECORD_SAMPLE) {
			take_other(dispatch, record);
		} else if (record->stream->source) {
			ps_losses_drop(&dispatch->losses, record->ring);
			if (dispatch->boundaries)
				ps_boundaries_drop(dispatch->boundaries, record);
			nr++;
		}
	}
	dispatch->nr_left = nr;
	if (nr)
		ps_log(PS_LOG_WARNING,
		       "%llu events were still waiting when the run had to end; they count as lost",
		       (unsigned long long)nr);
}

static void tell_final_losses(struct ps_dispatch *dispatch)
{
	uint64_t now_ns = ps_clock_now_ns(&dispatch->session->clock);
	struct ps_loss loss;
	ps_session_read_lost(dispatch->session);
	ps_dispatch_enter_script(dispatch);
	for (uint32_t ring = 0; ring < dispatch->session->nr_rings; ring++) {
		while (ps_losses_finish(&dispatch->losses, dispatch->session, ring, now_ns, &loss))
			ps_dispatch_call_lost(dispatch, &loss);
	}
	ps_dispatch_leave_script(dispatch);
}

bool ps_dispatch_is_enough(const struct ps_dispatch *dispatch)
{
	return dispatch->nr_events >= dispatch->max_events ||
	       (dispatch->policy.is_over && !dispatch->policy.is_interrupted);
}

void ps_dispatch_drain(struct ps_dispatch *dispatch, uint64_t limit_ns)
{
	// -N, stop() and SystemExit want no further event; a signal wants those that happened before it.
	if (ps_dispatch_is_enough(dispatch))
		return;
	bool is_done = dispatch->policy.is_interrupted;
	uint64_t end_ns = ps_monotonic_ns() + limit_ns;
	dispatch->is_stopped = false;
	ps_merge_flush(dispatch->merge);
	ps_merge_begin(dispatch->merge);
	while (!is_done) {
		ps_dispatch_enter_script(dispatch);
		uint64_t nr = take_records(dispatch, dispatch->budget);
		ps_dispatch_leave_script(dispatch);
		is_done = nr < dispatch->budget || ps_dispatch_is_over(dispatch) ||
			  ps_monotonic_ns() >= end_ns || ps_dispatch_is_enough(dispatch);
	}
	if (ps_dispatch_is_enough(dispatch))
		return;
	drop_records(dispatch);
	ps_merge_release(dispatch->merge);
	tell_final_losses(dispatch);
}
