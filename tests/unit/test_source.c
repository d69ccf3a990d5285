// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/sample.h>
#include <perfscope/source.h>
#include <stdlib.h>
#include <sys/stat.h>

static char folder[] = "/tmp/perfscope-tracing-XXXXXX";

static void remove_folder(void)
{
	char command[sizeof(folder) + 16];
	snprintf(command, sizeof(command), "rm -r %s", folder);
	if (system(command))
		fprintf(stderr, "%s stays\n", folder);
}

static void write_file(const char *event, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/events/%s/%s", folder, event, name);
	for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	FILE *file = fopen(path, "w");
	ASSERT_NOT_NULL(file);
	fputs(text, file);
	fclose(file);
}

static void add_tracepoint(const char *event, const char *id)
{
	char format[1024];
	snprintf(format, sizeof(format),
		 "name: %s\nID: %s\nformat:\n"
		 "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		 "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		 "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		 "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		 "\tfield:int value;\toffset:8;\tsize:4;\tsigned:1;\n"
		 "\tfield:__data_loc char[] text;\toffset:12;\tsize:4;\tsigned:0;\n\n"
		 "print fmt: \"value=%%d\", REC->value\n",
		 strchr(event, '/') + 1, id);
	write_file(event, "format", format);
	write_file(event, "id", id);
}

/** A tracefs of five tracepoints; it is made before ps_tracefs_path is first asked. */
static void use_tracefs(void)
{
	static bool is_made;
	if (is_made)
		return;
	is_made = true;
	ASSERT_NOT_NULL(mkdtemp(folder));
	atexit(remove_folder);
	add_tracepoint("sched/sched_switch", "314");
	add_tracepoint("sched/sched_wakeup", "315");
	add_tracepoint("other/sched_wakeup", "316");
	add_tracepoint("syscalls/sys_exit_read", "317");
	add_tracepoint("ftrace/print", "5");
	setenv("PERFSCOPE_TRACEFS", folder, 1);
	setenv("PERFSCOPE_PMUS", "/nonexistent", 1);
	setenv("LIBPFM_FORCE_PMU", "skx", 1);
}

static struct ps_error *resolve(const char *text, struct ps_spec_list *specs,
				const struct ps_source_options *options,
				struct ps_source_list *sources)
{
	use_tracefs();
	*specs = (struct ps_spec_list){};
	*sources = (struct ps_source_list){};
	ASSERT_OK(ps_spec_parse(text, specs));
	return ps_sources_resolve(specs, options, sources);
}

/** The sources of a text; freed by release(). */
struct fixture {
	struct ps_spec_list specs;
	struct ps_source_list list;
};

static struct fixture resolve_all(const char *text)
{
	struct fixture fixture;
	struct ps_source_options options = {};
	ASSERT_OK(resolve(text, &fixture.specs, &options, &fixture.list));
	return fixture;
}

static void release(struct fixture *fixture)
{
	ps_source_list_deinit(&fixture->list);
	ps_spec_list_deinit(&fixture->specs);
}

static void assert_refused(const char *text, enum ps_error_kind kind, const char *message)
{
	struct fixture fixture;
	struct ps_source_options options = {};
	ASSERT_ERROR(resolve(text, &fixture.specs, &options, &fixture.list), kind, message);
	ASSERT_NULL(fixture.list.sources);
	release(&fixture);
}

#define ALONE (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID)

