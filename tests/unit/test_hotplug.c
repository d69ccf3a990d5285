// SPDX-License-Identifier: MIT
/*
 * CPUs that go and come, without taking one offline: the session is told so, or its descriptors are silenced as the kernel
 * does it.
 */
#include "test.h"

#include "cgroup2.h"
#include "live_session.h"
#include <perfscope/cpu_watch.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static struct ps_merge *merge;
static char filter[64];

/** getppid of this thread alone, so that the filter is seen to come back too. */
static struct ps_source *add_own_getppid(void)
{
	clear_sources();
	struct ps_source *source = add_tracepoint("sys_enter_getppid");
	snprintf(filter, sizeof(filter), "common_pid == %d", (int)gettid());
	source->filter = filter;
	return source;
}

static struct ps_target one_cpu(void)
{
	static int cpus[] = { 0 };
	return (struct ps_target){
		.kind = PS_TARGET_CPUS, .cpus = cpus, .nr_cpus = 1, .cgroup_fd = -1
	};
}

static void open_enabled(const struct ps_target *target)
{
	struct ps_session_options options = { .want_tasks = true };
	ASSERT_OK(ps_session_open(&list, target, &options, &session));
	ASSERT_OK(ps_merge_create(session, true, &merge));
	ASSERT_OK(ps_session_enable(session));
}

/** Open the sources on CPU 0, and stay there. */
static void open_own_cpu(void)
{
	struct ps_target target = one_cpu();
	pin_to(0);
	open_enabled(&target);
}

static void close_session(void)
{
	ps_merge_destroy(merge);
	ps_session_destroy(session);
	clear_sources();
}

/** Samples in the rings from @since_ns on. */
static uint64_t drain(uint64_t since_ns)
{
	uint64_t nr = 0;
	ps_session_disable(session);
	ps_merge_flush(merge);
	ps_merge_begin(merge);
	for (const struct ps_record *record; (record = ps_merge_next(merge));)
		nr += record->header->type == PERF_RECORD_SAMPLE && record->time_ns >= since_ns;
	ps_merge_release(merge);
	ASSERT_EQ(ps_merge_counts(merge).nr_bad, 0);
	ASSERT_EQ(ps_merge_counts(merge).nr_unknown, 0);
	return nr;
}

static void assert_count(const struct ps_source *source, uint64_t value)
{
	struct ps_count count;
	ps_session_count(session, source, &count);
	ASSERT_TRUE(count.is_valid);
	ASSERT_EQ(count.value, value);
	ASSERT_EQ(count.enabled_ns, count.running_ns);
}

TEST(hotplug, what_was_counted_before_and_what_comes_after_add_up)
{
	struct ps_source *source = add_own_getppid();
	struct ps_cpu_back back;
	open_own_cpu();
	call_getppid(10);
	ps_session_cpu_lost(session, 0);
	ASSERT_EQ(ps_session_cpu_look(session, 0, false), PS_CPU_BACK);
	struct ps_stream *stream = &session->streams[1];
	uint64_t old_id = stream->id;
	ASSERT_OK(ps_session_cpu_back(session, 0, &back));
	ASSERT_TRUE(back.is_open && !back.is_first && back.away_ns > 0);
	ASSERT_EQ(back.nr_failed, 0);
	ASSERT_EQ(session->nr_rings, 1);
	ASSERT_EQ(session->ring_fds[back.ring], session->streams[0].fd);
	ASSERT_TRUE(stream->id != old_id);
	ASSERT_EQ(ps_session_find(session, old_id), stream);
	ASSERT_EQ(ps_session_find(session, stream->id), stream);
	ASSERT_EQ(ps_session_cpu_look(session, 0, true), PS_CPU_SAME);
	call_getppid(7);
	// The first ten are still in the ring; what is read ahead is of the old descriptor too.
	ASSERT_EQ(drain(back.start_ns), 7);
	assert_count(source, 17);
	close_session();
}

TEST(hotplug, records_of_before_are_read_after)
{
	struct ps_source *source = add_own_getppid();
	struct ps_cpu_back back;
	open_own_cpu();
	for (int i = 0; i < 3; i++) {
		call_getppid(10);
		ASSERT_OK(ps_session_cpu_back(session, 0, &back));
	}
	call_getppid(1);
	ASSERT_EQ(drain(0), 31);
	assert_count(source, 31);
	close_session();
}

