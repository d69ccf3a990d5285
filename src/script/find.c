// SPDX-License-Identifier: MIT
#include "location.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <perfscope/nearest.h>
#include <string.h>
#include <sys/stat.h>

#define NO_SCRIPT(format, ...) ps_error_format(PS_ERROR_SCRIPT, "script " format, ##__VA_ARGS__)

void ps_location_deinit(struct ps_location *location)
{
	free(location->path);
	free(location->module);
	*location = (struct ps_location){ 0 };
}

/** An error of the script @name, whatever errno's own kind is. */
static struct ps_error *script_error_os(int os_errno, const char *name)
{
	struct ps_error *error = ps_error_os(os_errno, "script %s", name);
	if (error != &ps_enomem)
		error->kind = PS_ERROR_SCRIPT;
	return error;
}

struct ps_error *ps_file_read(const char *path, char **ret, size_t *ret_size)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	if (!file)
		return script_error_os(errno, path);
	_cleanup_free_ char *data = NULL;
	size_t size;
	FILE *stream = open_memstream(&data, &size);
	if (!stream)
		return &ps_enomem;
	char chunk[16384];
	size_t nr;
	while ((nr = fread(chunk, 1, sizeof(chunk), file)) > 0)
		fwrite(chunk, 1, nr, stream);
	int read_errno = ferror(file) ? errno : 0;
	if (fclose(stream))
		return &ps_enomem;
	if (read_errno)
		return script_error_os(read_errno, path);
	*ret = take_ptr(data);
	*ret_size = size;
	return NULL;
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), suffix_length = strlen(suffix);
	return length > suffix_length && !strcmp(name + length - suffix_length, suffix);
}

/** Absolute, so that it stays true where the script changes its folder. */
static char *absolute_path(const char *name)
{
	if (*name == '/')
		return strdup(name);
	_cleanup_free_ char *folder = getcwd(NULL, 0);
	char *path;
	while (!strncmp(name, "./", 2))
		name += 2;
	if (!folder || asprintf(&path, "%s/%s", folder, name) < 0)
		return NULL;
	return path;
}

/** "x.py" is x, "a.b.py" is a_b; "x.cpython-311-x86_64-linux-gnu.so" is x, as its PyInit_x says. */
static char *module_of_file(const char *path, enum ps_location_kind kind)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *stem = strdup(slash ? slash + 1 : path);
	if (!stem)
		return NULL;
	if (kind == PS_LOCATION_EXTENSION)
		*strchrnul(stem, '.') = 0;
	else if (has_suffix(stem, ".py"))
		stem[strlen(stem) - strlen(".py")] = 0;
	return ps_identifier_from(stem);
}

static struct ps_error *location_of_file(const char *name, struct ps_location *ret)
{
	enum ps_location_kind kind =
		has_suffix(name, ".so") ? PS_LOCATION_EXTENSION : PS_LOCATION_SOURCE;
	_cleanup_free_ char *path = absolute_path(name);
	char *module = module_of_file(name, kind);
	if (!path || !module) {
		free(module);
		return &ps_enomem;
	}
	*ret = (struct ps_location){ kind, take_ptr(path), module };
	return NULL;
}

static bool is_dotted_name(const char *name)
{
	_cleanup_free_ char *copy = strdup(name);
	char *rest = copy, *part;
	while ((part = strsep(&rest, "."))) {
		if (!ps_is_identifier(part))
			return false;
	}
	return copy;
}

/** Scripts of the same folder whose name is near. */
static char *nearest_files(const char *name)
{
	const char *slash = strrchr(name, '/');
	_cleanup_free_ char *folder = slash ? strndup(name, slash + 1 - name) : strdup(".");
	_cleanup_closedir_ DIR *dir = folder ? opendir(folder) : NULL;
	struct ps_nearest nearest;
	ps_nearest_init(&nearest, slash ? slash + 1 : name);
	const struct dirent *entry;
	while (dir && (entry = readdir(dir))) {
		if (has_suffix(entry->d_name, ".py") || has_suffix(entry->d_name, ".so"))
			ps_nearest_add(&nearest, entry->d_name);
	}
	char *text = ps_nearest_text(&nearest);
	ps_nearest_deinit(&nearest);
	return text;
}

