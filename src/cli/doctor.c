// SPDX-License-Identifier: MIT
#include <perfscope/doctor.h>

#include "doctor_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <perfscope/log.h>
#include <perfscope/script.h>
#include <perfscope/target.h>
#include <perfscope/text.h>
#include <perfscope/tracepoint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

// The default ring of a session, one a CPU. Of many CPUs so many are tried: memory is really taken.
#define RING_KB 4096
#define MAX_TRIED_RINGS 16

// Room for so many events, and for what else is open.
#define WANTED_EVENTS 16
#define OTHER_FDS 64

struct finding found(bool is_able, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	struct finding finding = { is_able, ps_text_format(format, arguments) };
	va_end(arguments);
	return finding;
}

/** What @error, which is taken over, says. */
static struct finding no_because(struct ps_error *error)
{
	struct finding finding = NO("%s", error->message);
	ps_error_destroy(error);
	return finding;
}

/** The number in /proc/sys/kernel/@name; @otherwise where there is none. */
static int read_sysctl(const char *name, int otherwise)
{
	char path[100];
	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	int value;
	return file && fscanf(file, "%d", &value) == 1 ? value : otherwise;
}

static bool has_capability(int capability)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t effective;
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CapEff: %" SCNx64, &effective) == 1)
			return effective >> capability & 1;
	}
	return false;
}

int open_event(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	attr->size = sizeof(*attr);
	attr->disabled = 1;
	return syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

struct finding explain_open(int os_errno, int wanted)
{
	int paranoid = read_sysctl("perf_event_paranoid", 2);
	if (os_errno == ENOSYS)
		return NO("this kernel has no perf events; knob: one with CONFIG_PERF_EVENTS");
	if (os_errno != EACCES && os_errno != EPERM)
		return NO("%s; knob: none known", strerror(os_errno));
	if (has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN))
		return NO("refused in spite of CAP_PERFMON, as containers do; "
			  "knob: run the container with --privileged");
	if (paranoid <= wanted)
		return NO("%s; knob: run as root", strerror(os_errno));
	return NO("perf_event_paranoid is %d; knob: sysctl kernel.perf_event_paranoid=%d", paranoid,
		  wanted);
}

static struct finding check_tracefs(void)
{
	const char *tracefs;
	struct ps_error *error = ps_tracefs_path(&tracefs);
	return error ? no_because(error) : YES("%s", tracefs);
}

static struct finding check_tracepoints(void)
{
	const char *tracefs;
	struct ps_error *error = ps_tracefs_path(&tracefs);
	if (error) {
		ps_error_destroy(error);
		return NO("needs tracefs; knob: see there");
	}
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW,
	};
	uint64_t id;
	error = ps_tracepoint_read_id(tracefs, "sched", "sched_switch", &id);
	if (error)
		return no_because(error);
	attr.config = id;
	_cleanup_close_ int fd = open_event(&attr, 0, -1);
	return fd < 0 ? explain_open(errno, -1) : YES("sched:sched_switch");
}

static struct finding check_system_wide(void)
{
	struct ps_target target;
	struct ps_error *error = ps_target_resolve(&(struct ps_target_options){ 0 }, &target);
	if (error)
		return no_because(error);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
	};
	int nr_open = 0, os_errno = 0;
	for (size_t i = 0; i < target.nr_cpus; i++) {
		_cleanup_close_ int fd = open_event(&attr, -1, target.cpus[i]);
		if (fd >= 0)
			nr_open++;
		else
			os_errno = errno;
	}
	int nr_cpus = target.nr_cpus;
	ps_target_deinit(&target);
	return nr_open == nr_cpus ? YES("%d CPUs", nr_cpus) : explain_open(os_errno, 0);
}

static struct finding check_own_counters(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
	};
	_cleanup_close_ int fd = open_event(&attr, 0, -1);
	if (fd >= 0)
		return YES("in user space and in the kernel");
	attr.exclude_kernel = 1;
	_cleanup_close_ int user_fd = open_event(&attr, 0, -1);
	if (user_fd < 0)
		return explain_open(errno, 2);
	return YES("in user space only; the kernel's share: sysctl kernel.perf_event_paranoid=1");
}

