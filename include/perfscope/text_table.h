// SPDX-License-Identifier: MIT
/**
 * A table as text: columns as wide as what is in them, the first to the left, the others to the right.
 */
#ifndef PERFSCOPE_TEXT_TABLE_H
#define PERFSCOPE_TEXT_TABLE_H

#include <perfscope/cleanup.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** Starts with the number of columns; the rest is zero. */
struct ps_text_table {
	size_t nr_columns;
	char **cells; // owned, row by row
	size_t nr, nr_allocated;
	bool is_incomplete; // no memory for a cell
};

void ps_text_table_deinit(struct ps_text_table *table);

/** Append a cell. What would reach a terminal as a command is a "?" in it. */
__attribute__((format(printf, 2, 3))) void ps_text_table_add(struct ps_text_table *table,
							     const char *format, ...);

/** Write all rows; false: there was no memory, and nothing is written. */
bool ps_text_table_write(const struct ps_text_table *table, FILE *file);

/** Put a "?" for each byte of @text that a terminal would take as a command, or as the direction of what follows. */
void ps_text_make_plain(char *text);

#define _cleanup_text_table_ _cleanup_(ps_text_table_deinit)

#endif
