/* The suite over the sqlite engine, and what is its own: one value in memory, locks, files that are not ours. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fiber_test.h"
#include "store/sqlite_fixture.h"

#define CASE(name) \
	TEST(sqlite_##name) { suite_run(&sqlite_fixture, suite_##name); }
SUITE_CASES(CASE)

/* ---- one value for writer and watcher ---- */

static void check_same_value(struct suite *t)
{
	struct store_watch *w = suite_watch(t, suite_revision(t) + 1);
	struct store_value *v = store_value_new(STR("x"));
	struct store_batch batch;

	CHECK_INT(store_put(t->store, suite_key(t, "a"), v, STORE_ABSENT, 0, NULL, NULL, NULL), 1);
	CHECK_INT(store_watch_next(w, &batch, NULL), 0);
	CHECK(batch.n == 1 && batch.events[0].kv.value == v);
	store_batch_done(&batch);
	store_value_unref(v);
	store_watch_free(w);
}

TEST(sqlite_watch_gives_the_value_written) { suite_run(&sqlite_fixture, check_same_value); }

/* ---- the last deletion ---- */

static void check_last_deletion(struct suite *t)
{
	(void)suite_put(t, suite_key(t, "a"), "1");
	int64_t gone = suite_remove(t, suite_key(t, "a"));

	for (int i = 0; i < 2; i++) {
		CHECK_INT(store_compact(t->store, gone, NULL), 0);
		suite_reopen(t);
		struct store_watch *w = suite_watch(t, gone);
		CHECK_STR(str_of(suite_events(t, w, 1)), "-a");
		store_watch_free(w);
		CHECK_INT(suite_revision(t), gone);
	}
}

TEST(sqlite_compaction_keeps_the_last_deletion) { suite_run(&sqlite_fixture, check_last_deletion); }

/* ---- a watch that is far behind ---- */

enum { FAR = 9000, FAR_WRITERS = 50 };

static int write_many(void *arg)
{
	struct suite *t = arg;
	for (int i = 0; i < FAR / FAR_WRITERS; i++)
		if (store_put(t->store, t->prefix, store_value_ref(t->state), STORE_ANY, 0, NULL, NULL, NULL) != 1)
			return 1;
	return 0;
}

static void check_far_behind(struct suite *t)
{
	CLEANUP(fiber_group_done) struct fiber_group g;
	int64_t first = suite_revision(t) + 1, next = first;
	struct store_watch *w = suite_watch(t, first);
	struct store_value *v = store_value_new(STR("x"));
	struct suite writer = *t;

	writer.state = v;
	fiber_group_init(&g);
	for (int i = 0; i < FAR_WRITERS; i++)
		CHECK_INT(fiber_group_spawn(&g, write_many, &writer, NULL, "writer"), 0);
	CHECK_INT(fiber_group_wait(&g, NULL), 0);
	while (next < first + FAR) {
		struct store_batch batch;
		CHECK_INT(store_watch_next(w, &batch, NULL), 0);
		for (size_t i = 0; i < batch.n; i++)
			CHECK_INT(batch.events[i].kv.mod_revision, next++);
		store_batch_done(&batch);
	}
	store_watch_free(w);
	/* One reference was taken for each write, to see that the store takes its own and gives it back. */
	suite_reopen(t);
	CHECK_INT(v->refs, 1 + FAR);
	v->refs = 1;
	store_value_unref(v);
}

TEST(sqlite_watch_far_behind_reads_the_file) { suite_run(&sqlite_fixture, check_far_behind); }

/* ---- giving up ---- */

static int put_once(void *arg)
{
	struct suite *t = arg;
	struct store_value *v = store_value_new(STR("x"));
	int r = store_put(t->store, t->prefix, v, STORE_ABSENT, 0, NULL, NULL, NULL);
	store_value_unref(v);
	return r;
}

