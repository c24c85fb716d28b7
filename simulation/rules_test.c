/* Every rule is seen to be broken by a history that breaks it, and kept by one that is almost the same. */
#include "simulation/rules.h"

#include <stdlib.h>

#include "base/clock.h"
#include "machinery/testing.h"

enum { STEPS = 7 };

static const int64_t begin_ns = INT64_C(1000) * NS_PER_S, wall_ns = INT64_C(1767225600) * NS_PER_S; /* 2026-01-01T00:00:00Z */

/* One write: key below /registry/, object (NULL: it is gone). Or what happens: "+12" that many seconds pass, "late", "stopped" a pod's uid, "unsure" a node. */
struct step {
	const char *key, *json;
};

struct world {
	struct arena arena;
	struct history history;
	struct rules rules;
};

static void world_init(struct world *w)
{
	*w = (struct world){ .arena = ARENA_INIT };
	clock_virtual_set(begin_ns, wall_ns);
	history_init(&w->history, false);
	rules_init(&w->rules, &w->history);
}

static void world_done(struct world *w)
{
	rules_done(&w->rules);
	history_done(&w->history);
	arena_done(&w->arena);
	clock_virtual_off();
}

static void world_step(struct world *w, const struct step *s)
{
	if (s->key[0] == '+') {
		clock_virtual_advance(strtoll(s->key, NULL, 10) * NS_PER_S);
	} else if (strcmp(s->key, "late") == 0) {
		w->rules.late = true;
	} else if (strcmp(s->key, "stopped") == 0) {
		rules_stopped(&w->rules, str_of(s->json));
	} else if (strcmp(s->key, "unsure") == 0) {
		rules_unsure(&w->rules, str_of(s->json));
	} else {
		CLEANUP(frozen_unrefp) struct frozen *now = s->json ? val_freeze(testing_tree(&w->arena, s->json)) : NULL;
		rules_change(&w->rules, arena_printf(&w->arena, "/registry/%s", s->key), now);
	}
}

/* ---- objects ---- */

#define META(name, uid, more) "'metadata':{'name':'" name "','namespace':'a','uid':'" uid "'" more "}"
#define LABEL(app) ",'labels':{'app':'" app "'}"
#define OWNER(kind, name, uid) ",'ownerReferences':[{'kind':'" kind "','name':'" name "','uid':'" uid "','controller':true}]"
#define ENDING ",'deletionTimestamp':'2026-01-01T00:00:00Z'"
#define CPU(milli) "'containers':[{'name':'c','resources':{'requests':{'cpu':'" milli "m'}}}],"
#define POD(meta, spec, phase, more) "{" meta ",'spec':{" spec "'priority':0},'status':{'phase':'" phase "'" more "}}"
#define IS(type) ",'conditions':[{'type':'" type "','status':'True'}]"
#define NODE(name, cpu) "{'metadata':{'name':'" name "','uid':'" name "'},'status':{'allocatable':{'cpu':'" cpu "','pods':'2'}" IS("Ready") "}}"
#define ON(node) "'nodeName':'" node "',"
#define WITH_CLAIM "'volumes':[{'persistentVolumeClaim':{'claimName':'c'}}],"
#define BIND ",'annotations':{'pv.kubernetes.io/bind-completed':'yes'}"
#define CLAIM(uid, meta, volume, phase) "{" META("c", uid, meta) ",'spec':{'storageClassName':'static','volumeName':'" volume "'},'status':{'phase':'" phase "'}}"
#define VOLUME(uid, policy, phase) "{'metadata':{'name':'v','uid':'v'},'spec':{'storageClassName':'static','persistentVolumeReclaimPolicy':'" policy "'," \
	"'claimRef':{'namespace':'a','name':'c','uid':'" uid "'},'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'values':['n']}]}]}}}," \
	"'status':{'phase':'" phase "'}}"
