// SPDX-License-Identifier: MIT
#include <perfscope/summary.h>

#include <inttypes.h>
#include <perfscope/output.h>
#include <perfscope/region_table.h>
#include <string.h>

#define NAME_WIDTH 24
#define NUMBER_WIDTH 14

/** How wide the column of @counter is. */
static int width_of(const struct ps_counter *counter)
{
	size_t length = strlen(counter->name);
	return length > NUMBER_WIDTH ? (int)length : NUMBER_WIDTH;
}

static void write_title(FILE *file, const struct ps_counter *counters, size_t nr)
{
	fprintf(file, "%-*s %*s %10s %12s", NAME_WIDTH, "REGION", NUMBER_WIDTH, "CALLS",
		"INCOMPLETE", "SECONDS");
	for (size_t i = 0; i < nr; i++)
		fprintf(file, " %*s", width_of(&counters[i]), counters[i].name);
	putc('\n', file);
}

/** A program chose @name: nothing in it shall reach a terminal as a command. */
static void write_name(FILE *file, const char *name)
{
	int length = 0;
	for (; name[length]; length++)
		putc((unsigned char)name[length] < ' ' || name[length] == 127 ? '?' : name[length],
		     file);
	fprintf(file, "%*s", length < NAME_WIDTH ? NAME_WIDTH - length : 0, "");
}

static void write_row(FILE *file, const struct ps_region_sums *sums,
		      const struct ps_counter *counters, size_t nr)
{
	fprintf(file, " %*" PRIu64 " %10" PRIu64 " %12.6f", NUMBER_WIDTH, sums->calls,
		sums->incomplete, sums->elapsed_ns / 1e9);
	for (size_t i = 0; i < nr; i++) {
		if (sums->invalid >> i & 1)
			fprintf(file, " %*s", width_of(&counters[i]), "-");
		else
			fprintf(file, " %*" PRIu64, width_of(&counters[i]), sums->counted[i].value);
	}
	putc('\n', file);
}

struct ps_error *ps_summary_print_regions(struct ps_region_table *table, bool *ret)
{
	_cleanup_free_ struct ps_region_total *totals = NULL;
	size_t nr, nr_counters, size;
	*ret = true;
	struct ps_error *error = ps_region_table_read(table, false, true, &totals, &nr);
	if (error || !nr)
		return error;
	const struct ps_counter *counters = ps_region_table_counters(table, &nr_counters);
	_cleanup_free_ char *text = NULL;
	FILE *file = open_memstream(&text, &size);
	if (!file)
		return &ps_enomem;
	write_title(file, counters, nr_counters);
	for (size_t i = 0; i < nr; i++) {
		write_name(file, totals[i].name);
		write_row(file, &totals[i].sums, counters, nr_counters);
	}
	return fclose(file) ? &ps_enomem : ps_output_write(text, size, ret);
}
