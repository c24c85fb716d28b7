#include "base/clock.h"
#include "controllers/daemon_set_plan.h"
#include "controllers/plan_testing.h"

/* A pod from words: name, node, R (ready), U (not ready), F, S (ended), T (ended, being deleted), "old" for an older revision, "del", "free" (not bound). */
static struct val pod_of(struct arena *a, str words)
{
	str name, node, state, word, rest = words;
	bool old = false, going = false, unbound = false;

	str_cut(rest, ' ', &name, &rest);
	str_cut(rest, ' ', &node, &rest);
	str_cut(rest, ' ', &state, &rest);
	while (rest.n) {
		str_cut(rest, ' ', &word, &rest);
		old |= str_eq(word, STR("old"));
		going |= str_eq(word, STR("del"));
		unbound |= str_eq(word, STR("free"));
	}
	char s = state.p[0];
	const char *phase = s == 'F' || s == 'T' ? "Failed" : s == 'S' ? "Succeeded" : "Running";
	str spec = unbound ? arena_printf(a, "{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchFields':"
					     "[{'key':'metadata.name','operator':'In','values':['" STR_FMT "']}]}]}}}}", STR_ARG(node))
			   : arena_printf(a, "{'nodeName':'" STR_FMT "'}", STR_ARG(node));
	str text = arena_printf(a, "{'metadata':{'name':'" STR_FMT "'%s,'labels':{'controller-revision-hash':'%s'}},'spec':" STR_FMT ",'status':{'phase':'%s',"
				   "'conditions':[{'type':'Ready','status':'%s','lastTransitionTime':'1970-01-01T00:00:10Z'}]}}",
				STR_ARG(name), going || s == 'T' ? ",'deletionTimestamp':'1970-01-01T00:00:10Z'" : "", old ? "h1" : "h2", STR_ARG(spec), phase,
				s == 'R' ? "True" : "False");
	return tree(a, text.p);
}

static int64_t wait_for_slow(void *arg, str node)
{
	(void)arg;
	return str_eq(node, STR("slow")) ? 5 * NS_PER_S : 0;
}

static str run(struct arena *a, const char *spec, const char *nodes, const char *pods)
{
	struct daemon_view v = { .hash = STR("h2"), .now_ns = 100 * NS_PER_S, .wait_ns = wait_for_slow, .nodes = tree(a, nodes) };
	struct val_builder b = val_builder(a);
	struct daemon_plan p;
	str out = STR_NONE;

	v.set = OBJECT(a, F(metadata, tree(a, "{'name':'d','generation':3}")), F(spec, tree(a, spec)));
	for (str one, rest = str_of(pods); rest.n;) {
		str_cut(rest, ';', &one, &rest);
		val_add_item(&b, pod_of(a, str_trim(one)));
	}
	v.pods = val_end_list(&b);
	daemon_plan_make(a, &v, &p);
	for (size_t i = 0; i < p.n_create; i++)
		out = arena_printf(a, STR_FMT "+" STR_FMT " ", STR_ARG(out), STR_ARG(p.create[i]));
	for (size_t i = 0; i < p.n_remove; i++)
		out = arena_printf(a, STR_FMT "-" STR_FMT " ", STR_ARG(out), STR_ARG(val_str(p.remove[i], metadata, name)));
	for (size_t i = 0; i < p.n_ended; i++)
		out = arena_printf(a, STR_FMT "%s ", STR_ARG(out), p.ended[i].failed ? "failed" : "succeeded");
	if (p.again_ns)
		out = arena_printf(a, STR_FMT "again %ds ", STR_ARG(out), (int)(p.again_ns / NS_PER_S));
	struct val s = daemon_status(a, &v, true);
	return arena_printf(a, STR_FMT "want %d have %d bad %d ready %d new %d av %d", STR_ARG(out), (int)val_int(s, desiredNumberScheduled),
			    (int)val_int(s, currentNumberScheduled), (int)val_int(s, numberMisscheduled), (int)val_int(s, numberReady),
			    (int)val_int(s, updatedNumberScheduled), (int)val_int(s, numberAvailable));
}

#define NODE(name, spec) "{'metadata':{'name':'" name "','labels':{'n':'" name "'}},'spec':" spec "}"
#define TWO "[" NODE("b", "{}") "," NODE("a", "{}") "]"
#define FOUR "[" NODE("a", "{}") "," NODE("b", "{}") "," NODE("c", "{}") "," NODE("d", "{}") "]"
#define TAINTED(effect) "[" NODE("a", "{}") "," NODE("b", "{'taints':[{'key':'x','effect':'" effect "'}]}") "]"
#define UPDATE(how) "{'template':{'spec':{}},'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{" how "}}}"
#define PLAIN UPDATE("'maxUnavailable':1,'maxSurge':0")
#define SURGE UPDATE("'maxUnavailable':0,'maxSurge':1")

