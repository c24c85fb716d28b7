/* A watch from its first event to its end: the initial state, changes, bookmarks. */
#include "apiserver/watch.h"

#include "apiserver/fairness/fairness.h"
#include "apiserver/local.h"
#include "apiserver/metrics.h"
#include "apiserver/read.h"
#include "base/clock.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum {
	BOOKMARK_S = 60,              /* between two of them, about */
	BOOKMARK_BEFORE_END_S = 2,
	TIMEOUT_MAX_S = 1000000000,
};

/* ---- the next event ---- */

static void tell_object(struct watch_event *e, enum watch_event_type type, struct object *o)
{
	*e = (struct watch_event){ .type = type, .object = o };
}

/* An object that carries nothing but how far the watch has come. */
static void tell_bookmark(struct watch *w, int64_t revision, bool ends_initial, struct watch_event *ret)
{
	struct arena *a = &w->scratch;
	const struct type *type = w->endpoint->type;
	struct member mark = { atom_make(a, STR("k8s.io/initial-events-end")), VAL_LIT("true") };
	struct val metadata = OBJECT(a, F(resourceVersion, val_of_str(arena_printf(a, "%lld", (long long)revision))),
				     F(annotations, ends_initial ? val_object(a, &mark, 1) : VAL_EMPTY));
	struct val bookmark = OBJECT(a, F(kind, val_of_str(type->name)), F(apiVersion, val_of_str(type_api_version(a, type))),
				     F(metadata, metadata));
	*ret = (struct watch_event){ .type = WATCH_BOOKMARK, .val = bookmark, .val_type = type };
}

static void tell_error(struct watch *w, struct val status, struct watch_event *ret)
{
	w->over = true;
	*ret = (struct watch_event){ .type = WATCH_ERROR, .val = status, .val_type = TYPE(meta_v1, Status) };
}

/* What a change means to this watch, which may not have seen the object before or will not see it after. False: nothing. */
static bool tell_change(struct watch *w, const struct cache_event *e, struct watch_event *ret)
{
	static const enum watch_event_type plain[] = {
		[CACHE_ADDED] = WATCH_ADDED, [CACHE_MODIFIED] = WATCH_MODIFIED, [CACHE_DELETED] = WATCH_DELETED,
	};
	const struct list_options *o = &w->options;
	if (!o->selects) {
		if (!list_options_match(o, e->object))
			return false;
		tell_object(ret, plain[e->type], e->object);
		return true;
	}
	bool now = e->type != CACHE_DELETED && list_options_match(o, e->object);
	bool before = e->before && list_options_match(o, e->before);
	if (!now && !before)
		return false;
	if (now)
		tell_object(ret, before ? WATCH_MODIFIED : WATCH_ADDED, e->object);
	else if (e->type == CACHE_DELETED)
		tell_object(ret, WATCH_DELETED, e->object);
	else
		tell_object(ret, WATCH_DELETED, w->shown = object_at_revision(e->before, e->revision));
	return true;
}

static bool next_initial(struct watch *w, struct watch_event *ret)
{
	if (w->at) {
		object_unref(w->initial.objects[w->at - 1]);
		w->initial.objects[w->at - 1] = NULL;
	}
	if (w->at < w->initial.n) {
		tell_object(ret, WATCH_ADDED, w->initial.objects[w->at++]);
		return true;
	}
	list_page_done(&w->initial);
	w->at = 0;
	if (!w->initial_bookmark)
		return false;
	w->initial_bookmark = false;
	tell_bookmark(w, w->revision, true, ret);
	return true;
}

bool watch_next(struct watch *w, struct watch_event *ret)
{
	object_unref(TAKE(w->shown));
	if (w->over)
		return false;
	if (UNLIKELY(val_exists(w->failure))) {
		tell_error(w, w->failure, ret);
		return true;
	}
	if ((w->initial.objects || w->initial_bookmark) && next_initial(w, ret))
		return true;
	w->over = w->server->stopping || clock_now_ns() >= w->end_ns;
	if (w->over)
		return false;
	const struct cache_event *e;
	while ((e = cache_watch_next(&w->watcher)))
		if (tell_change(w, e, ret))
			return true;
	w->over = w->watcher.ended;
	if (w->over || !w->bookmark_due)
		return false;
	w->bookmark_due = false;
	tell_bookmark(w, MAX(cache_revision(w->server->cache), w->watcher.after), false, ret);
	return true;
}

void watch_break(struct watch *w, struct watch_event *ret)
{
	tell_error(w, status_of(&w->scratch, 500, STR("InternalError"), VAL_EMPTY,
				STR("Internal error occurred: an event could not be encoded")), ret);
}

/* ---- time, and being woken ---- */

