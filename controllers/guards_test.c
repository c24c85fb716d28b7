/* What users may write, and what others fail at, must not lead controllers astray: on a whole API server. */
#include "controllers/cluster_testing.h"
#include "controllers/discovery.h"

#define NODE TYPE(core_v1, Node)
#define CLAIM TYPE(core_v1, PersistentVolumeClaim)
#define VOLUME TYPE(core_v1, PersistentVolume)

static void create(struct cluster *k, const struct type *type, const char *json)
{
	CHECK_OK(&k->w, client_create(k->w.c, type, tree(&k->w, json), NULL, NULL, &k->w.err));
}

static size_t count(struct cluster *k, const struct type *type)
{
	CLEANUP(frozen_unrefp) struct frozen *list = NULL;
	CHECK_OK(&k->w, client_list(k->w.c, type, NULL, &list, &k->w.err));
	return val_len(val_get(list->val, items));
}

static bool has(struct cluster *k, const struct type *type, const char *name)
{
	CLEANUP(frozen_unrefp) struct frozen *found = NULL;
	return client_get(k->w.c, type, STR("n"), str_of(name), &found, NULL) == 0;
}

/* ---- whose a claim is, its class says ---- */

#define LOCAL_CLAIM(name, class) "{'metadata':{'name':'" name "','namespace':'n','annotations':{'volume.kubernetes.io/storage-provisioner':'c8s.io/local-path'," \
	"'volume.kubernetes.io/selected-node':'n1'}},'spec':{'storageClassName':'" class "','accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}"
#define CLASS(name, provisioner) "{'metadata':{'name':'" name "'},'provisioner':'" provisioner "','volumeBindingMode':'WaitForFirstConsumer'}"

static bool has_volume(struct cluster *k) { return count(k, VOLUME) > 0; }

FIBER_TEST(guards_local_path_only_for_its_class)
{
	static const char *const enabled[] = { "local-path-provisioner", NULL };
	struct cluster k;

	cluster_init(&k, (struct controllers_options){ .enabled = enabled, .provisioner_root = "/v" });
	create(&k, NODE, "{'metadata':{'name':'n1','labels':{'kubernetes.io/hostname':'n1'}}}");
	create(&k, TYPE(storage_v1, StorageClass), CLASS("other", "example.test/p"));
	create(&k, TYPE(storage_v1, StorageClass), CLASS("ours", "c8s.io/local-path"));
	create(&k, CLAIM, LOCAL_CLAIM("theirs", "other"));
	create(&k, CLAIM, LOCAL_CLAIM("good", "ours"));
	cluster_wait(&k, has_volume, "a volume");
	CHECK_INT(fiber_sleep_ms(100, NULL), 0);
	CHECK_INT(count(&k, VOLUME), 1);
	cluster_done(&k);
}

/* ---- Endpoints that a user makes before the Service ---- */

static bool has_own_endpoints(struct cluster *k) { return has(k, TYPE(core_v1, Endpoints), "s"); }

FIBER_TEST(guards_endpoints_of_users_stay)
{
	static const char *const enabled[] = { "endpoints-controller", NULL };
	struct cluster k;

	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	create(&k, TYPE(core_v1, Service), "{'metadata':{'name':'s','namespace':'n'},'spec':{'selector':{'a':'b'},'ports':[{'port':80}]}}");
	cluster_wait(&k, has_own_endpoints, "the endpoints of a service");
	create(&k, TYPE(core_v1, Endpoints), "{'metadata':{'name':'early','namespace':'n'},'subsets':[{'addresses':[{'ip':'10.1.2.3'}],'ports':[{'port':80}]}]}");
	CHECK_INT(fiber_sleep_ms(200, NULL), 0);
	CHECK(has(&k, TYPE(core_v1, Endpoints), "early"));
	cluster_done(&k);
}

/* ---- names that become paths ---- */

static bool strange_path;

static void look_at_path(struct cluster *k, const struct client_request *q)
{
	(void)k;
	strange_path |= str_find(q->path, STR("watch=1&x")) >= 0 || str_find(q->query, STR("watch=1&x")) >= 0;
}

static bool is_judged(struct cluster *k) { return val_len(val_get(get(k, TYPE(policy_v1, PodDisruptionBudget), "b"), status, conditions)) > 0; }

FIBER_TEST(guards_disruption_does_not_ask_for_strange_names)
{
	static const char *const enabled[] = { "disruption-controller", NULL };
	struct cluster k;

	strange_path = false;
	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	k.before = look_at_path;
	create(&k, POD, "{'metadata':{'name':'p','namespace':'n','labels':{'app':'w'},'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet',"
		"'name':'?watch=1&x=','uid':'u','controller':true}]},'spec':{'containers':[{'name':'c','image':'x'}]}}");
	create(&k, TYPE(policy_v1, PodDisruptionBudget), "{'metadata':{'name':'b','namespace':'n'},'spec':{'maxUnavailable':1,'selector':{'matchLabels':{'app':'w'}}}}");
	cluster_wait(&k, is_judged, "the budget's status");
	CHECK(!strange_path);
	cluster_done(&k);
}

