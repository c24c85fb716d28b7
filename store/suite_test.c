#include "store/suite.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/fiber_test.h"

enum { PATIENCE_MS = 60000 };

/* ---- the frame ---- */

struct frame {
	struct suite suite;
	void (*run)(struct suite *t);
};

static void open_store(struct suite *t)
{
	struct err err = ERR_INIT;
	if (t->engine->open(t, &t->store, &err) < 0)
		fail_msg("%s", err.msg);
}

static int frame_main(void *arg)
{
	struct frame *f = arg;
	struct suite *t = &f->suite;
	char id[UUID_TEXT + 1];

	uuid_v4(id);
	t->prefix = arena_printf(&t->arena, "/suite/%s/", id);
	t->engine->setup(t);
	open_store(t);
	{
		DEADLINE_SCOPE(PATIENCE_MS);
		f->run(t);
	}
	store_free(t->store);
	t->engine->teardown(t);
	return 0;
}

void suite_run(const struct suite_engine *engine, void (*run)(struct suite *t))
{
	struct frame f = { .suite = { .engine = engine, .arena = ARENA_INIT }, .run = run };
	CHECK_INT(run_loop(frame_main, &f), 0);
	arena_done(&f.suite.arena);
}

void suite_reopen(struct suite *t)
{
	store_free(TAKE(t->store));
	open_store(t);
}

/* ---- words ---- */

/* The result of a call that must not fail. */
static __attribute__((noinline)) int ok(int r, const struct err *err)
{
	if (r < 0)
		fail_msg("%s", err->msg);
	return r;
}

str suite_key(struct suite *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str name = arena_vprintf(&t->arena, fmt, ap);
	va_end(ap);
	return arena_join(&t->arena, t->prefix, name);
}

static int put_if(struct suite *t, str key, const char *text, int64_t expect, int64_t *ret_revision, struct store_kv *ret_current)
{
	struct err err = ERR_INIT;
	struct store_value *v = store_value_new(str_of(text));
	int r = store_put(t->store, key, v, expect, 0, ret_revision, ret_current, &err);
	store_value_unref(v);
	return ok(r, &err);
}

int64_t suite_put(struct suite *t, str key, const char *text)
{
	int64_t revision = 0;
	CHECK_INT(put_if(t, key, text, STORE_ANY, &revision, NULL), 1);
	return revision;
}

static int remove_if(struct suite *t, str key, int64_t expect, int64_t *ret_revision, struct store_kv *ret_current)
{
	struct err err = ERR_INIT;
	return ok(store_delete(t->store, key, expect, ret_revision, ret_current, &err), &err);
}

int64_t suite_remove(struct suite *t, str key)
{
	int64_t revision = 0;
	CHECK_INT(remove_if(t, key, STORE_ANY, &revision, NULL), 1);
	return revision;
}

const char *suite_get(struct suite *t, str key)
{
	struct err err = ERR_INIT;
	struct store_kv kv;
	if (!ok(store_get(t->store, key, &kv, NULL, &err), &err)) {
		CHECK(!kv.value);
		return NULL;
	}
	CHECK(str_eq(kv.key, key));
	const char *text = arena_str(&t->arena, store_value_str(kv.value)).p;
	store_value_unref(kv.value);
	return text;
}

int64_t suite_revision(struct suite *t)
{
	struct err err = ERR_INIT;
	int64_t revision = 0;
	(void)ok(store_revision(t->store, &revision, &err), &err);
	return revision;
}

static void compact_to(struct suite *t, int64_t revision)
{
	struct err err = ERR_INIT;
	(void)ok(store_compact(t->store, revision, &err), &err);
}

/* Takes kv's value. */
static void check_kv(struct store_kv *kv, const char *text, int64_t created, int64_t modified, int64_t version)
{
	CHECK(kv->value);
	CHECK_STR(store_value_str(kv->value), text);
	CHECK_INT(kv->create_revision, created);
	CHECK_INT(kv->mod_revision, modified);
	CHECK_INT(kv->version, version);
	store_value_unref(TAKE(kv->value));
}

static str below(struct suite *t, str key) { return str_skip(key, t->prefix.n); }

