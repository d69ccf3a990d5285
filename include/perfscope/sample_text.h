// SPDX-License-Identifier: MIT
/**
 * Parts of a sample in words: what `event.symbolic` and `event.print` show of them.
 */
#ifndef PERFSCOPE_SAMPLE_TEXT_H
#define PERFSCOPE_SAMPLE_TEXT_H

#include <perfscope/bytes.h>
#include <stdio.h>

/** "OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK N/A": union perf_mem_data_src. */
void ps_write_data_src(uint64_t value, FILE *stream);

/** "TX SYNC CON :2a": PERF_TXN_*, the abort code in hex behind the colon. */
void ps_write_transaction(uint64_t value, FILE *stream);

/** "4K", "2M"; of 0, where it is not known, "N/A". */
void ps_write_page_size(uint64_t value, FILE *stream);

#define PS_BRANCH_SIZE 24 // struct perf_branch_entry

/** One taken branch. */
struct ps_branch {
	uint64_t from, to;
	bool mispred, predicted, in_tx, abort;
	uint16_t cycles;
	uint8_t type;	  // PERF_BR_*
	uint8_t new_type; // PERF_BR_NEW_*, where type is PERF_BR_EXTEND_ABI
};

/** Read the struct perf_branch_entry at @offset; false, and @ret untouched: it is not all inside. */
bool ps_branch_read(struct ps_bytes bytes, size_t offset, struct ps_branch *ret);

/** "0x1139/0x1180/P/-/-/12/CALL": from, to, predicted or mispredicted, in a transaction, aborted, cycles, type. */
void ps_write_branch(const struct ps_branch *branch, FILE *stream);

#endif