static void check_canceled(struct suite *t)
{
	struct fiber *f = start(put_once, t);

	CHECK_INT(fiber_yield(NULL), 0);
	CHECK_INT(fiber_stop(f), -ERR_CANCELED);
	/* It was on its way; the next write is behind it. */
	(void)suite_put(t, suite_key(t, "b"), "x");
	CHECK_STR(str_of(suite_get(t, t->prefix)), "x");
	f = start(put_once, t);
	fiber_cancel(f);
	CHECK_INT(join(f), -ERR_CANCELED);
}

TEST(sqlite_canceled_write_may_take_effect) { suite_run(&sqlite_fixture, check_canceled); }

/* ---- space ---- */

enum { SPACE_KEYS = 25, SPACE_BYTES = 20000 };

struct overwriter {
	struct suite *t;
	str key;
	int times;
};

static int overwrite_one(void *arg)
{
	struct overwriter *o = arg;
	struct store_value *v = store_value_room(SPACE_BYTES);

	memset(v->bytes, 'x', v->n);
	for (int i = 0; i < o->times; i++)
		CHECK_INT(store_put(o->t->store, o->key, v, STORE_ANY, 0, NULL, NULL, NULL), 1);
	store_value_unref(v);
	return 0;
}

/* Writes each key so many times, and compacts all but the last. */
static void overwrite(struct suite *t, int times)
{
	struct overwriter os[SPACE_KEYS];
	CLEANUP(fiber_group_done) struct fiber_group g;

	fiber_group_init(&g);
	for (int i = 0; i < SPACE_KEYS; i++) {
		os[i] = (struct overwriter){ t, suite_key(t, "%d", i), times };
		CHECK_INT(fiber_group_spawn(&g, overwrite_one, &os[i], NULL, "overwriter"), 0);
	}
	CHECK_INT(fiber_group_wait(&g, NULL), 0);
	CHECK_INT(store_compact(t->store, suite_revision(t), NULL), 0);
}

/* Many rounds may take little more room than one, and in the end most of it is given back. */
static void check_bounded(struct suite *t)
{
	enum { ROUNDS = 6, ROUND = 20, ROUND_BYTES = ROUND * SPACE_KEYS * SPACE_BYTES };
	struct store_stats stats;

	for (int i = 0; i < ROUNDS; i++) {
		overwrite(t, ROUND);
		store_stats(t->store, &stats);
		CHECK_ROW(i, stats.size_bytes < ROUND_BYTES * 5 / 2);
	}
	do {
		CHECK_INT(fiber_sleep_ms(5, NULL), 0);
		store_stats(t->store, &stats);
	} while (stats.size_bytes > ROUND_BYTES * 6 / 10);
	CHECK_INT(stats.keys, SPACE_KEYS);
	suite_reopen(t);
	store_stats(t->store, &stats);
	CHECK_INT(stats.keys, SPACE_KEYS);
}

TEST(sqlite_compaction_bounds_the_file) { suite_run(&sqlite_fixture, check_bounded); }

/* ---- time ---- */

static void check_virtual_ttl(struct suite *t)
{
	SHIELD_SCOPE(); /* an hour is more than the suite's patience */
	struct store_value *v = store_value_new(STR("x"));

	CHECK_INT(store_put(t->store, suite_key(t, "event"), v, STORE_ABSENT, 3600, NULL, NULL, NULL), 1);
	store_value_unref(v);
	CHECK_INT(fiber_sleep_ms(3590 * 1000, NULL), 0);
	CHECK(suite_get(t, suite_key(t, "event")));
	CHECK_INT(fiber_sleep_ms(20 * 1000, NULL), 0);
	CHECK(!suite_get(t, suite_key(t, "event")));
}

TEST(sqlite_ttl_follows_a_virtual_clock)
{
	clock_virtual_set(0, 1700000000 * NS_PER_S);
	suite_run(&sqlite_fixture, check_virtual_ttl);
	clock_virtual_off();
}

/* ---- who may open what ---- */

static int open_again(struct suite *t, bool read_only, struct store **ret, struct err *err)
{
	struct store_options o = { .path = sqlite_fixture_path(t), .read_only = read_only };
	return store_open(&o, ret, err);
}

