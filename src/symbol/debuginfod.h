// SPDX-License-Identifier: MIT
/**
 * Debug files from servers on the network, for those who ask for it: libdebuginfod, loaded at run time.
 */
#ifndef PERFSCOPE_SYMBOL_DEBUGINFOD_H
#define PERFSCOPE_SYMBOL_DEBUGINFOD_H

#include <perfscope/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct debuginfod;

/**
 * Load the library; the servers are those of DEBUGINFOD_URLS. @is_stopping is asked while a file is fetched, which then
 * ends; NULL: never. PS_ERROR_USAGE: no server is named. PS_ERROR_UNSUPPORTED: there is no library.
 */
struct ps_error *debuginfod_create(bool (*is_stopping)(void), struct debuginfod **ret);
/** Takes NULL. */
void debuginfod_destroy(struct debuginfod *debuginfod);

/**
 * Fetch the debug file of @build_id, or take it from the library's cache; it waits. Returns a descriptor, the caller's,
 * or -1: there is none.
 */
int debuginfod_fetch(struct debuginfod *debuginfod, const uint8_t *build_id, size_t size);

#endif
