// SPDX-License-Identifier: MIT
#include "table.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/shm.h>

static void *attach(int id)
{
	void *memory = shmat(id, NULL, 0);
	if (memory == (void *)-1)
		return NULL;
	madvise(memory, TABLE_SIZE, MADV_DONTDUMP); // nobody looks for it in a core file
	return memory;
}

/** Let the segment @id be @uid's, and go with the last process that has it: Linux still lets others have it until then. */
static struct ps_error *hand_over(int id, uid_t uid, gid_t gid)
{
	struct shmid_ds status;
	if (shmctl(id, IPC_STAT, &status))
		return ps_error_os(errno, "shared memory");
	status.shm_perm.uid = uid;
	status.shm_perm.gid = gid;
	if ((status.shm_perm.uid != geteuid() && shmctl(id, IPC_SET, &status)) ||
	    shmctl(id, IPC_RMID, NULL))
		return ps_error_os(errno, "give shared memory to user %d", (int)uid);
	return NULL;
}

struct ps_error *ps_region_share_create(uid_t uid, gid_t gid, struct ps_region_share *ret)
{
	struct ps_region_share share;
	if (getrandom(&share.token, sizeof(share.token), 0) != sizeof(share.token))
		return ps_error_os(errno, "random bytes");
	int id = shmget(IPC_PRIVATE, TABLE_SIZE, IPC_CREAT | 0600);
	if (id < 0)
		return ps_error_os(errno, "shared memory of System V");
	share.memory = attach(id);
	struct ps_error *error =
		share.memory ? hand_over(id, uid, gid) : ps_error_os(errno, "attach shared memory");
	if (error) {
		shmctl(id, IPC_RMID, NULL);
		ps_region_share_close(&share);
		return error;
	}
	// All pages now: a fault of a program then maps many at a time, and fewer fall into its regions.
	memset(share.memory, 0, TABLE_SIZE);
	snprintf(share.name, sizeof(share.name), "%d:%" PRIx64, id, share.token);
	*ret = share;
	return NULL;
}

struct ps_error *ps_region_share_open(const char *name, struct ps_region_share *ret)
{
	struct ps_region_share share;
	int id;
	if (sscanf(name, "%d:%" SCNx64, &id, &share.token) != 2)
		return ps_error_format(PS_ERROR_BAD_DATA, "%s: not a table of regions", name);
	share.memory = attach(id);
	if (!share.memory)
		return ps_error_os(errno, "open the table of regions %s", name);
	// Asked when it is ours to keep: the number could be another segment's before.
	struct shmid_ds status;
	if (shmctl(id, IPC_STAT, &status) || status.shm_segsz != TABLE_SIZE) {
		ps_region_share_close(&share);
		return ps_error_format(PS_ERROR_BAD_DATA,
				       "%s: not a table of regions of this version", name);
	}
	snprintf(share.name, sizeof(share.name), "%s", name);
	*ret = share;
	return NULL;
}

void ps_region_share_close(struct ps_region_share *share)
{
	if (share->memory)
		shmdt(share->memory);
	share->memory = NULL;
}
