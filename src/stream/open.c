// SPDX-License-Identifier: MIT
#include "internal.h"

#include <errno.h>
#include <perfscope/log.h>
#include <sys/ioctl.h>

bool ps_cpu_is_online(int cpu)
{
	char path[64];
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	int is_online = 1; // CPUs that cannot go offline have no such file
	return !file || fscanf(file, "%d", &is_online) != 1 || is_online;
}

bool ps_place_is_gone(struct ps_place *place, int os_errno)
{
	if (place->is_gone)
		return true;
	if (os_errno == ESRCH && place->tid > 0) {
		ps_log(PS_LOG_INFO, "thread %d has ended, it is left out", place->tid);
		place->is_gone = true;
	} else if ((os_errno == ENODEV || os_errno == EINVAL) && place->cpu >= 0 &&
		   !ps_cpu_is_online(place->cpu)) {
		bool is_left_out = place->tid >= 0;
		ps_log(PS_LOG_WARNING, "cpu %d went offline, %s", place->cpu,
		       is_left_out ? "it is left out" : "it is seen when it comes back");
		place->is_gone = true;
	}
	return place->is_gone;
}

int ps_stream_share_ring(struct ps_session *session, struct ps_stream *stream, uint32_t index)
{
	stream->ring = index;
	if (ioctl(stream->fd, PERF_EVENT_IOC_SET_OUTPUT, session->ring_fds[index]))
		return errno;
	return 0;
}

/** Log that @source is missing, or make it an error. */
static struct ps_error *report_missing(const struct ps_session *session,
				       const struct ps_source *source)
{
	if (source->original)
		return NULL; // told of that one
	if (ps_opened_of(session)->strict)
		return ps_error_hint(ps_error_format(PS_ERROR_UNSUPPORTED, "%s: %s", source->label,
						     source->missing_reason),
				     "--strict");
	// "no hardware PMU here; nearest: cpu-clock"
	const char *reason = source->missing_reason;
	int length = strcspn(reason, ";");
	ps_log(PS_LOG_WARNING, "%s: %.*s, it reads None%s", source->label, length, reason,
	       reason + length);
	return NULL;
}

static struct ps_error *mark_missing(const struct ps_session *session, struct ps_source *source,
				     const char *reason, const char *nearest)
{
	char *text;
	if (asprintf(&text, "%s%s%s", reason, nearest ? "; nearest: " : "",
		     nearest ? nearest : "") < 0)
		return &ps_enomem;
	free(source->missing_reason);
	source->missing_reason = text;
	source->is_missing = true;
	return report_missing(session, source);
}

/**
 * Let cpu-clock sample in the place of cycles that this machine lacks: both tell where the time goes.
 *
 * A frequency stays; a period in cycles is taken as one in ns. False: @source is no sampling cycles.
 */
static bool replace_cycles(const struct ps_session *session, struct ps_source *source,
			   const char *reason)
{
	struct perf_event_attr *attr = &source->attr;
	if (!source->is_sampling || attr->type != PERF_TYPE_HARDWARE ||
	    attr->config != PERF_COUNT_HW_CPU_CYCLES || ps_opened_of(session)->strict)
		return false;
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_CPU_CLOCK;
	attr->precise_ip = 0;
	ps_log(PS_LOG_WARNING, "%s: %s, cpu-clock samples in its place%s", source->label, reason,
	       attr->freq ? "" : ", its period in ns");
	return true;
}

/** Whether @source was to exclude the kernel, which it cannot, and this user may not include it. */
static bool is_kernel_refused(const struct ps_source *source, int os_errno, const char **ret_reason)
{
	if (!source->attr.exclude_kernel || !ps_attr_is_kernel_only(&source->attr))
		return false;
	if (os_errno != EACCES && os_errno != EPERM)
		return false;
	*ret_reason = "only the kernel makes it, and that this user may not count (needs "
		      "CAP_PERFMON or sysctl kernel.perf_event_paranoid=1)";
	return true;
}

/** Whether one source is open. */
static bool has_source(const struct ps_session *session)
{
	return ps_opened_of(session)->nr_open;
}

