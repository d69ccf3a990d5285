// SPDX-License-Identifier: MIT
#include "kernel_enum.h"

#include <linux/btf.h>
#include <perfscope/bytes.h>
#include <string.h>

// The kernel's own is some 6 MB.
#define MAX_SIZE (256u << 20)

struct ps_kernel_enums {
	char *data; // what follows borrows from it
	struct ps_bytes types;
	struct ps_bytes names; // each ends in a NUL; the last byte is one
};

/** The bytes of one enumerator; its name is in the first four of them. */
struct enumerator {
	uint32_t name;
	int64_t value;
};

static bool split(struct ps_kernel_enums *enums, size_t size)
{
	struct ps_bytes all = { (const uint8_t *)enums->data, size };
	struct btf_header header;
	if (size < sizeof(header))
		return false;
	memcpy(&header, all.data, sizeof(header));
	return header.magic == BTF_MAGIC && header.version == BTF_VERSION &&
	       ps_bytes_slice(all, header.hdr_len, size - header.hdr_len, &all) &&
	       ps_bytes_slice(all, header.type_off, header.type_len, &enums->types) &&
	       ps_bytes_slice(all, header.str_off, header.str_len, &enums->names) &&
	       enums->names.size && !enums->names.data[enums->names.size - 1];
}

struct ps_kernel_enums *ps_kernel_enums_read(const char *path)
{
	_cleanup_kernel_enums_ struct ps_kernel_enums *enums = calloc(1, sizeof(*enums));
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	if (!enums || !file)
		return NULL;
	size_t size = 0, room = 8u << 20, got;
	do {
		char *bigger = size + 1 < MAX_SIZE ? realloc(enums->data, size + room) : NULL;
		if (!bigger)
			return NULL;
		enums->data = bigger;
		got = fread(bigger + size, 1, room, file);
		size += got;
	} while (got == room);
	if (!split(enums, size))
		return NULL;
	return_ptr(enums);
}

void ps_kernel_enums_destroy(struct ps_kernel_enums *enums)
{
	if (!enums)
		return;
	free(enums->data);
	free(enums);
}

/** Bytes that follow the head of a type; false for a kind that is not known, behind which nothing can be found. */
static bool tail_size(uint32_t info, size_t *ret)
{
	size_t nr = BTF_INFO_VLEN(info);
	switch (BTF_INFO_KIND(info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		*ret = 4;
		return true;
	case BTF_KIND_ARRAY:
		*ret = sizeof(struct btf_array);
		return true;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		*ret = nr * sizeof(struct btf_member);
		return true;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		*ret = nr * 8;
		return true;
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		*ret = nr * 12;
		return true;
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		*ret = 0;
		return true;
	default:
		return false;
	}
}

/** Read the enumerator at @offset of @tail, of an enumeration of this @info. */
static bool read_enumerator(struct ps_bytes tail, size_t offset, uint32_t info,
			    struct enumerator *ret)
{
	uint32_t low, high = 0;
	if (!ps_bytes_u32(tail, offset, &ret->name) || !ps_bytes_u32(tail, offset + 4, &low))
		return false;
	if (BTF_INFO_KIND(info) == BTF_KIND_ENUM64) {
		if (!ps_bytes_u32(tail, offset + 8, &high))
			return false;
		ret->value = (int64_t)((uint64_t)high << 32 | low);
	} else {
		ret->value = BTF_INFO_KFLAG(info) ? (int64_t)(int32_t)low : (int64_t)low;
	}
	return true;
}

/** Whether no enumerator of @tail called @name (an offset) says otherwise than those found before. */
static bool find_in(struct ps_bytes tail, uint32_t info, uint32_t name, bool *is_found,
		    int64_t *value)
{
	size_t step = BTF_INFO_KIND(info) == BTF_KIND_ENUM64 ? 12 : 8;
	for (size_t at = 0; at < tail.size; at += step) {
		struct enumerator enumerator;
		if (!read_enumerator(tail, at, info, &enumerator))
			return false;
		if (enumerator.name != name)
			continue;
		if (*is_found && *value != enumerator.value)
			return false;
		*is_found = true;
		*value = enumerator.value;
	}
	return true;
}

static bool find_by_offset(const struct ps_kernel_enums *enums, uint32_t name, int64_t *ret)
{
	bool is_found = false;
	int64_t value = 0;
	struct btf_type type;
	for (size_t at = 0; at + sizeof(type) <= enums->types.size;) {
		struct ps_bytes tail;
		size_t size;
		memcpy(&type, enums->types.data + at, sizeof(type));
		at += sizeof(type);
		if (!tail_size(type.info, &size) || !ps_bytes_slice(enums->types, at, size, &tail))
			return false;
		uint32_t kind = BTF_INFO_KIND(type.info);
		if ((kind == BTF_KIND_ENUM || kind == BTF_KIND_ENUM64) &&
		    !find_in(tail, type.info, name, &is_found, &value))
			return false;
		at += size;
	}
	if (is_found)
		*ret = value;
	return is_found;
}

bool ps_kernel_enums_find(const struct ps_kernel_enums *enums, struct ps_span name, int64_t *ret)
{
	// Each name is there once: its offset stands for it. It is preceded and followed by a NUL.
	_cleanup_free_ char *wanted = calloc(1, name.size + 2);
	if (!wanted || !name.size)
		return false;
	memcpy(wanted + 1, name.start, name.size);
	const uint8_t *found = memmem(enums->names.data, enums->names.size, wanted, name.size + 2);
	return found && find_by_offset(enums, found + 1 - enums->names.data, ret);
}