TEST(source, a_tracepoint_samples_each_event_with_its_raw_data)
{
	struct fixture all = resolve_all("sched:sched_switch/value>1/alias=x,cpus=0,2/:u");
	ASSERT_EQ(all.list.nr_sources, 1);
	const struct ps_source *source = all.list.sources[0];
	ASSERT_EQ(source->index, 0);
	ASSERT_STR_EQ(source->name, "sched:sched_switch");
	ASSERT_STR_EQ(source->label, "x");
	ASSERT_STR_EQ(source->handler, "sched__x");
	ASSERT_STR_EQ(source->filter, "value>1");
	ASSERT_STR_EQ(source->cpus, "0,2");
	ASSERT_TRUE(source->is_sampling);
	ASSERT_FALSE(source->is_missing);
	ASSERT_EQ(source->group, 0);
	ASSERT_FALSE(source->is_group_leader);
	ASSERT_EQ(source->raw_size, 16);
	ASSERT_STR_EQ(source->schema->name, "sched:sched_switch");
	ASSERT_EQ(source->attr.type, PERF_TYPE_TRACEPOINT);
	ASSERT_EQ(source->attr.size, sizeof(source->attr));
	ASSERT_EQ(source->attr.config, 314);
	ASSERT_EQ(source->attr.sample_period, 1);
	ASSERT_EQ(source->attr.sample_type, PS_SAMPLE_BASE | PERF_SAMPLE_RAW);
	ASSERT_EQ(source->attr.read_format, ALONE);
	ASSERT_TRUE(source->attr.disabled && source->attr.sample_id_all);
	ASSERT_TRUE(source->attr.exclude_hv);
	ASSERT_FALSE(source->attr.exclude_user);
	ASSERT_TRUE(source->spec == &all.specs.specs[0]);
	release(&all);
}

TEST(source, a_counter_counts_only)
{
	struct fixture all = resolve_all("context-switches");
	const struct ps_source *source = all.list.sources[0];
	ASSERT_STR_EQ(source->name, "context-switches");
	ASSERT_STR_EQ(source->label, "context-switches");
	ASSERT_STR_EQ(source->handler, "context_switches");
	ASSERT_NULL(source->filter);
	ASSERT_FALSE(source->is_sampling);
	ASSERT_EQ(source->raw_size, 0);
	ASSERT_STR_EQ(source->schema->name, "context-switches");
	ASSERT_EQ(source->schema->nr_fields, 0);
	ASSERT_EQ(source->attr.type, PERF_TYPE_SOFTWARE);
	ASSERT_EQ(source->attr.config, PERF_COUNT_SW_CONTEXT_SWITCHES);
	ASSERT_EQ(source->attr.sample_period, 0);
	ASSERT_EQ(source->attr.read_format, ALONE);
	release(&all);
}

TEST(source, globs_expand_in_sorted_order_and_pass_over_ftrace)
{
	struct fixture all = resolve_all("*:*,sched:*");
	static const char *const labels[] = { "other:sched_wakeup",   "sched:sched_switch",
					      "sched:sched_wakeup",   "syscalls:sys_exit_read",
					      "sched:sched_switch#2", "sched:sched_wakeup#2" };
	ASSERT_EQ(all.list.nr_sources, 6);
	for (size_t i = 0; i < 6; i++) {
		ASSERT_STR_EQ(all.list.sources[i]->label, labels[i]);
		ASSERT_EQ(all.list.sources[i]->index, i);
	}
	ASSERT_STR_EQ(all.list.sources[4]->name, "sched:sched_switch");
	ASSERT_STR_EQ(all.list.sources[4]->handler, "sched__sched_switch");
	release(&all);
}

TEST(source, one_event_may_stand_several_times_with_filters_of_their_own)
{
	struct fixture all = resolve_all("sched:sched_switch/value>1/alias=a/,"
					 "sched:sched_switch/value<1/alias=b/,"
					 "sched:sched_wakeup//alias=a/");
	ASSERT_EQ(all.list.nr_sources, 3);
	ASSERT_STR_EQ(all.list.sources[0]->filter, "value>1");
	ASSERT_STR_EQ(all.list.sources[1]->filter, "value<1");
	ASSERT_STR_EQ(all.list.sources[1]->handler, "sched__b");
	ASSERT_TRUE(all.list.sources[0]->schema == all.list.sources[1]->schema);
	// One alias of two events: one handler, two labels.
	ASSERT_STR_EQ(all.list.sources[2]->handler, "sched__a");
	ASSERT_STR_EQ(all.list.sources[2]->label, "a#2");
	release(&all);
}

