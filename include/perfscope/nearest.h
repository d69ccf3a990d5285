// SPDX-License-Identifier: MIT
/**
 * The names nearest to one that was not found.
 */
#ifndef PERFSCOPE_NEAREST_H
#define PERFSCOPE_NEAREST_H

#include <stddef.h>

#define PS_NR_NEAREST 3

struct ps_nearest {
	const char *wanted; // borrowed
	size_t nr;
	char *names[PS_NR_NEAREST]; // owned, best first
	unsigned int distances[PS_NR_NEAREST];
};

/** Start a search for names near @wanted, which must outlive it. */
void ps_nearest_init(struct ps_nearest *nearest, const char *wanted);

/** Offer @name, which is copied when it is near enough; far ones are passed over. */
void ps_nearest_add(struct ps_nearest *nearest, const char *name);

/** "; did you mean a, b or c?", or "" when nothing was near. The caller frees it; NULL: no memory. */
char *ps_nearest_text(const struct ps_nearest *nearest);

void ps_nearest_deinit(struct ps_nearest *nearest);

/** Edit distance (insert, delete, replace, swap of neighbours), case folded. */
unsigned int ps_edit_distance(const char *left, const char *right);

#endif
