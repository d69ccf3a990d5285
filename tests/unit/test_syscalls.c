// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/syscalls.h>
#include <sys/syscall.h>

TEST(syscalls, names_are_those_of_the_kernel_headers)
{
	ASSERT_STR_EQ(ps_syscall_name(SYS_getppid), "getppid");
	ASSERT_STR_EQ(ps_syscall_name(SYS_read), "read");
	ASSERT_STR_EQ(ps_syscall_name(SYS_openat), "openat");
	ASSERT_STR_EQ(ps_syscall_name(SYS_futex_waitv), "futex_waitv");
}

TEST(syscalls, calls_newer_than_the_headers_have_names)
{
	ASSERT_STR_EQ(ps_syscall_name(451), "cachestat");
	ASSERT_STR_EQ(ps_syscall_name(462), "mseal");
	ASSERT_STR_EQ(ps_syscall_name(469), "file_setattr");
}

TEST(syscalls, numbers_without_a_call_have_no_name)
{
	ASSERT_NULL(ps_syscall_name(-1));
	ASSERT_NULL(ps_syscall_name(INT64_MIN));
	ASSERT_NULL(ps_syscall_name(INT64_MAX));
	ASSERT_NULL(ps_syscall_name(100000));
	// A hole between two ranges: 387 to 402 were never given out.
	ASSERT_NULL(ps_syscall_name(400));
}
