/* The simulation itself: a run depends on its seed alone, and a rule that is broken is found. */
#include <stdio.h>

#include "base/clock.h"
#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "simulation/simulation.h"

static struct sim_result run_once(uint64_t seed, bool calm)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	struct sim_result result;

	simulate(&(struct sim_options){ .seed = seed, .calm = calm }, &result, &out);
	if (result.failed)
		fail_msg("seed %llu: " STR_FMT, (unsigned long long)seed, STR_ARG(buf_str(&out)));
	return result;
}

TEST(simulation_is_deterministic)
{
	struct sim_result first = run_once(3, false), other = run_once(4, false), again = run_once(3, false);

	CHECK(first.sum == again.sum);
	CHECK_INT(first.writes, again.writes);
	CHECK(first.sum != other.sum);
	CHECK(first.writes > 50);
	simulate_done();
	/* Also when it is the first run of all. */
	CHECK(run_once(4, false).sum == other.sum);
	simulate_done();
}

/* ---- the store ---- */

static struct memory_store_fate late(void *arg)
{
	(void)arg;
	return (struct memory_store_fate){ .seen_ns = NS_PER_S };
}

static struct memory_store_fate never_told(void *arg)
{
	(void)arg;
	return (struct memory_store_fate){ .unknown = true };
}

static int64_t put(struct memory_store *m, const char *key, int64_t expect)
{
	struct store_value *v = store_value_new(str_of(key));
	int64_t revision = 0;
	int r = store_put(memory_store_of(m), str_of(key), v, expect, 0, &revision, NULL, NULL);

	store_value_unref(v);
	return r < 0 ? r : r > 0 ? revision : 0;
}

FIBER_TEST(simulation_store_keeps_its_contract)
{
	struct memory_store *m = memory_store_new(&(struct memory_store_options){ .fate = NULL }, NULL);
	struct store *s = memory_store_of(m);
	struct store_page page;
	int64_t first = put(m, "/a", STORE_ABSENT), second = put(m, "/b", STORE_ABSENT), third;

	CHECK_INT(second, first + 1);
	CHECK_INT(put(m, "/a", STORE_ABSENT), 0);
	CHECK_INT(put(m, "/a", second), 0);
	CHECK_INT(put(m, "/a", first), second + 1);
	CHECK_INT(store_delete(s, STR("/b"), second, &third, NULL, NULL), 1);
	CHECK_INT(store_delete(s, STR("/b"), STORE_ANY, NULL, NULL, NULL), 0);

	/* The past is still there, in the copy of a store, too. */
	struct memory_store *copy = memory_store_new(&(struct memory_store_options){ .fate = NULL }, m);
	CHECK_INT(store_range(s, &(struct store_range){ .from = STR("/"), .to = STR("0"), .revision = second }, &page, NULL), 0);
	CHECK_INT(page.n, 2);
	store_page_done(&page);
	CHECK_INT(put(copy, "/c", STORE_ABSENT), third + 1);
	CHECK_INT(store_range(memory_store_of(copy), &(struct store_range){ .from = STR("/"), .to = STR("0") }, &page, NULL), 0);
	CHECK_INT(page.n, 2);
	store_page_done(&page);
	CHECK_INT(store_range(memory_store_of(copy), &(struct store_range){ .from = STR("/"), .to = STR("0"), .revision = first }, &page, NULL), -ERR_EXPIRED);
	memory_store_free(copy);
	memory_store_free(m);
}

static void check_fates(void)
{
	struct memory_store *m = memory_store_new(&(struct memory_store_options){ .fate = never_told }, NULL);
	struct store_kv kv;

	CHECK_INT(put(m, "/a", STORE_ABSENT), -ERR_TIMEOUT);
	CHECK_INT(store_get(memory_store_of(m), STR("/a"), &kv, NULL, NULL), 1);
	store_value_unref(kv.value);
	memory_store_free(m);
}

