// SPDX-License-Identifier: MIT
#include "branch.h"

#include <perfscope/cleanup.h>
#include <perfscope/sample_text.h>

#define IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

// The bit fields behind `from` and `to`, from the low end where the machine is little-endian, and from the high end
// where it is big-endian: first bit, number of bits.
static const uint8_t flag_bits[][2] = {
	{ 0, 1 },  // mispred
	{ 1, 1 },  // predicted
	{ 2, 1 },  // in_tx
	{ 3, 1 },  // abort
	{ 4, 16 }, // cycles
	{ 20, 4 }, // type
	{ 24, 2 }, // spec
	{ 26, 4 }, // new_type
	{ 30, 3 }, // priv
};

/** Move each bit field to the other end, with its own bits in their order. */
static uint64_t mirror(uint64_t flags, bool to_big_endian)
{
	uint64_t mirrored = 0;
	for (size_t i = 0; i < PS_ARRAY_SIZE(flag_bits); i++) {
		unsigned int low = flag_bits[i][0], nr = flag_bits[i][1], high = 64 - low - nr;
		uint64_t mask = (UINT64_C(1) << nr) - 1;
		mirrored |= to_big_endian ? (flags >> low & mask) << high
					  : (flags >> high & mask) << low;
	}
	return mirrored;
}

void branch_flags_turn(uint8_t *flags)
{
	uint64_t word;
	memcpy(&word, flags, sizeof(word));
	word = mirror(word, IS_BIG_ENDIAN);
	memcpy(flags, &word, sizeof(word));
}

bool ps_branch_read(struct ps_bytes bytes, size_t offset, struct ps_branch *ret)
{
	uint64_t words[3];
	struct ps_bytes entry;
	if (!ps_bytes_slice(bytes, offset, sizeof(words), &entry))
		return false;
	memcpy(words, entry.data, sizeof(words));
	uint64_t flags = IS_BIG_ENDIAN ? mirror(words[2], false) : words[2];
	*ret = (struct ps_branch){
		.from = words[0],
		.to = words[1],
		.mispred = flags & 1,
		.predicted = flags >> 1 & 1,
		.in_tx = flags >> 2 & 1,
		.abort = flags >> 3 & 1,
		.cycles = flags >> 4,
		.type = flags >> 20 & 0xf,
		.new_type = flags >> 26 & 0xf,
	};
	return true;
}
