#include "codec/atoms.h"
#include "scheduler/label_match.h"
#include "scheduler/plugin_testing.h"

#define NODE(name, labels) "{'metadata':{'name':'" name "','labels':{" labels "}}}"
#define REQUIRED(terms) "{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[" terms "]}}}}}"
#define PREFERRED(terms) "{'spec':{'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[" terms "]}}}}"
#define EXPRESSION(key, operator, values) "{'matchExpressions':[{'key':'" key "','operator':'" operator "','values':[" values "]}]}"
#define FIELD_NAME(operator, values) "{'matchFields':[{'key':'metadata.name','operator':'" operator "','values':[" values "]}]}"
#define WEIGHT(weight, term) "{'weight':" weight ",'preference':" term "}"
#define NO "UNRESOLVABLE node(s) didn't match Pod's node affinity/selector"

static void three_nodes(struct world *w)
{
	world_init(w, &plugin_node_affinity);
	world_node(w, NODE("a", "'disk':'ssd','cores':'8'"));
	world_node(w, NODE("b", "'disk':'hdd','cores':'4'"));
	world_node(w, NODE("c", "'cores':'many'"));
}

TEST(node_affinity_filter)
{
	static const struct {
		const char *pod, *want;
	} t[] = {
		{ "{'spec':{}}", "skip" },
		{ "{'spec':{'nodeSelector':{'disk':'ssd'}}}", "a: FIT, b: " NO ", c: " NO },
		{ "{'spec':{'nodeSelector':{'disk':'ssd','cores':'4'}}}", "a: " NO ", b: " NO ", c: " NO },
		{ "{'spec':{'nodeSelector':{'strange':'x'}}}", "a: " NO ", b: " NO ", c: " NO },
		{ REQUIRED(EXPRESSION("disk", "In", "'ssd','tape'")), "a: FIT, b: " NO ", c: " NO },
		{ REQUIRED(EXPRESSION("disk", "NotIn", "'ssd'")), "a: " NO ", b: FIT, c: FIT" },
		{ REQUIRED(EXPRESSION("strange", "NotIn", "'x'")), "a: FIT, b: FIT, c: FIT" },
		{ REQUIRED(EXPRESSION("disk", "Exists", "")), "a: FIT, b: FIT, c: " NO },
		{ REQUIRED(EXPRESSION("disk", "DoesNotExist", "")), "a: " NO ", b: " NO ", c: FIT" },
		{ REQUIRED(EXPRESSION("cores", "Gt", "'4'")), "a: FIT, b: " NO ", c: " NO },
		{ REQUIRED(EXPRESSION("cores", "Lt", "'8'")), "a: " NO ", b: FIT, c: " NO },
		/* One of several terms is enough; all of a term must hold. */
		{ REQUIRED(EXPRESSION("disk", "In", "'ssd'") "," EXPRESSION("cores", "In", "'many'")), "a: FIT, b: " NO ", c: FIT" },
		{ REQUIRED("{'matchExpressions':[{'key':'disk','operator':'Exists'},{'key':'cores','operator':'Lt','values':['5']}]}"),
		  "a: " NO ", b: FIT, c: " NO },
		/* No term, an empty one, and one that makes no sense match nothing. */
		{ REQUIRED(""), "a: " NO ", b: " NO ", c: " NO },
		{ REQUIRED("{}"), "a: " NO ", b: " NO ", c: " NO },
		{ REQUIRED(EXPRESSION("disk", "Like", "'ssd'") "," EXPRESSION("disk", "In", "'hdd'")), "a: " NO ", b: FIT, c: " NO },
		{ REQUIRED(FIELD_NAME("NotIn", "'a'")), "a: " NO ", b: FIT, c: FIT" },
		/* Names leave only those nodes to be asked. */
		{ REQUIRED(FIELD_NAME("In", "'b'")), "b: FIT" },
		{ REQUIRED(FIELD_NAME("In", "'c'") "," FIELD_NAME("In", "'a'") "," FIELD_NAME("In", "'c'")), "a: FIT, c: FIT" },
		{ REQUIRED(FIELD_NAME("In", "'gone'")), "" },
		{ REQUIRED(FIELD_NAME("In", "'b'") "," EXPRESSION("disk", "In", "'ssd'")), "a: FIT, b: FIT, c: " NO },
		{ REQUIRED("{'matchFields':[{'key':'metadata.name','operator':'In','values':['a']},{'key':'metadata.name','operator':'In','values':"
			   "['b']}]}"), "UNRESOLVABLE pod affinity terms conflict" },
		{ REQUIRED("{'matchFields':[{'key':'metadata.name','operator':'In','values':['b']}],'matchExpressions':[{'key':'disk','operator':'In',"
			   "'values':['ssd']}]}"), "b: " NO },
	};
	struct world w;

	three_nodes(&w);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, world_filter(&w, t[i].pod), t[i].want);
	world_done(&w);
}

