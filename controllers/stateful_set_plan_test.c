#include "base/clock.h"
#include "controllers/plan_testing.h"
#include "controllers/stateful_set_plan.h"

/* A pod from words: name, then R (running and ready), P (pending), U (running, not ready), F (failed); an r<revision>; "del". */
static struct val pod_of(struct arena *a, str words)
{
	str name, state, revision = STR("new"), word, rest = words;
	bool going = false;

	str_cut(rest, ' ', &name, &rest);
	str_cut(rest, ' ', &state, &rest);
	while (rest.n) {
		str_cut(rest, ' ', &word, &rest);
		if (str_eq(word, STR("del")))
			going = true;
		else
			revision = word;
	}
	char s = state.p[0];
	const char *phase = s == 'P' ? "Pending" : s == 'F' ? "Failed" : "Running";
	str text = arena_printf(a, "{'metadata':{'name':'" STR_FMT "','namespace':'ns','uid':'" STR_FMT "'%s,'labels':{'controller-revision-hash':'" STR_FMT "',"
				   "'statefulset.kubernetes.io/pod-name':'" STR_FMT "'}},'spec':{},'status':{'phase':'%s','conditions':[{'type':'Ready','status':'%s',"
				   "'lastTransitionTime':'1970-01-01T00:00:10Z'}]}}",
				STR_ARG(name), STR_ARG(name), going ? ",'deletionTimestamp':'1970-01-01T00:00:10Z'" : "", STR_ARG(revision), STR_ARG(name), phase,
				s == 'R' ? "True" : "False");
	return tree(a, text.p);
}

static str run(struct arena *a, const char *spec, const char *pods)
{
	struct stateful_view v = { .current_revision = STR("old"), .update_revision = STR("new"), .now_ns = 100 * NS_PER_S };
	struct val_builder b = val_builder(a);
	struct stateful_plan p;
	str out = STR_NONE;

	v.set = OBJECT(a, F(metadata, tree(a, "{'name':'w','namespace':'ns','uid':'u','generation':2}")), F(spec, tree(a, spec)));
	v.current_template = v.update_template = tree(a, "{'metadata':{'labels':{'app':'w'}},'spec':{}}");
	for (str one, rest = str_of(pods); rest.n;) {
		str_cut(rest, ';', &one, &rest);
		val_add_item(&b, pod_of(a, str_trim(one)));
	}
	v.pods = val_end_list(&b);
	stateful_plan_make(a, &v, &p);
	for (size_t i = 0; i < p.n; i++) {
		static const char marks[] = { [STATEFUL_CREATE] = '+', [STATEFUL_CLAIMS] = 'c', [STATEFUL_UPDATE] = '=', [STATEFUL_SETTLE] = 's', [STATEFUL_DELETE] = '-' };
		str name = val_str(p.steps[i].pod, metadata, name), revision = val_as_str(val_find(val_get(p.steps[i].pod, metadata, labels), STR(STATEFUL_REVISION)));
		out = arena_printf(a, STR_FMT "%c" STR_FMT "%s ", STR_ARG(out), marks[p.steps[i].type], STR_ARG(name),
				   p.steps[i].type == STATEFUL_CREATE && str_eq(revision, STR("old")) ? "(old)" : "");
	}
	return arena_printf(a, STR_FMT "%d/%d cur %d upd %d av %d " STR_FMT, STR_ARG(out), (int)val_int(p.status, readyReplicas), (int)val_int(p.status, replicas),
			    (int)val_int(p.status, currentReplicas), (int)val_int(p.status, updatedReplicas), (int)val_int(p.status, availableReplicas),
			    STR_ARG(val_str(p.status, currentRevision)));
}

#define ROLLING(more) "{'replicas':3,'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{'partition':0}}" more "}"

