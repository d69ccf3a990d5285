// SPDX-License-Identifier: MIT
#include "debuginfod.h"

#include <dlfcn.h>
#include <stdlib.h>

/** The library's functions, as elfutils declares them. */
struct debuginfod {
	void *library, *client;
	void *(*begin)(void);
	void (*end)(void *client);
	int (*find)(void *client, const unsigned char *build_id, int size, char **path);
	void (*set_progress)(void *client, int (*function)(void *client, long at, long of));
};

// The library hands no argument through to the function of progress.
static bool (*asked_is_stopping)(void);

static int end_when_stopping(void *client, long at, long of)
{
	return asked_is_stopping && asked_is_stopping();
}

static bool load(struct debuginfod *debuginfod)
{
	debuginfod->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!debuginfod->library)
		return false;
	debuginfod->begin = dlsym(debuginfod->library, "debuginfod_begin");
	debuginfod->end = dlsym(debuginfod->library, "debuginfod_end");
	debuginfod->find = dlsym(debuginfod->library, "debuginfod_find_debuginfo");
	debuginfod->set_progress = dlsym(debuginfod->library, "debuginfod_set_progressfn");
	if (!debuginfod->begin || !debuginfod->end || !debuginfod->find ||
	    !debuginfod->set_progress)
		return false;
	debuginfod->client = debuginfod->begin();
	return debuginfod->client;
}

struct ps_error *debuginfod_create(bool (*is_stopping)(void), struct debuginfod **ret)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	if (!urls || !*urls)
		return ps_error_format(
			PS_ERROR_USAGE,
			"--debuginfod: no server is named; set DEBUGINFOD_URLS, as to "
			"https://debuginfod.debian.net");
	struct debuginfod *debuginfod = calloc(1, sizeof(*debuginfod));
	if (!debuginfod)
		return &ps_enomem;
	if (!load(debuginfod)) {
		debuginfod_destroy(debuginfod);
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "--debuginfod: libdebuginfod.so.1 cannot be loaded; "
				       "apt-get install libdebuginfod1");
	}
	asked_is_stopping = is_stopping;
	debuginfod->set_progress(debuginfod->client, end_when_stopping);
	*ret = debuginfod;
	return NULL;
}

void debuginfod_destroy(struct debuginfod *debuginfod)
{
	if (!debuginfod)
		return;
	if (debuginfod->client)
		debuginfod->end(debuginfod->client);
	// The library stays: libcurl in it does not like to be unloaded.
	free(debuginfod);
}

int debuginfod_fetch(struct debuginfod *debuginfod, const uint8_t *build_id, size_t size)
{
	// A size of 0 would mean a text.
	if (!size)
		return -1;
	int fd = debuginfod->find(debuginfod->client, build_id, (int)size, NULL);
	return fd < 0 ? -1 : fd;
}