/**
 * Whether @source is one of those that a pattern matched, and the kernel lets nobody sample it
 * (irq_vectors:irq_work_exit would make itself): that is no reason to give up the others.
 */
static bool is_glob_refused(const struct ps_session *session, const struct ps_source *source,
			    int os_errno, const char **ret_reason)
{
	// Where not one could be opened so far, the refusal is of all of them.
	if (!source->is_glob || os_errno != EPERM || !has_source(session))
		return false;
	*ret_reason = "the kernel lets nobody sample it";
	return true;
}

/** Which CPUs a source is restricted to. */
struct cpu_list {
	int *cpus; // NULL: none in particular
	size_t nr;
};

static bool cpu_list_has(const struct cpu_list *list, int cpu)
{
	for (size_t i = 0; i < list->nr; i++) {
		if (list->cpus[i] == cpu)
			return true;
	}
	return !list->cpus;
}

struct ps_error *ps_descriptor_finish(struct ps_session *session, const struct ps_source *source,
				      int fd, uint32_t index)
{
	if (source->is_sampling && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, session->ring_fds[index]))
		return ps_error_os(errno, "%s: write into the ring of cpu %d", source->name,
				   session->rings[index].cpu);
	return source->filter ? ps_filter_apply(source, fd) : NULL;
}

/** Whether a sample of @source, or of one of its group, tells what was counted. */
static bool is_read_in_samples(const struct ps_session *session, const struct ps_source *source)
{
	for (size_t i = 0; i < session->sources->nr_sources; i++) {
		const struct ps_source *member = session->sources->sources[i];
		bool is_together =
			member == source || (source->group && member->group == source->group);
		if (is_together && !member->is_missing &&
		    member->attr.sample_type & PERF_SAMPLE_READ)
			return true;
	}
	return false;
}

/**
 * Whether new threads cannot be observed, though the target has them: before 6.12 the kernel refuses to inherit what
 * is read in samples. Without them the run is worth having, and this is told; where children are asked for, it is refused.
 */
static bool is_first_thread_only(const struct ps_session *session, const struct ps_source *source)
{
	const struct ps_attr_context *context = &ps_opened_of(session)->context;
	if (!context->target->inherit_threads || context->target->inherit)
		return false;
	return !context->can_read_inherited && is_read_in_samples(session, source);
}

/** The attr with which @source is opened, alone or as leader of its group (@is_leader), or behind one. */
static struct perf_event_attr prepare_attr(const struct ps_session *session,
					   const struct ps_source *source, bool is_leader)
{
	struct perf_event_attr attr = ps_attr_prepare(&source->attr, source->is_sampling, is_leader,
						      &ps_opened_of(session)->context);
	if (is_first_thread_only(session, source))
		attr.inherit = attr.inherit_thread = 0;
	return attr;
}

/** Open @source at all places of @list; @leaders: by place, the first of its group. */
static struct ps_error *open_places(struct ps_session *session, struct ps_source *source,
				    const struct cpu_list *list, struct ps_stream **leaders)
{
	struct ps_opened *opened = ps_opened_of(session);
	size_t nr_before = session->nr_streams, nr_open_before = opened->nr_open;
	const char *reason = NULL, *nearest = NULL;
	bool is_placed = false;
	for (size_t i = 0; i < opened->places.nr_places; i++) {
		struct ps_place *place = &opened->places.places[i];
		if (!cpu_list_has(list, place->cpu))
			continue;
		is_placed = true;
		struct ps_stream *leader = source->group ? leaders[i] : NULL;
		struct perf_event_attr attr = prepare_attr(session, source, !leader);
		int status = place->is_gone ? -ENODEV
					    : ps_stream_open(session, source, &attr, place, leader);
		if (status < 0 && ps_place_is_gone(place, -status)) {
			if (place->tid < 0)
				ps_stream_add_away(session, source, &attr, place);
			continue;
		}
		// A counter may be there on some CPUs only.
		if (status < 0 &&
		    (is_kernel_refused(source, -status, &reason) ||
		     is_glob_refused(session, source, -status, &reason) ||
		     (!source->probe && ps_refusal_is_missing(-status, &attr, &reason, &nearest))))
			continue;
		if (status < 0 && source->probe)
			return ps_refusal_probe_error(-status, source->name, &attr, place,
						      opened->max_streams);
		if (status < 0)
			return ps_refusal_error(-status, source->name, &attr, place,
						opened->max_streams);
		struct ps_stream *stream = &session->streams[session->nr_streams - 1];
		stream->is_leader = !leader;
		leaders[i] = leader ? leader : stream;
		struct ps_error *error =
			ps_descriptor_finish(session, source, stream->fd, stream->ring);
		if (error)
			return error;
	}
	if (!is_placed)
		return ps_error_format(PS_ERROR_USAGE, "%s: cpus=%s: none of these is observed",
				       source->name, source->cpus);
	if (opened->nr_open > nr_open_before || !reason)
		return NULL;
	session->nr_streams = nr_before; // those of CPUs that are offline
	if (replace_cycles(session, source, reason))
		return open_places(session, source, list, leaders);
	return mark_missing(session, source, reason, nearest);
}

