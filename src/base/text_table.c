// SPDX-License-Identifier: MIT
#include <perfscope/text_table.h>

#include <perfscope/text.h>
#include <stdlib.h>

void ps_text_table_deinit(struct ps_text_table *table)
{
	for (size_t i = 0; i < table->nr; i++)
		free(table->cells[i]);
	free(table->cells);
	*table = (struct ps_text_table){ .nr_columns = table->nr_columns };
}

void ps_text_make_plain(char *text)
{
	for (unsigned char *at = (unsigned char *)text; *at; at++) {
		// UTF-8 has the control characters U+0080 to U+009F, too.
		bool is_long = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
		if (*at < ' ' || *at == 127 || is_long)
			*at = '?';
		if (is_long)
			at[1] = '?';
	}
}

static bool grow(struct ps_text_table *table)
{
	size_t nr = 2 * table->nr_allocated + 64;
	char **cells = reallocarray(table->cells, nr, sizeof(*cells));
	if (!cells)
		return false;
	table->cells = cells;
	table->nr_allocated = nr;
	return true;
}

void ps_text_table_add(struct ps_text_table *table, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *text = ps_text_format(format, arguments);
	va_end(arguments);
	if (!text || (table->nr == table->nr_allocated && !grow(table))) {
		free(text);
		table->is_incomplete = true;
		return;
	}
	ps_text_make_plain(text);
	table->cells[table->nr++] = text;
}

/** How many columns of a terminal @text takes: one for each character of UTF-8. */
static int width_of(const char *text)
{
	int width = 0;
	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static int width_of_column(const struct ps_text_table *table, size_t column)
{
	int widest = 0;
	for (size_t i = column; i < table->nr; i += table->nr_columns) {
		int width = width_of(table->cells[i]);
		widest = width > widest ? width : widest;
	}
	return widest;
}

bool ps_text_table_write(const struct ps_text_table *table, FILE *file)
{
	_cleanup_free_ int *widths = calloc(table->nr_columns, sizeof(*widths));
	if (!widths || table->is_incomplete)
		return false;
	for (size_t i = 0; i < table->nr_columns; i++)
		widths[i] = width_of_column(table, i);
	for (size_t i = 0; i < table->nr; i++) {
		size_t column = i % table->nr_columns;
		int blanks = widths[column] - width_of(table->cells[i]);
		if (column)
			fprintf(file, "  %*s%s", blanks, "", table->cells[i]);
		else
			fprintf(file, "%s%*s", table->cells[i], blanks, "");
		if (column + 1 == table->nr_columns)
			putc('\n', file);
	}
	return true;
}