static int check_late(void *arg)
{
	struct memory_store *m = memory_store_new(&(struct memory_store_options){ .fate = late }, NULL);
	struct store_watch *w;
	struct store_batch batch;
	int64_t begun_ns = clock_now_ns();

	(void)arg;
	CHECK_INT(store_watch_open(memory_store_of(m), STR("/"), STR("0"), 2, &w, NULL), 0);
	(void)put(m, "/a", STORE_ABSENT);
	CHECK_INT(clock_now_ns(), begun_ns);
	CHECK_INT(store_watch_next(w, &batch, NULL), 0);
	CHECK_INT(batch.n, 1);
	CHECK_INT(clock_now_ns(), begun_ns + NS_PER_S);
	store_batch_done(&batch);
	store_watch_free(w);
	check_fates();
	memory_store_free(m);
	return 0;
}

TEST(simulation_store_is_late_or_silent)
{
	clock_virtual_set(NS_PER_S, NS_PER_S);
	CHECK_INT(run_loop(check_late, NULL), 0);
	clock_virtual_off();
}

/* ---- leaders ---- */

static int64_t wait_for_leader(struct simulation *s, struct sim_replica *replicas, const struct sim_replica *not)
{
	int64_t begun_ns = clock_now_ns();
	struct sim_replica *r;

	while ((!(r = replica_leader(replicas)) || r == not) && clock_now_ns() - begun_ns < 60 * NS_PER_S)
		(void)fiber_sleep_ms(100, NULL);
	CHECK(!s->rules.failed);
	return (clock_now_ns() - begun_ns) / NS_PER_MS;
}

/*
 * A lease of 15 seconds that is renewed every 4, and that the other one looks at every 8.8 seconds at most: it counts from when it has seen it
 * change, and takes it at the look after that. One that was given back is free at the next look.
 */
enum { LEASE_MS = 15000, RENEW_MS = 4000, LOOK_MS = 8900 };

static void leaders_come_and_go(struct simulation *s)
{
	struct sim_replica *both[] = { s->schedulers, s->managers };

	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		CHECK(wait_for_leader(s, both[i], NULL) <= LOOK_MS);
		struct sim_replica *first = replica_leader(both[i]);
		replica_kill(first);
		int64_t ms = wait_for_leader(s, both[i], first);
		CHECK(ms >= LEASE_MS - RENEW_MS - 1000 && ms <= LEASE_MS + 2 * LOOK_MS);
		struct sim_replica *second = replica_leader(both[i]);
		CHECK(second && second != first);
		CHECK_INT(part_start(&first->part, NULL), 0);
		(void)fiber_sleep_ms(2 * LEASE_MS, NULL);
		CHECK(replica_leader(both[i]) == second);
		/* Cut off, it stops before the other begins. */
		replica_cut(second, true);
		ms = wait_for_leader(s, both[i], second);
		CHECK(ms <= LEASE_MS + 2 * LOOK_MS && !second->leads);
		replica_cut(second, false);
		(void)fiber_sleep_ms(LEASE_MS, NULL);
		CHECK(replica_leader(both[i]) == first);
		part_stop(&first->part);
		CHECK(wait_for_leader(s, both[i], first) <= LOOK_MS + 1000);
	}
}

static void run_story(void (*story)(struct simulation *s), const char *rule)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	struct sim_result result;

	simulate_story(story, &result, &out);
	simulate_done();
	if (result.failed != (rule != NULL) || (rule && !str_starts(buf_str(&out), str_of(rule))))
		fail_msg("not %s, but " STR_FMT, rule ? rule : "kept", STR_ARG(buf_str(&out)));
}

TEST(simulation_leaders_hand_over) { run_story(leaders_come_and_go, NULL); }

/* ---- rules of a run ---- */

static void nobody_leads(struct simulation *s)
{
	replicas_stop(s);
	settle(s);
}

