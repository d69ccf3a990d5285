// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/pmu.h>
#include <stdlib.h>
#include <sys/stat.h>

static char folder[] = "/tmp/perfscope-pmus-XXXXXX";

static void write_part(const char *part, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, part);
	for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	FILE *file = fopen(path, "w");
	ASSERT_NOT_NULL(file);
	fprintf(file, "%s\n", text);
	fclose(file);
}

static void remove_folder(void)
{
	char command[sizeof(folder) + 16];
	snprintf(command, sizeof(command), "rm -r %s", folder);
	if (system(command))
		fprintf(stderr, "%s stays\n", folder);
}

/**
 * A folder of PMUs like sysfs' of a processor with a hardware PMU, or of a virtual machine without
 * one.
 */
static void use_pmus(bool has_hardware)
{
	static bool is_made;
	if (!is_made) {
		ASSERT_NOT_NULL(mkdtemp(folder));
		atexit(remove_folder);
		is_made = true;
		write_part("some/cpu/type", "4");
		write_part("some/cpu/format/event", "config:0-7,32-35");
		write_part("some/cpu/format/umask", "config:8-15");
		write_part("some/cpu/format/edge", "config:18");
		write_part("some/cpu/format/offcore_rsp", "config1:0-63");
		write_part("some/cpu/format/odd", "config9:0-3");
		write_part("some/cpu/events/cpu-cycles", "event=0x3c");
		write_part("some/cpu/events/mem-loads", "event=0xcd,umask=0x1,offcore_rsp=3");
		write_part("some/cpu/events/mem-loads.unit", "loads");
		write_part("some/cpu/events/parametric", "event=1,umask=?");
		write_part("some/uncore_imc/type", "23");
		write_part("none/msr/type", "9");
		write_part("none/msr/format/event", "config:0-63");
		write_part("none/msr/events/tsc", "event=0x00");
	}
	char path[64];
	snprintf(path, sizeof(path), "%s/%s", folder, has_hardware ? "some" : "none");
	setenv("PERFSCOPE_PMUS", path, 1);
	setenv("PERFSCOPE_TRACEFS", "/nonexistent", 1);
}

static struct ps_error *resolve(const char *text, struct perf_event_attr *attr)
{
	struct ps_spec_list list = {};
	ASSERT_OK(ps_spec_parse(text, &list));
	*attr = (struct perf_event_attr){};
	struct ps_error *error = ps_pmu_resolve(&list.specs[0], attr);
	ps_spec_list_deinit(&list);
	return error;
}

static void assert_resolves(const char *text, uint32_t type, uint64_t config)
{
	struct perf_event_attr attr;
	ASSERT_OK(resolve(text, &attr));
	ASSERT_EQ(attr.type, type);
	ASSERT_EQ(attr.config, config);
}

TEST(pmu, hardware_and_software_counters_go_by_perfs_names_and_aliases)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
	} rows[] = {
		{ "cycles", 0, 0 },
		{ "cpu-cycles", 0, 0 },
		{ "instructions", 0, 1 },
		{ "cache-references", 0, 2 },
		{ "cache-misses", 0, 3 },
		{ "branches", 0, 4 },
		{ "branch-instructions", 0, 4 },
		{ "branch-misses", 0, 5 },
		{ "bus-cycles", 0, 6 },
		{ "idle-cycles-frontend", 0, 7 },
		{ "stalled-cycles-backend", 0, 8 },
		{ "ref-cycles", 0, 9 },
		{ "cpu-clock", 1, 0 },
		{ "task-clock", 1, 1 },
		{ "faults", 1, 2 },
		{ "page-faults", 1, 2 },
		{ "cs", 1, 3 },
		{ "context-switches", 1, 3 },
		{ "migrations", 1, 4 },
		{ "minor-faults", 1, 5 },
		{ "major-faults", 1, 6 },
		{ "alignment-faults", 1, 7 },
		{ "emulation-faults", 1, 8 },
		{ "dummy", 1, 9 },
		{ "bpf-output", 1, 10 },
		{ "cgroup-switches", 1, 11 },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(rows); i++)
		assert_resolves(rows[i].name, rows[i].type, rows[i].config);
}

TEST(pmu, cache_counters_go_by_all_their_spellings)
{
	static const struct {
		const char *name;
		uint64_t config;
	} rows[] = {
		{ "L1-dcache-loads", 0x000000 },       { "l1d", 0x000000 },
		{ "L1-dcache-load-misses", 0x010000 }, { "l1-d-misses", 0x010000 },
		{ "L1-DATA-Miss-Read", 0x010000 },     { "L1-dcache-store-misses", 0x010100 },
		{ "L1-icache-prefetches", 0x000201 },  { "LLC-loads", 0x000002 },
		{ "L2-write-miss", 0x010102 },	       { "dTLB-speculative-load-refs", 0x000203 },
		{ "itlb-load-misses", 0x010004 },      { "branch-loads", 0x000005 },
		{ "bpc-read-ops", 0x000005 },	       { "node-stores", 0x000106 },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(rows); i++)
		assert_resolves(rows[i].name, PERF_TYPE_HW_CACHE, rows[i].config);
}

