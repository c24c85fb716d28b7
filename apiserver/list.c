/*
 * Where the objects of a list come from, and which page of them.
 *
 * The newest state is the cache itself. An older one is the cache as long as the kind has not changed since; else the
 * events of its window are undone, newest first, in a snapshot; only what is older than the window is read from the
 * store.
 */
#include "apiserver/list.h"

#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/read.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "codec/atoms.h"

/* ---- continue tokens ---- */

#define INVALID "continue key is not valid"

/* As Go's path.Clean leaves it: no empty, "." or ".." segments. */
static bool is_clean(str key)
{
	str segment, rest = str_skip(key, 1);
	if (!rest.n)
		return true;
	for (bool more = true; more;) {
		more = str_cut(rest, '/', &segment, &rest);
		if (!segment.n || str_eq(segment, STR(".")) || str_eq(segment, STR("..")))
			return false;
	}
	return true;
}

int list_token_decode(struct arena *a, str text, struct list_token *ret, struct err *err)
{
	struct val v;
	size_t n;
	char *json = arena_alloc(a, base64_decoded_max(text.n) + 1, 1);
	int r = base64url_decode(json, text, &n, err);
	if (r >= 0)
		r = json_decode(a, str_span(json, n), &(struct json_decode_options){ 0 }, &v, err);
	if (r < 0)
		return err_wrap(err, -ERR_BAD_REQUEST, INVALID);
	str version = val_as_str(val_find(v, STR("v"))), start = val_as_str(val_find(v, STR("start")));
	ret->revision = val_as_int(val_find(v, STR("rv")));
	if (!str_eq(version, STR("meta.k8s.io/v1")))
		return err_set(err, ERR_BAD_REQUEST, INVALID ": server does not recognize this encoded version " STR_FMT,
			       STR_ARG(version));
	if (ret->revision == 0)
		return err_set(err, ERR_BAD_REQUEST,
			       INVALID ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
	if (!start.n)
		return err_set(err, ERR_BAD_REQUEST, INVALID ": encoded start key empty (version meta.k8s.io/v1)");
	str key = start.p[0] == '/' ? start : arena_join(a, STR("/"), start);
	if (!is_clean(key))
		return err_set(err, ERR_BAD_REQUEST, INVALID ": " STR_FMT, STR_ARG(start));
	ret->start = str_skip(key, 1);
	return 0;
}

static str token_text(struct arena *a, int64_t revision, str slash, str start)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(1 << 20);
	buf_addf(&json, "{\"v\":\"meta.k8s.io/v1\",\"rv\":%lld,\"start\":", (long long)revision);
	json_quote(&json, arena_join(a, slash, start), false);
	buf_addc(&json, '}');
	char *out = arena_alloc(a, base64url_encoded_len(json.n), 1);
	return str_span(out, base64url_encode(out, buf_str(&json)));
}

str list_token_encode(struct arena *a, const struct list_token *t) { return token_text(a, t->revision, STR("/"), t->start); }

/* ---- gathering ---- */

struct gathering {
	const struct list_options *options;
	struct arena *arena;
	str prefix;                   /* of the keys of the list: "namespace/" or "" */
	str start;                    /* of this page, behind the prefix */
	size_t limit;                 /* 0: none */
	size_t cap;
	str last;                     /* key of the last object that was taken */
	struct list_page *page;
};

static void take(struct gathering *g, struct object *o)
{
	struct list_page *p = g->page;
	if (p->n == g->cap) {
		g->cap = g->cap ? 2 * g->cap : 64;
		p->objects = mem_resize(p->objects, g->cap * sizeof(struct object *));
	}
	p->objects[p->n++] = object_ref(o);
	g->last = o->key;
}

static bool is_full(const struct gathering *g) { return g->limit && g->page->n == g->limit; }

/* The token of the next page, when this one did not reach the end. */
static void cut(struct gathering *g, int64_t remaining)
{
	struct list_token t = { .revision = g->page->head.revision };
	/* directly after the last key */
	t.start = arena_join(g->arena, str_skip(g->last, g->prefix.n), str_span("", 1));
	g->page->head.next = list_token_encode(g->arena, &t);
	if (!g->options->selects)
		g->page->head.remaining = remaining;
}