TEST(source, labels_of_counters_show_modifiers)
{
	struct fixture all = resolve_all("cycles:u,cycles:k,cycles:u,cycles");
	ASSERT_STR_EQ(all.list.sources[0]->label, "cycles:u");
	ASSERT_STR_EQ(all.list.sources[1]->label, "cycles:k");
	ASSERT_STR_EQ(all.list.sources[2]->label, "cycles:u#2");
	ASSERT_STR_EQ(all.list.sources[3]->label, "cycles");
	ASSERT_STR_EQ(all.list.sources[0]->name, "cycles");
	ASSERT_TRUE(all.list.sources[0]->attr.exclude_kernel);
	ASSERT_TRUE(all.list.sources[1]->attr.exclude_user);
	release(&all);
}

TEST(source, members_of_a_group_are_read_together)
{
	struct fixture all =
		resolve_all("task-clock,{task-clock,faults,sched:sched_switch},{cs,cs}");
	static const unsigned int groups[] = { 0, 1, 1, 1, 2, 2 };
	static const bool leaders[] = { false, true, false, false, true, false };
	ASSERT_EQ(all.list.nr_sources, 6);
	for (size_t i = 0; i < 6; i++) {
		const struct ps_source *source = all.list.sources[i];
		ASSERT_EQ(source->group, groups[i]);
		ASSERT_EQ(source->is_group_leader, leaders[i]);
		ASSERT_EQ(source->attr.read_format, ALONE | (groups[i] ? PERF_FORMAT_GROUP : 0));
	}
	ASSERT_EQ(all.list.sources[3]->attr.sample_type,
		  PS_SAMPLE_BASE | PERF_SAMPLE_RAW | PERF_SAMPLE_READ);
	ASSERT_EQ(all.list.sources[1]->attr.sample_type, PS_SAMPLE_BASE);
	release(&all);
}

TEST(source, names_and_handlers_of_pmu_raw_and_breakpoint)
{
	struct fixture all = resolve_all("cpu/event=0x3c,umask=0,alias=a/,cpu/event=1,edge/u,"
					 "r1a8,mem:4096/8:w/alias=b/:u,mem:0x20:x");
	static const char *const rows[][3] = {
		{ "cpu/event=0x3c,umask=0/", "a", "a" },
		{ "cpu/event=1,edge/", "cpu/event=1,edge/u", "cpu_event_1_edge" },
		{ "r1a8", "r1a8", "r1a8" },
		{ "mem:0x1000/8:w", "b", "b" },
		{ "mem:0x20/8:x", "mem:0x20/8:x", "mem_0x20_8_x" },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(rows); i++) {
		ASSERT_STR_EQ(all.list.sources[i]->name, rows[i][0]);
		ASSERT_STR_EQ(all.list.sources[i]->label, rows[i][1]);
		ASSERT_STR_EQ(all.list.sources[i]->handler, rows[i][2]);
	}
	const struct perf_event_attr *attr = &all.list.sources[3]->attr;
	ASSERT_EQ(attr->type, PERF_TYPE_BREAKPOINT);
	ASSERT_EQ(attr->bp_addr, 4096);
	ASSERT_EQ(attr->bp_len, 8);
	ASSERT_EQ(attr->bp_type, 2);
	ASSERT_EQ(attr->sample_period, 0);
	release(&all);
}

TEST(source, options_exclude_of_every_event)
{
	struct fixture all;
	struct ps_source_options options = { .exclude_kernel = true, .exclude_guest = true };
	ASSERT_OK(resolve("sched:sched_switch,cs:k", &all.specs, &options, &all.list));
	for (size_t i = 0; i < 2; i++) {
		ASSERT_TRUE(all.list.sources[i]->attr.exclude_guest);
		ASSERT_FALSE(all.list.sources[i]->attr.exclude_host);
	}
	ASSERT_TRUE(all.list.sources[1]->attr.exclude_kernel);
	ASSERT_FALSE(all.list.sources[0]->attr.exclude_user);
	ASSERT_TRUE(all.list.sources[1]->attr.exclude_user);
	release(&all);
}

