// SPDX-License-Identifier: MIT
#include "test.h"

#include <errno.h>
#include <perfscope/tracepoint.h>
#include <sys/stat.h>

/** A folder that poses as tracefs. */
struct fixture {
	char path[64];
};

static void put(const struct fixture *fixture, const char *system, const char *name,
		const char *file, const char *text)
{
	char path[256];
	const char *parts[] = { "events", system, name };
	int size = snprintf(path, sizeof(path), "%s", fixture->path);
	for (size_t i = 0; i < PS_ARRAY_SIZE(parts); i++) {
		size += snprintf(path + size, sizeof(path) - size, "/%s", parts[i]);
		mkdir(path, 0755);
	}
	snprintf(path + size, sizeof(path) - size, "/%s", file);
	FILE *stream = fopen(path, "w");
	assert_non_null(stream);
	fputs(text, stream);
	fclose(stream);
}

static void setup(struct fixture *fixture)
{
	strcpy(fixture->path, "/tmp/perfscope-test-XXXXXX");
	assert_non_null(mkdtemp(fixture->path));
	put(fixture, "sched", "sched_switch", "id", "372\n");
	put(fixture, "sched", "sched_switch", "format", "the text");
	put(fixture, "sched", "sched_wakeup", "format", "");
	put(fixture, "irq", "softirq_entry", "id", "no number\n");
	put(fixture, "irq", "softirq_entry", "format", "");
}

static void teardown(const struct fixture *fixture)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", fixture->path);
	ASSERT_EQ(system(command), 0);
}

static struct ps_error *append(const char *system, const char *name, void *text)
{
	strcat(text, system);
	strcat(text, ":");
	strcat(text, name);
	strcat(text, " ");
	return NULL;
}

TEST(tracepoint, id_and_format_are_read)
{
	struct fixture fixture;
	setup(&fixture);
	uint64_t id = 0;
	ASSERT_OK(ps_tracepoint_read_id(fixture.path, "sched", "sched_switch", &id));
	ASSERT_EQ(id, 372);
	ASSERT_ERROR(ps_tracepoint_read_id(fixture.path, "irq", "softirq_entry", &id),
		     PS_ERROR_BAD_DATA, "the id of tracepoint irq:softirq_entry is not a number");
	ASSERT_EQ(id, 372);
	char *text;
	size_t size;
	ASSERT_OK(ps_tracepoint_read_format(fixture.path, "sched", "sched_switch", &text, &size));
	ASSERT_STR_EQ(text, "the text");
	ASSERT_EQ(size, 8);
	free(text);
	teardown(&fixture);
}

TEST(tracepoint, a_name_that_leaves_the_folder_is_refused)
{
	static const char *const names[] = { "..",  ".",   "../sched/sched_switch", "a/b", "",
					     "a b", "\x80" };
	struct fixture fixture;
	setup(&fixture);
	for (size_t i = 0; i < PS_ARRAY_SIZE(names); i++) {
		uint64_t id = 0;
		ASSERT_ERROR(ps_tracepoint_read_id(fixture.path, "sched", names[i], &id),
			     PS_ERROR_NOT_FOUND, "names are made of letters");
		ASSERT_ERROR(ps_tracepoint_read_id(fixture.path, names[i], "sched_switch", &id),
			     PS_ERROR_NOT_FOUND, "names are made of letters");
	}
	char found[256] = "";
	ASSERT_ERROR(ps_tracepoint_glob(fixture.path, "sched", "../*", append, found),
		     PS_ERROR_NOT_FOUND, "names are made of letters");
	ASSERT_ERROR(ps_tracepoint_glob(fixture.path, "..", "sched", append, found),
		     PS_ERROR_NOT_FOUND, "there is no tracepoint ..:sched");
	ASSERT_STR_EQ(found, "");
	teardown(&fixture);
}

