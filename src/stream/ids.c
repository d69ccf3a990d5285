// SPDX-License-Identifier: MIT
#include "internal.h"

// The kernel numbers events one after the other, but others open some between ours. Beyond so many numbers a stream is
// found by search instead.
#define MAX_SPAN (1ULL << 20)

static int compare_ids(const void *left, const void *right)
{
	const struct ps_stream_id *a = left, *b = right;
	return (a->id > b->id) - (a->id < b->id);
}

/** All ids that were known, and those that streams have now; NULL: no memory. */
static struct ps_stream_id *collect_ids(const struct ps_session *session, size_t *ret_nr)
{
	size_t nr = session->nr_ids;
	struct ps_stream_id *ids = calloc(nr + session->nr_streams + 1, sizeof(*ids));
	if (!ids)
		return NULL;
	if (nr)
		memcpy(ids, session->ids, nr * sizeof(*ids));
	for (size_t i = 0; i < session->nr_streams; i++) {
		struct ps_stream *stream = &session->streams[i];
		if (stream->id && !ps_session_find(session, stream->id))
			ids[nr++] = (struct ps_stream_id){ stream->id, stream };
	}
	qsort(ids, nr, sizeof(*ids), compare_ids);
	*ret_nr = nr;
	return ids;
}

struct ps_error *ps_ids_build(struct ps_session *session)
{
	size_t nr;
	_cleanup_free_ struct ps_stream_id *ids = collect_ids(session, &nr);
	if (!ids)
		return &ps_enomem;
	if (!nr)
		return NULL;
	uint64_t base = ids[0].id, max_span = nr > MAX_SPAN / 4 ? nr * 4 : MAX_SPAN;
	size_t nr_near = nr;
	while (ids[nr_near - 1].id - base >= max_span)
		nr_near--;
	size_t span = ids[nr_near - 1].id - base + 1;
	struct ps_stream **by_id = calloc(span, sizeof(struct ps_stream *));
	if (!by_id)
		return &ps_enomem;
	for (size_t i = 0; i < nr_near; i++)
		by_id[ids[i].id - base] = ids[i].stream;
	ps_ids_deinit(session);
	session->by_id = by_id;
	session->id_base = base;
	session->nr_by_id = span;
	session->ids = take_ptr(ids);
	session->nr_ids = nr;
	session->far = session->ids + nr_near;
	session->nr_far = nr - nr_near;
	return NULL;
}

struct ps_stream *ps_session_find_far(const struct ps_session *session, uint64_t id)
{
	struct ps_stream_id key = { .id = id };
	const struct ps_stream_id *found =
		bsearch(&key, session->far, session->nr_far, sizeof(*session->far), compare_ids);
	return found ? found->stream : NULL;
}

void ps_ids_deinit(struct ps_session *session)
{
	free(session->by_id);
	free(session->ids);
}
