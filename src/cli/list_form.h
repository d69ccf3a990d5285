// SPDX-License-Identifier: MIT
/**
 * Whether what `perfscope list` shows can be opened here, and the events that have no list of names.
 */
#ifndef PERFSCOPE_LIST_FORM_H
#define PERFSCOPE_LIST_FORM_H

#include <linux/perf_event.h>
#include <stddef.h>

/** The errno of opening @attr in the way that asks least, 0: it can be opened. */
int list_try(struct perf_event_attr attr);

/** What that errno means; NULL for 0. */
const char *list_reason(int os_errno);

/** An event that is named by what it observes. */
struct list_form {
	const char *name;
	const char *(*reason)(
		void); // why it cannot be opened, NULL: it can; NULL itself: it always can
};

extern const struct list_form list_forms_of_own[];
extern const size_t list_nr_forms;

#endif
