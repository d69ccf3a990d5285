// SPDX-License-Identifier: MIT
#include "test.h"
#include "map_records.h"

#include <sys/wait.h>

static struct ps_maps *create(void)
{
	struct ps_maps *maps;
	ASSERT_OK(ps_maps_create(&maps));
	return maps;
}

/** "path+offset in the file" at @address, or "-". */
static const char *at(struct ps_maps *maps, pid_t pid, uint64_t address)
{
	static char text[128];
	const struct ps_map *map = ps_maps_find(maps, pid, address);
	if (!map)
		return "-";
	snprintf(text, sizeof(text), "%s+%#jx", map->file->path,
		 (uintmax_t)(address - map->start + map->offset));
	return text;
}

TEST(maps, an_address_lies_in_the_map_that_a_record_told)
{
	struct ps_maps *maps = create();
	follow_mmap2(maps, NOBODY, 0x3000, 0x1000, 0x500000, "/lib/b");
	follow_mmap2(maps, NOBODY, 0x1000, 0x1000, 0x2000, "/bin/a");
	ASSERT_STR_EQ(at(maps, NOBODY, 0xfff), "-");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x1000), "/bin/a+0x2000");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x1fff), "/bin/a+0x2fff");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x2000), "-");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x3010), "/lib/b+0x500010");
	ASSERT_STR_EQ(at(maps, NOBODY + 1, 0x1000), "-");
	ps_maps_destroy(maps);
}

TEST(maps, a_map_takes_the_place_of_what_lay_there)
{
	struct ps_maps *maps = create();
	follow_mmap2(maps, NOBODY, 0x1000, 0x9000, 0, "/a");
	follow_mmap2(maps, NOBODY, 0x4000, 0x1000, 0x100, "/hole");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x3fff), "/a+0x2fff");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x4000), "/hole+0x100");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x5000), "/a+0x4000");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x9fff), "/a+0x8fff");
	follow_mmap2(maps, NOBODY, 0x3000, 0x3000, 0, "/b");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x2fff), "/a+0x1fff");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x4000), "/b+0x1000");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x6000), "/a+0x5000");
	follow_mmap2(maps, NOBODY, 0, 0x10000, 0, "/all");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x9fff), "/all+0x9fff");
	ASSERT_EQ(ps_maps_nr_files(maps), 1);
	ps_maps_destroy(maps);
}

TEST(maps, a_child_has_its_parents_maps_until_one_of_them_changes)
{
	struct ps_maps *maps = create();
	follow_mmap2(maps, NOBODY, 0x1000, 0x1000, 0, "/a");
	follow_fork(maps, NOBODY, NOBODY + 1);
	ASSERT_EQ(ps_maps_generation(maps, NOBODY + 1), ps_maps_generation(maps, NOBODY));
	struct ps_process_id parent = ps_maps_process(maps, NOBODY);
	struct ps_process_id child = ps_maps_process(maps, NOBODY + 1);
	ASSERT_TRUE(child.id != parent.id);
	ASSERT_EQ(ps_maps_forked_from(maps, child).id, parent.id);
	ASSERT_EQ(ps_maps_forked_from(maps, parent).id, 0);
	ASSERT_EQ(ps_maps_parent(maps, NOBODY + 1), NOBODY);
	follow_mmap2(maps, NOBODY, 0x2000, 0x1000, 0, "/parents");
	follow_mmap2(maps, NOBODY + 1, 0x1000, 0x1000, 0, "/childs");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x1000), "/a+0");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x2000), "/parents+0");
	ASSERT_STR_EQ(at(maps, NOBODY + 1, 0x1000), "/childs+0");
	ASSERT_STR_EQ(at(maps, NOBODY + 1, 0x2000), "-");
	ASSERT_TRUE(ps_maps_generation(maps, NOBODY + 1) != ps_maps_generation(maps, NOBODY));
	ps_maps_destroy(maps);
}

TEST(maps, exec_ends_all_maps_and_a_new_name_does_not)
{
	struct ps_maps *maps = create();
	follow_mmap2(maps, NOBODY, 0x1000, 0x1000, 0, "/a");
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		char comm[16];
	} renamed = { { PERF_RECORD_COMM, 0, sizeof(renamed) }, NOBODY, NOBODY, "x" };
	ps_maps_follow(maps, &renamed.header, 1);
	ASSERT_STR_EQ(at(maps, NOBODY, 0x1000), "/a+0");
	follow_fork(maps, NOBODY, NOBODY + 1);
	follow_exec_at(maps, NOBODY, 10);
	follow_mmap2(maps, NOBODY, 0x5000, 0x1000, 0, "/new");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x5000), "/new+0");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x1000), "-");
	struct ps_process_id child = ps_maps_process(maps, NOBODY + 1);
	ASSERT_TRUE(ps_maps_forked_from(maps, child).id != ps_maps_process(maps, NOBODY).id);
	follow_exec_at(maps, NOBODY + 1, 10);
	ASSERT_EQ(ps_maps_forked_from(maps, ps_maps_process(maps, NOBODY + 1)).id, 0);
	ASSERT_EQ(ps_maps_parent(maps, NOBODY + 1), NOBODY);
	struct mmap2 late = mmap2(NOBODY, 0x1000, 0x1000, 0, "/before");
	ps_maps_follow(maps, &late.header, 9);
	ASSERT_STR_EQ(at(maps, NOBODY, 0x1000), "-");
	ps_maps_follow(maps, &late.header, 11);
	ASSERT_STR_EQ(at(maps, NOBODY, 0x1000), "/before+0");
	ps_maps_destroy(maps);
}

