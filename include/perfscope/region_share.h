// SPDX-License-Identifier: MIT
/**
 * Memory for a table of regions that other processes find by a name in their environment.
 *
 * It is a segment of System V: unlike a file it cannot be cut, which would end all who look at it with SIGBUS, and it is
 * marked to go with the last process that has it, however that ends.
 */
#ifndef PERFSCOPE_REGION_SHARE_H
#define PERFSCOPE_REGION_SHARE_H

#include <perfscope/error.h>
#include <stdint.h>
#include <sys/types.h>

#define PS_REGION_SHARE_NAME_SIZE 40

struct ps_region_share {
	void *memory;	// NULL: none
	uint64_t token; // by which who opens it knows that it is the one
	char name[PS_REGION_SHARE_NAME_SIZE];
};

/** Make memory that only processes of @uid, and root, may have. Errors: no memory, or none of System V here. */
struct ps_error *ps_region_share_create(uid_t uid, gid_t gid, struct ps_region_share *ret);

/** The memory of the @name that another process made. Errors: there is none, or it is another's or of another size. */
struct ps_error *ps_region_share_open(const char *name, struct ps_region_share *ret);

/** Give it back; not with a table in it that is used. */
void ps_region_share_close(struct ps_region_share *share);

#endif
