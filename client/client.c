/*
 * Calls become requests here, wait for their turn, and are tried again as client-go does: when the server says when
 * (Retry-After with 429 or 5xx), and reads also when the connection was cut before an answer had begun.
 */
#include "client/client_priv.h"

#include "base/clock.h"
#include "base/fiber.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "net/url.h"

enum { RETRIES = 10, QUERY_MAX_BYTES = 256 * 1024 };

void client_free(struct client *c)
{
	if (c)
		c->transport->free(c);
}

void client_freep(struct client **c) { client_free(*c); }

/* ---- taking turns ---- */

void client_limit(struct client *c, double qps, unsigned burst)
{
	c->rate = (struct rate){ .qps = qps, .burst = burst ? burst : 1, .at_ns = clock_now_ns() };
}

/* (suspends) Those who wait are served in the order in which they came. */
static int wait_for_turn(struct client *c, struct err *err)
{
	int64_t ns = rate_take(&c->rate);
	int r = ns ? fiber_sleep_ns(ns, err) : 0;
	if (r < 0) {
		c->rate.used -= 1;
		return err_wrap(err, r, "client rate limiter Wait returned an error");
	}
	return 0;
}

/* ---- trying ---- */

struct attempt {
	struct client *client;
	const struct client_request *request;
	int (*once)(struct attempt *t, struct err *err);
	struct client_reply reply;
	struct client_watch *watch;
	struct arena *arena;             /* of a raw call */
	size_t max;
	str body;
	struct client_answer *answer;
};

static int call_once(struct attempt *t, struct err *err)
{
	return t->client->transport->call(t->client, t->request, &t->reply, err);
}

static int raw_once(struct attempt *t, struct err *err)
{
	return t->client->transport->call_raw(t->client, t->request, t->arena, t->max, &t->body, &t->reply, err);
}

/* What is to be tried again later is an error here, which nobody gets to see. */
static int answer_once(struct attempt *t, struct err *err)
{
	const struct client_reply *p = &t->reply;
	int r = t->client->transport->answer(t->client, t->request, t->arena, t->max, t->answer, &t->reply, err);
	if (r == 0 && p->retry_after_s >= 0 && (p->status == 429 || p->status >= 500))
		return err_set(err, ERR_TOO_MANY_REQUESTS, "the server asks to try again later");
	return r;
}

static int watch_once(struct attempt *t, struct err *err)
{
	return t->client->transport->watch(t->client, t->request, &t->watch, &t->reply, err);
}

/* In how many seconds another attempt makes sense; -1: never. */
static int64_t again_after(const struct attempt *t)
{
	const struct client_reply *p = &t->reply;
	if (p->status == 429 || p->status >= 500)
		return p->retry_after_s;
	return p->cut && str_eq(t->request->method, STR("GET")) ? 1 : -1;
}

/* There is no more time, or no more interest: but what had gone wrong says more than that. */
static int ended_while_waiting(int r, const struct err *last, struct err *err)
{
	struct err ended = ERR_INIT;
	if (!err)
		return r;
	ended = *err;
	return err_set(err, ended.code, "%s - error from a previous attempt: %s", ended.msg, last->msg);
}

static void note_answer(struct client *c, int r, int status)
{
	if (r >= 0 || status) {
		c->recoveries += c->unreached;
		c->unreached = false;
	} else if (r == -ERR_UNAVAILABLE || r == -ERR_TIMEOUT) {
		c->unreached = true;
	}
}

unsigned client_recoveries(const struct client *c) { return c->recoveries; }

/* (suspends) */
static int attempt_run(struct attempt *t, struct err *err)
{
	struct err last = ERR_INIT;
	for (int i = 0;; i++) {
		int r = wait_for_turn(t->client, err);
		if (r < 0)
			return r;
		t->reply = (struct client_reply){ .retry_after_s = -1 };
		err_clear(&last);
		r = t->once(t, &last);
		note_answer(t->client, r, t->reply.status);
		if (r >= 0)
			return r;
		int64_t seconds = i < RETRIES ? again_after(t) : -1;
		if (seconds < 0) {
			if (err)
				*err = last;
			return r;
		}
		if ((r = fiber_sleep_ms(seconds * 1000, err)) < 0)
			return ended_while_waiting(r, &last, err);
	}
}

/* ---- one object ---- */

