// SPDX-License-Identifier: MIT
#include "cfi_rules.h"
#include "elf_open.h"
#include "symbolizer.h"
#include "user_regs.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <perfscope/monotonic.h>
#include <string.h>
#include <sys/auxv.h>

// Address spaces whose modules are kept open at a time.
#define MAX_SPACES 16
#define MAX_MODULES 256
#define FRAME_POINTER 6 // of x86-64; there are no rules for others
#define PAGE_MASK (~UINT64_C(4095))

/** The modules of an address space, as far as stacks went through them. */
struct space {
	uint64_t generation; // of the maps; 0: free
	Dwfl *dwfl;
	uint32_t used_at;
	uint32_t nr_modules;
	uint64_t tried[MAX_MODULES]; // files that are modules, or cannot be
};

struct unwinder {
	struct space spaces[MAX_SPACES];
	uint32_t clock;
	struct cfi_rules *rules;
	Elf *machine; // of this machine, for stacks that begin outside of any file
	// The stack that is being unwound.
	struct ps_maps *maps;
	struct space *space; // NULL: not needed yet, or libdw gives none
	pid_t pid;
	struct user_regs regs;
	struct ps_bytes stack;
	uint64_t *addresses;
	size_t nr, max;
	uint64_t start_ns;
	bool is_above, is_slow; // it was not unwound to its end, as in ps_unwind_counts
};

/* Modules. */

/** Where the first byte of the file's first segment lies, if its code at @map is where it says. */
static bool find_base(Elf *elf, const struct ps_map *map, uint64_t *ret)
{
	GElf_Ehdr file;
	size_t nr = 0;
	elf_getphdrnum(elf, &nr);
	bool has_first = false, has_code = false;
	uint64_t first = 0, bias = 0;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(elf, i, &header) || header.p_type != PT_LOAD)
			continue;
		if (!has_first)
			first = header.p_vaddr &
				(header.p_align > 1 ? -header.p_align : UINT64_MAX);
		has_first = true;
		uint64_t start = header.p_offset & PAGE_MASK;
		if (map->offset >= start && map->offset < header.p_offset + header.p_filesz &&
		    header.p_flags & PF_X) {
			bias = map->start - (map->offset - start) - (header.p_vaddr & PAGE_MASK);
			has_code = true;
		}
	}
	*ret = bias + first;
	return has_code && gelf_getehdr(elf, &file);
}

static void report_file(struct unwinder *unwinder, const struct ps_map *map)
{
	struct elf_file file;
	if (!elf_open_map(unwinder->maps, map, unwinder->pid, &file))
		return;
	Elf *elf = elf_begin(file.fd, ELF_C_READ, NULL);
	uint64_t base;
	bool is_good = elf && elf_kind(elf) == ELF_K_ELF && find_base(elf, map, &base);
	elf_end(elf);
	// It takes the descriptor over when it succeeds.
	if (!is_good || !dwfl_report_elf(unwinder->space->dwfl, map->file->path, file.path, file.fd,
					 base, false))
		close(file.fd);
}

/** Make the file at @address known to libdw, once. */
static void report(struct unwinder *unwinder, uint64_t address)
{
	struct space *space = unwinder->space;
	const struct ps_map *map = ps_maps_find(unwinder->maps, unwinder->pid, address);
	if (!map)
		return;
	for (uint32_t i = 0; i < space->nr_modules; i++) {
		if (space->tried[i] == map->file->id)
			return;
	}
	if (space->nr_modules == MAX_MODULES)
		return;
	space->tried[space->nr_modules++] = map->file->id;
	report_file(unwinder, map);
}

/* What libdw asks. */

static pid_t next_thread(Dwfl *dwfl, void *unwinder, void **thread)
{
	if (*thread)
		return 0;
	*thread = unwinder;
	return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *unwinder, void **thread)
{
	*thread = unwinder;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *unwinder_)
{
	struct unwinder *unwinder = unwinder_;
	// The red zone and all else below is not in the dump.
	if (address < unwinder->regs.sp)
		return false;
	if (ps_bytes_u64(unwinder->stack, address - unwinder->regs.sp, ret))
		return true;
	unwinder->is_above = true;
	return false;
}

static bool set_registers(Dwfl_Thread *thread, void *unwinder_)
{
	const struct user_regs *regs = &((struct unwinder *)unwinder_)->regs;
	for (uint32_t i = 0; i < USER_REGS_MAX; i++) {
		// Some backends know fewer registers; what they refuse they do not need.
		if (regs->known >> i & 1)
			dwfl_thread_state_registers(thread, i, 1, &regs->values[i]);
	}
	dwfl_thread_state_register_pc(thread, regs->pc);
#if defined(__x86_64__)
	return dwfl_thread_state_registers(thread, 16, 1, &regs->pc);
#else
	return true;
#endif
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

/** Debug files are not searched: call frame information is in the files themselves. */
static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			     const char *file, const char *link, GElf_Word crc, char **ret)
{
	return -1;
}