TEST(node_affinity_score)
{
	static const struct {
		const char *pod, *want;
	} t[] = {
		{ "{'spec':{}}", "skip" },
		{ PREFERRED(WEIGHT("2", EXPRESSION("disk", "In", "'ssd'"))), "a: 100, b: 0, c: 0" },
		{ PREFERRED(WEIGHT("2", EXPRESSION("disk", "In", "'ssd'")) "," WEIGHT("5", EXPRESSION("disk", "Exists", "")) ","
			    WEIGHT("1", EXPRESSION("cores", "Exists", ""))), "a: 100, b: 75, c: 12" },
		{ PREFERRED(WEIGHT("9", "{}")), "a: 0, b: 0, c: 0" },
	};
	struct world w;

	three_nodes(&w);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, world_score(&w, t[i].pod), t[i].want);
	world_done(&w);
}

TEST(node_affinity_of_the_profile)
{
	struct world w;

	three_nodes(&w);
	CHECK_STR(world_configure(&w, TYPE(kubeschedulerconfig_v1, NodeAffinityArgs),
				  "{'addedAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':["
				  EXPRESSION("disk", "Exists", "") "]},'preferredDuringSchedulingIgnoredDuringExecution':["
				  WEIGHT("3", EXPRESSION("disk", "In", "'hdd'")) "]}}"), "");
	CHECK_STR(world_filter(&w, "{'spec':{}}"), "a: FIT, b: FIT, c: UNRESOLVABLE node(s) didn't match scheduler-enforced node affinity");
	CHECK_STR(world_filter(&w, "{'spec':{'nodeSelector':{'disk':'ssd'}}}"),
		  "a: FIT, b: " NO ", c: UNRESOLVABLE node(s) didn't match scheduler-enforced node affinity");
	CHECK_STR(world_score(&w, "{'spec':{}}"), "a: 0, b: 100, c: 0");
	CHECK_STR(world_score(&w, PREFERRED(WEIGHT("6", EXPRESSION("disk", "In", "'ssd'")))), "a: 100, b: 50, c: 0");
	CHECK(!world_hint(&w, TYPE(core_v1, Node), "{'spec':{}}", EV_NODE_ADD, NULL, NODE("x", "")));
	CHECK(world_hint(&w, TYPE(core_v1, Node), "{'spec':{}}", EV_NODE_ADD, NULL, NODE("x", "'disk':'x'")));
	world_done(&w);
}

TEST(node_affinity_arguments_are_checked)
{
	struct world w;

	world_init(&w, &plugin_node_affinity);
	CHECK_STR(world_configure(&w, TYPE(kubeschedulerconfig_v1, NodeAffinityArgs), "{}"), "");
	CHECK(w.config == NULL);
	CHECK_STR(world_configure(&w, TYPE(kubeschedulerconfig_v1, NodeAffinityArgs),
				  "{'addedAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':["
				  EXPRESSION("disk", "In", "") "]}}}"),
		  "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: null: "
		  "for 'in', 'notin' operators, values set can't be empty");
	CHECK_STR(world_configure(&w, TYPE(kubeschedulerconfig_v1, NodeAffinityArgs),
				  "{'addedAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':["
				  WEIGHT("3", EXPRESSION("disk", "Like", "'x'")) "]}}"),
		  "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].matchExpressions[0].operator: Unsupported value: \"Like\": "
		  "supported values: \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\"");
	CHECK(w.config == NULL);
	world_done(&w);
}