TEST(source, a_tracepoint_in_the_kernel_is_not_without_the_kernel)
{
	struct fixture all = resolve_all("sched:sched_switch:u,syscalls:sys_exit_read:u");
	ASSERT_FALSE(all.list.sources[0]->attr.exclude_kernel);
	ASSERT_TRUE(all.list.sources[1]->attr.exclude_kernel);
	release(&all);
}

TEST(source, unknown_names_get_the_nearest)
{
	assert_refused("cs,sched:sched_swich", PS_ERROR_NOT_FOUND, "sched:sched_switch?");
	assert_refused("shed:sched_switch", PS_ERROR_NOT_FOUND, "sched:sched_switch");
	assert_refused("sched_wakeup", PS_ERROR_NOT_FOUND, "did you mean other:sched_wakeup?");
	assert_refused("cs,cylces", PS_ERROR_NOT_FOUND, "cycles");
	assert_refused("ftrac*:*", PS_ERROR_NOT_FOUND, "no tracepoint that can be opened matches");
	assert_refused("ftrace:*", PS_ERROR_NOT_FOUND, "no tracepoint that can be opened matches");
}

TEST(source, a_name_with_unit_mask_of_libpfm4_is_a_counter)
{
	struct fixture all = resolve_all("INST_RETIRED:ANY_P:u");
	ASSERT_STR_EQ(all.list.sources[0]->name, "INST_RETIRED:ANY_P");
	ASSERT_STR_EQ(all.list.sources[0]->handler, "INST_RETIRED_ANY_P");
	ASSERT_EQ(all.list.sources[0]->attr.type, PERF_TYPE_RAW);
	ASSERT_EQ(all.list.sources[0]->attr.config, 0xc0);
	ASSERT_FALSE(all.list.sources[0]->is_sampling);
	release(&all);
	assert_refused("INST_RETIRED:ANYP", PS_ERROR_USAGE, "invalid event attribute");
}

TEST(source, counter_samples_by_its_frequency_or_period)
{
	struct fixture all =
		resolve_all("cpu-clock/freq=97/,page-faults/period=1/,page-faults/period=7/,"
			    "cpu-clock/period=5000/,task-clock,profile");
	struct ps_source **sources = all.list.sources;
	ASSERT_EQ(all.list.nr_sources, 6);
	ASSERT_TRUE(sources[0]->attr.freq);
	ASSERT_EQ(sources[0]->attr.sample_freq, 97);
	ASSERT_TRUE(sources[0]->attr.sample_type & PERF_SAMPLE_IP);
	ASSERT_FALSE(sources[1]->attr.freq);
	ASSERT_EQ(sources[1]->attr.sample_period, 1);
	ASSERT_TRUE(sources[1]->attr.sample_type & PERF_SAMPLE_PERIOD);
	// With this part the kernel would make a sample of each fault.
	ASSERT_EQ(sources[2]->attr.sample_period, 7);
	ASSERT_FALSE(sources[2]->attr.sample_type & PERF_SAMPLE_PERIOD);
	ASSERT_TRUE(sources[3]->attr.sample_type & PERF_SAMPLE_PERIOD);
	ASSERT_FALSE(sources[4]->is_sampling);
	ASSERT_TRUE(sources[5]->is_sampling);
	ASSERT_EQ(sources[5]->attr.sample_freq, 997);
	release(&all);
}

TEST(source, parts_of_samples_need_samples)
{
	assert_refused("cpu-clock/ip/", PS_ERROR_USAGE,
		       "cpu-clock/ip/: a counter that only counts has no samples");
}

