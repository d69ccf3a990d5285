// SPDX-License-Identifier: MIT
#include "test.h"

#include "live_session.h"

TEST(session, where_nothing_remains_it_is_an_error)
{
	clear_sources();
	add_source("cycles", PERF_TYPE_HARDWARE, 99);
	struct ps_target target = own_thread();
	struct ps_session_options options = { 0 };
	ASSERT_ERROR(ps_session_open(&list, &target, &options, &session), PS_ERROR_UNSUPPORTED,
		     "not one event can be opened (cycles: no hardware PMU here; "
		     "nearest: task-clock)");
	clear_sources();
}

TEST(session, strict_refuses_a_missing_counter)
{
	clear_sources();
	add_source("page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	add_source("cycles", PERF_TYPE_HARDWARE, 99);
	struct ps_target target = own_thread();
	struct ps_session_options options = { .strict = true };
	ASSERT_ERROR(ps_session_open(&list, &target, &options, &session), PS_ERROR_UNSUPPORTED,
		     "cycles: no hardware PMU here; nearest: task-clock (--strict)");
	clear_sources();
}

TEST(session, the_nearest_of_a_hardware_counter_is_named)
{
	const char *reason, *nearest;
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE };
	ASSERT_TRUE(ps_refusal_is_missing(ENOENT, &attr, &reason, &nearest));
	ASSERT_STR_EQ(reason, "no hardware PMU here");
	ASSERT_STR_EQ(nearest, "cpu-clock");
	attr.type = 77;
	ASSERT_TRUE(ps_refusal_is_missing(ENODEV, &attr, &reason, &nearest));
	ASSERT_STR_EQ(reason, "this PMU has no such event");
	ASSERT_NULL(nearest);
	ASSERT_FALSE(ps_refusal_is_missing(EMFILE, &attr, &reason, &nearest));
	attr.type = PERF_TYPE_TRACEPOINT;
	ASSERT_FALSE(ps_refusal_is_missing(ENOENT, &attr, &reason, &nearest));
	// The counter is there, a part of its samples is not.
	attr = (struct perf_event_attr){ .type = PERF_TYPE_HARDWARE,
					 .sample_type = PERF_SAMPLE_BRANCH_STACK };
	ASSERT_FALSE(ps_refusal_is_missing(EOPNOTSUPP, &attr, &reason, &nearest));
}

static void check_reason(int os_errno, const struct perf_event_attr *attr, const char *expected)
{
	const char *reason, *nearest;
	ASSERT_TRUE(ps_refusal_is_missing(os_errno, attr, &reason, &nearest));
	ASSERT_STR_EQ(reason, expected);
}

TEST(session, what_a_pmu_lacks_is_told_as_that)
{
	is_with_pmu = true;
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE, .disabled = 1 };
	check_reason(EOPNOTSUPP, &attr, "the hardware PMU here has no such event");
	attr.precise_ip = 3;
	check_reason(EOPNOTSUPP, &attr,
		     "the hardware PMU here does not place samples so precisely (fewer p)");
	// Branches are an error: without them it would be another event than was asked for.
	const char *reason, *nearest;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	ASSERT_TRUE(!ps_refusal_is_missing(EOPNOTSUPP, &attr, &reason, &nearest));
	attr = (struct perf_event_attr){ .type = PERF_TYPE_HARDWARE };
	check_reason(EINVAL, &attr, "its group does not fit on the hardware PMU");
	is_with_pmu = false;
}

/** @filter is refused with @text. */
static void check_filter(const char *filter, const char *text)
{
	clear_sources();
	struct ps_source *source = add_tracepoint("sys_enter_kill");
	struct ps_field fields[] = { { .name = (char *)"common_pid" }, { .name = (char *)"pid" } };
	struct ps_schema schema = { .fields = fields, .nr_fields = 2 };
	source->schema = &schema;
	source->filter = (char *)filter;
	struct ps_target target = own_thread();
	struct ps_session_options options = { 0 };
	ASSERT_ERROR(ps_session_open(&list, &target, &options, &session), PS_ERROR_USAGE, text);
	clear_sources();
}

TEST(session, a_wrong_filter_is_refused_by_what_is_wrong)
{
	check_filter("((pid>1)",
		     "sys_enter_kill: filter '((pid>1)': a parenthesis is open; close it");
	check_filter("comm == \"x", "a quote is open");
	check_filter("pid > 1 && pidd == 3", "unknown field pidd; did you mean pid");
	check_filter("stack", "unknown field stack (attributes stand behind the filter");
	check_filter("comm ~ \"a b\" && sag > 1", "unknown field sag");
	check_filter("pid > 1)", "a parenthesis is closed that was not opened");
	check_filter("pid > 1 ||", "|| joins two comparisons; one is missing");
	check_filter("pid > 1 && (sig == 0 || )", "|| joins two comparisons; one is missing");
	check_filter("&& pid > 1", "&& joins two comparisons; one is missing");
	check_filter("pid > 1 || && sig == 0", "|| joins two comparisons; one is missing");
	check_filter("pid > 1 sig == 0", "something follows a comparison; join two by && or ||");
	check_filter("comm == 'x' && pid ~ 3", "the kernel refuses it");
	check_filter("pid == -1", "an unsigned field with no negative number");
	char text[8192];
	snprintf(text, sizeof(text), "comm == \"%0300d\"", 0);
	check_filter(text, "a string in it is longer than the 255 bytes");
	memset(text, ' ', 5000);
	strcpy(text + 5000, "pid > 1");
	check_filter(text, "it is longer than the 4095 bytes");
}

