// SPDX-License-Identifier: MIT
#include <perfscope/tracepoint.h>

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <perfscope/log.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#define TRACEFS_PATH "/sys/kernel/tracing"
#define DEBUGFS_TRACEFS_PATH "/sys/kernel/debug/tracing"
#define TRACEFS_MAGIC_NUMBER 0x74726163

// Above the longest format of any kernel (some 6 KiB) by far.
#define MAX_FORMAT_SIZE (1 << 20)

static bool is_tracefs(const char *path)
{
	struct statfs fs;
	return !statfs(path, &fs) && (unsigned long)fs.f_type == TRACEFS_MAGIC_NUMBER;
}

/** Whether the events of @path can be listed; errno tells why not. */
static bool is_readable(const char *path)
{
	_cleanup_free_ char *events = NULL;
	if (asprintf(&events, "%s/events", path) < 0) {
		events = NULL;
		errno = ENOMEM;
		return false;
	}
	return !access(events, R_OK | X_OK);
}

static struct ps_error *closed_error(const char *path, int os_errno)
{
	struct ps_error *error = ps_error_os(os_errno, "tracefs at %s", path);
	if (os_errno != EACCES && os_errno != EPERM)
		return error;
	return ps_error_hint(error,
			     "run as root, or as root: mount -o remount,mode=755 %s; no capability "
			     "but CAP_DAC_READ_SEARCH opens it",
			     path);
}

/** Mount it where the caller may. */
static struct ps_error *mount_tracefs(const char **ret)
{
	static const char *const advice = "as root: mount -t tracefs nodev " TRACEFS_PATH;
	if (!mount("nodev", TRACEFS_PATH, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)) {
		ps_log(PS_LOG_INFO, "mounted tracefs at " TRACEFS_PATH);
		*ret = TRACEFS_PATH;
		return NULL;
	}
	int os_errno = errno;
	if (os_errno == ENODEV)
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "this kernel has no tracefs, so no tracepoints "
				       "(CONFIG_TRACING is off)");
	return ps_error_hint(ps_error_os(os_errno,
					 "tracefs is not mounted, mount it at " TRACEFS_PATH),
			     "%s", advice);
}

/** The folder that $PERFSCOPE_TRACEFS names, which need not be a tracefs: a copy of one serves too. */
static struct ps_error *use_given_path(const char *path, const char **ret)
{
	static char *kept;
	if (!is_readable(path))
		return ps_error_hint(ps_error_os(errno, "%s/events", path),
				     "PERFSCOPE_TRACEFS names this folder");
	if (!kept || strcmp(kept, path)) {
		// The one before it may be borrowed still: at most one string a change of the environment.
		kept = strdup(path);
		if (!kept)
			return &ps_enomem;
	}
	*ret = kept;
	return NULL;
}

struct ps_error *ps_tracefs_path(const char **ret)
{
	static const char *const paths[] = { TRACEFS_PATH, DEBUGFS_TRACEFS_PATH };
	const char *given = secure_getenv("PERFSCOPE_TRACEFS");
	if (given && *given)
		return use_given_path(given, ret);
	const char *closed = NULL;
	int closed_errno = 0;
	for (size_t i = 0; i < PS_ARRAY_SIZE(paths); i++) {
		if (!is_tracefs(paths[i]))
			continue;
		if (is_readable(paths[i])) {
			*ret = paths[i];
			return NULL;
		}
		if (!closed) {
			closed_errno = errno;
			closed = paths[i];
		}
	}
	return closed ? closed_error(closed, closed_errno) : mount_tracefs(ret);
}

/** Whether @name can be the name of a folder here, and of no other place. */
static bool is_plain_name(const char *name)
{
	if (!*name || *name == '.' || strlen(name) > NAME_MAX)
		return false;
	for (const char *at = name; *at; at++) {
		if (!isalnum((unsigned char)*at) && !strchr("_-.", *at))
			return false;
	}
	return true;
}

static struct ps_error *not_found(const char *system, const char *name, const char *near)
{
	return ps_error_format(PS_ERROR_NOT_FOUND, "there is no tracepoint %s:%s%s", system, name,
			       near);
}

