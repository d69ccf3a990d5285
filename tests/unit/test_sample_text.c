// SPDX-License-Identifier: MIT
#include "test.h"

#include <linux/perf_event.h>
#include <perfscope/cleanup.h>
#include <perfscope/sample_text.h>

static char *text_of(void (*write)(uint64_t value, FILE *stream), uint64_t value)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	assert_non_null(stream);
	write(value, stream);
	fclose(stream);
	return text;
}

#define ASSERT_TEXT(write, value, expected)                                                        \
	do {                                                                                       \
		char *text_ = text_of(write, value);                                               \
		ASSERT_STR_EQ(text_, expected);                                                    \
		free(text_);                                                                       \
	} while (0)

/** The part of a data_src's text that begins with @name is @expected. */
static void check_part(uint64_t value, const char *name, const char *expected)
{
	char *text = text_of(ps_write_data_src, value), *rest = text, *found = NULL, *part;
	while ((part = strsep(&rest, "|"))) {
		if (!strncmp(part, name, strlen(name)))
			found = part + strlen(name) + 1;
	}
	assert_non_null(found);
	ASSERT_STR_EQ(found, expected);
	free(text);
}

#define MEM(part, name) ((uint64_t)PERF_MEM_##part##_##name << PERF_MEM_##part##_SHIFT)

TEST(sample_text, a_load_is_told_in_the_words_of_perf)
{
	uint64_t load = MEM(OP, LOAD) | MEM(LVL, HIT) | MEM(LVL, L1) | MEM(SNOOP, NONE) |
			MEM(LOCK, NA) | MEM(TLB, HIT) | MEM(TLB, L1) | MEM(TLB, L2) | MEM(BLK, NA);
	ASSERT_TEXT(ps_write_data_src, load,
		    "OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK N/A|BLK N/A");
}

TEST(sample_text, what_the_kernel_writes_for_nothing_known_is_not_available)
{
	// PERF_MEM_NA of the kernel, and 0 of one that fills nothing in.
	ASSERT_TEXT(ps_write_data_src, 0x1e05080021,
		    "OP N/A|LVL N/A|SNP N/A|TLB N/A|LCK N/A|BLK N/A");
	ASSERT_TEXT(ps_write_data_src, 0, "OP N/A|LVL N/A|SNP N/A|TLB N/A|LCK No|BLK N/A");
}

TEST(sample_text, each_bit_of_a_data_source_has_its_word)
{
	static const struct {
		uint64_t value;
		const char *name, *expected;
	} rows[] = {
		{ MEM(OP, LOAD), "OP", "LOAD" },
		{ MEM(OP, STORE), "OP", "STORE" },
		{ MEM(OP, PFETCH), "OP", "PFETCH" },
		{ MEM(OP, EXEC), "OP", "EXEC" },
		{ MEM(OP, LOAD) | MEM(OP, STORE), "OP", "LOAD or STORE" },
		{ MEM(LVL, L1) | MEM(LVL, MISS), "LVL", "L1 miss" },
		{ MEM(LVL, LFB) | MEM(LVL, HIT), "LVL", "LFB/MAB hit" },
		{ MEM(LVL, L2), "LVL", "L2" },
		{ MEM(LVL, L3), "LVL", "L3" },
		{ MEM(LVL, LOC_RAM), "LVL", "Local RAM" },
		{ MEM(LVL, REM_RAM1), "LVL", "Remote RAM (1 hop)" },
		{ MEM(LVL, REM_RAM2), "LVL", "Remote RAM (2 hops)" },
		{ MEM(LVL, REM_CCE1), "LVL", "Remote Cache (1 hop)" },
		{ MEM(LVL, REM_CCE2), "LVL", "Remote Cache (2 hops)" },
		{ MEM(LVL, REM_CCE1) | MEM(LVL, L3), "LVL", "L3 or Remote Cache (1 hop)" },
		{ MEM(LVL, IO), "LVL", "I/O" },
		{ MEM(LVL, UNC) | MEM(LVL, HIT), "LVL", "Uncached hit" },
		{ MEM(SNOOP, NONE), "SNP", "None" },
		{ MEM(SNOOP, HIT), "SNP", "Hit" },
		{ MEM(SNOOP, MISS), "SNP", "Miss" },
		{ MEM(SNOOP, HITM), "SNP", "HitM" },
		{ MEM(SNOOPX, FWD), "SNP", "Fwd" },
		{ MEM(SNOOP, HITM) | (2ULL << PERF_MEM_SNOOPX_SHIFT), "SNP", "HitM or Peer" },
		{ MEM(TLB, L1) | MEM(TLB, MISS), "TLB", "L1 miss" },
		{ MEM(TLB, WK) | MEM(TLB, HIT), "TLB", "Walker hit" },
		{ MEM(TLB, OS), "TLB", "Fault" },
		{ MEM(LOCK, LOCKED), "LCK", "Yes" },
		{ MEM(BLK, DATA), "BLK", "Data" },
		{ MEM(BLK, ADDR), "BLK", "Addr" },
		{ MEM(BLK, DATA) | MEM(BLK, ADDR), "BLK", "Data or Addr" },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(rows); i++)
		check_part(rows[i].value, rows[i].name, rows[i].expected);
}

