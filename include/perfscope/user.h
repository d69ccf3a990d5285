// SPDX-License-Identifier: MIT
/**
 * User: whom --user becomes.
 */
#ifndef PERFSCOPE_USER_H
#define PERFSCOPE_USER_H

#include <perfscope/error.h>
#include <sys/types.h>

struct ps_user {
	const char *name; // borrowed
	uid_t uid;
	gid_t gid;
};

/** Look up @name; PS_ERROR_USAGE where there is no such user. */
struct ps_error *ps_user_find(const char *name, struct ps_user *ret);

/** Become @user with its groups, for good: that there is no way back is checked. */
struct ps_error *ps_user_become(const struct ps_user *user);

#endif
