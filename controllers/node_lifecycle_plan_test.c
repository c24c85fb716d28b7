#include "controllers/node_lifecycle_plan.h"

#include "base/clock.h"
#include "controllers/controller.h"
#include "controllers/plan_testing.h"

#define S NS_PER_S
#define NODE(conditions) "{'metadata':{'name':'n1','creationTimestamp':'1970-01-01T00:16:40Z'},'status':{'conditions':[" conditions "]}}" /* at 1000 s */
#define READY(status, heartbeat) "{'type':'Ready','status':'" status "','lastHeartbeatTime':'1970-01-01T00:16:" heartbeat "Z'}"

struct life {
	struct arena arena;
	struct node_health health;
	struct node_verdict verdict;
};

static void look(struct life *l, const char *node, const char *lease, int64_t at_s)
{
	struct node_look in = { .node = tree(&l->arena, node), .lease = lease ? tree(&l->arena, lease) : VAL_EMPTY, .now_ns = (5000 + at_s) * S,
				.wall_ns = (1000 + at_s) * S, .grace_ns = 50 * S, .startup_grace_ns = 60 * S };
	node_health_look(&l->arena, &in, &l->health, &l->verdict);
}

TEST(node_that_stops_posting_is_unknown)
{
	struct life l = { 0 };
	const char *node = NODE(READY("True", "41") ",{'type':'DiskPressure','status':'False','reason':'r'}");

	look(&l, node, NULL, 100);
	CHECK_STR(l.verdict.is, "True");
	look(&l, node, NULL, 150);
	CHECK_STR(l.verdict.is, "True"); /* fifty seconds are allowed */
	look(&l, node, NULL, 151);
	CHECK_STR(l.verdict.was, "True");
	CHECK_STR(l.verdict.is, "Unknown");
	CHECK_STR(tree_text(&l.arena, condition_find(l.verdict.conditions, "Ready")),
		  "{'type':'Ready','status':'Unknown','lastHeartbeatTime':'1970-01-01T00:16:41Z','lastTransitionTime':'1970-01-01T00:19:11Z',"
		  "'reason':'NodeStatusUnknown','message':'Kubelet stopped posting node status.'}");
	CHECK_STR(val_str(condition_find(l.verdict.conditions, "DiskPressure"), reason), "NodeStatusUnknown");
	CHECK_STR(val_str(condition_find(l.verdict.conditions, "PIDPressure"), reason), "NodeStatusNeverUpdated");
	look(&l, NODE(READY("Unknown", "41")), NULL, 160); /* it is written: nothing more to do */
	CHECK(!val_exists(l.verdict.conditions));
	CHECK_STR(l.verdict.is, "Unknown");
	look(&l, NODE(READY("True", "59")), NULL, 300);
	CHECK_STR(l.verdict.is, "True");
	arena_done(&l.arena);
}

TEST(node_with_a_lease_lives)
{
	struct life l = { 0 };
	const char *node = NODE(READY("True", "41"));

	look(&l, node, "{'spec':{'renewTime':'1970-01-01T00:16:41.000000Z'}}", 0);
	look(&l, node, "{'spec':{'renewTime':'1970-01-01T00:16:51.000000Z'}}", 40);
	look(&l, node, "{'spec':{'renewTime':'1970-01-01T00:16:51.000000Z'}}", 90);
	CHECK_STR(l.verdict.is, "True");
	look(&l, node, "{'spec':{'renewTime':'1970-01-01T00:16:51.000000Z'}}", 91);
	CHECK_STR(l.verdict.is, "Unknown");
	arena_done(&l.arena);
}

