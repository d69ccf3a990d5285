// SPDX-License-Identifier: MIT
/**
 * Where cgroups of version 2 are mounted, as it differs from system to system.
 */
#ifndef PERFSCOPE_CGROUP2_H
#define PERFSCOPE_CGROUP2_H

#include <perfscope/cleanup.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/** The first cgroup2 mount point; false: there is none. */
static inline bool find_cgroup2(char *ret, size_t size)
{
	_cleanup_fclose_ FILE *mounts = fopen("/proc/self/mounts", "re");
	char type[64], format[64];
	snprintf(format, sizeof(format), "%%*s %%%zus %%63s %%*[^\n]", size - 1);
	while (mounts && fscanf(mounts, format, ret, type) == 2) {
		if (!strcmp(type, "cgroup2"))
			return true;
	}
	return false;
}

#endif
