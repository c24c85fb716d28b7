/*
 * Events wait in a queue until a fiber has sent them, one after another. As long as the server cannot be reached they stay
 * there; when the queue is full, new ones are dropped and the log says so, every few seconds.
 */
#include "client/recorder.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "client/event_merge.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"

enum { QUEUE_MAX = 1000, TRIES_MAX = 12, PAUSE_MS = 10 * 1000, GOODBYE_MS = 1000, COMPLAINT_MS = 10 * 1000 };

struct recorder {
	struct client *client;
	struct arena texts;
	str component, host;
	struct channel queue;        /* struct frozen: events that nobody merged yet */
	struct event_merge *merge;
	struct fiber *fiber;
	uint64_t dropped;            /* since the log said so last */
	int64_t complain_ns;         /* not again before */
};

/* ---- telling ---- */

/* An object, or a reference to one: what events say about it. */
static struct val reference(struct arena *a, struct val about)
{
	if (!val_exists(val_get(about, metadata)))
		return about;
	return OBJECT(a, F(kind, val_get(about, kind)), F(namespace, val_get(about, metadata, namespace)),
		      F(name, val_get(about, metadata, name)), F(uid, val_get(about, metadata, uid)),
		      F(apiVersion, val_get(about, apiVersion)), F(resourceVersion, val_get(about, metadata, resourceVersion)));
}

static struct val text(str s) { return s.n ? val_of_str(s) : VAL_EMPTY; }

static struct val event_of(struct recorder *r, struct arena *a, struct val about, enum recorder_type type, const char *reason,
			   str message)
{
	char now[TIME_TEXT_MAX];
	int64_t wall_ns = clock_wall_ns();
	struct val at = val_of_str(arena_str(a, time_format((struct timestamp){ .seconds = wall_ns / NS_PER_S }, now)));
	struct val ref = reference(a, about);
	str namespace = val_str(ref, namespace);

	return OBJECT(a,
		      F(metadata, OBJECT(a, F(name, val_of_str(event_name(a, val_str(ref, name), wall_ns))),
					 F(namespace, val_of_str(namespace.n ? namespace : STR("default"))))),
		      F(involvedObject, ref), F(reason, val_of_str(str_of(reason))), F(message, val_of_str(message)),
		      F(source, OBJECT(a, F(component, text(r->component)), F(host, text(r->host)))), F(firstTimestamp, at),
		      F(lastTimestamp, at), F(count, val_of_int(1)),
		      F(type, type == RECORD_WARNING ? VAL_LIT("Warning") : VAL_LIT("Normal")),
		      F(reportingComponent, text(r->component)), F(reportingInstance, text(r->host)));
}

/* A server that is away for long is told about many a time, but the log is for other things too. */
static void complain(struct recorder *r)
{
	int64_t now_ns = clock_now_ns();

	if (!r->dropped || now_ns < r->complain_ns)
		return;
	log_error("too many events wait to be sent, new ones are dropped", KV("component", r->component), KV("dropped", r->dropped));
	r->dropped = 0;
	r->complain_ns = now_ns + COMPLAINT_MS * NS_PER_MS;
}

void record(struct recorder *r, struct val about, enum recorder_type type, const char *reason, const char *fmt, ...)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	va_list ap;

	va_start(ap, fmt);
	str message = arena_vprintf(&a, fmt, ap);
	va_end(ap);
	struct frozen *event = val_freeze(event_of(r, &a, about, type, reason, message));
	if (channel_try_send(&r->queue, event))
		return;
	frozen_unref(event);
	r->dropped++;
	complain(r);
}

/* ---- sending ---- */

/* True when there is nothing more to do about it. */
static bool send_once(struct recorder *r, struct val event, struct val patch)
{
	struct err err = ERR_INIT;
	int result = -ERR_NOT_FOUND;

	if (val_exists(patch))
		result = client_patch(r->client, TYPE(core_v1, Event), val_str(event, metadata, namespace),
				      val_str(event, metadata, name), CLIENT_PATCH_STRATEGIC, patch, NULL, NULL, &err);
	if (result == -ERR_NOT_FOUND)
		result = client_create(r->client, TYPE(core_v1, Event), event, NULL, NULL, &err);
	if (result >= 0 || result == -ERR_ALREADY_EXISTS)
		return true;
	bool unreachable = result == -ERR_UNAVAILABLE || result == -ERR_TIMEOUT || result == -ERR_GONE || result == -ERR_SYSTEM;
	log_warn(unreachable ? "an event cannot be sent, trying again" : "the server refuses an event",
		 KV("reason", val_str(event, reason)), KV("message", val_str(event, message)), KV("err", &err));
	return !unreachable;
}

static int send(struct recorder *r, struct frozen *event)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val merged, patch;

	if (event_merge_take(r->merge, &a, event->val, &merged, &patch) == EVENT_DROP)
		return 0;
	for (unsigned tries = 1; !send_once(r, merged, patch) && tries < TRIES_MAX; tries++) {
		/* The first pause is a part of it, so that many who lost their server do not come back in step. */
		int result = fiber_sleep_ms(tries == 1 ? (int64_t)random_below(PAUSE_MS) : PAUSE_MS, NULL);
		if (result < 0)
			return result;
	}
	return 0;
}

static int recorder_run(void *arg)
{
	struct recorder *r = arg;
	void *event;
	int result;

	while ((result = channel_recv(&r->queue, &event, NULL)) > 0) {
		result = send(r, event);
		frozen_unref(event);
		complain(r);
		if (result < 0)
			break;
	}
	return result;
}

/* ---- life ---- */

int recorder_new(struct client *c, str component, str host, struct recorder **ret, struct err *err)
{
	struct recorder *r = mem_zalloc(sizeof *r);

	r->client = c;
	r->component = arena_str(&r->texts, component);
	r->host = arena_str(&r->texts, host);
	channel_init(&r->queue, QUEUE_MAX, "events");
	r->merge = event_merge_new();
	int result = fiber_spawn(recorder_run, r, &r->fiber, err, "events of " STR_FMT, STR_ARG(component));
	if (result < 0)
		recorder_free(r);
	else
		*ret = r;
	return result;
}

void recorder_free(struct recorder *r)
{
	void *event;

	if (!r)
		return;
	channel_close(&r->queue);
	if (r->fiber) {
		SHIELD_SCOPE();
		DEADLINE_SCOPE(GOODBYE_MS);
		if (fiber_join(r->fiber, NULL, NULL) < 0)
			(void)fiber_stop(r->fiber);
	}
	while (channel_try_recv(&r->queue, &event))
		frozen_unref(event);
	channel_done(&r->queue);
	event_merge_free(r->merge);
	arena_done(&r->texts);
	free(r);
}