/** Open the file @file of the folder of system:name. */
static struct ps_error *open_file(const char *tracefs, const char *system, const char *name,
				  const char *file, FILE **ret)
{
	if (!is_plain_name(system) || !is_plain_name(name))
		return not_found(system, name,
				 "; names are made of letters, digits, '_', '-' and '.'");
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/events/%s/%s/%s", tracefs, system, name, file) < 0) {
		path = NULL;
		return &ps_enomem;
	}
	*ret = fopen(path, "re");
	if (*ret)
		return NULL;
	int os_errno = errno;
	if (os_errno == ENOENT || os_errno == ENOTDIR)
		return not_found(system, name, "");
	if (os_errno == EACCES || os_errno == EPERM)
		return closed_error(tracefs, os_errno);
	return ps_error_os(os_errno, "%s", path);
}

struct ps_error *ps_tracepoint_read_id(const char *tracefs, const char *system, const char *name,
				       uint64_t *ret)
{
	_cleanup_fclose_ FILE *file = NULL;
	struct ps_error *error = open_file(tracefs, system, name, "id", &file);
	if (error)
		return error;
	uint64_t id;
	if (fscanf(file, "%" SCNu64, &id) != 1)
		return ps_error_format(PS_ERROR_BAD_DATA,
				       "the id of tracepoint %s:%s is not a number", system, name);
	*ret = id;
	return NULL;
}

struct ps_error *ps_tracepoint_read_format(const char *tracefs, const char *system,
					   const char *name, char **ret, size_t *ret_size)
{
	_cleanup_fclose_ FILE *file = NULL;
	struct ps_error *error = open_file(tracefs, system, name, "format", &file);
	if (error)
		return error;
	_cleanup_free_ char *text = NULL;
	size_t size = 0, capacity = 0;
	do {
		capacity = capacity ? 2 * capacity : 8192;
		char *bigger = realloc(text, capacity + 1);
		if (!bigger)
			return &ps_enomem;
		text = bigger;
		size += fread(text + size, 1, capacity - size, file);
	} while (size == capacity && size < MAX_FORMAT_SIZE);
	if (ferror(file))
		return ps_error_os(errno, "the format of tracepoint %s:%s", system, name);
	if (size >= MAX_FORMAT_SIZE)
		return ps_error_format(PS_ERROR_BAD_DATA,
				       "the format of tracepoint %s:%s is longer than 1 MiB",
				       system, name);
	text[size] = '\0';
	*ret = take_ptr(text);
	*ret_size = size;
	return NULL;
}

/** Sorted names, owned. */
struct names {
	char **names;
	size_t nr;
};

static void names_deinit(struct names *names)
{
	for (size_t i = 0; i < names->nr; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct names){ 0 };
}

#define _cleanup_names_ _cleanup_(names_deinit)

static bool names_append(struct names *names, const char *name)
{
	// Doubled at each power of two.
	if (!(names->nr & (names->nr - 1))) {
		size_t capacity = names->nr ? 2 * names->nr : 1;
		char **bigger = realloc(names->names, capacity * sizeof(*bigger));
		if (!bigger)
			return false;
		names->names = bigger;
	}
	char *copy = strdup(name);
	if (!copy)
		return false;
	names->names[names->nr++] = copy;
	return true;
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/** The folders in @path, sorted: systems, or the events of one. */
static struct ps_error *list_folders(const char *path, struct names *ret)
{
	_cleanup_names_ struct names names = { 0 };
	_cleanup_closedir_ DIR *folder = opendir(path);
	if (!folder)
		return ps_error_os(errno, "%s", path);
	const struct dirent *entry;
	while ((entry = readdir(folder))) {
		if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
			continue;
		if (is_plain_name(entry->d_name) && !names_append(&names, entry->d_name))
			return &ps_enomem;
	}
	if (names.nr)
		qsort(names.names, names.nr, sizeof(*names.names), compare_names);
	*ret = names;
	names = (struct names){ 0 };
	return NULL;
}

/** One search. */
struct walk {
	const char *tracefs;
	const char *system, *name; // patterns
	ps_tracepoint_visit visit; // NULL: count alone
	void *argument;
	struct ps_nearest *nearest; // offered each name that does not match, or NULL
	size_t nr_matches;
};

static bool matches(const char *pattern, const char *name)
{
	return !fnmatch(pattern, name, FNM_NOESCAPE);
}

static bool is_there(const char *tracefs, const char *system, const char *name)
{
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/events/%s/%s/format", tracefs, system, name) < 0) {
		path = NULL;
		return false;
	}
	return !access(path, F_OK);
}

