/* The sqlite engine: opening and closing. How it works is told in sqlite_priv.h. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/sqlite_priv.h"

/*
 * SQLite's own quick check reads the whole file, so it is left out for large ones: loading the index walks every page of
 * the table anyway and notices broken ones; 'c8s store check' reads everything.
 */
enum { QUICK_CHECK_BYTES = 64 << 20 };

static const struct store_engine sqlite_engine;

/* ---- loading ---- */

struct opening {
	struct sqlite_store *store;
	bool read_only;            /* asked for */
	bool damaged;
	char problem[256];
};

static int load_row(void *arg, const struct row *row, struct err *err)
{
	struct sqlite_store *s = arg;

	if (row->revision <= 1 || !row->key.n || row->version < 0 || row->created > row->revision)
		return err_set(err, ERR_UNAVAILABLE, "%s is damaged: the row of revision %lld makes no sense; bring back a"
			       " snapshot with 'c8s store restore'", s->path, (long long)row->revision);
	(void)index_push(&s->index, row->key, row_version(row));
	return 0;
}

static int load(struct opening *o, struct db *db, struct err *err)
{
	struct sqlite_store *s = o->store;
	struct db_state state;
	int r = db_state(db, &state, err);

	if (r == 0 && state.size_bytes <= QUICK_CHECK_BYTES)
		r = db_check(db, false, o->problem, sizeof o->problem, err);
	if (r < 0)
		return r;
	o->damaged = r > 0;
	s->committed = s->decided = state.revision;
	s->compact_revision = s->compact_wanted = state.compact_revision;
	s->cleaned_revision = state.cleaned_revision;
	s->size_bytes = state.size_bytes;
	s->free_bytes = state.free_bytes;
	return db_each(db, load_row, s, err);
}

/* On the thread pool. */
static int open_run(void *arg, struct err *err)
{
	struct opening *o = arg;
	struct sqlite_store *s = o->store;
	enum db_mode mode = o->read_only ? DB_INSPECT : DB_READER;
	int r = 0;

	if (!o->read_only) {
		r = s->lock_fd = db_lock(s->path, err);
		if (r >= 0)
			r = db_open(s->path, DB_WRITER, &s->writer, err);
	}
	for (size_t i = 0; r >= 0 && i < SQLITE_READERS; i++)
		r = db_open(s->path, mode, &s->readers[i], err);
	if (r >= 0 && !o->read_only)
		r = db_open(s->path, DB_READER, &s->keeper, err);
	return r < 0 ? r : load(o, s->readers[0], err);
}

/* ---- life ---- */

static int close_run(void *arg, struct err *err)
{
	struct sqlite_store *s = arg;
	(void)err;
	for (size_t i = 0; i < SQLITE_READERS; i++)
		db_close(s->readers[i]);
	db_close(s->keeper);
	db_close(s->writer);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	return 0;
}

static void sqlite_free(struct store *store)
{
	struct sqlite_store *s = sqlite_of(store);
	SHIELD_SCOPE();

	s->closing = true;
	fiber_cond_signal(&s->work);
	fiber_cond_signal(&s->keep);
	if (s->writing)
		(void)fiber_stop(s->writing);
	if (s->keeping)
		(void)fiber_stop(s->keeping);
	sqlite_expiry_done(s);
	sqlite_recent_done(s);
	index_done(&s->index);
	(void)fiber_blocking(close_run, s, NULL);
	worker_stop(s->thread);
	free(s->rows);
	free(s->path);
	free(s);
}

static struct sqlite_store *sqlite_new(const char *path)
{
	struct sqlite_store *s = mem_zalloc(sizeof *s);

	s->store.engine = &sqlite_engine;
	s->path = strdup(path);
	s->lock_fd = -1;
	s->rows = mem_array(SQLITE_GROUP_MAX, sizeof *s->rows);
	s->keep_at_pages = SQLITE_LOG_PAGES;
	index_init(&s->index);
	list_init(&s->pins);
	list_init(&s->queue);
	list_init(&s->group);
	list_init(&s->watches);
	list_init(&s->expiries);
	fiber_cond_init(&s->reader_free, "a connection to read with");
	fiber_cond_init(&s->work, "writes to the store");
	fiber_cond_init(&s->advanced, "another write to the same key");
	fiber_cond_init(&s->compact_tried, "a compaction");
	fiber_cond_init(&s->keep, "a log that is worth copying");
	return s;
}

static void follow_expiries(struct sqlite_store *s)
{
	struct omap_iter it;
	struct index_key *k;
	str key;

	omap_seek(&it, s->index.keys, STR_NONE);
	while ((k = omap_next(&it, &key)))
		if (k->newest.expires_ns)
			sqlite_expiry_follow(s, key, k);
}

int store_open_sqlite(const struct store_options *options, struct store **ret, struct err *err)
{
	struct sqlite_store *s = sqlite_new(options->path);
	struct opening o = { .store = s, .read_only = options->read_only };
	int r = fiber_blocking(open_run, &o, err);

	s->damaged = o.damaged;
	s->read_only = o.read_only || o.damaged;
	if (r >= 0 && o.damaged)
		log_error("the store's file is damaged and is served for reading only; stop the server and bring back a snapshot"
			  " with 'c8s store restore'", KV("file", s->path), KV("problem", (const char *)o.problem));
	if (r >= 0 && !s->read_only)
		r = worker_start("store", &s->thread, err);
	if (r >= 0 && !s->read_only)
		r = fiber_spawn(sqlite_writing, s, &s->writing, err, "store writer");
	if (r >= 0 && !s->read_only)
		r = fiber_spawn(sqlite_keeping, s, &s->keeping, err, "store keeper");
	if (r < 0) {
		sqlite_free(&s->store);
		return r;
	}
	if (!s->read_only)
		follow_expiries(s);
	*ret = &s->store;
	return 0;
}

static void sqlite_stats(struct store *store, struct store_stats *ret)
{
	const struct sqlite_store *s = sqlite_of(store);
	struct stat st;

	ret->revision = s->committed;
	ret->compact_revision = s->compact_revision;
	ret->keys = s->index.live;
	ret->size_bytes = stat(s->path, &st) == 0 ? st.st_size : s->size_bytes;
	ret->free_bytes = s->free_bytes;
	ret->read_only = s->read_only;
	ret->commits = s->commits;
	ret->writes = s->writes;
}

static const struct store_engine sqlite_engine = {
	.name = "sqlite",
	.free = sqlite_free,
	.range = sqlite_range,
	.get = sqlite_get,
	.revision = sqlite_revision,
	.write = sqlite_write,
	.compact = sqlite_compact,
	.watch_open = sqlite_watch_open,
	.watch_next = sqlite_watch_next,
	.watch_progress = sqlite_watch_progress,
	.watch_free = sqlite_watch_free,
	.stats = sqlite_stats,
};
