// SPDX-License-Identifier: MIT
#include <perfscope/summary.h>

#include <inttypes.h>
#include <perfscope/output.h>
#include <perfscope/region_table.h>
#include <perfscope/region_text.h>
#include <string.h>

/** Both kinds of regions: those between two events, and those of programs. */
struct regions {
	const struct ps_region_spec_list *specs;
	const struct ps_boundaries *boundaries; // NULL: no -r
	size_t nr_boundary_counters;
	struct ps_count boundary_count;	   // how long these counted
	const struct ps_counter *counters; // of programs' regions
	size_t nr_counters;
	const struct ps_region_total *totals;
	size_t nr_totals;
	const char **names; // of the columns behind the seconds: each counter once, owned
	size_t nr_names;
};

static const char *boundary_counter(const struct regions *regions, size_t index)
{
	return ps_boundaries_counter(regions->boundaries, index)->label;
}

static void add_name(struct regions *regions, const char *name)
{
	for (size_t i = 0; i < regions->nr_names; i++) {
		if (!strcmp(regions->names[i], name))
			return;
	}
	regions->names[regions->nr_names++] = name;
}

static bool add_names(struct regions *regions)
{
	size_t nr = regions->nr_boundary_counters + regions->nr_counters;
	regions->names = calloc(nr + 1, sizeof(*regions->names));
	if (!regions->names)
		return false;
	for (size_t i = 0; i < regions->nr_boundary_counters; i++)
		add_name(regions, boundary_counter(regions, i));
	for (size_t i = 0; i < regions->nr_counters; i++)
		add_name(regions, regions->counters[i].name);
	return true;
}

static void add_title(struct ps_text_table *table, const struct regions *regions)
{
	static const char *const titles[] = { "REGION", "CALLS", "INCOMPLETE", "SECONDS" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(titles); i++)
		ps_text_table_add(table, "%s", titles[i]);
	for (size_t i = 0; i < regions->nr_names; i++)
		ps_text_table_add(table, "%s", regions->names[i]);
}

static void add_head(struct ps_text_table *table, uint64_t calls, uint64_t incomplete,
		     uint64_t elapsed_ns)
{
	ps_text_table_add(table, "%" PRIu64, calls);
	ps_text_table_add(table, "%" PRIu64, incomplete);
	ps_text_table_add(table, "%.6f", elapsed_ns / 1e9);
}

/** What the region between two events @sums counted of @name. */
static void add_boundary_value(struct ps_text_table *table, const struct regions *regions,
			       const struct ps_pass_sums *sums, const char *name)
{
	struct ps_counter_reading counted = {
		.enabled_ns = regions->boundary_count.enabled_ns,
		.running_ns = regions->boundary_count.running_ns,
	};
	bool is_valid = false;
	for (size_t i = 0; i < regions->nr_boundary_counters; i++) {
		if (strcmp(boundary_counter(regions, i), name))
			continue;
		counted.value = sums->counts[PS_PASS_NR_TIMES + i];
		is_valid = !ps_boundaries_counter(regions->boundaries, i)->is_missing &&
			   !(sums->invalid >> i & 1);
	}
	ps_region_text_add_value(table, &counted, is_valid);
}

static void add_boundary_row(struct ps_text_table *table, const struct regions *regions,
			     size_t region)
{
	const struct ps_pass_sums *sums = ps_boundaries_sums(regions->boundaries, region);
	ps_text_table_add(table, "%s", regions->specs->regions[region].name);
	add_head(table, sums->calls, sums->incomplete, sums->elapsed_ns);
	for (size_t i = 0; i < regions->nr_names; i++)
		add_boundary_value(table, regions, sums, regions->names[i]);
}

static bool is_of_option(const struct regions *regions, const char *name)
{
	for (size_t i = 0; regions->boundaries && i < regions->specs->nr_regions; i++) {
		if (!strcmp(regions->specs->regions[i].name, name))
			return true;
	}
	return false;
}

static void add_program_value(struct ps_text_table *table, const struct regions *regions,
			      const struct ps_region_sums *sums, const char *name)
{
	struct ps_counter_reading counted = { 0 };
	bool is_valid = false;
	for (size_t i = 0; i < regions->nr_counters; i++) {
		if (strcmp(regions->counters[i].name, name))
			continue;
		counted = sums->counted[i];
		is_valid = !(sums->invalid >> i & 1);
	}
	ps_region_text_add_value(table, &counted, is_valid);
}

static void add_program_row(struct ps_text_table *table, const struct regions *regions,
			    const struct ps_region_total *total)
{
	const struct ps_region_sums *sums = &total->sums;
	ps_text_table_add(table, "%s%s", total->name,
			  is_of_option(regions, total->name) ? "#2" : "");
	add_head(table, sums->calls, sums->incomplete, sums->elapsed_ns);
	for (size_t i = 0; i < regions->nr_names; i++)
		add_program_value(table, regions, sums, regions->names[i]);
}

/** The whole table, into @file. False: no memory. */
static bool write_regions(const struct regions *regions, FILE *file)
{
	_cleanup_text_table_ struct ps_text_table table = { .nr_columns = 4 + regions->nr_names };
	add_title(&table, regions);
	for (size_t i = 0; regions->boundaries && i < regions->specs->nr_regions; i++)
		add_boundary_row(&table, regions, i);
	for (size_t i = 0; i < regions->nr_totals; i++)
		add_program_row(&table, regions, &regions->totals[i]);
	return ps_text_table_write(&table, file);
}

static struct ps_error *print_regions(struct regions *regions, bool *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	if (!file)
		return &ps_enomem;
	bool is_whole = add_names(regions) && write_regions(regions, file);
	free(regions->names);
	if (fclose(file) || !is_whole)
		return &ps_enomem;
	return ps_output_write(text, size, ret);
}

struct ps_error *ps_summary_print_regions(struct ps_region_table *table,
					  const struct ps_region_spec_list *specs,
					  const struct ps_boundaries *boundaries, bool *ret)
{
	struct regions regions = { .specs = specs, .boundaries = boundaries };
	_cleanup_free_ struct ps_region_total *totals = NULL;
	*ret = true;
	struct ps_error *error =
		table ? ps_region_table_read(table, false, true, &totals, &regions.nr_totals)
		      : NULL;
	if (error || (!boundaries && !regions.nr_totals))
		return error;
	regions.totals = totals;
	if (boundaries)
		ps_boundaries_count(boundaries, &regions.boundary_count);
	if (boundaries)
		regions.nr_boundary_counters = ps_boundaries_nr_counters(boundaries);
	if (regions.nr_totals)
		regions.counters = ps_region_table_counters(table, &regions.nr_counters);
	return print_regions(&regions, ret);
}
