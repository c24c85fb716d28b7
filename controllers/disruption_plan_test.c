#include "base/clock.h"
#include "controllers/disruption_plan.h"
#include "controllers/plan_testing.h"

#define POD(name, ready, more) "{'metadata':{'name':'" name "'" more "},'status':{'conditions':[{'type':'Ready','status':'" ready "'}]}}"

TEST(disruption_expected)
{
	static const struct { const char *spec; int64_t pods, scale; int r; int64_t expected, healthy; bool asks; } t[] = {
		{ "{'minAvailable':2}", 3, 99, 0, 3, 2, false },
		{ "{'minAvailable':'50%'}", 3, 5, 0, 5, 3, true },
		{ "{'maxUnavailable':1}", 3, 5, 0, 5, 4, true },
		{ "{'maxUnavailable':'30%'}", 3, 10, 0, 10, 7, true },
		{ "{'maxUnavailable':7}", 3, 5, 0, 5, 0, true },
		{ "{'maxUnavailable':'x'}", 3, 5, -ERR_INVALID, 5, 0, true },
		{ "{}", 3, 5, 0, 0, 0, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val pdb = OBJECT(&a, F(spec, tree(&a, t[i].spec)));
		int64_t expected, healthy;
		CHECK_ROW(i, disruption_needs_scale(pdb) == t[i].asks);
		CHECK_ROW(i, disruption_expect(pdb, t[i].pods, t[i].scale, &expected, &healthy, NULL) == t[i].r);
		CHECK_ROW(i, expected == t[i].expected && healthy == t[i].healthy);
	}
}

TEST(disruption_status)
{
#define AT(second) "'1970-01-01T00:00:" second "Z'"
	static const struct { const char *status, *pods; int64_t expected, healthy; const char *want; int64_t again_s; size_t kept; } t[] = {
		{ "{}", "[" POD("a", "True", "") "," POD("b", "True", "") "," POD("c", "False", "") "]", 3, 1, "allowed 1 current 2 True:SufficientPods {}", 0, 0 },
		{ "{}", "[" POD("a", "True", "") "]", 1, 1, "allowed 0 current 1 False:InsufficientPods {}", 0, 0 },
		{ "{}", "[" POD("a", "True", "") "]", 0, 0, "allowed 0 current 1 False:InsufficientPods {}", 0, 0 },
		{ "{}", "[" POD("a", "True", ",'deletionTimestamp':" AT("10")) "," POD("b", "True", "") "]", 2, 0, "allowed 1 current 1 True:SufficientPods {}", 0, 0 },
		/* evicted: expected to go for two minutes */
		{ "{'disruptedPods':{'a':" AT("40") ",'gone':" AT("40") "}}", "[" POD("a", "True", "") "," POD("b", "True", "") "]", 2, 0,
		  "allowed 1 current 1 True:SufficientPods {'a':'1970-01-01T00:00:40Z'}", 60, 0 },
		{ "{'disruptedPods':{'a':" AT("40") "}}", "[" POD("a", "True", ",'deletionTimestamp':" AT("41")) "]", 1, 0,
		  "allowed 0 current 0 False:InsufficientPods {}", 0, 0 },
		{ "{'disruptedPods':{'a':'1969-12-31T23:59:00Z'}}", "[" POD("a", "True", "") "]", 1, 0, "allowed 1 current 1 True:SufficientPods {}", 0, 1 },
	};
#undef AT

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct disruption_view v = { .pods = tree(&a, t[i].pods), .expected = t[i].expected, .healthy = t[i].healthy, .now_ns = 100 * NS_PER_S };
		struct val kept;
		int64_t again_ns;
		v.pdb = OBJECT(&a, F(metadata, tree(&a, "{'generation':1}")), F(status, tree(&a, t[i].status)));
		struct val s = disruption_status(&a, &v, &again_ns, &kept), c = val_at(val_get(s, conditions), 0), d = val_get(s, disruptedPods);
		str got = arena_printf(&a, "allowed %d current %d " STR_FMT ":" STR_FMT " " STR_FMT, (int)val_int(s, disruptionsAllowed), (int)val_int(s, currentHealthy),
				       STR_ARG(val_str(c, status)), STR_ARG(val_str(c, reason)), STR_ARG(val_len(d) ? tree_text(&a, d) : STR("{}")));
		CHECK_STR_ROW(i, got, t[i].want);
		CHECK_ROW(i, again_ns == t[i].again_s * NS_PER_S && val_len(kept) == t[i].kept);
		CHECK_ROW(i, disruption_status_differs(v.pdb, s));
		CHECK_ROW(i, !disruption_status_differs(val_with(&a, v.pdb, s, status), s));
	}
}

TEST(disruption_failed)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pdb = tree(&a, "{'status':{'disruptionsAllowed':2,'observedGeneration':1,'conditions':[{'type':'DisruptionAllowed','status':'True','reason':'SufficientPods'}]}}");
	struct val s = disruption_failed_status(&a, pdb, STR("found no controllers for pod \"x\""), 0);

	CHECK_INT(val_int(s, disruptionsAllowed), 0);
	CHECK_STR(val_str(val_at(val_get(s, conditions), 0), reason), "SyncFailed");
	CHECK_STR(val_str(val_at(val_get(s, conditions), 0), lastTransitionTime), "1970-01-01T00:00:00Z");
	CHECK(disruption_status_differs(pdb, s));
}

TEST(disruption_stale_conditions)
{
#define TARGET(more, phase, reason) "{'metadata':{'generation':4" more "},'status':{'phase':'" phase "','observedGeneration':3,'conditions':[{'type':'Ready','status':'True'}," \
				    "{'type':'DisruptionTarget','status':'True','reason':'" reason "','lastTransitionTime':'1970-01-01T00:01:00Z'}]}}"
	static const struct { const char *pod; int64_t now_s; int r; int64_t wait_s; } t[] = {
		{ TARGET("", "Running", "PreemptionByScheduler"), 100, 1, 80 },
		{ TARGET("", "Running", "EvictionByEvictionAPI"), 200, 1, 0 },
		{ TARGET("", "Running", "TerminationByKubelet"), 200, 0, 0 },
		{ TARGET("", "Failed", "PreemptionByScheduler"), 200, 0, 0 },
		{ TARGET(",'deletionTimestamp':'1970-01-01T00:01:00Z'", "Running", "PreemptionByScheduler"), 200, 0, 0 },
		{ "{'status':{'phase':'Running'}}", 200, 0, 0 },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		int64_t wait_ns = 0;
		CHECK_ROW(i, disruption_is_stale(tree(&a, t[i].pod), t[i].now_s * NS_PER_S, &wait_ns) == t[i].r);
		CHECK_ROW(i, wait_ns == t[i].wait_s * NS_PER_S);
	}
	struct val pod = disruption_take_back(&a, tree(&a, t[1].pod), 200 * NS_PER_S);
	CHECK_STR(tree_text(&a, val_at(val_get(pod, status, conditions), 1)),
		  "{'type':'DisruptionTarget','observedGeneration':4,'status':'False','lastTransitionTime':'1970-01-01T00:03:20Z'}");
}

TEST(disruption_selector_text)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	CHECK_STR(disruption_selector_text(&a, tree(&a, "{'matchLabels':{'app':'w'}}")),
		  "&LabelSelector{MatchLabels:map[string]string{app: w,},MatchExpressions:[]LabelSelectorRequirement{},}");
	CHECK_STR(disruption_selector_text(&a, tree(&a, "{'matchExpressions':[{'key':'a','operator':'In','values':['b','c']}]}")),
		  "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:a,Operator:In,Values:[b c],},},}");
}
