// SPDX-License-Identifier: MIT
#include "venv.h"

#include <ctype.h>
#include <perfscope/log.h>
#include <stdbool.h>
#include <string.h>

/** The value of `key = value` where @line gives one of @key, NULL where not. */
static char *value_of(char *line, const char *key)
{
	size_t length = strlen(key);
	if (strncmp(line, key, length))
		return NULL;
	char *value = line + length + strspn(line + length, " \t");
	if (*value != '=')
		return NULL;
	value++;
	value += strspn(value, " \t");
	value[strcspn(value, " \t\r\n")] = 0;
	return value;
}

/** The version that pyvenv.cfg of @folder tells: `version` of venv, `version_info` of other makers. */
static char *read_version(const char *folder)
{
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/pyvenv.cfg", folder) < 0) {
		path = NULL;
		return NULL;
	}
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	_cleanup_free_ char *line = NULL, *version = NULL;
	size_t size = 0;
	while (file && !version && getline(&line, &size, file) >= 0) {
		char *value = value_of(line, "version");
		value = value ? value : value_of(line, "version_info");
		version = value ? strdup(value) : NULL;
	}
	return_ptr(version);
}

static bool is_version(const char *full, const char *version)
{
	size_t length = strlen(version);
	return !strncmp(full, version, length) && !isdigit((unsigned char)full[length]);
}

struct ps_error *ps_venv_executable(const char *version, char **ret)
{
	*ret = NULL;
	const char *folder = getenv("VIRTUAL_ENV");
	if (!folder || !*folder)
		return NULL;
	_cleanup_free_ char *executable = NULL, *full = read_version(folder);
	if (asprintf(&executable, "%s/bin/python", folder) < 0) {
		executable = NULL;
		return &ps_enomem;
	}
	if (!full || access(executable, X_OK)) {
		ps_log(PS_LOG_WARNING,
		       "virtual environment %s is not used: it has no %s (unset VIRTUAL_ENV)",
		       folder, full ? "bin/python" : "pyvenv.cfg with a version");
		return NULL;
	}
	if (!is_version(full, version))
		return ps_error_format(
			PS_ERROR_UNSUPPORTED,
			"virtual environment %s is of Python %s, this perfscope runs Python %s "
			"(deactivate it, or build perfscope with make PYTHON=%s)",
			folder, full, version, executable);
	*ret = take_ptr(executable);
	return NULL;
}
