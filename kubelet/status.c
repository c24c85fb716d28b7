/*
 * An entry per pod: the status last set, and the pod as the API server last showed it. The difference of both is what is sent, as a
 * patch: there is no reading before writing unless the server says that the pod is another one. A work queue of uids brings each
 * change to one of a few fibers at once, one at a time for a pod; whatever was set meanwhile goes with the next turn.
 *
 * Pods that the server shows come from the informer and from answers to patches, in any order: the newest resourceVersion counts. An
 * event about our own patch is therefore no news after its answer, and before it the entry is still being sent; so only what others
 * wrote is answered by telling again.
 */
#include "kubelet/status.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "client/work_queue.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pod_status.h"
#include "kubelet/pod_status_priv.h"
#include "kubelet/status_priv.h"

enum { FIBERS = 8, RETRY_MAX_MS = 10 * 1000, RETRIES_PER_S = 100, RECHECK_MS = 10 * 1000 };

#define POD TYPE(core_v1, Pod)
#define MIRROR_ANNOTATION STR("kubernetes.io/config.mirror")

struct entry {
	unsigned refs;                /* the table's, and one of who works on it */
	char *uid;
	struct frozen *pod;           /* as the kubelet last gave it */
	struct frozen *status;        /* NULL: none was set yet */
	struct frozen *live;          /* as the API server last showed it, of a static pod its mirror; NULL: ask */
	uint64_t version, sent;       /* of the status; sent: what the server has been told */
	bool is_static;
	bool finished;                /* nothing is left: it may be deleted */
	bool gone;                    /* from the API server: nothing more is told */
	bool forgotten;               /* no longer in the table */
};

struct statuses {
	struct statuses_options o;
	struct map entries;           /* by uid */
	struct work_queue *queue;     /* of uids; NULL: standalone */
};

/* ---- entries ---- */

static void entry_unref(struct entry *e)
{
	if (--e->refs)
		return;
	frozen_unref(e->pod);
	frozen_unref(e->status);
	frozen_unref(e->live);
	free(e->uid);
	free(e);
}

static struct entry *entry_of(struct statuses *s, struct frozen *pod)
{
	str uid = val_str(pod->val, metadata, uid);
	struct entry *e = map_get(&s->entries, uid);

	if (!e) {
		e = mem_zalloc(sizeof *e);
		e->refs = 1;
		e->uid = mem_alloc(uid.n + 1);
		memcpy(e->uid, uid.p ? uid.p : "", uid.n);
		e->uid[uid.n] = '\0';
		(void)map_put(&s->entries, str_span(e->uid, uid.n), e);
	}
	struct frozen *before = e->pod;
	e->pod = frozen_ref(pod);
	frozen_unref(before);
	e->is_static = pod_is_static(pod->val);
	return e;
}

static void entry_queue(struct statuses *s, const struct entry *e)
{
	if (s->queue && !e->gone)
		work_queue_add(s->queue, str_of(e->uid));
}

/* Whether x is a later state of the object than y; states that cannot be compared are taken as they come. */
static bool is_newer(struct val x, struct val y)
{
	str a = val_str(x, metadata, resourceVersion), b = val_str(y, metadata, resourceVersion);
	int64_t i, j;

	return str_to_i64(a, &i) && str_to_i64(b, &j) ? i > j : !str_eq(a, b);
}

/* The API server has this; false when that is no news. */
static bool entry_see(struct entry *e, struct frozen *pod)
{
	if (!val_str(pod->val, metadata, resourceVersion).n || (e->live && !is_newer(pod->val, e->live->val)))
		return false;
	frozen_unref(e->live);
	e->live = frozen_ref(pod);
	return true;
}

static void entry_lose_live(struct entry *e)
{
	frozen_unref(TAKE(e->live));
	e->sent = 0;
}

/* The API server's pod of that name is gone, or another one. */
static void entry_gone(struct statuses *s, struct entry *e)
{
	entry_lose_live(e);
	if (e->is_static || e->forgotten || e->gone)
		return; /* a mirror pod comes again */
	e->gone = true;
	if (s->o.gone)
		s->o.gone(s->o.arg, str_of(e->uid));
}

static bool is_deleted(const struct entry *e)
{
	return !e->is_static && e->finished && e->live && val_has(e->live->val, metadata, deletionTimestamp) &&
	       phase_is_terminal(val_str(e->live->val, status, phase));
}

