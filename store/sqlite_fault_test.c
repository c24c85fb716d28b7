/*
 * A disk that fails. A layer between SQLite and its files (a VFS) lets the n-th call of a kind fail, once or from then
 * on, or makes it slow. Each test goes through all n until nothing fails any more, and looks at the world after each.
 */
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fiber_test.h"
#include "store/sqlite_fixture.h"

/* ---- the layer ---- */

enum fault_kind { FAULT_NONE, FAULT_WRITE, FAULT_SYNC, FAULT_READ, FAULT_SLOW_SYNC };

static struct {
	_Atomic int kind, code, left; /* left: calls that still work */
	_Atomic bool forever, hit;
	_Atomic int slow_us, syncing;
} fault;

static void fault_arm(enum fault_kind kind, int code, int left, bool forever)
{
	fault.code = code;
	fault.left = left;
	fault.forever = forever;
	fault.hit = false;
	fault.kind = kind;
}

static bool fault_disarm(void)
{
	fault.kind = FAULT_NONE;
	return fault.hit;
}

/* What the call must return instead of working; 0 to let it work. */
static int fault_now(enum fault_kind kind)
{
	if ((int)kind != fault.kind)
		return 0;
	int left = atomic_fetch_sub(&fault.left, 1);
	if (left > 0 || (left < 0 && !fault.forever))
		return 0;
	fault.hit = true;
	return fault.code;
}

struct fault_file {
	sqlite3_file base;
	sqlite3_file *real; /* behind this struct */
};

static sqlite3_file *real_of(sqlite3_file *f) { return ((struct fault_file *)f)->real; }

static int fault_close(sqlite3_file *f) { return real_of(f)->pMethods->xClose(real_of(f)); }

static int fault_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	int rc = fault_now(FAULT_READ);
	return rc ? rc : real_of(f)->pMethods->xRead(real_of(f), p, n, at);
}

static int fault_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	int rc = fault_now(FAULT_WRITE);
	return rc ? rc : real_of(f)->pMethods->xWrite(real_of(f), p, n, at);
}

static int fault_sync(sqlite3_file *f, int flags)
{
	int rc = fault_now(FAULT_SYNC);
	if (fault.kind == FAULT_SLOW_SYNC) {
		fault.syncing++;
		usleep((useconds_t)fault.slow_us);
	}
	return rc ? rc : real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int fault_truncate(sqlite3_file *f, sqlite3_int64 n) { return real_of(f)->pMethods->xTruncate(real_of(f), n); }
static int fault_size(sqlite3_file *f, sqlite3_int64 *n) { return real_of(f)->pMethods->xFileSize(real_of(f), n); }
static int fault_lock(sqlite3_file *f, int l) { return real_of(f)->pMethods->xLock(real_of(f), l); }
static int fault_unlock(sqlite3_file *f, int l) { return real_of(f)->pMethods->xUnlock(real_of(f), l); }
static int fault_reserved(sqlite3_file *f, int *r) { return real_of(f)->pMethods->xCheckReservedLock(real_of(f), r); }
static int fault_control(sqlite3_file *f, int op, void *p) { return real_of(f)->pMethods->xFileControl(real_of(f), op, p); }
static int fault_sector(sqlite3_file *f) { return real_of(f)->pMethods->xSectorSize(real_of(f)); }
static int fault_traits(sqlite3_file *f) { return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f)); }
static void fault_barrier(sqlite3_file *f) { real_of(f)->pMethods->xShmBarrier(real_of(f)); }
static int fault_unmap(sqlite3_file *f, int remove) { return real_of(f)->pMethods->xShmUnmap(real_of(f), remove); }

static int fault_map(sqlite3_file *f, int page, int size, int extend, void volatile **p)
{
	return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, p);
}

static int fault_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
	return real_of(f)->pMethods->xShmLock(real_of(f), at, n, flags);
}

static const sqlite3_io_methods fault_methods = {
	.iVersion = 2, .xClose = fault_close, .xRead = fault_read, .xWrite = fault_write, .xTruncate = fault_truncate,
	.xSync = fault_sync, .xFileSize = fault_size, .xLock = fault_lock, .xUnlock = fault_unlock,
	.xCheckReservedLock = fault_reserved, .xFileControl = fault_control, .xSectorSize = fault_sector,
	.xDeviceCharacteristics = fault_traits, .xShmMap = fault_map, .xShmLock = fault_shm_lock, .xShmBarrier = fault_barrier,
	.xShmUnmap = fault_unmap,
};

static sqlite3_vfs fault_vfs, *real_vfs;

static int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	struct fault_file *file = (struct fault_file *)f;
	(void)vfs;
	file->real = (sqlite3_file *)(file + 1);
	int rc = real_vfs->xOpen(real_vfs, name, file->real, flags, ret_flags);
	file->base.pMethods = file->real->pMethods ? &fault_methods : NULL;
	return rc;
}

