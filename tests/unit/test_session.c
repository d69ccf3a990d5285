// SPDX-License-Identifier: MIT
/** Sessions: records, and who is followed. */
#include "test.h"

#include "cgroup2.h"
#include "session_records.h"

#include <perfscope/maps.h>

TEST(session, every_call_of_the_own_thread_is_a_record)
{
	clear_sources();
	struct ps_source *source = add_tracepoint("sys_enter_getppid");
	struct ps_target target = own_thread();
	open_session(&target, 0);
	call_getppid(7); // not yet
	ASSERT_OK(ps_session_enable(session));
	call_getppid(1000);
	ps_session_disable(session);
	call_getppid(7); // no more
	drain();
	ASSERT_EQ(tally.nr_samples, 1000);
	ASSERT_EQ(tally.nr_lost_told, 0);
	struct ps_count count;
	ps_session_count(session, source, &count);
	ASSERT_TRUE(count.is_valid);
	ASSERT_EQ(count.value, 1000);
	ASSERT_EQ(count.lost, 0);
	ASSERT_EQ(count.enabled_ns, count.running_ns);
	close_session();
}

TEST(session, delivered_and_lost_are_what_happened)
{
	clear_sources();
	struct ps_source *source = add_tracepoint("sys_enter_getppid");
	struct ps_target target = own_thread();
	open_session(&target, 4096);
	if (!session->has_lost_count)
		SKIP("no PERF_FORMAT_LOST before Linux 6.0");
	ASSERT_OK(ps_session_enable(session));
	call_getppid(1000);
	drain();
	ps_session_read_lost(session);
	const struct ps_stream *stream = &session->streams[session->nr_streams - 1];
	ASSERT_EQ(stream->source, source);
	ASSERT_EQ(stream->delivered, tally.nr_samples);
	ASSERT_EQ(stream->delivered + stream->lost, 1000);
	struct ps_count count;
	ps_session_count(session, source, &count);
	ASSERT_EQ(count.value, 1000);
	ASSERT_EQ(count.lost, stream->lost);
	// The rings of 4 KiB hold fewer than 4096 / 64 records of at least 64 bytes.
	ASSERT_TRUE(tally.nr_samples < 64);
	close_session();
}

struct player {
	int cpu, nr_turns;
	_Atomic int *turn;
	int side;
};