/* A range as text: "a=1 b=2", with keys only "a b". Of *ret_page only the numbers are good afterwards. */
static const char *list(struct suite *t, const struct store_range *q, struct store_page *ret_page)
{
	struct err err = ERR_INIT;
	struct store_page page;
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 20);

	(void)ok(store_range(t->store, q, &page, &err), &err);
	for (size_t i = 0; i < page.n; i++) {
		buf_addf(&b, "%s" STR_FMT, i ? " " : "", STR_ARG(below(t, page.kvs[i].key)));
		if (page.kvs[i].value)
			buf_addf(&b, "=" STR_FMT, STR_ARG(store_value_str(page.kvs[i].value)));
	}
	if (ret_page)
		*ret_page = page;
	store_page_done(&page);
	return arena_str(&t->arena, buf_str(&b)).p;
}

static struct store_range all_of(struct suite *t)
{
	return (struct store_range){ .from = t->prefix, .to = store_prefix_end(&t->arena, t->prefix) };
}

static const char *list_all(struct suite *t, int64_t revision)
{
	struct store_range q = all_of(t);
	q.revision = revision;
	return list(t, &q, NULL);
}

static struct store_watch *watch(struct suite *t, str from, str to, int64_t revision)
{
	struct err err = ERR_INIT;
	struct store_watch *w = NULL;
	(void)ok(store_watch_open(t->store, from, to, revision, &w, &err), &err);
	return w;
}

struct store_watch *suite_watch(struct suite *t, int64_t revision)
{
	struct store_range q = all_of(t);
	return watch(t, q.from, q.to, revision);
}

const char *suite_events(struct suite *t, struct store_watch *w, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 20);
	int64_t last = 0;

	for (size_t seen = 0; seen < n;) {
		struct err err = ERR_INIT;
		struct store_batch batch;
		(void)ok(store_watch_next(w, &batch, &err), &err);
		for (size_t i = 0; i < batch.n; i++, seen++) {
			const struct store_event *e = &batch.events[i];
			CHECK(e->kv.mod_revision > last && e->kv.mod_revision <= batch.revision);
			last = e->kv.mod_revision;
			buf_addf(&b, "%s%c" STR_FMT, seen ? " " : "", e->deleted ? '-' : '+', STR_ARG(below(t, e->kv.key)));
			if (!e->deleted)
				buf_addf(&b, "=" STR_FMT ".%d", STR_ARG(store_value_str(e->kv.value)), (int)e->kv.version);
			else
				CHECK(!e->kv.value);
		}
		store_batch_done(&batch);
	}
	return arena_str(&t->arena, buf_str(&b)).p;
}

/* The error of the next batch that does not come. */
static int watch_error(struct store_watch *w)
{
	struct store_batch batch;
	int r;
	while ((r = store_watch_next(w, &batch, NULL)) == 0)
		store_batch_done(&batch);
	return r;
}

/* ---- writing ---- */

void suite_create(struct suite *t)
{
	str key = suite_key(t, "a");
	int64_t before = suite_revision(t), revision = 0, unused = 7;
	struct store_kv current;

	CHECK(!suite_get(t, key));
	CHECK_INT(put_if(t, key, "one", STORE_ABSENT, &revision, &current), 1);
	CHECK(revision > before);
	CHECK_INT(put_if(t, key, "two", STORE_ABSENT, &unused, &current), 0);
	CHECK_INT(unused, 7);
	CHECK(str_eq(current.key, key));
	check_kv(&current, "one", revision, revision, 1);
	CHECK_STR(str_of(suite_get(t, key)), "one");
	CHECK_INT(put_if(t, key, "two", STORE_ABSENT, NULL, NULL), 0);
}

void suite_update(struct suite *t)
{
	str key = suite_key(t, "a"), other = suite_key(t, "b");
	int64_t first = suite_put(t, key, "1"), second = 0, third = 0;
	struct store_kv current;

	CHECK_INT(put_if(t, key, "2", first, &second, &current), 1);
	CHECK(second > first);
	CHECK_INT(put_if(t, key, "stale", first, &third, &current), 0);
	check_kv(&current, "2", first, second, 2);
	CHECK_INT(put_if(t, key, "3", second, &third, NULL), 1);
	CHECK_STR(str_of(suite_get(t, key)), "3");
	/* A key that is not there has no revision to match. */
	CHECK_INT(put_if(t, other, "x", third, NULL, &current), 0);
	CHECK(!current.value);
	CHECK(!suite_get(t, other));
}

