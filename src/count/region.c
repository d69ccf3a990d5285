// SPDX-License-Identifier: MIT
#include <perfscope/region.h>

#include <inttypes.h>
#include <perfscope/region_text.h>
#include <perfscope/regions.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static __thread char last_error[256];

/** Keep the message of @error, which is taken over; -1, or 0 where it is NULL. */
static int keep_error(struct ps_error *error)
{
	if (!error)
		return 0;
	snprintf(last_error, sizeof(last_error), "%s", error->message);
	ps_error_destroy(error);
	return -1;
}

/** Before main and before the constructors of C++, which may have regions. */
__attribute__((constructor(101))) static void attach(void)
{
	ps_regions_attach_environment();
}

/** NULL: the error is kept. */
static struct ps_region *find(const char *name)
{
	struct ps_region *region = NULL;
	keep_error(ps_region_find_quickly(name, &region));
	return region;
}

EXPORTED void perfscope_region_begin_active(const char *name)
{
	struct ps_region *region = find(name);
	if (PS_LIKELY(region))
		ps_region_enter(region);
}

EXPORTED void perfscope_region_end_active(const char *name)
{
	struct ps_region *region = find(name);
	if (PS_LIKELY(region))
		ps_region_leave(region);
}

/** As a program does it: the end looks for the name before it reads. */
static bool pass_empty(struct ps_region *region, void *name)
{
	perfscope_region_begin(name);
	perfscope_region_end(name);
	return true;
}

/** Where that fails, the cost stays unknown. */
static struct ps_error *measure_overhead(void)
{
	static char name[] = "(empty)";
	struct ps_region *region;
	struct ps_error *error = ps_region_find(name, &region);
	if (!error)
		ps_regions_calibrate(region, pass_empty, name);
	return error;
}

EXPORTED int perfscope_region_configure(const char *events, unsigned int flags)
{
	struct ps_counter counters[PS_MAX_COUNTERS];
	size_t nr;
	struct ps_error *error = ps_counters_parse(events ? events : "", counters, &nr);
	if (error)
		return keep_error(error);
	for (size_t i = 0; flags & PERFSCOPE_REGION_USER_ONLY && i < nr; i++)
		counters[i].exclude = PS_EXCLUDE_KERNEL | PS_EXCLUDE_HV;
	unsigned int group_flags = flags & PERFSCOPE_REGION_STRICT ? PS_GROUP_STRICT : 0;
	group_flags |= flags & PERFSCOPE_REGION_INHERIT ? PS_GROUP_INHERIT : 0;
	error = ps_regions_configure(counters, nr, group_flags, flags & PERFSCOPE_REGION_SUBTRACT);
	return keep_error(error ? error : measure_overhead());
}

EXPORTED const char *perfscope_region_error(void)
{
	return last_error;
}

static struct perfscope_region_value make_value(const struct ps_region_sums *sums, size_t index,
						const char *name)
{
	const struct ps_counter_reading *counted = &sums->counted[index];
	struct perfscope_region_value value = { .name = name, .coverage = 1 };
	if (sums->invalid >> index & 1) {
		value.coverage = 0;
		return value;
	}
	value.is_valid = 1;
	value.value = counted->value;
	value.scaled = counted->value;
	if (counted->running_ns < counted->enabled_ns) {
		value.coverage = (double)counted->running_ns / counted->enabled_ns;
		value.scaled /= value.coverage;
	}
	return value;
}

static struct perfscope_region_total make_totals(const struct ps_regions_reading *reading,
						 const struct ps_region_sums *sums)
{
	struct perfscope_region_total totals = {
		.calls = sums->calls,
		.incomplete = sums->incomplete,
		.seconds = sums->elapsed_ns / 1e9,
		.nr_values = reading->nr_counters,
	};
	for (size_t i = 0; i < totals.nr_values; i++)
		totals.values[i] = make_value(sums, i, reading->counters[i].name);
	return totals;
}

EXPORTED int perfscope_region_totals(const char *name, struct perfscope_region_total *ret)
{
	_cleanup_regions_reading_ struct ps_regions_reading reading;
	struct ps_error *error = ps_regions_read(false, &reading);
	name = name ? name : "";
	for (size_t i = 0; i < reading.nr; i++) {
		const struct ps_region_total *total = &reading.totals[i];
		if (strncmp(total->name, name, PS_REGION_NAME_SIZE - 1))
			continue;
		*ret = make_totals(&reading, &total->sums);
		ret->open = total->open;
		return 0;
	}
	return keep_error(
		error ? error
		      : ps_error_format(PS_ERROR_NOT_FOUND, "no region '%s' was passed", name));
}

