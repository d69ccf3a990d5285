// SPDX-License-Identifier: MIT
/*
 * The rings are mapped here and not by libperf, whose maps want its own descriptors, and a reader's copy buffer of 4 KiB
 * each beside ours.
 */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <perfscope/log.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define DEFAULT_RING_BYTES (4ULL << 20)
#define MIN_DEFAULT_RING_BYTES (64ULL << 10)
// The kernel keeps the addresses of a ring's pages in one allocation.
#define MAX_RING_BYTES (1ULL << 30)
#define DEFAULT_WATERMARK_PERCENT 25

static uint64_t page_bytes(void)
{
	return sysconf(_SC_PAGESIZE);
}

// Rings

static void unmap_rings(struct ps_session *session)
{
	for (size_t i = 0; i < session->nr_rings; i++) {
		struct ps_ring *ring = &session->rings[i];
		if (ring->page)
			munmap(ring->page, ring->mask + 1 + page_bytes());
		ps_ring_deinit(ring);
	}
	session->nr_rings = 0;
}

int ps_ring_map(struct ps_session *session, int fd, int cpu, uint32_t *ret)
{
	uint64_t size = ps_opened_of(session)->ring_bytes;
	void *page = mmap(NULL, size + page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return errno;
	uint32_t index = session->nr_rings;
	if (!ps_ring_init(&session->rings[index], page, size, cpu)) {
		munmap(page, size + page_bytes());
		return ENOMEM;
	}
	session->nr_rings++;
	session->ring_fds[index] = fd;
	*ret = index;
	return 0;
}

/** Give @stream, the session's own event at @place, the ring of that place. *@next: 1 + its index, 0: none yet. */
static int take_ring(struct ps_session *session, struct ps_stream *stream, struct ps_place *place,
		     uint32_t *next)
{
	int os_errno = *next ? ps_stream_share_ring(session, stream, *next - 1)
			     : ps_ring_map(session, stream->fd, stream->cpu, &stream->ring);
	place->mapped = stream->ring;
	*next = stream->ring + 1;
	return os_errno;
}

/** Open the session's own event, of @attr, at @place. *@ret: it stands there. 0 or -errno. */
static int open_side_band(struct ps_session *session, struct perf_event_attr *attr,
			  struct ps_place *place, struct ps_stream **ret)
{
	int status = place->is_gone ? -ENODEV : ps_stream_open(session, NULL, attr, place, NULL);
	*ret = NULL;
	if (status < 0 && !ps_place_is_gone(place, -status))
		return status;
	if (!place->is_gone)
		*ret = &session->streams[session->nr_streams - 1];
	else if (place->tid < 0)
		ps_stream_add_away(session, NULL, attr, place);
	return 0;
}

/** Open the session's own event at each place, and the rings on them. *@ret_errno: with which a ring was refused. */
static struct ps_error *try_rings(struct ps_session *session, int *ret_errno)
{
	struct ps_opened *opened = ps_opened_of(session);
	const struct ps_source *first = session->sources->sources[0]; // whose name messages say
	_cleanup_free_ uint32_t *next_of = calloc(opened->places.nr_rings, sizeof(*next_of));
	if (!next_of)
		return &ps_enomem;
	opened->context.watermark_bytes = opened->ring_bytes / 100.0 * opened->watermark_percent;
	struct perf_event_attr attr =
		ps_attr_side_band(opened->want_tasks, session->has_stacks, &opened->context);
	*ret_errno = 0;
	for (size_t i = 0; i < opened->places.nr_places && !*ret_errno; i++) {
		struct ps_place *place = &opened->places.places[i];
		struct ps_stream *stream;
		int status = open_side_band(session, &attr, place, &stream);
		if (status < 0)
			return ps_refusal_error(-status, first->name, &first->attr, place,
						opened->max_streams);
		if (stream)
			*ret_errno = take_ring(session, stream, place, &next_of[place->ring]);
	}
	return NULL;
}

static void warn_small_rings(const struct ps_opened *opened, uint64_t wanted, int os_errno)
{
	ps_log(PS_LOG_WARNING,
	       "rings of %" PRIu64 "K are refused (%s), %" PRIu64
	       "K are used, more may be lost; raise sysctl kernel.perf_event_mlock_kb or "
	       "ulimit -l, or choose a smaller -m",
	       wanted >> 10, os_errno == ENOMEM ? "out of memory" : "the locked-memory quota",
	       opened->ring_bytes >> 10);
}

/** Open the rings; the size is halved for as long as the kernel refuses it. */
static struct ps_error *open_rings(struct ps_session *session)
{
	struct ps_opened *opened = ps_opened_of(session);
	uint64_t wanted = opened->ring_bytes;
	for (int last_errno = 0, os_errno;; opened->ring_bytes /= 2, last_errno = os_errno) {
		struct ps_error *error = try_rings(session, &os_errno);
		if (error)
			return error;
		if (!os_errno && last_errno)
			warn_small_rings(opened, wanted, last_errno);
		if (!os_errno)
			return NULL;
		unmap_rings(session);
		ps_streams_close(session);
		bool is_quota = os_errno == EPERM || os_errno == ENOMEM;
		if (!is_quota || opened->ring_bytes <= page_bytes())
			return ps_error_hint(ps_error_os(os_errno, "map rings of %" PRIu64 "K",
							 opened->ring_bytes >> 10),
					     "locked memory: sysctl kernel.perf_event_mlock_kb, "
					     "ulimit -l");
	}
}

// Session

/** Whether the kernel opens an event of this thread, which counts nothing, with what @attr has beside. */
static bool can_open(struct perf_event_attr attr)
{
	attr.type = PERF_TYPE_SOFTWARE;
	attr.size = sizeof(attr);
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.disabled = 1;
	attr.exclude_kernel = 1;
	_cleanup_close_ int fd =
		syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd >= 0;
}

/** Ask the kernel for what came with later versions. */
static void probe_kernel(struct ps_session *session)
{
	struct ps_attr_context *context = &ps_opened_of(session)->context;
	context->has_lost_count =
		can_open((struct perf_event_attr){ .read_format = PERF_FORMAT_LOST });
	context->has_ksymbol = can_open((struct perf_event_attr){ .ksymbol = 1 });
	context->can_read_inherited = can_open((struct perf_event_attr){
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID,
		.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_TID,
		.sample_period = 1,
		.inherit = 1,
	});
	session->has_lost_count = context->has_lost_count;
}

static bool has_sampling(const struct ps_source_list *sources)
{
	for (size_t i = 0; i < sources->nr_sources; i++) {
		if (sources->sources[i]->is_sampling && !sources->sources[i]->is_missing)
			return true;
	}
	return false;
}

static bool has_stacks(const struct ps_source_list *sources)
{
	for (size_t i = 0; i < sources->nr_sources; i++) {
		if (sources->sources[i]->attr.sample_type & PERF_SAMPLE_CALLCHAIN)
			return true;
	}
	return false;
}

/** The size of each ring: as asked, rounded up to a power of two, or less than the default where there are many. */
static uint64_t choose_ring_bytes(const struct ps_session_options *options,
				  const struct ps_source_list *sources, size_t nr_rings)
{
	uint64_t size = page_bytes();
	if (options->ring_bytes) {
		while (size < options->ring_bytes)
			size *= 2;
		return size;
	}
	if (!has_sampling(sources))
		return MIN_DEFAULT_RING_BYTES;
	// A ring per thread: a thousand of them need not hold 4 MiB each.
	size = DEFAULT_RING_BYTES;
	while (size > MIN_DEFAULT_RING_BYTES && size * nr_rings > MAX_RING_BYTES)
		size /= 2;
	return size;
}

static struct ps_error *allocate(struct ps_session *session,
				 const struct ps_session_options *options,
				 const struct ps_target *target)
{
	struct ps_opened *opened = ps_opened_of(session);
	struct ps_error *error = ps_places_plan(target, session->sources, &opened->places);
	if (error)
		return error;
	for (size_t i = 0; i < opened->places.nr_places; i++) {
		error = ps_place_make_maps(&opened->places.places[i]);
		if (error)
			return error;
	}
	size_t nr_rings = opened->places.nr_rings;
	opened->max_streams = opened->places.nr_places * (session->sources->nr_sources + 1);
	opened->ring_bytes = choose_ring_bytes(options, session->sources, nr_rings);
	session->max_rings = nr_rings;
	session->rings = calloc(nr_rings + 1, sizeof(*session->rings));
	session->ring_fds = calloc(nr_rings + 1, sizeof(*session->ring_fds));
	session->streams = calloc(opened->max_streams + 1, sizeof(*session->streams));
	opened->evsels = calloc(opened->max_streams + 1, sizeof(*opened->evsels));
	if (!session->rings || !session->ring_fds || !session->streams || !opened->evsels)
		return &ps_enomem;
	return NULL;
}

static struct ps_error *open_all(struct ps_session *session, const struct ps_target *target,
				 const struct ps_session_options *options)
{
	struct ps_opened *opened = ps_opened_of(session);
	if (options->ring_bytes > MAX_RING_BYTES)
		return ps_error_format(PS_ERROR_USAGE,
				       "rings of %" PRIu64 "K: the kernel makes none above %" PRIu64
				       "K; choose a smaller -m",
				       options->ring_bytes >> 10, (uint64_t)MAX_RING_BYTES >> 10);
	struct ps_error *error = ps_clock_open(&session->clock, options->clock);
	if (error)
		return error;
	error = allocate(session, options, target);
	if (error)
		return error;
	probe_kernel(session);
	// The rings of threads are kept also where nothing is sampled: they tell the end of the threads.
	if (opened->is_threads || opened->want_tasks || has_sampling(session->sources))
		error = open_rings(session);
	if (!error)
		error = ps_sources_open(session);
	if (error)
		return error;
	if (opened->is_threads)
		ps_coverage_prepare(session, sysconf(_SC_NPROCESSORS_ONLN));
	ps_shared_build(session);
	return ps_ids_build(session);
}

struct ps_error *ps_session_open(struct ps_source_list *sources, const struct ps_target *target,
				 const struct ps_session_options *options, struct ps_session **ret)
{
	if (!sources->nr_sources)
		return ps_error_format(PS_ERROR_USAGE, "there is no event to open");
	struct ps_session *session = calloc(1, sizeof(*session));
	struct ps_opened *opened = calloc(1, sizeof(*opened));
	if (!session || !opened) {
		free(session);
		free(opened);
		return &ps_enomem;
	}
	session->sources = sources;
	session->clock.perf_fd = -1;
	session->priv = opened;
	opened->is_threads = target->kind == PS_TARGET_THREADS;
	opened->is_enabled_by_exec = opened->is_threads && target->is_workload;
	opened->want_tasks = options->want_tasks;
	session->has_stacks = has_stacks(sources);
	opened->strict = options->strict;
	opened->is_stopping = options->is_stopping;
	opened->watermark_percent =
		options->watermark_percent ? options->watermark_percent : DEFAULT_WATERMARK_PERCENT;
	opened->context.clock = &session->clock;
	opened->target = *target;
	opened->context.target = &opened->target;
	struct ps_error *error = open_all(session, target, options);
	if (error) {
		ps_session_destroy(session);
		return error;
	}
	opened->target.cpus = opened->target.offline_cpus = NULL; // the caller's
	opened->target.tids = NULL;
	*ret = session;
	return NULL;
}

void ps_session_destroy(struct ps_session *session)
{
	if (!session)
		return;
	struct ps_opened *opened = ps_opened_of(session);
	ps_ids_deinit(session);
	ps_session_forget_forks(session);
	unmap_rings(session);
	ps_streams_close(session);
	for (size_t i = 0; i < opened->places.nr_places; i++)
		ps_place_deinit(&opened->places.places[i]);
	ps_nofile_restore(opened);
	ps_clock_close(&session->clock);
	free(opened->places.places);
	free(opened->evsels);
	free(opened);
	free(session->streams);
	free(session->ring_fds);
	free(session->rings);
	free(session);
}
