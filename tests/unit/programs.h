// SPDX-License-Identifier: MIT
/**
 * Programs that a test builds in a folder of its own, and what nm says of them.
 */
#ifndef PERFSCOPE_PROGRAMS_H
#define PERFSCOPE_PROGRAMS_H

#include "test.h"

#include <inttypes.h>
#include <stdarg.h>

static char folder[64]; // of this program's, "" before the first use

static void remove_folder(void)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (folder[0] && system(command))
		perror("rm");
}

/** Run a shell command in the folder; it must succeed. */
__attribute__((format(printf, 1, 2))) static void run(const char *format, ...)
{
	if (!folder[0]) {
		strcpy(folder, "/tmp/perfscope-symbol-XXXXXX");
		ASSERT_NOT_NULL(mkdtemp(folder));
		atexit(remove_folder);
	}
	char command[4096];
	int start = snprintf(command, sizeof(command), "cd %s && ", folder);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(command + start, sizeof(command) - start, format, arguments);
	va_end(arguments);
	if (system(command))
		fail_msg("failed: %s", command);
}

static const char *path_of(const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static inline void write_file(const char *name, const char *text)
{
	run("true");
	FILE *file = fopen(path_of(name), "w");
	ASSERT_NOT_NULL(file);
	fputs(text, file);
	fclose(file);
}

/** The address that nm tells of @symbol in the file @name. */
static inline uint64_t nm(const char *name, const char *symbol)
{
	char command[PATH_MAX + 256], line[512], found[400];
	snprintf(command, sizeof(command), "nm %s 2>/dev/null; nm -D %s", path_of(name),
		 path_of(name));
	FILE *pipe = popen(command, "r");
	unsigned long address = 0, value;
	while (fgets(line, sizeof(line), pipe)) {
		if (sscanf(line, "%lx %*c %399s", &value, found) == 2 && !strcmp(found, symbol))
			address = value;
	}
	pclose(pipe);
	if (!address)
		fail_msg("nm knows no %s in %s", symbol, name);
	return address;
}

#endif
