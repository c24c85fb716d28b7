/*
 * What stands for the connection of a request from inside is an exchange of its own with nobody at the other end. It must
 * not reach net/: local_check and local_respond see to that. A watch keeps the exchange, because its options and its audit
 * event live there.
 */
#include "apiserver/local.h"

#include <stdlib.h>

#include "apiserver/metrics.h"
#include "apiserver/pipeline.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/codec.h"

enum { HEADERS_MAX = 2, EVENTS_PER_TURN = 64 };

struct local_exchange {
	struct local_request request;
	struct arena arena;
	struct http_exchange http;
	struct http_peer peer;
	struct http_header headers[HEADERS_MAX];
};

struct local_watch {
	struct watch watch;
	struct http_source source;    /* it is stopped as other answers are */
	struct local_exchange *exchange; /* NULL until it is the caller's */
	struct fiber_cond news;
	struct watch_event event;     /* the next one */
	bool has_event;
	unsigned told;
};

/* ---- objects ---- */

/* The cache's own block where the object is shown as it is cached. */
static struct frozen *freeze_object(const struct endpoint *e, struct object *o, struct err *err)
{
	if (e->type == o->kind->hub && !o->kind->hooks->decorate)
		return val_same(o->val, o->frozen->val) ? frozen_ref(o->frozen) : val_freeze(o->val);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct type *type;
	struct val v;
	int r = view_version(&(struct view){ .endpoint = e }, o, &a, &v, &type, err);
	return r < 0 ? NULL : val_freeze(v);
}

/* Items of lists do not say what they are. */
static struct val without_kind(struct val v)
{
	while (v.n && (v.members->key == A_kind || v.members->key == A_apiVersion)) {
		v.members++;
		v.n--;
	}
	return v;
}

static struct frozen *freeze_list(const struct endpoint *e, const struct list_page *page, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct list_head *head = &page->head;
	const struct view view = { .endpoint = e };
	struct val_builder items = val_builder(&a);
	for (size_t i = 0; i < page->n; i++) {
		const struct type *type;
		struct val v;
		if (view_version(&view, page->objects[i], &a, &v, &type, err) < 0)
			return NULL;
		val_add_item(&items, without_kind(v));
	}
	struct val metadata = OBJECT(&a, F(resourceVersion, val_of_str(arena_printf(&a, "%lld", (long long)head->revision))),
				     F(continue, head->next.n ? val_of_str(head->next) : VAL_EMPTY),
				     F(remainingItemCount, head->remaining >= 0 ? val_of_int(head->remaining) : VAL_EMPTY));
	return val_freeze(OBJECT(&a, F(kind, val_of_str(arena_join(&a, e->type->name, STR("List")))),
				 F(apiVersion, val_of_str(type_api_version(&a, e->type))), F(metadata, metadata),
				 F(items, val_end_list(&items))));
}

/* ---- the answer ---- */

static int64_t retry_after(const struct request *q)
{
	int64_t seconds;
	if (str_to_i64(http_header_find(q->answer.headers, q->answer.n_headers, STR("retry-after")), &seconds) && seconds >= 0)
		return seconds;
	seconds = val_int(q->failure, details, retryAfterSeconds);
	return seconds > 0 ? seconds : -1;
}

static int drain(struct http_source *s, struct buf *b)
{
	enum { STEP = 64 << 10 };
	for (;;) {
		char *room = buf_reserve(b, STEP);
		ssize_t n = room ? s->fill(s, room, STEP) : 0;
		if (n <= 0)
			return (int)n;
		buf_commit(b, (size_t)n);
	}
}

/* The answer as it would go over a connection. */
static int respond_raw(struct request *q, struct buf *b, struct err *err)
{
	const struct answer *a = &q->answer;
	int r = 0;
	if (a->kind == ANSWER_LIST)
		r = drain(a->list->source, b);
	else if (a->kind == ANSWER_OBJECT)
		r = a->object ? encode_object(q, a->object, false, b, err) : encode_val(q, a->val, a->type, false, b, err);
	else
		buf_add(b, a->bytes);
	return r < 0 ? r : buf_check(b, "the answer", err);
}

static int respond_object(struct request *q, struct local_answer *ret, struct err *err)
{
	const struct answer *a = &q->answer;
	if (a->kind == ANSWER_OBJECT && a->object) {
		ret->object = freeze_object(q->endpoint, a->object, err);
	} else if (a->kind == ANSWER_OBJECT) {
		ret->object = val_freeze(a->val);
	} else if (a->list->watch) {
		ret->watch = CONTAINER_OF(a->list->source, struct local_watch, source);
		q->answer.list = NULL;
		return 0;
	} else {
		ret->object = freeze_list(q->endpoint, a->list->page, err);
	}
	return ret->object ? 0 : -ERR_INTERNAL;
}

void local_respond(struct request *q)
{
	struct local_answer *ret = q->local->answer;
	struct err err = ERR_INIT;
	int r = 0;
	if (!val_exists(q->failure)) {
		bool bytes = q->local->raw || q->answer.kind == ANSWER_BYTES;
		r = bytes ? respond_raw(q, &ret->text, &err) : respond_object(q, ret, &err);
	}
	if (r < 0 && err.code == ERR_NONE)
		(void)fail_internal(q, "the answer could not be made");
	else if (r < 0)
		(void)fail_err(q, &err);
	ret->status = q->answer.status;
	ret->retry_after_s = retry_after(q);
	if (val_exists(q->failure)) {
		ret->status = (int)val_int(q->failure, code);
		ret->object = val_freeze(q->failure);
	}
}