EXPORTED int perfscope_region_overhead(struct perfscope_region_total *ret)
{
	_cleanup_regions_reading_ struct ps_regions_reading reading;
	struct ps_error *error = ps_regions_read(false, &reading);
	if (!error && !reading.cost.calls)
		error = ps_error_format(PS_ERROR_NOT_FOUND, "the cost of a pass was not measured");
	if (error)
		return keep_error(error);
	*ret = make_totals(&reading, &reading.cost);
	return 0;
}

EXPORTED int perfscope_region_reset(void)
{
	return keep_error(ps_regions_reset());
}

/** The table of all regions. False: no memory. */
static bool write_table(FILE *file, const struct ps_regions_reading *reading)
{
	_cleanup_text_table_ struct ps_text_table table = { .nr_columns =
								    3 + reading->nr_counters };
	ps_text_table_add(&table, "region");
	ps_text_table_add(&table, "calls");
	ps_text_table_add(&table, "seconds");
	for (size_t i = 0; i < reading->nr_counters; i++)
		ps_text_table_add(&table, "%s", reading->counters[i].name);
	for (size_t i = 0; i < reading->nr; i++) {
		const struct ps_region_sums *sums = &reading->totals[i].sums;
		ps_text_table_add(&table, "%s", reading->totals[i].name);
		ps_text_table_add(&table, "%" PRIu64, sums->calls);
		ps_text_table_add(&table, "%.6f", sums->elapsed_ns / 1e9);
		for (size_t c = 0; c < reading->nr_counters; c++)
			ps_region_text_add_value(&table, &sums->counted[c],
						 !(sums->invalid >> c & 1));
	}
	return ps_text_table_write(&table, file);
}

/** What the table cannot show of one region. */
static void write_notes(FILE *file, const struct ps_regions_reading *reading,
			const struct ps_region_total *total)
{
	struct perfscope_region_total totals = make_totals(reading, &total->sums);
	char name[PS_REGION_NAME_SIZE];
	memcpy(name, total->name, sizeof(name));
	ps_text_make_plain(name);
	if (totals.incomplete)
		fprintf(file, "%s: %llu pass%s incomplete\n", name,
			(unsigned long long)totals.incomplete, totals.incomplete == 1 ? "" : "es");
	if (total->open)
		fprintf(file, "%s: %" PRIu64 " pass%s open\n", name, total->open,
			total->open == 1 ? "" : "es");
	for (size_t i = 0; i < totals.nr_values; i++) {
		const struct perfscope_region_value *value = &totals.values[i];
		if (value->is_valid && value->coverage < 1)
			fprintf(file, "%s: %s counted %.0f %% of the time, and is an estimate\n",
				name, value->name, 100 * value->coverage);
	}
}

static void write_overhead(FILE *file, const struct ps_regions_reading *reading)
{
	const struct ps_region_sums *cost = &reading->cost;
	const char *between = "an empty pass counts ";
	for (size_t i = 0; cost->calls && i < reading->nr_counters; i++) {
		if (cost->invalid >> i & 1)
			continue;
		fprintf(file, "%s%" PRIu64 " %s", between, cost->counted[i].value,
			reading->counters[i].name);
		between = ", ";
	}
	if (*between == ',')
		fputs(reading->is_cost_subtracted ? "; taken off above\n" : "\n", file);
}

/** What the table cannot show of the whole. */
static void write_rest(FILE *file, const struct ps_regions_reading *reading)
{
	for (size_t i = 0; i < reading->nr_counters; i++) {
		const char *reason = ps_regions_reading_reason(reading, i);
		if (reason)
			fprintf(file, "%s: %s\n", reading->counters[i].name, reason);
	}
	if (reading->nr_groups > 1)
		fprintf(file, PS_REGION_TEXT_SPLIT "\n", reading->nr_groups);
	write_overhead(file, reading);
	if (reading->nr_missed)
		fprintf(file,
			"no room for a region in a thread, %llu times: its passes are missing\n",
			(unsigned long long)reading->nr_missed);
}

EXPORTED int perfscope_region_report(FILE *file)
{
	_cleanup_regions_reading_ struct ps_regions_reading reading;
	struct ps_error *error = ps_regions_read(false, &reading);
	if (error)
		return keep_error(error);
	if (!reading.setup)
		fprintf(file, "no region is counted: call perfscope_region_configure() first\n");
	else if (!write_table(file, &reading))
		return keep_error(&ps_enomem);
	for (size_t i = 0; i < reading.nr; i++)
		write_notes(file, &reading, &reading.totals[i]);
	write_rest(file, &reading);
	if (ferror(file))
		return keep_error(ps_error_format(PS_ERROR_OS, "the report was not written"));
	return 0;
}