int read_pmu_type(const char *name)
{
	char path[100];
	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", name);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	int type;
	return file && fscanf(file, "%d", &type) == 1 ? type : -1;
}

/** Open a probe of the PMU @pmu that ends with its descriptor: 0, or errno. */
static int try_probe(const char *pmu, const char *where, uint64_t offset)
{
	struct perf_event_attr attr = {
		.type = read_pmu_type(pmu),
		.config1 = (uintptr_t)where,
		.config2 = offset,
	};
	_cleanup_close_ int fd = open_event(&attr, 0, -1);
	return fd < 0 ? errno : 0;
}

/** Whether probes can be made by name in tracefs: the file is only opened, never emptied. */
static struct finding check_probe_file(const char *name, const char *where)
{
	const char *tracefs;
	struct ps_error *error = ps_tracefs_path(&tracefs);
	if (error) {
		ps_error_destroy(error);
		return NO("needs tracefs; knob: see there");
	}
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", tracefs, name);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return NO("%s: %s; knob: run as root", path, strerror(errno));
	return YES("%s", where);
}

static struct finding check_kprobes(void)
{
	static const char where[] = "vfs_read";
	if (read_pmu_type("kprobe") < 0)
		return NO("this kernel has none; knob: one with CONFIG_KPROBE_EVENTS");
	int os_errno = try_probe("kprobe", where, 0);
	if (os_errno == EACCES || os_errno == EPERM)
		return NO("%s; knob: run as root", strerror(os_errno));
	if (os_errno)
		return NO("%s: %s; knob: none known", where, strerror(os_errno));
	return check_probe_file("kprobe_events", where);
}

/** Where the code at @address lies in this program's file; false: it is not to be found. */
static bool find_file_offset(uintptr_t address, uint64_t *ret)
{
	_cleanup_fclose_ FILE *maps = fopen("/proc/self/maps", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	while (maps && getline(&line, &size, maps) > 0) {
		uintptr_t start, end;
		uint64_t offset;
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNx64, &start, &end, &offset) !=
			    3 ||
		    address < start || address >= end)
			continue;
		*ret = address - start + offset;
		return true;
	}
	return false;
}

static struct finding check_uprobes(void)
{
	if (read_pmu_type("uprobe") < 0)
		return NO("this kernel has none; knob: one with CONFIG_UPROBE_EVENTS");
	uint64_t offset;
	if (!find_file_offset((uintptr_t)ps_cli_doctor, &offset))
		return NO("/proc/self/maps cannot be read; knob: mount /proc");
	int os_errno = try_probe("uprobe", "/proc/self/exe", offset);
	if (os_errno == EACCES || os_errno == EPERM)
		return NO("%s; knob: run as root", strerror(os_errno));
	if (os_errno)
		return NO("%s; knob: none known", strerror(os_errno));
	return check_probe_file("uprobe_events", "a function of perfscope itself");
}

/** Map a ring of the default size on @cpu, into @ret; 0, or errno. */
static int map_ring(int cpu, size_t size, void **ret)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};
	_cleanup_close_ int fd = open_event(&attr, 0, cpu);
	if (fd < 0)
		return errno;
	void *ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		return errno;
	*ret = ring; // it outlives the descriptor
	return 0;
}

static struct finding check_locked_memory(void)
{
	struct ps_target target;
	struct ps_error *error = ps_target_resolve(&(struct ps_target_options){ 0 }, &target);
	if (error)
		return no_because(error);
	void *rings[MAX_TRIED_RINGS];
	size_t nr_rings = 0, nr_cpus = target.nr_cpus;
	size_t nr_wanted = nr_cpus < MAX_TRIED_RINGS ? nr_cpus : MAX_TRIED_RINGS;
	size_t size = RING_KB * 1024 + getpagesize();
	int os_errno = 0;
	while (nr_rings < nr_wanted && !os_errno) {
		os_errno = map_ring(target.cpus[nr_rings], size, &rings[nr_rings]);
		nr_rings += !os_errno;
	}
	for (size_t i = 0; i < nr_rings; i++)
		munmap(rings[i], size);
	ps_target_deinit(&target);
	if (!os_errno)
		return YES("%zu rings of %d KiB for %zu CPUs", nr_rings, RING_KB, nr_cpus);
	if (os_errno != EPERM)
		return explain_open(os_errno, 2);
	return NO("ring %zu of %zu, %d KiB each, is refused; "
		  "knob: sysctl kernel.perf_event_mlock_kb=%d",
		  nr_rings + 1, nr_cpus, RING_KB, RING_KB + getpagesize() / 1024);
}