static struct ps_error *open_source(struct ps_session *session, struct ps_source *source,
				    struct ps_stream **leaders)
{
	if (source->is_missing)
		return report_missing(session, source);
	struct cpu_list list = { 0 };
	if (source->cpus) {
		struct ps_error *error = ps_parse_cpu_list(source->cpus, &list.cpus, &list.nr);
		if (error)
			return ps_error_context(error, "%s: cpus=%s", source->name, source->cpus);
	}
	if (is_first_thread_only(session, source) && (!source->group || source->is_group_leader))
		ps_log(PS_LOG_WARNING,
		       "%s: this kernel reads no counters in samples of new threads (Linux 6.12 "
		       "does), only the program's first thread is observed",
		       source->label);
	struct ps_error *error = open_places(session, source, &list, leaders);
	free(list.cpus);
	return error;
}

/** An error where not one source has a descriptor. */
static struct ps_error *check_any_open(const struct ps_session *session)
{
	if (has_source(session))
		return NULL;
	for (size_t i = 0; i < session->sources->nr_sources; i++) {
		const struct ps_source *source = session->sources->sources[i];
		if (source->is_missing)
			return ps_error_format(PS_ERROR_UNSUPPORTED,
					       "not one event can be opened (%s: %s)",
					       source->label, source->missing_reason);
	}
	if (ps_opened_of(session)->is_threads)
		return ps_error_format(PS_ERROR_NOT_FOUND,
				       "not one event can be opened: the threads have ended");
	return ps_error_format(
		PS_ERROR_NOT_FOUND,
		"not one event can be opened: none of its CPUs is online and observed");
}

struct ps_error *ps_sources_open(struct ps_session *session)
{
	size_t nr_places = ps_opened_of(session)->places.nr_places;
	_cleanup_free_ struct ps_stream **leaders = calloc(nr_places + 1, sizeof(*leaders));
	_cleanup_free_ struct ps_stream **region_leaders =
		calloc(nr_places + 1, sizeof(*region_leaders));
	if (!leaders || !region_leaders)
		return &ps_enomem;
	bool (*is_stopping)(void) = ps_opened_of(session)->is_stopping;
	unsigned int group =
		0; // members of a group stand side by side, but for those of the regions'
	for (size_t i = 0; i < session->sources->nr_sources; i++) {
		struct ps_source *source = session->sources->sources[i];
		if (is_stopping && is_stopping())
			return ps_error_format(PS_ERROR_OS, "stopped before all events were open");
		bool is_of_regions =
			source->group && source->group == session->sources->region_group;
		if (!is_of_regions && source->group != group)
			memset(leaders, 0, nr_places * sizeof(*leaders));
		group = is_of_regions ? group : source->group;
		struct ps_error *error =
			open_source(session, source, is_of_regions ? region_leaders : leaders);
		if (error)
			return error;
	}
	return check_any_open(session);
}