/** The caret below @filter stands at @column. */
static void check_caret(const char *filter, int column)
{
	clear_sources();
	struct ps_source *source = add_tracepoint("sys_enter_kill");
	source->filter = (char *)filter;
	struct ps_error *error = ps_filter_apply(source, -1);
	char text[128];
	snprintf(text, sizeof(text), "    %s\n    %*s^", filter, column, "");
	ASSERT_STR_EQ(error->detail, text);
	ps_error_destroy(error);
	clear_sources();
}

TEST(session, a_wrong_filter_is_shown_with_its_place)
{
	errno = 0;
	check_caret("pid > 1 ||", 8);
	check_caret("(a == 1 && ) || b == 2", 8);
}

TEST(session, a_thread_that_has_ended_is_an_error_in_words)
{
	clear_sources();
	add_tracepoint("sys_enter_getppid");
	pid_t child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	struct ps_target target = own_thread();
	target.tids = &child;
	struct ps_session_options options = { 0 };
	ASSERT_ERROR(ps_session_open(&list, &target, &options, &session), PS_ERROR_NOT_FOUND,
		     "not one event can be opened: the threads have ended");
	clear_sources();
}

TEST(session, too_few_descriptors_are_named_with_the_limit)
{
	clear_sources();
	add_tracepoint("sys_enter_getppid");
	add_tracepoint("sys_enter_kill");
	struct ps_target target = own_thread();
	struct ps_session_options options = { 0 };
	struct rlimit old, low;
	getrlimit(RLIMIT_NOFILE, &old);
	int fd = dup(0);
	close(fd);
	low = (struct rlimit){ fd + 2, fd + 2 };
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ fd + 2, old.rlim_max }))
		SKIP("the limit of descriptors cannot be set");
	// The soft limit alone is raised, and put back.
	ASSERT_OK(ps_session_open(&list, &target, &options, &session));
	struct rlimit now;
	getrlimit(RLIMIT_NOFILE, &now);
	ASSERT_EQ(now.rlim_cur, old.rlim_max);
	ps_session_destroy(session);
	getrlimit(RLIMIT_NOFILE, &now);
	ASSERT_EQ(now.rlim_cur, fd + 2);
	char text[256];
	snprintf(text, sizeof(text),
		 "too many open files (RLIMIT_NOFILE is %d, these events need 3;", fd + 2);
	// The hard limit comes back for root alone: in a child.
	pid_t child = fork();
	if (!child) {
		setrlimit(RLIMIT_NOFILE, &low);
		struct ps_error *error = ps_session_open(&list, &target, &options, &session);
		_exit(error && error->kind == PS_ERROR_LIMIT && strstr(error->message, text) ? 0
											     : 1);
	}
	int status;
	waitpid(child, &status, 0);
	setrlimit(RLIMIT_NOFILE, &old);
	ASSERT_EQ(status, 0);
	clear_sources();
}

#define USER 60123 // nobody else's, so that it has its quota of locked memory for itself

/** Run @test in a child that is another user, without any capability; its result is 0. */
static void as_user(int (*test)(void))
{
	if (geteuid())
		SKIP("needs root");
	pid_t child = fork();
	if (!child) {
		close(STDERR_FILENO); // warnings are wanted, and not here
		if (setgid(USER) || setuid(USER))
			_exit(100);
		_exit(test());
	}
	int status;
	waitpid(child, &status, 0);
	ASSERT_EQ(WEXITSTATUS(status), 0);
}

static int read_sysctl(const char *name)
{
	char path[128];
	int value = -1;
	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	FILE *file = fopen(path, "re");
	if (!file || fscanf(file, "%d", &value) != 1)
		SKIP("%s cannot be read", path);
	fclose(file);
	return value;
}

/** The refusal to open @name, of the kernel or not, has @text in it: 0. */
static int check_refusal(bool is_tracepoint, struct ps_target target, const char *text)
{
	clear_sources();
	struct ps_source *source =
		add_source("e", is_tracepoint ? PERF_TYPE_TRACEPOINT : PERF_TYPE_SOFTWARE, 1);
	if (is_tracepoint) {
		source->attr.sample_type = PERF_SAMPLE_RAW;
		source->attr.sample_period = 1;
		source->is_sampling = true;
	}
	struct ps_session_options options = { .want_tasks = true };
	struct ps_error *error = ps_session_open(&list, &target, &options, &session);
	return !(error && error->kind == PS_ERROR_PERMISSION && strstr(error->message, text));
}

