// SPDX-License-Identifier: MIT
/**
 * Summary: the table of -i where the script has no `__interval__`, and the line of --usage.
 */
#ifndef PERFSCOPE_SUMMARY_H
#define PERFSCOPE_SUMMARY_H

#include <perfscope/dispatch.h>
#include <stdio.h>

/** One line of the table: what one source did since the last one. */
struct ps_summary_row {
	const char *label; // borrowed
	bool has_count;	   // false: missing, or never on the PMU
	uint64_t count;
	bool has_lost;
	uint64_t lost;
	bool has_coverage; // a counter that was enabled
	double coverage;   // part of the time that it counted, 0 to 1
};

struct ps_summary_header {
	double time;	    // seconds since the start
	double seconds;	    // since the last table
	size_t label_width; // of the widest label
	bool with_title;    // write the names of the columns first
};

/** Write @nr rows as lines of aligned columns. What is not known is a "-". */
void ps_summary_write(FILE *file, const struct ps_summary_header *header,
		      const struct ps_summary_row *rows, size_t nr);

struct ps_summary;

/** A summary of @sources, which count from now on. Both must outlive it. */
struct ps_error *ps_summary_create(struct ps_session *session, const struct ps_source_list *sources,
				   struct ps_summary **ret);
void ps_summary_destroy(struct ps_summary *summary); // takes NULL

/**
 * Print the table since the last one to stdout; *@ret is false when nobody reads it.
 *
 * @is_last: the rest at the end, which is left out where nothing happened and a table was printed before.
 */
struct ps_error *ps_summary_print(struct ps_summary *summary, bool is_last, bool *ret);

/**
 * Print what regions added up, at the end: those of -r (@specs, @boundaries, which may be NULL), then the programs' of
 * @table; nothing where there are none. *@ret as above.
 */
struct ps_error *ps_summary_print_regions(struct ps_region_table *table,
					  const struct ps_region_spec_list *specs,
					  const struct ps_boundaries *boundaries, bool *ret);

/** What perfscope itself used up to a moment. */
struct ps_usage {
	uint64_t time_ns; // monotonic
	uint64_t cpu_ns;  // of all threads, user and kernel
	uint64_t resident_bytes;
};

/** Read what was used up to now. */
struct ps_usage ps_usage_now(void);

/** "cpu 1.5%, memory 18.2 MB, 1234 events, 0 lost": the CPU share since @last. The caller frees it; NULL: no memory. */
char *ps_usage_text(const struct ps_usage *last, const struct ps_usage *now,
		    const struct ps_dispatch_counts *counts);

/** Tells usage again and again, each time since the last. */
struct ps_usage_meter {
	const struct ps_dispatch *dispatch; // borrowed
	struct ps_usage last;
};

/** Say the usage of a struct ps_usage_meter on stderr, with -q too: it was asked for. */
void ps_usage_print(void *meter);

#endif
