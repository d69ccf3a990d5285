// SPDX-License-Identifier: MIT
#include "internal.h"

// The kernel numbers events one after the other, but others open some between ours. Beyond so many numbers a stream is
// found by search instead.
#define MAX_SPAN (1ULL << 20)

static int compare_ids(const void *left, const void *right)
{
	const struct ps_stream *a = *(struct ps_stream *const *)left;
	const struct ps_stream *b = *(struct ps_stream *const *)right;
	return (a->id > b->id) - (a->id < b->id);
}

struct ps_error *ps_ids_build(struct ps_session *session)
{
	size_t nr = session->nr_streams;
	if (!nr)
		return NULL;
	session->far = calloc(nr, sizeof(*session->far));
	if (!session->far)
		return &ps_enomem;
	for (size_t i = 0; i < nr; i++)
		session->far[i] = &session->streams[i];
	qsort(session->far, nr, sizeof(*session->far), compare_ids);
	uint64_t base = session->far[0]->id, max_span = nr > MAX_SPAN / 4 ? nr * 4 : MAX_SPAN;
	size_t nr_near = nr;
	while (session->far[nr_near - 1]->id - base >= max_span)
		nr_near--;
	size_t span = session->far[nr_near - 1]->id - base + 1;
	session->by_id = calloc(span, sizeof(*session->by_id));
	if (!session->by_id)
		return &ps_enomem;
	for (size_t i = 0; i < nr_near; i++)
		session->by_id[session->far[i]->id - base] = session->far[i];
	session->id_base = base;
	session->nr_by_id = span;
	session->nr_far = nr - nr_near;
	memmove(session->far, session->far + nr_near, session->nr_far * sizeof(*session->far));
	return NULL;
}

struct ps_stream *ps_session_find_far(const struct ps_session *session, uint64_t id)
{
	struct ps_stream key = { .id = id }, *pointer = &key;
	struct ps_stream **found = bsearch(&pointer, session->far, session->nr_far,
					   sizeof(*session->far), compare_ids);
	return found ? *found : NULL;
}

void ps_ids_deinit(struct ps_session *session)
{
	free(session->by_id);
	free(session->far);
}