static void *play(void *argument)
{
	struct player *player = argument;
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(player->cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	for (int i = 0; i < player->nr_turns; i++) {
		while (*player->turn != 2 * i + player->side)
			sched_yield();
		syscall(SYS_getppid);
		++*player->turn;
	}
	return NULL;
}

TEST(session, two_cpus_that_alternate_come_out_alternating)
{
	static int cpus[] = { 0, 1 };
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP("needs two CPUs");
	clear_sources();
	struct ps_source *source = add_tracepoint("sys_enter_getppid");
	struct ps_target target = { .cpus = cpus, .nr_cpus = 2, .cgroup_fd = -1 };
	char filter[64];
	snprintf(filter, sizeof(filter), "common_pid != %d", gettid());
	source->filter = filter;
	open_session(&target, 0);
	ASSERT_EQ(session->nr_rings, 2);
	ASSERT_OK(ps_session_enable(session));
	static _Atomic int turn;
	turn = 0;
	struct player players[] = { { 0, 500, &turn, 0 }, { 1, 500, &turn, 1 } };
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, play, &players[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ps_session_disable(session);
	ps_merge_flush(merge);
	ps_merge_begin(merge);
	uint64_t last_ns = 0;
	uint32_t own_pid = getpid();
	int nr = 0;
	for (const struct ps_record *record; (record = ps_merge_next(merge));) {
		const uint8_t *bytes = (const uint8_t *)record->header;
		uint32_t pid;
		ASSERT_TRUE(record->time_ns >= last_ns);
		last_ns = record->time_ns;
		memcpy(&pid, bytes + record->stream->layout.tid, sizeof(pid));
		if (record->header->type != PERF_RECORD_SAMPLE || pid != own_pid)
			continue;
		ASSERT_EQ(record->stream->cpu, nr % 2);
		nr++;
	}
	ASSERT_EQ(nr, 1000);
	ASSERT_EQ(ps_merge_counts(merge).nr_late, 0);
	close_session();
}

TEST(session, a_cpu_list_holds_for_threads_too)
{
	clear_sources();
	struct ps_source *source = add_tracepoint("sys_enter_getppid");
	struct ps_target target = own_thread();
	int cpus[] = { 1 };
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP("needs two CPUs");
	target.cpus = cpus;
	target.is_cpu_list = true;
	cpu_set_t before;
	sched_getaffinity(0, sizeof(before), &before);
	open_session(&target, 0);
	ASSERT_OK(ps_session_enable(session));
	pin_to(0);
	call_getppid(50);
	pin_to(1);
	call_getppid(7);
	sched_setaffinity(0, sizeof(before), &before);
	drain();
	ASSERT_EQ(tally.nr_samples, 7);
	struct ps_count count;
	ps_session_count(session, source, &count);
	ASSERT_EQ(count.value, 7);
	close_session();
}

TEST(session, a_filter_lets_through_what_it_says)
{
	clear_sources();
	struct ps_source *source = add_tracepoint("sys_enter_kill");
	source->filter = (char *)"sig == 0";
	struct ps_target target = own_thread();
	open_session(&target, 0);
	ASSERT_OK(ps_session_enable(session));
	for (int i = 0; i < 10; i++) {
		kill(getpid(), 0);
		kill(getpid(), SIGCONT);
	}
	drain();
	ASSERT_EQ(tally.nr_samples, 10);
	close_session();
}

TEST(session, children_are_followed_with_inherit)
{
	clear_sources();
	struct ps_source *source = add_tracepoint("sys_enter_getppid");
	struct ps_target target = own_thread();
	int cpus[256];
	for (target.nr_cpus = 0; target.nr_cpus < (size_t)sysconf(_SC_NPROCESSORS_ONLN);)
		cpus[target.nr_cpus] = target.nr_cpus, target.nr_cpus++;
	target.cpus = cpus;
	target.inherit = true;
	open_session(&target, 0);
	ASSERT_EQ(session->nr_rings, target.nr_cpus);
	ASSERT_OK(ps_session_enable(session));
	pid_t child = fork();
	if (!child) {
		call_getppid(77);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	call_getppid(3);
	drain();
	ASSERT_EQ(tally.nr_samples, 80);
	ASSERT_EQ(tally.nr_fork, 1);
	ASSERT_EQ(tally.nr_exit, 1);
	struct ps_count count;
	ps_session_count(session, source, &count);
	ASSERT_EQ(count.value, 80);
	close_session();
}

/** A child that waits for a byte, then executes /bin/true; its end of the pipe is returned. */
static pid_t start_waiting(int *ret_fd)
{
	int fds[2];
	ASSERT_EQ(pipe(fds), 0);
	pid_t child = fork();
	if (!child) {
		char byte;
		close(fds[1]);
		call_getppid(5); // before its exec: not for us
		if (read(fds[0], &byte, 1) == 1)
			execl("/bin/true", "true", NULL);
		_exit(127);
	}
	close(fds[0]);
	*ret_fd = fds[1];
	return child;
}

static void end_waiting(pid_t child, int fd)
{
	int status;
	ASSERT_EQ(write(fd, "x", 1), 1);
	close(fd);
	waitpid(child, &status, 0);
	ASSERT_EQ(status, 0);
}

TEST(session, a_workload_is_seen_from_its_exec_to_its_exit)
{
	clear_sources();
	add_source("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK)->group = 1;
	add_tracepoint("sys_enter_exit_group")->group = 1; // a member is on when its leader is
	struct ps_source *early = add_tracepoint("sys_enter_execve"); // on only when it is done
	int fd;
	pid_t child = start_waiting(&fd);
	struct ps_target target = own_thread();
	target.tids = &child;
	target.is_workload = true;
	open_session(&target, 0);
	ASSERT_OK(ps_session_enable(session));
	ASSERT_FALSE(ps_session_is_over(session));
	end_waiting(child, fd);
	struct pollfd pollfd = { .fd = session->ring_fds[0], .events = POLLIN };
	ASSERT_EQ(poll(&pollfd, 1, 1000), 1);
	ASSERT_TRUE(ps_session_is_over(session));
	ASSERT_EQ(session->ring_fds[0], -1);
	drain();
	ASSERT_EQ(tally.nr_samples, 1);
	struct ps_count count;
	ps_session_count(session, early, &count);
	ASSERT_EQ(count.value, 0);
	ASSERT_EQ(tally.nr_comm, 1);
	ASSERT_EQ(tally.nr_exit, 1);
	close_session();
}

TEST(session, a_ring_that_threads_share_follows_those_that_live)
{
	clear_sources();
	struct ps_source *source = add_tracepoint("sys_enter_exit_group");
	source->cpus = (char *)"0";
	int fds[2];
	pid_t children[] = { start_waiting(&fds[0]), start_waiting(&fds[1]) };
	struct ps_target target = own_thread();
	target.tids = children;
	target.nr_tids = 2;
	open_session(&target, 0);
	ASSERT_EQ(session->nr_rings, 1);
	for (int i = 0; i < 2; i++) {
		ASSERT_FALSE(ps_session_is_over(session));
		ASSERT_TRUE(session->ring_fds[0] >= 0);
		end_waiting(children[i], fds[i]);
	}
	ASSERT_TRUE(ps_session_is_over(session));
	close_session();
}

TEST(session, threads_without_inherit_have_a_ring_each)
{
	clear_sources();
	add_tracepoint("sys_enter_getppid");
	int fds[2];
	pid_t children[] = { start_waiting(&fds[0]), start_waiting(&fds[1]) };
	struct ps_target target = own_thread();
	target.tids = children;
	target.nr_tids = 2;
	open_session(&target, 0);
	ASSERT_EQ(session->nr_rings, 2);
	ASSERT_EQ(session->rings[1].mask + 1, 4 << 20);
	for (int i = 0; i < 2; i++) {
		end_waiting(children[i], fds[i]);
	}
	close_session();
}

TEST(session, descriptors_are_closed_at_an_exec)
{
	clear_sources();
	add_tracepoint("sys_enter_getppid");
	struct ps_target target = own_thread();
	open_session(&target, 0);
	for (size_t i = 0; i < session->nr_streams; i++)
		ASSERT_EQ(fcntl(session->streams[i].fd, F_GETFD), FD_CLOEXEC);
	close_session();
}

TEST(session, ids_far_apart_are_found_too)
{
	const uint64_t ids[] = { 1000, 1002, 1000 + (1 << 20), UINT64_MAX, 7ULL << 40 };
	struct ps_stream streams[5] = { 0 };
	struct ps_session far = { .streams = streams, .nr_streams = 5 };
	for (size_t i = 0; i < 5; i++)
		streams[i].id = ids[i];
	ASSERT_OK(ps_ids_build(&far));
	ASSERT_EQ(far.nr_by_id, 3);
	ASSERT_EQ(far.nr_far, 3);
	for (size_t i = 0; i < 5; i++)
		ASSERT_EQ(ps_session_find(&far, ids[i]), &streams[i]);
	ASSERT_NULL(ps_session_find(&far, 1001));
	ASSERT_NULL(ps_session_find(&far, 999));
	ASSERT_NULL(ps_session_find(&far, 0));
	ps_ids_deinit(&far);
}

static void join_cgroup(const char *path)
{
	char file_path[320];
	snprintf(file_path, sizeof(file_path), "%s/cgroup.procs", path);
	FILE *file = fopen(file_path, "we");
	if (!file || fprintf(file, "0") < 0 || fclose(file))
		_exit(1);
}

TEST(session, a_cgroup_is_followed_on_every_cpu)
{
	char mount[256], path[300];
	if (!find_cgroup2(mount, sizeof(mount)))
		SKIP("no cgroup of version 2 is mounted");
	snprintf(path, sizeof(path), "%s/perfscope-test", mount);
	if (mkdir(path, 0755) && errno != EEXIST)
		SKIP("no cgroup can be made at %s", path);
	clear_sources();
	struct ps_source *source = add_tracepoint("sys_enter_getppid");
	int cpus[] = { 0, 1 };
	struct ps_target target = { .kind = PS_TARGET_CGROUP,
				    .cpus = cpus,
				    .nr_cpus = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1,
				    .cgroup_fd = open(path, O_RDONLY | O_CLOEXEC) };
	open_session(&target, 0);
	ASSERT_OK(ps_session_enable(session));
	pid_t child = fork();
	if (!child) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(0, &set);
		CPU_SET(1, &set);
		sched_setaffinity(0, sizeof(set), &set);
		join_cgroup(path);
		call_getppid(40);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	call_getppid(9); // not in it
	drain();
	close(target.cgroup_fd);
	rmdir(path);
	ASSERT_EQ(status, 0);
	ASSERT_EQ(tally.nr_samples, 40);
	ASSERT_EQ(tally.nr_exit, 1);
	struct ps_count count;
	ps_session_count(session, source, &count);
	ASSERT_EQ(count.value, 40);
	close_session();
}

TEST(session, older_kernels_are_not_asked_for_functions_of_the_kernel)
{
	struct ps_target target = own_thread();
	struct ps_clock clock = {};
	struct ps_attr_context context = { .clock = &clock, .target = &target };
	struct perf_event_attr attr = ps_attr_side_band(true, true, &context);
	ASSERT_EQ(attr.mmap2, 1);
	ASSERT_EQ(attr.ksymbol, 0);
	context.has_ksymbol = true;
	attr = ps_attr_side_band(true, true, &context);
	ASSERT_EQ(attr.ksymbol, 1);
	attr = ps_attr_side_band(true, false, &context);
	ASSERT_EQ(attr.mmap2, 0);
	ASSERT_EQ(attr.ksymbol, 0);
}
