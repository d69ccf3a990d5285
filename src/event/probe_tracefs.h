// SPDX-License-Identifier: MIT
/**
 * Probes in tracefs, under a group of this process's own.
 */
#ifndef PERFSCOPE_PROBE_TRACEFS_H
#define PERFSCOPE_PROBE_TRACEFS_H

#include <perfscope/probe.h>

/** Make the event of @place in tracefs, and fill type, config, format and remove of @probe. */
struct ps_error *ps_probe_tracefs_create(const struct ps_spec *spec,
					 const struct ps_probe_place *place,
					 struct ps_probe *probe);

/** Remove it again. */
void ps_probe_tracefs_remove(struct ps_probe *probe);

/** The text that is written for @place: "p:GROUP/EVENT PATH:0x1129 n=%di"; @path stands for its path. NULL: no memory. */
char *ps_probe_definition(const struct ps_spec *spec, const struct ps_probe_place *place,
			  const char *event, const char *path);

/** The process of the group "perfscope_PID_START_NS"; false where it is no group of ours, of this namespace. */
bool ps_probe_group_owner(const char *group, unsigned long ns, int *ret_pid,
			  unsigned long long *ret_start);

#endif
