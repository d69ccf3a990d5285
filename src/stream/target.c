// SPDX-License-Identifier: MIT
#include <perfscope/target.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <string.h>
#include <sys/stat.h>

#define CPU_DIR "/sys/devices/system/cpu"
#define MAX_CPUS 65536 // eight times what a kernel can be built for

/** Ascending distinct numbers, while they are collected. */
struct numbers {
	int *values;
	size_t nr;
	size_t capacity;
};

static void numbers_p(struct numbers *numbers)
{
	free(numbers->values);
}
#define _cleanup_numbers_ _cleanup_(numbers_p)

/** Where @value is in @numbers, or belongs. */
static size_t numbers_find(const struct numbers *numbers, int value)
{
	size_t low = 0, high = numbers->nr;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (numbers->values[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool numbers_has(const struct numbers *numbers, int value)
{
	size_t at = numbers_find(numbers, value);
	return at < numbers->nr && numbers->values[at] == value;
}

static struct ps_error *numbers_add(struct numbers *numbers, int value)
{
	size_t at = numbers_find(numbers, value);
	if (at < numbers->nr && numbers->values[at] == value)
		return NULL;
	if (numbers->nr == numbers->capacity) {
		size_t capacity = numbers->capacity ? 2 * numbers->capacity : 16;
		int *values = reallocarray(numbers->values, capacity, sizeof(*values));
		if (!values)
			return &ps_enomem;
		numbers->values = values;
		numbers->capacity = capacity;
	}
	memmove(numbers->values + at + 1, numbers->values + at,
		(numbers->nr - at) * sizeof(*numbers->values));
	numbers->values[at] = value;
	numbers->nr++;
	return NULL;
}

/** Step over a number below @limit at *@text; false, and *@text untouched, when there is none. */
static bool parse_number(const char **text, long limit, int *ret)
{
	if (!isdigit((unsigned char)**text))
		return false;
	char *end;
	errno = 0;
	long value = strtol(*text, &end, 10);
	if (errno || value >= limit)
		return false;
	*text = end;
	*ret = value;
	return true;
}

/** Parse "N" or "N-M" at *@text, step over it and a comma behind it. */
static struct ps_error *parse_cpu_range(const char *list, const char **text,
					struct numbers *numbers)
{
	const char *at = *text;
	int first, last;
	bool is_good = parse_number(&at, MAX_CPUS, &first);
	last = first;
	if (is_good && *at == '-') {
		at++;
		is_good = parse_number(&at, MAX_CPUS, &last) && first <= last;
	}
	if (is_good && *at == ',' && at[1])
		at++;
	else if (is_good && *at)
		is_good = false;
	if (!is_good)
		return ps_error_format(PS_ERROR_USAGE,
				       "cpu list \"%s\": \"%s\" is not N or N-M, separated by "
				       "commas, like 0-3,8",
				       list, *text);
	for (int cpu = first; cpu <= last; cpu++) {
		struct ps_error *error = numbers_add(numbers, cpu);
		if (error)
			return error;
	}
	*text = at;
	return NULL;
}

static struct ps_error *parse_cpus(const char *list, struct numbers *numbers)
{
	const char *text = list;
	do {
		struct ps_error *error = parse_cpu_range(list, &text, numbers);
		if (error)
			return error;
	} while (*text);
	return NULL;
}

struct ps_error *ps_parse_cpu_list(const char *text, int **ret, size_t *ret_nr)
{
	_cleanup_numbers_ struct numbers numbers = { 0 };
	struct ps_error *error = parse_cpus(text, &numbers);
	if (error)
		return error;
	*ret = take_ptr(numbers.values);
	*ret_nr = numbers.nr;
	return NULL;
}

/** The first line of CPU_DIR/@name, which the caller frees. */
static struct ps_error *read_cpu_file(const char *name, char **ret)
{
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, CPU_DIR "/%s", name) < 0) {
		path = NULL;
		return &ps_enomem;
	}
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	if (!file)
		return ps_error_os(errno, "%s", path);
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t length = getline(&line, &size, file);
	if (length <= 0)
		return ps_error_format(PS_ERROR_BAD_DATA, "%s: empty", path);
	line[strcspn(line, "\n")] = 0;
	*ret = take_ptr(line);
	return NULL;
}

static struct ps_error *read_cpus(const char *name, struct numbers *numbers)
{
	_cleanup_free_ char *list = NULL;
	struct ps_error *error = read_cpu_file(name, &list);
	if (error)
		return error;
	return ps_error_context(parse_cpus(list, numbers), CPU_DIR "/%s", name);
}

/** Whether @cpu, which is not online, can be: the error says. */
static struct ps_error *explain_cpu(int cpu)
{
	_cleanup_numbers_ struct numbers present = { 0 };
	_cleanup_free_ char *list = NULL;
	struct ps_error *error = read_cpus("present", &present);
	if (!error)
		error = read_cpu_file("present", &list);
	if (error)
		return error;
	if (numbers_has(&present, cpu))
		return ps_error_format(PS_ERROR_NOT_FOUND,
				       "cpu %d is offline (to bring it back: "
				       "echo 1 >" CPU_DIR "/cpu%d/online)",
				       cpu, cpu);
	return ps_error_format(PS_ERROR_NOT_FOUND, "cpu %d does not exist here (%s)", cpu, list);
}

/** Set the offline CPUs of @target: those that are present and not @online. */
static struct ps_error *find_offline(const struct numbers *online, struct ps_target *target)
{
	_cleanup_numbers_ struct numbers present = { 0 }, offline = { 0 };
	struct ps_error *error = read_cpus("present", &present);
	for (size_t i = 0; i < present.nr && !error; i++) {
		if (!numbers_has(online, present.values[i]))
			error = numbers_add(&offline, present.values[i]);
	}
	if (error)
		return error;
	target->offline_cpus = take_ptr(offline.values);
	target->nr_offline = offline.nr;
	return NULL;
}

/** Set the CPUs of @target: those of @list, all of which must be online, or all that are. */
static struct ps_error *resolve_cpus(const char *list, struct ps_target *target)
{
	_cleanup_numbers_ struct numbers online = { 0 };
	struct ps_error *error = read_cpus("online", &online);
	if (error)
		return error;
	_cleanup_numbers_ struct numbers wanted = { 0 };
	if (list)
		error = parse_cpus(list, &wanted);
	for (size_t i = 0; i < wanted.nr && !error; i++) {
		if (!numbers_has(&online, wanted.values[i]))
			error = explain_cpu(wanted.values[i]);
	}
	if (error)
		return error;
	if (!list)
		error = find_offline(&online, target);
	if (error)
		return error;
	struct numbers *chosen = list ? &wanted : &online;
	target->cpus = take_ptr(chosen->values);
	target->nr_cpus = chosen->nr;
	target->is_cpu_list = list;
	return NULL;
}

/** The process that thread @tid belongs to; false: there is no such thread. */
static bool read_tgid(pid_t tid, pid_t *ret)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	while (file && getline(&line, &size, file) > 0) {
		if (sscanf(line, "Tgid: %d", ret) == 1)
			return true;
	}
	return false;
}

