// SPDX-License-Identifier: MIT
#include <perfscope/run.h>

#include "addresses.h"
#include "report.h"

#include <perfscope/child.h>
#include <perfscope/cpu_watch.h>
#include <perfscope/deadline.h>
#include <perfscope/log.h>
#include <perfscope/loop.h>
#include <perfscope/program_regions.h>
#include <perfscope/regions.h>
#include <perfscope/signals.h>
#include <perfscope/user.h>
#include <perfscope/workload.h>

/** After a request to stop, the rings are emptied for so long; what is left counts as lost. */
#define DRAIN_LIMIT_NS 800000000ULL

/** Where the run ended by itself, all of it is wanted, until somebody asks to stop. */
#define DRAIN_WHOLE_NS (3600 * PS_NS_PER_SECOND)

/** All that a run owns, in the order in which it is made. */
struct run {
	const struct ps_options *options;
	struct ps_source_list *sources; // borrowed
	struct ps_user user;
	struct ps_output output;
	struct ps_region_share region_share; // where programs find their table
	struct ps_region_table *regions;
	struct ps_workload *workload;
	int cpu_watch_fd; // -1: none
	struct ps_target target;
	struct ps_session *session;
	struct ps_merge *merge;
	struct ps_lookup lookup;
	bool has_interp;
	struct ps_script *script;
	struct ps_dispatch *dispatch;
	struct ps_summary *summary;
	struct ps_usage_meter meter;
	bool is_loaded; // the script wants to run
	enum ps_loop_end end;
	int status;
};

/** Start the program of --run, told where the table of regions is going to be. */
static struct ps_error *create_workload(struct run *run)
{
	const struct ps_user *user = run->options->user ? &run->user : NULL;
	struct ps_region_share *share = &run->region_share;
	_cleanup_error_ struct ps_error *error = ps_region_share_create(
		user ? user->uid : geteuid(), user ? user->gid : getegid(), share);
	if (error)
		ps_log(PS_LOG_WARNING, "regions of the program are not counted: %s",
		       error->message);
	char setting[sizeof(PS_REGION_TABLE_VARIABLE "=") + sizeof(share->name)];
	snprintf(setting, sizeof(setting), PS_REGION_TABLE_VARIABLE "=%s", share->name);
	return ps_workload_create(run->options->run, error ? NULL : setting, &run->workload);
}

/** What needs no event: whom to become, where to write, what to start. */
static struct ps_error *prepare(struct run *run)
{
	const struct ps_options *options = run->options;
	struct ps_error *error = NULL;
	if (options->user)
		error = ps_user_find(options->user, &run->user);
	if (!error && options->run)
		error = create_workload(run);
	if (!error)
		error = ps_output_open(options->output, &run->output);
	if (!error)
		error = ps_signals_start(options->output != NULL);
	if (!error && run->workload)
		ps_signals_set_workload(ps_workload_pid(run->workload));
	return error;
}

static struct ps_error *resolve_target(struct run *run)
{
	const struct ps_options *options = run->options;
	struct ps_target_options target_options = {
		.cpus = options->cpus,
		.pids = options->pids,
		.tids = options->tids,
		.cgroup = options->cgroup,
		.workload = run->workload ? ps_workload_pid(run->workload) : 0,
		.inherit = options->inherit,
	};
	// Before it is asked which CPUs are online, so that no change is missed.
	run->cpu_watch_fd = ps_cpu_watch_open();
	return ps_target_resolve(&target_options, &run->target);
}

/** How `_time` shows the session's clock: --clock-offset, --tsc. */
static struct ps_error *set_time_view(struct run *run)
{
	// Measured once: a wall clock that is set later does not turn the order of times around.
	struct ps_time_view view = {
		.offset_ns = run->options->clock_offset_ns + ps_clock_ahead_ns(run->options->clock),
	};
	if (run->options->is_tsc) {
		const struct perf_event_mmap_page *page =
			run->session->nr_rings ? run->session->rings[0].page : NULL;
		if (!page || !page->cap_user_time_zero)
			return ps_error_format(PS_ERROR_UNSUPPORTED,
					       "--tsc: the kernel does not say here how its clock "
					       "relates to the time stamp counter; use --clock");
		view.is_tsc = true;
		view.time_zero = page->time_zero;
		view.time_mult = page->time_mult;
		view.time_shift = page->time_shift;
	}
	run->session->clock.view = view;
	return NULL;
}