void suite_put_any(struct suite *t)
{
	str key = suite_key(t, "a");
	int64_t first = suite_put(t, key, "1"), second = suite_put(t, key, "2");
	struct err err = ERR_INIT;
	struct store_kv kv;
	int64_t revision = 0;

	CHECK_INT(ok(store_get(t->store, key, &kv, &revision, &err), &err), 1);
	CHECK(revision >= second);
	check_kv(&kv, "2", first, second, 2);
}

void suite_delete(struct suite *t)
{
	str key = suite_key(t, "a");
	int64_t first = suite_put(t, key, "1"), gone = 0;
	struct store_kv current;

	CHECK_INT(remove_if(t, key, first + 1000, &gone, &current), 0);
	check_kv(&current, "1", first, first, 1);
	CHECK_INT(remove_if(t, key, STORE_ABSENT, NULL, NULL), 0);
	CHECK_INT(remove_if(t, key, first, &gone, &current), 1);
	CHECK(gone > first);
	CHECK(!suite_get(t, key));
	CHECK_INT(remove_if(t, key, first, NULL, &current), 0);
	CHECK(!current.value);
	CHECK_INT(remove_if(t, key, STORE_ANY, NULL, &current), 0);
	CHECK(!current.value);
}

void suite_recreate(struct suite *t)
{
	str key = suite_key(t, "a");
	int64_t first = suite_put(t, key, "1"), again = 0;
	struct store_kv current;

	(void)suite_remove(t, key);
	CHECK_INT(put_if(t, key, "stale", first, NULL, &current), 0);
	CHECK(!current.value);
	CHECK_INT(put_if(t, key, "2", STORE_ABSENT, &again, NULL), 1);
	CHECK_INT(put_if(t, key, "3", STORE_ABSENT, NULL, &current), 0);
	check_kv(&current, "2", again, again, 1);
}

void suite_revisions_count_writes(struct suite *t)
{
	int64_t before = suite_revision(t);

	CHECK(before >= 1);
	for (int i = 1; i <= 10; i++)
		CHECK_INT(suite_put(t, suite_key(t, "%d", i % 3), "x"), before + i);
	CHECK_INT(suite_remove(t, suite_key(t, "1")), before + 11);
	/* What did not happen does not count. */
	CHECK_INT(put_if(t, suite_key(t, "2"), "x", STORE_ABSENT, NULL, NULL), 0);
	CHECK_INT(remove_if(t, suite_key(t, "1"), STORE_ANY, NULL, NULL), 0);
	CHECK_INT(suite_revision(t), before + 11);
}

void suite_bad_arguments(struct suite *t)
{
	struct err err = ERR_INIT;
	struct store_page page;
	struct store_range q = all_of(t);

	CHECK_INT(store_delete(t->store, STR(""), STORE_ANY, NULL, NULL, &err), -ERR_BAD_REQUEST);
	q.revision = -1;
	CHECK_INT(store_range(t->store, &q, &page, &err), -ERR_BAD_REQUEST);
	CHECK_INT(store_compact(t->store, suite_revision(t) + 1000, &err), -ERR_BAD_REQUEST);
}

/* ---- ranges ---- */

static void put_names(struct suite *t, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)suite_put(t, suite_key(t, "%s", names[i]), names[i]);
}

void suite_range_order(struct suite *t)
{
	static const char *const names[] = { "b", "a/b", "\xff", "a", "a\x01", "B", "a-b", "\xc3\xa4" };

	put_names(t, names, ARRAY_LEN(names));
	CHECK_STR(str_of(list_all(t, 0)), "B=B a=a a\x01=a\x01 a-b=a-b a/b=a/b b=b \xc3\xa4=\xc3\xa4 \xff=\xff");
}

void suite_range_bounds(struct suite *t)
{
	static const char *const names[] = { "a", "b", "c", "c0" };
	static const struct { const char *from, *to, *want; } rows[] = {
		{ "a", "c", "a=a b=b" }, { "a0", "c0", "b=b c=c" }, { "b", NULL, "b=b" }, { "bb", NULL, "" }, { "b", "b", "" },
		{ "c", "a", "" }, { "c", "z", "c=c c0=c0" }, { "d", "e", "" },
	};
	struct store_page page;

	put_names(t, names, ARRAY_LEN(names));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct store_range q = { .from = suite_key(t, "%s", rows[i].from) };
		if (rows[i].to)
			q.to = suite_key(t, "%s", rows[i].to);
		CHECK_STR_ROW(i, str_of(list(t, &q, &page)), rows[i].want);
		CHECK_ROW(i, !page.more && page.count == (int64_t)page.n);
		CHECK_ROW(i, page.revision >= suite_revision(t));
	}
	/* A zero byte is a byte. */
	str key = arena_join(&t->arena, suite_key(t, "z"), STR("\0\0"));
	(void)suite_put(t, key, "zero");
	CHECK_STR(str_of(suite_get(t, key)), "zero");
	CHECK(!suite_get(t, suite_key(t, "z")));
}

