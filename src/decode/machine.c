// SPDX-License-Identifier: MIT
#include <perfscope/machine.h>

#include <fnmatch.h>
#include <perfscope/cleanup.h>

const struct ps_machine ps_this_machine = {
#if defined(__x86_64__) || defined(__i386__)
	.arch = PS_ARCH_X86,
#elif defined(__aarch64__)
	.arch = PS_ARCH_ARM64,
#endif
	.long_size = sizeof(long),
};

// What uname -m says, as a glob.
static const struct {
	const char *name;
	enum ps_arch arch;
	uint8_t long_size;
} machines[] = {
	{ "x86_64", PS_ARCH_X86, 8 },	  { "i?86", PS_ARCH_X86, 4 },
	{ "aarch64*", PS_ARCH_ARM64, 8 }, { "arm64*", PS_ARCH_ARM64, 8 },
	{ "arm*", PS_ARCH_OTHER, 4 },	  { "ppc", PS_ARCH_OTHER, 4 },
	{ "mips", PS_ARCH_OTHER, 4 },	  { "riscv32", PS_ARCH_OTHER, 4 },
	{ "sparc", PS_ARCH_OTHER, 4 },	  { "s390", PS_ARCH_OTHER, 4 },
};

struct ps_machine ps_machine_of(const char *name, bool is_swapped)
{
	struct ps_machine machine = { .long_size = 8, .is_swapped = is_swapped };
	for (size_t i = 0; i < PS_ARRAY_SIZE(machines); i++) {
		if (fnmatch(machines[i].name, name, 0))
			continue;
		machine.arch = machines[i].arch;
		machine.long_size = machines[i].long_size;
		break;
	}
	return machine;
}

// By number of the bit in sample_regs_user: asm/perf_regs.h of each architecture.
static const char *const x86_names[] = {
	"ax",
	"bx",
	"cx",
	"dx",
	"si",
	"di",
	"bp",
	"sp",
	"ip",
	"flags",
	"cs",
	"ss",
	"ds",
	"es",
	"fs",
	"gs",
	"r8",
	"r9",
	"r10",
	"r11",
	"r12",
	"r13",
	"r14",
	"r15",
	// Two words each, the low one first.
	[32] = "xmm0",
	"xmm0_high",
	"xmm1",
	"xmm1_high",
	"xmm2",
	"xmm2_high",
	"xmm3",
	"xmm3_high",
	"xmm4",
	"xmm4_high",
	"xmm5",
	"xmm5_high",
	"xmm6",
	"xmm6_high",
	"xmm7",
	"xmm7_high",
	"xmm8",
	"xmm8_high",
	"xmm9",
	"xmm9_high",
	"xmm10",
	"xmm10_high",
	"xmm11",
	"xmm11_high",
	"xmm12",
	"xmm12_high",
	"xmm13",
	"xmm13_high",
	"xmm14",
	"xmm14_high",
	"xmm15",
	"xmm15_high",
};

static const char *const arm64_names[] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",	"x8",  "x9",	    "x10", "x11",
	"x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",	    "x22", "x23",
	"x24", "x25", "x26", "x27", "x28", "x29", "lr",	 "sp",	"pc",  [46] = "vg",
};

const char *ps_register_name(enum ps_arch arch, unsigned int number)
{
	switch (arch) {
	case PS_ARCH_X86:
		return number < PS_ARRAY_SIZE(x86_names) ? x86_names[number] : NULL;
	case PS_ARCH_ARM64:
		return number < PS_ARRAY_SIZE(arm64_names) ? arm64_names[number] : NULL;
	case PS_ARCH_OTHER:
		break;
	}
	return NULL;
}