static bool is_told(const struct entry *e)
{
	return e->sent == e->version && !is_deleted(e) && e->live && pod_status_equal(val_get(e->live->val, status), e->status->val);
}

/* ---- sending ---- */

/* (suspends) */
static int entry_read(struct statuses *s, struct entry *e, str uid, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *pod = NULL, *held = frozen_ref(e->pod); /* a newer one may be set meanwhile */
	struct val known = held->val;
	int r = client_get(s->o.client, POD, val_str(known, metadata, namespace), val_str(known, metadata, name), &pod, err);

	if (r < 0 && r != -ERR_NOT_FOUND)
		return r;
	if (r < 0 || (!e->is_static && !str_eq(val_str(pod->val, metadata, uid), uid))) {
		err_clear(err);
		entry_gone(s, e);
	} else if (str_eq(val_str(pod->val, metadata, uid), uid)) {
		(void)entry_see(e, pod);
	}
	return 0;
}

/* (suspends) live is there afterwards, unless there is nobody to be told. */
static int entry_find(struct statuses *s, struct arena *a, struct entry *e, struct err *err)
{
	str uid = !e->is_static ? str_of(e->uid) : s->o.mirror_of ? s->o.mirror_of(s->o.arg, a, str_of(e->uid)) : STR_NONE;

	if (e->live && !str_eq(val_str(e->live->val, metadata, uid), uid))
		entry_lose_live(e);
	return e->live || !uid.n ? 0 : entry_read(s, e, uid, err);
}

/* (suspends) The server refuses a patch with the error r: maybe since the pod is another one by now. */
static int entry_refused(struct statuses *s, struct arena *a, struct entry *e, int r, struct err *err)
{
	struct err why = ERR_INIT;

	entry_lose_live(e);
	if (entry_find(s, a, e, &why) < 0 || e->live)
		return r;
	err_clear(err);
	return 0;
}

/* (suspends) */
static int entry_write(struct statuses *s, struct arena *a, struct entry *e, struct err *err)
{
	static const struct client_write_options to_status = { .subresource = STR_INIT("status"), .reply = POD };
	CLEANUP(frozen_unrefp) struct frozen *live = frozen_ref(e->live), *status = frozen_ref(e->status), *reply = NULL;
	struct val was = live->val, patch;
	uint64_t version = e->version;
	int r = status_patch(a, was, status_merge(a, was, status->val, clock_wall_ns()), &patch, err);

	if (r == 0 && val_exists(patch))
		r = client_patch(s->o.client, POD, val_str(was, metadata, namespace), val_str(was, metadata, name), CLIENT_PATCH_STRATEGIC,
				 patch, &to_status, &reply, err);
	if (r == -ERR_NOT_FOUND) {
		err_clear(err);
		entry_gone(s, e);
		return 0;
	}
	if (r < 0)
		return r == -ERR_INVALID || r == -ERR_CONFLICT ? entry_refused(s, a, e, r, err) : r;
	if (reply)
		(void)entry_see(e, reply);
	e->sent = version;
	return 0;
}

/* (suspends) */
static int entry_delete(struct statuses *s, struct entry *e, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *live = frozen_ref(e->live);
	struct client_delete_options o = { .uid = str_of(e->uid) };
	int r;

	if (s->o.may_delete && !s->o.may_delete(s->o.arg, str_of(e->uid)))
		return err_set(err, ERR_CONFLICT, "something of the pod is left on the node");
	r = client_delete(s->o.client, POD, val_str(live->val, metadata, namespace), val_str(live->val, metadata, name), &o, err);
	if (r < 0 && r != -ERR_NOT_FOUND && r != -ERR_CONFLICT)
		return r;
	err_clear(err);
	entry_gone(s, e);
	return 0;
}

/* (suspends) */
static int entry_send(struct statuses *s, struct entry *e, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r;

	if (e->gone || !e->status)
		return 0;
	if ((r = entry_find(s, &a, e, err)) < 0 || !e->live || e->forgotten)
		return r;
	if ((r = entry_write(s, &a, e, err)) < 0 || !is_deleted(e) || e->gone || e->forgotten || e->sent != e->version)
		return r;
	return entry_delete(s, e, err);
}

