// SPDX-License-Identifier: MIT
#include "symbolizer.h"
#include "kernel.h"

#include <libelf.h>
#include <string.h>
#include <time.h>

// The owner of places in the kernel; files have their id.
#define OWNER_KERNEL 0

// Forks without an exec in between, over which code that was made at run time is followed.
#define MAX_FORKS 8

// The kernel's symbols, a tenth of a second's work, are read again so many times as long after.
#define KERNEL_PAUSE 50
#define KERNEL_MIN_PAUSE_MS 1000

/** An address that is asked for. */
struct query {
	pid_t pid;
	uint64_t address;
	bool is_return;
	const struct ps_map *map; // NULL: none, or of the kernel
};

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * UINT64_C(1000) + now.tv_nsec / 1000000;
}

/** The address of the instruction: that of a call lies before where it returns to. */
static uint64_t lookup_address(const struct query *query)
{
	return query->address - query->is_return;
}

static struct place place_of(const struct query *query, uint64_t owner, uint64_t address)
{
	return (struct place){ owner, 2 * address + query->is_return };
}

static size_t give(const struct query *query, const struct ps_frame *found, size_t nr,
		   struct ps_frame *frames, size_t max)
{
	nr = nr < max ? nr : max;
	for (size_t i = 0; i < nr; i++) {
		frames[i] = found[i];
		frames[i].address = query->address;
	}
	return nr;
}

static size_t give_cached(const struct query *query, const struct cached *cached,
			  struct ps_frame *frames, size_t max)
{
	return give(query, cached->frames, cached->nr_frames, frames, max);
}

/* The kernel. */

/** A function that a record told of; false: none did of this address. */
static bool find_ksymbol(struct ps_symbolizer *symbolizer, const struct query *query,
			 struct ps_frame *ret)
{
	const struct ksymbol *symbol = ksymbols_find(&symbolizer->ksymbols, lookup_address(query));
	if (!symbol)
		return false;
	ret->symbol = symbol->name ? strings_keep(&symbolizer->strings, symbol->name) : NULL;
	ret->offset = symbol->name ? query->address - symbol->start : 0;
	ret->dso = strings_keep(&symbolizer->strings, symbol->dso);
	return true;
}

static bool find_kallsym(struct ps_symbolizer *symbolizer, const struct query *query,
			 uint64_t *start, struct ps_frame *ret)
{
	return kernel_symbol_find(&symbolizer->kernel, &symbolizer->strings, lookup_address(query),
				  &ret->symbol, start, &ret->dso);
}

/** No record tells of a module that comes: look for one, but spend little on it. False: it is too early. */
static bool read_kernel_again(struct ps_symbolizer *symbolizer)
{
	if (!symbolizer->kernel.nr || now_ms() < symbolizer->kernel_next_ms)
		return false;
	ps_error_destroy(ps_symbolizer_load_kernel(symbolizer));
	return true;
}

static void find_in_kernel(struct ps_symbolizer *symbolizer, const struct query *query,
			   struct ps_frame *ret)
{
	if (find_ksymbol(symbolizer, query, ret))
		return;
	if (!symbolizer->is_kernel_read)
		ps_error_destroy(ps_symbolizer_load_kernel(symbolizer));
	uint64_t start = query->address;
	if (find_kallsym(symbolizer, query, &start, ret) ||
	    (read_kernel_again(symbolizer) && find_kallsym(symbolizer, query, &start, ret))) {
		ret->offset = query->address - start;
		return;
	}
	ret->dso = strings_keep(&symbolizer->strings, "[kernel.kallsyms]");
	ret->may_change = true;
}

static size_t symbolize_kernel(struct ps_symbolizer *symbolizer, const struct query *query,
			       struct ps_frame *frames, size_t max)
{
	struct place place = place_of(query, OWNER_KERNEL, query->address);
	struct cached *cached = cache_find(&symbolizer->cache, &place);
	uint64_t version = ps_symbolizer_kernel_generation(symbolizer, lookup_address(query));
	if (PS_LIKELY(cached && cached->version == version))
		return give_cached(query, cached, frames, max);
	if (cached)
		cache_drop(&symbolizer->cache, cached);
	struct ps_frame frame = { .is_kernel = true };
	find_in_kernel(symbolizer, query, &frame);
	cached = frame.may_change ? NULL : cache_put(&symbolizer->cache, &place, &frame, 1);
	if (cached)
		cached->version = version;
	return give(query, &frame, 1, frames, max);
}

void ps_symbolizer_follow(struct ps_symbolizer *symbolizer, const struct perf_event_header *header)
{
	ksymbols_follow(&symbolizer->ksymbols, header);
}

