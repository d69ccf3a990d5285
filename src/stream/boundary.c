// SPDX-License-Identifier: MIT
#include <perfscope/boundary.h>

#include "internal.h"

#include <perfscope/leftover.h>
#include <string.h>

#define NO_COUNTER SIZE_MAX

// PROC_PID_INIT_INO of the kernel, the same since Linux 3.8; no header of user space had it before 6.18.
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCUL

struct ps_boundaries {
	const struct ps_session *session; // borrowed
	const struct ps_region_spec_list *regions;
	struct ps_passes *passes;
	const struct ps_source **counters; // the user's, borrowed
	size_t nr_counters;
	size_t *counter_of;		  // by source index: what it counts, or NO_COUNTER
	const struct ps_source *boundary; // one of the events, borrowed; NULL: none could be opened
	size_t nr_cpus;
	uint32_t next_offset; // of the next thread in the raw data of a switch; 0: not told
	uint64_t *counts;     // of the sample at hand
	bool knows_all;	      // each thread has a number here: 0 is an idle one
};

/** Number the counters: those that all the time count, in the user's order. */
static struct ps_error *list_counters(struct ps_boundaries *boundaries)
{
	const struct ps_source_list *list = boundaries->session->sources;
	boundaries->counters = calloc(list->nr_sources + 1, sizeof(*boundaries->counters));
	boundaries->counter_of = calloc(list->nr_sources + 1, sizeof(*boundaries->counter_of));
	boundaries->counts = calloc(list->nr_sources + PS_PASS_NR_TIMES, sizeof(uint64_t));
	if (!boundaries->counters || !boundaries->counter_of || !boundaries->counts)
		return &ps_enomem;
	for (size_t i = 0; i < list->nr_sources; i++) {
		const struct ps_source *source = list->sources[i];
		boundaries->counter_of[i] = NO_COUNTER;
		if (source->is_sampling)
			continue;
		if (source->original) {
			boundaries->counter_of[i] = boundaries->counter_of[source->original->index];
			continue;
		}
		boundaries->counter_of[i] = boundaries->nr_counters;
		boundaries->counters[boundaries->nr_counters++] = source;
	}
	return NULL;
}

static const struct ps_source *find_boundary(const struct ps_source_list *list)
{
	for (size_t i = 0; i < list->nr_sources; i++) {
		if (list->sources[i]->boundary && !list->sources[i]->is_missing)
			return list->sources[i];
	}
	return NULL;
}

/** What the counters count that the samples tell of. */
static enum ps_pass_scope find_scope(const struct ps_session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++) {
		const struct ps_stream *stream = &session->streams[i];
		if (!stream->source || !stream->source->boundary)
			continue;
		if (stream->tid < 0)
			return PS_PASS_CPU;
		return stream->cpu < 0 ? PS_PASS_THREAD : PS_PASS_THREAD_CPU;
	}
	return PS_PASS_THREAD;
}

/** Where a switch tells the next thread. */
static uint32_t find_next(const struct ps_session *session)
{
	unsigned int switches = session->sources->regions->switches;
	for (size_t i = 0; switches && i < session->sources->nr_sources; i++) {
		const struct ps_source *source = session->sources->sources[i];
		for (size_t j = 0; source->boundary == switches && j < source->schema->nr_fields;
		     j++) {
			if (!strcmp(source->schema->fields[j].name, "next_pid"))
				return source->schema->fields[j].offset;
		}
	}
	return 0;
}

static size_t count_cpus(const struct ps_session *session)
{
	size_t nr = 0;
	for (size_t i = 0; i < session->nr_streams; i++) {
		int cpu = session->streams[i].cpu;
		if (cpu >= 0 && (size_t)cpu >= nr)
			nr = cpu + 1;
	}
	return nr;
}

