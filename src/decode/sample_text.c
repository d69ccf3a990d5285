// SPDX-License-Identifier: MIT
/** Parts of a sample in words, as `perf script` and `perf mem` have them. */
#include <linux/perf_event.h>
#include <perfscope/cleanup.h>
#include <perfscope/sample_text.h>

#include <inttypes.h>

/** The words of one list, parted. */
struct words {
	FILE *stream;
	const char *separator;
	size_t nr;
};

static void put(struct words *words, const char *word)
{
	fprintf(words->stream, "%s%s", words->nr++ ? words->separator : "", word);
}

/** The word of each bit of @bits; bits without one are passed over. */
static void put_bits(struct words *words, uint64_t bits, const char *const *names, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (bits >> i & 1 && names[i])
			put(words, names[i]);
	}
}

#define PUT_BITS(words, bits, names) put_bits(words, bits, names, PS_ARRAY_SIZE(names))

static const char *name_of(const char *const *names, size_t nr, uint64_t number)
{
	return number < nr ? names[number] : NULL;
}

#define NAME_OF(names, number) name_of(names, PS_ARRAY_SIZE(names), number)

static void put_not_available(struct words *words)
{
	if (!words->nr)
		put(words, "N/A");
}

/*
 * data_src: union perf_mem_data_src. Its bits are mirrored on big-endian machines, so that the number is the same on
 * all. Bit 0 of most parts says that nothing is known.
 */

#define DATA_SRC(value, name, nr_bits) ((value) >> PERF_MEM_##name##_SHIFT & ((1 << (nr_bits)) - 1))

static const char *const op_names[] = { NULL, "LOAD", "STORE", "PFETCH", "EXEC" };
static const char *const level_names[] = {
	NULL,
	NULL,
	NULL,
	"L1",
	"LFB/MAB",
	"L2",
	"L3",
	"Local RAM",
	"Remote RAM (1 hop)",
	"Remote RAM (2 hops)",
	"Remote Cache (1 hop)",
	"Remote Cache (2 hops)",
	"I/O",
	"Uncached",
};
// By number, of which 0 and PERF_MEM_LVLNUM_NA say nothing.
static const char *const level_number_names[] = {
	NULL,	"L1",	    "L2",  "L3",  "L4",	       "L2 MHB",  "Memory-side Cache",
	"L0",	"Uncached", "CXL", "I/O", "Any cache", "LFB/MAB", "RAM",
	"PMEM", NULL,
};
static const char *const hop_names[] = {
	NULL, "core, same node", "node, same socket", "socket, same board", "board",
};
static const char *const snoop_names[] = { NULL, "None", "Hit", "Miss", "HitM" };
static const char *const snoop_more_names[] = { "Fwd", "Peer" };
static const char *const tlb_names[] = { NULL, NULL, NULL, "L1", "L2", "Walker", "Fault" };
static const char *const blocked_names[] = { NULL, "Data", "Addr" };

/** What hit and miss add, bits 1 and 2 of a level's part and of the TLB's. */
static void write_outcome(uint64_t part, FILE *stream)
{
	fprintf(stream, "%s%s", part & PERF_MEM_LVL_HIT ? " hit" : "",
		part & PERF_MEM_LVL_MISS ? " miss" : "");
}

/** The level by its number and how far away; where that says nothing by the older bits. */
static void write_level(uint64_t value, FILE *stream)
{
	struct words words = { stream, " or ", 0 };
	uint64_t levels = DATA_SRC(value, LVL, 14);
	const char *number = NAME_OF(level_number_names, DATA_SRC(value, LVLNUM, 4));
	const char *hops = NAME_OF(hop_names, DATA_SRC(value, HOPS, 3));
	if (number || hops) {
		words.separator = " ";
		if (DATA_SRC(value, REMOTE, 1))
			put(&words, "Remote");
		if (hops)
			put(&words, hops);
		if (number)
			put(&words, number);
	} else {
		PUT_BITS(&words, levels, level_names);
	}
	put_not_available(&words);
	write_outcome(levels, stream);
}

