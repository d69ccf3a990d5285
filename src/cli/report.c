// SPDX-License-Identifier: MIT
#include "report.h"

#include <perfscope/log.h>
#include <perfscope/region_text.h>
#include <stdio.h>
#include <string.h>

static void report_foreign(const struct ps_foreign *foreign)
{
	if (foreign->nr_timed)
		ps_log(PS_LOG_WARNING,
		       "%llu samples came with the time of another program's event; theirs was "
		       "worked out, to some microseconds",
		       (unsigned long long)foreign->nr_timed);
	if (foreign->nr_guessed)
		ps_log(PS_LOG_WARNING,
		       "%llu samples came with the time of another program's event; theirs is a "
		       "guess where its clock is another (-a knows it better)",
		       (unsigned long long)foreign->nr_guessed);
}

#define MAX_SAMPLE_RATE "/proc/sys/kernel/perf_event_max_sample_rate"

static unsigned long read_max_sample_rate(void)
{
	_cleanup_fclose_ FILE *file = fopen(MAX_SAMPLE_RATE, "re");
	unsigned long rate;
	return file && fscanf(file, "%lu", &rate) == 1 ? rate : 0;
}

/** The kernel allows so many samples a tick, of each event on each CPU, and makes no more until the next. */
static void report_throttled(const struct ps_session *session)
{
	const struct ps_source_list *sources = session->sources;
	for (size_t i = 0; i < sources->nr_sources; i++) {
		uint64_t nr = 0;
		for (size_t at = 0; at < session->nr_streams; at++) {
			if (session->streams[at].source == sources->sources[i])
				nr += session->streams[at].throttled;
		}
		if (nr)
			ps_log(PS_LOG_WARNING,
			       "%s: %llu times held back by the kernel's limit of samples "
			       "(kernel.perf_event_max_sample_rate is %lu); ask for fewer",
			       sources->sources[i]->label, (unsigned long long)nr,
			       read_max_sample_rate());
	}
}

static void report_stacks(const struct ps_symbolizer *symbolizer)
{
	struct ps_unwind_counts counts = ps_symbolizer_unwind_counts(symbolizer);
	const struct {
		uint64_t nr;
		const char *why;
	} cuts[] = {
		{ counts.nr_above, "their callers lie above the piece of the stack that the kernel "
				   "copied" },
		{ counts.nr_deep, "they have more addresses than are kept" },
		{ counts.nr_slow, "to unwind them took too long" },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(cuts); i++) {
		if (cuts[i].nr)
			ps_log(PS_LOG_WARNING,
			       "%llu of %llu stacks lack their outermost frames: %s",
			       (unsigned long long)cuts[i].nr, (unsigned long long)counts.nr_stacks,
			       cuts[i].why);
	}
}

void ps_report_regions(const struct ps_region_table *table)
{
	size_t nr;
	const struct ps_counter *counters = ps_region_table_counters(table, &nr);
	for (size_t i = 0; i < nr; i++) {
		const char *reason = ps_region_table_reason(table, i);
		if (reason)
			ps_log(PS_LOG_WARNING, "%s was not counted in all regions: %s",
			       counters[i].name, reason);
	}
	size_t nr_groups = ps_region_table_nr_groups(table);
	if (nr_groups > 1)
		ps_log(PS_LOG_WARNING, "regions: " PS_REGION_TEXT_SPLIT, nr_groups);
	uint64_t nr_missed = ps_region_table_nr_missed(table);
	if (nr_missed)
		ps_log(PS_LOG_WARNING,
		       "%llu times a thread's region found the table of %d full, and its passes "
		       "are not counted: fewer names or threads at a time help",
		       (unsigned long long)nr_missed, PS_REGION_TABLE_SLOTS);
}

/**
 * Whether the count of the tracepoint @name says how often it happened to the target. Not so where the kernel adds what
 * was measured, or counts it once more for the thread that it is about, without a sample (__perf_count and __perf_task
 * in include/trace/events/sched.h).
 */
static bool counts_each(const char *name)
{
	static const char *const others[] = { "sched:sched_stat_", "sched:sched_wak" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(others); i++) {
		if (!strncmp(name, others[i], strlen(others[i])))
			return false;
	}
	return true;
}

/** Whether @source makes a sample each time that it happens, and its count says how often that was. */
static bool makes_each(const struct ps_source *source)
{
	// Those of regions are not handed out.
	if (!source->is_sampling || source->is_missing || source->boundary || source->attr.freq ||
	    source->attr.sample_period != 1)
		return false;
	return source->attr.type != PERF_TYPE_TRACEPOINT || counts_each(source->name);
}

static uint64_t count_delivered(const struct ps_session *session, const struct ps_source *source)
{
	uint64_t nr = 0;
	for (size_t i = 0; i < session->nr_streams; i++) {
		if (session->streams[i].source == source)
			nr += session->streams[i].delivered;
	}
	return nr;
}

/** Delivered plus lost is to be what happened. Where it is less, nobody has told of the rest. */
static void report_unsampled(const struct ps_session *session, uint64_t nr_lost)
{
	const struct ps_source_list *sources = session->sources;
	uint64_t nr_counted = 0, nr_told = nr_lost;
	for (size_t i = 0; i < sources->nr_sources; i++) {
		const struct ps_source *source = sources->sources[i];
		struct ps_count count;
		if (!makes_each(source))
			continue;
		ps_session_count(session, source, &count);
		if (!count.is_valid)
			continue;
		nr_counted += count.value;
		nr_told += count_delivered(session, source);
	}
	if (nr_counted > nr_told)
		ps_log(PS_LOG_WARNING,
		       "%llu of %llu events were counted, but the kernel made no record of them "
		       "and tells of no loss: it keeps a thread out of tracing, perhaps",
		       (unsigned long long)(nr_counted - nr_told), (unsigned long long)nr_counted);
}

void ps_report(const struct ps_session *session, const struct ps_merge *merge,
	       const struct ps_dispatch *dispatch, const struct ps_symbolizer *symbolizer)
{
	struct ps_merge_counts records = ps_merge_counts(merge);
	struct ps_dispatch_counts events = ps_dispatch_counts(dispatch);
	ps_log(PS_LOG_INFO, "events taken: %llu", (unsigned long long)events.nr_events);
	if (events.nr_lost > events.nr_left)
		ps_log(PS_LOG_WARNING,
		       "%llu events lost, %llu taken: a larger -m, a filter or a faster handler "
		       "helps",
		       (unsigned long long)(events.nr_lost - events.nr_left),
		       (unsigned long long)events.nr_events);
	if (records.nr_late)
		ps_log(PS_LOG_WARNING, "%llu records came too late for their place in the order",
		       (unsigned long long)records.nr_late);
	if (events.nr_throttled)
		report_throttled(session);
	else if (!events.is_enough && !records.nr_bad && !records.nr_unknown)
		report_unsampled(session, events.nr_lost);
	report_foreign(&session->foreign);
	if (symbolizer)
		report_stacks(symbolizer);
	if (records.nr_bad || records.nr_unknown)
		ps_log(PS_LOG_WARNING, "%llu malformed records and %llu of no known event skipped",
		       (unsigned long long)records.nr_bad, (unsigned long long)records.nr_unknown);
}