uint64_t ps_symbolizer_kernel_generation(const struct ps_symbolizer *symbolizer, uint64_t address)
{
	return ksymbols_generation(&symbolizer->ksymbols, address);
}

struct ps_error *ps_symbolizer_load_kernel(struct ps_symbolizer *symbolizer)
{
	const char *path = symbolizer->kallsyms;
	uint64_t start_ms = now_ms();
	struct symtab table = {};
	// What is hidden now stays so.
	symbolizer->is_kernel_read = true;
	struct ps_error *error = kernel_symbols_read(path ? path : "/proc/kallsyms", &table);
	uint64_t end_ms = now_ms(), pause_ms = KERNEL_PAUSE * (end_ms - start_ms);
	symbolizer->kernel_next_ms =
		end_ms + (pause_ms > KERNEL_MIN_PAUSE_MS ? pause_ms : KERNEL_MIN_PAUSE_MS);
	if (error) {
		// What was read as another user still holds.
		symtab_deinit(&table);
		return error;
	}
	symtab_deinit(&symbolizer->kernel);
	symbolizer->kernel = table;
	return NULL;
}

/* Memory without a file. */

/** The name that the process gave its code, or one that it was forked from did before. */
static const struct symbol *find_in_perf_maps(struct ps_symbolizer *symbolizer,
					      const struct query *query, const char **ret_name)
{
	struct ps_process_id process = ps_maps_process(symbolizer->maps, query->pid);
	for (int i = 0; i < MAX_FORKS && process.id; i++) {
		const struct jit *jit = jits_get(&symbolizer->jits, process.id, process.pid);
		const struct symbol *symbol =
			symtab_find_latest(&jit->map.table, lookup_address(query));
		if (symbol) {
			*ret_name = symtab_name(&jit->map.table, symbol);
			return symbol;
		}
		process = ps_maps_forked_from(symbolizer->maps, process);
	}
	return NULL;
}

uint64_t ps_symbolizer_memory_generation(struct ps_symbolizer *symbolizer, pid_t pid)
{
	struct ps_process_id process = ps_maps_process(symbolizer->maps, pid);
	uint64_t latest = 0;
	for (int i = 0; i < MAX_FORKS && process.id; i++) {
		const struct jit *jit = jits_get(&symbolizer->jits, process.id, process.pid);
		if (jit->generation > latest)
			latest = jit->generation;
		process = ps_maps_forked_from(symbolizer->maps, process);
	}
	return latest;
}

/** Not in the cache, whose places are those of files: who asks often keeps it as long as its generation lasts. */
static size_t symbolize_memory(struct ps_symbolizer *symbolizer, const struct query *query,
			       struct ps_frame *ret)
{
	const char *name;
	// First, since a look at the maps of a parent may end query->map.
	const char *path = strings_keep(&symbolizer->strings, query->map->file->path);
	// Before the name, which is then at least as new.
	uint64_t generation = ps_symbolizer_memory_generation(symbolizer, query->pid);
	const struct symbol *symbol = find_in_perf_maps(symbolizer, query, &name);
	*ret = (struct ps_frame){
		.address = query->address,
		.dso = path,
		.memory_generation = generation,
		.may_change = !generation,
	};
	if (symbol) {
		ret->dso = strings_keep(&symbolizer->strings, "[perf map]");
		ret->symbol = strings_keep(&symbolizer->strings, name);
		ret->offset = query->address - symbol->start;
	}
	return 1;
}

/* Files. */

/** Whether nothing on a disk is behind @path: it is where programs make code. */
static bool is_memory(const char *path)
{
	static const char *const starts[] = { "//anon", "[heap",     "[stack", "/anon_hugepage",
					      "/SYSV",	"/dev/zero", "/memfd:" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(starts); i++) {
		if (!strncmp(path, starts[i], strlen(starts[i])))
			return true;
	}
	return false;
}

static size_t symbolize_new(struct ps_symbolizer *symbolizer, const struct query *query,
			    const struct place *place, uint64_t offset, struct ps_frame *frames,
			    size_t max)
{
	struct dso *dso = dsos_get(&symbolizer->dsos, query->map, query->pid);
	// Shared memory has an inode, as files have.
	if (dso && !dso->is_elf && is_memory(query->map->file->path))
		return symbolize_memory(symbolizer, query, frames);
	struct ps_frame found[PS_SYMBOL_MAX_INLINED] = {};
	size_t nr = 1;
	uint64_t address;
	if (dso && dso_address(dso, offset, &address))
		nr = dso_symbolize(dso, &symbolizer->strings, address + query->is_return,
				   query->is_return, found, PS_SYMBOL_MAX_INLINED);
	for (size_t i = 0; i < nr; i++)
		found[i].dso = dso ? dso->name : NULL;
	cache_put(&symbolizer->cache, place, found, nr);
	return give(query, found, nr, frames, max);
}

