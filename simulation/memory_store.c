/*
 * The newest state is an ordered map, and everything that was ever written is in a list: that is what watches read, and what ranges at
 * older revisions are made from. A run is short enough to forget nothing but what a compaction forbids to ask for.
 */
#include "simulation/memory_store.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/omap.h"
#include "store/store_priv.h"

/* One key as one write has left it. */
struct entry {
	uint32_t refs;
	struct store_value *value; /* NULL: a deletion */
	int64_t create_revision, mod_revision, version;
	int64_t seen_ns;           /* when watches may tell of it */
	size_t n;
	char key[];
};

struct memory_store {
	struct store store;
	struct memory_store_options options;
	struct omap *first, *now;  /* struct entry */
	struct entry **log;        /* by revision, from `base` on */
	size_t n, cap;
	int64_t base, revision, compacted;
	struct fiber_cond news;
	struct loop_timer soon;    /* something that was written can be seen then */
};

struct memory_watch {
	struct store_watch watch;
	int64_t next;
	bool progress;
	str from, to;
	char texts[];
};

static struct memory_store *memory_of(struct store *s) { return CONTAINER_OF(s, struct memory_store, store); }

/* ---- entries ---- */

static void entry_ref(void *entry) { ((struct entry *)entry)->refs++; }

static void entry_unref(void *entry)
{
	struct entry *e = entry;

	if (--e->refs)
		return;
	store_value_unref(e->value);
	free(e);
}

static const struct omap_type entries = { entry_ref, entry_unref };

static struct store_kv kv_of(const struct entry *e, str key)
{
	return (struct store_kv){ .key = key, .value = e->value ? store_value_ref(e->value) : NULL, .create_revision = e->create_revision,
				  .mod_revision = e->mod_revision, .version = e->version };
}

static void log_add(struct memory_store *m, struct entry *e)
{
	if (m->n == m->cap) {
		m->cap = m->cap ? 2 * m->cap : 256;
		m->log = mem_resize(m->log, m->cap * sizeof(struct entry *));
	}
	m->log[m->n++] = e;
}

/* ---- reading ---- */

/* The state at a revision: what there was first, with what came since. */
static struct omap *state_at(struct memory_store *m, int64_t revision)
{
	if (revision >= m->revision)
		return omap_snapshot(m->now);
	struct omap *state = omap_snapshot(m->first);
	for (size_t i = 0; i < m->n && m->log[i]->mod_revision <= revision; i++) {
		struct entry *e = m->log[i];
		if (e->value)
			(void)omap_put(state, str_span(e->key, e->n), e);
		else
			(void)omap_remove(state, str_span(e->key, e->n));
	}
	return state;
}

static void page_fill(struct omap *state, const struct store_range *q, struct store_page *ret)
{
	struct arena *a = ret->memory = store_memory_new();
	struct omap_iter it;
	struct entry *e;
	size_t cap = 0;
	str key;

	omap_seek(&it, state, q->from);
	while ((e = omap_next(&it, &key)) && store_range_has(q->from, q->to, key)) {
		ret->count++;
		if (q->count_only || (q->limit && ret->n == q->limit))
			continue;
		if (ret->n == cap) {
			struct store_kv *grown = ARENA_ARRAY(a, struct store_kv, cap ? 2 * cap : 64);
			if (cap)
				memcpy(grown, ret->kvs, cap * sizeof *grown);
			ret->kvs = grown;
			cap = cap ? 2 * cap : 64;
		}
		struct store_kv *kv = &ret->kvs[ret->n++];
		*kv = kv_of(e, arena_str(a, key));
		if (q->keys_only)
			store_value_unref(TAKE(kv->value));
	}
	ret->more = ret->count > (int64_t)ret->n && !q->count_only;
}

static int memory_range(struct store *s, const struct store_range *q, struct store_page *ret, struct err *err)
{
	struct memory_store *m = memory_of(s);
	int64_t revision = q->revision ? q->revision : m->revision;

	if (revision > m->revision)
		return err_set(err, ERR_BAD_REQUEST, "revision %lld is in the future", (long long)revision);
	if (revision < MAX(m->compacted, m->base))
		return err_set(err, ERR_EXPIRED, "revision %lld has been compacted", (long long)revision);
	struct omap *state = state_at(m, revision);
	page_fill(state, q, ret);
	ret->revision = revision;
	omap_free(state);
	return 0;
}

