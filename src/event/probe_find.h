// SPDX-License-Identifier: MIT
/**
 * What the parts of the search for places share.
 */
#ifndef PERFSCOPE_PROBE_FIND_H
#define PERFSCOPE_PROBE_FIND_H

#include <perfscope/nearest.h>
#include <perfscope/probe.h>

#include "probe_elf.h"

/** The absolute path of @file: itself where it has a slash, else searched. The caller frees it. */
struct ps_error *ps_probe_file_path(const char *file, char **ret);

/** Append a place, whose texts are taken over also on failure. */
struct ps_error *ps_probe_places_add(struct ps_probe_places *places,
				     const struct ps_probe_place *place);

/** Whether @pattern has * or ?. */
bool ps_probe_is_glob(const char *pattern);

/** The address that @name is, as 0x12; false: it is none. */
bool ps_probe_parse_address(const char *name, uint64_t *ret);

/**
 * Whether @name, or what it is in C++ or Rust, is @pattern: exact or by glob; also without its parameters, and without
 * type of return and arguments of templates.
 */
bool ps_probe_matches(const char *pattern, const char *name);

struct ps_dwarf;

/** The places of usdt:PROVIDER:NAME in the file of @dwarf, which has debug information where @has_dwarf. */
struct ps_error *ps_probe_find_usdt(const struct ps_spec *spec, const struct ps_dwarf *dwarf,
				    bool has_dwarf, struct ps_probe_places *places);

/** PS_ERROR_UNSUPPORTED where the kernel has no kprobes. */
struct ps_error *ps_probe_check_kernel(void);

/** The function that a line of kallsyms names: "ffffffff81000000 T name\t[module]"; NULL: it names none. @line is changed. */
char *ps_kallsyms_function(char *line);

/** The places of kprobe: and kretprobe:. */
struct ps_error *ps_probe_find_kernel(const struct ps_spec *spec, struct ps_probe_places *places);

/**
 * The fetch arguments of a usdt probe whose note says @args: "arg1=%di:s32 arg2=...". @wanted, where it is not NULL,
 * takes their place, with each $argN in it replaced. @machine is ELF's. What the kernel cannot fetch is left out.
 */
struct ps_error *ps_usdt_arguments(const char *args, const char *wanted, unsigned int machine,
				   char **ret);

#endif
