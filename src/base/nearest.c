// SPDX-License-Identifier: MIT
#include <perfscope/nearest.h>

#include <ctype.h>
#include <perfscope/cleanup.h>
#include <string.h>

#define MAX_LENGTH 128

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int least = a < b ? a : b;
	return least < c ? least : c;
}

unsigned int ps_edit_distance(const char *left, const char *right)
{
	size_t nr_left = strnlen(left, MAX_LENGTH), nr_right = strnlen(right, MAX_LENGTH);
	unsigned int rows[3][MAX_LENGTH + 1];
	unsigned int *before = rows[0], *last = rows[1], *row = rows[2];
	for (size_t j = 0; j <= nr_right; j++)
		last[j] = j;
	for (size_t i = 1; i <= nr_left; i++) {
		row[0] = i;
		for (size_t j = 1; j <= nr_right; j++) {
			int a = tolower((unsigned char)left[i - 1]);
			int b = tolower((unsigned char)right[j - 1]);
			row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b));
			if (i > 1 && j > 1 && a == tolower((unsigned char)right[j - 2]) &&
			    b == tolower((unsigned char)left[i - 2]) && before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		unsigned int *oldest = before;
		before = last;
		last = row;
		row = oldest;
	}
	return last[nr_right];
}

void ps_nearest_init(struct ps_nearest *nearest, const char *wanted)
{
	*nearest = (struct ps_nearest){ .wanted = wanted };
}

/** Insert @copy, which is taken over, at @at; the last one falls off a full list. */
static void nearest_insert(struct ps_nearest *nearest, size_t at, char *copy, unsigned int distance)
{
	if (nearest->nr == PS_NR_NEAREST)
		free(nearest->names[--nearest->nr]);
	for (size_t i = nearest->nr; i > at; i--) {
		nearest->names[i] = nearest->names[i - 1];
		nearest->distances[i] = nearest->distances[i - 1];
	}
	nearest->names[at] = copy;
	nearest->distances[at] = distance;
	nearest->nr++;
}

void ps_nearest_add(struct ps_nearest *nearest, const char *name)
{
	size_t wanted_length = strlen(nearest->wanted);
	unsigned int distance = ps_edit_distance(nearest->wanted, name);
	// A part of a name is near it, wherever it stands.
	if (wanted_length >= 4 && strcasestr(name, nearest->wanted))
		distance = 1;
	if (distance > 1 + wanted_length / 4)
		return;
	size_t at = 0;
	while (at < nearest->nr && nearest->distances[at] <= distance) {
		if (!strcmp(nearest->names[at], name))
			return;
		at++;
	}
	if (at == PS_NR_NEAREST)
		return;
	char *copy = strdup(name);
	if (copy)
		nearest_insert(nearest, at, copy, distance);
}

char *ps_nearest_text(const struct ps_nearest *nearest)
{
	static const char *const separators[PS_NR_NEAREST][PS_NR_NEAREST] = {
		{ "; did you mean " },
		{ "; did you mean ", " or " },
		{ "; did you mean ", ", ", " or " },
	};
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return NULL;
	for (size_t i = 0; i < nearest->nr; i++)
		fprintf(stream, "%s%s", separators[nearest->nr - 1][i], nearest->names[i]);
	if (nearest->nr)
		putc('?', stream);
	if (fclose(stream)) {
		free(text);
		return NULL;
	}
	return text;
}

void ps_nearest_deinit(struct ps_nearest *nearest)
{
	while (nearest->nr)
		free(nearest->names[--nearest->nr]);
}