static int memory_get(struct store *s, str key, struct store_kv *ret, int64_t *ret_revision, struct err *err)
{
	struct memory_store *m = memory_of(s);
	const struct entry *e = omap_get(m->now, key);

	(void)err;
	*ret_revision = m->revision;
	if (!e)
		return 0;
	*ret = kv_of(e, key);
	return 1;
}

static int memory_revision(struct store *s, int64_t *ret_revision, struct err *err)
{
	(void)err;
	*ret_revision = memory_of(s)->revision;
	return 0;
}

/* ---- writing ---- */

static void on_soon(struct loop_timer *timer) { fiber_cond_broadcast(&CONTAINER_OF(timer, struct memory_store, soon)->news); }

/* 1 when it was done; 0 when the condition does not hold. */
static int apply(struct memory_store *m, const struct store_write *w, int64_t seen_ns, struct store_kv *ret_current)
{
	const struct entry *old = omap_get(m->now, w->key);
	int64_t have = old ? old->mod_revision : STORE_ABSENT;

	if ((w->expect != STORE_ANY && w->expect != have) || (!w->value && !old)) {
		if (old)
			*ret_current = kv_of(old, w->key);
		return 0;
	}
	struct entry *e = mem_zalloc(sizeof *e + w->key.n);
	*e = (struct entry){ .refs = 1, .value = w->value ? store_value_ref(w->value) : NULL, .mod_revision = ++m->revision,
			     .create_revision = old ? old->create_revision : m->revision, .version = old ? old->version + 1 : 1,
			     .seen_ns = clock_now_ns() + seen_ns, .n = w->key.n };
	memcpy(e->key, w->key.p, w->key.n);
	log_add(m, e);
	if (w->value)
		(void)omap_put(m->now, w->key, e);
	else
		(void)omap_remove(m->now, w->key);
	if (m->options.written)
		m->options.written(m->options.arg, w->key, w->value, m->revision);
	if (seen_ns <= 0)
		fiber_cond_broadcast(&m->news);
	else if (!m->soon.place || m->soon.due_ns > e->seen_ns)
		loop_timer_start(&m->soon, e->seen_ns);
	return 1;
}

static int memory_write(struct store *s, const struct store_write *w, int64_t *ret_revision, struct store_kv *ret_current, struct err *err)
{
	struct memory_store *m = memory_of(s);
	struct memory_store_fate fate = { 0 };
	int r = 0;

	if (m->options.fate)
		fate = m->options.fate(m->options.arg);
	if (fate.before_ns > 0 && (r = fiber_sleep_ns(fate.before_ns, err)) < 0)
		return r;
	if (fate.refused)
		return err_set(err, ERR_UNAVAILABLE, "the store cannot be written to");
	int done = apply(m, w, fate.seen_ns, ret_current);
	*ret_revision = m->revision;
	if (fate.after_ns > 0)
		r = fiber_sleep_ns(fate.after_ns, err);
	if (r == 0 && fate.unknown)
		r = err_set(err, ERR_TIMEOUT, "the store did not answer in time");
	if (r < 0 && done == 0)
		store_value_unref(TAKE(ret_current->value));
	return r < 0 ? r : done;
}

static int memory_compact(struct store *s, int64_t revision, struct err *err)
{
	struct memory_store *m = memory_of(s);

	if (revision > m->revision)
		return err_set(err, ERR_BAD_REQUEST, "revision %lld is in the future", (long long)revision);
	m->compacted = MAX(m->compacted, revision);
	return 0;
}

/* ---- watching ---- */

static int memory_watch_open(struct store *s, str from, str to, int64_t revision, struct store_watch **ret, struct err *err)
{
	struct memory_store *m = memory_of(s);

	if (revision <= MAX(m->compacted, m->base))
		return err_set(err, ERR_EXPIRED, "revision %lld has been compacted", (long long)revision);
	struct memory_watch *w = mem_zalloc(sizeof *w + from.n + to.n);
	memcpy(w->texts, from.p, from.n);
	if (to.n)
		memcpy(w->texts + from.n, to.p, to.n);
	w->watch.store = s;
	w->next = revision;
	w->from = str_span(w->texts, from.n);
	w->to = str_span(w->texts + from.n, to.n);
	*ret = &w->watch;
	return 0;
}

