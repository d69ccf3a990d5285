// SPDX-License-Identifier: MIT
#include "elf_open.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define MAX_PARENTS 8

/* Is it the file that was mapped? */

static bool has_build_id(int fd, const uint8_t *build_id, size_t size)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	uint8_t found[PS_BUILD_ID_SIZE];
	bool is_same = elf && elf_build_id(elf, found) == size && !memcmp(found, build_id, size);
	elf_end(elf);
	return is_same;
}

/** Inode numbers are used again; the generation tells, where the file system shows it. */
static bool has_generation(int fd, uint64_t generation)
{
	int now;
	return !generation || ioctl(fd, FS_IOC_GETVERSION, &now) ||
	       (uint32_t)now == (uint32_t)generation;
}

/**
 * Devices are compared only where both are real ones: overlayfs and btrfs show other numbers to stat() than in maps.
 */
static bool is_device(const struct ps_file *file, const struct stat *stat)
{
	return !file->dev_major || !major(stat->st_dev) ||
	       (file->dev_major == major(stat->st_dev) && file->dev_minor == minor(stat->st_dev));
}

/** A file that was written over in place is the same inode: what is mapped is no longer what is in it. */
static bool is_written_since(const struct ps_file *file, const struct stat *stat)
{
	uint64_t written_ns = stat->st_mtim.tv_sec * UINT64_C(1000000000) + stat->st_mtim.tv_nsec;
	return file->mapped_ns && written_ns > file->mapped_ns;
}

static bool is_mapped_file(int fd, const struct ps_file *file)
{
	struct stat stat;
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode))
		return false;
	if (file->build_id_size)
		return has_build_id(fd, file->build_id, file->build_id_size);
	if (!file->inode)
		return true; // nothing but the path is known
	return stat.st_ino == file->inode && is_device(file, &stat) &&
	       has_generation(fd, file->generation) && !is_written_since(file, &stat);
}

/* Where is it? */

static bool try_open(const struct ps_file *file, struct elf_file *ret)
{
	ret->fd = open(ret->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (ret->fd < 0)
		return false;
	if (is_mapped_file(ret->fd, file))
		return true;
	close(ret->fd);
	ret->fd = -1;
	return false;
}

static bool try_root(const struct ps_file *file, pid_t pid, struct elf_file *ret)
{
	snprintf(ret->root, sizeof(ret->root), "/proc/%d/root", pid);
	sprintf(ret->path, "%s%s", ret->root, file->path);
	return try_open(file, ret);
}

bool elf_open_map(const struct ps_maps *maps, const struct ps_map *map, pid_t pid,
		  struct elf_file *ret)
{
	const struct ps_file *file = map->file;
	ret->fd = -1;
	if (file->path[0] != '/' || strlen(file->path) >= sizeof(ret->path) - sizeof(ret->root))
		return false;
	if (try_root(file, pid, ret))
		return true;
	// Without an identity, what is found elsewhere could be anything.
	bool is_known = file->inode || file->build_id_size;
	pid_t parent = pid;
	// A container's program that has ended: the one that started it sees the same files.
	for (int i = 0; is_known && i < MAX_PARENTS; i++) {
		parent = ps_maps_parent(maps, parent);
		if (parent && try_root(file, parent, ret))
			return true;
	}
	ret->root[0] = 0;
	strcpy(ret->path, file->path);
	if (try_open(file, ret))
		return true;
	sprintf(ret->path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, map->start, map->end);
	if (is_known && try_open(file, ret))
		return true;
	// The map may have been cut since.
	sprintf(ret->path, "/proc/%d/exe", pid);
	return is_known && try_open(file, ret);
}

/* Notes. */

static size_t note_build_id(Elf_Data *data, uint8_t *ret)
{
	GElf_Nhdr note;
	size_t name, content;
	for (size_t at = 0; data && (at = gelf_getnote(data, at, &note, &name, &content));) {
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp((char *)data->d_buf + name, "GNU", 4) &&
		    note.n_descsz <= PS_BUILD_ID_SIZE) {
			memcpy(ret, (char *)data->d_buf + content, note.n_descsz);
			return note.n_descsz;
		}
	}
	return 0;
}

static size_t segment_build_id(Elf *elf, uint8_t *ret)
{
	size_t nr = 0;
	elf_getphdrnum(elf, &nr);
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(elf, i, &header) || header.p_type != PT_NOTE)
			continue;
		Elf_Type type = header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
		size_t size = note_build_id(
			elf_getdata_rawchunk(elf, header.p_offset, header.p_filesz, type), ret);
		if (size)
			return size;
	}
	return 0;
}

