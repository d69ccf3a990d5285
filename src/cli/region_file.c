// SPDX-License-Identifier: MIT
#include <perfscope/region_file.h>

#include <errno.h>
#include <fcntl.h>
#include <perfscope/cleanup.h>
#include <perfscope/leftover.h>
#include <perfscope/log.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_NAME "regions"

// What a signal handler removes; owner 0: nothing.
static char folder[4096], path[sizeof(folder) + sizeof("/" FILE_NAME)];
static volatile pid_t owner;

/** $XDG_RUNTIME_DIR, where nobody else writes: with sudo it may be another user's. NULL: no such folder. */
static const char *find_own_folder(void)
{
	const char *name = getenv("XDG_RUNTIME_DIR");
	struct stat status;
	if (!name || *name != '/' || stat(name, &status) || status.st_uid != geteuid() ||
	    status.st_mode & (S_IWGRP | S_IWOTH))
		return NULL;
	return name;
}

/** Remove @name in the folder @parent where its process has gone. Others may write to @parent: no link is followed. */
static void sweep_entry(int parent, const char *name, unsigned long ns)
{
	int pid;
	unsigned long long start;
	if (!ps_leftover_owner(name, '-', ns, &pid, &start) || !ps_leftover_is_gone(pid, start))
		return;
	_cleanup_close_ int fd =
		openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		unlinkat(fd, FILE_NAME, 0);
	bool is_removed = fd >= 0 && !unlinkat(parent, name, AT_REMOVEDIR);
	// Another run swept it, or a program of its run makes its file anew: neither is news.
	if (is_removed || (errno != ENOENT && errno != ENOTEMPTY && errno != EBUSY))
		ps_log(PS_LOG_INFO, "regions left by process %d: %s", pid,
		       is_removed ? "removed" : strerror(errno));
}

static void sweep(const char *parent)
{
	_cleanup_closedir_ DIR *entries = opendir(parent);
	unsigned long ns = ps_leftover_namespace();
	const struct dirent *entry;
	while (entries && (entry = readdir(entries)))
		sweep_entry(dirfd(entries), entry->d_name, ns);
}

/** Make the folder below @parent; an errno, 0: it is there. */
static int make_folder(const char *parent, const struct ps_user *user)
{
	char name[PS_LEFTOVER_NAME_SIZE];
	ps_leftover_name('-', name);
	if (snprintf(folder, sizeof(folder), "%s/%s", parent, name) >= (int)sizeof(folder))
		return ENAMETOOLONG;
	if (mkdir(folder, 0700))
		return errno;
	if (user && lchown(folder, user->uid, user->gid)) {
		int os_errno = errno;
		rmdir(folder);
		return os_errno;
	}
	snprintf(path, sizeof(path), "%s/" FILE_NAME, folder);
	return 0;
}

struct ps_error *ps_region_file_make(const struct ps_user *user, const char **ret)
{
	// Whom we become may not reach into a folder that is ours alone.
	const char *parents[] = { user ? NULL : find_own_folder(), "/dev/shm", "/tmp" };
	int os_errno = ENOENT;
	for (size_t i = 0; os_errno && i < PS_ARRAY_SIZE(parents); i++) {
		if (!parents[i])
			continue;
		sweep(parents[i]);
		os_errno = make_folder(parents[i], user);
	}
	if (os_errno)
		return ps_error_os(os_errno, "make a folder in /dev/shm or /tmp");
	static bool is_watching;
	if (!is_watching)
		atexit(ps_region_file_remove);
	is_watching = true;
	owner = getpid();
	*ret = path;
	return NULL;
}

void ps_region_file_remove(void)
{
	if (!owner || owner != getpid())
		return;
	owner = 0;
	unlink(path);
	rmdir(folder);
}