/* What the server answers with is what was asked for, or it is no API server. */
static int check_kind(struct val object, const struct type *type, const char *suffix, struct err *err)
{
	str kind = val_str(object, kind), version = val_str(object, apiVersion), group;
	bool ok = str_starts(kind, type->name) && str_eq(str_skip(kind, type->name.n), str_of(suffix));
	if (!str_cut(version, '/', &group, &version)) {
		version = group;
		group = STR_NONE;
	}
	if (ok && str_eq(group, type->package->group) && str_eq(version, type->package->version))
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "the server answered with \"" STR_FMT "\" in \"" STR_FMT "\" where " STR_FMT
		       "%s was expected", STR_ARG(str_head(kind, 60)), STR_ARG(str_head(val_str(object, apiVersion), 60)),
		       STR_ARG(type->name), suffix);
}

/* (suspends) want: what the answer must be; NULL: anything. */
static int call(struct client *c, struct client_request *q, const struct type *want, const char *suffix, struct frozen **ret,
		struct err *err)
{
	struct attempt t = { .client = c, .request = q, .once = call_once };
	q->wants_object = ret != NULL;
	int r = attempt_run(&t, err);
	CLEANUP(frozen_unrefp) struct frozen *object = t.reply.object;
	if (r < 0 || !ret)
		return r;
	if (want && (r = check_kind(object->val, want, suffix, err)) < 0)
		return r;
	*ret = TAKE(object);
	return 0;
}

static int need_name(str name, struct err *err)
{
	return name.n ? 0 : err_set(err, ERR_BAD_REQUEST, "resource name may not be empty");
}

int client_get(struct client *c, const struct type *type, str namespace, str name, struct frozen **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct client_request q;
	int r;
	if ((r = need_name(name, err)) < 0 || (r = client_request_init(&a, type, namespace, name, STR_NONE, &q, err)) < 0)
		return r;
	q.verb = "get";
	q.method = STR("GET");
	return call(c, &q, type, "", ret, err);
}

static str write_query(struct arena *a, const struct client_write_options *o, bool apply)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(QUERY_MAX_BYTES);
	if (o->dry_run)
		url_query_add(&b, STR("dryRun"), STR("All"));
	if (o->manager.n)
		url_query_add(&b, STR("fieldManager"), o->manager);
	if (apply)
		url_query_add(&b, STR("force"), o->force ? STR("true") : STR("false"));
	return arena_str(a, buf_str(&b));
}

/* The object with apiVersion and kind. */
static struct val with_kind(struct arena *a, struct val object, const struct type *type)
{
	if (!val_str(object, kind).n)
		object = val_put(a, object, A_kind, VAL_STR(type->name));
	if (!val_str(object, apiVersion).n)
		object = val_put(a, object, A_apiVersion, VAL_STR(type_api_version(a, type)));
	return object;
}

static const struct client_write_options no_options;

/* (suspends) What all writes of whole objects have in common; q names the object. */
static int write_object(struct client *c, struct arena *a, struct client_request *q, struct val object,
			const struct client_write_options *o, bool apply, struct frozen **ret, struct err *err)
{
	const struct type *body = o->subresource.n ? client_subresource_type(q->resource, o->subresource) : q->type;
	if (!body)
		body = q->type;
	q->query = write_query(a, o, apply);
	q->body = with_kind(a, object, body);
	q->body_type = apply ? NULL : body;
	return call(c, q, o->reply ? o->reply : o->subresource.n ? NULL : q->type, "", ret, err);
}

int client_create(struct client *c, const struct type *type, struct val object, const struct client_write_options *o,
		  struct frozen **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct client_request q;
	str name = STR_NONE, namespace = val_str(object, metadata, namespace);
	int r;
	o = o ? o : &no_options;
	if (o->subresource.n && (r = need_name(name = val_str(object, metadata, name), err)) < 0)
		return r;
	if (!namespace.n && type_is_namespaced(type))
		return err_set(err, ERR_BAD_REQUEST, "an empty namespace may not be set during creation");
	if ((r = client_request_init(&a, type, namespace, name, o->subresource, &q, err)) < 0)
		return r;
	q.verb = "create";
	q.method = STR("POST");
	return write_object(c, &a, &q, object, o, false, ret, err);
}

/* A write that names its object by what the object says. */
static int write_named(struct client *c, const struct type *type, struct val object, const struct client_write_options *o,
		       const char *verb, str method, str content_type, struct frozen **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct client_request q;
	str name = val_str(object, metadata, name);
	int r;
	o = o ? o : &no_options;
	if ((r = need_name(name, err)) < 0 ||
	    (r = client_request_init(&a, type, val_str(object, metadata, namespace), name, o->subresource, &q, err)) < 0)
		return r;
	q.verb = verb;
	q.method = method;
	q.content_type = content_type;
	return write_object(c, &a, &q, object, o, content_type.n != 0, ret, err);
}

