/*
 * kill -9 at any moment. The test starts itself as a child that writes with many fibers and reports each acknowledged
 * write on a pipe; kills it; opens what it left behind, and finds every write that was reported.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fiber_test.h"
#include "store/files.h"
#include "store/sqlite_fixture.h"

enum { ROUNDS = 12, WRITERS = 20, KEYS_EACH = 4 };

static const char child_env[] = "C8S_STORE_TEST_CHILD";

/* Written at once, so a report is never cut in two. */
struct ack {
	int32_t writer, key;
	int64_t revision, value;
};

/* ---- the child ---- */

struct writer {
	struct store *store;
	int n;
};

static int child_writer(void *arg)
{
	struct writer *w = arg;

	for (int64_t i = 1;; i++) {
		struct ack ack = { .writer = w->n, .key = (int32_t)(i % KEYS_EACH), .value = i };
		char key[32];
		struct store_value *v = store_value_room(sizeof i + (size_t)(i % 50) * 100);
		memset(v->bytes, 0, v->n);
		memcpy(v->bytes, &i, sizeof i);
		int len = snprintf(key, sizeof key, "/%d/%d", w->n, ack.key);
		if (store_put(w->store, str_span(key, (size_t)len), v, STORE_ANY, 0, &ack.revision, NULL, NULL) != 1)
			_exit(3);
		store_value_unref(v);
		if (write(STDOUT_FILENO, &ack, sizeof ack) != sizeof ack)
			_exit(0);
		if (i % 100 == 0)
			(void)store_compact(w->store, ack.revision, NULL);
	}
}

static int child_main(void *path)
{
	struct store_options o = { .path = path };
	struct writer ws[WRITERS];
	struct store *s = NULL;

	if (store_open(&o, &s, NULL) < 0)
		_exit(2);
	for (int i = 0; i < WRITERS; i++) {
		ws[i] = (struct writer){ s, i };
		(void)fiber_spawn(child_writer, &ws[i], NULL, NULL, "writer %d", i);
	}
	return fiber_sleep_ms(60 * 1000, NULL);
}

/* Before main: this program is also the child. */
static __attribute__((constructor)) void maybe_child(void)
{
	char *path = getenv(child_env);
	struct loop *loop = NULL;

	if (!path)
		return;
	if (loop_new("child", &loop, NULL) == 0)
		(void)loop_run(loop, child_main, path, NULL);
	_exit(1);
}

/* ---- the parent ---- */

struct seen {
	struct ack newest[WRITERS][KEYS_EACH];
	int64_t revision, n;
};

/* Takes reports until so many have come, kills the child, and takes what it still said. */
static void run_child(const char *path, int64_t acks, struct seen *seen)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	const char *env[] = { arena_printf(&arena, "%s=%s", child_env, path).p, NULL };
	const char *argv[] = { "/proc/self/exe", NULL };
	struct err err = ERR_INIT;
	struct process *child = NULL;
	struct process_status status;
	struct ack ack;
	int fds[2];
	int64_t n = 0;

	CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
	struct process_spec spec = { .argv = argv, .env = env, .fds = { -1, fds[1], STDERR_FILENO }, .n_fds = 3 };
	if (process_spawn(&spec, &child, &err) < 0)
		fail_msg("%s", err.msg);
	close(fds[1]);
	while (read(fds[0], &ack, sizeof ack) == sizeof ack) {
		CHECK(ack.revision > seen->newest[ack.writer][ack.key].revision);
		seen->newest[ack.writer][ack.key] = ack;
		seen->revision = MAX(seen->revision, ack.revision);
		if (++n == acks)
			CHECK_INT(process_kill(child, SIGKILL, &err), 0);
	}
	close(fds[0]);
	CHECK_INT(process_wait(child, &status, &err), 0);
	CHECK_INT(status.signal, SIGKILL);
	process_free(child);
	seen->n += n;
}

static void check_key(struct store *s, const struct ack *ack)
{
	char key[32];
	struct err err = ERR_INIT;
	struct store_kv kv;
	int64_t value;
	int len = snprintf(key, sizeof key, "/%d/%d", ack->writer, ack->key);

	if (!ack->revision)
		return;
	CHECK_INT(store_get(s, str_span(key, (size_t)len), &kv, NULL, &err), 1);
	memcpy(&value, kv.value->bytes, sizeof value);
	/* At least as new as what was reported: the write after it may have been on disk too. */
	CHECK(kv.mod_revision >= ack->revision);
	CHECK(kv.mod_revision != ack->revision || value == ack->value);
	store_value_unref(kv.value);
}

static void check_crashes(struct suite *t)
{
	struct seen *seen = mem_zalloc(sizeof *seen);
	struct store_report report;
	struct err err = ERR_INIT;

	for (int round = 0; round < ROUNDS; round++) {
		store_free(TAKE(t->store));
		run_child(sqlite_fixture_path(t), 1 + (int64_t)random_below(400), seen);
		/* It reads the same before and after SQLite has recovered. */
		CHECK_INT(store_file_check(sqlite_fixture_path(t), &report, &err), 0);
		CHECK(report.sound && !report.in_use && report.revision >= seen->revision);
		suite_reopen(t);
		CHECK(suite_revision(t) >= seen->revision);
		seen->revision = suite_revision(t);
		for (int i = 0; i < WRITERS; i++)
			for (int k = 0; k < KEYS_EACH; k++)
				check_key(t->store, &seen->newest[i][k]);
	}
	CHECK(seen->n >= ROUNDS);
	free(seen);
}

TEST(sqlite_kill_loses_nothing) { suite_run(&sqlite_fixture, check_crashes); }