void suite_range_pages(struct suite *t)
{
	struct store_range q = all_of(t);
	struct store_page page;

	for (int i = 0; i < 7; i++)
		(void)suite_put(t, suite_key(t, "%d", i), "x");
	q.limit = 3;
	q.keys_only = true;
	CHECK_STR(str_of(list(t, &q, &page)), "0 1 2");
	CHECK(page.more && page.count == 7);
	/* The next pages are of the same moment, whatever happened since. */
	q.revision = page.revision;
	(void)suite_remove(t, suite_key(t, "4"));
	(void)suite_put(t, suite_key(t, "33"), "x");
	q.from = suite_key(t, "2%c", 1);
	CHECK_STR(str_of(list(t, &q, &page)), "3 4 5");
	CHECK(page.more && page.count == 4);
	q.from = suite_key(t, "5%c", 1);
	CHECK_STR(str_of(list(t, &q, &page)), "6");
	CHECK(!page.more && page.count == 1 && page.revision == q.revision);
}

void suite_range_parts(struct suite *t)
{
	struct store_range q = all_of(t);
	struct err err = ERR_INIT;
	struct store_page page;
	int64_t first = suite_put(t, suite_key(t, "a"), "1"), second = suite_put(t, suite_key(t, "a"), "2");

	(void)suite_put(t, suite_key(t, "b"), "1");
	q.count_only = true;
	CHECK_STR(str_of(list(t, &q, &page)), "");
	CHECK(page.count == 2 && page.n == 0 && page.revision == second + 1);
	q = all_of(t);
	q.keys_only = true;
	(void)ok(store_range(t->store, &q, &page, &err), &err);
	CHECK(page.n == 2 && !page.kvs[0].value);
	CHECK_INT(page.kvs[0].create_revision, first);
	CHECK_INT(page.kvs[0].mod_revision, second);
	CHECK_INT(page.kvs[0].version, 2);
	store_page_done(&page);
}

void suite_range_at_old_revisions(struct suite *t)
{
	int64_t r1 = suite_put(t, suite_key(t, "a"), "1");
	int64_t r2 = suite_put(t, suite_key(t, "b"), "1");
	int64_t r3 = suite_put(t, suite_key(t, "a"), "2");
	int64_t r4 = suite_remove(t, suite_key(t, "a"));
	int64_t r5 = suite_put(t, suite_key(t, "a"), "3");

	CHECK_STR(str_of(list_all(t, r1)), "a=1");
	CHECK_STR(str_of(list_all(t, r2)), "a=1 b=1");
	CHECK_STR(str_of(list_all(t, r3)), "a=2 b=1");
	CHECK_STR(str_of(list_all(t, r4)), "b=1");
	CHECK_STR(str_of(list_all(t, r5)), "a=3 b=1");
	CHECK_STR(str_of(list_all(t, 0)), "a=3 b=1");
}

void suite_range_refused(struct suite *t)
{
	struct store_range q = all_of(t);
	struct err err = ERR_INIT;
	struct store_page page;
	int64_t r1 = suite_put(t, suite_key(t, "a"), "1"), r2 = suite_put(t, suite_key(t, "a"), "2");

	q.revision = r2 + 1000;
	CHECK_INT(store_range(t->store, &q, &page, &err), -ERR_BAD_REQUEST);
	CHECK(page.n == 0 && !page.memory);
	compact_to(t, r2);
	q.revision = r1;
	CHECK_INT(store_range(t->store, &q, &page, &err), -ERR_EXPIRED);
	CHECK_STR(str_of(list_all(t, r2)), "a=2");
}

