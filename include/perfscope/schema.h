// SPDX-License-Identifier: MIT
/**
 * Schema: the fields of one kind of event. One table serves lookup, keys(), docstrings, template and `list -v`.
 */
#ifndef PERFSCOPE_SCHEMA_H
#define PERFSCOPE_SCHEMA_H

#include <perfscope/error.h>
#include <perfscope/field.h>
#include <perfscope/format.h>

/** Immutable once built, counted by reference; the count is not atomic (the GIL, or one thread). */
struct ps_schema {
	unsigned int nr_references;
	char *name;		 // "sched:sched_switch", "cycles"
	struct ps_field *fields; // of the raw data, common_* first; NULL for counters
	size_t nr_fields;
	struct ps_format *format; // how the kernel prints it, NULL: none
};

/** The schema of a tracepoint from its format text. */
struct ps_error *ps_schema_create_tracepoint(const char *system, const char *text, size_t size,
					     struct ps_schema **ret);

/** The same of a tracepoint of another machine, as recordings have them; NULL: this one. */
struct ps_error *ps_schema_create_tracepoint_of(const struct ps_machine *machine,
						const char *system, const char *text, size_t size,
						struct ps_schema **ret);

/** The schema of the probe @name, from the format text of what it writes. */
struct ps_error *ps_schema_create_probe(const char *name, const char *text, size_t size,
					struct ps_schema **ret);

/** The schema of a counter: no raw data. */
struct ps_error *ps_schema_create_counter(const char *name, struct ps_schema **ret);

struct ps_schema *ps_schema_ref(struct ps_schema *schema);
void ps_schema_unref(struct ps_schema *schema); // takes NULL

/** The Python type of @field as an annotation: "int", "str", "bytes", "tuple[int, ...]", "frozenset[int]". */
const char *ps_field_annotation(const struct ps_field *field);

PS_DEFINE_CLEANUP(struct ps_schema *, ps_schema, ps_schema_unref)
#define _cleanup_schema_ _cleanup_(ps_schema_p)

#endif