static void write_snoop(uint64_t value, FILE *stream)
{
	struct words words = { stream, " or ", 0 };
	PUT_BITS(&words, DATA_SRC(value, SNOOP, 5), snoop_names);
	PUT_BITS(&words, DATA_SRC(value, SNOOPX, 2), snoop_more_names);
	put_not_available(&words);
}

static void write_tlb(uint64_t value, FILE *stream)
{
	struct words words = { stream, " or ", 0 };
	uint64_t tlb = DATA_SRC(value, TLB, 7);
	PUT_BITS(&words, tlb, tlb_names);
	put_not_available(&words);
	write_outcome(tlb, stream);
}

static const char *lock_text(uint64_t value)
{
	uint64_t lock = DATA_SRC(value, LOCK, 2);
	if (lock & PERF_MEM_LOCK_LOCKED)
		return "Yes";
	return lock & PERF_MEM_LOCK_NA ? "N/A" : "No";
}

void ps_write_data_src(uint64_t value, FILE *stream)
{
	struct words op = { stream, " or ", 0 }, blocked = op;
	fputs("OP ", stream);
	PUT_BITS(&op, DATA_SRC(value, OP, 5), op_names);
	put_not_available(&op);
	fputs("|LVL ", stream);
	write_level(value, stream);
	fputs("|SNP ", stream);
	write_snoop(value, stream);
	fputs("|TLB ", stream);
	write_tlb(value, stream);
	fprintf(stream, "|LCK %s|BLK ", lock_text(value));
	PUT_BITS(&blocked, DATA_SRC(value, BLK, 3), blocked_names);
	put_not_available(&blocked);
}

/* The others. */

static const char *const transaction_names[] = {
	"EL", "TX", "SYNC", "ASYNC", "RETRY", "CON", "CAP-WRITE", "CAP-READ",
};

void ps_write_transaction(uint64_t value, FILE *stream)
{
	struct words words = { stream, " ", 0 };
	PUT_BITS(&words, value, transaction_names);
	put_not_available(&words);
	uint64_t code = value >> PERF_TXN_ABORT_SHIFT;
	if (code)
		fprintf(stream, " :%" PRIx64, code);
}

void ps_write_page_size(uint64_t value, FILE *stream)
{
	static const char units[] = "BKMGT";
	size_t unit = 0;
	while (value && !(value & 1023) && unit < sizeof(units) - 2) {
		value >>= 10;
		unit++;
	}
	if (value)
		fprintf(stream, "%" PRIu64 "%c", value, units[unit]);
	else
		fputs("N/A", stream);
}

static const char *const branch_type_names[] = {
	NULL,	  "COND",      "UNCOND",   "IND",  "CALL", "IND_CALL", "RET",	"SYSCALL",
	"SYSRET", "COND_CALL", "COND_RET", "ERET", "IRQ",  "SERROR",   "NO_TX",
};
// Where the type is 15; what the architecture names by itself has a number.
static const char *const more_branch_type_names[] = {
	"FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1", "ARCH_2", "ARCH_3", "ARCH_4", "ARCH_5",
};
#define BRANCH_TYPE_MORE 15 // PERF_BR_EXTEND_ABI

static const char *branch_type_text(const struct ps_branch *branch)
{
	const char *text = branch->type == BRANCH_TYPE_MORE
				   ? NAME_OF(more_branch_type_names, branch->new_type)
				   : NAME_OF(branch_type_names, branch->type);
	return text ? text : "-";
}

static char prediction_letter(const struct ps_branch *branch)
{
	if (branch->mispred)
		return 'M';
	return branch->predicted ? 'P' : '-';
}

void ps_write_branch(const struct ps_branch *branch, FILE *stream)
{
	fprintf(stream, "0x%" PRIx64 "/0x%" PRIx64 "/%c/%c/%c/%u/%s", branch->from, branch->to,
		prediction_letter(branch), branch->in_tx ? 'X' : '-', branch->abort ? 'A' : '-',
		branch->cycles, branch_type_text(branch));
}
