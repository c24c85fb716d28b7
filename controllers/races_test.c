/* What others do between a controller's look and its write. */
#include "controllers/cluster_testing.h"

#define JOB TYPE(batch_v1, Job)
#define NODE TYPE(core_v1, Node)

enum { SEEN_MS = 100 }; /* informers have seen it by then */

#define SOME_JOB(parallelism) "{'metadata':{'name':'j','namespace':'n'},'spec':{'manualSelector':true,'parallelism':" parallelism ",'completions':2," \
	"'selector':{'matchLabels':{'app':'j'}},'template':{'metadata':{'labels':{'app':'j'}},'spec':{'restartPolicy':'Never','containers':[{'name':'c','image':'x'}]}}}}"

static const char job_of_one[] = SOME_JOB("1"), job_of_two[] = SOME_JOB("2");

/* ---- a job's pod that is gone when it is deleted ---- */

static void end_pod(struct cluster *k, struct val pod)
{
	str name = val_str(pod, metadata, name);

	patch(k, POD, name.p, "{'metadata':{'finalizers':null}}");
	CHECK_OK(&k->w, client_delete(k->w.c, POD, STR("n"), name, &(struct client_delete_options){ .grace_s = 0 }, &k->w.err));
	CHECK_INT(fiber_sleep_ms(SEEN_MS, NULL), 0);
}

/* While the orphan is adopted, the other pod goes. */
static void end_other_pod(struct cluster *k, const struct client_request *q)
{
	if (strcmp(q->verb, "patch") != 0 || !str_eq(q->name, STR("orphan")))
		return;
	k->before = NULL;
	VAL_EACH(pod, list_of(k, POD))
		if (!str_eq(val_str(*pod, metadata, name), STR("orphan")))
			end_pod(k, *pod);
}

static bool has_pod(struct cluster *k) { return val_len(list_of(k, POD)) > 0; }
static bool has_no_pod(struct cluster *k) { return !has_pod(k); }

FIBER_TEST(races_job_pod_is_gone_before_it_is_deleted)
{
	static const char *const enabled[] = { "job-controller", NULL };
	static const char orphan[] = "{'metadata':{'name':'orphan','namespace':'n','labels':{'app':'j'}},'spec':{'restartPolicy':'Never','containers':[{'name':'c','image':'x'}]}}";
	struct cluster k;

	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	CHECK_OK(&k.w, client_create(k.w.c, JOB, tree(&k.w, job_of_one), NULL, NULL, &k.w.err));
	cluster_wait(&k, has_pod, "the job's pod");
	CHECK_OK(&k.w, client_create(k.w.c, POD, tree(&k.w, orphan), NULL, NULL, &k.w.err));
	CHECK_INT(fiber_sleep_ms(SEEN_MS, NULL), 0);
	k.before = end_other_pod;
	patch(&k, JOB, "j", "{'spec':{'parallelism':0}}");
	cluster_wait(&k, has_no_pod, "the pods to go");
	CHECK(!k.before);
	/* It must not wait for a deletion that nobody will see. */
	patch(&k, JOB, "j", "{'spec':{'parallelism':1}}");
	cluster_wait(&k, has_pod, "another pod");
	cluster_done(&k);
}

/* ---- pods whose adoption is seen while others are adopted ---- */

static void let_be_seen(struct cluster *k, const struct client_request *q)
{
	(void)k;
	if (strcmp(q->verb, "patch") == 0 && q->type == POD)
		CHECK_INT(fiber_sleep_ms(SEEN_MS, NULL), 0);
}

static bool all_are_tracked(struct cluster *k)
{
	size_t n = 0;

	VAL_EACH(pod, list_of(k, POD))
		n += val_len(val_get(*pod, metadata, finalizers)) == 1;
	return n == 2;
}

FIBER_TEST(races_job_counts_all_that_it_adopts)
{
	static const char *const enabled[] = { "job-controller", NULL };
	static const char pod[] = "{'metadata':{'name':'%s','namespace':'n','labels':{'app':'j'}},'spec':{'restartPolicy':'Never','containers':[{'name':'c','image':'x'}]}}";
	struct cluster k;

	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	k.before = let_be_seen;
	CHECK_OK(&k.w, client_create(k.w.c, POD, tree(&k.w, arena_printf(&k.w.arena, pod, "o1").p), NULL, NULL, &k.w.err));
	CHECK_OK(&k.w, client_create(k.w.c, POD, tree(&k.w, arena_printf(&k.w.arena, pod, "o2").p), NULL, NULL, &k.w.err));
	CHECK_INT(fiber_sleep_ms(SEEN_MS, NULL), 0);
	CHECK_OK(&k.w, client_create(k.w.c, JOB, tree(&k.w, job_of_two), NULL, NULL, &k.w.err));
	cluster_wait(&k, all_are_tracked, "the finalizers of both");
	cluster_done(&k);
}