static void schedule(struct watch *w)
{
	int64_t now = clock_now_ns();
	w->bookmark_ns = INT64_MAX;
	if (w->options.bookmarks) {
		int64_t last = w->end_ns == INT64_MAX ? INT64_MAX : w->end_ns - BOOKMARK_BEFORE_END_S * NS_PER_S;
		w->bookmark_ns = MIN(now + BOOKMARK_S * NS_PER_S, last);
		if (w->bookmark_ns <= now)
			w->bookmark_ns = INT64_MAX;
	}
	int64_t due = MIN(w->end_ns, w->bookmark_ns);
	if (due != INT64_MAX)
		loop_timer_start(&w->timer, due);
}

static void watch_due(struct loop_timer *timer)
{
	struct watch *w = CONTAINER_OF(timer, struct watch, timer);
	int64_t now = clock_now_ns();
	if (now >= w->bookmark_ns)
		w->bookmark_due = true;
	if (now < w->end_ns)
		schedule(w);
	w->wake(w);
}

static void watch_wake(struct cache_watcher *watcher)
{
	struct watch *w = CONTAINER_OF(watcher, struct watch, watcher);
	w->wake(w);
}

void watches_end(struct apiserver *s)
{
	for (size_t i = 0; i < s->kinds.n_kinds; i++) {
		LIST_EACH_SAFE(struct cache_watcher, watcher, &s->kinds.kinds[i].watchers, link) {
			if (watcher->wake == watch_wake)
				watch_wake(watcher);
		}
	}
}

/* ---- beginning and ending ---- */

static void watch_init(struct watch *w, struct request *q, const struct list_options *o)
{
	w->watcher.wake = watch_wake;
	w->timer.fire = watch_due;
	w->answer.watch = true;
	w->server = q->server;
	w->endpoint = q->endpoint;
	w->series = metrics_series(q);
	metrics_longrunning(w->series, 1);
	w->audit = audit_keep(q);
	w->counted = fairness_watch_begin(q, o->name, &o->fields);
	w->options = *o;
}

void watch_done(struct watch *w)
{
	loop_timer_stop(&w->timer);
	metrics_longrunning(w->series, -1);
	fairness_watch_end(w->counted);
	audit_end(w->audit);
	if (w->following)
		cache_watch_end(&w->watcher);
	list_page_done(&w->initial);
	object_unref(w->shown);
	arena_done(&w->scratch);
}

static void watch_begin_timer(struct watch *w)
{
	int64_t asked_s = MIN(w->options.timeout_s, (int64_t)TIMEOUT_MAX_S), ns = MAX(asked_s, (int64_t)-1) * NS_PER_S;
	int64_t least = w->server->options.min_request_timeout_s * NS_PER_S;
	if (ns == 0 && least > 0)
		ns = least + (int64_t)random_below((uint64_t)least);
	w->end_ns = ns ? clock_now_ns() + MAX(ns, (int64_t)0) : INT64_MAX; /* negative: at once, as in Kubernetes */
	schedule(w);
}

/* From the moment of the call on nothing may suspend: the state and the events after it must fit together. */
static int watch_begin(struct watch *w, struct kind *kind, int64_t revision, struct err *err)
{
	int64_t newest = cache_revision(w->server->cache);
	if (w->options.initial == INITIAL_YES) {
		list_current(kind, &w->options, &w->initial);
		w->revision = newest;
		w->initial_bookmark = w->options.bookmarks;
		revision = newest;
	} else if (revision == 0) {
		revision = newest;
	}
	int r = cache_watch_begin(kind, revision, &w->watcher, err);
	w->following = r >= 0;
	return r;
}

int read_watch(struct request *q, struct err *err)
{
	struct list_options options;
	struct view view;
	int64_t revision;
	int r = list_options_read(q, &options, err);
	if (r < 0)
		return r;
	if (read_revision(options.revision, &revision, err) < 0)
		return request_fail_as(q, ERR_INTERNAL, 500, STR_NONE, VAL_EMPTY, STR_FMT, STR_ARG(err_str(err)));
	if ((r = view_of(q, &view)) < 0)
		return r;
	bool wait = options.initial == INITIAL_YES || (options.initial == INITIAL_NO && !options.revision.n);
	r = wait ? read_wait(q, revision, !options.revision.n, err) : 0;
	if (r < 0 && !val_exists(q->failure))
		return r;
	if (fiber_check(err) < 0)
		return -(int)err->code;
	struct watch *w = q->local ? local_watch_new() : watch_source_new(&view);
	watch_init(w, q, &options);
	watch_begin_timer(w);
	if (r < 0) {
		w->failure = q->failure;
		q->failure = VAL_EMPTY;
	} else if ((r = watch_begin(w, q->endpoint->kind, revision, err)) == -ERR_EXPIRED) {
		w->failure = read_expired(q->arena, arena_str(q->arena, err_str(err)));
	} else if (r < 0) {
		w->answer.source->stop(w->answer.source);
		return r;
	}
	q->answer.kind = ANSWER_LIST;
	q->answer.status = 200;
	q->answer.list = &w->answer;
	return 0;
}
