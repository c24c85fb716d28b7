#include "kubectl/watch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/mem.h"
#include "client/watch_frame.h"
#include "net/url.h"

struct ktl_watch {
	struct client_stream *stream;
	struct watch_frames frames;
	struct arena arena;           /* of the event */
};

int ktl_watch_open(struct ktl *k, const struct ktl_kind *kind, str namespace, str name, str query, str revision, str accept,
		   struct ktl_watch **ret)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct client_stream *stream;
	buf_add(&b, query);
	if (name.n)
		url_query_add(&b, STR("fieldSelector"), arena_join(&k->arena, STR("metadata.name="), name));
	if (revision.n)
		url_query_add(&b, STR("resourceVersion"), revision);
	url_query_add(&b, STR("watch"), STR("true"));
	struct client_raw q = {
		.method = STR("GET"), .path = ktl_kind_path(k, kind, namespace, STR_NONE, STR_NONE), .query = arena_str(&k->arena, buf_str(&b)),
		.accept = accept.n ? accept : STR("application/json"),
	};
	if (ktl_open_stream(k, &q, &stream) < 0)
		return -1;
	struct ktl_watch *w = mem_zalloc(sizeof(*w));
	w->stream = stream;
	watch_frames_init(&w->frames, false);
	arena_init(&w->arena);
	*ret = w;
	return 0;
}

void ktl_watch_free(struct ktl_watch *w)
{
	if (!w)
		return;
	client_stream_free(w->stream);
	watch_frames_done(&w->frames);
	arena_done(&w->arena);
	free(w);
}

void ktl_watch_freep(struct ktl_watch **w) { ktl_watch_free(*w); }

/* (suspends) The bytes of the next event: 1; 0 at the end. *ret_broken: what came is no event. */
static int next_frame(struct ktl_watch *w, str *ret, bool *ret_broken, struct err *err)
{
	enum { PIECE = 16 * 1024 };
	int r;
	*ret_broken = false;
	while ((r = watch_frames_next(&w->frames, ret, err)) == 0) {
		ssize_t n = client_stream_read(w->stream, watch_frames_room(&w->frames, PIECE), PIECE, err);
		if (n <= 0)
			return n < 0 ? (int)n : 0;
		watch_frames_commit(&w->frames, (size_t)n);
	}
	*ret_broken = r < 0;
	return r;
}

int ktl_watch_next(struct ktl *k, struct ktl_watch *w, int64_t timeout_ms, bool *ret_timeout, str *ret_type, struct val *ret_object)
{
	struct err err = ERR_INIT;
	struct val v;
	bool broken;
	str frame;
	int r;
	*ret_timeout = false;
	{
		DEADLINE_SCOPE(timeout_ms < 0 ? INT64_MAX / 2000000 : timeout_ms);
		r = next_frame(w, &frame, &broken, &err);
	}
	*ret_timeout = r == -ERR_TIMEOUT;
	if (*ret_timeout)
		return 0;
	if (r < 0 && broken)
		return ktl_fail(k, "unable to decode an event from the watch stream: %s", err.msg);
	if (r <= 0)
		return r < 0 ? ktl_fail_connection(k, &err) : 0;
	arena_reset(&w->arena);
	/* The frame goes when more is read, the event stays until the next. */
	if (json_decode(&w->arena, arena_str(&w->arena, frame), &(struct json_decode_options){ .sort_keys = true }, &v, &err) < 0)
		return ktl_fail(k, "unable to decode an event from the watch stream: %s", err.msg);
	*ret_type = val_str(v, type);
	*ret_object = val_get(v, object);
	if (str_eq(*ret_type, STR("ERROR")))
		return ktl_fail_status(k, val_copy(&k->arena, *ret_object));
	return 1;
}

/* ---- one object ---- */

int ktl_fail_timed_out(struct ktl *k, const struct ktl_info *info)
{
	return ktl_fail(k, "timed out waiting for the condition on " STR_FMT "/" STR_FMT, STR_ARG(info->kind->resource), STR_ARG(info->name));
}

enum { AWAY_MAX_S = 30 };

/* (suspends) Whether to look again: as kubectl's informer, for a server that was there and cannot be reached for a moment. */
static bool comes_back(struct ktl *k, int64_t due, int *away_s)
{
	const struct ktl_failure *f = ktl_last_failure(k);
	if (!f || f->kind != KTL_CONNECTION || *away_s >= AWAY_MAX_S || clock_now_ns() >= due || fiber_sleep_ms(1000, NULL) < 0)
		return false;
	ktl_forgive(k);
	++*away_s;
	return true;
}

int ktl_watch_until(struct ktl *k, struct ktl_info *info, int64_t due, ktl_until_fn *is, void *arg)
{
	int away_s = AWAY_MAX_S; /* one that was never there is not waited for */
	for (;;) {
		CLEANUP(ktl_watch_freep) struct ktl_watch *w = NULL;
		struct val object;
		bool timeout = false;
		str type;
		int r, met;
		if (ktl_fetch(k, info) < 0) {
			if (comes_back(k, due, &away_s))
				continue;
			return -1;
		}
		away_s = 0;
		if ((met = is(k, info->object, arg)) != 0)
			return met;
		if (clock_now_ns() >= due)
			return 0;
		if (ktl_watch_open(k, info->kind, info->namespace, info->name, STR_NONE, val_str(info->object, metadata, resourceVersion), STR_NONE, &w) < 0) {
			if (comes_back(k, due, &away_s))
				continue;
			return -1;
		}
		do {
			int64_t left = due - clock_now_ns();
			if (left <= 0)
				return 0;
			r = ktl_watch_next(k, w, left / NS_PER_MS + 1, &timeout, &type, &object);
			bool gone = r == 1 && str_eq(type, STR("DELETED"));
			if (r == 1 && (met = is(k, gone ? VAL_EMPTY : object, arg)) != 0) {
				info->object = val_copy(&k->arena, object);
				return met;
			}
		} while (r == 1);
		if (timeout)
			return 0;
		if (r < 0) /* too old a revision, or the like: look again */
			ktl_forgive(k);
	}
}
