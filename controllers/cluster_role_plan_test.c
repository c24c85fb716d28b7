#include "controllers/cluster_role_plan.h"

#include "controllers/plan_testing.h"

#define AGGREGATED "'metadata':{'name':'all','labels':{'x':'y'}},'aggregationRule':{'clusterRoleSelectors':[{'matchLabels':{'x':'y'}}]}"

TEST(cluster_role_aggregation)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val roles = tree(&a, "[{" AGGREGATED ",'rules':[{'verbs':['own']}]},"
				    "{'metadata':{'name':'b','labels':{'x':'y'}},'rules':[{'verbs':['get']},{'verbs':['list']}]},"
				    "{'metadata':{'name':'c','labels':{'x':'z'}},'rules':[{'verbs':['never']}]},"
				    "{'metadata':{'name':'d','labels':{'x':'y'}},'rules':[{'verbs':['list']},{'verbs':['watch']}]}]");
	static const struct {
		const char *role;
		int r;
		const char *rules;
	} t[] = {
		{ "{" AGGREGATED ",'rules':[{'verbs':['own']}]}", 1, "[{'verbs':['get']},{'verbs':['list']},{'verbs':['watch']}]" },
		{ "{" AGGREGATED ",'rules':[{'verbs':['get']},{'verbs':['list']},{'verbs':['watch']}]}", 0, "" },
		{ "{'metadata':{'name':'e'},'aggregationRule':{'clusterRoleSelectors':[{'matchLabels':{'x':'none'}}]}}", 0, "" },
		{ "{'metadata':{'name':'e'},'rules':[{'verbs':['get']}],'aggregationRule':{}}", 1, "[]" },
		{ "{'metadata':{'name':'e'},'aggregationRule':{'clusterRoleSelectors':[{'matchExpressions':[{'key':'x','operator':'Is'}]}]}}",
		  -ERR_BAD_REQUEST, "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val rules = VAL_EMPTY;
		int r = cluster_role_rules(&a, tree(&a, t[i].role), roles, &rules, NULL);
		CHECK_ROW(i, r == t[i].r);
		CHECK_STR_ROW(i, r > 0 ? tree_text(&a, rules) : STR(""), t[i].rules);
	}
}