TEST(pmu, cache_counters_that_make_no_sense_are_unknown)
{
	static const char *const names[] = {
		"L1-icache-stores", "iTLB-prefetches", "branch-stores", "LLC-",
		"LLC-load-loads",   "LLC-loads-x",     "LLC-miss-miss", "LLCloads",
	};
	use_pmus(false);
	for (size_t i = 0; i < PS_ARRAY_SIZE(names); i++) {
		struct perf_event_attr attr;
		ASSERT_ERROR(resolve(names[i], &attr), PS_ERROR_NOT_FOUND, "no event is called so");
	}
}

TEST(pmu, an_unknown_counter_gets_the_nearest_names)
{
	struct perf_event_attr attr;
	use_pmus(false);
	struct ps_error *error = resolve("cylces", &attr);
	ASSERT_STR_EQ(error->message, "cylces: no event is called so here; did you mean cycles?");
	ps_error_destroy(error);
	error = resolve("profil", &attr);
	ASSERT_STR_EQ(error->message, "profil: no event is called so here; did you mean profile?");
	ps_error_destroy(error);
	ASSERT_ERROR(resolve("CS", &attr), PS_ERROR_NOT_FOUND, "did you mean cs?");
}

TEST(pmu, an_unknown_counter_may_be_a_tracepoint_without_its_system)
{
	struct perf_event_attr attr;
	use_pmus(false);
	write_part("tracing/events/sched/sched_switch/id", "7");
	write_part("tracing/events/sched/sched_wakeup/id", "8");
	char path[64];
	snprintf(path, sizeof(path), "%s/tracing", folder);
	setenv("PERFSCOPE_TRACEFS", path, 1);
	struct ps_error *error = resolve("sched_swich", &attr);
	ASSERT_STR_EQ(error->message,
		      "sched_swich: no event is called so here; did you mean sched:sched_switch?");
	ps_error_destroy(error);
}

TEST(pmu, raw_is_the_processors_own_number)
{
	assert_resolves("r1a8", PERF_TYPE_RAW, 0x1a8);
}

TEST(pmu, terms_are_laid_on_the_bits_that_sysfs_names)
{
	use_pmus(true);
	assert_resolves("cpu/event=0x3c,umask=2/", 4, 0x23c);
	assert_resolves("cpu/event=0xfff,edge/", 4, 0xf000400ff);
	assert_resolves("cpu/cpu-cycles/", 4, 0x3c);
	assert_resolves("cpu/mem-loads,umask=4/", 4, 0x4cd);
	assert_resolves("cpu/config=0x1122334455667788/", 4, 0x1122334455667788);
	assert_resolves("uncore_imc//", 23, 0);
	assert_resolves("uncore_imc/config=5,alias=x/", 23, 5);
	struct perf_event_attr attr;
	ASSERT_OK(resolve("cpu/mem-loads,config2=9/", &attr));
	ASSERT_EQ(attr.config1, 3);
	ASSERT_EQ(attr.config2, 9);
}

TEST(pmu, wrong_terms_are_told)
{
	struct perf_event_attr attr;
	use_pmus(true);
	ASSERT_ERROR(resolve("cpu/umask=256/", &attr), PS_ERROR_USAGE,
		     "umask=256: umask has only 8 bits");
	ASSERT_ERROR(resolve("cpu/umask=x/", &attr), PS_ERROR_USAGE,
		     "umask=x: the value is to be a number");
	ASSERT_ERROR(resolve("cpu/edge=2/", &attr), PS_ERROR_USAGE, "edge has only 1 bits");
	ASSERT_ERROR(resolve("cpu/umsk=1/", &attr), PS_ERROR_NOT_FOUND, "did you mean umask?");
	ASSERT_ERROR(resolve("cpu/mem-load/", &attr), PS_ERROR_NOT_FOUND, "mem-loads");
	ASSERT_ERROR(resolve("cpu/parametric/", &attr), PS_ERROR_USAGE,
		     "cpu/parametric/ needs a value for umask");
	ASSERT_ERROR(resolve("cpu/odd=1/", &attr), PS_ERROR_BAD_DATA, "config9:0-3");
	ASSERT_ERROR(resolve("cpu/..=1/", &attr), PS_ERROR_NOT_FOUND, "no such term");
}