static struct ps_error *add_thread(pid_t tid, struct numbers *tids)
{
	pid_t pid;
	if (!read_tgid(tid, &pid))
		return ps_error_format(PS_ERROR_NOT_FOUND, "thread %d does not exist", tid);
	return numbers_add(tids, tid);
}

static struct ps_error *add_process(pid_t pid, struct numbers *tids)
{
	pid_t owner;
	if (!read_tgid(pid, &owner))
		return ps_error_format(PS_ERROR_NOT_FOUND, "process %d does not exist", pid);
	if (owner != pid)
		return ps_error_format(PS_ERROR_NOT_FOUND,
				       "%d is a thread of process %d (take -t %d or -p %d)", pid,
				       owner, pid, owner);
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	_cleanup_closedir_ DIR *folder = opendir(path);
	size_t nr_before = tids->nr;
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		struct ps_error *error = numbers_add(tids, atoi(entry->d_name));
		if (error)
			return error;
	}
	if (tids->nr == nr_before && !numbers_has(tids, pid))
		return ps_error_format(PS_ERROR_NOT_FOUND, "process %d has ended", pid);
	return NULL;
}

/** Call @add for each number of @list, the value of the option @option. */
static struct ps_error *add_list(const char *option, const char *list,
				 struct ps_error *(*add)(pid_t, struct numbers *),
				 struct numbers *tids)
{
	const char *text = list;
	do {
		int tid;
		bool is_good = parse_number(&text, INT_MAX, &tid) && tid > 0;
		if (!is_good || (*text && (*text != ',' || !text[1])))
			return ps_error_format(PS_ERROR_USAGE,
					       "%s %s: ids are positive numbers, separated by "
					       "commas",
					       option, list);
		struct ps_error *error = add(tid, tids);
		if (error)
			return error;
		text += *text == ',';
	} while (*text);
	return NULL;
}