/* Runs a case on a store whose files go through the layer. */
static void run_faulty(void (*run)(struct suite *t))
{
	log_set_level(LOG_LEVEL_OFF);
	real_vfs = sqlite3_vfs_find("unix");
	fault_vfs = *real_vfs;
	fault_vfs.zName = "fault";
	fault_vfs.szOsFile = (int)sizeof(struct fault_file) + real_vfs->szOsFile;
	fault_vfs.xOpen = fault_open;
	fault_vfs.pNext = NULL;
	CHECK_INT(sqlite3_vfs_register(&fault_vfs, 1), SQLITE_OK);
	suite_run(&sqlite_fixture, run);
	CHECK_INT(sqlite3_vfs_unregister(&fault_vfs), SQLITE_OK);
	log_set_level(LOG_LEVEL_INFO);
}

/* ---- the world ---- */

enum { KEYS = 3 };

/* What each key must hold; maybe: what it may hold instead, after a crash. */
struct world {
	struct suite *t;
	str keys[KEYS];
	int64_t value[KEYS], maybe[KEYS];
	int64_t next;
};

static void world_init(struct world *w, struct suite *t)
{
	*w = (struct world){ .t = t };
	for (int i = 0; i < KEYS; i++)
		w->keys[i] = suite_key(t, "%d", i);
}

struct world_put {
	struct world *w;
	int i;
	int64_t value;
	struct err err;
};

static int world_put(void *arg)
{
	struct world_put *p = arg;
	char text[32];
	(void)snprintf(text, sizeof text, "%lld", (long long)p->value);
	struct store_value *v = store_value_new(str_of(text));
	int r = store_put(p->w->t->store, p->w->keys[p->i], v, STORE_ANY, 0, NULL, NULL, &p->err);
	store_value_unref(v);
	return r;
}

/* Writes all keys at once. True when all were acknowledged. */
static bool world_write(struct world *w)
{
	struct world_put puts[KEYS];
	struct fiber *fs[KEYS];
	bool all = true;

	for (int i = 0; i < KEYS; i++) {
		puts[i] = (struct world_put){ .w = w, .i = i, .value = ++w->next };
		fs[i] = start(world_put, &puts[i]);
	}
	for (int i = 0; i < KEYS; i++) {
		int r = join(fs[i]);
		if (r == 1) {
			w->value[i] = w->maybe[i] = puts[i].value;
			continue;
		}
		all = false;
		CHECK(r == -ERR_UNAVAILABLE || r == -ERR_TIMEOUT);
		CHECK(puts[i].err.code == (enum err_code)-r && puts[i].err.n > 10);
		if (r == -ERR_TIMEOUT)
			w->maybe[i] = puts[i].value;
	}
	return all;
}

static void world_check(struct world *w, bool after_crash)
{
	for (int i = 0; i < KEYS; i++) {
		const char *text = suite_get(w->t, w->keys[i]);
		int64_t n = 0;
		CHECK(!text || str_to_i64(str_of(text), &n));
		CHECK(n == w->value[i] || (after_crash && n == w->maybe[i]));
		w->value[i] = w->maybe[i] = n;
	}
}

/* ---- tests ---- */

static void fail_each(struct suite *t, enum fault_kind kind, int code, bool forever)
{
	struct world w;
	bool hit = true;
	int failed = 0;

	world_init(&w, t);
	CHECK(world_write(&w));
	for (int n = 0; hit && n < 200; n++) {
		int64_t before = suite_revision(t);
		fault_arm(kind, code, n, forever);
		bool all = world_write(&w);
		hit = fault_disarm();
		CHECK(hit || all);
		failed += !all;
		CHECK(suite_revision(t) == before + (all ? KEYS : 0) || !forever);
		world_check(&w, false);
		/* It goes on by itself. */
		CHECK(world_write(&w));
		world_check(&w, false);
	}
	CHECK(!hit && failed > 0);
	suite_reopen(t);
	world_check(&w, true);
}

static void check_full(struct suite *t)
{
	fail_each(t, FAULT_WRITE, SQLITE_FULL, false);
	fail_each(t, FAULT_WRITE, SQLITE_FULL, true);
}

static void check_write_error(struct suite *t)
{
	fail_each(t, FAULT_WRITE, SQLITE_IOERR_WRITE, false);
	fail_each(t, FAULT_WRITE, SQLITE_IOERR_WRITE, true);
}

static void check_sync_error(struct suite *t)
{
	fail_each(t, FAULT_SYNC, SQLITE_IOERR_FSYNC, false);
	fail_each(t, FAULT_SYNC, SQLITE_IOERR_FSYNC, true);
}

