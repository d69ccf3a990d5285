// SPDX-License-Identifier: MIT
#include <perfscope/text_table.h>

#include <locale.h>
#include <perfscope/text.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

void ps_text_table_deinit(struct ps_text_table *table)
{
	for (size_t i = 0; i < table->nr; i++)
		free(table->cells[i]);
	free(table->cells);
	*table = (struct ps_text_table){ .nr_columns = table->nr_columns };
}

/** How many bytes at @at are a character of UTF-8 that a terminal takes as a command: control, or the direction of text. */
static int nr_command_bytes(const unsigned char *at)
{
	if (*at < ' ' || *at == 127)
		return 1;
	if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) // U+0080 to U+009F
		return 2;
	// U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069
	unsigned int rest = at[0] == 0xe2 && at[1] ? at[1] << 8 | at[2] : 0;
	bool is_direction = rest == 0x808e || rest == 0x808f ||
			    (rest >= 0x80aa && rest <= 0x80ae) ||
			    (rest >= 0x81a6 && rest <= 0x81a9);
	return is_direction ? 3 : 0;
}

void ps_text_make_plain(char *text)
{
	for (int nr; *text; text += nr ? nr : 1) {
		nr = nr_command_bytes((const unsigned char *)text);
		memset(text, '?', nr);
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

/** How many columns of a terminal @text takes, by the calling thread's locale; a character that it has not takes one. */
static int width_of(const char *text)
{
	int width = 0;
	for (size_t left = strlen(text), nr; left; text += nr, left -= nr) {
		wchar_t character;
		mbstate_t state = { 0 };
		nr = mbrtowc(&character, text, left, &state);
		bool is_known = nr > 0 && nr <= left;
		int columns = is_known ? wcwidth(character) : -1;
		nr = is_known ? nr : 1;
		width += columns < 0 ? (*text & 0xc0) != 0x80 : columns;
	}
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

static bool write_rows(const struct ps_text_table *table, FILE *file)
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

bool ps_text_table_write(const struct ps_text_table *table, FILE *file)
{
	// A program may not have set a locale, or another one than its terminal's.
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
	bool is_written = write_rows(table, file);
	if (utf8) {
		uselocale(before);
		freelocale(utf8);
	}
	return is_written;
}
