// SPDX-License-Identifier: MIT
#include <perfscope/tasks.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#define NONE UINT32_MAX
#define MIN_BUCKETS 1024

// From linux/sched.h; fixed since it shows in /proc/PID/stat.
#define PF_KTHREAD 0x00200000

/** One thread. Links are indices into the pool, so that the pool can move when it grows. */
struct task {
	pid_t tid; // 0: free for use
	bool is_dead;
	char comm[PS_COMM_SIZE];
	uint64_t time_ns;      // of the record that gave the name, 0: /proc
	uint32_t next;	       // in its bucket, or in the list of free ones
	uint32_t older, newer; // of the dead
};

struct ps_tasks {
	int proc_fd;
	struct task *pool;
	uint32_t nr_pool; // entries that are or were in use
	uint32_t capacity;
	uint32_t free; // the first that is free for use
	uint32_t *buckets;
	uint32_t nr_buckets; // a power of two
	uint32_t nr_live, nr_dead;
	uint32_t oldest_dead, newest_dead;
	uint32_t sweep_at; // look for threads whose EXIT was lost when so many seem to live
};

/* The table. */

static uint32_t bucket_of(const struct ps_tasks *tasks, pid_t tid)
{
	// Ids are handed out in sequence: neighbours go to neighbours.
	return (uint32_t)tid & (tasks->nr_buckets - 1);
}

static struct task *tasks_find(const struct ps_tasks *tasks, pid_t tid)
{
	for (uint32_t at = tasks->buckets[bucket_of(tasks, tid)]; at != NONE;
	     at = tasks->pool[at].next) {
		if (tasks->pool[at].tid == tid)
			return &tasks->pool[at];
	}
	return NULL;
}

static void tasks_link(struct ps_tasks *tasks, uint32_t at)
{
	uint32_t *bucket = &tasks->buckets[bucket_of(tasks, tasks->pool[at].tid)];
	tasks->pool[at].next = *bucket;
	*bucket = at;
}

static void tasks_unlink(struct ps_tasks *tasks, uint32_t at)
{
	uint32_t *link = &tasks->buckets[bucket_of(tasks, tasks->pool[at].tid)];
	while (*link != at)
		link = &tasks->pool[*link].next;
	*link = tasks->pool[at].next;
}

static bool tasks_set_buckets(struct ps_tasks *tasks, uint32_t nr)
{
	uint32_t *buckets = malloc(nr * sizeof(*buckets));
	if (!buckets)
		return false;
	memset(buckets, 0xff, nr * sizeof(*buckets)); // NONE
	free(tasks->buckets);
	tasks->buckets = buckets;
	tasks->nr_buckets = nr;
	return true;
}

/** Double the pool and the buckets. Only called while no entry is free: all are linked anew. */
static bool tasks_grow(struct ps_tasks *tasks)
{
	uint32_t capacity = tasks->capacity ? 2 * tasks->capacity : MIN_BUCKETS;
	struct task *pool = reallocarray(tasks->pool, capacity, sizeof(*pool));
	if (!pool)
		return false;
	tasks->pool = pool;
	if (!tasks_set_buckets(tasks, capacity))
		return false;
	tasks->capacity = capacity;
	for (uint32_t at = 0; at < tasks->nr_pool; at++)
		tasks_link(tasks, at);
	return true;
}

/* The dead, oldest first. */

/** Where the link to the entry newer than @at stands; NONE stands for the end of the list. */
static uint32_t *newer_link(struct ps_tasks *tasks, uint32_t at)
{
	return at == NONE ? &tasks->oldest_dead : &tasks->pool[at].newer;
}

static uint32_t *older_link(struct ps_tasks *tasks, uint32_t at)
{
	return at == NONE ? &tasks->newest_dead : &tasks->pool[at].older;
}

static void dead_unlink(struct ps_tasks *tasks, struct task *task)
{
	*newer_link(tasks, task->older) = task->newer;
	*older_link(tasks, task->newer) = task->older;
	task->older = task->newer = NONE;
	task->is_dead = false;
	tasks->nr_dead--;
}

/** Take @task back among the living: its id was reused. */
static void task_revive(struct ps_tasks *tasks, struct task *task)
{
	if (!task->is_dead)
		return;
	dead_unlink(tasks, task);
	tasks->nr_live++;
}

static void tasks_remove(struct ps_tasks *tasks, struct task *task)
{
	task_revive(tasks, task);
	tasks->nr_live--;
	uint32_t at = task - tasks->pool;
	tasks_unlink(tasks, at);
	task->tid = 0;
	task->next = tasks->free;
	tasks->free = at;
}

static void task_bury(struct ps_tasks *tasks, struct task *task)
{
	if (task->is_dead)
		return;
	uint32_t at = task - tasks->pool;
	task->is_dead = true;
	task->older = tasks->newest_dead;
	*newer_link(tasks, tasks->newest_dead) = at;
	tasks->newest_dead = at;
	tasks->nr_live--;
	if (++tasks->nr_dead <= PS_TASKS_MAX_DEAD)
		return;
	tasks_remove(tasks, &tasks->pool[tasks->oldest_dead]);
}

