// SPDX-License-Identifier: MIT
#include <perfscope/syscalls.h>

#include <perfscope/cleanup.h>

static const char *const syscall_names[] = {
#include <syscall_table.h>
};

const char *ps_syscall_name(int64_t nr)
{
	if (nr < 0 || (uint64_t)nr >= PS_ARRAY_SIZE(syscall_names))
		return NULL;
	return syscall_names[nr];
}
