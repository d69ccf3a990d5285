// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/region_spec.h>

static struct ps_spec_list specs;
static struct ps_region_spec_list regions;

static struct ps_error *parse(const char *text)
{
	return ps_region_spec_parse(text, &specs, &regions);
}

static void clear(void)
{
	ps_region_spec_list_deinit(&regions);
	ps_spec_list_deinit(&specs);
}

static const char *begin_of(size_t region)
{
	for (size_t i = 0; i < specs.nr_specs; i++) {
		if (specs.specs[i].boundary == regions.regions[region].begin)
			return specs.specs[i].text;
	}
	return NULL;
}

static const char *end_of(size_t region)
{
	for (size_t i = 0; i < specs.nr_specs; i++) {
		if (specs.specs[i].boundary == regions.regions[region].end)
			return specs.specs[i].text;
	}
	return NULL;
}

TEST(region_spec, name_begin_and_end)
{
	ASSERT_OK(parse("read=syscalls:sys_enter_read/fd==3/..syscalls:sys_exit_read"));
	ASSERT_EQ(regions.nr_regions, 1);
	ASSERT_STR_EQ(regions.regions[0].name, "read");
	ASSERT_STR_EQ(regions.regions[0].handler, "region__read");
	ASSERT_STR_EQ(begin_of(0), "syscalls:sys_enter_read/fd==3/");
	ASSERT_STR_EQ(end_of(0), "syscalls:sys_exit_read");
	clear();
}

TEST(region_spec, handler_is_an_identifier)
{
	ASSERT_OK(parse("my-own.part=a:b..a:c"));
	ASSERT_STR_EQ(regions.regions[0].handler, "region__my_own_part");
	clear();
}

TEST(region_spec, function_is_from_entry_to_return)
{
	ASSERT_OK(parse("f=func:parse@./prog"));
	ASSERT_STR_EQ(begin_of(0), "uprobe:parse@./prog");
	ASSERT_STR_EQ(end_of(0), "uretprobe:parse@./prog");
	clear();
}

TEST(region_spec, dots_in_a_path_are_the_paths)
{
	ASSERT_OK(parse("f=uprobe:f@../a/../prog..uretprobe:f@../a/../prog"));
	ASSERT_STR_EQ(begin_of(0), "uprobe:f@../a/../prog");
	ASSERT_STR_EQ(end_of(0), "uretprobe:f@../a/../prog");
	clear();
}

TEST(region_spec, regions_share_events)
{
	ASSERT_OK(parse("x=a:b..a:c"));
	ASSERT_OK(parse("y=a:c..a:b"));
	ASSERT_OK(parse("z=a:b/d==1/..a:c"));
	ASSERT_EQ(specs.nr_specs, 3);
	ASSERT_EQ(regions.regions[1].begin, regions.regions[0].end);
	ASSERT_OK(ps_region_spec_add_switches(&specs, &regions));
	ASSERT_EQ(specs.nr_specs, 4);
	ASSERT_EQ(regions.switches, 4);
	clear();
}

TEST(region_spec, event_of_e_is_not_shared)
{
	ASSERT_OK(ps_spec_parse("a:b", &specs));
	ASSERT_OK(parse("x=a:b..a:c"));
	ASSERT_EQ(specs.nr_specs, 3);
	ASSERT_EQ(specs.specs[0].boundary, 0);
	clear();
}

TEST(region_spec, what_is_wrong_is_named)
{
	static const struct {
		const char *text, *message;
	} wrong[] = {
		{ "read", "'read' is not NAME=BEGIN..END" },
		{ "=a:b..a:c", "NAME is missing" },
		{ "a b=a:b..a:c", "letters, digits" },
		{ "run=a:b..a:c", "the whole run's" },
		{ "taken=a:b..a:c", "another -r has this name" },
		{ "x=a:b", ".. is missing between BEGIN and END" },
		{ "x=..a:c", "BEGIN is missing" },
		{ "x=a:b..", "END is missing" },
		{ "x=a:b..c:d..e:f", "one BEGIN and one END are wanted" },
		{ "x=", ".. is missing between BEGIN and END" },
		{ "x=a:b..a:b", "BEGIN and END are one event" },
		{ "x=a:*..a:b", "name one event" },
		{ "x=cycles..a:b", "a tracepoint or a probe, not a counter" },
		{ "x=a:b..page-faults", "END: page-faults: a region begins and ends with" },
		{ "x=a:b//stack/..a:c", "no attributes" },
		{ "x=a:b,a:d..a:c", "one event is wanted" },
		{ "x=func:f", "the file is missing" },
		{ "x=func:f@./p n=%di:u32", "FUNC@FILE is all" },
		{ "x=func:f@./a path", "a FILE with blanks in quotes" },
		{ "x=func:f@./p..func:g@./p", "is a whole region; between two functions" },
	};
	ASSERT_OK(parse("taken=a:b..a:c"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ASSERT_ERROR(parse(wrong[i].text), PS_ERROR_USAGE, wrong[i].message);
	ASSERT_EQ(regions.nr_regions, 1);
	clear();
}
