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
