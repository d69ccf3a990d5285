// SPDX-License-Identifier: MIT
/**
 * Guards: a local variable that owns a thing gives it back at the end of its scope.
 */
#ifndef PERFSCOPE_CLEANUP_H
#define PERFSCOPE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/** Define `name_p`, which calls @destroy on the variable that a guard stands at. */
#define PS_DEFINE_CLEANUP(type, name, destroy)                                                     \
	static inline void name##_p(type *value)                                                   \
	{                                                                                          \
		if (*value)                                                                        \
			destroy(*value);                                                           \
	}

PS_DEFINE_CLEANUP(FILE *, ps_fclose, fclose)
PS_DEFINE_CLEANUP(DIR *, ps_closedir, closedir)

static inline void ps_free_p(void *pointer)
{
	free(*(void **)pointer);
}

static inline void ps_close_p(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define _cleanup_(function) __attribute__((cleanup(function)))
#define _cleanup_free_ _cleanup_(ps_free_p)
#define _cleanup_fclose_ _cleanup_(ps_fclose_p)
#define _cleanup_closedir_ _cleanup_(ps_closedir_p)
#define _cleanup_close_ _cleanup_(ps_close_p)

/** The value of @pointer, which the guard no longer owns. */
#define take_ptr(pointer)                                                                          \
	({                                                                                         \
		__typeof__(pointer) taken_ = (pointer);                                            \
		(pointer) = NULL;                                                                  \
		taken_;                                                                            \
	})
#define return_ptr(pointer) return take_ptr(pointer)

#define PS_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define PS_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define PS_ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
