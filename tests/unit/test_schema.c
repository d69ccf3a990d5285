// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/schema.h>
#include <perfscope/tracepoint.h>

TEST(schema, a_counter_has_a_name_and_no_fields)
{
	struct ps_schema *schema;
	ASSERT_OK(ps_schema_create_counter("cycles", &schema));
	ASSERT_STR_EQ(schema->name, "cycles");
	ASSERT_EQ(schema->nr_fields, 0);
	ASSERT_NULL(schema->format);
	assert_ptr_equal(ps_schema_ref(schema), schema);
	ps_schema_unref(schema);
	ASSERT_EQ(schema->nr_references, 1);
	ps_schema_unref(schema);
	ps_schema_unref(NULL);
}

TEST(schema, each_kind_of_field_has_its_annotation)
{
	static const char *const annotations[] = {
		[PS_FIELD_INT] = "int",
		[PS_FIELD_STRING] = "str",
		[PS_FIELD_BYTES] = "bytes",
		[PS_FIELD_INT_ARRAY] = "tuple[int, ...]",
		[PS_FIELD_CPUMASK] = "frozenset[int]",
	};
	for (size_t kind = 0; kind < PS_ARRAY_SIZE(annotations); kind++) {
		struct ps_field field = { .kind = kind };
		ASSERT_STR_EQ(ps_field_annotation(&field), annotations[kind]);
	}
}

TEST(schema, a_broken_format_names_its_system)
{
	struct ps_schema *schema;
	ASSERT_ERROR(ps_schema_create_tracepoint("sched", "rubbish", 7, &schema), PS_ERROR_BAD_DATA,
		     "format of sched: not the name of a format: \"rubbish\"");
}

/** What a line of the text says, read by other means than the room's own. */
struct line {
	char declaration[256];
	unsigned int offset, size, is_signed;
};

static bool scan_line(const char *text, struct line *ret)
{
	return sscanf(text, "\tfield:%255[^;];\toffset:%u;\tsize:%u;\tsigned:%u;", ret->declaration,
		      &ret->offset, &ret->size, &ret->is_signed) == 4;
}

/** The name in "unsigned long args[6]" or "__data_loc char[] name". */
static void scan_name(char *declaration, const char **ret_name)
{
	size_t length = strlen(declaration);
	char *bracket = strchr(declaration, '[');
	if (bracket && declaration[length - 1] == ']')
		*bracket = '\0';
	char *space = strrchr(declaration, ' ');
	assert_non_null(space);
	*ret_name = space + 1;
}

static void assert_same(const char *system, const struct ps_field *field, struct line *line)
{
	bool is_array = strchr(line->declaration, '[');
	const char *name;
	scan_name(line->declaration, &name);
	ASSERT_STR_EQ(field->name, name);
	ASSERT_EQ(field->offset, line->offset);
	ASSERT_EQ(field->size, line->size);
	// Only arguments of system calls differ from what their line says: see test_format.c.
	if (!strcmp(system, "syscalls") || is_array)
		return;
	ASSERT_EQ(field->is_signed, line->is_signed);
	if (field->kind == PS_FIELD_INT)
		ASSERT_EQ(field->element_size, line->size);
}

struct totals {
	const char *tracefs;
	size_t nr_schemas;
};

/** Probes of a perfscope that runs beside this test come and go. */
static bool is_probe(const char *system)
{
	return !strncmp(system, "perfscope_", strlen("perfscope_"));
}

static struct ps_error *compare_format(const char *system, const char *name, void *argument)
{
	struct totals *totals = argument;
	_cleanup_free_ char *text = NULL;
	size_t size;
	struct ps_error *error =
		ps_tracepoint_read_format(totals->tracefs, system, name, &text, &size);
	if (error)
		return error;
	_cleanup_schema_ struct ps_schema *schema = NULL;
	error = ps_schema_create_tracepoint(system, text, size, &schema);
	if (error)
		return error;
	size_t at = 0;
	for (char *save, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct line scanned;
		if (!scan_line(line, &scanned))
			continue;
		assert_in_range(at, 0, schema->nr_fields - 1);
		assert_same(system, &schema->fields[at++], &scanned);
	}
	ASSERT_EQ(at, schema->nr_fields);
	const char zeros[8192] = { 0 };
	free(ps_format_print(schema->format,
			     (struct ps_bytes){ (const uint8_t *)zeros, sizeof(zeros) }));
	totals->nr_schemas += !is_probe(system);
	return NULL;
}

static struct ps_error *count(const char *system, const char *name, void *argument)
{
	*(size_t *)argument += !is_probe(system);
	return NULL;
}

TEST(schema, every_format_of_this_machine_builds_and_says_what_its_text_says)
{
	struct totals totals = { 0 };
	struct ps_error *error = ps_tracefs_path(&totals.tracefs);
	if (error) {
		char reason[256];
		snprintf(reason, sizeof(reason), "%s", error->message);
		ps_error_destroy(error);
		SKIP("%s", reason);
	}
	size_t nr = 0;
	ASSERT_OK(ps_tracepoint_glob(totals.tracefs, "*", "*", count, &nr));
	ASSERT_OK(ps_tracepoint_glob(totals.tracefs, "*", "*", compare_format, &totals));
	ASSERT_EQ(totals.nr_schemas, nr);
}
