// SPDX-License-Identifier: MIT
/**
 * Region file: where the programs of --run find the table of regions, and that it does not stay.
 */
#ifndef PERFSCOPE_REGION_FILE_H
#define PERFSCOPE_REGION_FILE_H

#include <perfscope/error.h>
#include <perfscope/user.h>

/**
 * Make a folder for the table that nobody else can write to, and remove those of runs that were killed.
 *
 * It lies in $XDG_RUNTIME_DIR where that is ours, else in /dev/shm or /tmp, and belongs to @user, whom this process is
 * going to become (NULL: nobody), so that it can still be removed. Removed at exit too. *@ret, the path of a file that
 * does not exist yet, stays this module's.
 */
struct ps_error *ps_region_file_make(const struct ps_user *user, const char **ret);

/** Remove the file and its folder, in the process that made them. Safe in a signal handler. */
void ps_region_file_remove(void);

#endif
