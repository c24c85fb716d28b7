/* Objects that users make. */
#include "codec/atoms.h"
#include "codec/types.h"
#include "simulation/work.h"

/* ---- workloads ---- */

/* Labels are by kind and name, and so are budgets and services. */
static str pod_template(struct deed *d, str app, const char *restart, const char *annotations)
{
	static const char *const classes[] = { "", "", "'priorityClassName':'high',", "'priorityClassName':'low'," };
	static const char *const tolerations[] = {
		"",
		"'tolerations':[{'key':'node.kubernetes.io/unreachable','operator':'Exists','effect':'NoExecute','tolerationSeconds':5},"
		"{'key':'node.kubernetes.io/not-ready','operator':'Exists','effect':'NoExecute','tolerationSeconds':5}],",
	};
	const char *class = classes[work_below(d, (int64_t)ARRAY_LEN(classes))], *tolerates = tolerations[work_below(d, 2)];
	long long grace_s = 1 + work_below(d, 3), version = work_below(d, 5), cpu_milli = 100 * dice_between(&d->sim->dice, 1, 8);

	return arena_printf(d->arena, "{'metadata':{'labels':{'app':'" STR_FMT "'}%s},'spec':{%s%s'restartPolicy':'%s','terminationGracePeriodSeconds':%lld,"
			    "'containers':[{'name':'c','image':'x:%lld','resources':{'requests':{'cpu':'%lldm'}}}]}}", STR_ARG(app), annotations, class,
			    tolerates, restart, grace_s, version, cpu_milli);
}

/* name, namespace, and the label again */
#define HEAD "{'metadata':{'name':'" STR_FMT "','namespace':'%s'},'spec':{'selector':{'matchLabels':{'app':'" STR_FMT "'}},"

static void make_deployment(struct deed *d)
{
	str name = work_name(d, "dep");
	str template = pod_template(d, name, "Always", "");
	long long replicas = work_below(d, 6), surge = 1 + work_below(d, 2), unavailable = work_below(d, 3), ready_s = work_below(d, 2);

	work_create(d, TYPE(apps_v1, Deployment), work_tree(d->arena, HEAD "'replicas':%lld,'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxSurge':%lld,"
		"'maxUnavailable':%lld}},'minReadySeconds':%lld,'template':" STR_FMT "}}", STR_ARG(name), d->namespace, STR_ARG(name), replicas, surge,
		unavailable, ready_s, STR_ARG(template)));
}

static void make_replica_set(struct deed *d)
{
	str name = work_name(d, "set");
	str template = pod_template(d, name, "Always", "");
	long long replicas = work_below(d, 5);

	work_create(d, TYPE(apps_v1, ReplicaSet), work_tree(d->arena, HEAD "'replicas':%lld,'template':" STR_FMT "}}", STR_ARG(name), d->namespace,
		STR_ARG(name), replicas, STR_ARG(template)));
}

/* A claim of a class; also as a template of claims. */
static str claim_of(struct deed *d, const char *name)
{
	static const char *const classes[] = { "local-path", "local-path", "static", "late" };
	const char *class = classes[work_below(d, (int64_t)ARRAY_LEN(classes))];

	return arena_printf(d->arena, "{'metadata':{'name':'%s','namespace':'%s'},'spec':{'accessModes':['ReadWriteOnce'],'storageClassName':'%s',"
			    "'resources':{'requests':{'storage':'1Gi'}}}}", name, d->namespace, class);
}

/* The second of that name has a claim for each pod, always: pods that one leaves behind are the next one's, and cannot get claims then. */
static void make_stateful_set(struct deed *d)
{
	static const char *const ends[] = { "Retain", "Delete" };
	str name = work_name(d, "db"), claims = STR("[]");
	str template = pod_template(d, name, "Always", "");
	long long replicas = work_below(d, 4);
	const char *policy = work_below(d, 2) ? "OrderedReady" : "Parallel", *deleted = ends[work_below(d, 2)], *scaled = ends[work_below(d, 2)];

	if (str_eq(name, STR("db1"))) {
		str claim = claim_of(d, "data");
		claims = arena_printf(d->arena, "[" STR_FMT "]", STR_ARG(claim));
	}
	work_create(d, TYPE(apps_v1, StatefulSet), work_tree(d->arena, HEAD "'replicas':%lld,'serviceName':'s','podManagementPolicy':'%s',"
		"'persistentVolumeClaimRetentionPolicy':{'whenDeleted':'%s','whenScaled':'%s'},'volumeClaimTemplates':" STR_FMT ",'template':" STR_FMT "}}",
		STR_ARG(name), d->namespace, STR_ARG(name), replicas, policy, deleted, scaled, STR_ARG(claims), STR_ARG(template)));
}

