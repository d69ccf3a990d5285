// SPDX-License-Identifier: MIT
/**
 * Values by the path of a program's language: "buf->size", "v[2].x".
 */
#ifndef PERFSCOPE_PROBE_MEMBER_H
#define PERFSCOPE_PROBE_MEMBER_H

#include "probe_dwarf.h"

/** A value with its type. */
struct ps_typed {
	struct ps_fetch fetch;
	Dwarf_Die type; // peeled
	bool is_void;	// @type says nothing
	// Of a bit field; width 0: it is none.
	unsigned int bit_width, bit_shift, container_size;
};

/** Set the type of @typed to that of @die, through references. NULL, or why not. */
const char *ps_typed_enter(struct ps_typed *typed, Dwarf_Die *die);

/**
 * Go along @path, "->size", ".x", "[2]", to its end.
 *
 * Errors tell the members there are.
 */
struct ps_error *ps_typed_follow(struct ps_typed *typed, const char *path);

/**
 * Choose the kernel's type, "s32", "ustring", "u8[4]", and go to the text where the value is a pointer to one. NULL, or
 * why the kernel cannot show it.
 */
const char *ps_typed_choose(struct ps_typed *typed, char ret[32]);

/** The members of a structure by commas; the caller frees it; NULL: it has none, or no memory. */
char *ps_typed_members(Dwarf_Die *type);

#endif
