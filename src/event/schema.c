// SPDX-License-Identifier: MIT
#include <perfscope/schema.h>

#include <string.h>

struct ps_error *ps_schema_create_counter(const char *name, struct ps_schema **ret)
{
	_cleanup_schema_ struct ps_schema *schema = calloc(1, sizeof(*schema));
	if (!schema)
		return &ps_enomem;
	schema->nr_references = 1;
	schema->name = strdup(name);
	if (!schema->name)
		return &ps_enomem;
	*ret = take_ptr(schema);
	return NULL;
}

struct ps_error *ps_schema_create_tracepoint(const char *system, const char *text, size_t size,
					     struct ps_schema **ret)
{
	return ps_schema_create_tracepoint_of(NULL, system, text, size, ret);
}

struct ps_error *ps_schema_create_tracepoint_of(const struct ps_machine *machine,
						const char *system, const char *text, size_t size,
						struct ps_schema **ret)
{
	_cleanup_schema_ struct ps_schema *schema = calloc(1, sizeof(*schema));
	if (!schema)
		return &ps_enomem;
	schema->nr_references = 1;
	struct ps_error *error = ps_format_parse_of(machine, text, size, system, &schema->format);
	if (error)
		return error;
	if (asprintf(&schema->name, "%s:%s", system, ps_format_name(schema->format)) < 0) {
		schema->name = NULL;
		return &ps_enomem;
	}
	error = ps_format_fields(schema->format, &schema->fields, &schema->nr_fields);
	if (error)
		return error;
	*ret = take_ptr(schema);
	return NULL;
}

struct ps_error *ps_schema_create_probe(const char *name, const char *text, size_t size,
					struct ps_schema **ret)
{
	_cleanup_schema_ struct ps_schema *schema = NULL;
	struct ps_error *error = ps_schema_create_tracepoint("perfscope", text, size, &schema);
	if (error)
		return error;
	char *copy = strdup(name);
	if (!copy)
		return &ps_enomem;
	free(schema->name);
	schema->name = copy;
	*ret = take_ptr(schema);
	return NULL;
}

struct ps_schema *ps_schema_ref(struct ps_schema *schema)
{
	schema->nr_references++;
	return schema;
}

void ps_schema_unref(struct ps_schema *schema)
{
	if (!schema || --schema->nr_references)
		return;
	ps_format_destroy(schema->format);
	ps_fields_destroy(schema->fields, schema->nr_fields);
	free(schema->name);
	free(schema);
}

const char *ps_field_annotation(const struct ps_field *field)
{
	switch (field->kind) {
	case PS_FIELD_INT:
		return "int";
	case PS_FIELD_STRING:
		return "str";
	case PS_FIELD_BYTES:
		return "bytes";
	case PS_FIELD_INT_ARRAY:
		return "tuple[int, ...]";
	case PS_FIELD_CPUMASK:
		return "frozenset[int]";
	}
	return "object";
}
