// SPDX-License-Identifier: MIT
#include "addresses.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <perfscope/log.h>
#include <string.h>

// Position-independent programs and their libraries lie above, in a process of 64 bits.
#define MIN_LOADED (UINT64_C(1) << 32)

/** Whether @source is a breakpoint in user space; the kernel has the upper half of the addresses. */
static bool is_in_user_space(const struct ps_source *source)
{
	return source->attr.type == PERF_TYPE_BREAKPOINT && !(source->attr.bp_addr >> 63);
}

/** Whether something is mapped at @address in @tid; yes where that is not known. */
static bool is_mapped(pid_t tid, uint64_t address)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0, nr_lines = 0;
	while (file && getline(&line, &size, file) > 0) {
		uint64_t start, end;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2)
			return true;
		if (address >= start && address < end)
			return true;
		nr_lines++;
	}
	return !nr_lines; // it is gone, or not ours to look at
}

static bool is_mapped_in_one(const struct ps_target *target, uint64_t address)
{
	for (size_t i = 0; i < target->nr_tids; i++) {
		if (is_mapped(target->tids[i], address))
			return true;
	}
	return !target->nr_tids;
}

void ps_addresses_check(const struct ps_source_list *sources, const struct ps_target *target)
{
	// A program that is to be started has no addresses yet.
	if (target->kind != PS_TARGET_THREADS || target->is_workload)
		return;
	for (size_t i = 0; i < ps_sources_nr_shown(sources); i++) {
		const struct ps_source *source = sources->sources[i];
		if (!is_in_user_space(source) || is_mapped_in_one(target, source->attr.bp_addr))
			continue;
		ps_log(PS_LOG_WARNING,
		       "%s: nothing is mapped at this address now in %s %d%s; /proc/%d/maps shows "
		       "what is, and the address in a file is to be added to where the file begins",
		       source->label, target->nr_tids > 1 ? "threads" : "thread",
		       (int)target->tids[0], target->nr_tids > 1 ? " and the others" : "",
		       (int)target->tids[0]);
	}
}

/** Whether @path is a program that the kernel loads where it likes. */
static bool is_position_independent(const char *path)
{
	ElfW(Ehdr) header;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd >= 0 && read(fd, &header, sizeof(header)) == sizeof(header) &&
	       !memcmp(header.e_ident, ELFMAG, SELFMAG) && header.e_type == ET_DYN;
}

void ps_addresses_report(const struct ps_session *session, const char *path)
{
	const struct ps_source_list *sources = session->sources;
	for (size_t i = 0; i < ps_sources_nr_shown(sources); i++) {
		const struct ps_source *source = sources->sources[i];
		if (!is_in_user_space(source) || source->attr.bp_addr >= MIN_LOADED)
			continue;
		struct ps_count count;
		ps_session_count(session, source, &count);
		if (!count.is_valid || count.value || !is_position_independent(path))
			continue;
		ps_log(PS_LOG_WARNING,
		       "%s never happened: %s is position-independent, and in memory each of its "
		       "addresses is another one than in its file (link it with -no-pie, or "
		       "observe "
		       "it with -p where it runs: /proc/PID/maps tells where it begins)",
		       source->label, path);
	}
}