TEST(tracepoint, globs_are_visited_in_sorted_order)
{
	struct fixture fixture;
	setup(&fixture);
	char found[256] = "";
	ASSERT_OK(ps_tracepoint_glob(fixture.path, "*", "s*", append, found));
	ASSERT_STR_EQ(found, "irq:softirq_entry sched:sched_switch sched:sched_wakeup ");
	found[0] = '\0';
	ASSERT_OK(ps_tracepoint_glob(fixture.path, "sched", "sched_?akeup", append, found));
	ASSERT_STR_EQ(found, "sched:sched_wakeup ");
	found[0] = '\0';
	ASSERT_OK(ps_tracepoint_glob(fixture.path, "sched", "sched_switch", append, found));
	ASSERT_STR_EQ(found, "sched:sched_switch ");
	teardown(&fixture);
}

TEST(tracepoint, a_name_that_is_not_there_gets_the_nearest)
{
	struct fixture fixture;
	setup(&fixture);
	char found[256] = "";
	ASSERT_ERROR(ps_tracepoint_glob(fixture.path, "sched", "sched_swich", append, found),
		     PS_ERROR_NOT_FOUND,
		     "there is no tracepoint sched:sched_swich; did you mean sched:sched_switch");
	ASSERT_ERROR(ps_tracepoint_glob(fixture.path, "nothing", "x*", append, found),
		     PS_ERROR_NOT_FOUND, "there is no tracepoint nothing:x*");
	uint64_t id;
	ASSERT_ERROR(ps_tracepoint_read_id(fixture.path, "sched", "nothing", &id),
		     PS_ERROR_NOT_FOUND, "there is no tracepoint sched:nothing");
	teardown(&fixture);
}

static struct ps_error *refuse(const char *system, const char *name, void *nr)
{
	(*(int *)nr)++;
	return ps_error_format(PS_ERROR_LIMIT, "enough");
}

TEST(tracepoint, an_error_of_the_visitor_ends_the_walk)
{
	struct fixture fixture;
	setup(&fixture);
	int nr = 0;
	ASSERT_ERROR(ps_tracepoint_glob(fixture.path, "sched", "*", refuse, &nr), PS_ERROR_LIMIT,
		     "enough");
	ASSERT_EQ(nr, 1);
	teardown(&fixture);
}

/** Another program takes away its probes while they are looked at. */
static struct ps_error *take_away(const char *system_name, const char *name, void *path)
{
	char command[160];
	snprintf(command, sizeof(command), "rm -r %s/events/%s", (char *)path,
		 strcmp(system_name, "irq") ? system_name : "sched");
	ASSERT_EQ(system(command), 0);
	return strcmp(system_name, "irq") ? ps_error_os(ENOENT, "%s", name) : NULL;
}

TEST(tracepoint, what_goes_during_the_walk_is_left_out)
{
	struct fixture fixture;
	setup(&fixture);
	// The first one visited takes the next system away.
	ASSERT_OK(ps_tracepoint_glob(fixture.path, "*", "*", take_away, fixture.path));
	put(&fixture, "sched", "sched_switch", "format", "");
	// The only one that matches goes itself: then there is none.
	ASSERT_ERROR(ps_tracepoint_glob(fixture.path, "sch*", "*", take_away, fixture.path),
		     PS_ERROR_NOT_FOUND, "there is no tracepoint sch*:*");
	teardown(&fixture);
}

TEST(tracepoint, the_environment_names_another_folder)
{
	struct fixture fixture;
	setup(&fixture);
	const char *path = NULL;
	setenv("PERFSCOPE_TRACEFS", fixture.path, 1);
	ASSERT_OK(ps_tracefs_path(&path));
	ASSERT_STR_EQ(path, fixture.path);
	setenv("PERFSCOPE_TRACEFS", "/nonexistent", 1);
	ASSERT_ERROR(ps_tracefs_path(&path), PS_ERROR_NOT_FOUND,
		     "PERFSCOPE_TRACEFS names this folder");
	unsetenv("PERFSCOPE_TRACEFS");
	teardown(&fixture);
}