/* What nobody lets go of stays. */
static void something_stays(struct simulation *s)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val meta = OBJECT(&a, F(name, VAL_LIT("c")), F(namespace, VAL_LIT("default")), F(finalizers, LIST(&a, VAL_LIT("example.com/never"))));

	CHECK_INT(client_create(s->operator, TYPE(core_v1, ConfigMap), OBJECT(&a, F(metadata, meta)), NULL, NULL, NULL), 0);
	CHECK_INT(client_delete(s->operator, TYPE(core_v1, ConfigMap), STR("default"), STR("c"), NULL, NULL), 0);
	settle(s);
}

/* Somebody takes the lease by force, and leads. */
static void two_lead(struct simulation *s)
{
	(void)wait_for_leader(s, s->schedulers, NULL);
	s->schedulers[0].leads = s->schedulers[1].leads = true;
	replica_kill(&s->managers[0]);
	s->managers[0].leads = true;
	(void)fiber_sleep_ms(2 * LEASE_MS, NULL);
}

static int ends(struct part *p, struct err *err)
{
	(void)p;
	return err_set(err, ERR_INTERNAL, "enough");
}

static void one_ends(struct simulation *s)
{
	struct part p = { .sim = s, .run = ends, .name = "part" };

	CHECK_INT(part_start(&p, NULL), 0);
	(void)fiber_sleep_ms(1, NULL);
	part_stop(&p);
}

TEST(simulation_rules_of_a_run)
{
	run_story(nobody_leads, "nobody leads");
	run_story(something_stays, "nothing moves on");
	run_story(two_lead, "two lead at once");
	run_story(one_ends, "a component ended");
}

/* ---- late writes ---- */

static struct val map_named(struct arena *a, const char *name)
{
	return OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_STR(str_of(name))), F(namespace, VAL_LIT("default")))));
}

static bool is_there(struct simulation *s, const char *name) { return val_exists(rules_find(&s->rules, "configmaps/default/%s", name)); }

struct writer {
	struct client *client;
	const char *name;
};

static int write_map(void *arg)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct writer *w = arg;

	return client_create(w->client, TYPE(core_v1, ConfigMap), map_named(&a, w->name), NULL, NULL, NULL);
}

/* Of many writes of a process that is cut off, some arrive when it is long gone, all after the link is mended. */
static void some_are_late(struct simulation *s)
{
	struct writer w = { .client = s->meddler };
	char name[16];
	int n = 0;

	link_cut(s->meddler, true);
	for (int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof name, "m%d", i);
		w.name = name;
		CHECK_INT(write_map(&w), -ERR_UNAVAILABLE);
		CHECK(!is_there(s, name));
	}
	link_cut(s->meddler, false);
	(void)fiber_sleep_ms(10000, NULL);
	for (int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof name, "m%d", i);
		n += is_there(s, name);
	}
	CHECK(n > 3 && n < 17);
	link_die(s->meddler, true);
	w.name = "dead";
	CHECK_INT(write_map(&w), -ERR_UNAVAILABLE);
	link_die(s->meddler, false);
	(void)fiber_sleep_ms(10000, NULL);
	CHECK(!is_there(s, "dead"));
}

/* A store that is slow: whoever wrote is stopped meanwhile, and half of what it wrote is done all the same. */
static void some_go_on(struct simulation *s)
{
	char name[16];
	int n = 0;

	s->slow_ns = NS_PER_S;
	for (int i = 0; i < 20; i++) {
		struct writer w = { .client = s->meddler, .name = name };
		struct fiber *f = NULL;
		(void)snprintf(name, sizeof name, "g%d", i);
		CHECK_INT(fiber_spawn(write_map, &w, &f, NULL, "writer"), 0);
		(void)fiber_yield(NULL);
		(void)fiber_yield(NULL);
		(void)fiber_stop(f);
		(void)fiber_sleep_ms(5000, NULL);
		n += is_there(s, name);
	}
	CHECK(n > 3 && n < 17);
}

TEST(simulation_writes_are_late)
{
	run_story(some_are_late, NULL);
	run_story(some_go_on, NULL);
}
