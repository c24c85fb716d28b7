/*
 * Deployments and what they bring about, on a whole API server. What exactly is done is in the tests of plans; here it is done.
 */
#include "controllers/cluster_testing.h"

#define TEMPLATE(image) "{'metadata':{'labels':{'app':'w'}},'spec':{'containers':[{'name':'c','image':'" image "'}]}}"

static const char *const enabled[] = { "deployment-controller", "ephemeral-volume", "replicaset", "replicationcontroller-controller", NULL };
static const char web[] = "{'metadata':{'name':'w','namespace':'n'},'spec':{'replicas':3,'selector':{'matchLabels':{'app':'w'}},'template':" TEMPLATE("x:1") "}}";

/* ---- stories ---- */

FIBER_TEST(workloads_deployment)
{
	struct cluster k;
	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	struct world *w = &k.w;

	CHECK_OK(w, client_create(w->c, DEPLOYMENT, tree(w, web), NULL, NULL, &w->err));
	struct val d = settle(&k, DEPLOYMENT, "w", "3 3 3 3");
	CHECK_STR(reason_of(d, "Available"), "MinimumReplicasAvailable");
	struct val sets = list_of(&k, SET), pods = list_of(&k, POD);
	CHECK_INT(val_len(sets), 1);
	CHECK_INT(val_len(pods), 3);
	CHECK_STR(val_str(val_at(val_get(val_at(pods, 0), metadata, ownerReferences), 0), kind), "ReplicaSet");
	CHECK(has_event(&k, "ScalingReplicaSet", "Scaled up replica set w-"));
	CHECK(has_event(&k, "SuccessfulCreate", "Created pod: w-"));

	/* Another template: all of them anew, the old set stays for a way back. */
	patch(&k, DEPLOYMENT, "w", "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'x:2'}]}}}}");
	(void)settle(&k, DEPLOYMENT, "w", "3 3 3 3");
	sets = list_of(&k, SET);
	CHECK_INT(val_len(sets), 2);
	CHECK_INT(val_int(val_at(sets, 0), spec, replicas) + val_int(val_at(sets, 1), spec, replicas), 3);
	VAL_EACH(pod, list_of(&k, POD))
		CHECK_STR(val_str(val_at(val_get(*pod, spec, containers), 0), image), "x:2");
	d = get(&k, DEPLOYMENT, "w");
	CHECK_STR(val_as_str(val_find(val_get(d, metadata, annotations), STR("deployment.kubernetes.io/revision"))), "2");

	/* Back by annotation. */
	patch(&k, DEPLOYMENT, "w", "{'metadata':{'annotations':{'deprecated.deployment.rollback.to':'1'}}}");
	int64_t until_ns = clock_now_ns() + WAIT_MS * NS_PER_MS;
	while (!has_event(&k, "DeploymentRollback", "Rolled back deployment \"w\" to revision 1") && clock_now_ns() < until_ns)
		CHECK_INT(fiber_sleep_ms(10, NULL), 0);
	(void)settle(&k, DEPLOYMENT, "w", "3 3 3 3");
	CHECK_INT(val_len(list_of(&k, SET)), 2);
	VAL_EACH(pod, list_of(&k, POD))
		CHECK_STR(val_str(val_at(val_get(*pod, spec, containers), 0), image), "x:1");

	patch(&k, DEPLOYMENT, "w", "{'spec':{'replicas':1}}");
	(void)settle(&k, DEPLOYMENT, "w", "1 1 1 1");
	CHECK_INT(val_len(list_of(&k, POD)), 1);
	cluster_done(&k);
}

