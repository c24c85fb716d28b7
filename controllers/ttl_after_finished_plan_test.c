#include "base/clock.h"
#include "controllers/plan_testing.h"
#include "controllers/ttl_after_finished_plan.h"

TEST(ttl_after_finished)
{
#define ENDED(type, status) "'status':{'conditions':[{'type':'" type "','status':'" status "','lastTransitionTime':'1970-01-01T00:01:40Z'}]}}"
	static const struct { const char *job; int r; int64_t left_s; } t[] = {
		{ "{'spec':{'ttlSecondsAfterFinished':30}," ENDED("Complete", "True"), 1, 10 },
		{ "{'spec':{'ttlSecondsAfterFinished':20}," ENDED("Failed", "True"), 1, 0 },
		{ "{'spec':{'ttlSecondsAfterFinished':0}," ENDED("Failed", "True"), 1, -20 },
		{ "{'spec':{'ttlSecondsAfterFinished':0}," ENDED("Failed", "False"), 0, 0 },
		{ "{'spec':{'ttlSecondsAfterFinished':0}," ENDED("FailureTarget", "True"), 0, 0 },
		{ "{'spec':{}," ENDED("Complete", "True"), 0, 0 },
		{ "{'metadata':{'deletionTimestamp':'1970-01-01T00:01:40Z'},'spec':{'ttlSecondsAfterFinished':0}," ENDED("Complete", "True"), 0, 0 },
		{ "{'spec':{'ttlSecondsAfterFinished':0},'status':{'conditions':[{'type':'Complete','status':'True'}]}}", -ERR_INVALID, 0 },
	};
#undef ENDED

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		int64_t left = 0;
		CHECK_ROW(i, ttl_left(tree(&a, t[i].job), 120 * NS_PER_S, &left, NULL) == t[i].r);
		CHECK_ROW(i, left == t[i].left_s * NS_PER_S);
	}
}