static void make_replication_controller(struct deed *d)
{
	str name = work_name(d, "rc");
	str template = pod_template(d, name, "Always", "");
	long long replicas = work_below(d, 5);

	work_create(d, TYPE(core_v1, ReplicationController), work_tree(d->arena, "{'metadata':{'name':'" STR_FMT "','namespace':'%s'},'spec':{'replicas':%lld,"
		"'selector':{'app':'" STR_FMT "'},'template':" STR_FMT "}}", STR_ARG(name), d->namespace, replicas, STR_ARG(name), STR_ARG(template)));
}

static void make_daemon_set(struct deed *d)
{
	str name = work_name(d, "each");
	str template = pod_template(d, name, "Always", "");

	work_create(d, TYPE(apps_v1, DaemonSet), work_tree(d->arena, HEAD "'template':" STR_FMT "}}", STR_ARG(name), d->namespace, STR_ARG(name), STR_ARG(template)));
}

/* Pods that end by themselves, mostly well. */
static str job_template(struct deed *d, str app, int64_t most_s)
{
	long long seconds = dice_between(&d->sim->dice, 1, most_s);
	int fails = work_below(d, 4) == 0;
	str fares = arena_printf(d->arena, ",'annotations':{'hollow.c8s.io/seconds':'%lld','hollow.c8s.io/exit-code':'%d'}", seconds, fails);

	return pod_template(d, app, "Never", fares.p);
}

static void make_job(struct deed *d)
{
	str name = work_name(d, "job");
	str template = job_template(d, name, 20);
	long long n = dice_between(&d->sim->dice, 1, 4), at_once = dice_between(&d->sim->dice, 1, n), retries = work_below(d, 3);
	const char *mode = work_below(d, 2) ? "Indexed" : "NonIndexed", *kept = work_below(d, 4) ? "" : "'ttlSecondsAfterFinished':10,";

	work_create(d, TYPE(batch_v1, Job), work_tree(d->arena, "{'metadata':{'name':'" STR_FMT "','namespace':'%s'},'spec':{'completions':%lld,%s"
		"'parallelism':%lld,'backoffLimit':%lld,'completionMode':'%s','template':" STR_FMT "}}", STR_ARG(name), d->namespace, n, kept, at_once,
		retries, mode, STR_ARG(template)));
}

/* Every minute; some runs are longer than that. */
static void make_cron_job(struct deed *d)
{
	static const char *const policies[] = { "Allow", "Forbid", "Replace" };
	str name = work_name(d, "cron");
	str template = job_template(d, name, work_below(d, 4) ? 20 : 100);
	const char *policy = policies[work_below(d, (int64_t)ARRAY_LEN(policies))], *deadline = work_below(d, 2) ? "" : "'startingDeadlineSeconds':25,";
	long long good = work_below(d, 3), bad = work_below(d, 2);

	work_create(d, TYPE(batch_v1, CronJob), work_tree(d->arena, "{'metadata':{'name':'" STR_FMT "','namespace':'%s'},'spec':{'schedule':'* * * * *',%s"
		"'concurrencyPolicy':'%s','successfulJobsHistoryLimit':%lld,'failedJobsHistoryLimit':%lld,"
		"'jobTemplate':{'spec':{'backoffLimit':1,'template':" STR_FMT "}}}}", STR_ARG(name), d->namespace, deadline, policy, good, bad, STR_ARG(template)));
}

static void lone_pod(struct deed *d)
{
	str template = pod_template(d, work_name(d, "set"), "Always", ""), name = arena_printf(d->arena, "lone%lld", (long long)work_below(d, 3));
	struct val v = work_tree(d->arena, STR_FMT, STR_ARG(template));

	v = val_with(d->arena, v, VAL_STR(name), metadata, name);
	if (work_below(d, 2)) {
		struct val source = OBJECT(d->arena, F(claimName, VAL_STR(work_name(d, "claim"))));
		v = val_with(d->arena, v, LIST(d->arena, OBJECT(d->arena, F(name, VAL_LIT("v")), F(persistentVolumeClaim, source))), spec, volumes);
	}
	work_create(d, TYPE(core_v1, Pod), val_with(d->arena, v, VAL_STR(str_of(d->namespace)), metadata, namespace));
}

/* ---- storage and network ---- */