/** Names of threads always; what is mapped, and symbols, where samples have call stacks. */
static struct ps_error *create_lookup(struct run *run)
{
	struct ps_lookup *lookup = &run->lookup;
	struct ps_error *error = ps_tasks_create(&lookup->tasks);
	if (error || !run->session->has_stacks)
		return error;
	struct ps_symbol_options options = {
		.has_lines = true,
		.has_debuginfod = run->options->has_debuginfod,
		.is_stopping = ps_signals_is_stopping,
	};
	error = ps_maps_create(&lookup->maps);
	if (!error)
		error = ps_symbolizer_create(lookup->maps, &options, &lookup->symbolizer);
	if (error || !run->options->user)
		return error;
	// The user whom we become may not see the kernel's addresses.
	_cleanup_error_ struct ps_error *hidden = ps_symbolizer_load_kernel(lookup->symbolizer);
	if (hidden)
		ps_log_error(PS_LOG_WARNING, hidden);
	return NULL;
}

static struct ps_error *open_session(struct run *run)
{
	const struct ps_options *options = run->options;
	struct ps_session_options session_options = {
		.ring_bytes = options->ring_bytes,
		.is_ring_bytes_given = options->ring_bytes != 0,
		.watermark_percent = options->watermark_percent,
		.clock = ps_clock_of_records(options->clock),
		.strict = options->is_strict,
		.want_tasks = true,
		.is_stopping = ps_signals_is_stopping,
	};
	struct ps_error *error =
		ps_session_open(run->sources, &run->target, &session_options, &run->session);
	if (!error)
		error = set_time_view(run);
	if (!error)
		error = ps_merge_create(run->session, options->is_ordered, &run->merge);
	if (!error)
		error = create_lookup(run);
	if (!error)
		error = ps_session_follow_forks(run->session);
	if (!error)
		ps_log(PS_LOG_INFO, "opened: events %zu, descriptors %zu, rings %zu",
		       run->sources->nr_sources, run->session->nr_streams, run->session->nr_rings);
	return error;
}

/** The table that the program's regions write to, and the script's own. */
static struct ps_error *create_regions(struct run *run)
{
	struct ps_counter counters[PS_MAX_COUNTERS];
	size_t nr, nr_left = ps_program_regions_counters(run->sources, counters, &nr);
	if (nr_left)
		ps_log(PS_LOG_INFO, "regions count the first %d counters", PS_MAX_COUNTERS);
	const struct ps_region_share *share = run->region_share.memory ? &run->region_share : NULL;
	return ps_region_table_create(share, counters, nr, 0, &run->regions);
}

static struct ps_error *open_events(struct run *run)
{
	struct ps_error *error = prepare(run);
	if (!error)
		error = resolve_target(run);
	if (!error)
		error = open_session(run);
	if (!error)
		error = create_regions(run);
	if (!error)
		ps_addresses_check(run->sources, &run->target);
	if (!error && run->options->user)
		error = ps_user_become(&run->user);
	return error;
}

static struct ps_error *start_interp(struct run *run)
{
	ps_signals_yield();
	struct ps_error *error =
		ps_interp_start((int)run->options->nr_script, run->options->script);
	ps_signals_claim();
	run->has_interp = !error;
	return error;
}

/** Import the script; where it raised SystemExit or was interrupted there is none, and a status. */
static struct ps_error *import_script(struct run *run)
{
	ps_signals_set_phase(PS_PHASE_LOADING, NULL);
	struct ps_error *error = ps_child_watch(NULL);
	if (!error && !ps_signals_is_stopping())
		error = ps_script_load(run->options->script[0], &run->script, &run->status);
	ps_signals_set_phase(PS_PHASE_OURS, NULL);
	run->is_loaded = !error && run->script;
	if (!ps_child_is_here())
		return error;
	if (error)
		ps_log_error(PS_LOG_ERROR, error);
	ps_child_end(error ? 1 : run->status);
}

