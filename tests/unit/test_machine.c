// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/machine.h>

TEST(machine, names_of_uname_tell_registers_and_longs)
{
	static const struct {
		const char *name;
		enum ps_arch arch;
		uint8_t long_size;
	} rows[] = {
		{ "x86_64", PS_ARCH_X86, 8 },	    { "i386", PS_ARCH_X86, 4 },
		{ "i686", PS_ARCH_X86, 4 },	    { "aarch64", PS_ARCH_ARM64, 8 },
		{ "aarch64_be", PS_ARCH_ARM64, 8 }, { "arm64", PS_ARCH_ARM64, 8 },
		{ "armv7l", PS_ARCH_OTHER, 4 },	    { "armv7b", PS_ARCH_OTHER, 4 },
		{ "s390x", PS_ARCH_OTHER, 8 },	    { "ppc64", PS_ARCH_OTHER, 8 },
		{ "ppc", PS_ARCH_OTHER, 4 },	    { "mystery", PS_ARCH_OTHER, 8 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ps_machine machine = ps_machine_of(rows[i].name, true);
		ASSERT_EQ(machine.arch, rows[i].arch);
		ASSERT_EQ(machine.long_size, rows[i].long_size);
		ASSERT_TRUE(machine.is_swapped);
	}
}

TEST(machine, null_is_this_one)
{
	ASSERT_EQ(ps_machine_or_this(NULL), &ps_this_machine);
	ASSERT_FALSE(ps_this_machine.is_swapped);
	ASSERT_EQ(ps_this_machine.long_size, sizeof(long));
}

TEST(machine, registers_have_the_names_of_their_architecture)
{
	ASSERT_STR_EQ(ps_register_name(PS_ARCH_X86, 0), "ax");
	ASSERT_STR_EQ(ps_register_name(PS_ARCH_X86, 8), "ip");
	ASSERT_STR_EQ(ps_register_name(PS_ARCH_X86, 15), "gs");
	ASSERT_STR_EQ(ps_register_name(PS_ARCH_X86, 16), "r8");
	ASSERT_STR_EQ(ps_register_name(PS_ARCH_X86, 23), "r15");
	ASSERT_NULL(ps_register_name(PS_ARCH_X86, 24));
	ASSERT_STR_EQ(ps_register_name(PS_ARCH_X86, 32), "xmm0");
	ASSERT_STR_EQ(ps_register_name(PS_ARCH_X86, 63), "xmm15_high");
	ASSERT_NULL(ps_register_name(PS_ARCH_X86, 64));
	ASSERT_STR_EQ(ps_register_name(PS_ARCH_ARM64, 0), "x0");
	ASSERT_STR_EQ(ps_register_name(PS_ARCH_ARM64, 30), "lr");
	ASSERT_STR_EQ(ps_register_name(PS_ARCH_ARM64, 31), "sp");
	ASSERT_STR_EQ(ps_register_name(PS_ARCH_ARM64, 32), "pc");
	ASSERT_NULL(ps_register_name(PS_ARCH_ARM64, 33));
	ASSERT_STR_EQ(ps_register_name(PS_ARCH_ARM64, 46), "vg");
	ASSERT_NULL(ps_register_name(PS_ARCH_OTHER, 0));
}