/* ---- a budget over pods of very many owners ---- */

enum { OWNERS = 300 };

static bool all_expected(struct cluster *k) { return val_int(get(k, TYPE(policy_v1, PodDisruptionBudget), "b"), status, expectedPods) == OWNERS; }

FIBER_TEST(guards_disruption_counts_each_owner_once)
{
	static const char *const enabled[] = { "disruption-controller", NULL };
	struct cluster k;

	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	struct world *w = &k.w;
	for (int i = 0; i < OWNERS; i++) {
		str set = arena_printf(&w->arena, "{'metadata':{'name':'r%d','namespace':'n'},'spec':{'replicas':1,'selector':{'matchLabels':{'app':'w'}},"
			"'template':{'metadata':{'labels':{'app':'w'}},'spec':{'containers':[{'name':'c','image':'x'}]}}}}", i);
		CLEANUP(frozen_unrefp) struct frozen *made = NULL;
		CHECK_OK(w, client_create(w->c, SET, tree(w, set.p), NULL, &made, &w->err));
		for (int j = 0; j < (i > OWNERS - 10 ? 2 : 1); j++) { /* two pods of the last ones */
			str pod = arena_printf(&w->arena, "{'metadata':{'name':'p%d-%d','namespace':'n','labels':{'app':'w'},'ownerReferences':[{'apiVersion':'apps/v1',"
				"'kind':'ReplicaSet','name':'r%d','uid':'" STR_FMT "','controller':true}]},'spec':{'containers':[{'name':'c','image':'x'}]}}",
				i, j, i, STR_ARG(val_str(made->val, metadata, uid)));
			create(&k, POD, pod.p);
		}
	}
	create(&k, TYPE(policy_v1, PodDisruptionBudget), "{'metadata':{'name':'b','namespace':'n'},'spec':{'maxUnavailable':'50%','selector':{'matchLabels':{'app':'w'}}}}");
	cluster_wait(&k, all_expected, "the budget to expect one pod of each set");
	cluster_done(&k);
}

/* ---- all nodes gone: taints are taken away, also when one cannot be written ---- */

static void refuse_first(struct cluster *k, const struct client_request *q)
{
	k->fails = strcmp(q->verb, "update") == 0 && str_eq(q->name, STR("n1")) ? ERR_INTERNAL : ERR_NONE;
}

static bool second_is_free(struct cluster *k)
{
	CLEANUP(frozen_unrefp) struct frozen *node = NULL;
	CHECK_OK(&k->w, client_get(k->w.c, NODE, STR_NONE, STR("n2"), &node, &k->w.err));
	VAL_EACH(t, val_get(node->val, spec, taints))
		if (str_eq(val_str(*t, effect), STR("NoExecute")))
			return false;
	return true;
}

static void two_nodes(struct cluster *k)
{
	static const char *const names[] = { "n1", "n2" };

	k->before = refuse_first;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		create(k, NODE, arena_printf(&k->w.arena, "{'metadata':{'name':'%s'},'spec':{'taints':[{'key':'node.kubernetes.io/not-ready','effect':'NoExecute'}]}}",
					     names[i]).p);
		struct val status = tree(&k->w, "{'status':{'conditions':[{'type':'Ready','status':'False','lastHeartbeatTime':'2026-01-01T00:00:00Z'}]}}");
		CHECK_OK(&k->w, client_patch(k->w.c, NODE, STR_NONE, str_of(names[i]), CLIENT_PATCH_MERGE, status,
					     &(struct client_write_options){ .subresource = STR("status") }, NULL, &k->w.err));
	}
}

FIBER_TEST(guards_taints_go_though_one_node_cannot_be_written)
{
	static const char *const enabled[] = { "node-lifecycle-controller", NULL };
	struct cluster k;

	cluster_begin(&k, (struct controllers_options){ .enabled = enabled, .node_monitor_period_ms = 20 }, two_nodes);
	cluster_wait(&k, second_is_free, "the taint of the second node to go");
	cluster_done(&k);
}

/* ---- one group that does not answer ---- */

static void one_group_hangs(struct cluster *k, const struct client_request *q)
{
	k->fails = str_eq(q->path, STR("/apis/batch/v1")) ? ERR_TIMEOUT : ERR_NONE;
}

FIBER_TEST(guards_discovery_goes_on_without_a_group)
{
	static const char *const enabled[] = { "ttl-after-finished-controller", NULL };
	struct cluster k;
	struct discovery d = { 0 };
	struct served found;

	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	struct client *c = client_for(&k, NULL);
	CHECK_OK(&k.w, discovery_refresh(&d, c, &k.w.err));
	CHECK_INT(d.n_failed, 0);
	size_t n = d.n;
	k.before = one_group_hangs;
	CHECK_OK(&k.w, discovery_refresh(&d, c, &k.w.err));
	CHECK_INT(d.n_failed, 1);
	CHECK_INT(d.n, n); /* what it had is still there */
	CHECK(discovery_find(&d, STR("batch/v1"), STR("Job"), &found));
	discovery_done(&d);
	cluster_done(&k);
}