TEST(source, stacks_are_of_events_that_make_samples)
{
	struct fixture all = resolve_all("sched:sched_switch//max-stack=7/,cpu-clock/freq=9,stack/,"
					 "sched:sched_switch");
	struct ps_source **sources = all.list.sources;
	ASSERT_TRUE(sources[0]->attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	ASSERT_EQ(sources[0]->attr.sample_max_stack, 7);
	ASSERT_TRUE(sources[1]->attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	ASSERT_EQ(sources[1]->attr.sample_max_stack, 0);
	ASSERT_FALSE(sources[2]->attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	release(&all);
	assert_refused("cpu-clock/stack/", PS_ERROR_USAGE,
		       "a counter that only counts has no samples");
}

TEST(source, stacks_are_copied_in_the_size_asked_for)
{
	struct ps_source_options options = { .stack = PS_STACK_DWARF };
	struct fixture all;
	ASSERT_OK(resolve("cpu-clock/freq=9/", &all.specs, &options, &all.list));
	ASSERT_EQ(all.list.sources[0]->attr.sample_stack_user, 8192);
	release(&all);
	options.stack_bytes = 1024;
	ASSERT_OK(resolve("cpu-clock/freq=9/,cpu-clock/freq=9,stack-user/", &all.specs, &options,
			  &all.list));
	ASSERT_EQ(all.list.sources[0]->attr.sample_stack_user, 1024);
	ASSERT_EQ(all.list.sources[1]->attr.sample_stack_user, 8192);
	release(&all);
}

TEST(source, call_stacks_of_the_pmu_are_its_last_calls)
{
	const uint64_t calls = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK;
	struct fixture all;
	struct ps_source_options options = { .stack = PS_STACK_LBR };
	ASSERT_OK(resolve("cycles/freq=9/", &all.specs, &options, &all.list));
	const struct perf_event_attr *attr = &all.list.sources[0]->attr;
	ASSERT_EQ(attr->branch_sample_type, calls);
	ASSERT_TRUE(attr->sample_type & PERF_SAMPLE_BRANCH_STACK);
	ASSERT_TRUE(attr->sample_type & PERF_SAMPLE_CALLCHAIN);
	release(&all);
	options.without_user_stack = true;
	ASSERT_OK(resolve("cycles/freq=9/", &all.specs, &options, &all.list));
	ASSERT_FALSE(all.list.sources[0]->attr.sample_type & PERF_SAMPLE_BRANCH_STACK);
	ASSERT_TRUE(all.list.sources[0]->attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	release(&all);
}

TEST(source, beside_a_pmu_with_calls_the_kernels_events_follow_frame_pointers)
{
	struct fixture all;
	struct ps_source_options options = { .stack = PS_STACK_LBR };
	ASSERT_OK(resolve("cpu-clock/freq=9/,cycles/freq=9/", &all.specs, &options, &all.list));
	const struct perf_event_attr *clock = &all.list.sources[0]->attr;
	ASSERT_FALSE(clock->sample_type & PERF_SAMPLE_BRANCH_STACK);
	ASSERT_EQ(clock->branch_sample_type, 0);
	ASSERT_TRUE(clock->sample_type & PERF_SAMPLE_CALLCHAIN);
	ASSERT_TRUE(all.list.sources[1]->attr.sample_type & PERF_SAMPLE_BRANCH_STACK);
	release(&all);
	// Alone they are refused when they are opened.
	ASSERT_OK(resolve("cpu-clock/freq=9/", &all.specs, &options, &all.list));
	ASSERT_TRUE(all.list.sources[0]->attr.sample_type & PERF_SAMPLE_BRANCH_STACK);
	release(&all);
}

TEST(source, a_sample_has_one_kind_of_branches)
{
	struct fixture all;
	struct ps_source_options options = { .stack = PS_STACK_LBR };
	ASSERT_ERROR(resolve("cycles/freq=9,branch/", &all.specs, &options, &all.list),
		     PS_ERROR_USAGE,
		     "cycles/freq=9,branch/: a sample has the last branches or those of its call "
		     "stack, not both (leave out branch or --call-graph=lbr)");
	ps_spec_list_deinit(&all.specs);
}