/* ---- a set whose pod has another one's name ---- */

static bool is_released(struct cluster *k)
{
	CLEANUP(frozen_unrefp) struct frozen *own = NULL;
	return client_get(k->w.c, POD, STR("n"), STR("web-0"), &own, NULL) == 0 && !val_len(val_get(get(k, POD, "other-0"), metadata, ownerReferences));
}

FIBER_TEST(races_stateful_set_lets_go_of_pods_of_other_names)
{
	static const char *const enabled[] = { "statefulset-controller", NULL };
	static const char set[] = "{'metadata':{'name':'web','namespace':'n'},'spec':{'replicas':1,'serviceName':'s','selector':{'matchLabels':{'app':'w'}},"
		"'template':{'metadata':{'labels':{'app':'w'}},'spec':{'containers':[{'name':'c','image':'x'}]}}}}";
	struct cluster k;

	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	CHECK_OK(&k.w, client_create(k.w.c, TYPE(apps_v1, StatefulSet), tree(&k.w, set), NULL, NULL, &k.w.err));
	str uid = val_str(get(&k, TYPE(apps_v1, StatefulSet), "web"), metadata, uid);
	str pod = arena_printf(&k.w.arena, "{'metadata':{'name':'other-0','namespace':'n','labels':{'app':'w'},'ownerReferences':[{'apiVersion':'apps/v1',"
		"'kind':'StatefulSet','name':'web','uid':'" STR_FMT "','controller':true}]},'spec':{'containers':[{'name':'c','image':'x'}]}}", STR_ARG(uid));
	CHECK_OK(&k.w, client_create(k.w.c, POD, tree(&k.w, pod.p), NULL, NULL, &k.w.err));
	cluster_wait(&k, is_released, "the pod to be let go");
	cluster_done(&k);
}

/* ---- a node that is heard of again ---- */

#define READY "{'status':{'conditions':[{'type':'Ready','status':'True','reason':'KubeletReady','lastHeartbeatTime':'%s'}]}}"

static void say_ready(struct cluster *k, const char *heartbeat)
{
	struct val status = tree(&k->w, arena_printf(&k->w.arena, READY, heartbeat).p);
	CHECK_OK(&k->w, client_patch(k->w.c, NODE, STR_NONE, STR("n1"), CLIENT_PATCH_MERGE, status, &(struct client_write_options){ .subresource = STR("status") },
				     NULL, &k->w.err));
}

static void wake_up(struct cluster *k, const struct client_request *q)
{
	if (strcmp(q->verb, "update") != 0 || !str_eq(q->name, STR("n1")) || !str_eq(q->subresource, STR("status")))
		return;
	k->before = NULL;
	say_ready(k, "2026-01-01T00:01:00Z");
}

static bool has_been_heard(struct cluster *k) { return !k->before; }

FIBER_TEST(races_node_is_heard_of_when_it_is_given_up)
{
	static const char *const enabled[] = { "node-lifecycle-controller", NULL };
	struct cluster k;

	cluster_init(&k, (struct controllers_options){ .enabled = enabled, .node_monitor_period_ms = 20, .node_monitor_grace_ms = 1000 });
	CHECK_OK(&k.w, client_create(k.w.c, NODE, tree(&k.w, "{'metadata':{'name':'n1'}}"), NULL, NULL, &k.w.err));
	say_ready(&k, "2026-01-01T00:00:00Z");
	k.before = wake_up;
	cluster_wait(&k, has_been_heard, "the node to be given up");
	CHECK_INT(fiber_sleep_ms(4 * SEEN_MS, NULL), 0);
	CLEANUP(frozen_unrefp) struct frozen *node = NULL, *events = NULL;
	CHECK_OK(&k.w, client_get(k.w.c, NODE, STR_NONE, STR("n1"), &node, &k.w.err));
	CHECK_STR(val_str(val_at(val_get(node->val, status, conditions), 0), status), "True");
	CHECK_INT(val_len(val_get(node->val, spec, taints)), 0);
	CHECK_OK(&k.w, client_list(k.w.c, TYPE(core_v1, Event), NULL, &events, &k.w.err));
	VAL_EACH(e, val_get(events->val, items))
		CHECK(!str_eq(val_str(*e, reason), STR("NodeNotReady")));
	cluster_done(&k);
}
