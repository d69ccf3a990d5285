// SPDX-License-Identifier: MIT
#include "kernel.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

// The last function before a gap, such as the one before the first module, does not fill the gap.
#define MAX_FUNCTION (UINT64_C(1) << 20)

/** Whether @letter, as of nm, is of code. */
static bool is_code(char letter)
{
	return strchr("tTwW", letter);
}

/** Of names that are otherwise alike perf shows the last: __x64_sys_vfork comes after __ia32_sys_vfork. */
static uint32_t rank_of(const struct symtab *table, const struct symbol *symbol, char letter,
			const char *name)
{
	bool is_weak = letter == 'w' || letter == 'W';
	uint32_t rank =
		symbol_rank(name, isupper((unsigned char)letter), is_weak) & ~UINT32_C(0xffff);
	const struct symbol *before = table->nr ? &table->symbols[table->nr - 1] : NULL;
	bool is_alias = before && before->start == symbol->start;
	return rank | (is_alias ? (before->rank + 1) & 0xffff : 0);
}

/**
 * Add "name" or "name\t[module]"; false: no memory. Symbols that are no code are kept without a name, where they end
 * code.
 */
static bool add_symbol(struct symtab *table, uint64_t address, char letter, const char *name,
		       bool *was_code)
{
	bool ends_code = *was_code && !is_code(letter);
	*was_code = is_code(letter);
	if (!*was_code && !ends_code)
		return true;
	struct symbol symbol = { .start = address, .end = address };
	symbol.limit = address + MAX_FUNCTION < address ? UINT64_MAX : address + MAX_FUNCTION;
	if (*was_code)
		symbol.rank = rank_of(table, &symbol, letter, name);
	return symtab_add(table, &symbol, *was_code ? name : "");
}

struct ps_error *kernel_symbols_read(const char *path, struct symtab *ret)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	if (!file)
		return ps_error_os(errno, "kernel symbols: open %s", path);
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	bool was_code = false, has_address = false;
	while (getline(&line, &size, file) > 0) {
		char letter;
		int name = 0;
		uint64_t address;
		if (sscanf(line, "%" SCNx64 " %c %n", &address, &letter, &name) != 2 || !name)
			continue;
		line[strcspn(line, "\n")] = 0;
		has_address = has_address || address;
		if (address && !add_symbol(ret, address, letter, line + name, &was_code))
			return &ps_enomem;
	}
	if (!has_address)
		return ps_error_format(PS_ERROR_PERMISSION,
				       "kernel symbols: %s hides the addresses; run as root, or: "
				       "sysctl kernel.kptr_restrict=0",
				       path);
	symtab_finish(ret);
	return NULL;
}

bool kernel_symbol_find(const struct symtab *table, struct strings *strings, uint64_t address,
			const char **symbol, uint64_t *start, const char **dso)
{
	const struct symbol *found = symtab_find(table, address);
	const char *name = found ? symtab_name(table, found) : "";
	if (!*name)
		return false;
	const char *module = strchr(name, '\t');
	*symbol = strings_keep_format(strings, "%.*s", (int)strcspn(name, "\t"), name);
	*dso = strings_keep(strings, module ? module + 1 : "[kernel.kallsyms]");
	*start = found->start;
	return *symbol && *dso;
}