TEST(sample_text, each_number_of_a_level_has_its_word)
{
	static const char *const words[16] = {
		"N/A",
		"L1 hit",
		"L2 hit",
		"L3 hit",
		"L4 hit",
		"L2 MHB hit",
		"Memory-side Cache hit",
		"L0 hit",
		"Uncached hit",
		"CXL hit",
		"I/O hit",
		"Any cache hit",
		"LFB/MAB hit",
		"RAM hit",
		"PMEM hit",
		"N/A",
	};
	for (uint64_t number = 0; number < 16; number++) {
		bool is_known = number && number != PERF_MEM_LVLNUM_NA;
		check_part(number << PERF_MEM_LVLNUM_SHIFT | (is_known ? MEM(LVL, HIT) : 0), "LVL",
			   words[number]);
	}
}

TEST(sample_text, a_remote_level_has_its_hops_and_wins_over_the_old_bits)
{
	static const char *const words[] = {
		"Remote Any cache hit",
		"Remote core, same node Any cache hit",
		"Remote node, same socket Any cache hit",
		"Remote socket, same board Any cache hit",
		"Remote board Any cache hit",
		"Remote Any cache hit", // 5 has no word
	};
	for (uint64_t hops = 0; hops < PS_ARRAY_SIZE(words); hops++)
		check_part(hops << PERF_MEM_HOPS_SHIFT | MEM(REMOTE, REMOTE) |
				   MEM(LVLNUM, ANY_CACHE) | MEM(LVL, HIT) | MEM(LVL, REM_CCE1),
			   "LVL", words[hops]);
}

TEST(sample_text, each_flag_of_a_transaction_has_its_word)
{
	static const char *const words[] = { "EL",    "TX",  "SYNC",	  "ASYNC",
					     "RETRY", "CON", "CAP-WRITE", "CAP-READ" };
	for (size_t i = 0; i < PS_ARRAY_SIZE(words); i++)
		ASSERT_TEXT(ps_write_transaction, 1ULL << i, words[i]);
	ASSERT_TEXT(ps_write_transaction, 0, "N/A");
	ASSERT_TEXT(ps_write_transaction,
		    PERF_TXN_TRANSACTION | PERF_TXN_SYNC | PERF_TXN_CONFLICT |
			    0x2aULL << PERF_TXN_ABORT_SHIFT,
		    "TX SYNC CON :2a");
}

TEST(sample_text, page_sizes_have_their_unit)
{
	ASSERT_TEXT(ps_write_page_size, 0, "N/A");
	ASSERT_TEXT(ps_write_page_size, 4096, "4K");
	ASSERT_TEXT(ps_write_page_size, 65536, "64K");
	ASSERT_TEXT(ps_write_page_size, 2 << 20, "2M");
	ASSERT_TEXT(ps_write_page_size, 1 << 30, "1G");
	ASSERT_TEXT(ps_write_page_size, 512ULL << 30, "512G");
	ASSERT_TEXT(ps_write_page_size, 1000, "1000B");
}

static void check_branch(struct perf_branch_entry entry, const char *expected)
{
	struct ps_branch branch;
	struct ps_bytes bytes = { (const uint8_t *)&entry, sizeof(entry) };
	ASSERT_TRUE(ps_branch_read(bytes, 0, &branch));
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	ps_write_branch(&branch, stream);
	fclose(stream);
	ASSERT_STR_EQ(text, expected);
	free(text);
}

TEST(sample_text, branches_are_told_by_their_bit_fields)
{
	static const char *const types[16] = {
		"-",	  "COND",      "UNCOND",   "IND",  "CALL", "IND_CALL", "RET",	"SYSCALL",
		"SYSRET", "COND_CALL", "COND_RET", "ERET", "IRQ",  "SERROR",   "NO_TX",
	};
	for (unsigned int type = 0; type < 15; type++) {
		char expected[64];
		snprintf(expected, sizeof(expected), "0x10/0xffffffffffffffff/-/-/-/0/%s",
			 types[type]);
		check_branch((struct perf_branch_entry){ .from = 16, .to = -1, .type = type },
			     expected);
	}
	check_branch((struct perf_branch_entry){ .mispred = 1, .in_tx = 1, .cycles = 65535 },
		     "0x0/0x0/M/X/-/65535/-");
	check_branch((struct perf_branch_entry){ .predicted = 1, .abort = 1, .cycles = 1 },
		     "0x0/0x0/P/-/A/1/-");
	check_branch((struct perf_branch_entry){ .type = 15, .new_type = 2 },
		     "0x0/0x0/-/-/-/0/FAULT_INST");
	check_branch((struct perf_branch_entry){ .type = 15, .new_type = 7, .spec = 3, .priv = 7 },
		     "0x0/0x0/-/-/-/0/ARCH_5");
}

TEST(sample_text, a_branch_partly_outside_is_refused)
{
	uint8_t bytes[PS_BRANCH_SIZE] = { 0 };
	struct ps_branch branch = { .from = 7 };
	ASSERT_FALSE(ps_branch_read((struct ps_bytes){ bytes, PS_BRANCH_SIZE - 1 }, 0, &branch));
	ASSERT_FALSE(ps_branch_read((struct ps_bytes){ bytes, PS_BRANCH_SIZE }, 1, &branch));
	ASSERT_EQ(branch.from, 7);
}