static struct finding check_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return NO("%s; knob: none known", strerror(errno));
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned long wanted = nr_cpus * WANTED_EVENTS + OTHER_FDS;
	if (limit.rlim_max < wanted)
		return NO("%lu at most, and an event takes one for each of %ld CPUs; "
			  "knob: ulimit -n %lu, as root",
			  (unsigned long)limit.rlim_max, nr_cpus, wanted);
	return YES("up to %lu; an event takes one for each of %ld CPUs",
		   (unsigned long)limit.rlim_max, nr_cpus);
}

static struct finding check_kernel_symbols(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/kallsyms", "re");
	if (!file)
		return NO("/proc/kallsyms: %s; knob: a kernel with CONFIG_KALLSYMS",
			  strerror(errno));
	// Variables of a CPU can lie at 0; code cannot.
	uint64_t address = 0;
	char kind = 0;
	while (kind != 't' && kind != 'T') {
		if (fscanf(file, "%" SCNx64 " %c %*[^\n]", &address, &kind) != 2)
			break;
	}
	if (address)
		return YES("/proc/kallsyms");
	int restrict_level = read_sysctl("kptr_restrict", 0);
	if (restrict_level)
		return NO("kptr_restrict is %d; knob: sysctl kernel.kptr_restrict=0",
			  restrict_level);
	return NO("addresses are hidden from this user; "
		  "knob: sysctl kernel.perf_event_paranoid=1");
}

static struct finding check_python(void)
{
	return YES("%s", ps_interp_version());
}

/** All abilities, in the order in which they are shown. */
static const struct {
	const char *name;
	struct finding (*check)(void);
	bool is_main; // without it perfscope cannot do its main job
} abilities[] = {
	{ "tracefs", check_tracefs, true },
	{ "tracepoint sampling", check_tracepoints, true },
	{ "system-wide", check_system_wide, false },
	{ "own counters", check_own_counters, false },
	{ "hardware PMU", check_pmu, false },
	{ "precise samples", check_precise, false },
	{ "branch stacks", check_branches, false },
	{ "memory samples", check_memory, false },
	{ "breakpoints", check_breakpoints, false },
	{ "kprobes", check_kprobes, false },
	{ "uprobes", check_uprobes, false },
	{ "time stamp counter", check_tsc, false },
	{ "locked memory", check_locked_memory, false },
	{ "descriptors", check_descriptors, false },
	{ "kernel symbols", check_kernel_symbols, false },
	{ "Python", check_python, false },
};

static const char usage[] =
	"Usage: perfscope doctor\n"
	"\n"
	"Try what perfscope needs, as the user that runs it. A line for each ability: its name,\n"
	"yes or no, what was found and, for a no, the one knob to turn. Nothing stays behind.\n"
	"\n"
	"Exit status: 0 where tracepoints can be sampled, 1 where not.\n";

int ps_cli_doctor(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
			fputs(usage, stdout);
			return 0;
		}
		ps_log(PS_LOG_ERROR,
		       "doctor takes no arguments, but got \"%s\"; see: "
		       "perfscope doctor --help",
		       argv[i]);
		return 2;
	}
	int status = 0;
	for (size_t i = 0; i < PS_ARRAY_SIZE(abilities); i++) {
		struct finding finding = abilities[i].check();
		printf("%-19s  %-3s  %s\n", abilities[i].name, finding.is_able ? "yes" : "no",
		       finding.detail ? finding.detail : ps_enomem.message);
		free(finding.detail);
		if (abilities[i].is_main && !finding.is_able)
			status = 1;
	}
	return status;
}