/* How far it may be told now; sets the timer for the rest. */
static int64_t seen_up_to(struct memory_store *m, int64_t from)
{
	int64_t revision = from - 1, now = clock_now_ns();

	for (size_t i = (size_t)(from - m->base - 1); i < m->n; i++) {
		if (m->log[i]->seen_ns > now) {
			if (!m->soon.place || m->soon.due_ns > m->log[i]->seen_ns)
				loop_timer_start(&m->soon, m->log[i]->seen_ns);
			break;
		}
		revision = m->log[i]->mod_revision;
	}
	return revision;
}

static int memory_watch_next(struct store_watch *watch, struct store_batch *ret, struct err *err)
{
	struct memory_watch *w = CONTAINER_OF(watch, struct memory_watch, watch);
	struct memory_store *m = memory_of(watch->store);
	int64_t up_to = 0;
	int r = 0;

	while (r == 0 && (up_to = seen_up_to(m, w->next)) < w->next && !w->progress)
		r = fiber_cond_wait(&m->news, err);
	if (r < 0)
		return r;
	if (w->next <= m->compacted && up_to >= w->next)
		return err_set(err, ERR_EXPIRED, "revision %lld has been compacted", (long long)w->next);
	struct arena *a = ret->memory = store_memory_new();
	ret->events = ARENA_ARRAY(a, struct store_event, (size_t)(up_to - w->next + 2));
	for (; w->next <= up_to; w->next++) {
		const struct entry *e = m->log[w->next - m->base - 1];
		if (store_range_has(w->from, w->to, str_span(e->key, e->n)))
			ret->events[ret->n++] = (struct store_event){ .deleted = !e->value, .kv = kv_of(e, arena_str(a, str_span(e->key, e->n))) };
	}
	ret->revision = up_to;
	w->progress = false;
	return 0;
}

static void memory_watch_progress(struct store_watch *watch)
{
	CONTAINER_OF(watch, struct memory_watch, watch)->progress = true;
	fiber_cond_broadcast(&memory_of(watch->store)->news);
}

static void memory_watch_free(struct store_watch *watch) { free(CONTAINER_OF(watch, struct memory_watch, watch)); }

/* ---- life ---- */

static void memory_free(struct store *s) { (void)s; }

static void memory_stats(struct store *s, struct store_stats *ret)
{
	const struct memory_store *m = memory_of(s);

	ret->revision = m->revision;
	ret->compact_revision = m->compacted;
	ret->keys = (int64_t)omap_len(m->now);
}

static const struct store_engine engine = {
	.name = "memory",
	.free = memory_free,
	.range = memory_range,
	.get = memory_get,
	.revision = memory_revision,
	.write = memory_write,
	.compact = memory_compact,
	.watch_open = memory_watch_open,
	.watch_next = memory_watch_next,
	.watch_progress = memory_watch_progress,
	.watch_free = memory_watch_free,
	.stats = memory_stats,
};

struct memory_store *memory_store_new(const struct memory_store_options *o, const struct memory_store *like)
{
	struct memory_store *m = mem_zalloc(sizeof *m);

	*m = (struct memory_store){ .store.engine = &engine, .options = *o, .soon = LOOP_TIMER_INIT(on_soon) };
	m->first = like ? omap_snapshot(like->now) : omap_new(&entries);
	m->now = omap_snapshot(m->first);
	m->base = m->revision = m->compacted = like ? like->revision : 1;
	fiber_cond_init(&m->news, "news of the store");
	return m;
}

struct store *memory_store_of(struct memory_store *m) { return &m->store; }

static void entry_detach(struct entry *e)
{
	if (!e->value || !e->value->object)
		return;
	struct store_value *plain = store_value_new(store_value_str(e->value));
	store_value_unref(e->value);
	e->value = plain;
}

void memory_store_detach(struct memory_store *m)
{
	struct omap_iter it;
	struct entry *e;

	omap_seek(&it, m->now, STR_NONE);
	while ((e = omap_next(&it, NULL)))
		entry_detach(e);
	for (size_t i = 0; i < m->n; i++)
		entry_detach(m->log[i]);
}

void memory_store_free(struct memory_store *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		entry_unref(m->log[i]);
	free(m->log);
	omap_free(m->now);
	omap_free(m->first);
	free(m);
}