void suite_range_from_key_on(struct suite *t)
{
	struct store_range q = { .from = STR("\xff\xff\xff\xff/suite"), .to = store_prefix_end(&t->arena, STR("\xff")) };
	str key = STR("\xff\xff\xff\xff/suite/z");
	struct store_page page;

	(void)suite_put(t, key, "last");
	(void)list(t, &q, &page);
	CHECK_INT(page.count, 1);
	(void)suite_remove(t, key);
}

void suite_values_of_any_size(struct suite *t)
{
	static const size_t sizes[] = { 0, 1, 4000, 4096, 70000, 1500000 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct err err = ERR_INIT;
		struct store_value *v = store_value_room(sizes[i]);
		struct store_kv kv;
		for (size_t j = 0; j < sizes[i]; j++)
			v->bytes[j] = (char)(j * 7 + j / 251);
		CHECK_INT(ok(store_put(t->store, suite_key(t, "%zu", i), v, STORE_ABSENT, 0, NULL, NULL, &err), &err), 1);
		suite_reopen(t); /* nothing comes from memory */
		CHECK_INT(ok(store_get(t->store, suite_key(t, "%zu", i), &kv, NULL, &err), &err), 1);
		CHECK_ROW(i, str_eq(store_value_str(kv.value), store_value_str(v)));
		store_value_unref(kv.value);
		store_value_unref(v);
	}
}

/* ---- watches ---- */

void suite_watch_live(struct suite *t)
{
	struct store_watch *w = suite_watch(t, suite_revision(t) + 1);

	(void)suite_put(t, suite_key(t, "a"), "1");
	CHECK_STR(str_of(suite_events(t, w, 1)), "+a=1.1");
	(void)suite_put(t, suite_key(t, "a"), "2");
	(void)suite_remove(t, suite_key(t, "a"));
	(void)suite_put(t, suite_key(t, "b"), "");
	CHECK_STR(str_of(suite_events(t, w, 3)), "+a=2.2 -a +b=.1");
	store_watch_free(w);
}

void suite_watch_past_then_live(struct suite *t)
{
	int64_t first = suite_put(t, suite_key(t, "a"), "1");
	(void)suite_put(t, suite_key(t, "b"), "1");
	int64_t third = suite_put(t, suite_key(t, "a"), "2");
	(void)suite_remove(t, suite_key(t, "b"));

	struct store_watch *w = suite_watch(t, first), *late = suite_watch(t, third);
	CHECK_STR(str_of(suite_events(t, w, 4)), "+a=1.1 +b=1.1 +a=2.2 -b");
	(void)suite_put(t, suite_key(t, "c"), "1");
	CHECK_STR(str_of(suite_events(t, w, 1)), "+c=1.1");
	CHECK_STR(str_of(suite_events(t, late, 3)), "+a=2.2 -b +c=1.1");
	store_watch_free(w);
	store_watch_free(late);
	suite_reopen(t);
	w = suite_watch(t, first);
	(void)suite_put(t, suite_key(t, "d"), "1");
	CHECK_STR(str_of(suite_events(t, w, 6)), "+a=1.1 +b=1.1 +a=2.2 -b +c=1.1 +d=1.1");
	store_watch_free(w);
}

void suite_watch_only_its_range(struct suite *t)
{
	int64_t from = suite_revision(t) + 1;
	struct store_watch *one = watch(t, suite_key(t, "b"), STR_NONE, from);
	struct store_watch *some = watch(t, suite_key(t, "b"), suite_key(t, "d"), from);

	for (char c = 'a'; c <= 'e'; c++)
		(void)suite_put(t, suite_key(t, "%c", c), "1");
	(void)suite_put(t, suite_key(t, "b0"), "1");
	(void)suite_remove(t, suite_key(t, "b"));
	CHECK_STR(str_of(suite_events(t, one, 2)), "+b=1.1 -b");
	CHECK_STR(str_of(suite_events(t, some, 4)), "+b=1.1 +c=1.1 +b0=1.1 -b");
	store_watch_free(one);
	store_watch_free(some);
}

void suite_watch_future(struct suite *t)
{
	int64_t now = suite_revision(t);
	struct store_watch *w = suite_watch(t, now + 3);

	for (int i = 1; i <= 4; i++)
		(void)suite_put(t, suite_key(t, "%d", i), "x");
	CHECK_STR(str_of(suite_events(t, w, 2)), "+3=x.1 +4=x.1");
	store_watch_free(w);
}