void local_answer_done(struct local_answer *a)
{
	frozen_unref(TAKE(a->object));
	local_watch_free(TAKE(a->watch));
	buf_done(&a->text);
}

/* ---- the request ---- */

int local_check(struct request *q)
{
	bool stream = q->verb == REQUEST_CONNECT || (q->verb == REQUEST_WATCH && q->local->raw) ||
		      str_eq(q->subresource, STR("log"));
	return stream ? fail_bad_request(q, "a stream needs a connection") : 0;
}

int local_read_body(struct request *q, size_t max, struct err *err)
{
	const struct local_request *l = q->local;
	if (!val_exists(l->body) || (l->body_type && !audit_wants_request(q)))
		return 0;
	CLEANUP(buf_done) struct buf b = BUF_INIT(max);
	int r = json_encode(&b, l->body, &(struct json_encode_options){ 0 }, err);
	q->body = arena_str(q->arena, buf_str(&b));
	return r;
}

static void header_add(struct local_exchange *e, str name, str value)
{
	if (value.n)
		e->headers[e->http.n_headers++] = (struct http_header){ name, arena_str(&e->arena, value) };
}

static struct local_exchange *exchange_new(const struct local_request *q, struct local_answer *answer)
{
	struct local_exchange *e = mem_zalloc(sizeof(*e));
	e->request = *q;
	e->request.answer = answer;
	e->peer.address = STR("in-process");
	e->http = (struct http_exchange){
		.arena = &e->arena, .version = 11, .method = arena_str(&e->arena, q->method), .path = arena_str(&e->arena, q->path),
		.query = arena_str(&e->arena, q->query), .headers = e->headers, .content_length = -1, .peer = &e->peer,
	};
	header_add(e, STR("user-agent"), q->user_agent);
	header_add(e, STR("content-type"), q->content_type);
	return e;
}

static void exchange_free(struct local_exchange *e)
{
	if (!e)
		return;
	if (e->peer.memo_free)
		e->peer.memo_free(e->peer.memo);
	arena_done(&e->arena);
	free(e);
}

int local_call(struct apiserver *s, const struct local_request *q, struct local_answer *ret, struct err *err)
{
	*ret = (struct local_answer){ .retry_after_s = -1 };
	buf_init(&ret->text, q->max);
	struct local_exchange *e = exchange_new(q, ret);
	int r = pipeline_local(&e->http, s, &e->request);
	if (ret->watch)
		ret->watch->exchange = e;
	else
		exchange_free(e);
	if (r == 0)
		return 0;
	int stopped = fiber_check(err);
	return stopped < 0 ? stopped : err_set(err, ERR_INTERNAL, "the request was given up");
}

/* ---- watches ---- */

/* Changes that are not for this watch do not wake its fiber. */
static void local_wake(struct watch *watch)
{
	struct local_watch *w = CONTAINER_OF(watch, struct local_watch, watch);
	if (!w->has_event)
		w->has_event = watch_next(watch, &w->event);
	if (w->has_event || watch->over)
		fiber_cond_signal(&w->news);
}

static void local_stop(struct http_source *source)
{
	struct local_watch *w = CONTAINER_OF(source, struct local_watch, source);
	struct local_exchange *e = w->exchange;
	watch_done(&w->watch);
	free(w);
	exchange_free(e);
}

struct watch *local_watch_new(void)
{
	struct local_watch *w = mem_zalloc(sizeof(*w));
	w->source.stop = local_stop;
	w->watch.wake = local_wake;
	w->watch.answer.source = &w->source;
	fiber_cond_init(&w->news, "events of a watch");
	return &w->watch;
}

static struct frozen *freeze_event(struct local_watch *w)
{
	const struct watch_event *e = &w->event;
	struct frozen *f = e->object ? freeze_object(w->watch.endpoint, e->object, NULL) : val_freeze(e->val);
	if (!f) { /* nobody may miss an event without knowing */
		watch_break(&w->watch, &w->event);
		f = val_freeze(w->event.val);
	}
	arena_reset(&w->watch.scratch);
	metrics_watch_event(w->watch.series, f->size);
	return f;
}

int local_watch_next(struct local_watch *w, enum watch_event_type *ret_type, struct frozen **ret_object, struct err *err)
{
	/* Whoever follows a large state lets others run meanwhile. */
	int r = ++w->told % EVENTS_PER_TURN == 0 ? fiber_yield(err) : fiber_check(err);
	while (r == 0 && !w->has_event) {
		w->has_event = watch_next(&w->watch, &w->event);
		if (w->has_event)
			break;
		if (w->watch.over)
			return 0;
		r = fiber_cond_wait(&w->news, err);
	}
	if (r < 0)
		return r;
	w->has_event = false;
	*ret_object = freeze_event(w);
	*ret_type = w->event.type;
	return 1;
}

void local_watch_free(struct local_watch *w)
{
	if (w)
		local_stop(&w->source);
}