FIBER_TEST(workloads_pods_replaced_and_adopted)
{
	struct cluster k;
	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	struct world *w = &k.w;

	/* One that is there already is taken on; so is one that comes later, and another goes for it. */
	CHECK_OK(w, client_create(w->c, POD, tree(w, "{'metadata':{'name':'lone','namespace':'n','labels':{'app':'w'}},'spec':{'containers':[{'name':'c','image':'x:1'}]}}"), NULL, NULL, &w->err));
	CHECK_OK(w, client_create(w->c, SET, tree(w, web), NULL, NULL, &w->err));
	(void)settle(&k, SET, "w", "3 0 3 3");
	struct val lone = get(&k, POD, "lone");
	CHECK_STR(val_str(val_at(val_get(lone, metadata, ownerReferences), 0), name), "w");
	CHECK_INT(val_len(list_of(&k, POD)), 3);

	/* One that is deleted is replaced; one whose labels change is let go, and replaced. */
	CHECK_OK(w, client_delete(w->c, POD, STR("n"), STR("lone"), &(struct client_delete_options){ .grace_s = 0 }, &w->err));
	struct val other = VAL_EMPTY;
	VAL_EACH(pod, list_of(&k, POD))
		if (!str_eq(val_str(*pod, metadata, name), STR("lone")))
			other = *pod;
	patch(&k, POD, val_str(other, metadata, name).p, "{'metadata':{'labels':{'app':'free'}}}");
	int64_t until_ns = clock_now_ns() + WAIT_MS * NS_PER_MS;
	while (val_len(list_of(&k, POD)) != 4 && clock_now_ns() < until_ns)
		CHECK_INT(fiber_sleep_ms(10, NULL), 0);
	(void)settle(&k, SET, "w", "3 0 3 3");
	CHECK_INT(val_len(list_of(&k, POD)), 4);
	CHECK_INT(val_len(val_get(get(&k, POD, val_str(other, metadata, name).p), metadata, ownerReferences)), 0);

	patch(&k, SET, "w", "{'spec':{'replicas':0}}");
	(void)settle(&k, SET, "w", "0 0 0 0");
	CHECK_INT(val_len(list_of(&k, POD)), 1);
	CHECK(has_event(&k, "SuccessfulDelete", "Deleted pod: w-"));
	cluster_done(&k);
}

FIBER_TEST(workloads_replication_controller)
{
	struct cluster k;
	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	struct world *w = &k.w;
	static const char rc[] = "{'metadata':{'name':'r','namespace':'n'},'spec':{'replicas':2,'selector':{'app':'w'},'template':" TEMPLATE("x:1") "}}";

	CHECK_OK(w, client_create(w->c, TYPE(core_v1, ReplicationController), tree(w, rc), NULL, NULL, &w->err));
	(void)settle(&k, TYPE(core_v1, ReplicationController), "r", "2 0 2 2");
	CHECK_STR(val_str(val_at(val_get(val_at(list_of(&k, POD), 0), metadata, ownerReferences), 0), kind), "ReplicationController");
	cluster_done(&k);
}

FIBER_TEST(workloads_ephemeral_volume)
{
	struct cluster k;
	cluster_init(&k, (struct controllers_options){ .enabled = enabled });
	struct world *w = &k.w;
	static const char volume[] = "{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}";
	static const char pod[] = "{'metadata':{'name':'%s','namespace':'n'},'spec':{'containers':[{'name':'c','image':'x:1'}],"
				  "'volumes':[{'name':'v','ephemeral':{'volumeClaimTemplate':{'metadata':{'labels':{'a':'b'}},'spec':%s}}}]}}";
	const struct type *claim = TYPE(core_v1, PersistentVolumeClaim);
	int64_t until_ns = clock_now_ns() + WAIT_MS * NS_PER_MS;

	/* Somebody else's of that name is left alone, and told about. */
	CHECK_OK(w, client_create(w->c, claim, tree(w, arena_printf(&w->arena, "{'metadata':{'name':'q-v','namespace':'n'},'spec':%s}", volume).p), NULL, NULL,
				  &w->err));
	CHECK_OK(w, client_create(w->c, POD, tree(w, arena_printf(&w->arena, pod, "q", volume).p), NULL, NULL, &w->err));
	CHECK_OK(w, client_create(w->c, POD, tree(w, arena_printf(&w->arena, pod, "p", volume).p), NULL, NULL, &w->err));
	while ((val_len(list_of(&k, claim)) < 2 ||
		!has_event(&k, "FailedBinding", "ephemeral volume v: PVC n/q-v was not created for pod n/q (pod is not owner)")) && clock_now_ns() < until_ns)
		CHECK_INT(fiber_sleep_ms(10, NULL), 0);
	CHECK(has_event(&k, "FailedBinding", "ephemeral volume v: PVC n/q-v was not created for pod n/q (pod is not owner)"));
	struct val made = get(&k, claim, "p-v"), owner = val_at(val_get(made, metadata, ownerReferences), 0);
	CHECK_STR(val_str(owner, kind), "Pod");
	CHECK_STR(val_str(owner, name), "p");
	CHECK_STR(val_as_str(val_find(val_get(made, metadata, labels), STR("a"))), "b");
	CHECK_STR(val_str(made, spec, resources, requests, storage), "1Gi");
	CHECK_INT(val_len(val_get(get(&k, claim, "q-v"), metadata, ownerReferences)), 0);
	cluster_done(&k);
}
