// SPDX-License-Identifier: MIT
/**
 * Debug information as probes need it: functions, variables, and where the kernel can fetch them.
 */
#ifndef PERFSCOPE_PROBE_DWARF_H
#define PERFSCOPE_PROBE_DWARF_H

#include <elfutils/libdw.h>

#include "probe_elf.h"

struct ps_dwarf {
	const struct ps_elf *elf; // borrowed
	Dwarf *dwarf;
	unsigned int machine; // ELF's
};

/** Open the debug information of @elf, which must outlive it; false: it has none, but elf and machine are set. */
bool ps_dwarf_open(const struct ps_elf *elf, struct ps_dwarf *ret);

/** Takes one that was never opened. */
void ps_dwarf_close(struct ps_dwarf *dwarf);

/** A place in a function: what is looked up there. */
struct ps_scope {
	const struct ps_dwarf *dwarf;
	Dwarf_Die unit, function; // the function may be an inlined instance
	uint64_t address;	  // of the place, as nm shows it
	uint64_t entry;		  // of the function
	bool is_return;		  // the function has left: its variables are gone
};

/** The scope of @address; false: it is of no function that is described. */
bool ps_scope_at(const struct ps_dwarf *dwarf, uint64_t address, struct ps_scope *ret);

/** Called for each place where a function was inlined; false, which is returned, ends the walk. */
typedef bool (*ps_inlined_visit)(struct ps_scope *scope, const char *name, void *argument);

/**
 * Visit where the functions that @name matches were inlined, and before the first place of each @scope is NULL: nothing
 * may be left of it.
 */
bool ps_dwarf_walk_inlined(const struct ps_dwarf *dwarf, const char *name, ps_inlined_visit visit,
			   void *argument);

/** Called for each variable with a name; false, which is returned, ends the walk. */
typedef bool (*ps_variable_visit)(Dwarf_Die *variable, void *argument);

/** Visit parameters and local variables, those of the innermost block first; file scope is not visited. */
bool ps_scope_walk(const struct ps_scope *scope, ps_variable_visit visit, void *argument);

/** The variable called @name: local, of the unit, or of another unit; false: there is none. */
bool ps_scope_find(const struct ps_scope *scope, const char *name, Dwarf_Die *ret);

/** How many bytes behind the function's entry all parameters have their places; 0: they have them already. */
uint64_t ps_scope_ready(const struct ps_scope *scope);

#define PS_FETCH_SIZE 128

/** A value, or where it lies. */
struct ps_fetch {
	enum {
		PS_FETCH_VALUE,	 // @base is the value
		PS_FETCH_MEMORY, // @offset bytes behind the address @base
		PS_FETCH_STATIC, // at the address @offset of the file, as nm shows it
	} kind;
	char base[PS_FETCH_SIZE]; // in the kernel's syntax: "%di", "\5"
	int64_t offset;
	const struct ps_scope *scope; // which the base of STATIC is counted from
};

/** Write the kernel's syntax for the value; false: it is too long. */
bool ps_fetch_text(const struct ps_fetch *fetch, char ret[PS_FETCH_SIZE]);

/** Go to what the value points to; false: the text became too long. */
bool ps_fetch_deref(struct ps_fetch *fetch);

/** Where @variable is at the place of @scope. NULL, or why it cannot be fetched: a clause about "it". */
const char *ps_fetch_locate(const struct ps_scope *scope, Dwarf_Die *variable,
			    struct ps_fetch *ret);

/** The kernel's name of the register that DWARF has as @number on @machine; false: it cannot be fetched. */
bool ps_dwarf_register(unsigned int machine, unsigned int number, char ret[8]);

/**
 * The register, or the place on the stack, of the @index-th integer argument where a function begins: "%di"; false:
 * not known for @machine.
 */
bool ps_integer_argument(unsigned int machine, unsigned int index, char ret[32]);

/**
 * Where the calling convention has @parameter at the first instruction, before it is stored in its place. False: it is
 * not sure; so where the compiler made a function of its own with other parameters.
 */
bool ps_fetch_argument(const struct ps_scope *scope, const Dwarf_Die *parameter,
		       struct ps_fetch *ret);

/** Without typedef, const and the like; false: void. */
bool ps_type_peel(Dwarf_Die *type, Dwarf_Die *ret);

/** The type of a variable, member, pointer or array as it is declared; false: void. */
bool ps_type_of(Dwarf_Die *die, Dwarf_Die *ret);

/** The size in bytes; false: not known. */
bool ps_type_size(Dwarf_Die *type, uint64_t *ret);

/** Whether it is a float of any size. */
bool ps_type_is_float(Dwarf_Die *type);

/** Whether it has members. */
bool ps_type_is_structure(Dwarf_Die *type);

/** Whether it is char, and not another integer of one byte. */
bool ps_type_is_char(Dwarf_Die *type);

/** The type as C writes it: "const char *"; NULL as @type: void. The caller frees it; NULL: no memory. */
char *ps_type_text(Dwarf_Die *type);

/**
 * Translate the words of @args that are names, as "len name:string size=buf->size v[2]", to fetch arguments, and give
 * $retval the type that the function returns; all others are left as they are. @ret: the caller frees it.
 *
 * PS_ERROR_NOT_FOUND, PS_ERROR_UNSUPPORTED: the message tells what is available. @dwarf without information: names are
 * refused with a word.
 */
struct ps_error *ps_arguments_translate(const struct ps_dwarf *dwarf, const struct ps_scope *scope,
					const char *args, char **ret);

/** Write "NAME\tTYPE\n" for each parameter and local variable that can be fetched at @scope, and $retval of a return. */
void ps_arguments_list(const struct ps_scope *scope, FILE *stream);

/** Refuse "$retvalue", which the kernel takes for $retval: it compares the beginning only. Text in quotes may have it. */
struct ps_error *ps_arguments_vet(const char *args);

/** Whether @args has a name that needs debug information, $argN or $retval. */
bool ps_arguments_need_translation(const char *args);

#endif