size_t elf_build_id(Elf *elf, uint8_t *ret)
{
	GElf_Shdr header;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		// Not from a NOBITS section of a debug file: that has none.
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		size_t size = note_build_id(elf_getdata(section, NULL), ret);
		if (size)
			return size;
	}
	return segment_build_id(elf, ret);
}

/* Separate debug files. */

/** The checksum of a debuglink. */
static uint32_t checksum(int fd)
{
	uint8_t bytes[65536];
	uint32_t crc = UINT32_MAX, table[256];
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
	}
	off_t at = 0;
	for (ssize_t size; (size = pread(fd, bytes, sizeof(bytes), at)) > 0; at += size) {
		for (ssize_t i = 0; i < size; i++)
			crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 255];
	}
	return ~crc;
}

struct debuglink {
	uint8_t build_id[PS_BUILD_ID_SIZE];
	size_t build_id_size;
	const char *name; // NULL: there is none
	uint32_t crc;
};

static bool is_debug_file(int fd, const struct debuglink *link)
{
	struct stat stat;
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode))
		return false;
	return link->build_id_size ? has_build_id(fd, link->build_id, link->build_id_size)
				   : checksum(fd) == link->crc;
}

__attribute__((format(printf, 3, 4))) static bool
try_debug(const struct debuglink *link, struct elf_file *ret, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(ret->path, sizeof(ret->path), format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= sizeof(ret->path))
		return false;
	ret->fd = open(ret->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (ret->fd < 0)
		return false;
	if (is_debug_file(ret->fd, link))
		return true;
	close(ret->fd);
	ret->fd = -1;
	return false;
}

static void read_debuglink(Elf *elf, struct debuglink *ret)
{
	size_t names;
	GElf_Shdr header;
	ret->build_id_size = elf_build_id(elf, ret->build_id);
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		if (elf_getshdrstrndx(elf, &names) || !gelf_getshdr(section, &header))
			return;
		const char *name = elf_strptr(elf, names, header.sh_name);
		if (!name || strcmp(name, ".gnu_debuglink") || header.sh_type != SHT_PROGBITS)
			continue;
		const Elf_Data *data = elf_rawdata(section, NULL);
		size_t length = data && data->d_buf ? strnlen(data->d_buf, data->d_size) : 0;
		// The name with its NUL fills up to words of four, then comes the checksum.
		if (!length || strchr(data->d_buf, '/') || (length | 3) + 5 > data->d_size)
			return;
		memcpy(&ret->crc, (char *)data->d_buf + (length | 3) + 1, 4);
		ret->name = data->d_buf;
	}
}

static bool open_by_build_id(const struct debuglink *link, const char *root, const char *folder,
			     struct elf_file *ret)
{
	char hex[2 * PS_BUILD_ID_SIZE + 1];
	for (size_t i = 0; i < link->build_id_size; i++)
		sprintf(hex + 2 * i, "%02x", link->build_id[i]);
	return link->build_id_size > 1 &&
	       try_debug(link, ret, "%s%s/.build-id/%.2s/%s.debug", root, folder, hex, hex + 2);
}

/** Beside the program, in .debug there, and below @folder where it would be beside. */
static bool open_by_name(const struct debuglink *link, const struct elf_file *main,
			 const char *folder, struct elf_file *ret)
{
	const char *slash = strrchr(main->path, '/');
	if (!link->name || !slash)
		return false;
	int length = slash - main->path;
	int skip = strlen(main->root);
	const char *inside = main->path + skip;
	return try_debug(link, ret, "%.*s/%s", length, main->path, link->name) ||
	       try_debug(link, ret, "%.*s/.debug/%s", length, main->path, link->name) ||
	       try_debug(link, ret, "%s%.*s/%s", folder, length - skip, inside, link->name) ||
	       try_debug(link, ret, "%s%s%.*s/%s", main->root, folder, length - skip, inside,
			 link->name);
}

bool elf_open_debug(Elf *elf, const struct elf_file *main, const char *debug_folder,
		    struct elf_file *ret)
{
	struct debuglink link = {};
	ret->fd = -1;
	strcpy(ret->root, main->root);
	read_debuglink(elf, &link);
	return open_by_build_id(&link, "", debug_folder, ret) ||
	       (main->root[0] && open_by_build_id(&link, main->root, debug_folder, ret)) ||
	       open_by_name(&link, main, debug_folder, ret);
}
