#include "controllers/service_pods.h"

#include "controllers/plan_testing.h"

TEST(service_selects_pods)
{
	static const struct {
		const char *service, *pod;
		bool has, selects;
	} t[] = {
		{ "{'spec':{'selector':{'a':'b'}}}", "{'metadata':{'labels':{'a':'b','c':'d'}}}", true, true },
		{ "{'spec':{'selector':{'a':'b'}}}", "{'metadata':{'labels':{'a':'x'}}}", true, false },
		{ "{'spec':{'selector':{'a':'b'}}}", "{}", true, false },
		{ "{'spec':{}}", "{'metadata':{'labels':{'a':'b'}}}", false, false },
		{ "{'spec':{'type':'ExternalName','selector':{'a':'b'}}}", "{}", false, false },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_ROW(i, service_has_selector(tree(&a, t[i].service)) == t[i].has);
		CHECK_ROW(i, service_selects(tree(&a, t[i].service), tree(&a, t[i].pod)) == t[i].selects);
	}
}

#define POD(name, at) "{'metadata':{'name':'" name "'},'status':{'conditions':[{'type':'Ready','lastTransitionTime':'2026-01-01T00:00:" at "Z'}]}}"

TEST(trigger_time_is_of_the_oldest_change_that_is_new)
{
	static const struct {
		const char *pods, *want;
	} t[] = { /* one look after the other */
		{ "[" POD("a", "30") "]", "2026-01-01T00:00:00Z" }, /* the first: the service is new */
		{ "[" POD("a", "30") "]", "" },
		{ "[" POD("a", "45") "," POD("b", "40") "]", "2026-01-01T00:00:40Z" },
		{ "[" POD("b", "40") "," POD("c", "50") "]", "2026-01-01T00:00:50Z" },
		{ "[]", "" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val service = tree(&a, "{'metadata':{'creationTimestamp':'2026-01-01T00:00:00Z'}}");
	struct trigger_times times = { 0 };

	map_init(&times.by_service);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, trigger_times_next(&times, &a, STR("ns/s"), service, tree(&a, t[i].pods)), t[i].want);
	trigger_times_forget(&times, STR("ns/s"));
	trigger_times_done(&times);
}