TEST(node_affinity_hint)
{
	static const char pod[] = "{'spec':{'nodeSelector':{'disk':'ssd'}}}";
	static const struct {
		const char *old, *new;
		bool want;
	} t[] = {
		{ NULL, NODE("n", "'disk':'ssd'"), true },
		{ NULL, NODE("n", ""), false },
		{ NODE("n", ""), NODE("n", "'disk':'ssd'"), true },
		{ NODE("n", "'disk':'ssd'"), NODE("n", "'disk':'ssd','x':'y'"), false },
		{ NODE("n", "'disk':'ssd'"), NODE("n", ""), false },
	};
	struct world w;

	world_init(&w, &plugin_node_affinity);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, world_hint(&w, TYPE(core_v1, Node), pod, t[i].old ? EV_NODE_LABEL : EV_NODE_ADD, t[i].old, t[i].new) == t[i].want);
	world_done(&w);
}

/* ---- the fast way and the plain one ---- */

static unsigned chance(uint64_t *seed, unsigned n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*seed >> 33) % n;
}

static str random_term(struct arena *a, uint64_t *seed)
{
	static const char *const operators[] = { "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt" };
	unsigned op = chance(seed, 6), x = chance(seed, 4), y = chance(seed, 4), n = op < 2 ? 1 + chance(seed, 2) : op < 4 ? 0 : 1;
	str expression = arena_printf(a, "{'key':'k%u','operator':'%s','values':[", chance(seed, 4), operators[op]);
	str fields = STR("");

	if (n)
		expression = arena_join(a, expression, n == 2 ? arena_printf(a, "'%u','%u'", x, y) : arena_printf(a, "'%u'", x));
	if (chance(seed, 5) == 0)
		fields = arena_printf(a, ",'matchFields':[{'key':'metadata.name','operator':'%s','values':['n%u']}]", operators[chance(seed, 2)], x);
	return arena_printf(a, "{'matchExpressions':[" STR_FMT "]}]" STR_FMT "}", STR_ARG(expression), STR_ARG(fields));
}

TEST(node_match_agrees_with_node_affinity)
{
	struct world w;
	uint64_t seed = 7;
	unsigned matched = 0;

	world_init(&w, &plugin_node_affinity);
	for (unsigned i = 0; i < 16; i++)
		world_node(&w, arena_printf(&w.arena, "{'metadata':{'name':'n%u','labels':{'k%u':'%u','k%u':'%u'}}}", i, i % 2, chance(&seed, 4),
					    2 + chance(&seed, 2), chance(&seed, 4)).p);
	for (unsigned i = 0; i < 500; i++) {
		str selector = chance(&seed, 3) ? STR("") : arena_printf(&w.arena, "'nodeSelector':{'k%u':'%u'},", chance(&seed, 4), chance(&seed, 4));
		str x = random_term(&w.arena, &seed), y = random_term(&w.arena, &seed);
		str pod = arena_printf(&w.arena, "{" STR_FMT "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
				       "'nodeSelectorTerms':[" STR_FMT "," STR_FMT "]}}}}", STR_ARG(selector), STR_ARG(x), STR_ARG(y));
		struct val spec = world_object(&w, TYPE(core_v1, PodSpec), pod.p);
		struct node_affinity plain;
		struct node_match fast;
		node_affinity_compile(&w.arena, spec, &plain);
		node_match_compile(&w.arena, &w.table, spec, &fast);
		for (uint32_t n = 0; n < w.table.n; n++) {
			bool want = node_affinity_matches(&plain, w.table.object[n]->val, NULL) == 1;
			CHECK_ROW(i, node_match(&w.table, &fast, n) == want);
			matched += want;
		}
	}
	CHECK(matched > 1000 && matched < 7000);
	world_done(&w);
}
