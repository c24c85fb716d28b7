/* The etcd engine against a real etcd: the suite that all engines pass, and what is particular to this one. */
#include <signal.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/fiber_test.h"
#include "store/etcd_fixture.h"
#include "store/suite.h"

/* ---- the suite, on one member for all cases ---- */

static struct etcd_cluster shared;

static void shared_setup(struct suite *t)
{
	(void)t;
	if (!shared.n)
		etcd_cluster_start(&shared, 1, false, NULL);
}

static void shared_teardown(struct suite *t) { (void)t; }

static int shared_open(struct suite *t, struct store **ret, struct err *err)
{
	struct store_options o = { .endpoints = shared.endpoints };

	(void)t;
	DEADLINE_SCOPE(20000);
	return store_open(&o, ret, err);
}

static const struct suite_engine etcd_fixture = {
	.setup = shared_setup, .teardown = shared_teardown, .open = shared_open, .ttl_slack_ms = 5000,
};

static void run_suite(void (*run)(struct suite *t))
{
	if (!etcd_program("etcd"))
		skip();
	suite_run(&etcd_fixture, run);
}

#define CASE(name) \
	TEST(etcd_##name) { run_suite(suite_##name); }
SUITE_CASES(CASE)

/* ---- TLS ---- */

static __attribute__((noinline)) int open_with(struct etcd_cluster *c, bool certificate, struct store **ret,
					       struct err *err)
{
	char ca[300], cert[300], key[300];
	struct store_options o = { .endpoints = c->endpoints, .ca_file = ca };

	(void)snprintf(ca, sizeof ca, "%s/ca.crt", c->folder);
	(void)snprintf(cert, sizeof cert, "%s/client.crt", c->folder);
	(void)snprintf(key, sizeof key, "%s/client.key", c->folder);
	if (certificate) {
		o.cert_file = cert;
		o.key_file = key;
	}
	DEADLINE_SCOPE(certificate ? 20000 : 1500);
	return store_open(&o, ret, err);
}

static void check_ctl(struct etcd_cluster *c, const char *key, const char *want)
{
	const char *const args[] = { "get", "--print-value-only", key, NULL };
	CLEANUP(mem_freep) char *got = etcd_ctl(c, args);

	CHECK_STR(str_trim(str_of(got)), want);
}

FIBER_TEST_IF(etcd_program("etcd") && etcd_program("etcdctl"), etcd_over_tls)
{
	static struct etcd_cluster c;
	struct store *s = NULL;
	struct store_value *v = store_value_new(STR("by certificate"));
	struct store_kv kv;
	struct err err = ERR_INIT;

	etcd_cluster_start(&c, 1, true, NULL);
	if (open_with(&c, true, &s, &err) < 0)
		fail_msg("%s", err.msg);
	CHECK_INT(store_put(s, STR("/registry/x"), v, STORE_ABSENT, 0, NULL, NULL, NULL), 1);
	CHECK_INT(store_get(s, STR("/registry/x"), &kv, NULL, NULL), 1);
	CHECK_STR(store_value_str(kv.value), "by certificate");
	check_ctl(&c, "/registry/x", "by certificate");
	store_value_unref(kv.value);
	store_value_unref(v);
	store_free(s);
	/* Without a certificate etcd does not talk to us, and the error is there when the deadline passes. */
	int r = open_with(&c, false, &s, &err);
	CHECK(r == -ERR_UNAVAILABLE || r == -ERR_TIMEOUT);
	CHECK(err.n > 0);
	etcd_cluster_stop(&c);
}

/* ---- errors ---- */

static void errors(struct suite *t)
{
	struct err err = ERR_INIT;
	struct store_value *large = store_value_room(3 << 20);
	struct store_page page;
	struct store_range future = { .from = STR("a"), .revision = INT64_C(1) << 40 };

	memset(large->bytes, 'x', large->n);
	CHECK_INT(store_put(t->store, suite_key(t, "large"), large, STORE_ABSENT, 0, NULL, NULL, &err), -ERR_TOO_LARGE);
	store_value_unref(large);
	CHECK_INT(store_range(t->store, &future, &page, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "etcd: etcdserver: mvcc: required revision is a future revision");
}

TEST(etcd_errors) { run_suite(errors); }

/* Fills the database to its quota. */
FIBER_TEST_IF(etcd_program("etcd") && etcd_program("etcdctl"), etcd_full)
{
	static struct etcd_cluster c;
	static const char *const alarm[] = { "alarm", "list", NULL };
	struct store_options o = { .endpoints = c.endpoints };
	struct store_value *v = store_value_room(1 << 20);
	struct store *s = NULL;
	struct err err = ERR_INIT;
	int r = 1;

	memset(v->bytes, 'x', v->n);
	etcd_cluster_start(&c, 1, false, "8388608");
	if (store_open(&o, &s, &err) < 0)
		fail_msg("%s", err.msg);
	for (unsigned i = 0; r == 1 && i < 20; i++)
		r = store_put(s, STR("/registry/fill"), v, STORE_ANY, 0, NULL, NULL, &err);
	CHECK_INT(r, -ERR_UNAVAILABLE);
	CHECK(str_find(err_str(&err), STR("etcdctl defrag")) > 0);
	CLEANUP(mem_freep) char *text = etcd_ctl(&c, alarm);
	CHECK(str_find(str_of(text), STR("NOSPACE")) > 0);
	store_value_unref(v);
	store_free(s);
	etcd_cluster_stop(&c);
}

FIBER_TEST(etcd_nobody_there)
{
	static const char *const endpoints[] = { "http://127.0.0.1:1", "unix:/nonexistent/socket", NULL };
	static const char *const wrong[] = { "127.0.0.1:2379", NULL };
	struct store_options o = { .endpoints = endpoints }, bad = { .endpoints = wrong };
	struct store *s;
	struct err err = ERR_INIT;

	CHECK_INT(store_open(&bad, &s, &err), -ERR_BAD_REQUEST);
	DEADLINE_SCOPE(300);
	CHECK(store_open(&o, &s, &err) < 0);
	CHECK(err.n > 0);
}

/* ---- one lease for many keys ---- */

static void leases(struct suite *t)
{
	static const char *const list[] = { "lease", "list", NULL };
	struct store_value *v = store_value_new(STR("v"));

	if (!etcd_program("etcdctl"))
		return;
	for (unsigned i = 0; i < 50; i++)
		CHECK_INT(store_put(t->store, suite_key(t, "k%u", i), v, STORE_ABSENT, 3600, NULL, NULL, NULL), 1);
	store_value_unref(v);
	CLEANUP(mem_freep) char *text = etcd_ctl(&shared, list);
	unsigned n = 0;
	for (str rest = str_of(text), line; rest.n;) {
		(void)str_cut(rest, '\n', &line, &rest);
		n += line.n == 16;
	}
	CHECK(n >= 1 && n <= 4); /* other cases have theirs */
}

TEST(etcd_leases_are_shared) { run_suite(leases); }

/* ---- watches ---- */

/* More in one go than etcd puts into one response. */
static void large_events(struct suite *t)
{
	enum { N = 8 };
	struct store_value *v = store_value_room(1 << 20);
	struct store_watch *w = NULL;
	size_t n = 0;
	int64_t first = suite_revision(t) + 1, last = 0;

	memset(v->bytes, 'x', v->n);
	for (unsigned i = 0; i < N; i++) {
		v->bytes[0] = (char)('0' + i);
		CHECK_INT(store_put(t->store, suite_key(t, "k%u", i), v, STORE_ABSENT, 0, &last, NULL, NULL), 1);
	}
	w = suite_watch(t, first);
	while (n < N) {
		struct store_batch b;
		CHECK_INT(store_watch_next(w, &b, NULL), 0);
		for (size_t i = 0; i < b.n; i++, n++) {
			CHECK_INT(b.events[i].kv.mod_revision, first + (int64_t)n);
			CHECK_INT(b.events[i].kv.value->n, v->n);
			CHECK_INT(b.events[i].kv.value->bytes[0], '0' + (int)n);
		}
		store_batch_done(&b);
	}
	CHECK_INT(first + N - 1, last);
	store_value_unref(v);
	store_watch_free(w);
}

TEST(etcd_watch_large_events) { run_suite(large_events); }

static void object_unref(void *object) { ++*(int *)object; }

/* What was written here comes back with the object that it was made from. */
static void own_objects(struct suite *t)
{
	struct store_watch *w = suite_watch(t, suite_revision(t) + 1);
	int freed = 0;
	struct store_value *v = store_value_new(STR("bytes"));
	struct store_batch b = { 0 };

	v->object = &freed;
	v->object_unref = object_unref;
	CHECK_INT(store_put(t->store, suite_key(t, "k"), v, STORE_ABSENT, 0, NULL, NULL, NULL), 1);
	while (!b.n)
		CHECK_INT(store_watch_next(w, &b, NULL), 0);
	CHECK(b.events[0].kv.value == v);
	store_batch_done(&b);
	/* Other bytes under that key are another value. */
	suite_put(t, suite_key(t, "k"), "other");
	while (!b.n)
		CHECK_INT(store_watch_next(w, &b, NULL), 0);
	CHECK(b.events[0].kv.value != v);
	CHECK_STR(store_value_str(b.events[0].kv.value), "other");
	store_batch_done(&b);
	store_value_unref(v);
	CHECK_INT(freed, 1);
	store_watch_free(w);
}

TEST(etcd_own_objects) { run_suite(own_objects); }