TEST(node_that_never_posted)
{
	struct life l = { 0 };

	look(&l, NODE(""), NULL, 60);
	CHECK_STR(l.verdict.is, "");
	look(&l, NODE(""), NULL, 61);
	CHECK_STR(l.verdict.was, "Unknown"); /* it was never ready: nobody is told that it no longer is */
	CHECK_STR(l.verdict.is, "Unknown");
	CHECK_INT(val_len(l.verdict.conditions), 4);
	CHECK_STR(val_str(val_at(l.verdict.conditions, 0), message), "Kubelet never posted node status.");
	CHECK_STR(val_str(val_at(l.verdict.conditions, 0), lastHeartbeatTime), "1970-01-01T00:16:40Z");
	arena_done(&l.arena);
}

TEST(node_taints_follow_conditions)
{
	static const struct {
		const char *node, *want; /* NULL: as they are */
	} t[] = {
		{ "{'status':{'conditions':[{'type':'Ready','status':'True'}]}}", NULL },
		{ "{'status':{'conditions':[{'type':'Ready','status':'False'},{'type':'DiskPressure','status':'True'}]},'spec':{'taints':[{'key':'own','effect':'NoSchedule'}]}}",
		  "[{'key':'own','effect':'NoSchedule'},{'key':'node.kubernetes.io/not-ready','effect':'NoSchedule','timeAdded':'now'},"
		  "{'key':'node.kubernetes.io/disk-pressure','effect':'NoSchedule','timeAdded':'now'}]" },
		{ "{'status':{'conditions':[{'type':'Ready','status':'Unknown'}]},'spec':{'taints':[{'key':'node.kubernetes.io/not-ready','effect':'NoSchedule'}]}}",
		  "[{'key':'node.kubernetes.io/unreachable','effect':'NoSchedule','timeAdded':'now'}]" },
		{ "{'spec':{'unschedulable':true}}", "[{'key':'node.kubernetes.io/unschedulable','effect':'NoSchedule','timeAdded':'now'}]" },
		{ "{'spec':{'taints':[{'key':'node.kubernetes.io/unschedulable','effect':'NoSchedule'},{'key':'node.kubernetes.io/not-ready','effect':'NoExecute'}]}}",
		  "[{'key':'node.kubernetes.io/not-ready','effect':'NoExecute'}]" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val taints = node_no_schedule_taints(&a, tree(&a, t[i].node), VAL_LIT("now"));
		CHECK_ROW(i, val_exists(taints) == (t[i].want != NULL));
		if (t[i].want)
			CHECK_STR_ROW(i, tree_text(&a, taints), t[i].want);
	}
	struct val tainted = tree(&a, "{'spec':{'taints':[{'key':'node.kubernetes.io/unreachable','effect':'NoExecute'}]}}");
	CHECK(!val_exists(node_no_execute_taints(&a, tainted, STR("Unknown"), VAL_LIT("now"))));
	CHECK_STR(tree_text(&a, node_no_execute_taints(&a, tainted, STR("False"), VAL_LIT("now"))),
		  "[{'key':'node.kubernetes.io/not-ready','effect':'NoExecute','timeAdded':'now'}]");
	CHECK_STR(tree_text(&a, node_no_execute_taints(&a, tainted, STR("True"), VAL_LIT("now"))), "[]");
}

TEST(zones_that_are_disrupted)
{
	static const struct {
		size_t ready, not_ready;
		enum zone_state want;
		double rate;
	} t[] = {
		{ 0, 0, ZONE_NORMAL, 0.1 }, { 1, 0, ZONE_NORMAL, 0.1 }, { 0, 1, ZONE_FULL, 0.1 }, { 1, 2, ZONE_NORMAL, 0.1 },
		{ 2, 3, ZONE_PARTIAL, 0 }, { 45, 55, ZONE_PARTIAL, 0.01 }, { 46, 54, ZONE_NORMAL, 0.1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		enum zone_state is = zone_state(t[i].ready, t[i].not_ready, 0.55);
		CHECK_ROW(i, is == t[i].want);
		CHECK_ROW(i, zone_rate(is, t[i].ready + t[i].not_ready, 0.1, 0.01, 50) == t[i].rate);
	}
}