TEST(stateful_set_one_look)
{
	static const struct { const char *spec, *pods, *want; } t[] = {
		/* in order, up and down */
		{ ROLLING(""), "", "+w-0 0/0 cur 0 upd 0 av 0 old" },
		{ ROLLING(""), "w-0 P", "0/1 cur 0 upd 1 av 0 old" },
		{ ROLLING(""), "w-0 R", "+w-1 1/1 cur 0 upd 1 av 1 old" },
		{ ROLLING(",'minReadySeconds':300"), "w-0 R", "1/1 cur 0 upd 1 av 0 old" },
		{ ROLLING(""), "w-0 R;w-1 R del", "2/2 cur 0 upd 1 av 2 old" },
		{ ROLLING(""), "w-0 R;w-2 R", "+w-1 2/2 cur 0 upd 2 av 2 old" },
		{ ROLLING(""), "w-0 F;w-1 R;w-2 R", "-w-0 2/3 cur 0 upd 3 av 2 old" },
		{ ROLLING(""), "w-0 R;w-1 R;w-2 R", "3/3 cur 3 upd 3 av 3 new" },
		{ ROLLING(""), "w-0 R;w-1 R;w-2 R;w-3 R;w-4 R", "-w-4 5/5 cur 0 upd 5 av 5 old" },
		{ ROLLING(""), "w-0 R;w-1 R;w-2 R;w-3 R;w-4 R del", "5/5 cur 0 upd 4 av 5 old" },
		{ ROLLING(""), "w-0 R;w-1 R;w-2 R;w-3 U;w-4 R", "-w-4 4/5 cur 0 upd 5 av 4 old" },
		{ ROLLING(""), "w-0 R;w-1 R;w-2 R;w-3 U;w-4 U", "3/5 cur 0 upd 5 av 3 old" },
		{ ROLLING(",'ordinals':{'start':5}"), "w-5 R;w-0 R", "+w-6 2/2 cur 0 upd 2 av 2 old" },
		{ ROLLING(""), "w-x R", "+w-0 0/0 cur 0 upd 0 av 0 old" },
		/* all at once */
		{ ROLLING(",'podManagementPolicy':'Parallel'"), "w-1 P", "+w-0 +w-2 0/1 cur 0 upd 1 av 0 old" },
		{ "{'replicas':0,'podManagementPolicy':'Parallel','updateStrategy':{'type':'RollingUpdate'}}", "w-0 R;w-1 P;w-2 R del",
		  "-w-1 -w-0 2/3 cur 0 upd 2 av 2 old" },
		/* updates */
		{ ROLLING(""), "w-0 R old;w-1 R old;w-2 R old", "-w-2 3/3 cur 2 upd 0 av 3 old" },
		{ ROLLING(""), "w-0 R old;w-1 R old;w-2 R old del", "3/3 cur 2 upd 0 av 3 old" },
		{ ROLLING(""), "w-0 R old;w-1 R old;w-2 U", "2/3 cur 2 upd 1 av 2 old" },
		{ ROLLING(""), "w-0 R old;w-1 R old;w-2 R", "-w-1 3/3 cur 1 upd 1 av 3 old" },
		{ "{'replicas':3,'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{'partition':2}}}", "w-0 R old;w-1 R old;w-2 R",
		  "3/3 cur 2 upd 1 av 3 old" },
		{ "{'replicas':3,'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{'partition':2}}}", "w-0 R old", "+w-1(old) 1/1 cur 1 upd 0 av 1 old" },
		{ "{'replicas':3,'updateStrategy':{'type':'OnDelete'}}", "w-0 R old;w-1 R old;w-2 R old", "3/3 cur 3 upd 0 av 3 old" },
		{ "{'replicas':3,'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{'partition':0,'maxUnavailable':2}}}",
		  "w-0 R old;w-1 R old;w-2 R old", "-w-2 -w-1 3/3 cur 1 upd 0 av 3 old" },
		{ "{'replicas':4,'podManagementPolicy':'Parallel','updateStrategy':{'type':'RollingUpdate','rollingUpdate':{'partition':0,'maxUnavailable':'50%'}}}",
		  "w-0 R old;w-1 R old;w-2 R old;w-3 U", "-w-2 3/4 cur 2 upd 1 av 3 old" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_STR_ROW(i, run(&a, t[i].spec, t[i].pods), t[i].want);
	}
}

/* Neither many replicas nor a pod in a far place cost more than what is done about them. */
TEST(stateful_set_without_end)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct stateful_view v = { .current_revision = STR("old"), .update_revision = STR("new") };
	struct stateful_plan p;

	v.set = tree(&a, "{'metadata':{'name':'w','namespace':'ns'},'spec':{'replicas':2147483647,'podManagementPolicy':'Parallel','updateStrategy':{'type':'RollingUpdate'}}}");
	v.update_template = tree(&a, "{}");
	v.pods = LIST(&a, pod_of(&a, STR("w-2000000000 R")));
	stateful_plan_make(&a, &v, &p);
	CHECK_INT(p.n, 501);
	CHECK_INT(val_int(p.status, replicas), 1);
}

TEST(stateful_set_pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct stateful_view v = { .current_revision = STR("w-1"), .update_revision = STR("w-2") };
	struct stateful_plan p;

	v.set = tree(&a, "{'metadata':{'name':'w','namespace':'ns','uid':'u'},'spec':{'replicas':1,'serviceName':'svc','updateStrategy':{'type':'RollingUpdate'},"
			 "'volumeClaimTemplates':[{'metadata':{'name':'data'}}]}}");
	v.update_template = tree(&a, "{'metadata':{'labels':{'app':'w'}},'spec':{'volumes':[{'name':'data','emptyDir':{}},{'name':'other'}]}}");
	stateful_plan_make(&a, &v, &p);
	CHECK_INT(p.n, 1);
	CHECK_STR(tree_text(&a, val_get(p.steps[0].pod, metadata, labels)),
		  "{'app':'w','statefulset.kubernetes.io/pod-name':'w-0','apps.kubernetes.io/pod-index':'0','controller-revision-hash':'w-2'}");
	CHECK_STR(tree_text(&a, val_get(p.steps[0].pod, spec)),
		  "{'volumes':[{'name':'data','persistentVolumeClaim':{'claimName':'data-w-0'}},{'name':'other'}],'hostname':'w-0','subdomain':'svc'}");
	CHECK_STR(tree_text(&a, p.status),
		  "{'replicas':0,'currentRevision':'w-1','updateRevision':'w-2','collisionCount':0,'availableReplicas':0}");
}

