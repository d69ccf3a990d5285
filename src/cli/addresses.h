// SPDX-License-Identifier: MIT
/**
 * Addresses of breakpoints that the target does not have: such events never happen, and the kernel says nothing of it.
 */
#ifndef PERFSCOPE_CLI_ADDRESSES_H
#define PERFSCOPE_CLI_ADDRESSES_H

#include <perfscope/session.h>

/** Warn of each breakpoint at an address where none of the threads of @target has anything mapped now. */
void ps_addresses_check(const struct ps_source_list *sources, const struct ps_target *target);

/**
 * At the end of a run of the program @path: warn of each breakpoint that never happened where its address is one that
 * a program like this has in its file, not in memory.
 */
void ps_addresses_report(const struct ps_session *session, const char *path);

#endif
