/*
 * Progress: up to which revision a watch that is quiet has been told everything.
 *
 * New members answer a request for it in order with the events of the stream. Older ones (before 3.4.31 and 3.5.13) answer
 * at once with the store's newest revision, while events up to it may still be waiting to be sent. With those a fence is
 * put up: a second watch on the same stream, of all keys, from the store's newest revision on. What it reports goes
 * through the same queue of the member as the events of the first.
 *
 * - The member puts a write's events into the queue before the write's revision can be seen by anyone. So everything up
 *   to the fence's answer is in the queue before it, provided that the member has caught the first watch up.
 * - It catches up all watches that are behind in one go, in no certain order. So once one fence has come, a second one
 *   proves what the first one said; that is how a new stream begins.
 * - It takes a watch out of the queue when the queue is full, and a watch that is far behind is caught up in several
 *   goes. Both show in what comes: many responses in a short time, or responses full of revisions. Then it takes two again.
 */
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "store/etcd_watch.h"

enum {
	QUEUE_FULL = 128,        /* responses in a member's queue for one stream */
	CATCH_UP_REVISIONS = 1000, /* the member sends at most so many in one go */
	FENCE_LOST_MS = 1000,
};

/* ---- requests ---- */

static void send_progress(struct etcd_watch *w)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	etcd_watch_send(w, OBJECT(&a, F(progressRequest, VAL_EMPTY_OBJECT)));
}

static void fence_cancel(struct etcd_watch *w)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	etcd_watch_send(w, OBJECT(&a, F(cancelRequest, OBJECT(&a, F(watchId, val_of_int(w->fence.id))))));
}

static void fence_send(struct etcd_watch *w, int64_t revision, bool second)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct etcd_fence *f = &w->fence;

	f->state = FENCE_SENT;
	f->second = second;
	f->id = f->id < WATCH_FENCE ? WATCH_FENCE : f->id + 1;
	f->sent_ns = clock_now_ns();
	/* A zero byte at both ends: all keys. */
	struct val create = OBJECT(&a, F(key, VAL_STR(STR("\0"))), F(rangeEnd, VAL_STR(STR("\0"))),
				   F(startRevision, val_of_int(revision)), F(watchId, val_of_int(f->id)));
	etcd_watch_send(w, OBJECT(&a, F(createRequest, create)));
}

/* ---- asking ---- */

static void fence_ask(struct etcd_watch *w);

/* The newest revision is known. */
static void fence_put_up(struct etcd_watch *w, int64_t revision)
{
	struct etcd_fence *f = &w->fence;

	/* Revision 1 is a store that nobody has written to: there is no event that a fence could report. */
	if (revision < w->next || revision <= 1) {
		f->state = FENCE_ECHO;
		f->proven = revision;
		f->sent_ns = clock_now_ns();
		send_progress(w);
		return;
	}
	fence_send(w, revision, false);
}

static int ask_main(void *arg)
{
	struct etcd_watch *w = arg;
	struct etcd *e = etcd_watch_etcd(w);
	int64_t revision;
	int r = etcd_revision(&e->store, &revision, NULL);

	if (!w->gone && w->fence.state == FENCE_ASKING) {
		w->fence.state = FENCE_IDLE;
		if (r == 0 && w->created) {
			/* A revision read on another connection may be ahead of this member. */
			if (grpc_stream_generation(w->stream) != grpc_channel_generation(e->channel))
				w->fence.settled = false;
			fence_put_up(w, revision);
		} else {
			w->wanted = true;
		}
	}
	etcd_watch_unref(w);
	return 0;
}

static void fence_ask(struct etcd_watch *w)
{
	struct etcd *e = etcd_watch_etcd(w);

	w->fence.again = false;
	if (fiber_group_spawn(&e->askers, ask_main, w, NULL, "etcd-progress") < 0)
		return;
	w->fence.state = FENCE_ASKING;
	w->users++;
}

void etcd_watch_progress(struct store_watch *watch)
{
	struct etcd_watch *w = CONTAINER_OF(watch, struct etcd_watch, watch);
	struct etcd_fence *f = &w->fence;

	if (!w->created) {
		w->wanted = true;
	} else if (w->ordered) {
		send_progress(w);
	} else if (f->state == FENCE_IDLE) {
		fence_ask(w);
	} else if (f->state != FENCE_ASKING && clock_now_ns() - f->sent_ns > FENCE_LOST_MS * NS_PER_MS) {
		/* The event at that revision may have been compacted away. */
		if (f->state == FENCE_SENT)
			fence_cancel(w);
		fence_ask(w);
	} else {
		f->again = true;
	}
}

/* ---- answers ---- */

void etcd_fence_start(struct etcd_watch *w)
{
	bool wanted = w->wanted || w->fence.again || w->fence.state != FENCE_IDLE;

	if (w->fence.state == FENCE_ASKING)
		w->fence = (struct etcd_fence){ .state = FENCE_ASKING };
	else
		w->fence = (struct etcd_fence){ .state = FENCE_IDLE };
	w->wanted = false;
	if (wanted && w->fence.state == FENCE_IDLE)
		etcd_watch_progress(&w->watch);
}

void etcd_fence_note(struct etcd_watch *w, size_t revisions)
{
	struct etcd_fence *f = &w->fence;
	int64_t now = clock_now_ns();

	if (now - f->window_ns > NS_PER_S) {
		f->window_ns = now;
		f->responses = 0;
	}
	if (++f->responses >= QUEUE_FULL / 2 || revisions >= CATCH_UP_REVISIONS) {
		f->busy_ns = now;
		f->settled = false;
	}
}

/* What was asked for has been answered. */
static int64_t fence_done(struct etcd_watch *w, int64_t revision)
{
	w->fence.state = FENCE_IDLE;
	if (w->fence.again)
		fence_ask(w);
	return revision;
}

static int64_t on_fence(struct etcd_watch *w, struct val v)
{
	struct etcd_fence *f = &w->fence;
	struct val events = val_get(v, events);
	int64_t event = val_int(val_at(events, val_len(events) - 1), kv, modRevision);
	int64_t revision = MIN(val_int(v, header, revision), event);
	bool busy = f->busy_ns >= f->sent_ns;

	fence_cancel(w);
	if (!f->second && f->settled && !busy)
		return fence_done(w, revision);
	if (f->second && !busy) {
		f->settled = true;
		return fence_done(w, f->proven);
	}
	f->proven = revision;
	fence_send(w, event, true);
	return 0;
}

int64_t etcd_fence_response(struct etcd_watch *w, struct val v)
{
	struct etcd_fence *f = &w->fence;
	int64_t id = val_int(v, watchId);

	if (f->state == FENCE_ECHO && id == WATCH_ALL)
		return fence_done(w, f->proven);
	if (f->state == FENCE_SENT && id == f->id && val_len(val_get(v, events)))
		return on_fence(w, v);
	return 0;
}
