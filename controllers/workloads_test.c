/*
 * Deployments and what they bring about, on a whole API server in the same process: controllers with the identities that they have in a
 * cluster, and their roles; the test plays the kubelet. What exactly is done is in the tests of plans; here it is done.
 */
#include "base/clock.h"
#include "client/inside_testing.h"
#include "client/recorder.h"
#include "codec/atoms.h"
#include "controllers/controllers.h"

#define DEPLOYMENT TYPE(apps_v1, Deployment)
#define SET TYPE(apps_v1, ReplicaSet)
#define POD TYPE(core_v1, Pod)

enum { WAIT_MS = 15000, CLIENTS_MAX = 8 };

struct cluster {
	struct world w;
	struct fiber *controllers;
	struct client *clients[CLIENTS_MAX];
	const char *accounts[CLIENTS_MAX];
	size_t n;
	bool ready;
};

static struct client *client_for(void *arg, const char *account)
{
	static const str manager[] = { STR_INIT("system:authenticated") },
			 groups[] = { STR_INIT("system:serviceaccounts"), STR_INIT("system:serviceaccounts:kube-system"), STR_INIT("system:authenticated") };
	struct cluster *k = arg;

	for (size_t i = 0; i < k->n; i++)
		if (k->accounts[i] == account || (account && k->accounts[i] && strcmp(k->accounts[i], account) == 0))
			return k->clients[i];
	CHECK(k->n < CLIENTS_MAX);
	struct user user = { .name = STR("system:kube-controller-manager"), .groups = manager, .n_groups = ARRAY_LEN(manager) };
	if (account)
		user = (struct user){ .name = arena_printf(&k->w.arena, "system:serviceaccount:kube-system:%s", account), .groups = groups,
				      .n_groups = ARRAY_LEN(groups) };
	k->accounts[k->n] = account;
	return k->clients[k->n++] = client_inside(k->w.server, &user, "kube-controller-manager/v1 (x)");
}

static void on_ready(void *arg) { ((struct cluster *)arg)->ready = true; }

static int run_controllers(void *arg)
{
	static const char *const enabled[] = { "deployment-controller", "ephemeral-volume", "replicaset", "replicationcontroller-controller", NULL };
	struct cluster *k = arg;
	struct err err = ERR_INIT;
	int r = controllers_run(&(struct controllers_options){ .client_for = client_for, .arg = k, .enabled = enabled }, on_ready, k, &err);

	if (r != -ERR_CANCELED)
		fail_msg("controllers: %s", err.msg);
	return 0;
}

static void cluster_init(struct cluster *k)
{
	*k = (struct cluster){ .n = 0 };
	world_init(&k->w);
	CHECK_OK(&k->w, client_create(k->w.c, TYPE(core_v1, ServiceAccount), tree(&k->w, "{'metadata':{'name':'default','namespace':'n'}}"), NULL, NULL, &k->w.err));
	k->controllers = start(run_controllers, k);
}

static void cluster_done(struct cluster *k)
{
	(void)fiber_stop(k->controllers);
	for (size_t i = 0; i < k->n; i++)
		client_free(k->clients[i]);
	world_done(&k->w);
}

/* ---- looking ---- */

/* Plays the kubelet: every pod is ready at once. */
static void make_ready(struct cluster *k, struct val pods)
{
	VAL_EACH(pod, pods) {
		if (val_exists(val_get(*pod, status, conditions)))
			continue;
		struct val status = tree(&k->w, "{'phase':'Running','conditions':[{'type':'Ready','status':'True','lastTransitionTime':'2026-01-01T00:00:00Z'}]}");
		(void)client_update(k->w.c, POD, val_with(&k->w.arena, *pod, status, status), &(struct client_write_options){ .subresource = STR("status") }, NULL, NULL);
	}
}

static struct val list_of(struct cluster *k, const struct type *type)
{
	CLEANUP(frozen_unrefp) struct frozen *list = NULL;
	CHECK_OK(&k->w, client_list(k->w.c, type, &(struct client_list_options){ .namespace = STR("n") }, &list, &k->w.err));
	return val_copy(&k->w.arena, val_get(list->val, items));
}

static struct val get(struct cluster *k, const struct type *type, const char *name)
{
	CLEANUP(frozen_unrefp) struct frozen *object = NULL;
	CHECK_OK(&k->w, client_get(k->w.c, type, STR("n"), str_of(name), &object, &k->w.err));
	return val_copy(&k->w.arena, object->val);
}

/* "replicas updated ready available" of a status. */
static str numbers(struct cluster *k, struct val object)
{
	struct val s = val_get(object, status);
	return arena_printf(&k->w.arena, "%lld %lld %lld %lld", (long long)val_int(s, replicas), (long long)val_int(s, updatedReplicas),
			    (long long)val_int(s, readyReplicas), (long long)val_int(s, availableReplicas));
}

/* (suspends) Until the numbers are these and the newest spec was seen; pods become ready meanwhile. */
static struct val settle(struct cluster *k, const struct type *type, const char *name, const char *want)
{
	int64_t until_ns = clock_now_ns() + WAIT_MS * NS_PER_MS;
	struct val object = VAL_EMPTY;

	while (clock_now_ns() < until_ns) {
		make_ready(k, list_of(k, POD));
		object = get(k, type, name);
		if (val_int(object, status, observedGeneration) == val_int(object, metadata, generation) && str_eq(numbers(k, object), str_of(want)))
			return object;
		CHECK_INT(fiber_sleep_ms(10, NULL), 0);
	}
	fail_msg("%s is %s, not %s", name, numbers(k, object).p, want);
	return object;
}

static void patch(struct cluster *k, const struct type *type, const char *name, const char *json)
{
	CHECK_OK(&k->w, client_patch(k->w.c, type, STR("n"), str_of(name), CLIENT_PATCH_MERGE, tree(&k->w, json), NULL, NULL, &k->w.err));
}

static str reason_of(struct val object, const char *type)
{
	VAL_EACH(c, val_get(object, status, conditions))
		if (str_eq(val_str(*c, type), str_of(type)))
			return val_str(*c, reason);
	return STR_NONE;
}

static bool has_event(struct cluster *k, const char *reason, const char *message)
{
	VAL_EACH(e, list_of(k, TYPE(core_v1, Event)))
		if (str_eq(val_str(*e, reason), str_of(reason)) && str_starts(val_str(*e, message), str_of(message)))
			return true;
	return false;
}

#define TEMPLATE(image) "{'metadata':{'labels':{'app':'w'}},'spec':{'containers':[{'name':'c','image':'" image "'}]}}"

static const char web[] = "{'metadata':{'name':'w','namespace':'n'},'spec':{'replicas':3,'selector':{'matchLabels':{'app':'w'}},'template':" TEMPLATE("x:1") "}}";

/* ---- stories ---- */

FIBER_TEST(workloads_deployment)
{
	struct cluster k;
	cluster_init(&k);
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
	cluster_init(&k);
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
	cluster_init(&k);
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
	cluster_init(&k);
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
