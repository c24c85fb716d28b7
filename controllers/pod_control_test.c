#include "base/clock.h"
#include "base/fiber.h"
#include "base/fiber_test.h"
#include "controllers/plan_testing.h"
#include "controllers/pod_control.h"

TEST(pod_of_a_template)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val template = tree(&a, "{'metadata':{'labels':{'app':'w'},'name':'ignored','annotations':{'x':'y'}},'spec':{'hostname':'h'}}");
	struct val owner = tree(&a, "{'metadata':{'name':'web','namespace':'ns'}}");

	CHECK_STR(tree_text(&a, pod_from_template(&a, template, owner, tree(&a, "{'uid':'u1'}"))),
		  "{'apiVersion':'v1','kind':'Pod','metadata':{'generateName':'web-','namespace':'ns','labels':{'app':'w'},"
		  "'annotations':{'x':'y'},'ownerReferences':[{'uid':'u1'}]},'spec':{'hostname':'h'}}");
}

TEST(pod_states)
{
	static const struct {
		const char *pod;
		bool active, terminating, ready, available_0, available_10;
	} t[] = {
		{ "{}", true, false, false, false, false },
		{ "{'status':{'phase':'Succeeded'}}", false, false, false, false, false },
		{ "{'status':{'phase':'Failed'},'metadata':{'deletionTimestamp':'x'}}", false, false, false, false, false },
		{ "{'status':{'phase':'Running'},'metadata':{'deletionTimestamp':'x'}}", false, true, false, false, false },
		{ "{'status':{'conditions':[{'type':'Ready','status':'True'}]}}", true, false, true, true, false },
		{ "{'status':{'conditions':[{'type':'Ready','status':'False'}]}}", true, false, false, false, false },
		{ "{'status':{'conditions':[{'type':'Ready','status':'True','lastTransitionTime':'1970-01-01T00:16:30Z'}]}}", true, false,
		  true, true, true },
		{ "{'status':{'conditions':[{'type':'Ready','status':'True','lastTransitionTime':'1970-01-01T00:16:31Z'}]}}", true, false,
		  true, true, false },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val pod = tree(&a, t[i].pod);
		CHECK_ROW(i, pod_is_active(pod) == t[i].active);
		CHECK_ROW(i, pod_is_terminating(pod) == t[i].terminating);
		CHECK_ROW(i, pod_is_ready(pod) == t[i].ready);
		CHECK_ROW(i, pod_is_available(pod, 0, 1000 * NS_PER_S) == t[i].available_0);
		CHECK_ROW(i, pod_is_available(pod, 10, 1000 * NS_PER_S) == t[i].available_10);
	}
	CHECK_INT(pods_available_in_ns(LIST(&a, tree(&a, t[6].pod), tree(&a, t[7].pod)), 10, 1000 * NS_PER_S), NS_PER_S);
	CHECK_INT(pods_available_in_ns(LIST(&a, tree(&a, t[6].pod)), 10, 1000 * NS_PER_S), -1);
	CHECK_INT(pods_available_in_ns(LIST(&a, tree(&a, t[7].pod)), 0, 1000 * NS_PER_S), -1);
}

#define READY(since) "'conditions':[{'type':'Ready','status':'True','lastTransitionTime':'" since "'}]"
#define META(name, rest) "{'metadata':{'name':'" name "','uid':'" name "','creationTimestamp':'2026-01-01T00:00:00Z'" rest "}"
#define COST(value) ",'annotations':{'controller.kubernetes.io/pod-deletion-cost':'" value "'}"
#define NODE ",'spec':{'nodeName':'n'}"

