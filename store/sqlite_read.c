/*
 * Reading: the index says which row holds a key's value at a revision; the row comes from memory when it is recent, else
 * from the file. A walk over many keys lets other fibers run now and then; it walks a snapshot of the index, at one
 * revision, with a pin, so that what happens meanwhile does not show.
 */
#include "base/fiber_io.h"
#include "store/sqlite_priv.h"

enum {
	WALK_TURN = 2000,  /* keys between two turns of the loop */
	READ_TURN = 256,   /* rows in one piece of work for the pool */
};

void sqlite_pin(struct sqlite_store *s, struct sqlite_pin *pin, int64_t revision)
{
	pin->revision = revision;
	list_add(&s->pins, &pin->link);
}

void sqlite_unpin(struct sqlite_pin *pin) { list_remove(&pin->link); }

int64_t sqlite_pinned(const struct sqlite_store *s)
{
	int64_t least = INT64_MAX;
	LIST_EACH(struct sqlite_pin, pin, &s->pins, link)
		least = MIN(least, pin->revision);
	return least;
}

/* ---- a connection to read with ---- */

struct reading {
	struct db *db;
	int (*fn)(struct db *db, void *arg, struct err *err);
	void *arg;
};

static int reading_run(void *arg, struct err *err)
{
	struct reading *r = arg;
	return r->fn(r->db, r->arg, err);
}

int sqlite_reading(struct sqlite_store *s, int (*fn)(struct db *db, void *arg, struct err *err), void *arg, struct err *err)
{
	for (;;) {
		for (size_t i = 0; i < SQLITE_READERS; i++) {
			if (s->reader_busy[i])
				continue;
			struct reading reading = { s->readers[i], fn, arg };
			s->reader_busy[i] = true;
			int r = fiber_blocking(reading_run, &reading, err);
			s->reader_busy[i] = false;
			fiber_cond_signal(&s->reader_free);
			return r;
		}
		int r = fiber_cond_wait(&s->reader_free, err);
		if (r < 0)
			return r;
	}
}

/* ---- rows ---- */

struct rows {
	struct row **rows;
	size_t n;
};

static int read_rows(struct db *db, void *arg, struct err *err)
{
	struct rows *x = arg;
	return db_read(db, x->rows, x->n, err);
}

/* The values of these rows, a reference each. On failure too, those that were read are in the rows. */
static int fill_values(struct sqlite_store *s, struct row *const *rows, size_t n, struct err *err)
{
	struct row *missing[READ_TURN];
	struct rows x = { missing, 0 };

	for (size_t i = 0; i < n; i++) {
		const struct sqlite_op *recent = sqlite_recent_at(s, rows[i]->revision);
		if (recent)
			rows[i]->value = store_value_ref(recent->row.value);
		else
			missing[x.n++] = rows[i];
		if (x.n == READ_TURN || (x.n && i == n - 1)) {
			int r = sqlite_reading(s, read_rows, &x, err);
			if (r < 0)
				return r;
			x.n = 0;
		}
	}
	return 0;
}

int sqlite_get_at(struct sqlite_store *s, str key, int64_t revision, struct store_kv *ret, struct err *err)
{
	const struct index_key *k = index_find(&s->index, key);
	const struct index_version *v = k ? index_at(k, revision) : NULL;
	struct sqlite_pin pin;

	if (!v || !v->version)
		return 0;
	struct row row = { .revision = v->revision }, *one = &row;
	*ret = (struct store_kv){
		.key = key, .create_revision = v->created, .mod_revision = v->revision, .version = v->version,
	};
	sqlite_pin(s, &pin, revision);
	int r = fill_values(s, &one, 1, err);
	sqlite_unpin(&pin);
	if (r < 0) {
		store_value_unref(row.value);
		return r;
	}
	ret->value = row.value;
	return 1;
}

int sqlite_get(struct store *store, str key, struct store_kv *ret, int64_t *ret_revision, struct err *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r = fiber_check(err);

	*ret_revision = s->committed;
	return r < 0 ? r : sqlite_get_at(s, key, s->committed, ret, err);
}

int sqlite_revision(struct store *store, int64_t *ret_revision, struct err *err)
{
	*ret_revision = sqlite_of(store)->committed;
	return fiber_check(err);
}

/* ---- ranges ---- */

struct walk {
	struct sqlite_store *store;
	const struct store_range *q;
	struct store_page *page;
	struct arena *memory;
	size_t cap;
};

static void walk_take(struct walk *w, str key, const struct index_version *v)
{
	struct store_page *page = w->page;

	page->count++;
	if (w->q->count_only)
		return;
	if (w->q->limit && page->n == w->q->limit) {
		page->more = true;
		return;
	}
	if (page->n == w->cap) {
		struct store_kv *old = page->kvs;
		w->cap = MAX(w->cap * 2, (size_t)16);
		page->kvs = ARENA_ARRAY(w->memory, struct store_kv, w->cap);
		if (page->n)
			memcpy(page->kvs, old, page->n * sizeof *old);
	}
	page->kvs[page->n++] = (struct store_kv){
		.key = arena_str(w->memory, key), .create_revision = v->created, .mod_revision = v->revision,
		.version = v->version,
	};
}

static int walk_range(struct walk *w, struct err *err)
{
	CLEANUP(omap_freep) struct omap *keys = omap_snapshot(w->store->index.keys);
	struct omap_iter it;
	const struct index_key *k;
	size_t seen = 0;
	str key;

	omap_seek(&it, keys, w->q->from);
	while ((k = omap_next(&it, &key)) && store_range_has(w->q->from, w->q->to, key)) {
		const struct index_version *v = index_at(k, w->page->revision);
		if (v && v->version)
			walk_take(w, key, v);
		int r = ++seen % WALK_TURN == 0 ? fiber_yield(err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int walk_values(struct walk *w, struct err *err)
{
	size_t n = w->page->n;
	if (!n)
		return 0;
	struct row *rows = ARENA_ARRAY(w->memory, struct row, n), **list = ARENA_ARRAY(w->memory, struct row *, n);
	for (size_t i = 0; i < n; i++) {
		rows[i] = (struct row){ .revision = w->page->kvs[i].mod_revision };
		list[i] = &rows[i];
	}
	int r = fill_values(w->store, list, n, err);
	for (size_t i = 0; i < n; i++)
		w->page->kvs[i].value = rows[i].value;
	return r;
}

int sqlite_range(struct store *store, const struct store_range *q, struct store_page *ret, struct err *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct sqlite_pin pin;
	int r = fiber_check(err);

	if (r < 0)
		return r;
	if (q->revision > s->committed)
		return err_set(err, ERR_BAD_REQUEST, "revision %lld is in the future; the newest is %lld",
			       (long long)q->revision, (long long)s->committed);
	if (q->revision && q->revision < s->compact_revision)
		return err_set(err, ERR_EXPIRED, "revision %lld has been compacted; the oldest that can be read is %lld",
			       (long long)q->revision, (long long)s->compact_revision);
	ret->revision = q->revision ? q->revision : s->committed;
	ret->memory = store_memory_new();
	struct walk w = { .store = s, .q = q, .page = ret, .memory = ret->memory };
	sqlite_pin(s, &pin, ret->revision);
	r = walk_range(&w, err);
	if (r == 0 && !q->keys_only)
		r = walk_values(&w, err);
	sqlite_unpin(&pin);
	if (r < 0)
		store_page_done(ret);
	return r;
}
