// SPDX-License-Identifier: MIT
#include "engine.h"

#include <string.h>

#define MIN_BUCKETS 64

// All names of the process, by hash with open addressing, at most half full. Under engine_lock; a region never goes.
static struct ps_region **buckets;
static size_t nr_buckets, nr_regions;

static size_t hash_name(const char *name)
{
	size_t hash = 14695981039346656037ULL;
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 1099511628211ULL;
	return hash ^ hash >> 32;
}

static struct ps_region **find_bucket(const char *name)
{
	size_t index = hash_name(name) & (nr_buckets - 1);
	while (buckets[index] && strcmp(buckets[index]->name, name))
		index = (index + 1) & (nr_buckets - 1);
	return &buckets[index];
}

static bool grow(void)
{
	size_t nr_old = nr_buckets, nr = nr_old ? 2 * nr_old : MIN_BUCKETS;
	struct ps_region **old = buckets, **grown = calloc(nr, sizeof(*grown));
	if (!grown)
		return false;
	buckets = grown;
	nr_buckets = nr;
	for (size_t i = 0; i < nr_old; i++) {
		if (old[i])
			*find_bucket(old[i]->name) = old[i];
	}
	free(old);
	return true;
}

static struct ps_error *find_locked(const char *name, struct ps_region **ret)
{
	if (2 * nr_regions >= nr_buckets && !grow())
		return &ps_enomem;
	struct ps_region **bucket = find_bucket(name);
	if (!*bucket) {
		struct ps_region *region = calloc(1, sizeof(*region));
		if (!region)
			return &ps_enomem;
		region->id = nr_regions++;
		strcpy(region->name, name);
		*bucket = region;
	}
	*ret = *bucket;
	return NULL;
}

struct ps_error *ps_region_find(const char *name, struct ps_region **ret)
{
	if (!*name)
		return ps_error_format(PS_ERROR_USAGE, "a region needs a name");
	if (!strcmp(name, "run"))
		return ps_error_format(PS_ERROR_USAGE,
				       "region 'run': the name stands for the whole run");
	if (strlen(name) >= PS_REGION_NAME_SIZE)
		return ps_error_format(PS_ERROR_USAGE, "region '%.20s...': longer than %d bytes",
				       name, PS_REGION_NAME_SIZE - 1);
	pthread_mutex_lock(&engine_lock);
	struct ps_error *error = find_locked(name, ret);
	pthread_mutex_unlock(&engine_lock);
	return error;
}

static struct ps_error *find_cut(const char *name, struct ps_region **ret)
{
	char cut[PS_REGION_NAME_SIZE] = "";
	if (name)
		memcpy(cut, name, strnlen(name, sizeof(cut) - 1));
	return ps_region_find(cut, ret);
}

struct ps_error *ps_region_find_quickly(const char *name, struct ps_region **ret)
{
	struct thread *thread = thread_ready();
	if (!thread)
		return find_cut(name, ret);
	size_t index = ((uintptr_t)name ^ (uintptr_t)name >> 6) % NR_QUICK_NAMES;
	struct ps_region *region = thread->names[index].region;
	// The text decides each time: the address may be a buffer that holds another name now.
	if (PS_LIKELY(region && thread->names[index].address == name &&
		      !strncmp(region->name, name, PS_REGION_NAME_SIZE - 1))) {
		*ret = region;
		return NULL;
	}
	struct ps_error *error = find_cut(name, ret);
	if (!error) {
		thread->names[index].address = name;
		thread->names[index].region = *ret;
	}
	return error;
}
