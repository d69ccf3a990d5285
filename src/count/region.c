// SPDX-License-Identifier: MIT
#include <perfscope/region.h>

#include <inttypes.h>
#include <perfscope/region_text.h>
#include <perfscope/regions.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static __thread char last_error[256];
static bool is_overhead_subtracted; // as configure was told

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

static struct ps_error *measure_overhead(void)
{
	static char name[] = "(empty)";
	struct ps_region *region;
	struct ps_error *error = ps_region_find(name, &region);
	if (!error && !ps_regions_calibrate(region, pass_empty, name))
		error = &ps_enomem;
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
	error = ps_regions_configure(counters, nr, group_flags);
	if (error)
		return keep_error(error);
	is_overhead_subtracted = flags & PERFSCOPE_REGION_SUBTRACT;
	return keep_error(measure_overhead());
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

static struct perfscope_region_total make_totals(const struct ps_region_sums *sums)
{
	struct perfscope_region_total totals = {
		.calls = sums->calls,
		.incomplete = sums->incomplete,
		.seconds = sums->elapsed_ns / 1e9,
	};
	const struct ps_counter *counters = ps_regions_counters(&totals.nr_values);
	for (size_t i = 0; i < totals.nr_values; i++)
		totals.values[i] = make_value(sums, i, counters[i].name);
	return totals;
}

static void take_off_overhead(struct ps_region_sums *sums)
{
	struct ps_region_sums cost;
	ps_regions_overhead(&cost);
	if (is_overhead_subtracted)
		ps_regions_take_off(sums, &cost);
}

EXPORTED int perfscope_region_totals(const char *name, struct perfscope_region_total *ret)
{
	_cleanup_free_ struct ps_region_total *totals = NULL;
	size_t nr;
	struct ps_error *error = ps_regions_read(false, &totals, &nr);
	name = name ? name : "";
	for (size_t i = 0; !error && i < nr; i++) {
		if (strncmp(totals[i].name, name, PS_REGION_NAME_SIZE - 1))
			continue;
		take_off_overhead(&totals[i].sums);
		*ret = make_totals(&totals[i].sums);
		ret->open = totals[i].open;
		return 0;
	}
	return keep_error(
		error ? error
		      : ps_error_format(PS_ERROR_NOT_FOUND, "no region '%s' was passed", name));
}

EXPORTED int perfscope_region_overhead(struct perfscope_region_total *ret)
{
	struct ps_region_sums cost;
	ps_regions_overhead(&cost);
	if (!cost.calls)
		return keep_error(
			ps_error_format(PS_ERROR_NOT_FOUND, "the cost of a pass was not measured"));
	*ret = make_totals(&cost);
	return 0;
}

EXPORTED int perfscope_region_reset(void)
{
	return keep_error(ps_regions_reset());
}

/** The table of the @nr @totals. False: no memory. */
static bool write_table(FILE *file, const struct ps_region_total *totals, size_t nr)
{
	size_t nr_counters;
	const struct ps_counter *counters = ps_regions_counters(&nr_counters);
	_cleanup_text_table_ struct ps_text_table table = { .nr_columns = 3 + nr_counters };
	ps_text_table_add(&table, "region");
	ps_text_table_add(&table, "calls");
	ps_text_table_add(&table, "seconds");
	for (size_t i = 0; i < nr_counters; i++)
		ps_text_table_add(&table, "%s", counters[i].name);
	for (size_t i = 0; i < nr; i++) {
		ps_text_table_add(&table, "%s", totals[i].name);
		ps_text_table_add(&table, "%" PRIu64, totals[i].sums.calls);
		ps_text_table_add(&table, "%.6f", totals[i].sums.elapsed_ns / 1e9);
		for (size_t c = 0; c < nr_counters; c++)
			ps_region_text_add_value(&table, &totals[i].sums.counted[c],
						 !(totals[i].sums.invalid >> c & 1));
	}
	return ps_text_table_write(&table, file);
}

/** What the table above cannot show. */
static void write_notes(FILE *file, const struct ps_region_total *total)
{
	struct perfscope_region_total totals = make_totals(&total->sums);
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

static struct ps_error *not_written(void)
{
	return ps_error_format(PS_ERROR_OS, "the report was not written");
}

static void write_overhead(FILE *file)
{
	struct ps_region_sums cost;
	size_t nr;
	const struct ps_counter *counters = ps_regions_counters(&nr);
	ps_regions_overhead(&cost);
	const char *between = "an empty pass counts ";
	for (size_t i = 0; cost.calls && i < nr; i++) {
		if (cost.invalid >> i & 1)
			continue;
		fprintf(file, "%s%" PRIu64 " %s", between, cost.counted[i].value, counters[i].name);
		between = ", ";
	}
	if (*between == ',')
		fputs(is_overhead_subtracted ? "; taken off above\n" : "\n", file);
}

EXPORTED int perfscope_region_report(FILE *file)
{
	_cleanup_free_ struct ps_region_total *totals = NULL;
	size_t nr, nr_counters;
	struct ps_error *error = ps_regions_read(false, &totals, &nr);
	if (error)
		return keep_error(error);
	if (!ps_regions_are_active()) {
		fprintf(file, "no region is counted: call perfscope_region_configure() first\n");
		return ferror(file) ? keep_error(not_written()) : 0;
	}
	for (size_t i = 0; i < nr; i++)
		take_off_overhead(&totals[i].sums);
	if (!write_table(file, totals, nr))
		return keep_error(&ps_enomem);
	const struct ps_counter *counters = ps_regions_counters(&nr_counters);
	for (size_t i = 0; i < nr; i++)
		write_notes(file, &totals[i]);
	for (size_t i = 0; i < nr_counters; i++) {
		if (ps_regions_reason(i))
			fprintf(file, "%s: %s\n", counters[i].name, ps_regions_reason(i));
	}
	if (ps_regions_nr_groups() > 1)
		fprintf(file, PS_REGION_TEXT_SPLIT "\n", ps_regions_nr_groups());
	write_overhead(file);
	if (ps_regions_nr_missed())
		fprintf(file,
			"no room for a region in a thread, %llu times: its passes are missing\n",
			(unsigned long long)ps_regions_nr_missed());
	return ferror(file) ? keep_error(not_written()) : 0;
}