static struct ps_error *load_script(struct run *run)
{
	struct ps_error *error = start_interp(run);
	if (!error)
		error = ps_regions_attach(run->regions);
	if (!error)
		error = import_script(run);
	if (error || !run->is_loaded)
		return error;
	struct ps_dispatch_options dispatch_options = {
		.max_events = run->options->max_events,
		.stop_on_error = run->options->stop_on_error,
		.regions = run->regions,
	};
	error = ps_script_bind(run->script, run->sources, run->options->interval_ms != 0);
	if (!error)
		error = ps_dispatch_create(run->session, run->merge, &run->lookup, run->script,
					   &dispatch_options, &run->dispatch);
	if (!error && run->options->interval_ms && !ps_dispatch_has_interval(run->dispatch))
		error = ps_summary_create(run->session, run->sources, &run->summary);
	return error;
}

// Each thread's name is looked up with all those of its process: for many threads, all of /proc is less.
#define MAX_SNAPSHOT_TIDS 16

/** Names and maps from before. After enabling: what changes in between is then in a record. */
static void take_names(struct run *run)
{
	const struct ps_target *target = &run->target;
	bool is_few = target->kind == PS_TARGET_THREADS && target->nr_tids <= MAX_SNAPSHOT_TIDS;
	const pid_t *tids = is_few ? target->tids : NULL;
	size_t nr = is_few ? target->nr_tids : 0;
	ps_tasks_snapshot(run->lookup.tasks, tids, nr);
	if (run->lookup.maps)
		ps_maps_snapshot(run->lookup.maps, tids, nr);
}

/** Let the events happen: enable them, and the program go. */
static struct ps_error *begin_events(struct run *run)
{
	// Totals begin before anything counts: they then hold exactly what was delivered and lost.
	ps_dispatch_begin(run->dispatch);
	struct ps_error *error = NULL;
	if (!run->target.is_workload)
		error = ps_session_enable(run->session);
	if (error)
		return error;
	take_names(run);
	return run->workload ? ps_workload_start(run->workload) : NULL;
}

static struct ps_error *run_loop(struct run *run)
{
	const struct ps_options *options = run->options;
	struct ps_loop_options loop_options = {
		.session = run->session,
		.merge = run->merge,
		.dispatch = run->dispatch,
		.summary = run->summary,
		.output = &run->output,
		.meter = &run->meter,
		.regions = run->region_share.memory ? run->regions : NULL,
		.workload_fd = run->workload ? ps_workload_pidfd(run->workload) : -1,
		.cpu_watch_fd = run->cpu_watch_fd,
		.is_ordered = options->is_ordered,
		.latency_ns = options->latency_ms * PS_NS_PER_MS,
		.interval_ns = options->interval_ms * PS_NS_PER_MS,
		.usage_ns = options->usage_ms * PS_NS_PER_MS,
		.duration_ns = options->duration_ns,
	};
	return ps_loop_run(&loop_options, &run->end);
}

/** Ask a program that still runs to end. */
static void stop_workload(struct run *run)
{
	if (!run->workload || ps_workload_has_ended(run->workload))
		return;
	if (!ps_workload_stop(run->workload))
		ps_log(PS_LOG_WARNING, "%s still runs, as process %d", run->options->run[0],
		       (int)ps_workload_pid(run->workload));
}

/** Disable the events and hand out what is left. */
static struct ps_error *finish_events(struct run *run)
{
	ps_session_disable(run->session);
	stop_workload(run);
	bool is_whole = run->end == PS_LOOP_EXITED || run->end == PS_LOOP_GONE;
	ps_dispatch_drain(run->dispatch, is_whole ? DRAIN_WHOLE_NS : DRAIN_LIMIT_NS);
	// The rest of the last interval, so that the tables add up to the whole.
	bool is_read;
	if (!run->summary || run->end == PS_LOOP_CLOSED)
		return NULL;
	struct ps_error *error = ps_summary_print(run->summary, true, &is_read);
	if (error || !is_read)
		return error;
	const struct ps_boundaries *boundaries = ps_dispatch_finish_regions(run->dispatch);
	return ps_summary_print_regions(run->regions, run->sources->regions, boundaries, &is_read);
}

