#include "controllers/endpoints_plan.h"

#include "codec/atoms.h"
#include "controllers/labels.h"
#include "controllers/plan_testing.h"

#define SERVICE "{'metadata':{'name':'s','namespace':'ns'},'spec':{'clusterIP':'10.96.0.1','ipFamilies':['IPv4'],'ports':[{'name':'http','protocol':'TCP','targetPort':8080}]}}"

static struct val pod(struct arena *a, int i, const char *ready)
{
	return tree(a, arena_printf(a, "{'metadata':{'name':'p%d','namespace':'ns','uid':'u%d'},'spec':{'nodeName':'n1'},'status':{'podIP':'10.0.%d.%d',"
				       "'podIPs':[{'ip':'10.0.%d.%d'}],'conditions':[{'type':'Ready','status':'%s'}]}}", i, i, i / 250, i % 250, i / 250, i % 250, ready).p);
}

TEST(endpoints_of_pods)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pods = LIST(&a, pod(&a, 2, "True"), pod(&a, 1, "False"));
	struct val made = endpoints_plan(&a, tree(&a, SERVICE), pods, VAL_EMPTY, STR("2026-01-01T00:00:00Z"), ENDPOINTS_CAPACITY);

	CHECK_STR(tree_text(&a, val_get(made, subsets)),
		  "[{'addresses':[{'ip':'10.0.0.2','nodeName':'n1','targetRef':{'kind':'Pod','namespace':'ns','name':'p2','uid':'u2'}}],"
		  "'notReadyAddresses':[{'ip':'10.0.0.1','nodeName':'n1','targetRef':{'kind':'Pod','namespace':'ns','name':'p1','uid':'u1'}}],"
		  "'ports':[{'name':'http','port':8080,'protocol':'TCP'}]}]");
	CHECK_STR(label_of(made, STR("endpoints.kubernetes.io/managed-by")), "endpoint-controller");
	CHECK_STR(annotation_of(made, STR(TRIGGER_TIME_ANNOTATION)), "2026-01-01T00:00:00Z");
	CHECK(!val_exists(endpoints_plan(&a, tree(&a, SERVICE), pods, made, STR_NONE, ENDPOINTS_CAPACITY)));
	struct val none = endpoints_plan(&a, tree(&a, SERVICE), VAL_EMPTY_LIST, made, STR_NONE, ENDPOINTS_CAPACITY);
	CHECK(val_exists(none) && !val_has(none, subsets) && !annotation_has(none, STR(TRIGGER_TIME_ANNOTATION)));
}

TEST(endpoints_over_capacity)
{
	static const struct {
		int ready, waiting;
		unsigned want_ready, want_waiting;
		bool cut;
	} t[] = { { 4, 3, 4, 3, false }, { 4, 8, 4, 6, true }, { 10, 1, 10, 0, true }, { 15, 5, 10, 0, true } };

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val_builder pods = val_builder(&a);
		for (int n = 0; n < t[i].ready + t[i].waiting; n++)
			val_add_item(&pods, pod(&a, n, n < t[i].ready ? "True" : "False"));
		struct val made = endpoints_plan(&a, tree(&a, SERVICE), val_end_list(&pods), VAL_EMPTY, STR_NONE, 10);
		struct val subset = val_at(val_get(made, subsets), 0);
		CHECK_ROW(i, val_len(val_get(subset, addresses)) == t[i].want_ready);
		CHECK_ROW(i, val_len(val_get(subset, notReadyAddresses)) == t[i].want_waiting);
		CHECK_ROW(i, str_eq(annotation_of(made, STR("endpoints.kubernetes.io/over-capacity")), STR("truncated")) == t[i].cut);
	}
}

TEST(endpoints_usual_form)
{
	static const struct {
		const char *from, *to;
	} t[] = {
		{ "[]", "[]" },
		{ "[{'addresses':[{'ip':'10.0.0.2'}],'ports':[{'port':1}]},{'addresses':[{'ip':'10.0.0.1'}],'ports':[{'port':1}]}]",
		  "[{'addresses':[{'ip':'10.0.0.1'},{'ip':'10.0.0.2'}],'ports':[{'port':1}]}]" },
		{ "[{'addresses':[{'ip':'10.0.0.1'}],'ports':[{'port':1}]},{'addresses':[{'ip':'10.0.0.1'}],'ports':[{'port':2}]}]",
		  "[{'addresses':[{'ip':'10.0.0.1'}],'ports':[{'port':1},{'port':2}]}]" },
		{ "[{'addresses':[{'ip':'10.0.0.1'}],'notReadyAddresses':[{'ip':'10.0.0.1'}],'ports':[{'port':1}]}]",
		  "[{'notReadyAddresses':[{'ip':'10.0.0.1'}],'ports':[{'port':1}]}]" },
		{ "[{'addresses':[{'ip':'10.0.0.1'}]}]", "[{'addresses':[{'ip':'10.0.0.1'}]}]" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, tree_text(&a, endpoint_subsets(&a, tree(&a, t[i].from))), t[i].to);
}