/* In each row the first one goes first. */
TEST(pod_deletion_order)
{
	static const struct {
		const char *first, *second;
		int64_t ranks[2];
	} t[] = {
		{ META("b", "") "}", META("a", "") NODE "}", { 0, 0 } },
		{ META("b", "") NODE ",'status':{'phase':'Pending'}}", META("a", "") NODE ",'status':{'phase':'Running'}}", { 0, 0 } },
		{ META("b", "") NODE ",'status':{'phase':'Unknown'}}", META("a", "") NODE ",'status':{'phase':'Running'}}", { 0, 0 } },
		{ META("b", "") NODE "}", META("a", "") NODE ",'status':{" READY("2026-01-01T00:00:00Z") "}}", { 0, 0 } },
		{ META("b", COST("-1")) NODE "}", META("a", "") NODE "}", { 0, 9 } },
		{ META("b", COST("1")) NODE "}", META("a", COST("2")) NODE "}", { 0, 0 } },
		{ META("a", COST("+1")) NODE "}", META("b", COST("007")) NODE "}", { 0, 0 } },
		{ META("b", "") NODE "}", META("a", "") NODE "}", { 2, 1 } },
		{ META("b", "") NODE ",'status':{" READY("2026-01-01T00:59:00Z") "}}", META("a", "") NODE ",'status':{" READY("2026-01-01T00:00:00Z") "}}", { 0, 0 } },
		{ META("a", "") NODE ",'status':{" READY("2026-01-01T00:00:00Z") "}}", META("b", "") NODE ",'status':{" READY("2026-01-01T00:00:01Z") "}}", { 0, 0 } },
		{ META("b", "") NODE ",'status':{'containerStatuses':[{'restartCount':3}]}}", META("a", "") NODE "}", { 0, 0 } },
		{ "{'metadata':{'uid':'b','creationTimestamp':'2026-01-01T00:59:00Z'}}", META("a", "") "}", { 0, 0 } },
		{ "{'metadata':{'uid':'b'}}", META("a", "") "}", { 0, 0 } },
		{ META("a", "") "}", META("b", "") "}", { 0, 0 } },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int64_t now_ns = INT64_C(1767229200) * NS_PER_S; /* 2026-01-01T01:00:00Z */

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val first = tree(&a, t[i].first), second = tree(&a, t[i].second);
		const int64_t swapped[] = { t[i].ranks[1], t[i].ranks[0] };
		CHECK_ROW(i, val_same(val_at(pods_in_deletion_order(&a, LIST(&a, first, second), t[i].ranks, now_ns), 0), first));
		CHECK_ROW(i, val_same(val_at(pods_in_deletion_order(&a, LIST(&a, second, first), swapped, now_ns), 0), first));
	}
	CHECK_INT(val_len(pods_in_deletion_order(&a, VAL_EMPTY_LIST, NULL, now_ns)), 0);
}

/* ---- batches ---- */

struct batch_run {
	size_t fails_at;           /* this one and those after it fail */
	size_t called, together, most;
};

static int make(size_t i, void *arg, struct err *err)
{
	struct batch_run *b = arg;

	b->called++;
	b->together++;
	b->most = MAX(b->most, b->together);
	int r = fiber_yield(err);
	b->together--;
	if (r == 0 && i >= b->fails_at)
		return err_set(err, ERR_FORBIDDEN, "no %zu", i);
	return r;
}

FIBER_TEST(pod_batches)
{
	struct batch_run b = { .fails_at = 100 };
	struct err err = ERR_INIT;

	CHECK_INT(pod_control_batches(7, make, &b, &err), 7);
	CHECK_INT(b.called, 7);
	CHECK_INT(b.most, 4); /* 1, 2, 4 */
	b = (struct batch_run){ .fails_at = 2 };
	CHECK_INT(pod_control_batches(100, make, &b, &err), 2); /* of 0 | 1 2 the last one fails, and no more are tried */
	CHECK_INT(b.called, 3);
	CHECK_STR(err_str(&err), "no 2");
	b = (struct batch_run){ .fails_at = 0 };
	CHECK_INT(pod_control_batches(100, make, &b, &err), 0);
	CHECK_INT(b.called, 1);
	b = (struct batch_run){ .fails_at = 3 };
	CHECK_INT(pod_control_at_once(5, make, &b, &err), 3);
	CHECK_INT(b.most, 5);
	CHECK_STR(err_str(&err), "no 3");
	b = (struct batch_run){ .fails_at = 2000 };
	CHECK_INT(pod_control_at_once(1200, make, &b, &err), 1200);
	CHECK_INT(b.most, 500); /* others need fibers too */
	CHECK_INT(pod_control_at_once(0, make, &b, &err), 0);
	CHECK_INT(pod_control_batches(0, make, &b, &err), 0);
}
