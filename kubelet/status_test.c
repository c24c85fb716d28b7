/* What is told of a pod's status: how it is put together, and that it gets to a whole API server. */
#include "kubelet/status.h"

#include "base/clock.h"
#include "client/fake_test.h"
#include "client/inside_testing.h"
#include "codec/atoms.h"
#include "kubelet/pod_status.h"
#include "kubelet/status_priv.h"

enum { WAIT_MS = 10000, NAMES_MAX = 64 };

#define POD TYPE(core_v1, Pod)
#define STATUS TYPE(core_v1, PodStatus)

/* ---- putting together ---- */

#define READY(type, status) "{'type':'" type "','status':'" status "','lastTransitionTime':'2026-01-01T00:00:00Z'}"

static const struct {
	const char *live, *told, *want;
} merges[] = {
	/* Conditions of others stay, and stay first; those of the kubelet are its own. */
	{ "{'conditions':[" READY("Ready", "True") ",{'type':'example.com/gate','status':'True'}]}",
	  "{'phase':'Running','conditions':[{'type':'example.com/gate','status':'False'}," READY("Ready", "False") "]}",
	  "{'phase':'Running','conditions':[{'type':'example.com/gate','status':'True'}," READY("Ready", "False") "]}" },
	/* Claims belong to others, addresses of the node stay. */
	{ "{'hostIP':'1.2.3.4','hostIPs':[{'ip':'1.2.3.4'}],'resourceClaimStatuses':[{'name':'c','resourceClaimName':'x'}]}",
	  "{'phase':'Pending','resourceClaimStatuses':[{'name':'c','resourceClaimName':'y'}]}",
	  "{'phase':'Pending','hostIP':'1.2.3.4','hostIPs':[{'ip':'1.2.3.4'}],"
	  "'resourceClaimStatuses':[{'name':'c','resourceClaimName':'x'}]}" },
	/* The end is the end. */
	{ "{'phase':'Failed','message':'low','reason':'Evicted'}", "{'phase':'Running'}",
	  "{'phase':'Failed','message':'low','reason':'Evicted'}" },
	/* Nothing is ready then; the time changes with the status only. */
	{ "{'phase':'Running'}", "{'phase':'Succeeded','conditions':[" READY("Ready", "True") "," READY("ContainersReady", "False") "]}",
	  "{'phase':'Succeeded','conditions':["
	  "{'type':'Ready','observedGeneration':3,'status':'False','lastTransitionTime':'1970-01-01T00:00:05Z','reason':'PodCompleted'},"
	  "{'type':'ContainersReady','observedGeneration':3,'status':'False','lastTransitionTime':'2026-01-01T00:00:00Z',"
	  "'reason':'PodCompleted'}]}" },
	/* The kubelet's disruption is told with the end, in the place of another's. */
	{ "{'phase':'Running','conditions':[{'type':'DisruptionTarget','status':'False'},{'type':'x','status':'True'}]}",
	  "{'phase':'Failed','conditions':[" READY("DisruptionTarget", "True") "," READY("Ready", "False") "]}",
	  "{'phase':'Failed','conditions':[{'type':'DisruptionTarget','status':'True','lastTransitionTime':'1970-01-01T00:00:05Z'},"
	  "{'type':'x','status':'True'}," READY("Ready", "False") "]}" },
	/* Before and after, another's is not touched. */
	{ "{'phase':'Running'}", "{'phase':'Running','conditions':[" READY("DisruptionTarget", "True") "]}", "{'phase':'Running'}" },
	{ "{'phase':'Failed','conditions':[" READY("DisruptionTarget", "False") "]}",
	  "{'phase':'Failed','conditions':[" READY("DisruptionTarget", "True") "]}",
	  "{'phase':'Failed','conditions':[" READY("DisruptionTarget", "False") "]}" },
};

TEST(status_has_several_authors)
{
	for (size_t i = 0; i < ARRAY_LEN(merges); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val live = OBJECT(&a, F(metadata, OBJECT(&a, F(generation, val_of_int(3)))),
					 F(status, testing_typed(&a, STATUS, merges[i].live)));
		struct val got = status_merge(&a, live, testing_typed(&a, STATUS, merges[i].told), 5 * NS_PER_S);
		CHECK_STR_ROW(i, testing_swap(&a, testing_text(&a, got), '"', '\''), merges[i].want);
	}
}

