// SPDX-License-Identifier: MIT
#include "table.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/shm.h>

/** The segment @id; NULL: there is none, or it is not to be had. */
static void *attach(int id)
{
	void *memory = shmat(id, NULL, 0);
	return memory == (void *)-1 ? NULL : memory;
}

/** Nobody looks for it in a core file. For memory of a table only: what is smaller has another's mapping behind it. */
static void leave_out_of_cores(void *memory)
{
	madvise(memory, TABLE_SIZE, MADV_DONTDUMP);
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

/** Why the kernel made no segment. */
static struct ps_error *make_refusal(int os_errno)
{
	if (os_errno == ENOSYS)
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "this kernel has no shared memory of System V "
				       "(CONFIG_SYSVIPC is off)");
	if (os_errno == EINVAL)
		return ps_error_format(
			PS_ERROR_OS,
			"shared memory is limited to less than the %zu bytes that are needed; "
			"sysctl kernel.shmmax raises that",
			TABLE_SIZE);
	if (os_errno == ENOSPC)
		return ps_error_format(
			PS_ERROR_OS,
			"no shared memory is left, of which %zu bytes are needed; ipcs -m "
			"shows who has it, sysctl kernel.shmmni and kernel.shmall allow more",
			TABLE_SIZE);
	return ps_error_os(os_errno, "shared memory of System V");
}

struct ps_error *ps_region_share_create(uid_t uid, gid_t gid, struct ps_region_share *ret)
{
	struct ps_region_share share;
	if (getrandom(&share.token, sizeof(share.token), 0) != sizeof(share.token))
		return ps_error_os(errno, "random bytes");
	int id = shmget(IPC_PRIVATE, TABLE_SIZE, IPC_CREAT | 0600);
	if (id < 0)
		return make_refusal(errno);
	share.memory = attach(id);
	struct ps_error *error =
		share.memory ? hand_over(id, uid, gid) : ps_error_os(errno, "attach shared memory");
	if (error) {
		shmctl(id, IPC_RMID, NULL);
		ps_region_share_close(&share);
		return error;
	}
	leave_out_of_cores(share.memory);
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
	leave_out_of_cores(share.memory);
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
