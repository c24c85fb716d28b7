#include "controllers/taint_eviction_plan.h"

#include "base/clock.h"
#include "controllers/plan_testing.h"
#include "controllers/taints.h"

#define T "{'key':'k','value':'x','effect':'NoExecute'}"
#define NOW (1000 * NS_PER_S)

TEST(taint_tolerated_seconds)
{
	static const struct {
		const char *taints, *tolerations;
		int64_t want;
	} t[] = {
		{ "[]", "[]", TOLERATED_FOREVER },
		{ "[" T "]", "[]", 0 },
		{ "[" T "]", "[{'key':'k','operator':'Equal','value':'x'}]", TOLERATED_FOREVER },
		{ "[" T "]", "[{'key':'k','value':'y'}]", 0 },
		{ "[" T "]", "[{'operator':'Exists'}]", TOLERATED_FOREVER },
		{ "[" T "]", "[{'key':'k','operator':'Exists','effect':'NoSchedule'}]", 0 },
		{ "[" T "]", "[{'key':'k','operator':'Exists','tolerationSeconds':5}]", 5 },
		{ "[" T "]", "[{'key':'k','operator':'Exists','tolerationSeconds':-5}]", 0 },
		{ "[" T ",{'key':'j','effect':'NoExecute'}]", "[{'key':'k','operator':'Exists','tolerationSeconds':5}]", 0 },
		{ "[" T ",{'key':'j','effect':'NoExecute'}]", "[{'key':'k','operator':'Exists','tolerationSeconds':5},{'key':'j','operator':'Exists','tolerationSeconds':3}]", 3 },
		{ "[" T "]", "[{'key':'k','operator':'Exists'},{'key':'k','operator':'Exists','tolerationSeconds':5}]", TOLERATED_FOREVER },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, taints_tolerated_s(tree(&a, t[i].taints), tree(&a, t[i].tolerations), NULL) == t[i].want);
}

TEST(taint_eviction_steps)
{
	const char *five = "[{'key':'k','operator':'Exists','tolerationSeconds':5}]";
	const struct {
		const char *taints, *tolerations;
		struct eviction now;
		enum eviction_state state;
		int64_t due_ns;
		bool canceled, evict;
	} t[] = {
		{ "[" T "]", "[]", { EVICTION_NONE, 0 }, EVICTION_DONE, 0, false, true },
		{ "[" T "]", five, { EVICTION_NONE, 0 }, EVICTION_DUE, NOW + 5 * NS_PER_S, false, false },
		{ "[" T "]", five, { EVICTION_DUE, NOW + 2 }, EVICTION_DUE, NOW + 2, false, false },
		{ "[" T "]", five, { EVICTION_DUE, NOW }, EVICTION_DONE, 0, false, true },
		{ "[" T "]", "[]", { EVICTION_DUE, NOW + 2 }, EVICTION_DONE, 0, true, true },
		{ "[]", five, { EVICTION_DUE, NOW + 2 }, EVICTION_NONE, 0, true, false },
		{ "[" T "]", "[{'operator':'Exists'}]", { EVICTION_DUE, NOW + 2 }, EVICTION_NONE, 0, true, false },
		{ "[" T "]", "[]", { EVICTION_DONE, 0 }, EVICTION_DONE, 0, false, false },
		{ "[]", "[]", { EVICTION_DONE, 0 }, EVICTION_NONE, 0, false, false },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct eviction_plan p = taint_eviction_plan(tree(&a, t[i].taints), tree(&a, t[i].tolerations), t[i].now, NOW);
		CHECK_ROW(i, p.next.state == t[i].state);
		CHECK_ROW(i, p.next.due_ns == t[i].due_ns);
		CHECK_ROW(i, p.tell_canceled == t[i].canceled);
		CHECK_ROW(i, p.evict == t[i].evict);
	}
}
