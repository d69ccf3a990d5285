// SPDX-License-Identifier: MIT
#include <perfscope/summary.h>

#include <inttypes.h>
#include <perfscope/deadline.h>
#include <perfscope/output.h>
#include <string.h>
#include <sys/ioctl.h>

#define NUMBER_WIDTH 14

/** What a source had counted when the last table was printed. */
struct last {
	uint64_t delivered, lost; // of a source that samples
	struct ps_count count;	  // of one that counts
};

struct ps_summary {
	struct ps_session *session;
	const struct ps_source_list *sources;
	struct last *lasts;	     // by source index
	struct ps_count *counts;     // by source index, as they are read
	struct ps_summary_row *rows; // room for all sources
	char **labels;		     // by source index
	size_t label_width;
	uint64_t start_ns, last_ns;
	size_t lines_left; // of the screen below the title; 0: it is due again
	bool is_titled;
};

static void write_title(FILE *file, size_t label_width)
{
	fprintf(file, "%9s  %-*s %*s %*s %*s %9s\n", "TIME", (int)label_width, "EVENT",
		NUMBER_WIDTH, "COUNT", NUMBER_WIDTH, "RATE/s", NUMBER_WIDTH - 4, "LOST",
		"COVERAGE");
}

static void write_row(FILE *file, const struct ps_summary_header *header,
		      const struct ps_summary_row *row)
{
	char count[24] = "-", rate[24] = "-", lost[24] = "-", coverage[16] = "-";
	if (row->has_count) {
		snprintf(count, sizeof(count), "%" PRIu64, row->count);
		snprintf(rate, sizeof(rate), "%.1f", row->count / header->seconds);
	}
	if (row->has_lost)
		snprintf(lost, sizeof(lost), "%" PRIu64, row->lost);
	if (row->has_coverage)
		snprintf(coverage, sizeof(coverage), "%.1f%%", row->coverage * 100);
	fprintf(file, "%9.3f  %-*s %*s %*s %*s %9s\n", header->time, (int)header->label_width,
		row->label, NUMBER_WIDTH, count, NUMBER_WIDTH, rate, NUMBER_WIDTH - 4, lost,
		coverage);
}

void ps_summary_write(FILE *file, const struct ps_summary_header *header,
		      const struct ps_summary_row *rows, size_t nr)
{
	if (header->with_title)
		write_title(file, header->label_width);
	for (size_t i = 0; i < nr; i++)
		write_row(file, header, &rows[i]);
}

/** Samples of @source handed out, and lost as the kernel counted them. */
static struct last count_samples(const struct ps_session *session, const struct ps_source *source)
{
	struct last now = { 0 };
	for (size_t i = 0; i < session->nr_streams; i++) {
		const struct ps_stream *stream = &session->streams[i];
		if (stream->source != source)
			continue;
		now.delivered += stream->delivered;
		now.lost += stream->lost;
	}
	return now;
}

static void fill_samples(const struct ps_summary *summary, const struct ps_source *source,
			 struct last *last, struct ps_summary_row *row)
{
	struct last now = count_samples(summary->session, source);
	row->has_count = true;
	row->count = now.delivered - last->delivered;
	row->has_lost = summary->session->has_lost_count;
	row->lost = now.lost - last->lost;
	*last = now;
}

static void fill_counter(const struct ps_summary *summary, const struct ps_source *source,
			 struct last *last, struct ps_summary_row *row)
{
	struct ps_count now = summary->counts[source->index];
	if (!now.is_valid)
		return;
	struct ps_count count = ps_count_between(&last->count, &now);
	last->count = now;
	if (!count.is_valid)
		return;
	// Enabled but never on the PMU: what happened is unknown, not 0.
	row->has_count = count.running_ns || !count.enabled_ns;
	row->count = count.value;
	row->has_coverage = count.enabled_ns != 0;
	row->coverage = count.enabled_ns ? (double)count.running_ns / count.enabled_ns : 0;
}

/** Fill the row of @source; false where it is not worth one. */
static bool fill_row(struct ps_summary *summary, const struct ps_source *source,
		     struct ps_summary_row *row)
{
	*row = (struct ps_summary_row){ .label = summary->labels[source->index] };
	struct last *last = &summary->lasts[source->index];
	if (source->is_missing)
		return true;
	if (!source->is_sampling) {
		fill_counter(summary, source, last, row);
		return true;
	}
	fill_samples(summary, source, last, row);
	// Of a glob only what happened is of interest; what was named is always shown.
	return !source->is_glob || row->count || row->lost;
}