static struct ps_error *no_such_file(const char *name)
{
	_cleanup_free_ char *nearest = nearest_files(name);
	return NO_SCRIPT("%s: no such file%s", name, nearest ? nearest : "");
}

struct ps_error *ps_location_find(const char *name, struct ps_location *ret)
{
	struct stat status;
	bool exists = !stat(name, &status);
	if (exists && !S_ISDIR(status.st_mode))
		return location_of_file(name, ret);
	if (!exists && errno != ENOENT && errno != ENOTDIR)
		return script_error_os(errno, name);

	bool is_file_name = has_suffix(name, ".py") || has_suffix(name, ".so");
	if (!is_file_name && is_dotted_name(name)) {
		char *module = strdup(name);
		if (!module)
			return &ps_enomem;
		*ret = (struct ps_location){ PS_LOCATION_MODULE, NULL, module };
		return NULL;
	}
	return exists ? NO_SCRIPT("%s: is a folder; name a file in it", name) : no_such_file(name);
}

static bool is_regular_file(const char *path)
{
	struct stat status;
	return !stat(path, &status) && S_ISREG(status.st_mode);
}

/** Take @folder/@name@suffix where it is a file; *@ret stays as it is where not. */
static struct ps_error *location_try(const char *folder, const char *name, const char *suffix,
				     struct ps_location *ret)
{
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/%s%s", *folder ? folder : ".", name, suffix) < 0) {
		path = NULL;
		return &ps_enomem;
	}
	return is_regular_file(path) ? location_of_file(path, ret) : NULL;
}

/** Where this program's scripts lie, from where it lies itself: installed, or in the tree that built it. */
static struct ps_error *location_try_beside(const char *name, const char *folder,
					    struct ps_location *ret)
{
	char exe[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (length < 0)
		return NULL;
	exe[length] = 0;
	char *slash = strrchr(exe, '/');
	if (!slash)
		return NULL;
	*slash = 0;
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/../%s", exe, folder) < 0) {
		path = NULL;
		return &ps_enomem;
	}
	_cleanup_free_ char *real = realpath(path, NULL);
	return real ? location_try(real, name, ".py", ret) : NULL;
}

struct ps_error *ps_location_find_shipped(const char *name, struct ps_location *ret)
{
	*ret = (struct ps_location){ 0 };
	if (!ps_is_identifier(name))
		return NULL;
	const char *folder = getenv("PERFSCOPE_SCRIPTS");
	if (folder && *folder)
		return location_try(folder, name, ".py", ret);
	struct ps_error *error = location_try_beside(name, "share/perfscope/scripts", ret);
	if (!error && !ret->path)
		error = location_try_beside(name, "scripts", ret);
	if (!error && !ret->path)
		error = location_try(PS_SCRIPTS_DIR, name, ".py", ret);
	return error;
}

struct ps_error *ps_location_find_module(const char *name, struct ps_location *ret)
{
	static const char *const suffixes[] = { "/__init__.py", ".py" };
	const char *pythonpath = getenv("PYTHONPATH");
	_cleanup_free_ char *file = strdup(name), *folders = NULL;
	if (!file || asprintf(&folders, ".:%s", pythonpath ? pythonpath : "") < 0) {
		folders = NULL;
		return &ps_enomem;
	}
	for (char *at = file; *at; at++) {
		if (*at == '.')
			*at = '/';
	}
	*ret = (struct ps_location){ 0 };
	struct ps_error *error = NULL;
	char *rest = folders, *folder;
	while (!error && !ret->path && (folder = strsep(&rest, ":"))) {
		for (size_t i = 0; !error && !ret->path && i < PS_ARRAY_SIZE(suffixes); i++)
			error = location_try(folder, file, suffixes[i], ret);
	}
	return error;
}
