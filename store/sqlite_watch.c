/*
 * Watches. A watch is a place in the sequence of revisions: `next` is the first that it has not seen. What happened
 * lately is in memory once for all watches (`recent`); a watch whose place is older reads rows until it has caught up.
 * So nothing queues up per watch, and there can be no gap and no repetition. A watch that fell behind only ends when the
 * rows it would need have been compacted.
 *
 * A commit looks once at each watch that has seen everything before it: one that the events do not concern is moved
 * on, without waking anybody.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/sqlite_priv.h"

enum {
	BATCH_MAX = 1000,          /* events in a batch */
	BATCH_BYTES = 4 << 20,     /* of values read from the file */
};

struct sqlite_watch {
	struct store_watch watch;
	struct list link;
	str from, to;
	int64_t next;
	bool progress;
	struct fiber_cond news;
	char bytes[];              /* of from and to */
};

/* ---- recent events ---- */

static struct sqlite_op **slot(const struct sqlite_store *s, int64_t revision)
{
	return &s->recent.ring[(uint64_t)revision % SQLITE_RECENT_MAX];
}

static size_t size_of(const struct sqlite_op *op) { return op->row.key.n + (op->row.value ? op->row.value->n : 0); }

static void drop_oldest(struct sqlite_store *s)
{
	struct sqlite_op *op = *slot(s, s->recent.first);

	s->recent.bytes -= size_of(op);
	sqlite_op_unref(op);
	s->recent.first++;
	s->recent.n--;
}

void sqlite_recent_add(struct sqlite_store *s, struct sqlite_op *op)
{
	struct sqlite_recent *recent = &s->recent;

	while (recent->n && (recent->n == SQLITE_RECENT_MAX || recent->bytes + size_of(op) > SQLITE_RECENT_BYTES))
		drop_oldest(s);
	if (!recent->ring)
		recent->ring = mem_array(SQLITE_RECENT_MAX, sizeof *recent->ring);
	if (!recent->n)
		recent->first = op->row.revision;
	assert(recent->first + (int64_t)recent->n == op->row.revision);
	op->refs++;
	*slot(s, op->row.revision) = op;
	recent->n++;
	recent->bytes += size_of(op);
}

void sqlite_recent_done(struct sqlite_store *s)
{
	while (s->recent.n)
		drop_oldest(s);
	free(TAKE(s->recent.ring));
}

const struct sqlite_op *sqlite_recent_at(const struct sqlite_store *s, int64_t revision)
{
	bool here = s->recent.n && revision >= s->recent.first && revision < s->recent.first + (int64_t)s->recent.n;
	return here ? *slot(s, revision) : NULL;
}

/* ---- telling ---- */

static bool concerns(const struct sqlite_watch *w, const struct sqlite_op *op)
{
	return store_range_has(w->from, w->to, op->row.key);
}

void sqlite_watches_tell(struct sqlite_store *s, int64_t first)
{
	LIST_EACH(struct sqlite_watch, w, &s->watches, link) {
		if (w->next < first)
			continue; /* it has not read the news before these */
		while (w->next <= s->committed) {
			const struct sqlite_op *op = sqlite_recent_at(s, w->next);
			if (!op || concerns(w, op))
				break;
			w->next++;
		}
		if (w->next <= s->committed)
			fiber_cond_broadcast(&w->news);
	}
}

/* ---- batches ---- */

/* Takes over the key and the reference on the value. */
static void batch_add(struct store_batch *b, const struct row *row, str key)
{
	b->events[b->n++] = (struct store_event){
		.deleted = row->version == 0,
		.kv = { .key = key, .value = row->value, .create_revision = row->created, .mod_revision = row->revision,
			.version = row->version },
	};
}

/* Takes what is in memory, from w->next on. */
static void take_recent(struct sqlite_store *s, struct sqlite_watch *w, struct store_batch *ret)
{
	struct arena *memory = NULL;
	size_t room = (size_t)MIN(s->committed - w->next + 1, (int64_t)BATCH_MAX);

	for (; w->next <= s->committed && ret->n < room; w->next++) {
		const struct sqlite_op *op = sqlite_recent_at(s, w->next);
		if (!concerns(w, op))
			continue;
		if (!memory) {
			ret->memory = memory = store_memory_new();
			ret->events = ARENA_ARRAY(memory, struct store_event, room);
		}
		if (op->row.value)
			store_value_ref(op->row.value);
		batch_add(ret, &op->row, arena_str(memory, op->row.key));
	}
}

