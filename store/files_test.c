#include "store/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fiber_test.h"
#include "store/sqlite_fixture.h"

static const char *beside(struct suite *t, const char *tail)
{
	return arena_printf(&t->arena, "%s%s", sqlite_fixture_path(t), tail).p;
}

static int keep_writing(void *arg)
{
	struct suite *t = arg;
	struct store_value *v = store_value_new(STR("x"));
	int r;

	while ((r = store_put(t->store, t->prefix, v, STORE_ANY, 0, NULL, NULL, NULL)) == 1)
		;
	store_value_unref(v);
	return r;
}

struct snapshot {
	struct suite *t;
	const char *to;
	struct store_report report;
};

static int take_snapshot(void *arg, struct err *err)
{
	struct snapshot *s = arg;
	return store_file_snapshot(sqlite_fixture_path(s->t), s->to, false, &s->report, err);
}

/* While the store is written to; what was acknowledged before is in it. */
static void check_snapshot(struct suite *t)
{
	struct snapshot s = { .t = t, .to = beside(t, ".snapshot") };
	struct err err = ERR_INIT;
	struct stat st;

	for (int i = 0; i < 50; i++)
		(void)suite_put(t, suite_key(t, "%d", i), "x");
	int64_t before = suite_revision(t);
	struct fiber *writer = start(keep_writing, t);
	CHECK_INT(fiber_blocking(take_snapshot, &s, &err), 0);
	(void)fiber_stop(writer);
	CHECK(s.report.sound && s.report.revision >= before && s.report.revision <= suite_revision(t));
	CHECK(s.report.keys >= 50 && s.report.keys <= 51);
	CHECK_INT(stat(s.to, &st), 0);
	CHECK_INT(st.st_mode & 0777, 0600);
	CHECK_INT(fiber_blocking(take_snapshot, &s, &err), -ERR_ALREADY_EXISTS);
	CHECK(access(beside(t, ".snapshot.partial"), F_OK) < 0);
	struct store_report report;
	CHECK_INT(store_file_check(sqlite_fixture_path(t), &report, &err), 0);
	CHECK(report.in_use && report.sound);
}

TEST(store_snapshot_of_a_living_store) { suite_run(&sqlite_fixture, check_snapshot); }

static void check_restore(struct suite *t)
{
	struct store_report report;
	struct err err = ERR_INIT;
	const char *path = sqlite_fixture_path(t), *snapshot = beside(t, ".snapshot");
	int64_t first = suite_put(t, suite_key(t, "a"), "before");

	CHECK_INT(store_file_snapshot(path, snapshot, false, &report, &err), 0);
	CHECK_INT(report.revision, first);
	int64_t later = suite_put(t, suite_key(t, "a"), "after");
	CHECK_INT(store_file_restore(snapshot, path, false, 0, &report, &err), -ERR_ALREADY_EXISTS);
	CHECK_INT(store_file_restore(snapshot, path, true, 0, &report, &err), -ERR_UNAVAILABLE);
	CHECK(str_find(err_str(&err), STR("in use")) > 0);
	store_free(TAKE(t->store));
	CHECK_INT(store_file_restore(snapshot, path, true, 1000, &report, &err), 0);
	CHECK_INT(report.revision, first + 1000);
	suite_reopen(t);
	CHECK_STR(str_of(suite_get(t, suite_key(t, "a"))), "before");
	/* Who saw the future that is gone has to list again. */
	struct store_watch *w = NULL;
	struct store_batch batch;
	CHECK_INT(store_watch_open(t->store, t->prefix, STR("\0"), later + 1, &w, &err), 0);
	CHECK_INT(store_watch_next(w, &batch, &err), -ERR_EXPIRED);
	store_watch_free(w);
	CHECK_INT(suite_put(t, suite_key(t, "a"), "again"), first + 1001);
	CHECK_INT(store_file_check(beside(t, ".old"), &report, &err), 0);
	CHECK(report.sound && report.revision == later);
}

TEST(store_restore) { suite_run(&sqlite_fixture, check_restore); }

static void check_damage(struct suite *t)
{
	struct store_report report;
	struct err err = ERR_INIT;
	const char *path = sqlite_fixture_path(t), *other = beside(t, ".other");

	for (int i = 0; i < 100; i++)
		(void)suite_put(t, suite_key(t, "%d", i), "some value that takes a little room");
	store_free(TAKE(t->store));
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, "\x05garbage garbage", 16, 5 * 4096) == 16);
	close(fd);
	CHECK_INT(store_file_check(path, &report, &err), 0);
	CHECK(!report.sound && report.problem[0]);
	CHECK(store_file_snapshot(path, other, false, &report, &err) < 0);
	CHECK_INT(store_file_restore(path, other, false, 0, &report, &err), -ERR_UNAVAILABLE);
	CHECK(str_find(err_str(&err), STR("is damaged")) > 0);
	CHECK(access(other, F_OK) < 0 && access(beside(t, ".other.partial"), F_OK) < 0);
	CHECK_INT(store_file_check(beside(t, ".nowhere"), &report, &err), -ERR_NOT_FOUND);
	CHECK_INT(store_file_snapshot(beside(t, ".nowhere"), other, false, &report, &err), -ERR_NOT_FOUND);
}

TEST(store_check_finds_damage) { suite_run(&sqlite_fixture, check_damage); }