/** From the first event to the last. */
static struct ps_error *run_events(struct run *run)
{
	struct ps_error *error = begin_events(run);
	if (!error)
		error = run_loop(run);
	struct ps_error *finish_error = finish_events(run);
	if (!error)
		return finish_error;
	ps_error_destroy(finish_error);
	return error;
}

/** The loaded script, from `__init__` to `__exit__`, which is called on every way out. */
static struct ps_error *run_script(struct run *run)
{
	run->meter = (struct ps_usage_meter){ run->dispatch, ps_usage_now() };
	ps_dispatch_set_print_stat(run->dispatch, ps_usage_print, &run->meter);
	ps_signals_set_phase(PS_PHASE_RUNNING, run->dispatch);
	struct ps_error *error = NULL;
	run->end = PS_LOOP_STOPPED;
	if (ps_dispatch_init(run->dispatch) != PS_DISPATCH_STOP)
		error = run_events(run);
	ps_signals_set_phase(PS_PHASE_ENDING, NULL);
	ps_dispatch_exit(run->dispatch);
	ps_signals_set_phase(PS_PHASE_OURS, NULL);
	ps_report_regions(run->regions);
	ps_report(run->session, run->merge, run->dispatch, run->lookup.symbolizer);
	if (run->workload)
		ps_addresses_report(run->session, ps_workload_path(run->workload));
	run->status = ps_dispatch_status(run->dispatch);
	return error;
}

/** The status of the run: the program's where it ended the run, else the script's. */
static void take_status(struct run *run, int interp_status)
{
	if (run->workload && run->end == PS_LOOP_EXITED && !ps_signals_is_stopping()) {
		int status = ps_workload_status(run->workload);
		run->status = status ? status : run->status;
	}
	if (!run->status)
		run->status = interp_status;
}

/** Undo all, the last made first. */
static void destroy(struct run *run)
{
	int interp_status = 0;
	ps_summary_destroy(run->summary);
	ps_dispatch_destroy(run->dispatch);
	ps_script_destroy(run->script);
	if (run->has_interp) {
		// atexit, and threads that are waited for
		ps_signals_set_phase(PS_PHASE_LOADING, NULL);
		interp_status = ps_interp_finish();
		if (ps_child_is_here()) // forked in atexit
			_exit(interp_status);
		ps_signals_set_phase(PS_PHASE_OURS, NULL);
		ps_signals_claim(); // Python gave them back
	}
	// The table stays: a thread of the script that still runs may be in a region.
	ps_symbolizer_destroy(run->lookup.symbolizer);
	ps_maps_destroy(run->lookup.maps);
	ps_tasks_destroy(run->lookup.tasks);
	ps_merge_destroy(run->merge);
	ps_session_destroy(run->session);
	ps_target_deinit(&run->target);
	if (run->cpu_watch_fd >= 0)
		close(run->cpu_watch_fd);
	take_status(run, interp_status);
	ps_workload_destroy(run->workload);
	ps_signals_finish();
	ps_output_close(&run->output);
}

struct ps_error *ps_run(const struct ps_options *options, struct ps_source_list *sources,
			int *ret_status)
{
	struct run run = {
		.options = options,
		.sources = sources,
		.cpu_watch_fd = -1,
		.target.cgroup_fd = -1,
		.end = PS_LOOP_STOPPED,
	};
	struct ps_error *error = open_events(&run);
	if (error && ps_signals_is_stopping()) {
		// Asked for: a clean end, before there was anything to run.
		ps_error_destroy(error);
		error = NULL;
	}
	if (!error && !ps_signals_is_stopping())
		error = load_script(&run);
	if (!error && run.is_loaded)
		error = run_script(&run);
	destroy(&run);
	if (!error)
		*ret_status = run.status;
	return error;
}