TEST(sqlite_fault_disk_full) { run_faulty(check_full); }
TEST(sqlite_fault_write) { run_faulty(check_write_error); }
TEST(sqlite_fault_sync) { run_faulty(check_sync_error); }

static void check_open_errors(struct suite *t)
{
	static const struct { enum fault_kind kind; int code; } rows[] = {
		{ FAULT_READ, SQLITE_IOERR_READ }, { FAULT_WRITE, SQLITE_FULL }, { FAULT_SYNC, SQLITE_IOERR_FSYNC },
	};
	struct world w;

	world_init(&w, t);
	CHECK(world_write(&w));
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		bool hit = true;
		for (int n = 0; hit && n < 200; n++) {
			struct store_options o = { .path = sqlite_fixture_path(t) };
			struct err err = ERR_INIT;
			store_free(TAKE(t->store));
			fault_arm(rows[i / 2].kind, rows[i / 2].code, n, i % 2);
			int r = store_open(&o, &t->store, &err);
			hit = fault_disarm();
			CHECK_ROW(i, r == 0 || (hit && r == -ERR_UNAVAILABLE));
			if (r < 0)
				CHECK_INT(store_open(&o, &t->store, &err), 0);
			world_check(&w, false);
		}
		CHECK_ROW(i, !hit);
		CHECK(world_write(&w));
	}
}

TEST(sqlite_fault_open) { run_faulty(check_open_errors); }

static void check_read_errors(struct suite *t)
{
	enum { LARGE = 6 << 20 }; /* more than a connection keeps in memory */
	static const int steps[] = { 0, 1, 2, 10, 100, 1000 };
	struct store_value *v = store_value_room(LARGE);
	struct err err = ERR_INIT;
	struct store_kv kv;

	memset(v->bytes, 'x', LARGE);
	CHECK_INT(store_put(t->store, suite_key(t, "large"), v, STORE_ABSENT, 0, NULL, NULL, &err), 1);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		suite_reopen(t); /* nothing is in memory */
		fault_arm(FAULT_READ, SQLITE_IOERR_READ, steps[i], false);
		CHECK_ROW(i, store_get(t->store, suite_key(t, "large"), &kv, NULL, &err) == -ERR_UNAVAILABLE);
		CHECK(fault_disarm() && err.n);
		CHECK_ROW(i, store_get(t->store, suite_key(t, "large"), &kv, NULL, &err) == 1);
		CHECK_ROW(i, str_eq(store_value_str(kv.value), store_value_str(v)));
		store_value_unref(kv.value);
	}
	store_value_unref(v);
}

TEST(sqlite_fault_read) { run_faulty(check_read_errors); }

static void check_compact_errors(struct suite *t)
{
	struct world w;
	bool hit = true;

	world_init(&w, t);
	for (int n = 0; hit && n < 100; n++) {
		for (int i = 0; i < 3; i++)
			CHECK(world_write(&w));
		int64_t newest = suite_revision(t);
		struct err err = ERR_INIT;
		fault_arm(FAULT_WRITE, SQLITE_FULL, n, true);
		int r = store_compact(t->store, newest, &err);
		hit = fault_disarm();
		CHECK(r == 0 || (hit && r == -ERR_UNAVAILABLE));
		CHECK_INT(store_compact(t->store, newest, &err), 0);
		world_check(&w, false);
	}
	suite_reopen(t);
	world_check(&w, false);
}

TEST(sqlite_fault_compact) { run_faulty(check_compact_errors); }

static void check_slow_sync(struct suite *t)
{
	struct world w;
	int64_t start_ns;

	world_init(&w, t);
	CHECK(world_write(&w));
	fault.slow_us = 300 * 1000;
	fault.syncing = 0;
	fault_arm(FAULT_SLOW_SYNC, 0, 0, true);
	start_ns = clock_now_ns();
	{
		struct world_put put = { .w = &w, .i = 0, .value = ++w.next };
		DEADLINE_SCOPE(50);
		CHECK_INT(world_put(&put), -ERR_TIMEOUT);
		w.maybe[0] = put.value;
	}
	/* A read does not wait behind it, and does not see it. */
	CHECK(fault.syncing > 0);
	world_check(&(struct world){ .t = t, .keys = { w.keys[0], w.keys[1], w.keys[2] },
				     .value = { w.value[0], w.value[1], w.value[2] } }, false);
	CHECK(clock_now_ns() - start_ns < 250 * NS_PER_MS);
	(void)fault_disarm();
	/* The next write is behind the one that was given up. */
	CHECK_INT(store_delete(t->store, w.keys[1], STORE_ANY, NULL, NULL, NULL), 1);
	w.value[0] = w.maybe[0];
	w.value[1] = 0;
	world_check(&w, false);
}

TEST(sqlite_slow_disk) { run_faulty(check_slow_sync); }
