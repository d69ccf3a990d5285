// SPDX-License-Identifier: MIT
/** A program that unloads plugins with regions while a thread of theirs lives: region_host PLUGIN PLUGIN. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t barrier;

struct plugin {
	void *handle;
	int (*configure)(void);
	void (*pass)(void);
	int (*calls)(void);
};

static struct plugin load(const char *path)
{
	struct plugin plugin = { .handle = dlopen(path, RTLD_NOW) };
	if (!plugin.handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	plugin.configure = dlsym(plugin.handle, "plugin_configure");
	plugin.pass = dlsym(plugin.handle, "plugin_pass");
	plugin.calls = dlsym(plugin.handle, "plugin_calls");
	return plugin;
}

static void *outlive(void *plugin)
{
	((struct plugin *)plugin)->pass();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	struct plugin first = load(argv[1]), second = load(argv[2]);
	if (first.configure() || second.configure())
		return 3;
	first.pass();
	second.pass();
	second.pass();
	printf("%d %d\n", first.calls(), second.calls());
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_t thread;
	pthread_create(&thread, NULL, outlive, &first);
	pthread_barrier_wait(&barrier);
	dlclose(first.handle);
	dlclose(second.handle);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	printf("%d\n", load(argv[1]).configure());
	return 0;
}