TEST(maps, the_caller_of_an_exec_is_known_until_what_it_called_runs)
{
	struct ps_maps *maps = create();
	follow_mmap2(maps, NOBODY, 0x1000, 0x1000, 0, "/caller");
	follow_exec_at(maps, NOBODY, 10);
	ASSERT_STR_EQ(at(maps, NOBODY, 0x1000), "/caller+0");
	ASSERT_EQ(ps_maps_generation(maps, NOBODY), 0);
	follow_mmap2(maps, NOBODY, 0x5000, 0x1000, 0, "/called");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x1800), "/caller+0x800");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x5000), "/called+0");
	ASSERT_STR_EQ(at(maps, NOBODY, 0x1000), "-");
	// Of two execs in a row only the last caller can still be at work.
	follow_exec_at(maps, NOBODY, 20);
	ASSERT_STR_EQ(at(maps, NOBODY, 0x5000), "/called+0");
	follow_exec_at(maps, NOBODY, 30);
	ASSERT_STR_EQ(at(maps, NOBODY, 0x5000), "-");
	ps_maps_destroy(maps);
}

TEST(maps, an_ended_process_keeps_its_maps_until_its_id_is_reused)
{
	struct ps_maps *maps = create();
	follow_mmap2(maps, NOBODY, 0x1000, 0x1000, 0, "/a");
	follow_mmap2(maps, NOBODY + 1, 0x1000, 0x1000, 0, "/b");
	follow_exit(maps, NOBODY);
	ASSERT_STR_EQ(at(maps, NOBODY, 0x1000), "/a+0");
	follow_fork(maps, NOBODY + 1, NOBODY);
	ASSERT_STR_EQ(at(maps, NOBODY, 0x1000), "/b+0");
	ASSERT_EQ(ps_maps_nr_files(maps), 1);
	ps_maps_destroy(maps);
}

TEST(maps, ended_processes_go_oldest_first)
{
	struct ps_maps *maps = create();
	follow_mmap2(maps, NOBODY, 0x1000, 0x1000, 0, "/a");
	for (int i = 1; i <= PS_MAPS_MAX_DEAD + 3; i++) {
		follow_fork(maps, NOBODY, NOBODY + i);
		follow_exit(maps, NOBODY + i);
	}
	ASSERT_EQ(ps_maps_nr_processes(maps), PS_MAPS_MAX_DEAD + 1);
	ASSERT_STR_EQ(at(maps, NOBODY + 4, 0x1000), "/a+0");
	ASSERT_STR_EQ(at(maps, NOBODY + 3, 0x1000), "-");
	ps_maps_destroy(maps);
}

TEST(maps, lost_exits_do_not_fill_the_table)
{
	struct ps_maps *maps = create();
	for (int i = 0; i < 50000; i++)
		follow_mmap2(maps, NOBODY + i, 0x1000, 0x1000, 0, "/a");
	ASSERT_TRUE(ps_maps_nr_processes(maps) <= 2 * PS_MAPS_MAX_DEAD);
	ASSERT_STR_EQ(at(maps, NOBODY + 49999, 0x1000), "/a+0");
	ps_maps_destroy(maps);
}