void suite_watch_progress(struct suite *t)
{
	struct store_watch *w = suite_watch(t, suite_revision(t) + 1);
	struct err err = ERR_INIT;
	struct store_batch batch;
	int64_t newest = suite_put(t, STR("/suite-elsewhere"), "x");

	store_watch_progress(w);
	do {
		(void)ok(store_watch_next(w, &batch, &err), &err);
		CHECK_INT(batch.n, 0);
		int64_t revision = batch.revision;
		store_batch_done(&batch);
		if (revision >= newest)
			break;
		store_watch_progress(w);
	} while (true);
	(void)suite_put(t, suite_key(t, "a"), "1");
	CHECK_STR(str_of(suite_events(t, w, 1)), "+a=1.1");
	store_watch_free(w);
}

void suite_watch_many(struct suite *t)
{
	enum { WATCHES = 40 };
	struct store_watch *ws[WATCHES];
	int64_t from = suite_revision(t) + 1;

	for (int i = 0; i < WATCHES; i++)
		ws[i] = i % 2 ? suite_watch(t, from) : watch(t, suite_key(t, "%d", i), STR_NONE, from);
	for (int i = 0; i < WATCHES; i++)
		(void)suite_put(t, suite_key(t, "%d", i), "x");
	for (int i = 0; i < WATCHES; i++) {
		str events = str_of(suite_events(t, ws[i], i % 2 ? WATCHES : 1));
		CHECK_ROW(i, i % 2 ? events.n > 200 : str_eq(events, arena_printf(&t->arena, "+%d=x.1", i)));
		store_watch_free(ws[i]);
	}
}

enum { LOAD_WRITERS = 16, LOAD_WRITES = 40 };

struct load {
	struct suite *t;
	int n;
	int64_t from;
};

static int load_write(void *arg)
{
	struct load *l = arg;
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;

	for (int i = 0; i < LOAD_WRITES; i++) {
		struct err err = ERR_INIT;
		str key = arena_join(&arena, l->t->prefix, arena_printf(&arena, "%d-%d", l->n, i % 5));
		struct store_value *v = store_value_new(arena_printf(&arena, "%d", i));
		int r = i % 7 == 6 ? store_delete(l->t->store, key, STORE_ANY, NULL, NULL, &err)
				   : store_put(l->t->store, key, v, STORE_ANY, 0, NULL, NULL, &err);
		store_value_unref(v);
		(void)ok(r, &err);
	}
	return 0;
}

/* Every revision since l->from once and in order: all of them are ours. */
static int load_watch(void *arg)
{
	struct load *l = arg;
	int64_t next = l->from, last = l->from + LOAD_WRITERS * LOAD_WRITES - 1;
	struct store_watch *w = suite_watch(l->t, next);

	while (next <= last) {
		struct err err = ERR_INIT;
		struct store_batch batch;
		(void)ok(store_watch_next(w, &batch, &err), &err);
		for (size_t i = 0; i < batch.n; i++)
			CHECK_INT(batch.events[i].kv.mod_revision, next++);
		CHECK(batch.revision == next - 1);
		store_batch_done(&batch);
	}
	store_watch_free(w);
	return 0;
}

void suite_watch_under_load(struct suite *t)
{
	struct load writers[LOAD_WRITERS], watchers[4];
	CLEANUP(fiber_group_done) struct fiber_group g;
	int64_t from = suite_revision(t) + 1;
	struct err err = ERR_INIT;

	fiber_group_init(&g);
	for (int i = 0; i < LOAD_WRITERS; i++) {
		writers[i] = (struct load){ t, i, 0 };
		(void)ok(fiber_group_spawn(&g, load_write, &writers[i], &err, "writer %d", i), &err);
	}
	for (size_t i = 0; i < ARRAY_LEN(watchers); i++) {
		watchers[i] = (struct load){ t, 0, from };
		(void)ok(fiber_group_spawn(&g, load_watch, &watchers[i], &err, "watcher %zu", i), &err);
		(void)ok(fiber_sleep_ms(2, &err), &err);
	}
	(void)ok(fiber_group_wait(&g, &err), &err);
}

