// SPDX-License-Identifier: MIT
#include "perf_map.h"

#include <ctype.h>
#include <fcntl.h>
#include <perfscope/cleanup.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINE 65536 // longer ones are passed over

/** The id of @pid in its own pid namespace; @pid itself where it is not known. */
static pid_t pid_in_namespace(pid_t pid)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char line[256];
	while (file && fgets(line, sizeof(line), file)) {
		// The last is the innermost.
		const char *last = strrchr(line, '\t');
		if (!strncmp(line, "NSpid:", 6) && last)
			return atoi(last + 1);
	}
	return pid;
}

/** Open it for reading where it is a file that @pid, root or this user wrote; -1: it is not. */
static int open_at(const char *path, pid_t pid, struct stat *ret)
{
	// A pipe would block; a link could lead out of the process's own root.
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	char process[32];
	struct stat owner;
	snprintf(process, sizeof(process), "/proc/%d", pid);
	bool is_known = !stat(process, &owner);
	if (!fstat(fd, ret) && S_ISREG(ret->st_mode) &&
	    (!is_known || !ret->st_uid || ret->st_uid == geteuid() || ret->st_uid == owner.st_uid))
		return fd;
	close(fd);
	return -1;
}

static int open_map(pid_t pid, struct stat *ret)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-%d.map", pid, pid_in_namespace(pid));
	int fd = open_at(path, pid, ret);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	return open_at(path, pid, ret);
}

/** Forget what was voided, and then the oldest. */
static void make_room(struct perf_map *map)
{
	symtab_finish_overlapping(&map->table);
	uint32_t min_rank = 0;
	while (symtab_compact(&map->table, min_rank) &&
	       symtab_nr_bytes(&map->table) > PERF_MAP_MAX_BYTES / 4)
		min_rank += (map->nr_lines - min_rank) / 2 + 1;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const char *skip_spaces(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/**
 * Read the hexadecimal number at *@text and the blanks behind it, over which *@text is moved; false: there is none, or no
 * blank. By hand, since sscanf takes most of the time of a large map.
 */
static bool read_number(const char **text, uint64_t *ret)
{
	const char *at = *text;
	uint64_t number = 0;
	if (at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	const char *first = at;
	for (int digit; (digit = digit_value(*at)) >= 0 && number < UINT64_C(1) << 60; at++)
		number = number << 4 | (unsigned int)digit;
	// A digit that is left is one too many: zeros in front take no room.
	if (at == first || !isblank((unsigned char)*at))
		return false;
	*text = skip_spaces(at);
	*ret = number;
	return true;
}

/** "START SIZE name", both in hexadecimal; lines that are not are passed over. */
static void add_line(struct perf_map *map, const char *line)
{
	uint64_t start, size;
	line = skip_spaces(line);
	if (!read_number(&line, &start) || !read_number(&line, &size))
		return;
	struct symbol symbol = { .start = start, .end = start + size, .rank = map->nr_lines++ };
	if (!*line || symbol.end <= start)
		return;
	// An array doubles when it is full.
	if (symtab_nr_bytes(&map->table) >= PERF_MAP_MAX_BYTES / 2)
		make_room(map);
	if (symtab_nr_bytes(&map->table) < PERF_MAP_MAX_BYTES / 2)
		symtab_add(&map->table, &symbol, line);
}

/** Add the whole lines of @text, which are written to; the number of bytes that they take. */
static size_t add_lines(struct perf_map *map, char *text, size_t size)
{
	size_t at = 0;
	for (char *end; (end = memchr(text + at, '\n', size - at)); at = end + 1 - text) {
		*end = '\0';
		if (!map->is_cut)
			add_line(map, text + at);
		map->is_cut = false; // the next one is whole
	}
	return at;
}

/**
 * Read from map->read to @end. Its process can make the file as large as it likes, and a single line: no more is held
 * than MAX_LINE, and what grows meanwhile is left to the next time.
 */
static void read_lines(struct perf_map *map, int fd, uint64_t end)
{
	char text[MAX_LINE];
	size_t held = 0;
	uint64_t at = map->read;
	while (at < end) {
		size_t wanted = sizeof(text) - held < end - at ? sizeof(text) - held : end - at;
		ssize_t size = pread(fd, text + held, wanted, at);
		if (size <= 0)
			return;
		at += size;
		held += size;
		size_t used = add_lines(map, text, held);
		map->read += used;
		held -= used;
		memmove(text, text + used, held);
		if (held == sizeof(text)) {
			map->read += held;
			held = 0;
			map->is_cut = true;
		}
	}
}

bool perf_map_update(struct perf_map *map, pid_t pid)
{
	struct stat stat;
	_cleanup_close_ int fd = open_map(pid, &stat);
	uint64_t size = fd < 0 ? 0 : stat.st_size;
	if (fd < 0 || (stat.st_ino == map->inode && size == map->size))
		return false;
	if (stat.st_ino != map->inode || size < map->read)
		perf_map_deinit(map);
	// The oldest would have to make room anyhow.
	if (size - map->read > PERF_MAP_MAX_BYTES) {
		map->read = size - PERF_MAP_MAX_BYTES;
		map->is_cut = true;
	}
	// The last line may be half written.
	read_lines(map, fd, size);
	map->inode = stat.st_ino;
	map->size = size;
	symtab_finish_overlapping(&map->table);
	return true;
}

void perf_map_deinit(struct perf_map *map)
{
	symtab_deinit(&map->table);
	*map = (struct perf_map){};
}