/** Visit an event. Probes come and go: one that has gone meanwhile is not in the way of the others. */
static struct ps_error *walk_match(struct walk *walk, const char *system, const char *name)
{
	struct ps_error *error = walk->visit ? walk->visit(system, name, walk->argument) : NULL;
	if (error && !is_there(walk->tracefs, system, name)) {
		ps_error_destroy(error);
		return NULL;
	}
	walk->nr_matches++;
	return error;
}

static struct ps_error *walk_event(struct walk *walk, const char *system, const char *name,
				   bool is_system_match)
{
	if (is_system_match && matches(walk->name, name))
		return walk_match(walk, system, name);
	if (!walk->nearest)
		return NULL;
	_cleanup_free_ char *full = NULL;
	if (asprintf(&full, "%s:%s", system, name) < 0) {
		full = NULL;
		return &ps_enomem;
	}
	ps_nearest_add(walk->nearest, full);
	return NULL;
}

static struct ps_error *walk_system(struct walk *walk, const char *system)
{
	bool is_match = matches(walk->system, system);
	if (!is_match && !walk->nearest)
		return NULL;
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/events/%s", walk->tracefs, system) < 0) {
		path = NULL;
		return &ps_enomem;
	}
	_cleanup_names_ struct names events = { 0 };
	struct ps_error *error = list_folders(path, &events);
	if (error && error->os_errno == ENOENT) {
		// The last probe of this system went meanwhile.
		ps_error_destroy(error);
		return NULL;
	}
	for (size_t i = 0; i < events.nr && !error; i++)
		error = walk_event(walk, system, events.names[i], is_match);
	return error;
}

static struct ps_error *walk_all(struct walk *walk)
{
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/events", walk->tracefs) < 0) {
		path = NULL;
		return &ps_enomem;
	}
	_cleanup_names_ struct names systems = { 0 };
	struct ps_error *error = list_folders(path, &systems);
	for (size_t i = 0; i < systems.nr && !error; i++)
		error = walk_system(walk, systems.names[i]);
	return error;
}

/** The error for a pattern that matches nothing: with the nearest names. */
static struct ps_error *nothing_matches(const char *tracefs, const char *system, const char *name)
{
	_cleanup_free_ char *wanted = NULL;
	if (asprintf(&wanted, "%s:%s", system, name) < 0) {
		wanted = NULL;
		return &ps_enomem;
	}
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, wanted);
	struct walk walk = {
		.tracefs = tracefs,
		.system = "",
		.name = "",
		.nearest = &nearest,
	};
	struct ps_error *error = walk_all(&walk);
	_cleanup_free_ char *text = error ? NULL : ps_nearest_text(&nearest);
	ps_nearest_deinit(&nearest);
	if (error)
		return error;
	return not_found(system, name, text ? text : "");
}

/** A pattern is a plain name with '*' and '?' in it; brackets are none, and no path leaves the folder. */
static bool is_pattern(const char *text)
{
	if (!*text)
		return false;
	for (const char *at = text; *at; at++) {
		if (!isalnum((unsigned char)*at) && !strchr("_-.*?", *at))
			return false;
	}
	return true;
}

/** Without wildcards no folder need be listed: the name is there or it is not. */
static bool is_exact(const char *tracefs, const char *system, const char *name)
{
	return is_plain_name(system) && is_plain_name(name) && is_there(tracefs, system, name);
}

struct ps_error *ps_tracepoint_glob(const char *tracefs, const char *system, const char *name,
				    ps_tracepoint_visit visit, void *argument)
{
	if (!is_pattern(system) || !is_pattern(name))
		return not_found(
			system, name,
			"; names are made of letters, digits, '_', '-', '.', and '*' and '?'");
	if (is_exact(tracefs, system, name))
		return visit(system, name, argument);
	struct walk walk = {
		.tracefs = tracefs,
		.system = system,
		.name = name,
		.visit = visit,
		.argument = argument,
	};
	struct ps_error *error = walk_all(&walk);
	if (error || walk.nr_matches)
		return error;
	return nothing_matches(tracefs, system, name);
}
