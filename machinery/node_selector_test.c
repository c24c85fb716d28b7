#include "machinery/node_selector.h"

#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/testing.h"

#define TERMS(terms) "{'nodeSelectorTerms':[" terms "]}"
#define LABEL(key, op, values) "{'matchExpressions':[{'key':'" key "','operator':'" op "','values':[" values "]}]}"
#define NAME(op, values) "{'matchFields':[{'key':'metadata.name','operator':'" op "','values':[" values "]}]}"

TEST(node_selector)
{
	/* want: 1, 0, or the error. */
	static const struct {
		const char *selector, *want;
	} t[] = {
		{ TERMS(""), "0" },
		{ TERMS("{}"), "0" },
		{ TERMS(LABEL("zone", "In", "'a','b'")), "1" },
		{ TERMS(LABEL("zone", "NotIn", "'a'")), "0" },
		{ TERMS(LABEL("cpus", "Gt", "'7'")), "1" },
		{ TERMS(LABEL("cpus", "Lt", "'8'")), "0" },
		{ TERMS(LABEL("gpu", "DoesNotExist", "")), "1" },
		{ TERMS(LABEL("zone", "In", "'x'") "," NAME("In", "'n1'")), "1" },
		{ TERMS(NAME("In", "'n2'")), "0" },
		{ TERMS(NAME("NotIn", "'n2'")), "1" },
		{ TERMS("{'matchExpressions':[{'key':'zone','operator':'Exists'}],"
			"'matchFields':[{'key':'metadata.name','operator':'In','values':['n2']}]}"), "0" },
		{ TERMS(LABEL("zone", "Is", "'a'") "," LABEL("zone", "Exists", "")), "1" },
		{ TERMS(LABEL("zone", "Is", "'a'")),
		  "nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: \"Is\": supported values: \"In\", \"NotIn\", "
		  "\"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\"" },
		{ TERMS("{}," LABEL("zone", "Gt", "'a'") "," NAME("Exists", "")),
		  "[nodeSelectorTerms[1].matchExpressions[0].values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an "
		  "integer, nodeSelectorTerms[2].matchFields[0].operator: Unsupported value: \"Exists\": supported values: \"In\", "
		  "\"NotIn\"]" },
		{ TERMS(NAME("In", "'n1','n2'")),
		  "nodeSelectorTerms[0].matchFields[0].values: Invalid value: [\"n1\",\"n2\"]: must have one element" },
	};
	struct arena a = ARENA_INIT;
	struct val node = testing_typed(&a, TYPE(core_v1, Node), "{'metadata':{'name':'n1','labels':{'cpus':'8','zone':'a'}}}");
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct node_selector s;
		struct err err = ERR_INIT;
		node_selector_compile(&a, testing_typed(&a, TYPE(core_v1, NodeSelector), t[i].selector), NULL, &s);
		int r = node_selector_matches(&s, node, &err);
		CHECK_STR_ROW(i, r < 0 ? err_str(&err) : r ? STR("1") : STR("0"), t[i].want);
		if (r < 0)
			CHECK_ROW(i, node_selector_check(&s, NULL) == -ERR_INVALID);
	}
	arena_done(&a);
}

TEST(node_affinity)
{
	static const struct {
		const char *spec;
		int want;
	} t[] = {
		{ "{}", 1 },
		{ "{'nodeSelector':{'zone':'a'}}", 1 },
		{ "{'nodeSelector':{'zone':'b'}}", 0 },
		{ "{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':" TERMS(LABEL("zone", "In", "'a'")) "}}}", 1 },
		{ "{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':" TERMS(LABEL("zone", "In", "'b'")) "}}}", 0 },
		{ "{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':" TERMS("") "}}}", 0 },
		{ "{'nodeSelector':{'zone':'b'},'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':" TERMS(
			  LABEL("zone", "In", "'a'")) "}}}", 0 },
	};
	struct arena a = ARENA_INIT;
	struct val node = testing_typed(&a, TYPE(core_v1, Node), "{'metadata':{'name':'n1','labels':{'zone':'a'}}}");
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct node_affinity f;
		node_affinity_compile(&a, testing_typed(&a, TYPE(core_v1, PodSpec), t[i].spec), &f);
		CHECK_ROW(i, node_affinity_matches(&f, node, NULL) == t[i].want);
	}
	arena_done(&a);
}
