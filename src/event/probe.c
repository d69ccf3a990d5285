// SPDX-License-Identifier: MIT
#include <perfscope/probe.h>

#include "pmu_sysfs.h"
#include "probe_tracefs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <perfscope/tracepoint.h>
#include <string.h>

#define MAX_LINE 256

/** Read the first line of @name in the folder of the PMU @pmu. */
static bool read_line(const char *pmu, const char *name, char *ret)
{
	_cleanup_free_ char *path = NULL;
	if (asprintf(&path, "%s/%s/%s", ps_pmu_folder(), pmu, name) < 0) {
		path = NULL;
		return false;
	}
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	return file && fgets(ret, MAX_LINE, file);
}

static bool read_type(const char *pmu, uint32_t *ret)
{
	char line[MAX_LINE];
	return read_line(pmu, "type", line) && sscanf(line, "%" SCNu32, ret) == 1;
}

/** Put @value at the bits of config that the PMU's file @name tells ("config:32-63"). */
static bool set_bits(const char *pmu, const char *name, uint64_t value, uint64_t *config)
{
	char line[MAX_LINE];
	unsigned int low, high;
	if (!read_line(pmu, name, line))
		return false;
	int nr = sscanf(line, "config:%u-%u", &low, &high);
	if (nr < 1 || low > 63)
		return false;
	if (nr == 1)
		high = low;
	if (high - low < 63 && value >> (high - low + 1))
		return false;
	*config |= value << low;
	return true;
}

/** The lines of the fields that all events of this kernel have, where tracefs is closed the usual ones. */
static void read_common_fields(FILE *stream, unsigned int *ret_end)
{
	static const char usual[] =
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
	const char *tracefs = NULL;
	_cleanup_free_ char *text = NULL;
	size_t size;
	struct ps_error *error = ps_tracefs_path(&tracefs);
	if (!error)
		error = ps_tracepoint_read_format(tracefs, "sched", "sched_switch", &text, &size);
	ps_error_destroy(error);
	const char *line = text ? strstr(text, "\tfield:") : NULL;
	if (!line)
		line = usual;
	for (unsigned int offset, width; !strncmp(line, "\tfield:", 7);) {
		size_t length = strcspn(line, "\n");
		const char *place = memmem(line, length, "offset:", 7);
		if (!memmem(line, length, " common_", 8) || !place ||
		    sscanf(place, "offset:%u; size:%u;", &offset, &width) != 2)
			return;
		fprintf(stream, "%.*s\n", (int)length, line);
		*ret_end = offset + width;
		line += length + (line[length] == '\n');
	}
}

/** The format of what a probe of the PMU writes, which the kernel shows nowhere: addresses behind the common fields. */
static struct ps_error *make_format(bool is_return, struct ps_probe *probe)
{
	FILE *stream = open_memstream(&probe->format, &probe->format_size);
	if (!stream)
		return &ps_enomem;
	unsigned int end = 8, width = sizeof(long);
	fprintf(stream, "name: probe\nID: 0\nformat:\n");
	read_common_fields(stream, &end);
	end = (end + width - 1) / width * width;
	const char *const names[] = { is_return ? "__probe_func" : "__probe_ip", "__probe_ret_ip" };
	for (int i = 0; i <= is_return; i++)
		fprintf(stream, "%s\tfield:unsigned long %s;\toffset:%u;\tsize:%u;\tsigned:0;\n",
			i ? "" : "\n", names[i], end + i * width, width);
	fputs(is_return ? "\nprint fmt: \"(%lx <- %lx)\", REC->__probe_func, REC->__probe_ret_ip\n"
			: "\nprint fmt: \"(%lx)\", REC->__probe_ip\n",
	      stream);
	return fclose(stream) ? &ps_enomem : NULL;
}

/** Use the PMU @pmu; *@ret is false where it is not here, or cannot. */
static struct ps_error *use_pmu(const char *pmu, bool is_return, const struct ps_probe_place *place,
				struct ps_probe *probe, bool *ret)
{
	*ret = false;
	const char *symbol = place->path ? place->path : place->symbol;
	if (!read_type(pmu, &probe->type))
		return NULL;
	if ((is_return && !set_bits(pmu, "format/retprobe", 1, &probe->config)) ||
	    (place->semaphore &&
	     !set_bits(pmu, "format/ref_ctr_offset", place->semaphore, &probe->config))) {
		probe->config = 0;
		return NULL;
	}
	probe->path = symbol ? strdup(symbol) : NULL;
	if (symbol && !probe->path)
		return &ps_enomem;
	probe->config1 = (uintptr_t)probe->path;
	probe->config2 = place->offset;
	*ret = true;
	return make_format(is_return, probe);
}

static struct ps_error *create(const struct ps_spec *spec, const struct ps_probe_place *place,
			       bool is_inherited, struct ps_probe *probe)
{
	bool is_return = strstr(spec->system, "ret"), is_done = false;
	// The PMU knows no fields that a filter could name.
	if (!place->args && !spec->filter && !is_inherited) {
		struct ps_error *error = use_pmu(place->path ? "uprobe" : "kprobe", is_return,
						 place, probe, &is_done);
		if (error || is_done)
			return error;
	}
	return ps_probe_tracefs_create(spec, place, probe);
}

struct ps_error *ps_probe_create(const struct ps_spec *spec, const struct ps_probe_place *place,
				 bool is_inherited, struct ps_probe **ret)
{
	struct ps_probe *probe = calloc(1, sizeof(*probe));
	if (!probe)
		return &ps_enomem;
	struct ps_error *error = create(spec, place, is_inherited, probe);
	if (error) {
		ps_probe_destroy(probe);
		return error;
	}
	*ret = probe;
	return NULL;
}

void ps_probe_destroy(struct ps_probe *probe)
{
	if (!probe)
		return;
	if (probe->remove)
		ps_probe_tracefs_remove(probe);
	free(probe->remove);
	free(probe->format);
	free(probe->path);
	free(probe);
}
