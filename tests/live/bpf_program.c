// SPDX-License-Identifier: MIT
/** bpf_program NAME N: loads a BPF program of that name, which writes to the trace, runs it N times, and removes it. */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// trace_printk("known", 6), the text on the stack.
static const struct bpf_insn instructions[] = {
	{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .imm = 0x776f6e6b },
	{ .imm = 0x6e },
	{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 10, .src_reg = 1, .off = -8 },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 10 },
	{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 1, .imm = -8 },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 6 },
	{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_trace_printk },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

static int call(enum bpf_cmd command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int load(const char *name)
{
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uintptr_t)instructions,
		.insn_cnt = sizeof(instructions) / sizeof(instructions[0]),
		.license = (uintptr_t) "GPL",
	};
	strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
	return call(BPF_PROG_LOAD, &attr);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	int fd = load(argv[1]);
	char packet[64] = "";
	union bpf_attr attr = {
		.test = {
			.prog_fd = fd,
			.data_in = (uintptr_t)packet,
			.data_size_in = sizeof(packet),
			.repeat = 1,
		},
	};
	for (int i = atoi(argv[2]); i > 0 && fd >= 0; i--) {
		if (call(BPF_PROG_TEST_RUN, &attr))
			fd = -1;
	}
	if (fd < 0)
		fprintf(stderr, "bpf: %s\n", strerror(errno));
	return fd < 0;
}
