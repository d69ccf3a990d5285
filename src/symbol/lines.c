// SPDX-License-Identifier: MIT
#include "lines.h"
#include "scopes.h"
#include "symtab.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

struct lines {
	int fd;
	Dwarf *dwarf;
	struct symtab units; // ranges of addresses; limit is the offset of the unit's entry
};

/* Which unit an address is of: not all compilers write .debug_aranges. */

static bool add_unit(struct lines *lines, Dwarf_Die *unit)
{
	Dwarf_Addr base, start, end;
	for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0;) {
		struct symbol range = { .start = start, .end = end };
		range.limit = dwarf_dieoffset(unit);
		// What the linker left out begins at 0.
		if (start && end > start && !symtab_add(&lines->units, &range, ""))
			return false;
	}
	return true;
}

static void add_units(struct lines *lines)
{
	size_t header_size;
	Dwarf_Off next;
	for (Dwarf_Off at = 0;
	     !dwarf_nextcu(lines->dwarf, at, &next, &header_size, NULL, NULL, NULL); at = next) {
		Dwarf_Die unit;
		if (dwarf_offdie(lines->dwarf, at + header_size, &unit) && !add_unit(lines, &unit))
			break;
		if (next <= at)
			break;
	}
	symtab_finish(&lines->units);
}

static Dwarf_Die *find_unit(struct lines *lines, uint64_t address, Dwarf_Die *ret)
{
	const struct symbol *range = symtab_find(&lines->units, address);
	return range ? dwarf_offdie(lines->dwarf, range->limit, ret) : NULL;
}

/* What is told of a place. */

/** "file.c:12", kept; NULL: not known. */
static const char *keep_line(struct strings *strings, const char *path, int line)
{
	if (!path || line <= 0)
		return NULL;
	const char *slash = strrchr(path, '/');
	return strings_keep_format(strings, "%s:%d", slash ? slash + 1 : path, line);
}

static const char *line_of(Dwarf_Die *unit, struct strings *strings, uint64_t address)
{
	int number = 0;
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);
	if (!line || dwarf_lineno(line, &number))
		return NULL;
	return keep_line(strings, dwarf_linesrc(line, NULL, NULL), number);
}

static bool read_number(Dwarf_Die *die, unsigned int name, Dwarf_Word *ret)
{
	Dwarf_Attribute attribute;
	return dwarf_attr(die, name, &attribute) && !dwarf_formudata(&attribute, ret);
}

/** Where the inlined function @die was called from. */
static const char *call_line_of(Dwarf_Die *unit, Dwarf_Die *die, struct strings *strings)
{
	Dwarf_Word file, line;
	Dwarf_Files *files;
	size_t nr;
	if (!read_number(die, DW_AT_call_file, &file) ||
	    !read_number(die, DW_AT_call_line, &line) || dwarf_getsrcfiles(unit, &files, &nr) ||
	    file >= nr || line > INT32_MAX)
		return NULL;
	return keep_line(strings, dwarf_filesrc(files, file, NULL, NULL), line);
}

/** The name of the function @die, kept; NULL: it has none. */
static const char *name_of(Dwarf_Die *die, struct strings *strings)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	if (!name)
		name = dwarf_diename(die);
	return name ? strings_keep_demangled(strings, name) : NULL;
}

/** Frames of the functions around @address, from the innermost out. */
static size_t read_functions(Dwarf_Die *unit, struct scopes *scopes, const char *line,
			     struct strings *strings, struct ps_frame *frames, size_t max)
{
	size_t nr = 0;
	for (uint32_t i = scopes->nr; i-- && nr < max;) {
		Dwarf_Die *function = &scopes->functions[i];
		bool is_inlined = dwarf_tag(function) == DW_TAG_inlined_subroutine;
		frames[nr++] = (struct ps_frame){ .symbol = name_of(function, strings),
						  .line = line,
						  .is_inlined = is_inlined };
		if (!is_inlined)
			break;
		line = call_line_of(unit, function, strings);
	}
	return nr;
}

size_t lines_find(struct lines *lines, struct strings *strings, uint64_t address,
		  struct ps_frame *frames, size_t max)
{
	Dwarf_Die unit_, *unit = find_unit(lines, address, &unit_);
	if (!unit)
		return 0;
	struct scopes scopes;
	const char *line = line_of(unit, strings, address);
	scopes_find(unit, address, &scopes);
	size_t nr = read_functions(unit, &scopes, line, strings, frames, max);
	if (nr || !line)
		return nr;
	frames[0] = (struct ps_frame){ .line = line };
	return 1;
}

struct lines *lines_create(int fd)
{
	struct lines *lines = calloc(1, sizeof(*lines));
	if (!lines) {
		close(fd);
		return NULL;
	}
	lines->fd = fd;
	lines->dwarf = dwarf_begin(fd, DWARF_C_READ);
	if (!lines->dwarf) {
		lines_destroy(lines);
		return NULL;
	}
	add_units(lines);
	return lines;
}

void lines_destroy(struct lines *lines)
{
	if (!lines)
		return;
	dwarf_end(lines->dwarf);
	symtab_deinit(&lines->units);
	close(lines->fd);
	free(lines);
}