static struct ps_error *prepare(struct ps_boundaries *boundaries)
{
	const struct ps_session *session = boundaries->session;
	struct ps_error *error = list_counters(boundaries);
	if (error)
		return error;
	boundaries->boundary = find_boundary(session->sources);
	boundaries->nr_cpus = count_cpus(session);
	boundaries->next_offset = find_next(session);
	boundaries->knows_all = ps_leftover_namespace() == INITIAL_PID_NAMESPACE;
	const struct ps_places *places = &ps_opened_of(session)->places;
	bool is_cgroup = places->nr_places && places->places[0].cgroup_fd >= 0;
	struct ps_pass_options options = {
		.scope = find_scope(session),
		.nr_regions = boundaries->regions->nr_regions,
		.nr_counters = boundaries->nr_counters,
		.nr_cpus = boundaries->nr_cpus,
		.nr_rings = session->max_rings, // of CPUs that come later, too
		// Who is not in the cgroup has no samples, and counts in no counter of it.
		.sees_all = !is_cgroup && boundaries->next_offset,
		.sees_switches = boundaries->regions->switches,
	};
	return ps_error_context(ps_passes_create(&options, &boundaries->passes), "-r");
}

struct ps_error *ps_boundaries_create(const struct ps_session *session, struct ps_boundaries **ret)
{
	*ret = NULL;
	if (!session->sources->regions)
		return NULL;
	struct ps_boundaries *boundaries = calloc(1, sizeof(*boundaries));
	if (!boundaries)
		return &ps_enomem;
	boundaries->session = session;
	boundaries->regions = session->sources->regions;
	struct ps_error *error = prepare(boundaries);
	if (error) {
		ps_boundaries_destroy(boundaries);
		return error;
	}
	*ret = boundaries;
	return NULL;
}

void ps_boundaries_destroy(struct ps_boundaries *boundaries)
{
	if (!boundaries)
		return;
	ps_passes_destroy(boundaries->passes);
	free(boundaries->counters);
	free(boundaries->counter_of);
	free(boundaries->counts);
	free(boundaries);
}

/** Take the value of the group's member @id. */
static void take_value(struct ps_boundaries *boundaries, uint64_t id, uint64_t value,
		       struct ps_pass_sample *sample)
{
	const struct ps_stream *stream = ps_session_find(boundaries->session, id);
	if (PS_UNLIKELY(!stream || !stream->source))
		return;
	size_t counter = boundaries->counter_of[stream->source->index];
	if (counter == NO_COUNTER)
		return;
	boundaries->counts[PS_PASS_NR_TIMES + counter] = value;
	sample->invalid &= ~(1ULL << counter);
}

/** Read the values of the group: u64 nr, enabled, running, and for each value, id, and lost where the kernel tells it. */
static bool read_group(struct ps_boundaries *boundaries, const struct ps_sample_layout *layout,
		       struct ps_bytes record, struct ps_pass_sample *sample)
{
	uint64_t at = layout->variable, nr, value, id;
	uint64_t nr_bytes = layout->read_format & PERF_FORMAT_LOST ? 24 : 16;
	uint64_t *counts = boundaries->counts;
	if (!ps_bytes_u64(record, at, &nr) ||
	    !ps_bytes_u64(record, at + 8, &counts[PS_PASS_ENABLED_NS]) ||
	    !ps_bytes_u64(record, at + 16, &counts[PS_PASS_RUNNING_NS]))
		return false;
	size_t nr_counters = boundaries->nr_counters;
	sample->counts = counts;
	sample->invalid = nr_counters < 64 ? (1ULL << nr_counters) - 1 : UINT64_MAX;
	at += 24;
	for (uint64_t i = 0; i < nr; i++, at += nr_bytes) {
		if (!ps_bytes_u64(record, at, &value) || !ps_bytes_u64(record, at + 8, &id))
			return false;
		take_value(boundaries, id, value, sample);
	}
	return true;
}

/** Who comes after the switch @record; its number is one of the first pid namespace. */
static pid_t read_next(const struct ps_boundaries *boundaries, const struct ps_record *record)
{
	struct ps_bytes raw;
	uint32_t next;
	if (!boundaries->next_offset ||
	    !ps_sample_raw(&record->stream->layout, record->header, &raw) ||
	    !ps_bytes_u32(raw, boundaries->next_offset, &next))
		return -1;
	return !next || boundaries->knows_all ? (pid_t)next : -1;
}

