// SPDX-License-Identifier: MIT
/**
 * The parts of a sample as fields by name: `event.ip`, `event.branch_stack`. One table serves lookup, template, `list -v`
 * and docs.
 */
#ifndef PERFSCOPE_SAMPLE_FIELD_H
#define PERFSCOPE_SAMPLE_FIELD_H

#include <perfscope/sample.h>
#include <stdio.h>

/** How a part becomes a value. */
enum ps_sample_kind {
	PS_SAMPLE_U64,	     // 8 bytes, unsigned
	PS_SAMPLE_U32,	     // 4 bytes, unsigned
	PS_SAMPLE_S32,	     // 4 bytes, signed
	PS_SAMPLE_ADDRESSES, // u64 nr, addresses: the call chain
	PS_SAMPLE_RAW_BYTES, // u32 size, bytes
	PS_SAMPLE_BYTES,     // u64 size, bytes
	PS_SAMPLE_STACK,     // u64 size, bytes, u64 how many are filled
	PS_SAMPLE_COUNTS,    // read_format
	PS_SAMPLE_BRANCHES,  // struct perf_branch_entry
	PS_SAMPLE_REGISTERS, // u64 abi, a register for each bit of the mask
};

struct ps_sample_field {
	const char *name;
	uint64_t bits; // PERF_SAMPLE_*, of which one must be in sample_type
	enum ps_sample_kind kind;
	const char *annotation; // the Python type
	const char *doc;	// units and meaning, a line
	size_t layout_member;	// of ps_sample_layout: a part of fixed place; else NO_MEMBER
	size_t part_member;	// of ps_sample_parts
	uint8_t delta;		// bytes from there
	void (*write)(uint64_t value,
		      FILE *stream); // in words, of PS_SAMPLE_U64; NULL: a number says it
};

#define PS_SAMPLE_NO_MEMBER ((size_t)-1)

extern const struct ps_sample_field ps_sample_fields[];
extern const size_t ps_nr_sample_fields;

/**
 * Whether samples of this type show @field by name.
 *
 * Where the raw data are fields of the event's own, a tracepoint's or a probe's, only parts beyond PS_SAMPLE_BASE do: what
 * is in every event has its underscore name, and the event's own fields are not to be hidden.
 */
bool ps_sample_has_field(uint64_t sample_type, bool has_own_fields,
			 const struct ps_sample_field *field);

/** The part of @field in the record, from its start to the end of the record. False: not there, or cut. */
bool ps_sample_find_field(const struct ps_sample_layout *layout,
			  const struct perf_event_header *header,
			  const struct ps_sample_field *field, struct ps_bytes *ret);

#endif
