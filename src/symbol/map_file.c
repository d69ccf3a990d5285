// SPDX-License-Identifier: MIT
#include "map_file.h"

#include <string.h>

static uint32_t hash_of(const struct ps_file *file)
{
	uint32_t hash = 2166136261;
	for (const char *at = file->path; *at; at++)
		hash = (hash ^ (uint8_t)*at) * 16777619;
	return (hash ^ hash >> 16) % PS_MAP_FILE_BUCKETS;
}

static bool is_same(const struct ps_file *left, const struct ps_file *right)
{
	return left->inode == right->inode && left->generation == right->generation &&
	       left->dev_major == right->dev_major && left->dev_minor == right->dev_minor &&
	       left->build_id_size == right->build_id_size &&
	       !memcmp(left->build_id, right->build_id, left->build_id_size) &&
	       !strcmp(left->path, right->path);
}

static struct ps_file *files_add(struct map_files *files, const struct ps_file *like)
{
	struct ps_file *file = malloc(sizeof(*file));
	if (!file)
		return NULL;
	*file = *like;
	file->path = strdup(like->path);
	if (!file->path) {
		free(file);
		return NULL;
	}
	struct ps_file **bucket = &files->buckets[hash_of(file)];
	file->id = ++files->last_id;
	file->nr_refs = 1;
	file->next = *bucket;
	*bucket = file;
	files->nr++;
	return file;
}

struct ps_file *map_files_get(struct map_files *files, const struct ps_file *like)
{
	for (struct ps_file *file = files->buckets[hash_of(like)]; file; file = file->next) {
		if (is_same(file, like)) {
			file->nr_refs++;
			if (like->mapped_ns)
				file->mapped_ns = like->mapped_ns;
			return file;
		}
	}
	return files_add(files, like);
}

void map_files_put(struct map_files *files, struct ps_file *file)
{
	if (--file->nr_refs)
		return;
	struct ps_file **link = &files->buckets[hash_of(file)];
	while (*link != file)
		link = &(*link)->next;
	*link = file->next;
	files->nr--;
	free(file->path);
	free(file);
}
