/*
 * Watches. Each has a stream of its own on the shared connection: a reader that is slow makes the member hold back that
 * stream alone, memory is bounded by one window per watch, and an error concerns one watch. What etcd spends on a
 * further stream is small beside what it spends on a watch.
 *
 * The watch knows the first revision that it has not delivered. When the stream breaks, for whatever reason, the next one
 * starts there: no event is lost, and none comes twice. Members are asked to end the stream when they lose the leader, as
 * one that is cut off would be silent for ever.
 */
#include "store/etcd_watch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/proto.h"
#include "codec/types.h"

enum { REQUEST_MAX = 64 * 1024, PAUSE_MS = 50, PAUSE_DOUBLINGS = 5 };

/* ---- the stream ---- */

bool etcd_watch_send(struct etcd_watch *w, struct val request)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(REQUEST_MAX);

	return w->stream && proto_encode(&b, request, rpc_Watch_Watch.request, NULL) == 0 &&
	       grpc_stream_try_send(w->stream, buf_str(&b));
}

static void pieces_drop(struct etcd_watch *w)
{
	struct store_batch b = { .events = w->events, .n = w->n, .memory = w->memory };

	store_batch_done(&b);
	w->memory = NULL;
	w->events = NULL;
	w->n = w->cap = w->revisions = 0;
}

static void stream_drop(struct etcd_watch *w)
{
	grpc_stream_free(TAKE(w->stream));
	w->created = false;
	pieces_drop(w);
}

static int stream_begin(struct etcd_watch *w, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct etcd *e = etcd_watch_etcd(w);
	int r;

	DEADLINE_SCOPE(ETCD_CALL_MS);
	if ((r = grpc_stream_open(e->channel, rpc_Watch_Watch.path, &w->stream, err)) < 0 ||
	    (r = etcd_progress_ordered(e, grpc_stream_generation(w->stream), &w->ordered, err)) < 0)
		return r;
	struct val create = OBJECT(&a, F(key, VAL_STR(w->from)), F(rangeEnd, VAL_STR(w->to)),
				   F(startRevision, val_of_int(w->next)), F(progressNotify, val_of_bool(true)),
				   F(watchId, val_of_int(WATCH_MAIN)), F(fragment, val_of_bool(true)));
	if (!etcd_watch_send(w, OBJECT(&a, F(createRequest, create))))
		return err_set(err, ERR_UNAVAILABLE, "the stream ended at once");
	return 0;
}

static bool error_is_final(int r) { return r == -ERR_EXPIRED || r == -ERR_FORBIDDEN || r == -ERR_UNAUTHORIZED; }

/* Opens the stream, with growing pauses between attempts. 0 also when it failed and may be tried again. */
static int stream_open(struct etcd_watch *w, struct err *err)
{
	struct err why = ERR_INIT;
	int r;

	if (w->failures) {
		unsigned doublings = MIN(w->failures - 1, (unsigned)PAUSE_DOUBLINGS);
		if ((r = fiber_sleep_ms(PAUSE_MS << doublings, err)) < 0)
			return r;
	}
	if ((r = stream_begin(w, &why)) == 0)
		return 0;
	stream_drop(w);
	if (error_is_final(r))
		return err_set(err, (enum err_code)-r, "%s", why.msg);
	if (w->failures++ % 16 == 4)
		log_warn("an etcd watch cannot be opened, trying again", KV("from", w->from), KV("reason", &why));
	return fiber_check(err);
}

/* The stream ended; r is how. */
static int stream_ended(struct etcd_watch *w, int r, struct err *why, struct err *err)
{
	struct etcd *e = etcd_watch_etcd(w);
	uint64_t generation = grpc_stream_generation(w->stream);

	log_debug("an etcd watch is opened again", KV("from", w->from), KV("revision", w->next), KV("reason", why));
	stream_drop(w);
	if (r < 0)
		r = etcd_error(r, ETCD_READ, why);
	if (error_is_final(r))
		return err_set(err, (enum err_code)-r, "etcd: %s", why->msg);
	grpc_channel_move(e->channel, generation);
	w->failures++;
	return 0;
}

