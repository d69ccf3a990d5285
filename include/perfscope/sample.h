// SPDX-License-Identifier: MIT
/**
 * Sample: a view of one PERF_RECORD_SAMPLE, whose parts are found by its sample_type.
 *
 * Layout of the record: linux/perf_event.h, comment at PERF_RECORD_SAMPLE.
 */
#ifndef PERFSCOPE_SAMPLE_H
#define PERFSCOPE_SAMPLE_H

#include <linux/perf_event.h>
#include <perfscope/bytes.h>
#include <perfscope/cleanup.h>

/** What every source samples. */
#define PS_SAMPLE_BASE                                                                             \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |           \
	 PERF_SAMPLE_PERIOD)

/** Where the parts of a source's samples start, in bytes from the header; 0: not there. */
struct ps_sample_layout {
	uint64_t sample_type;
	uint64_t read_format;
	uint16_t ip, tid, time, addr, id, stream_id, cpu, period;
	uint16_t variable;     // the first part whose size differs from record to record
	uint16_t raw;	       // the same where it is the raw data, else 0
	uint16_t chain;	       // the same where it is a call chain and the raw data is next, else 0
	uint16_t trailer_size; // of other records: sample_id_all
	uint16_t trailer_time; // bytes of the time from the end of those, 0: none
	uint16_t trailer_cpu;
	// what the sizes of variable parts depend on
	bool has_branch_hw_index, has_branch_counters;
	uint64_t regs_user_mask, regs_intr_mask;
};

/** Lay out the samples and the trailers of an event opened with @attr. @layout->id is that of IDENTIFIER, else of ID. */
void ps_sample_layout_init(struct ps_sample_layout *layout, const struct perf_event_attr *attr);

/** The parts whose place differs; offsets from the header, 0: not there or cut. */
struct ps_sample_parts {
	uint32_t read;
	uint32_t callchain; // u64 nr, nr addresses
	uint32_t raw;	    // u32 size, bytes
	uint32_t raw_size;
	uint32_t branch_stack; // u64 nr, the hardware index where asked for, nr entries
	uint32_t regs_user;    // u64 abi, registers
	uint32_t stack_user;   // u64 size, bytes, u64 how many of them are filled
	uint32_t weight;
	uint32_t data_src;
	uint32_t transaction;
	uint32_t regs_intr;
	uint32_t phys_addr;
	uint32_t cgroup;
	uint32_t data_page_size;
	uint32_t code_page_size;
	uint32_t aux; // u64 size, bytes
};

/** Walk the variable parts once. False: the record is cut or lies; what was found before stays found. */
bool ps_sample_walk(const struct ps_sample_layout *layout, const struct perf_event_header *header,
		    struct ps_sample_parts *ret);

/** The raw data, without a walk where that is possible. False, and @ret untouched: there is none, or it is cut. */
static inline bool ps_sample_raw(const struct ps_sample_layout *layout,
				 const struct perf_event_header *header, struct ps_bytes *ret)
{
	struct ps_bytes record = { (const uint8_t *)header, header->size };
	uint32_t size;
	if (PS_LIKELY(layout->raw))
		return ps_bytes_u32(record, layout->raw, &size) &&
		       ps_bytes_slice(record, layout->raw + sizeof(size), size, ret);
	uint64_t nr;
	if (PS_LIKELY(layout->chain))
		return ps_bytes_u64(record, layout->chain, &nr) && nr < record.size / 8 &&
		       ps_bytes_u32(record, layout->chain + 8 + 8 * nr, &size) &&
		       ps_bytes_slice(record, layout->chain + 8 + 8 * nr + sizeof(size), size, ret);
	struct ps_sample_parts parts;
	ps_sample_walk(layout, header, &parts);
	return parts.raw && ps_bytes_slice(record, parts.raw + sizeof(size), parts.raw_size, ret);
}

#endif