#define FREE_VOLUME "{'metadata':{'name':'v','uid':'v'},'spec':{'storageClassName':'static'},'status':{'phase':'Available'}}"
#define BUDGET(status) "{" META("b", "b", "") ",'spec':{'selector':{'matchLabels':{'app':'x'}}},'status':{" status "}}"
#define HEALTHY(name) POD(META(name, name, LABEL("x")), "", "Running", IS("Ready"))
#define EVICTED POD(META("p", "p", LABEL("x")), "", "Running", ",'conditions':[{'type':'DisruptionTarget','reason':'EvictionByEvictionAPI'}]")
#define QUOTA(pods, used) "{" META("q", "q", "") ",'spec':{'hard':{'pods':'" pods "','requests.cpu':'1'}}," \
	"'status':{'hard':{'pods':'" pods "','requests.cpu':'1'},'used':{'pods':'" used "','requests.cpu':'" used "00m'}}}"
#define LEASE(holder, at) "{" META("kube-scheduler", "l", "") \
	",'spec':{'holderIdentity':'" holder "','leaseDurationSeconds':15,'renewTime':'2026-01-01T00:00:" at ".000000Z'}}"
#define JOB(meta, spec, status) "{" META("j", "j", meta) ",'spec':{" spec "},'status':{" status "}}"
#define DUE(at) OWNER("CronJob", "j", "j") ",'annotations':{'batch.kubernetes.io/cronjob-scheduled-timestamp':'" at "'}"
#define TIMED(uid, at, status) "{" META("j-" at, uid, DUE(at)) ",'status':{" status "}}"
#define CRON(policy, active) "{" META("j", "j", "") \
	",'spec':{'concurrencyPolicy':'" policy "','successfulJobsHistoryLimit':1,'failedJobsHistoryLimit':0},'status':{'active':[" active "]}}"

/* ---- at every write ---- */

static void check_history(size_t row, const struct step *steps, const char *rule)
{
	struct world w;
	size_t i = 0;

	world_init(&w);
	for (; i < STEPS && steps[i].key; i++) {
		CHECK_ROW(row, !w.rules.failed); /* only the last one breaks it */
		world_step(&w, &steps[i]);
	}
	if (w.rules.failed != (rule != NULL) || (rule && !str_starts(buf_str(&w.rules.text), str_of(rule))))
		fail_msg("row %zu: not %s, but " STR_FMT, row, rule ? rule : "kept", STR_ARG(buf_str(&w.rules.text)));
	world_done(&w);
}