static int refusals_as_user(void)
{
	static int cpus[] = { 0 };
	struct ps_target cpu = { .cpus = cpus, .nr_cpus = 1, .cgroup_fd = -1 };
	struct ps_target thread = own_thread();
	if (check_refusal(
		    false, thread,
		    "permission denied (perf_event_paranoid is 2; needs CAP_PERFMON or root, or "
		    "sysctl kernel.perf_event_paranoid=1, or :u behind the event"))
		return 1;
	if (check_refusal(false, cpu,
			  "open e on cpu 0: permission denied (perf_event_paranoid is 2; "
			  "needs CAP_PERFMON or root, or sysctl "
			  "kernel.perf_event_paranoid=0)"))
		return 2;
	if (check_refusal(true, cpu, "kernel.perf_event_paranoid=-1)"))
		return 3;
	static pid_t other = 1;
	thread.tids = &other;
	sources[0].attr.exclude_kernel = 1;
	return check_refusal(false, thread, "open e of thread 1: permission denied") ? 4 : 0;
}

TEST(session, a_refusal_names_the_knob)
{
	if (read_sysctl("perf_event_paranoid") != 2)
		SKIP("perf_event_paranoid is not 2");
	as_user(refusals_as_user);
}

static int small_rings_as_user(void)
{
	clear_sources();
	struct ps_source *source =
		add_source("cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	source->attr.exclude_kernel = 1;
	source->attr.sample_period = 1000000;
	source->is_sampling = true;
	struct rlimit none = { 0, 0 };
	setrlimit(RLIMIT_MEMLOCK, &none);
	struct ps_target target = own_thread();
	struct ps_session_options options = { .ring_bytes = 512 << 20 };
	if (ps_session_open(&list, &target, &options, &session))
		return 1;
	// The largest that fits with its control page.
	uint64_t quota =
		(uint64_t)read_sysctl("perf_event_mlock_kb") * 1024 * sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t size = session->rings[0].mask + 1, page = sysconf(_SC_PAGESIZE);
	return size + page <= quota && 2 * size + page > quota ? 0 : 2;
}

TEST(session, a_ring_beyond_the_quota_is_made_smaller)
{
	if (read_sysctl("perf_event_paranoid") > 2)
		SKIP("perf_event_paranoid is above 2");
	as_user(small_rings_as_user);
}

TEST(session, a_ring_beyond_what_the_kernel_makes_is_refused_in_words)
{
	clear_sources();
	add_tracepoint("sys_enter_getppid");
	struct ps_target target = own_thread();
	struct ps_session_options options = { .ring_bytes = 400ULL << 30 };
	ASSERT_ERROR(ps_session_open(&list, &target, &options, &session), PS_ERROR_USAGE,
		     "the kernel makes none above 1048576K; choose a smaller -m");
	clear_sources();
}

TEST(session, cpus_that_are_not_observed_are_refused)
{
	clear_sources();
	add_tracepoint("sys_enter_getppid")->cpus = (char *)"7-9";
	static int cpus[] = { 0 };
	struct ps_target target = { .cpus = cpus, .nr_cpus = 1, .cgroup_fd = -1 };
	struct ps_session_options options = { 0 };
	ASSERT_ERROR(ps_session_open(&list, &target, &options, &session), PS_ERROR_USAGE,
		     "sys_enter_getppid: cpus=7-9: none of these is observed");
	clear_sources();
}

TEST(session, a_refused_probe_is_told_as_one)
{
	struct perf_event_attr attr = { .type = 8, .sample_type = PERF_SAMPLE_RAW };
	struct ps_place place = { .cpu = 0, .tid = -1, .cgroup_fd = -1 };
	ASSERT_ERROR(ps_refusal_probe_error(EACCES, "uprobe:f", &attr, &place, 1),
		     PS_ERROR_PERMISSION,
		     "open uprobe:f: permission denied (it needs CAP_PERFMON or root)");
	ASSERT_ERROR(ps_refusal_probe_error(524, "uprobe:f", &attr, &place, 1),
		     PS_ERROR_UNSUPPORTED, "cannot probe the instruction there");
	ASSERT_ERROR(ps_refusal_probe_error(EILSEQ, "kprobe:f+1", &attr, &place, 1),
		     PS_ERROR_UNSUPPORTED, "no instruction begins there");
	ASSERT_ERROR(ps_refusal_probe_error(EMFILE, "uprobe:f", &attr, &place, 7), PS_ERROR_LIMIT,
		     "too many open files");
}