TEST(daemon_set_one_look)
{
	static const struct { const char *spec, *nodes, *pods, *want; } t[] = {
		/* which nodes */
		{ PLAIN, TWO, "", "+a +b want 2 have 0 bad 0 ready 0 new 0 av 0" },
		{ PLAIN, TWO, "p a R", "+b want 2 have 1 bad 0 ready 1 new 1 av 1" },
		{ PLAIN, TWO, "p a R;q b U free", "want 2 have 2 bad 0 ready 1 new 2 av 1" },
		{ "{'template':{'spec':{'nodeSelector':{'n':'b'}}}}", TWO, "p a R", "+b -p want 1 have 0 bad 1 ready 0 new 0 av 0" },
		{ "{'template':{'spec':{'nodeName':'a'}}}", TWO, "", "+a want 1 have 0 bad 0 ready 0 new 0 av 0" },
		{ PLAIN, TAINTED("NoSchedule"), "p a R;q b R", "want 1 have 1 bad 1 ready 1 new 1 av 1" },
		{ PLAIN, TAINTED("NoExecute"), "p a R;q b R", "-q want 1 have 1 bad 1 ready 1 new 1 av 1" },
		{ PLAIN, TAINTED("PreferNoSchedule"), "p a R;q b R", "want 2 have 2 bad 0 ready 2 new 2 av 2" },
		{ PLAIN, "[" NODE("a", "{'taints':[{'key':'node.kubernetes.io/unschedulable','effect':'NoSchedule'}]}") "]", "",
		  "+a want 1 have 0 bad 0 ready 0 new 0 av 0" },
		{ PLAIN, TWO, "p a R;q b R;x gone R;y gone U free", "-y want 2 have 2 bad 0 ready 2 new 2 av 2" },
		/* too many, ended */
		{ PLAIN, TWO, "p a R;q b R;r b R", "-r want 2 have 2 bad 0 ready 2 new 2 av 2" },
		{ PLAIN, TWO, "p a R;q b F", "-q failed want 2 have 2 bad 0 ready 1 new 2 av 1" },
		{ PLAIN, TWO, "p a R;q b S", "-q succeeded want 2 have 2 bad 0 ready 1 new 2 av 1" },
		{ PLAIN, "[" NODE("slow", "{}") "]", "p slow F", "again 5s want 1 have 1 bad 0 ready 0 new 1 av 0" },
		{ PLAIN, TWO, "p a R;q b T", "+b want 2 have 1 bad 0 ready 1 new 1 av 1" },
		{ PLAIN, TWO, "p a R;q b R del", "want 2 have 2 bad 0 ready 2 new 2 av 2" },
		/* updates: old ones go first */
		{ PLAIN, TWO, "p a R old;q b R old", "-p want 2 have 2 bad 0 ready 2 new 0 av 2" },
		{ PLAIN, TWO, "p a R old del;q b R old", "want 2 have 2 bad 0 ready 2 new 0 av 2" },
		{ PLAIN, TWO, "p a U;q b R old", "want 2 have 2 bad 0 ready 1 new 1 av 1" },
		{ PLAIN, TWO, "p a R;q b R old", "-q want 2 have 2 bad 0 ready 2 new 1 av 2" },
		{ PLAIN, TWO, "p a U old;q b U old", "-p -q want 2 have 2 bad 0 ready 0 new 0 av 0" },
		{ UPDATE("'maxUnavailable':'50%'"), FOUR, "p a R old;q b R old;r c R old;s d R old", "-p -q want 4 have 4 bad 0 ready 4 new 0 av 4" },
		{ "{'template':{'spec':{}},'updateStrategy':{'type':'OnDelete'}}", TWO, "p a R old;q b R old", "want 2 have 2 bad 0 ready 2 new 0 av 2" },
		/* new ones come first */
		{ SURGE, TWO, "p a R old;q b R old", "+a want 2 have 2 bad 0 ready 2 new 0 av 2" },
		{ SURGE, TWO, "p a R old;pp a U;q b R old", "want 2 have 2 bad 0 ready 2 new 0 av 2" },
		{ SURGE, TWO, "p a R old;pp a R;q b R old", "-p want 2 have 2 bad 0 ready 2 new 0 av 2" },
		{ SURGE, TWO, "p a U old;q b R", "+a want 2 have 2 bad 0 ready 1 new 1 av 1" },
		{ SURGE, TWO, "p a U old;pp a U;q b R", "-p want 2 have 2 bad 0 ready 1 new 1 av 1" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_STR_ROW(i, run(&a, t[i].spec, t[i].nodes, t[i].pods), t[i].want);
	}
}

TEST(daemon_set_template)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val set = tree(&a, "{'metadata':{'annotations':{'deprecated.daemonset.template.generation':'2'}},'spec':{'template':{'metadata':{'labels':{'app':'d'}},"
				  "'spec':{'hostNetwork':true,'tolerations':[{'key':'node.kubernetes.io/not-ready','operator':'Exists','effect':'NoExecute',"
				  "'tolerationSeconds':5}]}}}}");
	struct val t = daemon_template(&a, set, STR("h"));

	CHECK_STR(tree_text(&a, val_get(t, metadata, labels)), "{'app':'d','pod-template-generation':'2','controller-revision-hash':'h'}");
	CHECK_INT(val_len(val_get(t, spec, tolerations)), 7);
	CHECK(!val_has(val_at(val_get(t, spec, tolerations), 0), tolerationSeconds));
	struct val spec = daemon_spec_for(&a, tree(&a, "{'affinity':{'podAntiAffinity':{}}}"), STR("n1"));
	CHECK_STR(tree_text(&a, spec),
		  "{'affinity':{'podAntiAffinity':{},'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchFields':"
		  "[{'key':'metadata.name','operator':'In','values':['n1']}]}]}}}}");
	CHECK_STR(daemon_target(OBJECT(&a, F(spec, spec))), "n1");
	CHECK(daemon_is_updated(set, tree(&a, "{'metadata':{'labels':{'pod-template-generation':'2'}}}"), STR("h")));
	CHECK(!daemon_is_updated(set, tree(&a, "{'metadata':{'labels':{'controller-revision-hash':'x'}}}"), STR("h")));
}
