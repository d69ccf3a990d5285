// SPDX-License-Identifier: MIT
/**
 * A borrowed range of bytes whose every read is checked.
 */
#ifndef PERFSCOPE_BYTES_H
#define PERFSCOPE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ps_bytes {
	const uint8_t *data;
	size_t size;
};

/** The @size bytes from @offset; false, and @ret untouched, when they are not all inside. */
static inline bool ps_bytes_slice(struct ps_bytes bytes, size_t offset, size_t size,
				  struct ps_bytes *ret)
{
	if (offset > bytes.size || size > bytes.size - offset)
		return false;
	*ret = (struct ps_bytes){ bytes.data + offset, size };
	return true;
}

#define PS_BYTES_DEFINE_READ(name, type)                                                           \
	static inline bool ps_bytes_##name(struct ps_bytes bytes, size_t offset, type *ret)        \
	{                                                                                          \
		if (offset > bytes.size || sizeof(type) > bytes.size - offset)                     \
			return false;                                                              \
		memcpy(ret, bytes.data + offset, sizeof(type));                                    \
		return true;                                                                       \
	}

PS_BYTES_DEFINE_READ(u8, uint8_t)
PS_BYTES_DEFINE_READ(u16, uint16_t)
PS_BYTES_DEFINE_READ(u32, uint32_t)
PS_BYTES_DEFINE_READ(u64, uint64_t)

#endif
