// SPDX-License-Identifier: MIT
#include "probe_find.h"

#include <glob.h>
#include <string.h>
#include <sys/stat.h>

static bool is_regular(const char *path)
{
	struct stat status;
	return !stat(path, &status) && S_ISREG(status.st_mode);
}

/** Whether @folder has a program or library @file; libc.so is a text on some systems, and is none. */
static bool try_folder(const char *folder, size_t length, const char *file, char **ret)
{
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%.*s/%s", (int)length, folder, file) < 0) {
		path = NULL;
		return false;
	}
	if (!is_regular(path))
		return false;
	struct ps_elf elf;
	struct ps_error *error = ps_elf_open(path, &elf);
	if (error) {
		ps_error_destroy(error);
		return false;
	}
	ps_elf_close(&elf);
	*ret = take_ptr(path);
	return true;
}

/** Search the folders of @list, parted by colons; relative ones are passed over. */
static bool try_list(const char *list, const char *file, char **ret)
{
	while (list && *list) {
		size_t length = strcspn(list, ":");
		if (*list == '/' && try_folder(list, length, file, ret))
			return true;
		list += length + (list[length] == ':');
	}
	return false;
}

/** Search the folders that a file of the dynamic linker's configuration names, one a line. */
static bool try_configuration(const char *path, const char *file, char **ret)
{
	_cleanup_fclose_ FILE *lines = fopen(path, "re");
	char line[4096];
	while (lines && fgets(line, sizeof(line), lines)) {
		size_t length = strcspn(line, " \t\r\n");
		if (*line == '/' && try_folder(line, length, file, ret))
			return true;
	}
	return false;
}

static bool try_libraries(const char *file, char **ret)
{
	if (try_list(getenv("LD_LIBRARY_PATH"), file, ret))
		return true;
	glob_t found = { 0 };
	bool is_found = false;
	if (!glob("/etc/ld.so.conf.d/*.conf", 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc && !is_found; i++)
			is_found = try_configuration(found.gl_pathv[i], file, ret);
	}
	globfree(&found);
	return is_found || try_list("/lib64:/usr/lib64:/lib:/usr/lib", file, ret);
}

/** No links are followed: /proc/PID/root/x lies in the folder tree of that process, not in ours. */
static struct ps_error *absolute_path(const char *file, char **ret)
{
	if (!strncmp(file, "./", 2))
		file += 2;
	_cleanup_free_ char *folder = *file == '/' ? strdup("") : getcwd(NULL, 0);
	const char *slash = *file == '/' ? "" : "/";
	char *path;
	if (!folder || asprintf(&path, "%s%s%s", folder, slash, file) < 0)
		return &ps_enomem;
	*ret = path;
	return NULL;
}

struct ps_error *ps_probe_file_path(const char *file, char **ret)
{
	if (strchr(file, '/'))
		return absolute_path(file, ret);
	if (try_list(getenv("PATH"), file, ret) || try_libraries(file, ret))
		return NULL;
	if (is_regular(file))
		return absolute_path(file, ret);
	return ps_error_format(PS_ERROR_NOT_FOUND,
			       "%s: no such program in PATH, no such library, and no such file in "
			       "the current folder",
			       file);
}