/* ---- responses ---- */

static int on_canceled(struct etcd_watch *w, struct val v, struct err *err)
{
	struct etcd *e = etcd_watch_etcd(w);
	struct err why = ERR_INIT;
	int64_t compacted = val_int(v, compactRevision);
	str reason = val_str(v, cancelReason);

	if (compacted) {
		e->compact_revision = MAX(e->compact_revision, compacted);
		return err_set(err, ERR_EXPIRED, "etcd: mvcc: required revision has been compacted");
	}
	bool denied = str_find(reason, STR("PermissionDenied")) >= 0 || str_find(reason, STR("permission denied")) >= 0;
	err_set(&why, denied ? ERR_FORBIDDEN : ERR_UNAVAILABLE, "the watch was canceled: " STR_FMT, STR_ARG(reason));
	return stream_ended(w, -(int)why.code, &why, err);
}

static struct store_event *piece_new(struct etcd_watch *w)
{
	if (!w->memory)
		w->memory = store_memory_new();
	if (w->n == w->cap) {
		size_t cap = MAX(2 * w->cap, (size_t)8);
		struct store_event *grown = ARENA_ARRAY(w->memory, struct store_event, cap);
		if (w->n)
			memcpy(grown, w->events, w->n * sizeof *grown);
		w->events = grown;
		w->cap = cap;
	}
	return &w->events[w->n++];
}

static void piece_add(struct etcd_watch *w, struct val event)
{
	struct val kv = val_get(event, kv);
	bool deleted = str_eq(val_str(event, type), STR("DELETE"));
	int64_t revision = val_int(kv, modRevision);

	if (revision < w->next)
		return;
	w->revisions += w->n == 0 || revision != w->events[w->n - 1].kv.mod_revision;
	struct store_value *own = NULL;
	if (!deleted)
		own = etcd_own_find(&etcd_watch_etcd(w)->own, val_str(kv, key), val_str(kv, value));
	struct store_event *added = piece_new(w);
	*added = (struct store_event){ .deleted = deleted, .kv = etcd_kv(w->memory, kv, !deleted && !own) };
	if (own)
		added->kv.value = own;
}

/* The first n of the events that have come, which end with a revision; 1. The others are kept. */
static int deliver(struct etcd_watch *w, size_t n, struct store_batch *ret)
{
	const struct store_event *rest = w->events + n;
	size_t n_rest = w->n - n;
	int64_t revision = w->events[n - 1].kv.mod_revision;

	/* Not the header's revision: a member that catches up names its newest one there, and sends the rest later. */
	*ret = (struct store_batch){ .events = w->events, .n = n, .revision = revision, .memory = TAKE(w->memory) };
	w->next = revision + 1;
	w->events = NULL;
	w->n = w->cap = 0;
	for (size_t i = 0; i < n_rest; i++) {
		struct store_event *kept = piece_new(w);
		*kept = rest[i];
		kept->kv.key = arena_str(w->memory, kept->kv.key);
	}
	return 1;
}

/* How many events there are before those of the last revision. */
static size_t complete(const struct etcd_watch *w)
{
	size_t n = w->n;

	while (n > 0 && w->events[n - 1].kv.mod_revision == w->events[w->n - 1].kv.mod_revision)
		n--;
	return n;
}

static int on_events(struct etcd_watch *w, struct val v, struct store_batch *ret)
{
	struct val events = val_get(v, events);

	VAL_EACH(event, events)
		piece_add(w, *event);
	if (val_bool(v, fragment)) {
		size_t n = complete(w);
		return n ? deliver(w, n, ret) : 0;
	}
	etcd_fence_note(w, w->revisions);
	w->revisions = 0;
	return w->n ? deliver(w, w->n, ret) : 0;
}

