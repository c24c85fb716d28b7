/* What a rule covers, and what one must have to give it away. */
#include "apiserver/authz/rbac_rules.h"

#include "codec/atoms.h"
#include "machinery/testing.h"

static bool allows(struct arena *a, const char *rules, const struct authz_attributes *what)
{
	struct rbac_words words = { MAP_INIT };
	size_t n;
	struct rbac_rule *compiled = rbac_rules_compile(&words, testing_tree(a, rules), &n);
	struct rbac_question q = rbac_question(&words, a, what);
	bool yes = false;
	for (size_t i = 0; i < n; i++)
		yes |= rbac_rule_allows(&compiled[i], &q);
	rbac_rules_free(&words, compiled, n);
	CHECK_INT(map_len(&words.all), 0); /* no word is left behind */
	rbac_words_done(&words);
	return yes;
}

#define PODS "[{'verbs':['get','frob'],'apiGroups':['','apps'],'resources':['pods','pods/log','*/scale','a/b/c','x/']}]"
#define NAMED "[{'verbs':['*'],'apiGroups':['*'],'resources':['*'],'resourceNames':['a','']}]"
#define ALL "[{'verbs':['*'],'apiGroups':['*'],'resources':['*']}]"
#define URLS "[{'verbs':['get'],'nonResourceURLs':['/a','/b/*','/c**']}]"

TEST(rules_allow_resources)
{
	static const struct { const char *rules, *verb, *group, *resource, *subresource, *name; bool want; } t[] = {
		{ PODS, "get", "", "pods", "", "", true },
		{ PODS, "get", "apps", "pods", "", "x", true },
		{ PODS, "list", "", "pods", "", "", false },
		{ PODS, "frob", "", "pods", "", "", true },
		{ PODS, "frobs", "", "pods", "", "", false },
		{ PODS, "*", "", "pods", "", "", false },
		{ PODS, "get", "batch", "pods", "", "", false },
		{ PODS, "get", "*", "pods", "", "", false },
		{ PODS, "get", "", "pods", "log", "", true },
		{ PODS, "get", "", "pods", "exec", "", false },
		{ PODS, "get", "", "pods/log", "", "", true },
		{ PODS, "get", "", "deployments", "scale", "", true },
		{ PODS, "get", "", "deployments", "", "", false },
		{ PODS, "get", "", "*", "scale", "", true },
		{ PODS, "get", "", "scale", "", "", false },
		{ PODS, "get", "", "a", "b/c", "", true },
		{ PODS, "get", "", "a/b", "c", "", true },
		{ PODS, "get", "", "a/b", "scale", "", true },
		{ PODS, "get", "", "a/b", "", "", false },
		{ PODS, "get", "", "x/", "", "", true },
		{ PODS, "get", "", "x", "", "", false },
		{ PODS, "get", "", "", "", "", false },
		{ NAMED, "get", "", "pods", "", "a", true },
		{ NAMED, "get", "", "pods", "", "", true },
		{ NAMED, "get", "", "pods", "", "b", false },
		{ ALL, "*", "*", "*", "*", "*", true },
		{ ALL, "", "", "", "", "", true },
		{ URLS, "get", "", "pods", "", "", false },
		{ "[]", "get", "", "pods", "", "", false },
		{ "[{'verbs':['get'],'resources':['pods']}]", "get", "", "pods", "", "", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		const struct authz_attributes what = {
			.verb = str_of(t[i].verb), .is_resource = true, .group = str_of(t[i].group),
			.resource = str_of(t[i].resource), .subresource = str_of(t[i].subresource), .name = str_of(t[i].name),
		};
		CHECK_ROW(i, allows(&a, t[i].rules, &what) == t[i].want);
	}
}

TEST(rules_allow_paths)
{
	static const struct { const char *rules, *verb, *path; bool want; } t[] = {
		{ URLS, "get", "/a", true },     { URLS, "get", "/a/", false },  { URLS, "get", "/ab", false },
		{ URLS, "get", "/b/", true },    { URLS, "get", "/b/x/y", true }, { URLS, "get", "/b", false },
		{ URLS, "get", "/cd", true },    { URLS, "post", "/a", false },  { ALL, "get", "/a", false },
		{ "[{'verbs':['*'],'nonResourceURLs':['*']}]", "delete", "/x", true },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		const struct authz_attributes what = { .verb = str_of(t[i].verb), .path = str_of(t[i].path) };
		CHECK_ROW(i, allows(&a, t[i].rules, &what) == t[i].want);
	}
}

TEST(rules_that_are_missing)
{
	static const struct { const char *owned, *wanted, *want; } t[] = {
		{ "[]", "[]", "" },
		{ ALL, PODS, "" },
		{ PODS, PODS, "" },
		{ PODS, "[{'verbs':['get'],'apiGroups':[''],'resources':['deployments/scale','pods'],'resourceNames':['x']}]", "" },
		{ NAMED, "[{'verbs':['get'],'apiGroups':[''],'resources':['pods']}]",
		  "{APIGroups:[''], Resources:['pods'], Verbs:['get']}" },
		{ "[]", "[{'verbs':['list','get'],'apiGroups':['','apps'],'resources':['pods']}]",
		  "{APIGroups:[''], Resources:['pods'], Verbs:['list' 'get']}\n"
		  "{APIGroups:['apps'], Resources:['pods'], Verbs:['list' 'get']}" },
		{ PODS, "[{'verbs':['get','list'],'apiGroups':[''],'resources':['pods'],'resourceNames':['b','a']}]",
		  "{APIGroups:[''], Resources:['pods'], ResourceNames:['a'], Verbs:['list']}\n"
		  "{APIGroups:[''], Resources:['pods'], ResourceNames:['b'], Verbs:['list']}" },
		{ URLS, "[{'verbs':['get','post'],'nonResourceURLs':['/a','/b/c']}]",
		  "{NonResourceURLs:['/a'], Verbs:['post']}\n{NonResourceURLs:['/b/c'], Verbs:['post']}" },
		{ URLS, "[{'verbs':['get'],'nonResourceURLs':['/b/*','*']}]", "{NonResourceURLs:['*'], Verbs:['get']}" },
		{ "[{'verbs':['get'],'apiGroups':[''],'resources':['pods']},{'verbs':['list'],'apiGroups':[''],'resources':['*']}]",
		  "[{'verbs':['get','list'],'apiGroups':[''],'resources':['pods']}]", "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val owned = testing_tree(&a, t[i].owned);
		struct val_builder missing = val_builder(&a);
		CHECK_INT(rbac_rules_missing(&a, &owned, 1, testing_tree(&a, t[i].wanted), &missing, NULL), 0);
		CHECK_STR_ROW(i, testing_swap(&a, rbac_rules_text(&a, val_end_list(&missing)), '"', '\''), t[i].want);
	}
}

TEST(rules_with_endless_combinations)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val_builder words = val_builder(&a), missing = val_builder(&a);
	for (int i = 0; i < 400; i++)
		val_add_item(&words, val_of_str(arena_printf(&a, "w%d", i)));
	struct val list = val_end_list(&words), none = VAL_EMPTY_LIST;
	struct val rules = LIST(&a, OBJECT(&a, F(verbs, list), F(apiGroups, list), F(resources, list), F(resourceNames, list)));
	CHECK_INT(rbac_rules_missing(&a, &none, 1, rules, &missing, NULL), -ERR_TOO_LARGE);
}