TEST(maps, files_are_told_apart_by_all_that_is_known_of_them)
{
	struct ps_maps *maps = create();
	struct mmap2 record = mmap2(NOBODY, 0x1000, 0x1000, 0, "/a");
	record.inode = 7;
	record.dev_major = 8;
	record.dev_minor = 1;
	record.generation = 99;
	ps_maps_follow(maps, &record.header, 0);
	record.address = 0x3000;
	ps_maps_follow(maps, &record.header, 0);
	ASSERT_EQ(ps_maps_nr_files(maps), 1);
	const struct ps_file *file = ps_maps_find(maps, NOBODY, 0x1000)->file;
	ASSERT_EQ(file->inode, 7);
	ASSERT_EQ(file->dev_major, 8);
	ASSERT_EQ(file->dev_minor, 1);
	ASSERT_EQ(file->generation, 99);
	ASSERT_EQ(file->build_id_size, 0);
	record.address = 0x5000;
	// The mark alone says nothing: the kernel sets it on records of events that did not ask.
	record.header.misc = PERF_RECORD_MISC_MMAP_BUILD_ID;
	ps_maps_follow(maps, &record.header, 0);
	ASSERT_EQ(ps_maps_find(maps, NOBODY, 0x5000)->file->inode, 7);
	ps_maps_believe_build_ids(maps);
	record.build_id_size = 20;
	memset(record.build_id, 0xab, 20);
	ps_maps_follow(maps, &record.header, 0);
	ASSERT_EQ(ps_maps_nr_files(maps), 2);
	file = ps_maps_find(maps, NOBODY, 0x5000)->file;
	ASSERT_EQ(file->build_id_size, 20);
	ASSERT_EQ(file->build_id[19], 0xab);
	ASSERT_EQ(file->inode, 0);
	record.build_id_size = 21;
	record.address = 0x7000;
	ps_maps_follow(maps, &record.header, 0);
	ASSERT_STR_EQ(at(maps, NOBODY, 0x7000), "-");
	ps_maps_destroy(maps);
}

TEST(maps, data_cut_records_and_foreign_ids_are_passed_over)
{
	struct ps_maps *maps = create();
	struct mmap2 record = mmap2(NOBODY, 0x1000, 0x1000, 0, "/a");
	uint16_t whole = record.header.size;
	for (uint32_t type = 0; type < 100; type++) {
		for (uint16_t size = 0; size <= offsetof(struct mmap2, name); size++) {
			bool is_task = type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT;
			if (type == PERF_RECORD_MMAP || (is_task && size >= 24))
				continue;
			record.header = (struct perf_event_header){ type, 0, size };
			ps_maps_follow(maps, &record.header, 0);
		}
	}
	record.header = (struct perf_event_header){ PERF_RECORD_MMAP2, 0, whole };
	record.prot = PROT_READ;
	ps_maps_follow(maps, &record.header, 0);
	record.prot = PROT_EXEC;
	record.size = UINT64_MAX;
	ps_maps_follow(maps, &record.header, 0);
	record.size = 0x1000;
	record.pid = -1;
	ps_maps_follow(maps, &record.header, 0);
	record.pid = NOBODY;
	memset(record.name, 'x', sizeof(record.name));
	ps_maps_follow(maps, &record.header, 0);
	ASSERT_EQ(ps_maps_nr_processes(maps), 0);
	ps_maps_destroy(maps);
	ps_maps_destroy(NULL);
}

TEST(maps, a_process_never_heard_of_is_looked_up)
{
	struct ps_maps *maps = create();
	struct stat stat_self;
	ASSERT_EQ(stat("/proc/self/exe", &stat_self), 0);
	const struct ps_map *map = ps_maps_find(maps, getpid(), (uintptr_t)at);
	ASSERT_NOT_NULL(map);
	ASSERT_EQ(map->file->inode, stat_self.st_ino);
	ASSERT_EQ(map->file->dev_major, major(stat_self.st_dev));
	ASSERT_EQ(map->file->dev_minor, minor(stat_self.st_dev));
	ASSERT_NULL(ps_maps_find(maps, getpid(), (uintptr_t)&stat_self));
	ASSERT_NULL(ps_maps_find(maps, 0, (uintptr_t)at));
	ps_maps_destroy(maps);
}

TEST(maps, a_snapshot_holds_what_ends_right_after)
{
	int hold[2];
	ASSERT_EQ(pipe(hold), 0);
	pid_t child = fork();
	if (!child) {
		char byte;
		close(hold[1]);
		_exit(read(hold[0], &byte, 1));
	}
	struct ps_maps *maps = create();
	ps_maps_snapshot(maps, NULL, 0);
	close(hold[1]);
	close(hold[0]);
	waitpid(child, NULL, 0);
	const struct ps_map *map = ps_maps_find(maps, child, (uintptr_t)at);
	ASSERT_NOT_NULL(map);
	ASSERT_NOT_NULL(strstr(map->file->path, "test_maps"));
	ASSERT_FALSE(ps_maps_snapshot_pid(maps, NOBODY));
	ps_maps_destroy(maps);
}

TEST(maps, a_snapshot_keeps_what_records_told)
{
	struct ps_maps *maps = create();
	uint64_t page = (uintptr_t)at & ~4095ul;
	follow_mmap2(maps, getpid(), page, 0x1000, 0, "/told");
	ASSERT_TRUE(ps_maps_snapshot_pid(maps, getpid()));
	ASSERT_STR_EQ(ps_maps_find(maps, getpid(), page)->file->path, "/told");
	ASSERT_NOT_NULL(ps_maps_find(maps, getpid(), (uintptr_t)printf));
	ps_maps_destroy(maps);
}