TEST(status_patch_is_the_difference)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val live = testing_typed(&a, POD, "{'metadata':{'uid':'u1','name':'web'},'status':{'phase':'Pending','podIP':'1.1.1.1',"
						 "'conditions':[{'type':'Ready','status':'False'},{'type':'x','status':'True'}]}}");
	struct val same = val_get(live, status), patch;
	struct val other = testing_typed(&a, STATUS, "{'phase':'Running','conditions':[{'type':'x','status':'True'},"
						     "{'type':'Ready','status':'True'}]}");

	CHECK_INT(status_patch(&a, live, same, &patch, NULL), 0);
	CHECK(!val_exists(patch));
	CHECK_INT(status_patch(&a, live, other, &patch, NULL), 0);
	CHECK_STR(testing_swap(&a, testing_text(&a, patch), '"', '\''),
		  "{'metadata':{'uid':'u1'},'status':{'$setElementOrder/conditions':[{'type':'x'},{'type':'Ready'}],"
		  "'conditions':[{'status':'True','type':'Ready'}],'phase':'Running','podIP':null}}");
}

TEST(status_at_the_end)
{
	static const struct {
		const char *source, *status, *phase, *reason;
	} rows[] = {
		{ "api", "{'phase':'Running','containerStatuses':[{'name':'c','state':{'running':{}}}]}", "Failed", "ContainerStatusUnknown" },
		{ "api", "{'phase':'Succeeded','containerStatuses':[{'name':'c','state':{'terminated':{'reason':'Completed'}}}]}", "Succeeded",
		  "Completed" },
		{ "file", "{'phase':'Running','containerStatuses':[{'name':'c','state':{'waiting':{}}}]}", "Running", "ContainerStatusUnknown" },
		{ "api", "{'phase':'Pending'}", "Failed", "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val pod = testing_typed(&a, POD, "{'metadata':{'annotations':{'kubernetes.io/config.source':'api'}},"
							"'spec':{'containers':[{'name':'c'}]}}");
		struct member source = { atom_make(&a, STR("kubernetes.io/config.source")), VAL_STR(str_of(rows[i].source)) };
		pod = val_with(&a, pod, val_object(&a, &source, 1), metadata, annotations);
		struct val got = status_ended(&a, pod, testing_typed(&a, STATUS, rows[i].status));
		CHECK_STR_ROW(i, val_str(got, phase), rows[i].phase);
		CHECK_STR_ROW(i, val_str(val_at(val_get(got, containerStatuses), 0), state, terminated, reason), rows[i].reason);
	}
}

/* ---- a server that is away ---- */

static int run_statuses(void *arg) { return statuses_run(arg, NULL); }

static struct frozen *pod_of(struct arena *a, const char *json) { return val_freeze(testing_typed(a, POD, json)); }

static void put_object(struct fake *f, struct frozen *pod)
{
	(void)omap_put(f->objects, STR("pods/default/web"), pod);
	frozen_unref(pod);
}

FIBER_TEST(status_waits_for_a_server_that_is_away)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static struct fake f;
	struct statuses_options o = { .client = &f.client };

	fake_clock(0);
	fake_init(&f);
	f.revision = 7;
	put_object(&f, pod_of(&a, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'web','namespace':'default','uid':'u1',"
			       "'resourceVersion':'7'}}"));
	struct frozen *pod = fake_get(&f, "pods/default/web");
	struct statuses *s = statuses_new(&o);
	struct fiber *fiber = start(run_statuses, s);
	log_set_level(LOG_LEVEL_OFF);
	f.fail = ERR_UNAVAILABLE;
	statuses_set(s, pod, testing_typed(&a, STATUS, "{'phase':'Pending'}"));
	CHECK_INT(fiber_sleep_ms(60000, NULL), 0);
	CHECK(!val_has(fake_get(&f, "pods/default/web")->val, status));
	f.fail = ERR_NONE;
	(void)fake_log(&f, &a);
	statuses_set(s, pod, testing_typed(&a, STATUS, "{'phase':'Running'}"));
	statuses_set(s, pod, testing_typed(&a, STATUS, "{'phase':'Running'}"));
	/* At once, however long the pauses between failures have become; the newest, once, without reading first. */
	fiber_settle();
	CHECK_STR(val_str(fake_get(&f, "pods/default/web")->val, status, phase), "Running");
	CHECK_STR(fake_log(&f, &a), "patch /api/v1/namespaces/default/pods/web/status\n");
	CHECK_STR(val_str(statuses_get(s, &a, STR("u1")), phase), "Running");
	CHECK_INT(fiber_sleep_ms(60000, NULL), 0);
	CHECK_STR(fake_log(&f, &a), "");
	statuses_forget(s, STR("u1"));
	CHECK(!val_exists(statuses_get(s, &a, STR("u1"))));
	CHECK_INT(fiber_stop(fiber), -ERR_CANCELED);
	statuses_free(s);
	fake_done(&f);
	clock_virtual_off();
	log_set_level(LOG_LEVEL_ERROR);
}

