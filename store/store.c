/* The way from the contract to an engine, and what is the same in both. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/store_priv.h"

int store_open(const struct store_options *o, struct store **ret, struct err *err)
{
	if (o->given) {
		*ret = o->given;
		return 0;
	}
	if (o->endpoints)
		return store_open_etcd(o, ret, err);
	if (!o->path || !*o->path)
		return err_set(err, ERR_BAD_REQUEST, "neither a file nor etcd's addresses were given for the store");
	return store_open_sqlite(o, ret, err);
}

void store_free(struct store *s)
{
	if (s)
		s->engine->free(s);
}

/* ---- memory of answers ---- */

struct arena *store_memory_new(void)
{
	struct arena *a = mem_alloc(sizeof *a);
	arena_init(a);
	return a;
}

static void memory_free(void *memory)
{
	struct arena *a = memory;
	if (!a)
		return;
	arena_done(a);
	free(a);
}

void store_page_done(struct store_page *page)
{
	for (size_t i = 0; i < page->n; i++)
		store_value_unref(page->kvs[i].value);
	memory_free(page->memory);
	*page = (struct store_page){ 0 };
}

void store_batch_done(struct store_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		store_value_unref(b->events[i].kv.value);
	memory_free(b->memory);
	*b = (struct store_batch){ 0 };
}

/* ---- reading ---- */

int store_range(struct store *s, const struct store_range *q, struct store_page *ret, struct err *err)
{
	*ret = (struct store_page){ 0 };
	if (q->revision < 0)
		return err_set(err, ERR_BAD_REQUEST, "revision %lld is negative", (long long)q->revision);
	return s->engine->range(s, q, ret, err);
}

int store_get(struct store *s, str key, struct store_kv *ret, int64_t *ret_revision, struct err *err)
{
	int64_t revision = 0;
	*ret = (struct store_kv){ .key = key };
	int r = s->engine->get(s, key, ret, &revision, err);
	if (r >= 0 && ret_revision)
		*ret_revision = revision;
	return r;
}

int store_revision(struct store *s, int64_t *ret_revision, struct err *err)
{
	return s->engine->revision(s, ret_revision, err);
}

/* ---- writing ---- */

static int write_one(struct store *s, const struct store_write *w, int64_t *ret_revision, struct store_kv *ret_current,
		     struct err *err)
{
	struct store_kv current = { .key = w->key };
	int64_t revision = 0;

	if (!w->key.n)
		return err_set(err, ERR_BAD_REQUEST, "a key must not be empty");
	int r = s->engine->write(s, w, &revision, &current, err);
	if (r > 0 && ret_revision)
		*ret_revision = revision;
	current.key = w->key;
	if (r == 0 && ret_current)
		*ret_current = current;
	else
		store_value_unref(current.value);
	return r;
}

int store_put(struct store *s, str key, struct store_value *value, int64_t expect, int64_t ttl_s, int64_t *ret_revision,
	      struct store_kv *ret_current, struct err *err)
{
	assert(value);
	struct store_write w = { .key = key, .value = value, .expect = expect, .ttl_s = MAX(ttl_s, (int64_t)0) };
	return write_one(s, &w, ret_revision, ret_current, err);
}

int store_delete(struct store *s, str key, int64_t expect, int64_t *ret_revision, struct store_kv *ret_current,
		 struct err *err)
{
	struct store_write w = { .key = key, .expect = expect };
	return write_one(s, &w, ret_revision, ret_current, err);
}

int store_compact(struct store *s, int64_t revision, struct err *err) { return s->engine->compact(s, revision, err); }

/* ---- watching ---- */

int store_watch_open(struct store *s, str from, str to, int64_t revision, struct store_watch **ret, struct err *err)
{
	return s->engine->watch_open(s, from, to, revision, ret, err);
}

int store_watch_next(struct store_watch *w, struct store_batch *ret, struct err *err)
{
	*ret = (struct store_batch){ 0 };
	return w->store->engine->watch_next(w, ret, err);
}

void store_watch_progress(struct store_watch *w) { w->store->engine->watch_progress(w); }

void store_watch_free(struct store_watch *w)
{
	if (w)
		w->store->engine->watch_free(w);
}

/* ---- looking after it ---- */

void store_stats(struct store *s, struct store_stats *ret)
{
	*ret = (struct store_stats){ .engine = s->engine->name };
	s->engine->stats(s, ret);
}