TEST(rules_at_every_write)
{
	static const struct {
		struct step steps[STEPS];
		const char *rule;
	} rows[] = {
		/* pods and nodes */
		{ { { "pods/a/p", POD(META("p", "1", ""), ON("x"), "", "") }, { "pods/a/p", POD(META("p", "1", ""), ON("y"), "", "") } }, "a pod was bound twice" },
		{ { { "pods/a/p", POD(META("p", "1", ""), ON("x"), "", "") }, { "pods/a/p", POD(META("p", "2", ""), ON("y"), "", "") } }, NULL },
		{ { { "minions/n", NODE("n", "1") }, { "pods/a/p", POD(META("p", "p", ""), ON("n") CPU("600"), "", "") },
		    { "pods/a/q", POD(META("q", "q", ""), ON("n") CPU("401"), "", "") } }, "a node has more than it can take" },
		{ { { "minions/n", NODE("n", "1") }, { "pods/a/p", POD(META("p", "p", ""), ON("n") CPU("600"), "", "") },
		    { "pods/a/q", POD(META("q", "q", ""), ON("n") CPU("400"), "", "") } }, NULL },
		{ { { "minions/n", NODE("n", "1") }, { "pods/a/p", POD(META("p", "p", ""), ON("n"), "", "") }, { "pods/a/q", POD(META("q", "q", ""), ON("n"), "", "") },
		    { "pods/a/r", POD(META("r", "r", ""), ON("n"), "", "") } }, "a node has more than it can take" },
		{ { { "minions/n", NODE("n", "1") }, { "pods/a/p", POD(META("p", "p", ""), ON("n") CPU("600"), "Running", "") }, { "late", NULL },
		    { "pods/a/q", POD(META("q", "q", ""), ON("n") CPU("401"), "", "") } }, NULL },
		{ { { "minions/n", NODE("n", "1") }, { "unsure", "n" }, { "pods/a/p", POD(META("p", "p", ""), ON("n") CPU("600"), "Running", "") }, { "+9", NULL },
		    { "pods/a/q", POD(META("q", "q", ""), ON("n") CPU("401"), "", "") } }, NULL },
		{ { { "minions/n", NODE("n", "1") }, { "unsure", "n" }, { "pods/a/p", POD(META("p", "p", ""), ON("n") CPU("600"), "Running", "") }, { "+10", NULL },
		    { "pods/a/q", POD(META("q", "q", ""), ON("n") CPU("401"), "", "") } }, "a node has more than it can take" },
		{ { { "minions/n", NODE("n", "1") }, { "pods/a/p", POD(META("p", "p", ""), ON("n") CPU("600"), "Running", "") }, { "late", NULL },
		    { "pods/a/q", POD(META("q", "q", ""), ON("n") CPU("401"), "", "") }, { "pods/a/q", POD(META("q", "q", ""), ON("n") CPU("401"), "Running", "") } },
		  "a node runs more than it can take" },
		{ { { "minions/n", NODE("n", "1") }, { "pods/a/p", POD(META("p", "p", ""), ON("n"), "Running", ",'podIP':'1.2.3.4'") },
		    { "pods/a/q", POD(META("q", "q", ""), ON("n"), "Running", ",'podIP':'1.2.3.4'") } }, "two pods have one address" },
		{ { { "minions/n", NODE("n", "1") }, { "pods/a/p", POD(META("p", "p", ""), ON("n"), "Running", "") }, { "pods/a/p", NULL } },
		  "a pod is gone that its node has not stopped" },
		{ { { "minions/n", NODE("n", "1") }, { "pods/a/p", POD(META("p", "p", ""), ON("n"), "Running", "") },
		    { "pods/a/p", POD(META("p", "q", ""), "", "", "") } }, "a pod is gone that its node has not stopped" },
		{ { { "minions/n", NODE("n", "1") }, { "pods/a/p", POD(META("p", "p", ""), ON("n"), "Running", "") }, { "stopped", "p" }, { "pods/a/p", NULL } }, NULL },
		{ { { "pods/a/p", POD(META("p", "p", ""), ON("n"), "Running", "") }, { "pods/a/p", NULL } }, NULL },
		{ { { "pods/a/p", POD(META("p", "p", ""), "", "Failed", "") }, { "pods/a/p", POD(META("p", "p", ""), "", "Running", "") } }, "a pod that has ended lives again" },
		/* Jobs */
		{ { { "jobs/a/j", JOB("", "", "'succeeded':1") } }, "a job counts too many successes" },
		{ { { "pods/a/p", POD(META("p", "p", OWNER("Job", "j", "j")), "", "Succeeded", "") }, { "jobs/a/j", JOB("", "", "'succeeded':1") } }, NULL },
		{ { { "jobs/a/j", JOB("", "", "'uncountedTerminatedPods':{'failed':['2']}") } }, "a job counts too many failures" },
		{ { { "pods/a/p", POD(META("p", "p", OWNER("Job", "j", "j") ENDING), "", "Running", "") }, { "jobs/a/j", JOB("", "", "'failed':1") } }, NULL },
		{ { { "jobs/a/j", JOB("", "'completions':1", "'conditions':[{'type':'Complete','status':'True'}]") } }, "a job is complete too early" },
		/* budgets */
		{ { { "poddisruptionbudgets/a/b", BUDGET("'disruptionsAllowed':-1") } }, "a disruption budget is overdrawn" },
		{ { { "poddisruptionbudgets/a/b", BUDGET("'disruptionsAllowed':0") },
		    { "poddisruptionbudgets/a/b", BUDGET("'disruptionsAllowed':0,'disruptedPods':{'p':'t'}") } }, "an eviction that its budget does not allow" },
		{ { { "pods/a/p", HEALTHY("p") }, { "poddisruptionbudgets/a/b", BUDGET("'disruptionsAllowed':1,'desiredHealthy':1") },
		    { "poddisruptionbudgets/a/b", BUDGET("'disruptionsAllowed':0,'desiredHealthy':1,'disruptedPods':{'p':'t'}") } }, "an eviction breaks a disruption budget" },
		{ { { "pods/a/p", HEALTHY("p") }, { "pods/a/q", HEALTHY("q") }, { "poddisruptionbudgets/a/b", BUDGET("'disruptionsAllowed':1,'desiredHealthy':1") },
		    { "poddisruptionbudgets/a/b", BUDGET("'disruptionsAllowed':0,'desiredHealthy':1,'disruptedPods':{'p':'t'}") } }, NULL },
		{ { { "poddisruptionbudgets/a/b", BUDGET("") }, { "pods/a/p", HEALTHY("p") }, { "+11", NULL }, { "pods/a/p", EVICTED } },
		  "an eviction that its budget does not know of" },
		{ { { "poddisruptionbudgets/a/b", BUDGET("") }, { "pods/a/p", HEALTHY("p") }, { "pods/a/p", EVICTED } }, NULL },
		{ { { "poddisruptionbudgets/a/b", BUDGET("'disruptionsAllowed':1") }, { "pods/a/p", HEALTHY("p") }, { "+11", NULL },
		    { "poddisruptionbudgets/a/b", BUDGET("'disruptionsAllowed':0,'disruptedPods':{'p':'t'}") }, { "pods/a/p", EVICTED } }, NULL },
		/* quotas */
		{ { { "resourcequotas/a/q", QUOTA("1", "0") }, { "+6", NULL }, { "pods/a/p", POD(META("p", "p", ""), CPU("100"), "", "") },
		    { "pods/a/q", POD(META("q", "q", ""), CPU("100"), "", "") } }, "a quota is exceeded" },
		{ { { "resourcequotas/a/q", QUOTA("2", "0") }, { "+6", NULL }, { "pods/a/p", POD(META("p", "p", ""), CPU("1001"), "", "") } }, "a quota is exceeded" },
		{ { { "resourcequotas/a/q", QUOTA("1", "0") }, { "+6", NULL }, { "pods/a/p", POD(META("p", "p", ""), CPU("100"), "Failed", "") },
		    { "pods/a/q", POD(META("q", "q", ""), CPU("1000"), "", "") } }, NULL },
		/* leaders */
		{ { { "leases/kube-system/kube-scheduler", LEASE("x", "00") }, { "+14", NULL }, { "leases/kube-system/kube-scheduler", LEASE("y", "14") } },
		  "a lease is taken from who holds it" },
		{ { { "leases/kube-system/kube-scheduler", LEASE("x", "00") }, { "+15", NULL }, { "leases/kube-system/kube-scheduler", LEASE("y", "15") } }, NULL },
		{ { { "leases/kube-system/kube-scheduler", LEASE("x", "00") }, { "leases/kube-system/kube-scheduler", LEASE("", "01") },
		    { "leases/kube-system/kube-scheduler", LEASE("y", "01") } }, NULL },
		/* claims and volumes */
		{ { { "persistentvolumes/v", VOLUME("1", "", "") }, { "persistentvolumes/v", VOLUME("2", "", "") } }, "a volume changes its claim" },
		{ { { "persistentvolumeclaims/a/c", CLAIM("1", "", "v", "") }, { "persistentvolumeclaims/a/c", CLAIM("1", "", "w", "") } }, "a claim changes its volume" },
		{ { { "persistentvolumes/v", VOLUME("1", "", "") }, { "persistentvolumeclaims/a/c", CLAIM("2", "", "v", "Bound") } },
		  "a claim is bound to a volume that is not its own" },
		{ { { "persistentvolumes/v", VOLUME("1", "", "") }, { "persistentvolumeclaims/a/c", CLAIM("1", BIND, "v", "Bound") },
		    { "pods/a/p", POD(META("p", "p", ""), ON("n") WITH_CLAIM, "", "") }, { "+11", NULL }, { "persistentvolumeclaims/a/c", NULL } },
		  "a claim is gone that a pod uses" },
		{ { { "persistentvolumeclaims/a/c", CLAIM("1", "", "", "Pending") }, { "pods/a/p", POD(META("p", "p", ""), ON("n") WITH_CLAIM, "", "") } },
		  "a pod is placed before its claim is bound" },
		{ { { "persistentvolumes/v", VOLUME("1", "", "") }, { "persistentvolumeclaims/a/c", CLAIM("1", BIND, "v", "Bound") },
		    { "pods/a/p", POD(META("p", "p", ""), ON("m") WITH_CLAIM, "", "") } }, "a pod is not where its volume is" },
		/* CronJobs */
		{ { { "jobs/a/j1", TIMED("1", "x", "") }, { "jobs/a/j1", NULL }, { "jobs/a/j1", TIMED("2", "x", "") } }, "a CronJob runs twice at one time" },
		{ { { "jobs/a/j1", TIMED("1", "x", "") }, { "jobs/a/j2", TIMED("2", "y", "") } }, NULL },
		{ { { "cronjobs/a/j", CRON("Forbid", "") }, { "jobs/a/j1", TIMED("1", "x", "") }, { "jobs/a/j2", TIMED("2", "y", "") } }, "a CronJob runs two at once" },
		{ { { "cronjobs/a/j", CRON("Forbid", "") }, { "jobs/a/j1", TIMED("1", "x", "'conditions':[{'type':'Failed','status':'True'}]") },
		    { "jobs/a/j2", TIMED("2", "y", "") } }, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_history(i, rows[i].steps, rows[i].rule);
}

TEST(rules_count_writes)
{
	struct world w;

	world_init(&w);
	w.history.writes = 1000000;
	rules_written(&w.rules, STR("/registry/pods/a/p"), NULL);
	CHECK(str_starts(buf_str(&w.rules.text), STR("something runs in circles")));
	world_done(&w);
}

/* ---- at the end ---- */

#define SET(meta, spec, status) "{" META("w", "w", meta) ",'spec':{" spec "},'status':{" status "}}"
#define COUNTS(n) "'replicas':" n ",'readyReplicas':" n ",'availableReplicas':" n
#define READY_OF(kind, name, node) POD(META(name, name, OWNER(kind, "w", "w")), ON(node), "Running", IS("Ready"))
#define DAEMONS(status) SET("", "", "'desiredNumberScheduled':1," status)
#define SERVICE "{" META("s", "s", "") ",'spec':{'selector':{'app':'x'}}}"
#define LISTED POD(META("p", "p", LABEL("x")), "", "Running", ",'podIP':'1.2.3.4'" IS("Ready"))
#define SLICE(endpoints) "{" META("s-1", "s-1", ",'labels':{'kubernetes.io/service-name':'s'}") ",'endpoints':[" endpoints "]}"
#define AN_ENDPOINT(ready) "{'addresses':['1.2.3.4'],'conditions':{'ready':" ready "},'targetRef':{'uid':'p'}}"
#define ENDPOINTS(list) "{" META("s", "e", "") ",'subsets':[{'" list "':[{'ip':'1.2.3.4','targetRef':{'uid':'p'}}]}]}"
#define DONE_JOB(name) "{" META(name, name, DUE(name)) ",'status':{'conditions':[{'type':'Complete','status':'True'}]}}"

static void check_end(size_t row, const struct step *steps, const char *complaint)
{
	CLEANUP(buf_done) struct buf why = BUF_INIT(4096);
	struct world w;

	world_init(&w);
	world_step(&w, &(struct step){ "namespaces/a", "{'metadata':{'name':'a','uid':'a'}}" });
	for (size_t i = 0; i < STEPS && steps[i].key; i++)
		world_step(&w, &steps[i]);
	if (w.rules.failed)
		fail_msg("row %zu: " STR_FMT, row, STR_ARG(buf_str(&w.rules.text)));
	bool settled = rules_settled(&w.rules, &why);
	if (settled != !complaint || (complaint && str_find(buf_str(&why), str_of(complaint)) < 0))
		fail_msg("row %zu: not %s, but " STR_FMT, row, complaint ? complaint : "kept", STR_ARG(buf_str(&why)));
	world_done(&w);
}

TEST(rules_at_the_end_of_workloads)
{
	static const struct {
		struct step steps[STEPS];
		const char *complaint;
	} rows[] = {
		{ { { "replicasets/a/w", SET(ENDING, "'replicas':0", "") } }, "it is not gone" },
		{ { { "replicasets/a/w", SET(",'generation':2", "'replicas':0", "") } }, "its newest specification was not seen" },
		{ { { "replicasets/a/w", SET("", "'replicas':1", COUNTS("1")) } }, "its pods are not there" },
		{ { { "replicasets/a/w", SET("", "'replicas':1", COUNTS("0")) }, { "minions/n", NODE("n", "1") }, { "pods/a/p", READY_OF("ReplicaSet", "p", "n") } },
		  "its status does not say what there is" },
		{ { { "replicasets/a/w", SET("", "'replicas':1", COUNTS("1")) }, { "minions/n", NODE("n", "1") }, { "pods/a/p", READY_OF("ReplicaSet", "p", "n") } }, NULL },
		{ { { "replicasets/a/w", SET("", "'replicas':0", COUNTS("0")) }, { "minions/n", NODE("n", "1") }, { "pods/a/p", READY_OF("ReplicaSet", "p", "n") } },
		  "it has too many pods" },
		{ { { "controllers/a/w", SET("", "'replicas':0", COUNTS("0")) }, { "minions/n", NODE("n", "1") },
		    { "pods/a/p", READY_OF("ReplicationController", "p", "n") } }, "it has too many pods" },
		{ { { "controllers/a/w", SET("", "'replicas':1", COUNTS("1")) } }, "its pods are not there" },
		{ { { "statefulsets/a/w", SET("", "'replicas':1", COUNTS("1")) } }, "its pods are not there" },
		{ { { "deployments/a/w", SET("", "'replicas':1", COUNTS("1")) } }, "its pods are not there" },
		{ { { "deployments/a/w", SET("", "'replicas':1", COUNTS("1")) }, { "minions/n", NODE("n", "1") }, { "pods/a/p", READY_OF("Deployment", "p", "n") } },
		  "its pods are not the newest" },
		{ { { "deployments/a/w", SET("", "'replicas':1", COUNTS("1") ",'updatedReplicas':1") }, { "minions/n", NODE("n", "1") },
		    { "pods/a/p", READY_OF("Deployment", "p", "n") } }, NULL },
		{ { { "daemonsets/a/w", SET(ENDING, "", "") } }, "it is not gone" },
		{ { { "daemonsets/a/w", SET("", "", "") }, { "minions/n", NODE("n", "1") } }, "it does not know how many there shall be" },
		{ { { "daemonsets/a/w", DAEMONS("'numberReady':0") }, { "minions/n", NODE("n", "1") } }, "its pods are not there" },
		{ { { "daemonsets/a/w", DAEMONS("'numberReady':0") }, { "minions/n", NODE("n", "1") },
		    { "pods/a/p", POD(META("p", "p", OWNER("DaemonSet", "w", "w")), ON("n"), "Running", "") } }, "its pods are not ready" },
		{ { { "daemonsets/a/w", DAEMONS("'numberReady':1") }, { "minions/n", NODE("n", "1") }, { "pods/a/p", READY_OF("DaemonSet", "p", "n") } },
		  "its pods are not the newest" },
		{ { { "daemonsets/a/w", DAEMONS("'updatedNumberScheduled':1") }, { "minions/n", NODE("n", "1") }, { "pods/a/p", READY_OF("DaemonSet", "p", "n") } },
		  "its status does not say what there is" },
		{ { { "daemonsets/a/w", DAEMONS("'numberReady':1,'updatedNumberScheduled':1") }, { "minions/n", NODE("n", "1") },
		    { "pods/a/p", READY_OF("DaemonSet", "p", "n") } }, NULL },
		{ { { "jobs/a/j", JOB("", "", "") } }, "it has not ended" },
		{ { { "jobs/a/j", JOB("", "", "'active':1" IS("Failed")) } }, "it has ended, and counts still" },
		{ { { "jobs/a/j", JOB("", "'ttlSecondsAfterFinished':1", "'active':0" IS("Failed")) } }, "it has ended long ago, and is there" },
		{ { { "jobs/a/j", JOB("", "", "'active':0" IS("Failed")) } }, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_end(i, rows[i].steps, rows[i].complaint);
}

TEST(rules_at_the_end_of_everything_else)
{
	static const struct {
		struct step steps[STEPS];
		const char *complaint;
	} rows[] = {
		{ { { "controllerrevisions/a/r", "{" META("r", "r", OWNER("DaemonSet", "w", "w")) "}" } }, "its owner is gone" },
		{ { { "daemonsets/a/w", SET("", "", "") }, { "controllerrevisions/a/r", "{" META("r", "r", OWNER("DaemonSet", "w", "v")) "}" } }, "its owner is gone" },
		{ { { "configmaps/b/c", "{'metadata':{'name':'c','namespace':'b','uid':'1'}}" } }, "its namespace is gone" },
		{ { { "configmaps/a/c", "{" META("c", "1", ENDING) "}" } }, "it is not gone" },
		{ { { "pods/a/p", POD(META("p", "p", ""), ON("n"), "Running", "") } }, "its node is gone" },
		{ { { "minions/n", NODE("n", "1") }, { "pods/a/p", POD(META("p", "p", ""), CPU("1000"), "Pending", "") } }, "there is a node with room for it" },
		{ { { "minions/n", NODE("n", "1") }, { "pods/a/p", POD(META("p", "p", ""), CPU("1001"), "Pending", "") } }, NULL },
		{ { { "resourcequotas/a/q", QUOTA("2", "0") }, { "pods/a/p", POD(META("p", "p", ""), CPU("100"), "", "") } }, "it does not say what is used" },
		{ { { "resourcequotas/a/q", QUOTA("2", "1") }, { "pods/a/p", POD(META("p", "p", ""), CPU("100"), "", "") } }, NULL },
		/* claims and volumes */
		{ { { "persistentvolumes/v", VOLUME("1", "", "Available") }, { "persistentvolumeclaims/a/c", CLAIM("1", BIND, "v", "Bound") } },
		  "it is bound, and its volume is not" },
		{ { { "persistentvolumeclaims/a/c", CLAIM("1", "", "v", "Lost") } }, "it is neither bound nor waits" },
		{ { { "persistentvolumes/v", FREE_VOLUME }, { "persistentvolumeclaims/a/c", CLAIM("1", "", "", "Pending") } }, "there is a volume for it" },
		{ { { "persistentvolumes/v", VOLUME("1", "", "Bound") } }, "it is bound, and its claim is not" },
		{ { { "persistentvolumes/v", VOLUME("1", "", "Available") } }, "it is free, and has a claim" },
		{ { { "persistentvolumes/v", VOLUME("1", "", "Failed") } }, "it is not what its claim makes it" },
		{ { { "persistentvolumes/v", VOLUME("1", "Delete", "Released") } }, "nobody wants it, and it is there" },
		{ { { "persistentvolumes/v", VOLUME("1", "Retain", "Released") } }, NULL },
		{ { { "persistentvolumes/v", VOLUME("1", "", "Bound") }, { "persistentvolumeclaims/a/c", CLAIM("1", BIND, "v", "Bound") } }, NULL },
		{ { { "minions/n", NODE("n", "1") }, { "pods/a/p", POD(META("p", "p", ""), ON("n") WITH_CLAIM, "Running", "") } }, "it runs without its claim" },
		{ { { "minions/n", NODE("n", "1") }, { "persistentvolumes/v", VOLUME("1", "", "Bound") }, { "persistentvolumeclaims/a/c", CLAIM("1", BIND, "v", "Bound") },
		    { "pods/a/p", POD(META("p", "p", ""), WITH_CLAIM CPU("1"), "Pending", "") } }, "there is a node with room for it" },
		{ { { "minions/m", NODE("m", "1") }, { "persistentvolumes/v", VOLUME("1", "", "Bound") }, { "persistentvolumeclaims/a/c", CLAIM("1", BIND, "v", "Bound") },
		    { "pods/a/p", POD(META("p", "p", ""), WITH_CLAIM CPU("1"), "Pending", "") } }, NULL },
		/* Services */
		{ { { "services/specs/a/s", SERVICE }, { "pods/a/p", LISTED } }, "not once in the EndpointSlices" },
		{ { { "services/specs/a/s", SERVICE }, { "pods/a/p", LISTED }, { "endpointslices/a/s-1", SLICE(AN_ENDPOINT("false")) } }, "not once in the EndpointSlices" },
		{ { { "services/specs/a/s", SERVICE }, { "pods/a/p", LISTED }, { "endpointslices/a/s-1", SLICE(AN_ENDPOINT("true") "," AN_ENDPOINT("true")) } },
		  "not once in the EndpointSlices" },
		{ { { "services/specs/a/s", SERVICE }, { "pods/a/p", LISTED }, { "endpointslices/a/s-1", SLICE(AN_ENDPOINT("true")) } }, "not once in the Endpoints" },
		{ { { "services/specs/a/s", SERVICE }, { "pods/a/p", LISTED }, { "endpointslices/a/s-1", SLICE(AN_ENDPOINT("true")) },
		    { "services/endpoints/a/s", ENDPOINTS("notReadyAddresses") } }, "not once in the Endpoints" },
		{ { { "services/specs/a/s", SERVICE }, { "pods/a/p", LISTED }, { "endpointslices/a/s-1", SLICE(AN_ENDPOINT("true")) },
		    { "services/endpoints/a/s", ENDPOINTS("addresses") } }, NULL },
		{ { { "services/specs/a/s", SERVICE }, { "endpointslices/a/s-1", SLICE(AN_ENDPOINT("true")) } }, "its EndpointSlices list more than there is" },
		{ { { "services/specs/a/s", SERVICE }, { "services/endpoints/a/s", ENDPOINTS("addresses") } }, "its Endpoints list more than there is" },
		{ { { "services/endpoints/a/s", ENDPOINTS("addresses") } }, "its Service is gone" },
		/* CronJobs */
		{ { { "cronjobs/a/j", CRON("Allow", "") }, { "jobs/a/j1", DONE_JOB("j1") }, { "jobs/a/j2", DONE_JOB("j2") } }, "its history is too long" },
		{ { { "cronjobs/a/j", CRON("Allow", "{'name':'j1','uid':'j1'}") }, { "jobs/a/j1", DONE_JOB("j1") } }, "it does not know what runs" },
		{ { { "cronjobs/a/j", CRON("Allow", "") }, { "jobs/a/j1", DONE_JOB("j1") } }, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_end(i, rows[i].steps, rows[i].complaint);
}
