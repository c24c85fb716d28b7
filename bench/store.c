/*
 * Durable writes per second of the embedded store, with 1, 64 and 256 writers in flight, beside plain SQLite committing
 * the same rows one by one in the same folder: the gain is what grouping writes into one fsync brings on this disk.
 * Argument: the folder; default $TMPDIR or /tmp.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/loop.h"
#include "store/store.h"

enum { VALUE_BYTES = 1024, SECONDS = 2, KEYS = 10000, WRITERS_MAX = 256 };

static void must(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "bench store: %s failed\n", what);
		exit(1);
	}
}

static void remove_files(const char *path)
{
	static const char *const tails[] = { "", "-wal", "-shm" };
	char file[512];

	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		(void)snprintf(file, sizeof file, "%s%s", path, tails[i]);
		(void)unlink(file);
	}
}

/* ---- the peer ---- */

static double plain_sqlite(const char *path)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *insert = NULL;
	static char value[VALUE_BYTES];
	int64_t n = 0, start;

	must(sqlite3_open(path, &db) == SQLITE_OK, "sqlite3_open");
	must(sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
			      "CREATE TABLE t(id INTEGER PRIMARY KEY, key BLOB, value BLOB)", NULL, NULL, NULL) == SQLITE_OK, "schema");
	must(sqlite3_prepare_v2(db, "INSERT INTO t(key, value) VALUES(?, ?)", -1, &insert, NULL) == SQLITE_OK, "prepare");
	for (start = clock_now_ns(); clock_now_ns() - start < SECONDS * NS_PER_S; n++) {
		char key[64];
		int len = snprintf(key, sizeof key, "/registry/pods/default/pod-%d", (int)(n % KEYS));
		sqlite3_bind_blob(insert, 1, key, len, SQLITE_STATIC);
		sqlite3_bind_blob(insert, 2, value, sizeof value, SQLITE_STATIC);
		must(sqlite3_step(insert) == SQLITE_DONE, "insert");
		sqlite3_reset(insert);
	}
	double rate = (double)n * (double)NS_PER_S / (double)(clock_now_ns() - start);
	sqlite3_finalize(insert);
	sqlite3_close(db);
	remove_files(path);
	return rate;
}

/* ---- the store ---- */

struct bench {
	const char *path;
	struct store *store;
	struct store_value *value;
	int writers;
	int64_t until_ns, n, slowest_ns;
	double rate, per_commit;
};

static int writer(void *arg)
{
	struct bench *b = arg;
	struct err err = ERR_INIT;

	while (clock_now_ns() < b->until_ns) {
		char key[64];
		int len = snprintf(key, sizeof key, "/registry/pods/default/pod-%d", (int)(b->n++ % KEYS));
		int64_t start = clock_now_ns();
		must(store_put(b->store, str_span(key, (size_t)len), b->value, STORE_ANY, 0, NULL, NULL, &err) == 1, err.msg);
		b->slowest_ns = MAX(b->slowest_ns, clock_now_ns() - start);
	}
	return 0;
}

static int run_store(void *arg)
{
	struct bench *b = arg;
	struct store_options o = { .path = b->path };
	struct store_stats stats;
	struct err err = ERR_INIT;

	must(store_open(&o, &b->store, &err) == 0, err.msg);
	b->value = store_value_room(VALUE_BYTES);
	memset(b->value->bytes, 'x', VALUE_BYTES);
	int64_t start = clock_now_ns();
	b->until_ns = start + SECONDS * NS_PER_S;
	{
		CLEANUP(fiber_group_done) struct fiber_group g;
		fiber_group_init(&g);
		for (int i = 0; i < b->writers; i++)
			must(fiber_group_spawn(&g, writer, b, &err, "writer %d", i) == 0, err.msg);
		must(fiber_group_wait(&g, &err) == 0, err.msg);
	}
	store_stats(b->store, &stats);
	b->rate = (double)stats.writes * (double)NS_PER_S / (double)(clock_now_ns() - start);
	b->per_commit = (double)stats.writes / (double)stats.commits;
	store_value_unref(b->value);
	store_free(b->store);
	remove_files(b->path);
	return 0;
}

int main(int argc, char **argv)
{
	static const int writers[] = { 1, 64, WRITERS_MAX };
	const char *folder = argc > 1 ? argv[1] : getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	char path[256];
	struct loop *loop = NULL;
	struct err err = ERR_INIT;

	(void)snprintf(path, sizeof path, "%s/c8s-bench-store-%d.db", folder, (int)getpid());
	double plain = plain_sqlite(path);
	printf("%-28s %9.0f writes/s\n", "plain SQLite, one by one", plain);
	must(loop_new("bench", &loop, &err) == 0, err.msg);
	for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
		struct bench b = { .path = path, .writers = writers[i] };
		must(loop_run(loop, run_store, &b, &err) == 0, err.msg);
		printf("store, %3d in flight %7s %9.0f writes/s  %6.2f times plain  %6.1f per fsync  slowest %.1f ms\n", writers[i], "",
		       b.rate, b.rate / plain, b.per_commit, (double)b.slowest_ns / (double)NS_PER_MS);
	}
	loop_free(loop);
	return 0;
}