struct replacing {
	struct statuses *statuses;
	struct arena arena;
	int n;
};

/* The kubelet sees a newer version of the pod, and nobody has the older one any more. */
static void replace_pod(void *arg)
{
	struct replacing *r = arg;
	str json = arena_printf(&r->arena, "{'metadata':{'name':'web','namespace':'default','uid':'u1','labels':{'n':'%d'}}}", ++r->n);
	CLEANUP(frozen_unrefp) struct frozen *pod = pod_of(&r->arena, json.p);

	statuses_set(r->statuses, pod, testing_typed(&r->arena, STATUS, "{'phase':'Running'}"));
}

FIBER_TEST(status_of_a_pod_that_changes_meanwhile)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static struct fake f;
	static struct replacing r;

	fake_init(&f);
	put_object(&f, pod_of(&a, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'web','namespace':'default','uid':'u1',"
			       "'resourceVersion':'7'}}"));
	r.statuses = statuses_new(&(struct statuses_options){ .client = &f.client });
	struct fiber *fiber = start(run_statuses, r.statuses);
	f.meanwhile = replace_pod;
	f.arg = &r;
	replace_pod(&r);
	while (r.n < 3)
		CHECK_INT(fiber_yield(NULL), 0);
	f.meanwhile = NULL;
	fiber_settle();
	CHECK_STR(val_str(fake_get(&f, "pods/default/web")->val, status, phase), "Running");
	CHECK(str_starts(fake_log(&f, &a), STR("get /api/v1/namespaces/default/pods/web\npatch /api/v1/namespaces/default/pods/web/status\n")));
	CHECK_INT(fiber_stop(fiber), -ERR_CANCELED);
	statuses_free(r.statuses);
	fake_done(&f);
	arena_done(&r.arena);
}

FIBER_TEST(status_without_a_server)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *pod = pod_of(&a, "{'metadata':{'name':'web','namespace':'default','uid':'u1'}}");
	struct statuses *s = statuses_new(&(struct statuses_options){ 0 });
	struct fiber *fiber = start(run_statuses, s);

	statuses_set(s, pod, testing_typed(&a, STATUS, "{'phase':'Failed'}"));
	statuses_set(s, pod, testing_typed(&a, STATUS, "{'phase':'Running','message':'x'}"));
	CHECK_STR(val_str(statuses_get(s, &a, STR("u1")), phase), "Failed");
	CHECK_STR(val_str(statuses_get(s, &a, STR("u1")), message), "x");
	CHECK_INT(fiber_stop(fiber), -ERR_CANCELED);
	statuses_free(s);
}

/* ---- a whole server ---- */

struct telling {
	struct world w;
	struct client *kubelet;
	struct statuses *statuses;
	struct fiber *fiber;
	bool may_delete;
	char mirror[NAMES_MAX];      /* uid of the mirror of "static" */
	char gone[NAMES_MAX];        /* the last */
};

static str mirror_of(void *arg, struct arena *a, str uid)
{
	struct telling *t = arg;
	return str_eq(uid, STR("static")) ? arena_str(a, str_of(t->mirror)) : STR_NONE;
}

static bool may_delete(void *arg, str uid)
{
	(void)uid;
	return ((struct telling *)arg)->may_delete;
}

static void on_gone(void *arg, str uid)
{
	struct telling *t = arg;
	(void)snprintf(t->gone, sizeof t->gone, STR_FMT, STR_ARG(uid));
}

