// SPDX-License-Identifier: MIT
#include <perfscope/cli.h>

#include <perfscope/log.h>
#include <perfscope/options.h>
#include <perfscope/run.h>
#include <perfscope/script.h>

/** What the command line names; all of it is the caller's, also on failure. */
struct named {
	struct ps_spec_list specs;
	struct ps_region_spec_list regions;
	struct ps_source_list sources;
};

static bool has_cpus(const struct ps_spec_list *specs)
{
	for (size_t i = 0; i < specs->nr_specs; i++) {
		if (specs->specs[i].cpus)
			return true;
	}
	return false;
}

/** Whether counters are of threads wherever these run; else it takes each switch of a CPU to know whose a count is. */
static bool is_of_threads(const struct ps_options *options, const struct ps_spec_list *specs)
{
	return (options->pids || options->tids) && !options->cpus && !options->inherit &&
	       !has_cpus(specs);
}

static struct ps_error *parse_regions(const struct ps_options *options, struct named *named)
{
	struct ps_error *error = NULL;
	bool needs_switches = options->nr_regions && !is_of_threads(options, &named->specs);
	for (size_t i = 0; !error && i < options->nr_regions; i++)
		error = ps_error_context(ps_region_spec_parse(options->regions[i], &named->specs,
							      &named->regions),
					 "-r");
	if (error || !needs_switches)
		return error;
	return ps_region_spec_add_switches(&named->specs, &named->regions);
}

/** Parse every -e and -r, and resolve the events. */
static struct ps_error *resolve_events(const struct ps_options *options, struct named *named)
{
	struct ps_error *error = NULL;
	for (size_t i = 0; !error && i < options->nr_events; i++)
		error = ps_spec_parse(options->events[i], &named->specs);
	if (!error)
		error = parse_regions(options, named);
	struct ps_source_options source_options = {
		.freq = options->freq,
		.period = options->period,
		.stack = options->stack,
		.stack_bytes = options->stack_bytes,
		.without_user_stack = !options->with_user_stack,
		.without_kernel_stack = !options->with_kernel_stack,
		.max_stack = options->max_stack,
		.exclude_user = options->exclude_user,
		.exclude_kernel = options->exclude_kernel,
		.exclude_host = options->exclude_host,
		.exclude_guest = options->exclude_guest,
		.is_inherited = options->run || options->pids || options->tids,
		.regions = &named->regions,
	};
	return error ? error : ps_sources_resolve(&named->specs, &source_options, &named->sources);
}

/** The options that decide what samples there are and what is in them: " -g -F 99". The caller frees it; NULL: no memory. */
static char *sampling_words(const struct ps_options *options)
{
	static const char *const stacks[] = {
		[PS_STACK_NONE] = "",
		[PS_STACK_FP] = " -g",
		[PS_STACK_DWARF] = " --call-graph=dwarf",
		[PS_STACK_LBR] = " --call-graph=lbr",
	};
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return NULL;
	fputs(stacks[options->stack], stream);
	fputs(options->with_user_stack ? "" : " --no-user-callchain", stream);
	fputs(options->with_kernel_stack ? "" : " --no-kernel-callchain", stream);
	if (options->max_stack)
		fprintf(stream, " --max-stack %u", (unsigned int)options->max_stack);
	if (options->freq)
		fprintf(stream, " -F %llu", (unsigned long long)options->freq);
	if (options->period)
		fprintf(stream, " -c %llu", (unsigned long long)options->period);
	if (fclose(stream)) {
		free(text);
		return NULL;
	}
	return text;
}

/** --help: with -e a script template, else what the command takes. */
static struct ps_error *print_help(const struct ps_options *options,
				   const struct ps_source_list *sources)
{
	if (!options->nr_events && !options->nr_regions) {
		ps_options_help(stdout);
		return NULL;
	}
	_cleanup_free_ char *words = sampling_words(options);
	return words ? ps_template_write(sources, words, stdout) : &ps_enomem;
}

static void set_log_level(const struct ps_options *options)
{
	int level = options->is_quiet ? PS_LOG_ERROR : PS_LOG_WARNING;
	level += options->verbosity < 2 ? options->verbosity : 2;
	ps_log_set_level(level < PS_LOG_DEBUG ? level : PS_LOG_DEBUG);
}

/** Put the script's `__options__` below @options. */
static struct ps_error *add_script_options(struct ps_options *options)
{
	if (!options->nr_script)
		return NULL;
	_cleanup_free_ char *text = NULL;
	struct ps_error *error = ps_script_find_options(options->script[0], &text);
	if (error || !text)
		return error;
	return ps_options_add_defaults(options, text, options->script[0]);
}

/** Read @argv, and for a run also what the script wants. */
static struct ps_error *read_options(char **argv, struct ps_options *options)
{
	struct ps_error *error = ps_options_parse(argv, options);
	if (error)
		return error;
	if (!options->wants_help)
		error = add_script_options(options);
	if (!error && !options->wants_help)
		error = ps_options_check(options);
	set_log_level(options);
	if (options->is_ring_rounded)
		ps_log(PS_LOG_INFO, "-m: rounded up to %llu pages, a power of two",
		       (unsigned long long)options->ring_bytes / sysconf(_SC_PAGESIZE));
	if (!error && options->nr_regions && !options->is_ordered) {
		ps_log(PS_LOG_WARNING, "-r needs records in the order of their time: --no-order is "
				       "passed over");
		options->is_ordered = true;
	}
	return error;
}

static struct ps_error *run(const struct ps_options *options, int *ret_status)
{
	struct named named = { 0 };
	struct ps_error *error = NULL;
	if (options->nr_events || options->nr_regions)
		error = resolve_events(options, &named);
	if (!error && options->wants_help)
		error = print_help(options, &named.sources);
	else if (!error)
		error = ps_run(options, &named.sources, ret_status);
	ps_source_list_deinit(&named.sources);
	ps_region_spec_list_deinit(&named.regions);
	ps_spec_list_deinit(&named.specs);
	return error;
}

int ps_cli_python(int argc, char **argv)
{
	struct ps_options options = { 0 };
	int status = 0;
	_cleanup_error_ struct ps_error *error = read_options(argv + 1, &options);
	if (!error)
		error = run(&options, &status);
	ps_options_deinit(&options);
	if (!error)
		return status;
	ps_log_error(PS_LOG_ERROR, error);
	return error->kind == PS_ERROR_USAGE ? 2 : 1;
}
