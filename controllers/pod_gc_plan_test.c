#include "controllers/pod_gc_plan.h"

#include "controllers/plan_testing.h"

#define OUT "'spec':{'taints':[{'key':'node.kubernetes.io/out-of-service','effect':'NoExecute'}]}"
#define READY(status_) "'status':{'conditions':[{'type':'Ready','status':'" status_ "'}]}"
#define DELETED "'metadata':{'deletionTimestamp':'2026-01-01T00:00:00Z'}"

TEST(pod_gc_judging)
{
	static const struct {
		const char *pod, *node;
		bool gone;
		enum pod_gc_why want;
	} t[] = {
		{ "{'spec':{'nodeName':'n'},'status':{'phase':'Running'}}", "{}", false, POD_GC_STAYS },
		{ "{'spec':{'nodeName':'n'},'status':{'phase':'Running'}}", NULL, false, POD_GC_STAYS },
		{ "{'spec':{'nodeName':'n'},'status':{'phase':'Running'}}", NULL, true, POD_GC_ORPHANED },
		{ "{'spec':{'nodeName':'n'},'status':{'phase':'Succeeded'}}", NULL, true, POD_GC_ORPHANED },
		{ "{'spec':{'nodeName':'n'},'status':{'phase':'Succeeded'}}", "{}", false, POD_GC_TERMINATED },
		{ "{'spec':{'nodeName':'n'},'status':{'phase':'Unknown'}}", "{}", false, POD_GC_STAYS },
		{ "{'spec':{},'status':{'phase':'Pending'}}", NULL, false, POD_GC_STAYS },
		{ "{" DELETED ",'spec':{},'status':{'phase':'Pending'}}", NULL, false, POD_GC_UNSCHEDULED },
		{ "{" DELETED ",'spec':{'nodeName':'n'},'status':{'phase':'Running'}}", "{" READY("True") "}", false, POD_GC_STAYS },
		{ "{" DELETED ",'spec':{'nodeName':'n'},'status':{'phase':'Running'}}", "{" OUT "," READY("True") "}", false, POD_GC_STAYS },
		{ "{" DELETED ",'spec':{'nodeName':'n'},'status':{'phase':'Running'}}", "{" OUT "," READY("Unknown") "}", false, POD_GC_OUT_OF_SERVICE },
		{ "{'spec':{'nodeName':'n'},'status':{'phase':'Running'}}", "{" OUT "," READY("Unknown") "}", false, POD_GC_STAYS },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, pod_gc_judge(tree(&a, t[i].pod), t[i].node ? tree(&a, t[i].node) : VAL_EMPTY, t[i].gone) == t[i].want);
}

TEST(pod_gc_order)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static const char *const pods[] = {
		"{'metadata':{'name':'c','creationTimestamp':'2026-01-03T00:00:00Z'},'status':{'phase':'Failed','reason':'Evicted'}}",
		"{'metadata':{'name':'b','creationTimestamp':'2026-01-01T00:00:00Z'},'status':{'phase':'Failed'}}",
		"{'metadata':{'name':'a','creationTimestamp':'2026-01-02T00:00:00Z'},'status':{'phase':'Succeeded'}}",
		"{'metadata':{'name':'0','creationTimestamp':'2026-01-02T00:00:00Z'},'status':{'phase':'Succeeded'}}",
	};
	static const char *const want[] = { "c", "b", "0", "a" };
	struct frozen *list[ARRAY_LEN(pods)];
	for (size_t i = 0; i < ARRAY_LEN(pods); i++)
		list[i] = val_freeze(tree(&a, pods[i]));
	pod_gc_sort(list, ARRAY_LEN(list));
	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		CHECK_STR_ROW(i, val_str(list[i]->val, metadata, name), want[i]);
		frozen_unref(list[i]);
	}
}

TEST(pod_gc_status)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = tree(&a, "{'metadata':{'uid':'u','generation':3},'status':{'phase':'Running'}}"), now = VAL_LIT("2026-01-01T00:00:00Z");
	CHECK_STR(tree_text(&a, pod_gc_patch(&a, pod, false, now)),
		  "{'metadata':{'uid':'u'},'status':{'observedGeneration':3,'phase':'Failed'}}");
	CHECK_STR(tree_text(&a, pod_gc_patch(&a, pod, true, now)),
		  "{'metadata':{'uid':'u'},'status':{'observedGeneration':3,'phase':'Failed','conditions':[{'type':'DisruptionTarget',"
		  "'observedGeneration':3,'status':'True','lastTransitionTime':'2026-01-01T00:00:00Z','reason':'DeletionByPodGC',"
		  "'message':'PodGC: node no longer exists'}]}}");
	CHECK(!val_exists(pod_gc_patch(&a, tree(&a, "{'status':{'phase':'Succeeded'}}"), true, now)));
}