static void telling_init(struct telling *t)
{
	static const str masters = STR_INIT("system:masters");
	const struct user user = { .name = STR("kubelet"), .groups = &masters, .n_groups = 1 };

	*t = (struct telling){ 0 };
	world_init(&t->w);
	CHECK_OK(&t->w, client_create(t->w.c, TYPE(core_v1, ServiceAccount), tree(&t->w, "{'metadata':{'name':'default','namespace':'n'}}"), NULL,
				      NULL, &t->w.err));
	t->kubelet = client_inside(t->w.server, &user, "kubelet/v1.36.4 (linux/amd64)");
	t->statuses = statuses_new(&(struct statuses_options){ .client = t->kubelet, .mirror_of = mirror_of, .may_delete = may_delete,
							       .gone = on_gone, .arg = t });
	t->fiber = start(run_statuses, t->statuses);
}

static void telling_done(struct telling *t)
{
	CHECK_INT(fiber_stop(t->fiber), -ERR_CANCELED);
	statuses_free(t->statuses);
	client_free(t->kubelet);
	world_done(&t->w);
}

static struct frozen *make_pod(struct telling *t, const char *name, const char *annotations)
{
	struct frozen *pod = NULL;
	struct val json = OBJECT(&t->w.arena,
				 F(metadata, OBJECT(&t->w.arena, F(name, VAL_STR(str_of(name))), F(namespace, VAL_LIT("n")),
						    F(annotations, testing_tree(&t->w.arena, annotations)))),
				 F(spec, tree(&t->w, "{'nodeName':'n1','terminationGracePeriodSeconds':30,'automountServiceAccountToken':false,"
						     "'containers':[{'name':'c','image':'x'}]}")));
	CHECK_OK(&t->w, client_create(t->w.c, POD, json, NULL, &pod, &t->w.err));
	return pod;
}

static struct frozen *get_pod(struct telling *t, const char *name)
{
	struct frozen *pod = NULL;
	struct err err = ERR_INIT;
	return client_get(t->w.c, POD, STR("n"), str_of(name), &pod, &err) == 0 ? pod : NULL;
}

/* (suspends) The pod, once its phase (NULL: nothing) is this. */
static struct frozen *wait_for(struct telling *t, const char *name, const char *phase)
{
	DEADLINE_SCOPE(WAIT_MS);
	for (;;) {
		struct frozen *pod = get_pod(t, name);
		if (!pod && !phase)
			return NULL;
		if (pod && phase && str_eq(val_str(pod->val, status, phase), str_of(phase)))
			return pod;
		frozen_unref(pod);
		if (fiber_sleep_ms(2, NULL) < 0)
			fail_msg("%s does not become %s", name, phase ? phase : "nothing");
	}
}

static void set(struct telling *t, struct frozen *pod, const char *json)
{
	statuses_set(t->statuses, pod, testing_typed(&t->w.arena, STATUS, json));
}

static void by_others(struct telling *t, const char *json, struct frozen **ret)
{
	const struct client_write_options o = { .subresource = STR("status"), .reply = POD };
	CHECK_OK(&t->w, client_patch(t->w.c, POD, STR("n"), STR("web"), CLIENT_PATCH_STRATEGIC, tree(&t->w, json), &o, ret, &t->w.err));
}

#define RUNNING "{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}"

FIBER_TEST(status_reaches_the_server)
{
	static struct telling t;
	telling_init(&t);
	CLEANUP(frozen_unrefp) struct frozen *pod = make_pod(&t, "web", "{}"), *was = NULL, *now = NULL, *after = NULL;

	/* Somebody else's condition is not lost, although the kubelet's pod does not show it yet. */
	by_others(&t, "{'status':{'conditions':[{'type':'example.com/x','status':'True'}]}}", NULL);
	set(&t, pod, RUNNING);
	was = wait_for(&t, "web", "Running");
	CHECK_INT(val_len(val_get(was->val, status, conditions)), 2);
	struct val managed = val_get(was->val, metadata, managedFields), last = val_at(managed, val_len(managed) - 1);
	CHECK_STR(val_str(last, manager), "kubelet");
	CHECK_STR(val_str(last, operation), "Update");
	CHECK_STR(val_str(last, subresource), "status");

	/* What somebody writes over it is written again. */
	by_others(&t, "{'status':{'phase':'Unknown','podIP':'10.0.0.1'}}", &now);
	statuses_check(t.statuses, now);
	after = wait_for(&t, "web", "Running");
	CHECK(!val_has(after->val, status, podIP));

	/* The last of many is what counts in the end. */
	for (int i = 0; i < 100; i++)
		set(&t, pod, i % 2 ? "{'phase':'Running','message':'odd'}" : "{'phase':'Running','message':'even'}");
	set(&t, pod, "{'phase':'Succeeded'}");
	frozen_unref(after);
	after = wait_for(&t, "web", "Succeeded");
	CHECK(!val_has(after->val, status, message));
	telling_done(&t);
}