/** Bury those that are gone though no record told: records can be lost. */
static void tasks_sweep(struct ps_tasks *tasks)
{
	for (uint32_t at = 0; at < tasks->nr_pool; at++) {
		struct task *task = &tasks->pool[at];
		if (!task->tid || task->is_dead)
			continue;
		char name[16];
		snprintf(name, sizeof(name), "%d", task->tid);
		if (faccessat(tasks->proc_fd, name, F_OK, 0) && errno == ENOENT)
			task_bury(tasks, task);
	}
	tasks->sweep_at = 2 * tasks->nr_live + PS_TASKS_MAX_DEAD;
}

/** A linked live entry for @tid, which has none; NULL: no memory. */
static struct task *tasks_add(struct ps_tasks *tasks, pid_t tid)
{
	if (tasks->nr_live >= tasks->sweep_at)
		tasks_sweep(tasks);
	uint32_t at = tasks->free;
	if (at != NONE)
		tasks->free = tasks->pool[at].next;
	else if (tasks->nr_pool < tasks->capacity || tasks_grow(tasks))
		at = tasks->nr_pool++;
	else
		return NULL;
	tasks->pool[at] = (struct task){ .tid = tid, .older = NONE, .newer = NONE };
	tasks_link(tasks, at);
	tasks->nr_live++;
	return &tasks->pool[at];
}

/* Names from /proc. */

/** The bytes of @path below @folder_fd, at most @size of them; 0 where it cannot be read. */
static size_t read_at(int folder_fd, const char *path, char *ret, size_t size)
{
	_cleanup_close_ int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, ret, size);
	return length > 0 ? length : 0;
}

/** Whether @tid, a folder of @folder_fd, is a thread of the kernel. */
static bool is_kernel_thread(int folder_fd, const char *tid)
{
	char path[32], stat[512];
	snprintf(path, sizeof(path), "%s/stat", tid);
	size_t length = read_at(folder_fd, path, stat, sizeof(stat) - 1);
	stat[length] = 0;
	// The name in parentheses can hold anything, parentheses too.
	const char *rest = strrchr(stat, ')');
	unsigned int flags;
	return rest && sscanf(rest, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & PF_KTHREAD;
}

/**
 * Read the name of @tid, a folder of @folder_fd: @ret is PS_COMM_SIZE bytes.
 *
 * /proc shows more of kernel threads than their name: what a worker does ("kworker/0:1-events"), and names in full
 * that are cut elsewhere. Here it is what the records and tracepoints say.
 */
static bool read_comm(int folder_fd, const char *tid, char *ret)
{
	char path[32], comm[64] = "";
	snprintf(path, sizeof(path), "%s/comm", tid);
	size_t length = read_at(folder_fd, path, comm, sizeof(comm) - 1);
	if (!length)
		return false;
	if (comm[length - 1] == '\n')
		length--;
	comm[length] = 0;
	bool is_worker = !strncmp(comm, "kworker/", 8) && comm[8] != 'R';
	if (is_worker && is_kernel_thread(folder_fd, tid))
		comm[strcspn(comm, "+-")] = 0;
	memset(ret, 0, PS_COMM_SIZE);
	memcpy(ret, comm, strnlen(comm, PS_COMM_SIZE - 1));
	return true;
}

/** Take the name of @tid, a folder of @folder_fd, as it is now; NULL: it is gone, or no memory. */
static struct task *tasks_read(struct ps_tasks *tasks, int folder_fd, const char *tid)
{
	char comm[PS_COMM_SIZE];
	if (!read_comm(folder_fd, tid, comm))
		return NULL;
	struct task *task = tasks_find(tasks, atoi(tid));
	if (task)
		task_revive(tasks, task);
	else
		task = tasks_add(tasks, atoi(tid));
	if (task)
		memcpy(task->comm, comm, sizeof(comm));
	return task;
}

/** Open the folder @path below @folder_fd; NULL: it is gone. */
static DIR *open_folder(int folder_fd, const char *path)
{
	int fd = openat(folder_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder && fd >= 0)
		close(fd);
	return folder;
}

static void snapshot_process(struct ps_tasks *tasks, const char *pid)
{
	char path[32];
	snprintf(path, sizeof(path), "%s/task", pid);
	_cleanup_closedir_ DIR *folder = open_folder(tasks->proc_fd, path);
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		if (isdigit((unsigned char)entry->d_name[0]))
			tasks_read(tasks, dirfd(folder), entry->d_name);
	}
}

void ps_tasks_snapshot(struct ps_tasks *tasks, const pid_t *pids, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		char pid[16];
		snprintf(pid, sizeof(pid), "%d", pids[i]);
		snapshot_process(tasks, pid);
	}
	if (pids)
		return;
	_cleanup_closedir_ DIR *folder = open_folder(tasks->proc_fd, ".");
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		if (isdigit((unsigned char)entry->d_name[0]))
			snapshot_process(tasks, entry->d_name);
	}
}