static void gather_map(struct gathering *g, const struct omap *objects)
{
	struct omap_iter it;
	struct object *o;
	str key;
	omap_seek(&it, objects, arena_join(g->arena, g->prefix, g->start));
	while (!is_full(g) && (o = omap_next(&it, &key)) && str_starts(key, g->prefix))
		if (list_options_match(g->options, o))
			take(g, o);
	if (!is_full(g) || !(o = omap_next(&it, &key)) || !str_starts(key, g->prefix))
		return;
	int64_t rest = 1;
	if (!g->options->selects && !g->prefix.n && !g->start.n)
		rest = (int64_t)(omap_len(objects) - g->page->n);
	else if (!g->options->selects)
		while (omap_next(&it, &key) && str_starts(key, g->prefix))
			rest++;
	cut(g, rest);
}

/* The kind's objects at a revision that its window reaches back to: newer events undone. */
static struct omap *objects_at(const struct kind *kind, int64_t revision)
{
	struct omap *m = omap_snapshot(kind->objects);
	for (uint64_t i = kind->next_event; i > kind->first_event; i--) {
		const struct cache_event *e = &kind->events[(i - 1) % kind->events_cap];
		if (e->revision <= revision)
			break;
		if (e->before)
			omap_put(m, e->object->key, e->before);
		else
			omap_remove(m, e->object->key);
	}
	return m;
}

/* (suspends) From the store: older than all that is in memory. */
static int gather_store(struct request *q, struct gathering *g, int64_t revision, struct err *err)
{
	struct kind *kind = q->endpoint->kind;
	str prefix = cache_store_key(g->arena, kind, g->prefix);
	struct store_range range = {
		.from = arena_join(g->arena, prefix, g->start),
		.to = store_prefix_end(g->arena, prefix),
		.revision = revision,
		.limit = g->limit ? MAX(g->limit, (size_t)100) : 500,
	};
	for (bool more = true; more;) {
		struct store_page page;
		int r = store_range(q->server->store, &range, &page, err);
		if (r < 0)
			return r;
		more = page.more;
		size_t i = 0;
		for (; r >= 0 && i < page.n && !is_full(g); i++) {
			CLEANUP(object_unrefp) struct object *o = NULL;
			r = cache_decode(kind, str_skip(page.kvs[i].key, kind->prefix.n), &page.kvs[i], &o, err);
			if (r >= 0 && list_options_match(g->options, o))
				take(g, o);
		}
		if (r >= 0 && is_full(g) && (i < page.n || more))
			cut(g, page.count - (int64_t)i);
		if (page.n)
			range.from = arena_join(g->arena, page.kvs[page.n - 1].key, str_span("", 1));
		store_page_done(&page);
		if (r < 0)
			return r;
		more = more && !is_full(g);
	}
	return 0;
}

static int fail_expired(struct request *q, const struct list_options *o, const struct gathering *g)
{
	if (!o->next.n) {
		q->failure = read_expired(q->arena, STR("The resourceVersion for the provided list is too old."));
		return -ERR_EXPIRED;
	}
	static const str message = STR_INIT(
		"The provided continue parameter is too old to display a consistent list result. You can start a new list "
		"without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
		"results. Continuing with the provided token results in an inconsistent list - objects that were created, "
		"modified, or deleted between the time the first chunk was returned and now may show up in the list.");
	q->failure = read_expired(q->arena, message);
	str token = token_text(q->arena, -1, STR(""), g->start);
	q->failure = val_with(q->arena, q->failure, val_of_str(token), metadata, continue);
	return -ERR_EXPIRED;
}

/* (suspends) The state at exactly this revision. */
static int gather_exact(struct request *q, struct gathering *g, int64_t revision, struct err *err)
{
	const struct kind *kind = q->endpoint->kind;
	int r = read_wait(q, revision, false, err);
	if (r < 0)
		return r;
	g->page->head.revision = revision;
	if (revision >= kind->changed) {
		gather_map(g, kind->objects);
		return 0;
	}
	if (revision >= kind->floor) {
		CLEANUP(omap_freep) struct omap *then = objects_at(kind, revision);
		gather_map(g, then);
		return 0;
	}
	r = gather_store(q, g, revision, err);
	return r == -ERR_EXPIRED ? fail_expired(q, g->options, g) : r;
}