/** False: the record is cut. */
static bool read_sample(struct ps_boundaries *boundaries, const struct ps_record *record,
			struct ps_pass_sample *ret)
{
	const struct ps_sample_layout *layout = &record->stream->layout;
	struct ps_bytes bytes = { (const uint8_t *)record->header, record->header->size };
	uint32_t pid, tid;
	if (!ps_bytes_u32(bytes, layout->tid, &pid) ||
	    !ps_bytes_u32(bytes, layout->tid + 4, &tid) ||
	    !ps_bytes_u32(bytes, layout->cpu, &ret->cpu))
		return false;
	ret->pid = pid;
	// In another pid namespace all threads outside of it are 0, too: none of them is known.
	ret->tid = tid || boundaries->knows_all ? (pid_t)tid : -1;
	ret->ring = record->ring;
	ret->time_ns = record->time_ns;
	ret->is_switch = record->stream->source->boundary == boundaries->regions->switches;
	ret->next = ret->is_switch ? read_next(boundaries, record) : -1;
	bool is_of_cpu = boundaries->nr_cpus != 0;
	return (!is_of_cpu || ret->cpu < boundaries->nr_cpus) &&
	       read_group(boundaries, layout, bytes, ret);
}

void ps_boundaries_sample(struct ps_boundaries *boundaries, const struct ps_record *record,
			  ps_pass_function call, void *argument)
{
	struct ps_pass_sample sample;
	if (PS_UNLIKELY(!read_sample(boundaries, record, &sample))) {
		ps_boundaries_drop(boundaries, record);
		return;
	}
	unsigned int boundary = record->stream->source->boundary;
	const struct ps_region_spec *regions = boundaries->regions->regions;
	ps_passes_sample(boundaries->passes, &sample);
	struct ps_pass pass;
	// What ends one region may begin the next.
	for (size_t i = 0; i < boundaries->regions->nr_regions; i++) {
		if (regions[i].end == boundary &&
		    ps_passes_end(boundaries->passes, i, &sample, &pass))
			call(argument, &pass);
	}
	for (size_t i = 0; i < boundaries->regions->nr_regions; i++) {
		if (regions[i].begin == boundary)
			ps_passes_begin(boundaries->passes, i, &sample);
	}
}

void ps_boundaries_follow(struct ps_boundaries *boundaries, const struct ps_record *record)
{
	const struct perf_event_header *header = record->header;
	struct ps_bytes bytes = { (const uint8_t *)header, header->size };
	uint32_t tid;
	if (header->type == PERF_RECORD_LOST || header->type == PERF_RECORD_LOST_SAMPLES)
		ps_passes_lost(boundaries->passes, record->ring);
	// struct { header; u32 pid, ppid; u32 tid, ptid; u64 time; }
	if (header->type == PERF_RECORD_EXIT && ps_bytes_u32(bytes, 16, &tid))
		ps_passes_exit(boundaries->passes, tid);
}

void ps_boundaries_gap(struct ps_boundaries *boundaries, uint32_t ring)
{
	ps_passes_lost(boundaries->passes, ring);
}

void ps_boundaries_drop(struct ps_boundaries *boundaries, const struct ps_record *record)
{
	unsigned int boundary = record->stream->source->boundary;
	const struct ps_region_spec *regions = boundaries->regions->regions;
	if (!boundary)
		return;
	ps_passes_lost(boundaries->passes, record->ring);
	for (size_t i = 0; i < boundaries->regions->nr_regions; i++) {
		if (regions[i].end == boundary)
			ps_passes_miss(boundaries->passes, i);
		if (regions[i].begin == boundary)
			ps_passes_miss(boundaries->passes, i);
	}
}

void ps_boundaries_finish(struct ps_boundaries *boundaries)
{
	ps_passes_finish(boundaries->passes);
}

size_t ps_boundaries_nr_counters(const struct ps_boundaries *boundaries)
{
	return boundaries->nr_counters;
}

const struct ps_source *ps_boundaries_counter(const struct ps_boundaries *boundaries, size_t index)
{
	return boundaries->counters[index];
}

const struct ps_pass_sums *ps_boundaries_sums(const struct ps_boundaries *boundaries, size_t region)
{
	return ps_passes_sums(boundaries->passes, region);
}

void ps_boundaries_count(const struct ps_boundaries *boundaries, struct ps_count *ret)
{
	*ret = (struct ps_count){ 0 };
	if (boundaries->boundary)
		ps_session_count(boundaries->session, boundaries->boundary, ret);
}

uint64_t ps_boundaries_nr_missed(const struct ps_boundaries *boundaries)
{
	return ps_passes_nr_missed(boundaries->passes);
}