/** All files are told; libdw's own search would ask servers on the network. */
static int find_no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		       char **ret_path, Elf **ret)
{
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_no_elf,
	.find_debuginfo = find_no_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static bool is_too_slow(const struct unwinder *unwinder)
{
	return ps_monotonic_ns() - unwinder->start_ns > PS_UNWIND_LIMIT_NS;
}

static int take_frame(Dwfl_Frame *frame, void *unwinder_)
{
	struct unwinder *unwinder = unwinder_;
	bool is_activation;
	Dwarf_Addr pc;
	if (!dwfl_frame_pc(frame, &pc, &is_activation) || !pc)
		return DWARF_CB_ABORT;
	unwinder->addresses[unwinder->nr++] = pc;
	unwinder->is_slow = is_too_slow(unwinder);
	if (unwinder->nr == unwinder->max || unwinder->is_slow)
		return DWARF_CB_ABORT;
	report(unwinder, is_activation ? pc : pc - 1);
	return DWARF_CB_OK;
}

/* Spaces. */

static void space_deinit(struct space *space)
{
	if (space->dwfl)
		dwfl_end(space->dwfl);
	*space = (struct space){};
}

static struct space *find_room(struct unwinder *unwinder, uint64_t generation)
{
	struct space *oldest = &unwinder->spaces[0];
	for (uint32_t i = 0; i < MAX_SPACES; i++) {
		struct space *space = &unwinder->spaces[i];
		if (space->generation == generation)
			return space;
		if (unwinder->clock - space->used_at > unwinder->clock - oldest->used_at)
			oldest = space;
	}
	space_deinit(oldest);
	return oldest;
}

/** That of the maps as they are now; NULL: libdw gives none. */
static struct space *get_space(struct unwinder *unwinder, uint64_t generation)
{
	struct space *space = find_room(unwinder, generation);
	space->used_at = ++unwinder->clock;
	if (space->dwfl)
		return space;
	space->generation = generation;
	space->dwfl = dwfl_begin(&callbacks);
	if (space->dwfl && dwfl_attach_state(space->dwfl, unwinder->machine, unwinder->pid,
					     &thread_callbacks, unwinder))
		return space;
	space_deinit(space);
	return NULL;
}

/* By rules. */

/** The space of the stack at hand; NULL: there is none. */
static struct space *need_space(struct unwinder *unwinder)
{
	if (unwinder->space)
		return unwinder->space;
	uint64_t generation = ps_maps_generation(unwinder->maps, unwinder->pid);
	unwinder->space = generation ? get_space(unwinder, generation) : NULL;
	return unwinder->space;
}

/** The rule of @address; NULL: it is not in a file. */
static const struct cfi_rule *get_rule(struct unwinder *unwinder, uint64_t address)
{
	const struct ps_map *map = ps_maps_find(unwinder->maps, unwinder->pid, address);
	if (!map)
		return NULL;
	struct cfi_rule *rule =
		cfi_rules_find(unwinder->rules, map->file->id, address - map->start + map->offset);
	if (PS_LIKELY(rule->kind != CFI_UNKNOWN))
		return rule;
	if (!need_space(unwinder))
		return NULL;
	report(unwinder, address);
	Dwarf_Addr bias = 0;
	Dwfl_Module *module = dwfl_addrmodule(unwinder->space->dwfl, address);
	Dwarf_CFI *cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;
	cfi_rule_make(rule, cfi, address - bias);
	return rule;
}

/** What of a thread's state the rules need. */
struct frame {
	uint64_t pc, sp, fp;
	bool has_fp;
};

/** Go over to the caller by @rule. False: this is as far as the stack can be read. *@ret_is_odd: ask libdw. */
static bool step_out(struct unwinder *unwinder, const struct cfi_rule *rule, struct frame *frame,
		     bool *ret_is_odd)
{
	uint64_t base = rule->is_from_frame_pointer ? frame->fp : frame->sp;
	uint64_t cfa = base + rule->cfa;
	*ret_is_odd = (rule->is_from_frame_pointer && !frame->has_fp) || cfa <= frame->sp;
	if (*ret_is_odd)
		return false;
	if (!read_memory(NULL, cfa + rule->return_address, &frame->pc, unwinder) || !frame->pc)
		return false;
	frame->sp = cfa;
	if (rule->is_frame_pointer_saved)
		frame->has_fp = read_memory(NULL, cfa + rule->frame_pointer, &frame->fp, unwinder);
	else if (rule->is_frame_pointer_lost)
		frame->has_fp = false;
	return true;
}

/** Unwind by the rules of all addresses alone. False: one of them needs libdw, and nothing is kept. */
static bool unwind_by_rules(struct unwinder *unwinder)
{
	const struct user_regs *regs = &unwinder->regs;
	struct frame frame = { regs->pc, regs->sp, regs->values[FRAME_POINTER],
			       regs->known >> FRAME_POINTER & 1 };
	bool is_odd = false, has_caller = true;
	while (has_caller && unwinder->nr < unwinder->max && !unwinder->is_slow) {
		const struct cfi_rule *rule = get_rule(unwinder, frame.pc - (unwinder->nr > 0));
		if (!rule || rule->kind == CFI_COMPLEX)
			return false;
		unwinder->addresses[unwinder->nr++] = frame.pc;
		unwinder->is_slow = is_too_slow(unwinder);
		has_caller = rule->kind == CFI_SIMPLE && step_out(unwinder, rule, &frame, &is_odd);
		if (is_odd)
			return false;
	}
	return true;
}

static void unwind_by_libdw(struct unwinder *unwinder)
{
	unwinder->nr = 0;
	unwinder->is_above = false;
	if (!need_space(unwinder))
		return;
	report(unwinder, unwinder->regs.pc);
	dwfl_getthread_frames(unwinder->space->dwfl, 1, take_frame, unwinder);
}

/* The whole. */

static struct unwinder *unwinder_create(struct ps_maps *maps)
{
	struct unwinder *unwinder = calloc(1, sizeof(*unwinder));
	struct cfi_rules *rules = cfi_rules_create();
	if (!unwinder || !rules) {
		free(unwinder);
		cfi_rules_destroy(rules);
		return NULL;
	}
	unwinder->rules = rules;
	unwinder->maps = maps;
	// Any file of this machine's will do; this one is in each process.
	char *image = (char *)getauxval(AT_SYSINFO_EHDR);
	const GElf_Ehdr *header = (const void *)image;
	if (image)
		unwinder->machine = elf_memory(
			image, header->e_shoff + (size_t)header->e_shnum * header->e_shentsize);
	return unwinder;
}

void unwinder_destroy(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	for (uint32_t i = 0; i < MAX_SPACES; i++)
		space_deinit(&unwinder->spaces[i]);
	elf_end(unwinder->machine);
	cfi_rules_destroy(unwinder->rules);
	free(unwinder);
}

static void count(struct ps_unwind_counts *counts, const struct unwinder *unwinder,
		  const struct ps_user_state *state)
{
	bool is_deep = unwinder->nr == unwinder->max;
	counts->nr_stacks++;
	counts->nr_deep += is_deep;
	counts->nr_slow += !is_deep && unwinder->is_slow;
	counts->nr_above += !is_deep && !unwinder->is_slow && unwinder->is_above && state->is_cut;
}

size_t ps_unwind_user(struct ps_symbolizer *symbolizer, pid_t pid,
		      const struct ps_user_state *state, uint64_t *ret, size_t max)
{
	if (!symbolizer->unwinder)
		symbolizer->unwinder = unwinder_create(symbolizer->maps);
	struct unwinder *unwinder = symbolizer->unwinder;
	if (!unwinder || !max || !user_regs_read(state, &unwinder->regs))
		return 0;
	unwinder->pid = pid;
	unwinder->stack = state->stack;
	unwinder->addresses = ret;
	unwinder->nr = 0;
	unwinder->max = max;
	unwinder->start_ns = ps_monotonic_ns();
	unwinder->is_above = unwinder->is_slow = false;
	// First, since it may look the process up.
	bool is_mapped = ps_maps_find(symbolizer->maps, pid, unwinder->regs.pc);
	unwinder->space = NULL;
	bool is_by_rules = is_mapped && unwind_by_rules(unwinder);
	if (is_mapped && !is_by_rules)
		unwind_by_libdw(unwinder);
	symbolizer->unwind_counts.nr_by_rules += is_by_rules;
	if (!unwinder->nr)
		ret[unwinder->nr++] = unwinder->regs.pc;
	count(&symbolizer->unwind_counts, unwinder, state);
	return unwinder->nr;
}

struct ps_unwind_counts ps_symbolizer_unwind_counts(const struct ps_symbolizer *symbolizer)
{
	return symbolizer->unwind_counts;
}