/* (suspends) The newest state, at least as new as the revision. */
static int gather_newest(struct request *q, struct gathering *g, int64_t revision, bool current, struct err *err)
{
	int r = read_wait(q, revision, current, err);
	if (r < 0)
		return r;
	g->page->head.revision = cache_revision(q->server->cache);
	gather_map(g, q->endpoint->kind->objects);
	return 0;
}

/* The one object that can match, if it does. */
static void gather_one(struct gathering *g, const struct kind *kind)
{
	struct object *o = cache_get(kind, arena_join(g->arena, g->prefix, g->options->name));
	if (o && list_options_match(g->options, o))
		take(g, o);
}

static int gather(struct request *q, struct gathering *g, struct err *err)
{
	const struct list_options *o = g->options;
	const struct kind *kind = q->endpoint->kind;
	bool one = o->name.n && (g->prefix.n || !kind->namespaced), any = str_eq(o->revision, STR("0"));
	struct list_token token = { 0 };
	int64_t revision;
	int r;
	if (o->next.n && !one) {
		if ((r = list_token_decode(g->arena, o->next, &token, err)) < 0)
			return fail_bad_request(q, "invalid continue token: " STR_FMT, STR_ARG(err_str(err)));
		if (o->revision.n && !any)
			return fail_bad_request(q, "specifying resource version is not allowed when using continue");
		g->start = token.start;
	}
	if ((r = read_revision(o->revision, &revision, err)) < 0)
		return fail_bad_request(q, "invalid resource version: " STR_FMT, STR_ARG(err_str(err)));
	if (!any)
		g->limit = (size_t)o->limit;
	if (token.revision > 0)
		return gather_exact(q, g, token.revision, err);
	if (token.revision < 0)
		return gather_newest(q, g, 0, true, err);
	if (o->match == MATCH_EXACT || (o->match == MATCH_UNSET && o->limit && revision > 0 && !one))
		return gather_exact(q, g, revision, err);
	if (!one)
		return gather_newest(q, g, revision, !o->revision.n, err);
	if ((r = read_wait(q, revision, !o->revision.n, err)) < 0)
		return r;
	g->page->head.revision = cache_revision(q->server->cache);
	gather_one(g, kind);
	return 0;
}

static str list_prefix(struct arena *a, const struct list_options *o)
{
	return o->namespace.n ? arena_join(a, o->namespace, STR("/")) : STR("");
}

int list_gather(struct request *q, const struct list_options *o, struct list_page *ret, struct err *err)
{
	*ret = (struct list_page){ .head.remaining = -1 };
	struct gathering g = { .options = o, .arena = q->arena, .page = ret, .prefix = list_prefix(q->arena, o) };
	int r = gather(q, &g, err);
	if (r < 0)
		list_page_done(ret);
	return r;
}

void list_current(struct kind *kind, const struct list_options *o, struct list_page *ret)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	*ret = (struct list_page){ .head.remaining = -1 };
	struct gathering g = { .options = o, .arena = &a, .page = ret, .prefix = list_prefix(&a, o) };
	if (o->name.n && (g.prefix.n || !kind->namespaced))
		gather_one(&g, kind);
	else
		gather_map(&g, kind->objects);
}

void list_page_done(struct list_page *p)
{
	for (size_t i = 0; i < p->n; i++)
		object_unref(p->objects[i]);
	free(p->objects);
	*p = (struct list_page){ 0 };
}

struct list_page list_page_ref(const struct list_page *p)
{
	struct list_page copy = *p;
	copy.objects = p->n ? mem_array(p->n, sizeof *copy.objects) : NULL;
	for (size_t i = 0; i < p->n; i++)
		copy.objects[i] = object_ref(p->objects[i]);
	return copy;
}
