// SPDX-License-Identifier: MIT
#include <perfscope/sample_field.h>
#include <perfscope/sample_text.h>

#define FIXED(name) offsetof(struct ps_sample_layout, name), PS_SAMPLE_NO_MEMBER
#define PART(name) PS_SAMPLE_NO_MEMBER, offsetof(struct ps_sample_parts, name)
#define WEIGHTS (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)

const struct ps_sample_field ps_sample_fields[] = {
	{ "ip", PERF_SAMPLE_IP, PS_SAMPLE_U64, "int", "address of the instruction", FIXED(ip), 0,
	  NULL },
	{ "pid", PERF_SAMPLE_TID, PS_SAMPLE_S32, "int", "process id", FIXED(tid), 0, NULL },
	{ "tid", PERF_SAMPLE_TID, PS_SAMPLE_S32, "int", "thread id", FIXED(tid), 4, NULL },
	{ "time", PERF_SAMPLE_TIME, PS_SAMPLE_U64, "int", "ns of the session's clock", FIXED(time),
	  0, NULL },
	{ "addr", PERF_SAMPLE_ADDR, PS_SAMPLE_U64, "int", "address of the data", FIXED(addr), 0,
	  NULL },
	{ "id", PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID, PS_SAMPLE_U64, "int",
	  "the kernel's id of the event on this CPU or thread", FIXED(id), 0, NULL },
	{ "identifier", PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID, PS_SAMPLE_U64, "int",
	  "the same as id", FIXED(id), 0, NULL },
	{ "stream_id", PERF_SAMPLE_STREAM_ID, PS_SAMPLE_U64, "int",
	  "the id of the event itself where it was inherited", FIXED(stream_id), 0, NULL },
	{ "cpu", PERF_SAMPLE_CPU, PS_SAMPLE_U32, "int", "CPU", FIXED(cpu), 0, NULL },
	{ "period", PERF_SAMPLE_PERIOD, PS_SAMPLE_U64, "int",
	  "how many occurrences the sample stands for", FIXED(period), 0, NULL },
	{ "read", PERF_SAMPLE_READ, PS_SAMPLE_COUNTS, "dict", "the counters at the sample",
	  PART(read), 0, NULL },
	{ "callchain", PERF_SAMPLE_CALLCHAIN, PS_SAMPLE_ADDRESSES, "tuple[int, ...]",
	  "addresses of the call stack with the kernel's context marks, innermost first",
	  PART(callchain), 0, NULL },
	{ "raw", PERF_SAMPLE_RAW, PS_SAMPLE_RAW_BYTES, "bytes",
	  "what the PMU or a BPF program adds", PART(raw), 0, NULL },
	{ "branch_stack", PERF_SAMPLE_BRANCH_STACK, PS_SAMPLE_BRANCHES, "list[dict]",
	  "the last branches, newest first", PART(branch_stack), 0, NULL },
	{ "regs_user", PERF_SAMPLE_REGS_USER, PS_SAMPLE_REGISTERS, "dict[str, int]",
	  "registers of user space, and abi: 0 none, 1 of 32 bits, 2 of 64", PART(regs_user), 0,
	  NULL },
	{ "stack_user", PERF_SAMPLE_STACK_USER, PS_SAMPLE_STACK, "bytes",
	  "the top of the user stack", PART(stack_user), 0, NULL },
	{ "weight", WEIGHTS, PS_SAMPLE_U64, "int", "cost of the access, of the PMU's unit",
	  PART(weight), 0, NULL },
	{ "data_src", PERF_SAMPLE_DATA_SRC, PS_SAMPLE_U64, "int",
	  "where the data came from; symbolic() tells it in words", PART(data_src), 0,
	  ps_write_data_src },
	{ "transaction", PERF_SAMPLE_TRANSACTION, PS_SAMPLE_U64, "int",
	  "why a transaction was aborted; symbolic() tells it in words", PART(transaction), 0,
	  ps_write_transaction },
	{ "regs_intr", PERF_SAMPLE_REGS_INTR, PS_SAMPLE_REGISTERS, "dict[str, int]",
	  "registers at the interrupt, and abi", PART(regs_intr), 0, NULL },
	{ "phys_addr", PERF_SAMPLE_PHYS_ADDR, PS_SAMPLE_U64, "int", "physical address of the data",
	  PART(phys_addr), 0, NULL },
	{ "cgroup", PERF_SAMPLE_CGROUP, PS_SAMPLE_U64, "int", "id of the thread's cgroup",
	  PART(cgroup), 0, NULL },
	{ "data_page_size", PERF_SAMPLE_DATA_PAGE_SIZE, PS_SAMPLE_U64, "int",
	  "bytes of the page of the data", PART(data_page_size), 0, ps_write_page_size },
	{ "code_page_size", PERF_SAMPLE_CODE_PAGE_SIZE, PS_SAMPLE_U64, "int",
	  "bytes of the page of the instruction", PART(code_page_size), 0, ps_write_page_size },
	{ "aux", PERF_SAMPLE_AUX, PS_SAMPLE_BYTES, "bytes", "a piece of the AUX area", PART(aux), 0,
	  NULL },
};
const size_t ps_nr_sample_fields = PS_ARRAY_SIZE(ps_sample_fields);

bool ps_sample_has_field(uint64_t sample_type, bool has_own_fields,
			 const struct ps_sample_field *field)
{
	if (!has_own_fields)
		return field->bits & sample_type;
	return field->bits & sample_type & ~(uint64_t)(PS_SAMPLE_BASE | PERF_SAMPLE_RAW);
}

bool ps_sample_find_field(const struct ps_sample_layout *layout,
			  const struct perf_event_header *header,
			  const struct ps_sample_field *field, struct ps_bytes *ret)
{
	struct ps_bytes record = { (const uint8_t *)header, header->size };
	uint32_t offset;
	if (field->layout_member != PS_SAMPLE_NO_MEMBER) {
		uint16_t member;
		memcpy(&member, (const char *)layout + field->layout_member, sizeof(member));
		offset = member;
	} else {
		struct ps_sample_parts parts;
		ps_sample_walk(layout, header, &parts);
		memcpy(&offset, (const char *)&parts + field->part_member, sizeof(offset));
	}
	if (!offset || offset > record.size)
		return false;
	return ps_bytes_slice(record, offset + field->delta, record.size - offset - field->delta,
			      ret);
}