static int work(str uid, void *arg, struct err *err)
{
	struct statuses *s = arg;
	struct entry *e = map_get(&s->entries, uid);
	int r;

	if (!e)
		return 0;
	e->refs++;
	r = entry_send(s, e, err);
	entry_unref(e);
	return r;
}

/* What was missed: a mirror pod that came late, a status that somebody else wrote over. */
static int recheck(void *arg)
{
	struct statuses *s = arg;
	struct entry *e;
	int r;

	while ((r = fiber_sleep_ms(RECHECK_MS, NULL)) == 0) {
		struct map_iter it = map_iter(&s->entries);
		while ((e = map_next(&it, NULL)))
			if (e->status && !is_told(e))
				entry_queue(s, e);
	}
	return r;
}

/* ---- the interface ---- */

struct statuses *statuses_new(const struct statuses_options *o)
{
	struct statuses *s = mem_zalloc(sizeof *s);

	s->o = *o;
	map_init(&s->entries);
	if (o->client)
		s->queue = work_queue_new(&(struct work_queue_options){ .name = "pod statuses", .max_ms = RETRY_MAX_MS,
									 .qps = RETRIES_PER_S });
	return s;
}

void statuses_free(struct statuses *s)
{
	struct entry *e;

	if (!s)
		return;
	struct map_iter it = map_iter(&s->entries);
	while ((e = map_next(&it, NULL)))
		entry_unref(e);
	map_done(&s->entries);
	work_queue_free(s->queue);
	free(s);
}

int statuses_run(struct statuses *s, struct err *err)
{
	CLEANUP(fiber_stopp) struct fiber *fiber = NULL;
	int r;

	if (s->queue)
		return (r = fiber_spawn(recheck, s, &fiber, err, "pod statuses")) < 0 ? r : work_queue_run(s->queue, FIBERS, work, s, err);
	while ((r = fiber_sleep_ms(RECHECK_MS, err)) == 0)
		;
	return r;
}

static void set(struct statuses *s, struct entry *e, struct val status)
{
	struct frozen *before = e->status;

	e->status = val_freeze(status);
	e->version++;
	frozen_unref(before);
	entry_queue(s, e);
}

void statuses_set(struct statuses *s, struct frozen *pod, struct val status)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct entry *e = entry_of(s, pod);
	struct val was = e->status ? e->status->val : val_get(pod->val, status);

	if (!e->is_static)
		(void)entry_see(e, pod);
	if (phase_is_terminal(val_str(was, phase)) && !phase_is_terminal(val_str(status, phase)))
		status = val_put(&a, status, A_phase, val_get(was, phase));
	if (!e->status || !pod_status_equal(e->status->val, status))
		set(s, e, status);
}

struct val statuses_get(const struct statuses *s, struct arena *a, str uid)
{
	const struct entry *e = map_get(&s->entries, uid);
	return e && e->status ? val_copy(a, e->status->val) : VAL_EMPTY;
}

void statuses_finish(struct statuses *s, struct frozen *pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct entry *e = entry_of(s, pod);
	struct val ended = status_ended(&a, pod->val, e->status ? e->status->val : val_get(pod->val, status));

	if (!e->is_static)
		(void)entry_see(e, pod);
	e->finished = true;
	if (!e->status || !pod_status_equal(e->status->val, ended))
		set(s, e, ended);
	else
		entry_queue(s, e);
}

void statuses_check(struct statuses *s, struct frozen *pod)
{
	str mirror = val_as_str(val_find(val_get(pod->val, metadata, annotations), MIRROR_ANNOTATION));
	struct entry *e = map_get(&s->entries, mirror.n ? mirror : val_str(pod->val, metadata, uid));

	if (!e || e->is_static != (mirror.n > 0))
		return;
	if (e->live && !str_eq(val_str(e->live->val, metadata, uid), val_str(pod->val, metadata, uid)))
		entry_lose_live(e);
	/* While something is being told (or waits to be) this comes by itself, but for a mirror pod that was not there. */
	if (entry_see(e, pod) && e->status && !is_told(e) && (e->sent == e->version || e->is_static))
		entry_queue(s, e);
}

void statuses_forget(struct statuses *s, str uid)
{
	struct entry *e = map_remove(&s->entries, uid);

	if (!e)
		return;
	e->forgotten = true;
	entry_unref(e);
}