struct replay {
	struct db_scan scan;
	struct arena *memory;
};

static int replay_run(struct db *db, void *arg, struct err *err)
{
	struct replay *x = arg;
	return db_scan(db, &x->scan, x->memory, err);
}

/* Takes a piece of the past from the file. */
static int take_past(struct sqlite_store *s, struct sqlite_watch *w, struct store_batch *ret, struct err *err)
{
	struct arena *memory = ret->memory = store_memory_new();
	struct replay x = { .memory = memory };
	struct sqlite_pin pin;

	x.scan = (struct db_scan){ .from = w->from, .to = w->to, .first = w->next,
		.last = s->recent.n ? s->recent.first - 1 : s->committed, .max_rows = BATCH_MAX, .max_bytes = BATCH_BYTES };
	sqlite_pin(s, &pin, w->next);
	int r = sqlite_reading(s, replay_run, &x, err);
	sqlite_unpin(&pin);
	ret->events = ARENA_ARRAY(memory, struct store_event, x.scan.n);
	for (size_t i = 0; i < x.scan.n; i++)
		batch_add(ret, &x.scan.rows[i], x.scan.rows[i].key);
	if (r >= 0)
		w->next = x.scan.first;
	if (r < 0 || !ret->n)
		store_batch_done(ret);
	return r;
}

int sqlite_watch_next(struct store_watch *watch, struct store_batch *ret, struct err *err)
{
	struct sqlite_watch *w = CONTAINER_OF(watch, struct sqlite_watch, watch);
	struct sqlite_store *s = sqlite_of(watch->store);
	int r = fiber_check(err);

	while (r >= 0) {
		bool behind = w->next <= s->committed;
		bool in_memory = behind && sqlite_recent_at(s, w->next);
		if (w->next < s->compact_revision && !in_memory)
			return err_set(err, ERR_EXPIRED,
				       "revision %lld has been compacted; the oldest that can be watched from is %lld",
				       (long long)w->next, (long long)s->compact_revision);
		if (in_memory)
			take_recent(s, w, ret);
		else if (behind)
			r = take_past(s, w, ret, err);
		if (r >= 0 && (ret->n || (w->progress && w->next > s->committed))) {
			w->progress = w->progress && w->next <= s->committed;
			ret->revision = MIN(w->next - 1, s->committed);
			return 0;
		}
		if (r >= 0)
			r = w->next <= s->committed ? fiber_yield(err) : fiber_cond_wait(&w->news, err);
	}
	return r;
}

/* ---- life ---- */

int sqlite_watch_open(struct store *store, str from, str to, int64_t revision, struct store_watch **ret, struct err *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r = fiber_check(err);
	if (r < 0)
		return r;

	struct sqlite_watch *w = mem_zalloc(sizeof *w + from.n + to.n);
	memcpy(w->bytes, from.p ? from.p : "", from.n);
	memcpy(w->bytes + from.n, to.p ? to.p : "", to.n);
	w->watch.store = store;
	w->from = str_span(w->bytes, from.n);
	w->to = str_span(w->bytes + from.n, to.n);
	w->next = revision > 0 ? revision : s->committed + 1;
	fiber_cond_init(&w->news, "events of a watch");
	list_add(&s->watches, &w->link);
	*ret = &w->watch;
	return 0;
}

void sqlite_watch_progress(struct store_watch *watch)
{
	struct sqlite_watch *w = CONTAINER_OF(watch, struct sqlite_watch, watch);
	w->progress = true;
	fiber_cond_broadcast(&w->news);
}

void sqlite_watch_free(struct store_watch *watch)
{
	struct sqlite_watch *w = CONTAINER_OF(watch, struct sqlite_watch, watch);
	list_remove(&w->link);
	free(w);
}