TEST(pmu, an_unknown_pmu_gets_the_nearest_names)
{
	struct perf_event_attr attr;
	use_pmus(true);
	struct ps_error *error = resolve("cpuu/event=1/", &attr);
	ASSERT_STR_EQ(error->message,
		      "cpuu: no PMU or counter is called so here; did you mean cpu?");
	ps_error_destroy(error);
	ASSERT_ERROR(resolve("../event=1/", &attr), PS_ERROR_NOT_FOUND, "no PMU");
}

TEST(pmu, the_processors_pmu_is_left_to_open_where_it_is_missing)
{
	use_pmus(false);
	ASSERT_FALSE(ps_pmu_has_hardware());
	assert_resolves("cpu/event=0x3c,umask=0/", PERF_TYPE_RAW, 0);
	assert_resolves("msr/tsc/", 9, 0);
	assert_resolves("profile", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	struct perf_event_attr attr;
	ASSERT_ERROR(resolve("cpu-clok/alias=x/", &attr), PS_ERROR_NOT_FOUND, "cpu-clock");
	use_pmus(true);
	ASSERT_TRUE(ps_pmu_has_hardware());
	assert_resolves("profile", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
}

TEST(pmu, a_breakpoint_has_address_length_and_access)
{
	struct perf_event_attr attr;
	ASSERT_OK(resolve("mem:0x1000/8:w", &attr));
	ASSERT_EQ(attr.type, PERF_TYPE_BREAKPOINT);
	ASSERT_EQ(attr.config, 0);
	ASSERT_EQ(attr.bp_addr, 0x1000);
	ASSERT_EQ(attr.bp_len, 8);
	ASSERT_EQ(attr.bp_type, 2);
}

TEST(pmu, precision_is_passed_on)
{
	struct perf_event_attr attr;
	ASSERT_OK(resolve("cycles:pp", &attr));
	ASSERT_EQ(attr.precise_ip, 2);
}

// libpfm4 takes this model for the processor's, whatever it is.
__attribute__((constructor)) static void force_model(void)
{
	setenv("LIBPFM_FORCE_PMU", "skx", 1);
}

TEST(pmu, words_of_libpfm4_are_known)
{
	use_pmus(true);
	assert_resolves("INST_RETIRED.ANY_P:u", PERF_TYPE_RAW, 0xc0);
	assert_resolves("skx::INST_RETIRED.ANY_P", PERF_TYPE_RAW, 0xc0);
	assert_resolves("INST_RETIRED.ANY_P/alias=x/", PERF_TYPE_RAW, 0xc0);
	struct perf_event_attr attr;
	ASSERT_ERROR(resolve("INST_RETIRED.ANYP", &attr), PS_ERROR_USAGE,
		     "INST_RETIRED.ANYP: invalid event attribute (libpfm4)");
	ASSERT_ERROR(resolve("INST_RETIERD", &attr), PS_ERROR_NOT_FOUND,
		     "did you mean INST_RETIRED");
}

struct names {
	char *text;
	size_t size;
	FILE *stream;
	size_t nr_left; // end the walk after so many
};

static bool list_name(const struct ps_counter_name *name, void *argument)
{
	struct names *names = argument;
	if (!strcmp(name->kind, "pmu"))
		fprintf(names->stream, "%s=%u:%llx ", name->name, name->attr.type,
			name->attr.config);
	return --names->nr_left;
}

TEST(pmu, the_walk_visits_named_events_and_ends_when_told)
{
	use_pmus(false);
	struct names names = { .nr_left = 1000 };
	names.stream = open_memstream(&names.text, &names.size);
	ASSERT_OK(ps_counter_walk(list_name, &names));
	fclose(names.stream);
	ASSERT_STR_EQ(names.text, "msr/tsc/=9:0 ");
	// 10 hardware, 12 software; 5 caches of 6 or 4 each, 2 of 2; one of the PMU
	ASSERT_EQ(1000 - names.nr_left, 10 + 12 + (4 * 6 + 4 + 2 * 2) + 1);
	free(names.text);
	names = (struct names){ .nr_left = 15 }; // among the caches
	ASSERT_OK(ps_counter_walk(list_name, &names));
	ASSERT_EQ(names.nr_left, 0);
}

TEST(pmu, units_and_scales_in_the_folder_are_no_events)
{
	use_pmus(true);
	struct names names = { .nr_left = 10 + 12 + 32 + 3 };
	names.stream = open_memstream(&names.text, &names.size);
	ASSERT_OK(ps_counter_walk(list_name, &names));
	fclose(names.stream);
	ASSERT_STR_EQ(names.text, "cpu/cpu-cycles/=4:3c cpu/mem-loads/=4:1cd cpu/parametric/=4:1 ");
	free(names.text);
}
