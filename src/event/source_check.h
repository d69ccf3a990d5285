// SPDX-License-Identifier: MIT
#ifndef PERFSCOPE_EVENT_SOURCE_CHECK_H
#define PERFSCOPE_EVENT_SOURCE_CHECK_H

#include <perfscope/source.h>

/** Refuse parts of samples for a source that makes none. */
struct ps_error *source_check_parts(const struct ps_spec *spec, const struct ps_source *source);

/** Warn of what the spec asks for and only samples of a PMU have: it would read as if there were nothing to tell. */
void source_tell_without_pmu(const struct ps_spec *spec, const struct ps_source *source);

/**
 * Where an event of a PMU has its call stacks from the PMU's last calls, let those that the kernel makes, for which it
 * refuses them, follow frame pointers, and say so.
 */
void source_settle_calls(const struct ps_source_list *list);

/** Refuse @group where samples of two of its members could not be told apart. */
struct ps_error *source_check_group(const struct ps_source_list *list, unsigned int group);

#endif