void suite_watch_compacted(struct suite *t)
{
	int64_t first = suite_put(t, suite_key(t, "a"), "1");
	struct err err = ERR_INIT;
	struct store_watch *w = NULL;

	for (int i = 0; i < 5; i++)
		(void)suite_put(t, suite_key(t, "a"), "x");
	compact_to(t, first + 3);
	suite_reopen(t);
	/* An engine may say so at once, or with the first batch. */
	int r = store_watch_open(t->store, t->prefix, STR("\0"), first, &w, &err);
	CHECK_INT(r < 0 ? r : watch_error(w), -ERR_EXPIRED);
	store_watch_free(w);
	w = suite_watch(t, first + 4);
	CHECK_STR(str_of(suite_events(t, w, 2)), "+a=x.5 +a=x.6");
	store_watch_free(w);
}

static int watch_for_ever(void *arg) { return watch_error(arg); }

void suite_watch_canceled(struct suite *t)
{
	struct store_watch *w = suite_watch(t, suite_revision(t) + 1);
	struct fiber *f = start(watch_for_ever, w);

	CHECK_INT(fiber_yield(NULL), 0);
	CHECK_INT(fiber_stop(f), -ERR_CANCELED);
	/* The watch itself is as before. */
	(void)suite_put(t, suite_key(t, "a"), "1");
	CHECK_STR(str_of(suite_events(t, w, 1)), "+a=1.1");
	{
		DEADLINE_SCOPE(20);
		CHECK_INT(watch_error(w), -ERR_TIMEOUT);
	}
	store_watch_free(w);
}

/* ---- compaction ---- */

void suite_compact(struct suite *t)
{
	int64_t last = 0;

	for (int i = 0; i < 30; i++)
		last = suite_put(t, suite_key(t, "%d", i % 3), i < 27 ? "old" : "new");
	last = suite_remove(t, suite_key(t, "1"));
	compact_to(t, last);
	compact_to(t, last); /* there is nothing more to do, which is fine */
	compact_to(t, last - 5);
	CHECK_STR(str_of(list_all(t, 0)), "0=new 2=new");
	CHECK_STR(str_of(list_all(t, last)), "0=new 2=new");
	CHECK_INT(suite_revision(t), last);
	suite_reopen(t);
	CHECK_INT(suite_revision(t), last);
	CHECK_STR(str_of(list_all(t, last)), "0=new 2=new");
	CHECK_INT(suite_put(t, suite_key(t, "1"), "again"), last + 1);
}

void suite_compact_keeps_watchable(struct suite *t)
{
	(void)suite_put(t, suite_key(t, "a"), "1");
	(void)suite_remove(t, suite_key(t, "a"));
	int64_t last = suite_put(t, suite_key(t, "b"), "1");

	compact_to(t, last);
	suite_reopen(t);
	struct store_watch *w = suite_watch(t, last);
	(void)suite_remove(t, suite_key(t, "b"));
	CHECK_STR(str_of(suite_events(t, w, 2)), "+b=1.1 -b");
	store_watch_free(w);
}

static int compact_for_ever(void *store) { return store_compact_loop(store, 20, NULL); }

void suite_compact_loop(struct suite *t)
{
	int64_t first = suite_put(t, suite_key(t, "a"), "1");
	struct store_range q = all_of(t);
	struct fiber *f = start(compact_for_ever, t->store);
	struct store_page page;
	int r;

	(void)suite_put(t, suite_key(t, "a"), "2");
	q.revision = first;
	while ((r = store_range(t->store, &q, &page, NULL)) == 0) {
		store_page_done(&page);
		CHECK_INT(fiber_sleep_ms(5, NULL), 0);
	}
	CHECK_INT(r, -ERR_EXPIRED);
	CHECK_STR(str_of(list_all(t, 0)), "a=2");
	CHECK_INT(fiber_stop(f), -ERR_CANCELED);
	CHECK(suite_get(t, STR("compact_rev_key")));
}

/* ---- contention ---- */

enum { COUNTERS = 24, COUNTS = 10 };

static int count_up(void *arg)
{
	struct suite *t = arg;
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	str key = arena_join(&arena, t->prefix, STR("counter"));

	for (int done = 0; done < COUNTS;) {
		struct err err = ERR_INIT;
		struct store_kv kv = { 0 };
		int64_t n = 0;
		(void)ok(store_get(t->store, key, &kv, NULL, &err), &err);
		if (kv.value)
			CHECK(str_to_i64(store_value_str(kv.value), &n));
		struct store_value *v = store_value_new(arena_printf(&arena, "%lld", (long long)n + 1));
		done += ok(store_put(t->store, key, v, kv.value ? kv.mod_revision : STORE_ABSENT, 0, NULL, NULL, &err), &err);
		store_value_unref(v);
		store_value_unref(kv.value);
	}
	return 0;
}