TEST(hotplug, groups_come_back_as_groups)
{
	struct ps_source *leader = add_own_getppid();
	struct ps_source *member = add_source("dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	leader->group = member->group = 1;
	leader->attr.read_format = member->attr.read_format = PERF_FORMAT_GROUP;
	leader->attr.sample_type |= PERF_SAMPLE_READ;
	struct ps_cpu_back back;
	open_own_cpu();
	call_getppid(3);
	ASSERT_OK(ps_session_cpu_back(session, 0, &back));
	uint64_t words[16];
	ASSERT_TRUE(read(session->streams[1].fd, words, sizeof(words)) > 0);
	ASSERT_EQ(words[0], 2); // members
	call_getppid(4);
	ASSERT_EQ(drain(0), 7);
	assert_count(leader, 7);
	assert_count(member, 0);
	close_session();
}

/** The kernel leaves the descriptors of a CPU that went open and silent; so does disabling them behind our back. */
TEST(hotplug, a_cpu_that_was_away_between_two_looks_is_noticed)
{
	add_own_getppid();
	struct ps_target target = one_cpu();
	struct ps_cpu_back back;
	open_enabled(&target);
	ASSERT_EQ(ps_session_cpu_look(session, 0, true), PS_CPU_SAME);
	for (size_t i = 0; i < session->nr_streams; i++)
		ioctl(session->streams[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	ASSERT_EQ(ps_session_cpu_look(session, 0, false), PS_CPU_BACK);
	ASSERT_OK(ps_session_cpu_back(session, 0, &back));
	ASSERT_EQ(back.away_ns, 0); // nobody knows
	ASSERT_EQ(ps_session_cpu_look(session, 0, false), PS_CPU_SAME);
	ASSERT_EQ(ps_session_cpu_look(session, 77, true), PS_CPU_SAME); // not observed
	close_session();
}

TEST(hotplug, a_cpu_that_is_offline_at_the_start_is_opened_when_it_comes)
{
	struct ps_source *source = add_own_getppid();
	struct ps_target target = one_cpu();
	int offline[] = { 1 };
	target.offline_cpus = offline;
	target.nr_offline = 1;
	pin_to(1);
	open_enabled(&target);
	ASSERT_EQ(session->nr_rings, 1);
	ASSERT_EQ(session->nr_streams, 4);
	ASSERT_EQ(session->streams[3].fd, -1);
	call_getppid(5); // not seen
	assert_count(source, 0);
	ASSERT_EQ(ps_session_cpu_look(session, 1, false), PS_CPU_BACK);
	struct ps_cpu_back back;
	ASSERT_OK(ps_session_cpu_back(session, 1, &back));
	ASSERT_TRUE(back.is_open && back.is_first);
	ASSERT_EQ(back.ring, 1);
	ASSERT_EQ(session->nr_rings, 2);
	ASSERT_EQ(session->rings[1].cpu, 1);
	ASSERT_EQ(session->streams[3].ring, 1);
	call_getppid(6);
	ASSERT_EQ(drain(back.start_ns), 6);
	assert_count(source, 6);
	close_session();
}

TEST(hotplug, a_cpu_that_stays_away_leaves_the_counts_and_the_ring)
{
	struct ps_source *source = add_own_getppid();
	open_own_cpu();
	call_getppid(10);
	ps_session_cpu_lost(session, 0);
	ASSERT_EQ(drain(0), 10);
	assert_count(source, 10);
	close_session();
}

TEST(hotplug, a_source_that_is_refused_leaves_the_others)
{
	struct ps_source *source = add_own_getppid();
	struct ps_source *other = add_tracepoint("sys_enter_getpgid");
	other->filter = filter;
	struct ps_cpu_back back;
	open_own_cpu();
	call_getppid(10);
	syscall(SYS_getpgid, 0);
	other->filter = (char *)"common_pid == ";
	ASSERT_ERROR(ps_session_cpu_back(session, 0, &back), PS_ERROR_USAGE, "sys_enter_getpgid");
	ASSERT_TRUE(back.is_open);
	ASSERT_EQ(back.nr_failed, 1);
	call_getppid(5);
	drain(0);
	assert_count(source, 15);
	assert_count(other, 1); // as it was
	close_session();
}

TEST(hotplug, a_ring_that_cannot_be_had_leaves_all_as_it_was)
{
	struct ps_source *source = add_own_getppid();
	struct ps_cpu_back back;
	open_own_cpu();
	call_getppid(10);
	// Events of two clocks do not share a ring.
	session->clock.kind = PS_CLOCK_MONOTONIC_RAW;
	ASSERT_ERROR(ps_session_cpu_back(session, 0, &back), PS_ERROR_OS, "map its ring: ");
	ASSERT_FALSE(back.is_open);
	ASSERT_EQ(ps_session_cpu_look(session, 0, false), PS_CPU_SAME);
	for (size_t i = 0; i < session->nr_streams; i++)
		ioctl(session->streams[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	ASSERT_EQ(ps_session_cpu_look(session, 0, false), PS_CPU_SAME); // not each second again
	ASSERT_EQ(ps_session_cpu_look(session, 0, true), PS_CPU_BACK);
	drain(0);
	assert_count(source, 10);
	close_session();
}

TEST(hotplug, a_cgroup_comes_back_when_it_is_told)
{
	char mount[256], path[300];
	if (!find_cgroup2(mount, sizeof(mount)))
		SKIP("no cgroup of version 2 is mounted");
	snprintf(path, sizeof(path), "%s/perfscope-hotplug-%d", mount, (int)getpid());
	if (mkdir(path, 0755))
		SKIP("no cgroup can be made at %s", path);
	clear_sources();
	struct ps_source *source = add_tracepoint("sys_enter_getppid");
	struct ps_target target = one_cpu();
	target.kind = PS_TARGET_CGROUP;
	target.cgroup_fd = open(path, O_RDONLY | O_CLOEXEC);
	struct ps_cpu_back back;
	open_enabled(&target);
	ASSERT_EQ(ps_session_cpu_look(session, 0, false), PS_CPU_SAME);
	ASSERT_EQ(ps_session_cpu_look(session, 0, true), PS_CPU_BACK);
	ASSERT_OK(ps_session_cpu_back(session, 0, &back));
	ASSERT_TRUE(back.is_open);
	drain(0);
	struct ps_count count;
	ps_session_count(session, source, &count);
	ASSERT_EQ(count.value, 0);
	close_session();
	close(target.cgroup_fd);
	rmdir(path);
}

TEST(hotplug, threads_are_followed_by_their_events)
{
	clear_sources();
	add_tracepoint("sys_enter_getppid");
	struct ps_target target = own_thread();
	target.is_cpu_list = true;
	pin_to(1); // it is there
	int cpu;
	open_enabled(&target);
	ASSERT_FALSE(ps_session_nth_cpu(session, 0, &cpu));
	ASSERT_FALSE(ps_session_misses_cpu(session, 1)); // it was not asked for
	ps_opened_of(session)->target.is_cpu_list = false;
	ASSERT_TRUE(ps_session_misses_cpu(session, 1));
	ASSERT_FALSE(ps_session_misses_cpu(session, 0));
	ps_session_disable(session);
	ps_opened_of(session)->is_enabled = true; // so that their silence could be noticed
	ASSERT_EQ(ps_session_cpu_look(session, 0, true), PS_CPU_SAME);
	close_session();
}

static int sockets[2];

static void send_word(const char *text)
{
	ASSERT_TRUE(send(sockets[0], text, strlen(text) + 1, 0) > 0);
}

TEST(hotplug, words_about_cpus_are_told_from_others)
{
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets), 0);
	send_word("offline@/devices/system/cpu/cpu1");
	send_word("add@/devices/virtual/cpuid/cpu1");
	send_word("change@/devices/system/cpu/cpu1");
	send_word("online@/devices/system/memory/memory1");
	send_word("online@/devices/system/cpu/cpu");
	send_word("online@/devices/system/cpu/cpu-1");
	send_word("online@/devices/system/cpu/cpu1x");
	send_word("online@");
	send_word("");
	send_word("online@/devices/system/cpu/cpu123");
	int cpu = -1;
	ASSERT_EQ(ps_cpu_watch_next(sockets[1], &cpu), PS_CPU_WORD_OFFLINE);
	ASSERT_EQ(cpu, 1);
	ASSERT_EQ(ps_cpu_watch_next(sockets[1], &cpu), PS_CPU_WORD_ONLINE);
	ASSERT_EQ(cpu, 123);
	ASSERT_EQ(ps_cpu_watch_next(sockets[1], &cpu), PS_CPU_WORD_NONE);
	close(sockets[0]);
	close(sockets[1]);
}

/** A word that the kernel was asked to send; nobody goes offline. */
TEST(hotplug, the_kernel_is_heard)
{
	int fd = ps_cpu_watch_open(), cpu = -1;
	if (fd < 0)
		SKIP("uevents cannot be heard in this user namespace");
	FILE *file = fopen("/sys/devices/system/cpu/cpu0/uevent", "we");
	if (!file || fputs("offline", file) < 0 || fclose(file))
		SKIP("this user cannot ask the kernel for a uevent");
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	ASSERT_EQ(poll(&pollfd, 1, 5000), 1);
	ASSERT_EQ(ps_cpu_watch_next(fd, &cpu), PS_CPU_WORD_OFFLINE);
	ASSERT_EQ(cpu, 0);
	close(fd);
}