FIBER_TEST(status_of_a_pod_that_is_deleted)
{
	static struct telling t;
	telling_init(&t);
	CLEANUP(frozen_unrefp) struct frozen *pod = make_pod(&t, "web", "{}"), *deleted = NULL, *ended = NULL;

	set(&t, pod, RUNNING);
	frozen_unref(wait_for(&t, "web", "Running"));
	CHECK_OK(&t.w, client_delete(t.w.c, POD, STR("n"), STR("web"), NULL, &t.w.err));
	deleted = get_pod(&t, "web");
	CHECK(val_has(deleted->val, metadata, deletionTimestamp));
	statuses_check(t.statuses, deleted);
	/* It has ended, but something is left of it. */
	statuses_finish(t.statuses, deleted);
	ended = wait_for(&t, "web", "Failed");
	CHECK_INT(fiber_sleep_ms(50, NULL), 0);
	CHECK_STR(str_of(t.gone), "");
	t.may_delete = true;
	(void)wait_for(&t, "web", NULL);
	CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	CHECK_STR(val_str(pod->val, metadata, uid), t.gone);
	telling_done(&t);
}

FIBER_TEST(status_of_a_pod_that_was_replaced)
{
	static struct telling t;
	const struct client_delete_options now = { .grace_s = 0 };
	telling_init(&t);
	CLEANUP(frozen_unrefp) struct frozen *pod = make_pod(&t, "web", "{}"), *other = NULL, *still = NULL;

	CHECK_OK(&t.w, client_delete(t.w.c, POD, STR("n"), STR("web"), &now, &t.w.err));
	other = make_pod(&t, "web", "{}");
	set(&t, pod, RUNNING);
	DEADLINE_SCOPE(WAIT_MS);
	while (!t.gone[0])
		CHECK_INT(fiber_sleep_ms(2, NULL), 0);
	CHECK_STR(val_str(pod->val, metadata, uid), t.gone);
	still = get_pod(&t, "web");
	CHECK_STR(val_str(still->val, metadata, uid), arena_str(&t.w.arena, val_str(other->val, metadata, uid)).p);
	CHECK_STR(val_str(still->val, status, phase), "Pending");
	telling_done(&t);
}

FIBER_TEST(status_of_a_static_pod)
{
	static struct telling t;
	telling_init(&t);
	CLEANUP(frozen_unrefp) struct frozen *mirror = NULL, *shown = NULL;
	CLEANUP(frozen_unrefp) struct frozen *pod =
		pod_of(&t.w.arena, "{'metadata':{'name':'web','namespace':'n','uid':'static','annotations':"
				   "{'kubernetes.io/config.source':'file','kubernetes.io/config.hash':'static'}}}");

	set(&t, pod, RUNNING);
	fiber_settle();
	mirror = make_pod(&t, "web", "{'kubernetes.io/config.mirror':'static'}");
	(void)snprintf(t.mirror, sizeof t.mirror, STR_FMT, STR_ARG(val_str(mirror->val, metadata, uid)));
	statuses_check(t.statuses, mirror);
	shown = wait_for(&t, "web", "Running");
	CHECK_STR(val_str(shown->val, metadata, uid), t.mirror);
	/* Nothing is left of it: its mirror is not the status' to delete. */
	t.may_delete = true;
	statuses_finish(t.statuses, pod);
	CHECK_INT(fiber_sleep_ms(20, NULL), 0);
	frozen_unref(wait_for(&t, "web", "Running"));
	CHECK_STR(str_of(t.gone), "");
	telling_done(&t);
}
