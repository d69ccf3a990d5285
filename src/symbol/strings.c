// SPDX-License-Identifier: MIT
#include "strings.h"

#include <perfscope/cleanup.h>
#include <perfscope/demangle.h>
#include <stdarg.h>
#include <string.h>

#define MIN_SIZE 256

struct string_entry {
	char *text; // NULL: free
	uint64_t hash;
};

static uint64_t hash_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

/** Where @text is or belongs. */
static struct string_entry *find(const struct strings *strings, const char *text, uint64_t hash)
{
	uint32_t at = hash & (strings->size - 1);
	while (strings->entries[at].text) {
		if (strings->entries[at].hash == hash && !strcmp(strings->entries[at].text, text))
			break;
		at = (at + 1) & (strings->size - 1);
	}
	return &strings->entries[at];
}

static bool strings_grow(struct strings *strings)
{
	struct strings bigger = { .size = strings->size ? 2 * strings->size : MIN_SIZE };
	bigger.entries = calloc(bigger.size, sizeof(*bigger.entries));
	if (!bigger.entries)
		return false;
	bigger.nr = strings->nr;
	bigger.nr_bytes = strings->nr_bytes;
	for (uint32_t i = 0; i < strings->size; i++) {
		const struct string_entry *entry = &strings->entries[i];
		if (entry->text)
			*find(&bigger, entry->text, entry->hash) = *entry;
	}
	free(strings->entries);
	*strings = bigger;
	return true;
}

const char *strings_keep(struct strings *strings, const char *text)
{
	if (2 * strings->nr >= strings->size && !strings_grow(strings))
		return NULL;
	uint64_t hash = hash_of(text);
	struct string_entry *entry = find(strings, text, hash);
	if (entry->text)
		return entry->text;
	entry->text = strdup(text);
	entry->hash = hash;
	if (!entry->text)
		return NULL;
	strings->nr++;
	strings->nr_bytes += strlen(text) + 1;
	return entry->text;
}

const char *strings_keep_format(struct strings *strings, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *text;
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		return NULL;
	const char *kept = strings_keep(strings, text);
	free(text);
	return kept;
}

void strings_deinit(struct strings *strings)
{
	for (uint32_t i = 0; i < strings->size; i++)
		free(strings->entries[i].text);
	free(strings->entries);
	*strings = (struct strings){};
}

const char *strings_keep_demangled(struct strings *strings, const char *name)
{
	_cleanup_free_ char *text = ps_demangle(name);
	return strings_keep(strings, text ? text : name);
}