static size_t symbolize_user(struct ps_symbolizer *symbolizer, struct query *query,
			     struct ps_frame *frames, size_t max)
{
	query->map = ps_maps_find(symbolizer->maps, query->pid, lookup_address(query));
	if (PS_UNLIKELY(!query->map)) {
		frames[0] = (struct ps_frame){ .address = query->address };
		return 1;
	}
	const struct ps_file *file = query->map->file;
	if (!file->inode && !file->build_id_size && is_memory(file->path))
		return symbolize_memory(symbolizer, query, frames);
	uint64_t offset = lookup_address(query) - query->map->start + query->map->offset;
	struct place place = place_of(query, file->id, offset);
	const struct cached *cached = cache_find(&symbolizer->cache, &place);
	if (PS_LIKELY(cached))
		return give_cached(query, cached, frames, max);
	return symbolize_new(symbolizer, query, &place, offset, frames, max);
}

/** Let go of all texts, and of what points to them. */
static void forget_texts(struct ps_symbolizer *symbolizer)
{
	struct strings old = symbolizer->strings;
	symbolizer->strings = (struct strings){};
	cache_clear(&symbolizer->cache);
	dsos_keep_names(&symbolizer->dsos);
	strings_deinit(&old);
}

size_t ps_symbolize(struct ps_symbolizer *symbolizer, pid_t pid, uint64_t address,
		    enum ps_address_flags flags, struct ps_frame *frames, size_t max)
{
	struct query query = { pid, address, flags & PS_ADDRESS_RETURN, NULL };
	if (PS_UNLIKELY(symbolizer->strings.nr_bytes > symbolizer->max_text_bytes))
		forget_texts(symbolizer);
	if (flags & PS_ADDRESS_KERNEL)
		return symbolize_kernel(symbolizer, &query, frames, max);
	return symbolize_user(symbolizer, &query, frames, max);
}

/* The whole. */

size_t ps_symbolizer_nr_cached(const struct ps_symbolizer *symbolizer)
{
	return symbolizer->cache.nr;
}

size_t ps_symbolizer_nr_text_bytes(const struct ps_symbolizer *symbolizer)
{
	return symbolizer->strings.nr_bytes;
}

size_t ps_symbolizer_nr_jit_bytes(const struct ps_symbolizer *symbolizer)
{
	return jits_nr_bytes(&symbolizer->jits);
}

static bool set_options(struct ps_symbolizer *symbolizer, const struct ps_symbol_options *options)
{
	const char *folder =
		options && options->debug_folder ? options->debug_folder : "/usr/lib/debug";
	symbolizer->debug_folder = strdup(folder);
	if (options && options->kallsyms)
		symbolizer->kallsyms = strdup(options->kallsyms);
	symbolizer->max_text_bytes =
		options && options->max_text_bytes ? options->max_text_bytes : PS_SYMBOL_MAX_TEXT;
	symbolizer->dsos.maps = symbolizer->maps;
	symbolizer->dsos.has_lines = options && options->has_lines;
	symbolizer->dsos.debug_folder = symbolizer->debug_folder;
	symbolizer->dsos.strings = &symbolizer->strings;
	return symbolizer->debug_folder && (!options || !options->kallsyms || symbolizer->kallsyms);
}

struct ps_error *ps_symbolizer_create(struct ps_maps *maps, const struct ps_symbol_options *options,
				      struct ps_symbolizer **ret)
{
	elf_version(EV_CURRENT);
	struct ps_symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));
	if (!symbolizer)
		return &ps_enomem;
	symbolizer->maps = maps;
	if (!cache_init(&symbolizer->cache) || !set_options(symbolizer, options)) {
		ps_symbolizer_destroy(symbolizer);
		return &ps_enomem;
	}
	struct ps_error *error =
		options && options->has_debuginfod
			? debuginfod_create(options->is_stopping, &symbolizer->dsos.debuginfod)
			: NULL;
	if (error) {
		ps_symbolizer_destroy(symbolizer);
		return error;
	}
	*ret = symbolizer;
	return NULL;
}

void ps_symbolizer_destroy(struct ps_symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	unwinder_destroy(symbolizer->unwinder);
	dsos_deinit(&symbolizer->dsos);
	debuginfod_destroy(symbolizer->dsos.debuginfod);
	jits_deinit(&symbolizer->jits);
	cache_deinit(&symbolizer->cache);
	symtab_deinit(&symbolizer->kernel);
	ksymbols_deinit(&symbolizer->ksymbols);
	strings_deinit(&symbolizer->strings);
	free(symbolizer->kallsyms);
	free(symbolizer->debug_folder);
	free(symbolizer);
}
