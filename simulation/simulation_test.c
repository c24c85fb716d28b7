/* The simulation itself: a run depends on its seed alone, and a rule that is broken is found. */
#include "base/clock.h"
#include "base/fiber_test.h"
#include "codec/codec.h"
#include "machinery/testing.h"
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

/* ---- rules ---- */

static struct val object(struct arena *a, const char *json)
{
	struct val v;
	const struct json_decode_options o = { .sort_keys = true };

	CHECK_INT(json_decode(a, testing_json(a, json), &o, &v, NULL), 0);
	return v;
}

TEST(simulation_rules_are_broken)
{
	static const struct {
		const char *key, *before, *after, *rule;
	} rows[] = {
		{ "/registry/pods/a/p", "{'metadata':{'uid':'1'},'spec':{'nodeName':'x'}}", "{'metadata':{'uid':'1'},'spec':{'nodeName':'y'}}", "a pod was bound twice" },
		{ "/registry/pods/a/p", "{'metadata':{'uid':'1'},'spec':{'nodeName':'x'}}", "{'metadata':{'uid':'2'},'spec':{'nodeName':'y'}}", NULL },
		{ "/registry/pods/a/p", "{'metadata':{'uid':'1'},'status':{'phase':'Failed'}}", "{'metadata':{'uid':'1'},'status':{'phase':'Running'}}", "a pod that has ended lives again" },
		{ "/registry/jobs/a/j", "{'metadata':{'uid':'1'}}", "{'metadata':{'uid':'1'},'status':{'succeeded':1}}", "a job counts too many successes" },
		{ "/registry/jobs/a/j", "{'metadata':{'uid':'1'}}", "{'metadata':{'uid':'1'},'status':{'uncountedTerminatedPods':{'failed':['2']}}}", "a job counts too many failures" },
		{ "/registry/poddisruptionbudgets/a/b", "{'metadata':{'uid':'1'},'status':{'disruptionsAllowed':1}}",
		  "{'metadata':{'uid':'1'},'status':{'disruptionsAllowed':0,'disruptedPods':{'p':'t'}}}", "an eviction breaks a disruption budget" },
		{ "/registry/poddisruptionbudgets/a/b", "{'metadata':{'uid':'1'},'status':{'disruptionsAllowed':0}}",
		  "{'metadata':{'uid':'1'},'status':{'disruptionsAllowed':0,'disruptedPods':{'p':'t'}}}", "an eviction that its budget does not allow" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct history h;
		struct rules r;
		history_init(&h, false);
		rules_init(&r, &h);
		rules_check_write(&r, str_of(rows[i].key), object(&a, rows[i].before), object(&a, rows[i].after));
		CHECK_INT(r.failed, rows[i].rule != NULL);
		CHECK(!rows[i].rule || str_starts(buf_str(&r.text), str_of(rows[i].rule)));
		rules_done(&r);
		history_done(&h);
	}
}