static void make_claim(struct deed *d)
{
	str claim = claim_of(d, work_name(d, "claim").p);
	work_create(d, TYPE(core_v1, PersistentVolumeClaim), work_tree(d->arena, STR_FMT, STR_ARG(claim)));
}

/* One that somebody has put there, on one node. */
static void make_volume(struct deed *d)
{
	long long number = work_below(d, 6), node = work_below(d, d->sim->n_nodes);
	const char *class = work_below(d, 2) ? "static" : "late";

	work_create(d, TYPE(core_v1, PersistentVolume), work_tree(d->arena, "{'metadata':{'name':'pv%lld'},'spec':{'capacity':{'storage':'1Gi'},"
		"'accessModes':['ReadWriteOnce'],'persistentVolumeReclaimPolicy':'Retain','storageClassName':'%s','local':{'path':'/data'},"
		"'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'kubernetes.io/hostname','operator':'In',"
		"'values':['node-%lld']}]}]}}}}", number, class, node));
}

static const char *draw_app(struct deed *d)
{
	static const char *const apps[] = { "dep0", "dep1", "set0", "db0", "db1", "rc0" };
	return apps[work_below(d, (int64_t)ARRAY_LEN(apps))];
}

static void make_service(struct deed *d)
{
	str name = work_name(d, "svc");
	const char *app = draw_app(d), *address = work_below(d, 3) ? "" : "'clusterIP':'None',";

	work_create(d, TYPE(core_v1, Service), work_tree(d->arena, "{'metadata':{'name':'" STR_FMT "','namespace':'%s'},'spec':{%s'selector':{'app':'%s'},"
		"'ports':[{'port':80}]}}", STR_ARG(name), d->namespace, address, app));
}

/* ---- what limits ---- */

static void make_budget(struct deed *d)
{
	const char *app = draw_app(d), *bound = work_below(d, 2) ? "minAvailable" : "maxUnavailable";
	long long n = dice_between(&d->sim->dice, 1, 3);

	work_create(d, TYPE(policy_v1, PodDisruptionBudget), work_tree(d->arena, "{'metadata':{'name':'%s','namespace':'%s'},"
		"'spec':{'%s':%lld,'selector':{'matchLabels':{'app':'%s'}}}}", app, d->namespace, bound, n, app));
}

static void make_quota(struct deed *d)
{
	long long pods = dice_between(&d->sim->dice, 3, 12), cpu = dice_between(&d->sim->dice, 2, 6);

	work_create(d, TYPE(core_v1, ResourceQuota), work_tree(d->arena, "{'metadata':{'name':'q','namespace':'%s'},"
		"'spec':{'hard':{'pods':'%lld','requests.cpu':'%lld'}}}", d->namespace, pods, cpu));
}

void work_make_namespace(struct deed *d)
{
	work_create(d, TYPE(core_v1, Namespace), work_tree(d->arena, "{'metadata':{'name':'%s'}}", d->namespace));
}

void work_make_classes(struct deed *d)
{
	static const char class[] = "{'metadata':{'name':'%s'},'provisioner':'kubernetes.io/no-provisioner','volumeBindingMode':'%s'}";

	work_create(d, TYPE(scheduling_v1, PriorityClass), work_tree(d->arena, "{'metadata':{'name':'high'},'value':1000}"));
	work_create(d, TYPE(scheduling_v1, PriorityClass), work_tree(d->arena, "{'metadata':{'name':'low'},'value':-10}"));
	work_create(d, TYPE(storage_v1, StorageClass), work_tree(d->arena, class, "static", "Immediate"));
	work_create(d, TYPE(storage_v1, StorageClass), work_tree(d->arena, class, "late", "WaitForFirstConsumer"));
}

const struct deed_kind work_makes[] = {
	{ make_deployment, "make a Deployment", 16 }, { make_replica_set, "make a ReplicaSet", 6 }, { make_stateful_set, "make a StatefulSet", 12 },
	{ make_daemon_set, "make a DaemonSet", 4 }, { make_replication_controller, "make a ReplicationController", 4 }, { make_job, "make a Job", 8 },
	{ make_cron_job, "make a CronJob", 6 }, { lone_pod, "make a pod", 6 }, { make_claim, "make a claim", 5 }, { make_volume, "make a volume", 6 },
	{ make_service, "make a Service", 7 }, { make_budget, "make a budget", 8 }, { make_quota, "make a quota", 3 },
	{ work_make_namespace, "make a namespace", 8 }, { NULL, NULL, 0 },
};
