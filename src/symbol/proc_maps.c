// SPDX-License-Identifier: MIT
#include "process.h"

#include <inttypes.h>
#include <string.h>

static const char deleted[] = " (deleted)";

/** The kernel writes a newline in a path as \012; all else stands as it is. */
static void undo_escapes(char *path)
{
	char *to = path;
	for (const char *from = path; *from; to++) {
		bool is_newline = !strncmp(from, "\\012", 4);
		*to = is_newline ? '\n' : *from;
		from += is_newline ? 4 : 1;
	}
	*to = 0;
}

/** Read a line of /proc/PID/maps, whose path is cut out of @line; false: it is not executable, or makes no sense. */
static bool parse_line(char *line, struct ps_map *map, struct ps_file *file)
{
	char prot[5];
	int path = 0;
	*file = (struct ps_file){};
	int nr = sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
			&map->start, &map->end, prot, &map->offset, &file->dev_major,
			&file->dev_minor, &file->inode, &path);
	if (nr != 7 || !path || prot[2] != 'x' || map->start >= map->end)
		return false;
	line[strcspn(line, "\n")] = 0;
	undo_escapes(line + path);
	size_t length = strlen(line + path);
	// Records name it as it was when it was mapped.
	if (length > strlen(deleted) && !strcmp(line + path + length - strlen(deleted), deleted))
		line[path + length - strlen(deleted)] = 0;
	// As records name it.
	file->path = line[path] ? line + path : "//anon";
	return true;
}

bool proc_maps_read(struct ps_maps *maps, struct process *process)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/maps", process->pid);
	_cleanup_fclose_ FILE *text = fopen(path, "re");
	if (!text)
		return false;
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	while (getline(&line, &size, text) > 0) {
		struct ps_map map;
		struct ps_file file;
		if (parse_line(line, &map, &file))
			process_map(maps, process, &map, &file, true);
	}
	return !ferror(text);
}

/** Read of /proc/PID/stat who the parent is, and where the stack was put at the last exec. */
static bool read_stat(pid_t pid, pid_t *parent, uint64_t *stack)
{
	char path[32], text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[size] = 0;
	// The name of the program stands in brackets, and can hold anything.
	const char *rest = strrchr(text, ')');
	return rest &&
	       sscanf(rest,
		      ") %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		      "%*s %*s %*s %*s %*s %*s %*s %" SCNu64,
		      parent, stack) == 2;
}

pid_t proc_parent(pid_t pid, bool *ret_is_fork)
{
	pid_t parent, grandparent;
	uint64_t stack, parent_stack;
	if (!read_stat(pid, &parent, &stack))
		return 0;
	// Each exec puts the stack elsewhere; 0 where this user may not know.
	*ret_is_fork =
		read_stat(parent, &grandparent, &parent_stack) && stack && stack == parent_stack;
	return parent;
}
