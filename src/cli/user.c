// SPDX-License-Identifier: MIT
#include <perfscope/user.h>

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>

struct ps_error *ps_user_find(const char *name, struct ps_user *ret)
{
	errno = 0;
	const struct passwd *entry = getpwnam(name);
	// What getpwnam says of a user that is not there differs: see its manual page.
	if (!entry && (!errno || errno == ENOENT || errno == ESRCH || errno == EPERM))
		return ps_error_format(PS_ERROR_USAGE, "--user %s: there is no such user", name);
	if (!entry)
		return ps_error_os(errno, "--user %s", name);
	*ret = (struct ps_user){ name, entry->pw_uid, entry->pw_gid };
	return NULL;
}

static bool has_become(const struct ps_user *user)
{
	uid_t real, effective, saved;
	if (getresuid(&real, &effective, &saved))
		return false;
	bool is_user = real == user->uid && effective == user->uid && saved == user->uid;
	return is_user && getegid() == user->gid && (user->uid == 0 || setuid(0) != 0);
}

struct ps_error *ps_user_become(const struct ps_user *user)
{
	// The user last: without root the groups cannot be changed.
	if (initgroups(user->name, user->gid) || setgid(user->gid) || setuid(user->uid))
		return ps_error_hint(ps_error_os(errno, "--user %s", user->name),
				     "only root can become another user");
	if (!has_become(user))
		return ps_error_format(PS_ERROR_OS, "--user %s: root could be had back",
				       user->name);
	return NULL;
}