TEST(stateful_set_claims)
{
#define SET(policy) "{'metadata':{'name':'w','namespace':'ns','uid':'s1'},'spec':{'replicas':1,'selector':{'matchLabels':{'app':'w'}}," \
		    "'persistentVolumeClaimRetentionPolicy':" policy "}}"
#define KEEP "{'whenDeleted':'Retain','whenScaled':'Retain'}"
#define DELETED "{'whenDeleted':'Delete','whenScaled':'Retain'}"
#define SCALED "{'whenDeleted':'Retain','whenScaled':'Delete'}"
#define BOTH "{'whenDeleted':'Delete','whenScaled':'Delete'}"
#define BY_SET(uid) "{'apiVersion':'apps/v1','kind':'StatefulSet','name':'w','uid':'" uid "','controller':true}"
#define BY_POD(name, uid) "{'apiVersion':'v1','kind':'Pod','name':'" name "','uid':'" uid "','controller':true}"
	static const struct { const char *policy, *pod, *owners; bool settled; const char *uids; } t[] = {
		{ SET(KEEP), "w-0", "", true, "" },
		{ SET(KEEP), "w-0", BY_SET("s1"), false, "" },
		{ SET(DELETED), "w-0", "", false, "s1" },
		{ SET(DELETED), "w-5", BY_SET("s1"), true, "s1" },
		{ SET(SCALED), "w-0", "", true, "" },
		{ SET(SCALED), "w-5", "", false, "p" },
		{ SET(SCALED), "w-0", BY_POD("w-0", "p"), false, "" },
		{ SET(BOTH), "w-0", "", false, "s1" },
		{ SET(BOTH), "w-5", BY_SET("s1"), false, "p" },
		{ SET(BOTH), "w-5", BY_POD("w-5", "p"), true, "p" },
		{ SET(BOTH), "w-5", BY_POD("w-5", "gone"), true, "" },
		{ SET(BOTH), "w-0", BY_SET("s0"), true, "" },
		{ SET(BOTH), "w-0", "{'apiVersion':'x/v1','kind':'X','name':'x','uid':'x','controller':true}", true, "x" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		str pod_text = arena_printf(&a, "{'metadata':{'name':'%s','uid':'p'}}", t[i].pod), claim_text = arena_printf(&a, "{'metadata':{'ownerReferences':[%s]}}", t[i].owners);
		struct val set = tree(&a, t[i].policy), pod = tree(&a, pod_text.p), claim = tree(&a, claim_text.p);
		str uids = STR_NONE;
		CHECK_ROW(i, stateful_claim_is_settled(claim, set, pod) == t[i].settled);
		VAL_EACH(ref, val_get(stateful_claim_settle(&a, claim, set, pod), metadata, ownerReferences))
			uids = arena_join(&a, uids, val_str(*ref, uid));
		CHECK_STR_ROW(i, uids, t[i].uids);
	}
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val template = tree(&a, "{'metadata':{'name':'data','labels':{'x':'y'}},'spec':{'storageClassName':'fast'}}");
	CHECK_STR(tree_text(&a, stateful_claim(&a, tree(&a, SET(KEEP)), template, 3)),
		  "{'metadata':{'name':'data-w-3','labels':{'x':'y','app':'w'},'namespace':'ns'},'spec':{'storageClassName':'fast'}}");
}

/* A claim that its last pod took with it: the next pod waits until it is gone. */
static struct val going_claim(void *arg, str name)
{
	return str_eq(name, STR("data-w-0")) ? tree(arg, "{'metadata':{'ownerReferences':[" BY_POD("w-0", "gone") "]}}") : VAL_EMPTY;
}

TEST(stateful_set_waits_for_claims_that_go)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct stateful_view v = { .current_revision = STR("r"), .update_revision = STR("r"), .claim = going_claim, .arg = &a };
	struct stateful_plan p;
	struct val set = tree(&a, SET(SCALED));

	v.set = val_with(&a, set, tree(&a, "[{'metadata':{'name':'data'}}]"), spec, volumeClaimTemplates);
	v.current_template = v.update_template = tree(&a, "{'metadata':{'labels':{'app':'w'}},'spec':{}}");
	stateful_plan_make(&a, &v, &p);
	CHECK(p.waits && p.n == 0);
	v.claim = NULL;
	stateful_plan_make(&a, &v, &p);
	CHECK(!p.waits && p.n == 1);
}
