/*
 * Three members under load while the leader is killed, paused and restarted. Writers count upwards in a key each, by
 * compare and swap; what was acknowledged must stay. A watcher must see every step of every key once and in order.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "net/grpc.h"
#include "store/etcd_fixture.h"

enum { WRITERS = 6, CALL_MAX_MS = 13000, SETTLE_MS = 3000 };

struct world {
	struct etcd_cluster cluster;
	struct store *store;
	struct store_watch *watch;
	bool stop;
	struct {
		struct world *world;
		char key[16];
		int64_t acknowledged;      /* the greatest number that was */
		unsigned writes, unsure;
	} writers[WRITERS];
	int64_t seen[WRITERS];             /* by the watcher */
	int64_t seen_revision;
	unsigned progressed;               /* batches without events */
	unsigned failures;                 /* of calls */
	int64_t slowest_ms;
};

/* ---- writers ---- */

static void note_time(struct world *w, int64_t start_ns)
{
	w->slowest_ms = MAX(w->slowest_ms, (clock_now_ns() - start_ns) / NS_PER_MS);
}

static __attribute__((noinline)) int64_t number_of(const struct store_kv *kv)
{
	int64_t n = 0;

	CHECK(!kv->value || str_to_i64(store_value_str(kv->value), &n));
	return n;
}

/* Reads until somebody answers: the number, and the revision to go on from. */
static int64_t read_number(struct world *w, str key, int64_t *ret_revision)
{
	for (;;) {
		struct store_kv kv = { 0 };
		struct err err = ERR_INIT;
		int64_t start_ns = clock_now_ns();
		int r = store_get(w->store, key, &kv, NULL, &err);
		note_time(w, start_ns);
		if (r >= 0) {
			int64_t n = number_of(&kv);
			*ret_revision = kv.mod_revision;
			store_value_unref(kv.value);
			return n;
		}
		CHECK(r == -ERR_UNAVAILABLE || r == -ERR_TIMEOUT);
		w->failures++;
	}
}

static int put_number(struct world *w, str key, int64_t n, int64_t *revision)
{
	char text[32];
	int len = snprintf(text, sizeof text, "%" PRId64, n);
	struct store_value *v = store_value_new(str_span(text, (size_t)len));
	struct err err = ERR_INIT;
	int64_t start_ns = clock_now_ns();
	int r = store_put(w->store, key, v, *revision, 0, revision, NULL, &err);

	note_time(w, start_ns);
	store_value_unref(v);
	if (r < 0 && r != -ERR_UNAVAILABLE && r != -ERR_TIMEOUT)
		fail_msg("%s", err.msg);
	w->failures += r < 0;
	return r;
}

static int write_main(void *arg)
{
	__typeof__(((struct world *)0)->writers[0]) *me = arg;
	struct world *w = me->world;
	str key = str_of(me->key);
	int64_t n = 0, revision = STORE_ABSENT;
	bool pending = false; /* a write of n + 1 whose outcome is unknown was not there yet when it was looked for: it may still come */

	while (!w->stop) {
		int r = put_number(w, key, n + 1, &revision);
		if (r == 1) {
			me->acknowledged = ++n;
			me->writes++;
			pending = false;
			continue;
		}
		/* Nobody else writes this key: a conflict would mean that a write happened which was said not to have. */
		CHECK(r < 0 || pending);
		int64_t found = read_number(w, key, &revision);
		if (r == -ERR_UNAVAILABLE && !pending)
			CHECK_INT(found, n);
		pending = found == n && (pending || r == -ERR_TIMEOUT);
		CHECK(found == n || found == n + 1);
		me->unsure += found == n + 1;
		n = found;
	}
	return 0;
}

/* ---- the watcher ---- */

static int watch_main(void *arg)
{
	struct world *w = arg;
	struct store_batch b;
	struct err err = ERR_INIT;

	if (store_watch_open(w->store, STR("/chaos/"), STR("/chaos0"), 1, &w->watch, &err) < 0)
		fail_msg("%s", err.msg);
	while (store_watch_next(w->watch, &b, &err) == 0) {
		for (size_t i = 0; i < b.n; i++) {
			const struct store_kv *kv = &b.events[i].kv;
			unsigned writer = (unsigned)(kv->key.p[7] - '0');
			CHECK(writer < WRITERS && !b.events[i].deleted);
			CHECK(kv->mod_revision > w->seen_revision);
			CHECK_INT(number_of(kv), w->seen[writer] + 1);
			CHECK_INT(kv->version, w->seen[writer] + 1);
			w->seen[writer]++;
			w->seen_revision = kv->mod_revision;
		}
		CHECK(b.revision >= w->seen_revision);
		w->seen_revision = b.revision; /* nothing older may come after this */
		w->progressed += b.n == 0;
		store_batch_done(&b);
	}
	CHECK_INT(err.code, ERR_CANCELED);
	store_watch_free(TAKE(w->watch));
	return 0;
}

static int progress_main(void *arg)
{
	struct world *w = arg;

	while (fiber_sleep_ms(20, NULL) == 0) {
		if (w->watch)
			store_watch_progress(w->watch);
	}
	return 0;
}

/* ---- trouble ---- */