int client_update(struct client *c, const struct type *type, struct val object, const struct client_write_options *o,
		  struct frozen **ret, struct err *err)
{
	return write_named(c, type, object, o, "update", STR("PUT"), STR_NONE, ret, err);
}

int client_apply(struct client *c, const struct type *type, struct val object, const struct client_write_options *o,
		 struct frozen **ret, struct err *err)
{
	return write_named(c, type, object, o, "patch", STR("PATCH"), STR("application/apply-patch+yaml"), ret, err);
}

int client_patch(struct client *c, const struct type *type, str namespace, str name, enum client_patch kind, struct val patch,
		 const struct client_write_options *o, struct frozen **ret, struct err *err)
{
	static const str types[] = {
		[CLIENT_PATCH_JSON] = STR_INIT("application/json-patch+json"),
		[CLIENT_PATCH_MERGE] = STR_INIT("application/merge-patch+json"),
		[CLIENT_PATCH_STRATEGIC] = STR_INIT("application/strategic-merge-patch+json"),
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct client_request q;
	int r;
	o = o ? o : &no_options;
	if ((r = need_name(name, err)) < 0 || (r = client_request_init(&a, type, namespace, name, o->subresource, &q, err)) < 0)
		return r;
	q.verb = "patch";
	q.method = STR("PATCH");
	q.content_type = types[kind];
	q.query = write_query(&a, o, false);
	q.body = patch;
	return call(c, &q, o->reply ? o->reply : o->subresource.n ? NULL : type, "", ret, err);
}

/* ---- changing ---- */

/* (suspends) Once; *ret_object is what is stored now. */
static int change_once(struct client *c, const struct type *type, str namespace, str name, client_change *change, void *arg,
		       const struct client_write_options *o, struct frozen **ret_object, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *live = NULL;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = client_get(c, type, namespace, name, &live, err);
	if (r < 0)
		return r;
	struct val object = change(&a, live->val, arg);
	if (val_exists(object))
		return client_update(c, type, object, o, ret_object, err);
	*ret_object = TAKE(live);
	return 0;
}

int client_change_object(struct client *c, const struct type *type, str namespace, str name, client_change *change, void *arg,
			 const struct client_write_options *o, struct frozen **ret, struct err *err)
{
	enum { PAUSE_MS = 10, PAUSE_MAX_MS = 1000 };
	CLEANUP(frozen_unrefp) struct frozen *object = NULL;
	for (int64_t pause_ms = PAUSE_MS;; pause_ms = MIN(pause_ms * 2, (int64_t)PAUSE_MAX_MS)) {
		int r = change_once(c, type, namespace, name, change, arg, o, &object, err);
		if (r == 0 && ret)
			*ret = TAKE(object);
		if (r != -ERR_CONFLICT)
			return r;
		err_clear(err);
		/* At a random moment, or those who were in each other's way would be so again. */
		if ((r = fiber_sleep_ms((int64_t)random_below((uint64_t)pause_ms) + 1, err)) < 0)
			return r;
	}
}

/* ---- deleting ---- */

static void set_deletion(struct arena *a, struct client_request *q, const struct client_delete_options *o)
{
	q->method = STR("DELETE");
	if (!o)
		return;
	struct val only = OBJECT(a, F(uid, o->uid.n ? VAL_STR(o->uid) : VAL_EMPTY), F(resourceVersion, o->revision.n ? VAL_STR(o->revision) : VAL_EMPTY));
	q->body = OBJECT(a, F(kind, VAL_LIT("DeleteOptions")), F(apiVersion, VAL_LIT("v1")),
			 F(gracePeriodSeconds, o->grace_s >= 0 ? val_of_int(o->grace_s) : VAL_EMPTY),
			 F(preconditions, val_len(only) ? only : VAL_EMPTY),
			 F(propagationPolicy, o->propagation.n ? VAL_STR(o->propagation) : VAL_EMPTY));
	q->content_type = STR("application/json");
}

int client_delete(struct client *c, const struct type *type, str namespace, str name, const struct client_delete_options *o,
		  struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct client_request q;
	int r;
	if ((r = need_name(name, err)) < 0 || (r = client_request_init(&a, type, namespace, name, STR_NONE, &q, err)) < 0)
		return r;
	q.verb = "delete";
	set_deletion(&a, &q, o);
	return call(c, &q, NULL, "", NULL, err);
}

/* ---- many objects ---- */

static void add_text(struct buf *b, str key, str value)
{
	if (value.n)
		url_query_add(b, key, value);
}

static void add_int(struct buf *b, str key, int64_t value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%lld", (long long)value);
	if (value)
		url_query_add(b, key, str_span(digits, (size_t)n));
}

static void add_selection(struct buf *b, const struct client_list_options *o)
{
	add_text(b, STR("labelSelector"), o->labels);
	add_text(b, STR("fieldSelector"), o->fields);
	add_text(b, STR("resourceVersion"), o->revision);
}

static int finish_query(struct arena *a, const struct buf *b, struct client_request *q, struct err *err)
{
	q->query = arena_str(a, buf_str(b));
	return buf_check(b, "the query of the request", err);
}

int client_list(struct client *c, const struct type *type, const struct client_list_options *o, struct frozen **ret,
		struct err *err)
{
	static const struct client_list_options none;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(QUERY_MAX_BYTES);
	struct client_request q;
	o = o ? o : &none;
	int r = client_request_init(&a, type, o->namespace, STR_NONE, STR_NONE, &q, err);
	if (r < 0)
		return r;
	q.verb = "list";
	q.method = STR("GET");
	add_selection(&b, o);
	add_text(&b, STR("resourceVersionMatch"), o->match);
	add_int(&b, STR("limit"), o->limit);
	add_text(&b, STR("continue"), o->next);
	if ((r = finish_query(&a, &b, &q, err)) < 0)
		return r;
	return call(c, &q, type, "List", ret, err);
}

int client_delete_collection(struct client *c, const struct type *type, const struct client_list_options *o,
			     const struct client_delete_options *how, struct err *err)
{
	static const struct client_list_options none;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(QUERY_MAX_BYTES);
	struct client_request q;
	o = o ? o : &none;
	int r = client_request_init(&a, type, o->namespace, STR_NONE, STR_NONE, &q, err);
	if (r < 0)
		return r;
	q.verb = "deletecollection";
	set_deletion(&a, &q, how);
	add_selection(&b, o);
	if ((r = finish_query(&a, &b, &q, err)) < 0)
		return r;
	return call(c, &q, NULL, "", NULL, err);
}

int client_watch(struct client *c, const struct type *type, const struct client_watch_options *o, struct client_watch **ret,
		 struct err *err)
{
	static const struct client_watch_options none;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(QUERY_MAX_BYTES);
	struct client_request q;
	o = o ? o : &none;
	int r = client_request_init(&a, type, o->list.namespace, STR_NONE, STR_NONE, &q, err);
	if (r < 0)
		return r;
	q.verb = "watch";
	q.method = STR("GET");
	q.shared = o->shared;
	url_query_add(&b, STR("watch"), STR("true"));
	if (o->bookmarks || o->initial)
		url_query_add(&b, STR("allowWatchBookmarks"), STR("true"));
	if (o->initial) {
		url_query_add(&b, STR("sendInitialEvents"), STR("true"));
		url_query_add(&b, STR("resourceVersionMatch"), STR("NotOlderThan"));
	}
	add_selection(&b, &o->list);
	add_int(&b, STR("timeoutSeconds"), o->timeout_s);
	if ((r = finish_query(&a, &b, &q, err)) < 0)
		return r;
	struct attempt t = { .client = c, .request = &q, .once = watch_once };
	if ((r = attempt_run(&t, err)) < 0)
		return r;
	*ret = t.watch;
	return 0;
}

int client_watch_next(struct client_watch *w, struct client_event *ret, struct err *err)
{
	return w->client->transport->watch_next(w, ret, err);
}

void client_watch_free(struct client_watch *w)
{
	if (w)
		w->client->transport->watch_free(w);
}

void client_watch_freep(struct client_watch **w) { client_watch_free(*w); }

/* ---- other paths ---- */

int client_get_raw(struct client *c, struct arena *a, str path, size_t max, str *ret, struct err *err)
{
	struct client_request q = { .verb = "get", .method = STR("GET") };
	struct attempt t = { .client = c, .request = &q, .once = raw_once, .arena = a, .max = max };
	(void)str_cut(path, '?', &q.path, &q.query);
	int r = attempt_run(&t, err);
	if (r == 0)
		*ret = t.body;
	return r;
}

int client_raw(struct client *c, struct arena *a, const struct client_raw *raw, size_t max, struct client_answer *ret, struct err *err)
{
	struct client_request q = client_request_of_raw(raw);
	struct attempt t = { .client = c, .request = &q, .once = answer_once, .arena = a, .max = max, .answer = ret };
	*ret = (struct client_answer){ 0 };
	int r = attempt_run(&t, err);
	if (r == -ERR_TOO_MANY_REQUESTS && ret->status) {
		err_clear(err);
		return 0;
	}
	return r;
}