static void check_one_writer(struct suite *t)
{
	struct store *other = NULL;
	struct err err = ERR_INIT;
	struct store_kv kv;

	(void)suite_put(t, suite_key(t, "a"), "1");
	CHECK_INT(open_again(t, false, &other, &err), -ERR_UNAVAILABLE);
	CHECK(str_find(err_str(&err), STR("in use by another process")) > 0);
	CHECK_INT(open_again(t, true, &other, &err), 0);
	CHECK_INT(store_get(other, suite_key(t, "a"), &kv, NULL, &err), 1);
	store_value_unref(kv.value);
	CHECK_INT(store_delete(other, suite_key(t, "a"), STORE_ANY, NULL, NULL, &err), -ERR_UNAVAILABLE);
	CHECK_INT(store_compact(other, 1, &err), -ERR_UNAVAILABLE);
	store_free(other);
	CHECK(suite_get(t, suite_key(t, "a")));
}

TEST(sqlite_one_writer_and_readers) { suite_run(&sqlite_fixture, check_one_writer); }

static void run_sql(const char *path, const char *sql)
{
	sqlite3 *c = NULL;
	CHECK_INT(sqlite3_open(path, &c), SQLITE_OK);
	CHECK_INT(sqlite3_exec(c, sql, NULL, NULL, NULL), SQLITE_OK);
	CHECK_INT(sqlite3_close(c), SQLITE_OK);
}

static void write_text(const char *path, const char *text, off_t at)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && pwrite(fd, text, strlen(text), at) == (ssize_t)strlen(text));
	close(fd);
}

static void check_foreign(struct suite *t)
{
	static const struct { const char *sql, *says; } rows[] = {
		{ "PRAGMA user_version = 99", "newer c8s" },
		{ "PRAGMA application_id = 1", "not a store of c8s" },
		{ "PRAGMA application_id = 0", "not a store of c8s" },
	};
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		store_free(TAKE(t->store));
		run_sql(sqlite_fixture_path(t), rows[i].sql);
		CHECK_INT(open_again(t, false, &t->store, &err), -ERR_UNAVAILABLE);
		CHECK_ROW(i, str_find(err_str(&err), str_of(rows[i].says)) > 0);
	}
	write_text(sqlite_fixture_path(t), "no database at all", 0);
	CHECK_INT(open_again(t, false, &t->store, &err), -ERR_UNAVAILABLE);
	CHECK(str_find(err_str(&err), STR("not a store of c8s")) > 0);
	struct store_options nowhere = { .path = "/nonexistent/folder/store.db" };
	CHECK_INT(store_open(&nowhere, &t->store, &err), -ERR_UNAVAILABLE);
	CHECK(str_find(err_str(&err), STR("folder")) > 0);
}

TEST(sqlite_refuses_other_files) { suite_run(&sqlite_fixture, check_foreign); }

static void check_damaged(struct suite *t)
{
	struct err err = ERR_INIT;
	struct stat st;

	for (int i = 0; i < 200; i++)
		(void)suite_put(t, suite_key(t, "key %d", i), "a value");
	store_free(TAKE(t->store));
	CHECK_INT(stat(sqlite_fixture_path(t), &st), 0);
	log_set_level(LOG_LEVEL_OFF);
	/* Wherever it is hurt: either it is not opened, or it is not written to. */
	for (off_t at = st.st_size - 4096; at > 4096; at -= 4096) {
		write_text(sqlite_fixture_path(t), "\x05garbage garbage garbage", at);
		if (open_again(t, false, &t->store, &err) < 0) {
			CHECK(err.code == ERR_UNAVAILABLE);
			continue;
		}
		CHECK_INT(store_delete(t->store, suite_key(t, "key 1"), STORE_ANY, NULL, NULL, &err), -ERR_UNAVAILABLE);
		store_free(TAKE(t->store));
	}
	log_set_level(LOG_LEVEL_INFO);
}

TEST(sqlite_damaged_file_is_not_written) { suite_run(&sqlite_fixture, check_damaged); }