/* Records. */

/** PERF_RECORD_COMM; the name ends with a NUL. */
struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];
};

/** PERF_RECORD_FORK and PERF_RECORD_EXIT. */
struct task_record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
};

/** Whether what is known of @task is from a later record: rings need not come in the order of time. */
static bool is_outdated(const struct task *task, uint64_t time_ns)
{
	return time_ns && time_ns < task->time_ns;
}

static void task_rename(struct task *task, const char *comm, size_t size, uint64_t time_ns)
{
	size_t length = strnlen(comm, size < PS_COMM_SIZE ? size : PS_COMM_SIZE - 1);
	memset(task->comm, 0, sizeof(task->comm));
	memcpy(task->comm, comm, length);
	task->time_ns = time_ns;
}

static void follow_comm(struct ps_tasks *tasks, const struct comm_record *record, uint64_t time_ns)
{
	struct task *task = tasks_find(tasks, record->tid);
	if (task && is_outdated(task, time_ns))
		return;
	// A thread that calls exec takes over the id of the process's first thread, which ended.
	if (task && record->header.misc & PERF_RECORD_MISC_COMM_EXEC)
		task_revive(tasks, task);
	if (!task)
		task = tasks_add(tasks, record->tid);
	if (task)
		task_rename(task, record->comm, record->header.size - sizeof(*record), time_ns);
}

/** The new thread starts with the name of the one that made it. */
static void follow_fork(struct ps_tasks *tasks, const struct task_record *record, uint64_t time_ns)
{
	struct task *task = tasks_find(tasks, record->tid);
	if (task && is_outdated(task, time_ns))
		return;
	if (task)
		tasks_remove(tasks, task);
	// 0 is no idle thread here, they have no children: the parent is in another pid namespace.
	pid_t ptid = record->ptid;
	const char *parent = ptid > 0 ? ps_tasks_comm(tasks, ptid) : NULL;
	if (!parent)
		return;
	char comm[PS_COMM_SIZE];
	memcpy(comm, parent, sizeof(comm)); // adding may move the parent
	task = tasks_add(tasks, record->tid);
	if (task)
		task_rename(task, comm, sizeof(comm), time_ns);
}

static void follow_exit(struct ps_tasks *tasks, const struct task_record *record, uint64_t time_ns)
{
	struct task *task = tasks_find(tasks, record->tid);
	if (task && !is_outdated(task, time_ns))
		task_bury(tasks, task);
}

void ps_tasks_follow(struct ps_tasks *tasks, const struct perf_event_header *header,
		     uint64_t time_ns)
{
	const struct comm_record *comm = (const void *)header;
	const struct task_record *task = (const void *)header;
	// Ids that are not positive are threads of another pid namespace, or the idle threads.
	bool is_comm = header->type == PERF_RECORD_COMM;
	if (is_comm && header->size > sizeof(*comm) && (pid_t)comm->tid > 0)
		follow_comm(tasks, comm, time_ns);
	if (is_comm || header->size < sizeof(*task) || (pid_t)task->tid <= 0)
		return;
	if (header->type == PERF_RECORD_FORK)
		follow_fork(tasks, task, time_ns);
	else if (header->type == PERF_RECORD_EXIT)
		follow_exit(tasks, task, time_ns);
}

/* The whole. */

const char *ps_tasks_comm(struct ps_tasks *tasks, pid_t tid)
{
	static const char swapper[PS_COMM_SIZE] = "swapper";
	if (!tid)
		return swapper;
	struct task *task = tasks_find(tasks, tid);
	if (PS_LIKELY(task))
		return task->comm;
	if (tid < 0)
		return NULL;
	char name[16];
	snprintf(name, sizeof(name), "%d", tid);
	task = tasks_read(tasks, tasks->proc_fd, name);
	return task ? task->comm : NULL;
}

size_t ps_tasks_size(const struct ps_tasks *tasks)
{
	return tasks->nr_live + tasks->nr_dead;
}

struct ps_error *ps_tasks_create(struct ps_tasks **ret)
{
	struct ps_tasks *tasks = calloc(1, sizeof(*tasks));
	if (!tasks)
		return &ps_enomem;
	tasks->free = tasks->oldest_dead = tasks->newest_dead = NONE;
	tasks->sweep_at = PS_TASKS_MAX_DEAD;
	tasks->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct ps_error *error = NULL;
	if (tasks->proc_fd < 0)
		error = ps_error_os(errno, "names of threads: open /proc");
	else if (!tasks_grow(tasks))
		error = &ps_enomem;
	if (error) {
		ps_tasks_destroy(tasks);
		return error;
	}
	*ret = tasks;
	return NULL;
}

void ps_tasks_destroy(struct ps_tasks *tasks)
{
	if (!tasks)
		return;
	if (tasks->proc_fd >= 0)
		close(tasks->proc_fd);
	free(tasks->buckets);
	free(tasks->pool);
	free(tasks);
}