static int on_progress(struct etcd_watch *w, int64_t revision, struct store_batch *ret)
{
	if (revision + 1 < w->next || w->memory)
		return 0;
	w->next = revision + 1;
	ret->revision = revision;
	return 1;
}

static int on_created(struct etcd_watch *w, struct val v)
{
	w->created = true;
	w->failures = 0;
	if (!w->next)
		w->next = val_int(v, header, revision) + 1;
	etcd_fence_start(w);
	return 0;
}

/* 1 with a batch, 0 when there is more to wait for. */
static int on_response(struct etcd_watch *w, struct val v, struct store_batch *ret, struct err *err)
{
	struct etcd *e = etcd_watch_etcd(w);
	int64_t id = val_int(v, watchId), revision = val_int(v, header, revision);
	bool main = id == WATCH_MAIN;

	e->revision = MAX(e->revision, revision);
	if (val_bool(v, canceled) && (main || !w->created))
		return on_canceled(w, v, err);
	if (main && val_bool(v, created))
		return on_created(w, v);
	if (main && (val_len(val_get(v, events)) || w->memory))
		return on_events(w, v, ret);
	if (main || (id == WATCH_ALL && w->ordered))
		return on_progress(w, revision, ret);
	revision = etcd_fence_response(w, v);
	return revision ? on_progress(w, revision, ret) : 0;
}

/* The next thing that the stream has; 1 with a batch, 0 when there is more to wait for. */
static int step(struct etcd_watch *w, struct store_batch *ret, struct err *err)
{
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err why = ERR_INIT;
	struct val v;
	int r;

	if (!w->stream)
		return stream_open(w, err);
	if ((r = grpc_stream_recv(w->stream, &m, &why)) <= 0) {
		int gone = fiber_check(err);
		if (gone < 0)
			return gone;
		return stream_ended(w, r, &why, err);
	}
	if ((r = proto_decode(&a, grpc_message_str(m), rpc_Watch_Watch.response, &v, &why)) < 0)
		return stream_ended(w, r, &why, err);
	return on_response(w, v, ret, err);
}

int etcd_watch_next(struct store_watch *watch, struct store_batch *ret, struct err *err)
{
	struct etcd_watch *w = CONTAINER_OF(watch, struct etcd_watch, watch);
	int r;

	while ((r = step(w, ret, err)) == 0)
		;
	return r < 0 ? r : 0;
}

/* ---- opening ---- */

/* Until the member has begun to watch. */
static int wait_created(struct etcd_watch *w, struct err *err)
{
	struct store_batch none = { 0 };
	int r = 0;

	DEADLINE_SCOPE(ETCD_CALL_MS);
	while (r == 0 && !w->created)
		r = step(w, &none, err);
	return r;
}

int etcd_watch_open(struct store *s, str from, str to, int64_t revision, struct store_watch **ret, struct err *err)
{
	struct etcd_watch *w = mem_zalloc(sizeof *w);
	struct err local = ERR_INIT;

	w->watch.store = s;
	w->users = 1;
	w->from = arena_str(&w->arena, to.n ? etcd_from(from) : from);
	w->to = arena_str(&w->arena, to);
	w->next = MAX(revision, (int64_t)0);
	int r = wait_created(w, &local);
	if (r < 0) {
		etcd_watch_free(&w->watch);
		if (r == -ERR_TIMEOUT && fiber_check(NULL) == 0)
			return err_set(err, ERR_UNAVAILABLE, "etcd: no member begins to watch");
		return err_set(err, (enum err_code)-r, "%s", local.msg);
	}
	*ret = &w->watch;
	return 0;
}

void etcd_watch_unref(struct etcd_watch *w)
{
	if (--w->users > 0)
		return;
	arena_done(&w->arena);
	free(w);
}

void etcd_watch_free(struct store_watch *watch)
{
	struct etcd_watch *w = CONTAINER_OF(watch, struct etcd_watch, watch);

	stream_drop(w);
	w->gone = true;
	etcd_watch_unref(w);
}