/** The label of @source, with the unit where a plain number would mislead. */
static char *make_label(const struct ps_source *source)
{
	bool is_clock = !source->is_sampling && source->attr.type == PERF_TYPE_SOFTWARE &&
			(source->attr.config == PERF_COUNT_SW_CPU_CLOCK ||
			 source->attr.config == PERF_COUNT_SW_TASK_CLOCK);
	char *label;
	return asprintf(&label, "%s%s", source->label, is_clock ? " (ns)" : "") < 0 ? NULL : label;
}

static bool make_labels(struct ps_summary *summary)
{
	summary->label_width = strlen("EVENT");
	for (size_t i = 0; i < ps_sources_nr_shown(summary->sources); i++) {
		char *label = make_label(summary->sources->sources[i]);
		if (!label)
			return false;
		summary->labels[i] = label;
		if (strlen(label) > summary->label_width)
			summary->label_width = strlen(label);
	}
	return true;
}

struct ps_error *ps_summary_create(struct ps_session *session, const struct ps_source_list *sources,
				   struct ps_summary **ret)
{
	struct ps_summary *summary = calloc(1, sizeof(*summary));
	if (!summary)
		return &ps_enomem;
	size_t nr = sources->nr_sources;
	summary->session = session;
	summary->sources = sources;
	summary->lasts = calloc(nr, sizeof(*summary->lasts));
	summary->counts = calloc(nr, sizeof(*summary->counts));
	summary->rows = calloc(nr, sizeof(*summary->rows));
	summary->labels = calloc(nr, sizeof(*summary->labels));
	if (!summary->lasts || !summary->counts || !summary->rows || !summary->labels ||
	    !make_labels(summary)) {
		ps_summary_destroy(summary);
		return &ps_enomem;
	}
	summary->start_ns = summary->last_ns = ps_monotonic_ns();
	*ret = summary;
	return NULL;
}

void ps_summary_destroy(struct ps_summary *summary)
{
	if (!summary)
		return;
	for (size_t i = 0; summary->labels && i < ps_sources_nr_shown(summary->sources); i++)
		free(summary->labels[i]);
	free(summary->labels);
	free(summary->rows);
	free(summary->counts);
	free(summary->lasts);
	free(summary);
}

/** Whether the title is due before @nr lines: once where nobody watches, once a screenful on a terminal. */
static bool title_is_due(struct ps_summary *summary, size_t nr)
{
	struct winsize size;
	bool is_terminal = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row > 1;
	bool is_due = !summary->is_titled || (is_terminal && summary->lines_left < nr);
	summary->is_titled = true;
	if (is_due && is_terminal)
		summary->lines_left = size.ws_row - 2; // less the title and the line of the cursor
	summary->lines_left -= nr < summary->lines_left ? nr : summary->lines_left;
	return is_due;
}

static bool has_news(const struct ps_summary_row *rows, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (rows[i].count || rows[i].lost)
			return true;
	}
	return false;
}

struct ps_error *ps_summary_print(struct ps_summary *summary, bool is_last, bool *ret)
{
	*ret = true;
	ps_session_read_lost(summary->session);
	ps_session_count_all(summary->session, summary->counts);
	size_t nr = 0;
	for (size_t i = 0; i < ps_sources_nr_shown(summary->sources); i++)
		nr += fill_row(summary, summary->sources->sources[i], &summary->rows[nr]);
	if (is_last && summary->is_titled && !has_news(summary->rows, nr))
		return NULL;
	uint64_t now_ns = ps_monotonic_ns();
	struct ps_summary_header header = {
		.time = (now_ns - summary->start_ns) / 1e9,
		.seconds = (now_ns - summary->last_ns) / 1e9,
		.label_width = summary->label_width,
		.with_title = title_is_due(summary, nr),
	};
	summary->last_ns = now_ns;
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	if (!file)
		return NULL; // no memory for a table is no reason to end
	ps_summary_write(file, &header, summary->rows, nr);
	return fclose(file) ? NULL : ps_output_write(text, size, ret);
}