static struct ps_error *resolve_threads(const struct ps_target_options *options,
					struct ps_target *target)
{
	_cleanup_numbers_ struct numbers tids = { 0 };
	struct ps_error *error = NULL;
	if (options->pids)
		error = add_list("-p", options->pids, add_process, &tids);
	if (options->tids && !error)
		error = add_list("-t", options->tids, add_thread, &tids);
	if (options->workload && !error)
		error = numbers_add(&tids, options->workload);
	if (error)
		return error;
	target->kind = PS_TARGET_THREADS;
	target->tids = take_ptr(tids.values);
	target->nr_tids = tids.nr;
	target->is_workload = options->workload;
	target->inherit_threads = options->workload && !options->inherit;
	return NULL;
}

/** Whether @path is @folder or lies in it. */
static bool is_inside(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	return !strncmp(path, folder, length) && (!path[length] || path[length] == '/');
}

/** The folder that --cgroup @path means; the caller frees it. */
static struct ps_error *find_cgroup(const char *path, char **ret)
{
	_cleanup_fclose_ FILE *mounts = setmntent("/proc/self/mounts", "re");
	if (!mounts)
		return ps_error_os(errno, "/proc/self/mounts");
	_cleanup_free_ char *found = NULL;
	struct mntent mount;
	char buffer[2 * PATH_MAX];
	while (getmntent_r(mounts, &mount, buffer, sizeof(buffer))) {
		if (strcmp(mount.mnt_type, "cgroup2"))
			continue;
		if (is_inside(path, mount.mnt_dir)) {
			free(found);
			found = strdup(path);
			break;
		}
		if (found)
			continue;
		const char *slash = *path == '/' ? "" : "/";
		if (asprintf(&found, "%s%s%s", mount.mnt_dir, slash, path) < 0) {
			found = NULL;
			return &ps_enomem;
		}
	}
	if (!found)
		return ps_error_format(PS_ERROR_UNSUPPORTED,
				       "--cgroup %s: no cgroup2 hierarchy is mounted (to mount "
				       "one: mount -t cgroup2 none /sys/fs/cgroup)",
				       path);
	*ret = take_ptr(found);
	return NULL;
}

static struct ps_error *resolve_cgroup(const char *path, struct ps_target *target)
{
	_cleanup_free_ char *folder = NULL;
	struct ps_error *error = find_cgroup(path, &folder);
	if (error)
		return error;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return ps_error_format(PS_ERROR_NOT_FOUND, "cgroup %s does not exist", folder);
	if (fd < 0)
		return ps_error_os(errno, "cgroup %s", folder);
	target->kind = PS_TARGET_CGROUP;
	target->cgroup_fd = fd;
	return NULL;
}

/** One kind of target at a time; processes and threads add up. */
static struct ps_error *check_options(const struct ps_target_options *options)
{
	bool has_threads = options->pids || options->tids;
	if (has_threads + !!options->cgroup + !!options->workload > 1)
		return ps_error_format(PS_ERROR_USAGE,
				       "-p or -t, --cgroup and --run exclude each other; "
				       "take one of them");
	return NULL;
}

struct ps_error *ps_target_resolve(const struct ps_target_options *options, struct ps_target *ret)
{
	struct ps_error *error = check_options(options);
	if (error)
		return error;
	struct ps_target target = {
		.kind = PS_TARGET_CPUS,
		.cgroup_fd = -1,
		.inherit = options->inherit,
	};
	error = resolve_cpus(options->cpus, &target);
	if (!error && options->cgroup)
		error = resolve_cgroup(options->cgroup, &target);
	else if (!error && (options->pids || options->tids || options->workload))
		error = resolve_threads(options, &target);
	if (error) {
		ps_target_deinit(&target);
		return error;
	}
	*ret = target;
	return NULL;
}

void ps_target_deinit(struct ps_target *target)
{
	free(target->cpus);
	free(target->offline_cpus);
	free(target->tids);
	if (target->cgroup_fd >= 0)
		close(target->cgroup_fd);
	*target = (struct ps_target){ .cgroup_fd = -1 };
}