/* Is this member the leader, as it sees it? */
static bool is_leader(struct world *w, unsigned i)
{
	const char *endpoints[] = { w->cluster.endpoints[i], NULL };
	struct grpc_options o = { .endpoints = endpoints };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(grpc_channel_freep) struct grpc_channel *c = NULL;
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	struct val v;

	DEADLINE_SCOPE(2000);
	return grpc_channel_new(&o, &c, NULL) == 0 &&
	       grpc_call(c, rpc_Maintenance_Status.path, GRPC_IDEMPOTENT, STR_NONE, &m, NULL, NULL) == 0 &&
	       proto_decode(&a, grpc_message_str(m), rpc_Maintenance_Status.response, &v, NULL) == 0 &&
	       val_int(v, leader) != 0 && val_int(v, leader) == val_int(v, header, memberId);
}

static unsigned leader(struct world *w)
{
	for (;;) {
		for (unsigned i = 0; i < w->cluster.n; i++) {
			if (is_leader(w, i))
				return i;
		}
		CHECK_INT(fiber_sleep_ms(50, NULL), 0);
	}
}

static unsigned writes(const struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WRITERS; i++)
		n += w->writers[i].writes;
	return n;
}

/* Waits until so many more writes were acknowledged. */
static void wait_writes(struct world *w, unsigned more)
{
	unsigned want = writes(w) + more;

	while (writes(w) < want)
		CHECK_INT(fiber_sleep_ms(10, NULL), 0);
}

static void trouble(struct world *w)
{
	unsigned i = leader(w);

	etcd_member_kill(&w->cluster, i);
	wait_writes(w, 30);
	etcd_member_start(&w->cluster, i);
	wait_writes(w, 30);

	i = leader(w);
	etcd_member_signal(&w->cluster, i, SIGSTOP);
	wait_writes(w, 30);
	etcd_member_signal(&w->cluster, i, SIGCONT);
	wait_writes(w, 30);

	/* Without a majority nothing can be written, and calls say so. */
	unsigned failures = w->failures;
	etcd_member_kill(&w->cluster, 0);
	etcd_member_kill(&w->cluster, 1);
	while (w->failures < failures + WRITERS)
		CHECK_INT(fiber_sleep_ms(10, NULL), 0);
	etcd_member_start(&w->cluster, 0);
	etcd_member_start(&w->cluster, 1);
	wait_writes(w, 30);

	/* Whichever member the store is connected to, it is among these. */
	for (i = 0; i < w->cluster.n; i++) {
		etcd_member_signal(&w->cluster, i, SIGSTOP);
		wait_writes(w, 10);
		etcd_member_signal(&w->cluster, i, SIGCONT);
		wait_writes(w, 10);
	}
}

/* What the members hold in the end, by etcdctl. */
static void check_final(struct world *w)
{
	for (unsigned i = 0; i < WRITERS; i++) {
		const char *const args[] = { "get", "--print-value-only", w->writers[i].key, NULL };
		CLEANUP(mem_freep) char *text = etcd_ctl(&w->cluster, args);
		int64_t n = -1;
		CHECK(str_to_i64(str_trim(str_of(text)), &n));
		CHECK_INT(n, w->seen[i]);
		CHECK(n >= w->writers[i].acknowledged);
	}
}

static void run(struct world *w)
{
	struct store_options o = { .endpoints = w->cluster.endpoints };
	struct fiber *fibers[WRITERS];
	struct err err = ERR_INIT;
	int64_t revision;

	if (store_open(&o, &w->store, &err) < 0)
		fail_msg("%s", err.msg);
	struct fiber *watcher = start(watch_main, w), *progress = start(progress_main, w);
	for (unsigned i = 0; i < WRITERS; i++) {
		w->writers[i].world = w;
		(void)snprintf(w->writers[i].key, sizeof w->writers[i].key, "/chaos/%u", i);
		fibers[i] = start(write_main, &w->writers[i]);
	}
	wait_writes(w, 30);
	trouble(w);
	w->stop = true;
	for (unsigned i = 0; i < WRITERS; i++)
		CHECK_INT(join(fibers[i]), 0);
	CHECK_INT(store_revision(w->store, &revision, &err), 0);
	for (int i = 0; i < SETTLE_MS / 10 && w->seen_revision < revision; i++)
		CHECK_INT(fiber_sleep_ms(10, NULL), 0);
	CHECK_INT(w->seen_revision, revision);
	CHECK(w->progressed > 0);
	fiber_stop(progress);
	fiber_stop(watcher);
	check_final(w);
	store_free(w->store);
}

FIBER_TEST_IF(etcd_program("etcd") && etcd_program("etcdctl"), etcd_leader_is_killed_and_paused)
{
	struct world *w = mem_zalloc(sizeof *w);

	etcd_cluster_start(&w->cluster, 3, false, NULL);
	{
		DEADLINE_SCOPE(120000);
		run(w);
	}
	print_message("# %u writes, %u failed calls, slowest call %" PRId64 " ms\n", writes(w), w->failures, w->slowest_ms);
	CHECK(w->slowest_ms < CALL_MAX_MS);
	etcd_cluster_stop(&w->cluster);
	free(w);
}