void suite_counter(struct suite *t)
{
	CLEANUP(fiber_group_done) struct fiber_group g;
	struct err err = ERR_INIT;

	fiber_group_init(&g);
	for (int i = 0; i < COUNTERS; i++)
		(void)ok(fiber_group_spawn(&g, count_up, t, &err, "counter %d", i), &err);
	(void)ok(fiber_group_wait(&g, &err), &err);
	CHECK_STR(str_of(suite_get(t, suite_key(t, "counter"))), "240");
}

static int create_one(void *arg)
{
	struct suite *t = arg;
	struct store_kv current = { 0 };
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	int won = put_if(t, arena_join(&arena, t->prefix, STR("one")), "x", STORE_ABSENT, NULL, &current);

	/* Who loses sees the winner's. */
	CHECK(won || current.value);
	if (!won)
		store_value_unref(current.value);
	return won;
}

void suite_create_race(struct suite *t)
{
	struct fiber *fs[COUNTERS];
	int winners = 0;

	for (int i = 0; i < COUNTERS; i++)
		fs[i] = start(create_one, t);
	for (int i = 0; i < COUNTERS; i++)
		winners += join(fs[i]);
	CHECK_INT(winners, 1);
}

/* ---- expiry ---- */

static void put_ttl(struct suite *t, str key, const char *text, int64_t ttl_s)
{
	struct err err = ERR_INIT;
	struct store_value *v = store_value_new(str_of(text));
	CHECK_INT(ok(store_put(t->store, key, v, STORE_ANY, ttl_s, NULL, NULL, &err), &err), 1);
	store_value_unref(v);
}

void suite_ttl(struct suite *t)
{
	struct store_watch *w = suite_watch(t, suite_revision(t) + 1);
	int64_t start_ns = clock_now_ns();

	put_ttl(t, suite_key(t, "short"), "x", 1);
	(void)suite_put(t, suite_key(t, "long"), "x");
	CHECK_STR(str_of(suite_events(t, w, 2)), "+short=x.1 +long=x.1");
	CHECK_STR(str_of(suite_events(t, w, 1)), "-short");
	int64_t took_ms = (clock_now_ns() - start_ns) / NS_PER_MS;
	CHECK(took_ms >= 900 && took_ms <= 1000 + t->engine->ttl_slack_ms);
	CHECK_STR(str_of(list_all(t, 0)), "long=x");
	store_watch_free(w);
}

void suite_ttl_refreshed(struct suite *t)
{
	struct store_watch *w = suite_watch(t, suite_revision(t) + 1);

	put_ttl(t, suite_key(t, "kept"), "1", 1);
	put_ttl(t, suite_key(t, "prolonged"), "1", 1);
	put_ttl(t, suite_key(t, "short"), "1", 1);
	(void)suite_put(t, suite_key(t, "kept"), "2");
	put_ttl(t, suite_key(t, "prolonged"), "2", 1000);
	suite_events(t, w, 5);
	CHECK_STR(str_of(suite_events(t, w, 1)), "-short");
	CHECK_STR(str_of(list_all(t, 0)), "kept=2 prolonged=2");
	store_watch_free(w);
}

/* ---- reopening ---- */

void suite_reopened(struct suite *t)
{
	struct store_kv current;
	int64_t a = suite_put(t, suite_key(t, "a"), "1"), b = suite_put(t, suite_key(t, "b"), "1");
	int64_t b2 = suite_put(t, suite_key(t, "b"), "2"), last = suite_remove(t, suite_key(t, "a"));

	put_ttl(t, suite_key(t, "short"), "1", 1);
	suite_reopen(t);
	CHECK_INT(suite_revision(t), last + 1);
	CHECK_STR(str_of(list_all(t, a)), "a=1");
	CHECK_STR(str_of(list_all(t, last)), "b=2");
	CHECK_INT(put_if(t, suite_key(t, "b"), "x", STORE_ABSENT, NULL, &current), 0);
	check_kv(&current, "2", b, b2, 2);
	struct store_watch *w = suite_watch(t, last);
	CHECK_STR(str_of(suite_events(t, w, 3)), "-a +short=1.1 -short");
	store_watch_free(w);
}
