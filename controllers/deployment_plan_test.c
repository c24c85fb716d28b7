/*
 * Roll-outs as tables: a deployment and its sets as they are seen, and what is written to the sets then ("a 4>3": set a from 4 to 3 replicas,
 * "+1": a new one with 1, "-a": a is deleted).
 */
#include "base/clock.h"
#include "controllers/deployment_plan.h"
#include "controllers/plan_testing.h"

static struct val template_of(struct arena *a, const char *image)
{
	return tree(a, arena_printf(a, "{'metadata':{'labels':{'app':'w'}},'spec':{'containers':[{'name':'c','image':'%s'}]}}", image).p);
}

struct rollout {
	const char *strategy, *surge, *unavailable;
	int replicas;
	const char *image;
};

static struct val deployment_of(struct arena *a, const struct rollout *r)
{
	struct val d = tree(a, arena_printf(a,
		"{'metadata':{'name':'w','namespace':'ns','uid':'d','generation':1},'spec':{'replicas':%d,'progressDeadlineSeconds':600,"
		"'revisionHistoryLimit':10,'selector':{'matchLabels':{'app':'w'}},'strategy':{'type':'%s','rollingUpdate':{'maxSurge':%s,"
		"'maxUnavailable':%s}}}}", r->replicas, r->strategy ? r->strategy : "RollingUpdate", r->surge, r->unavailable).p);
	return val_with(a, d, template_of(a, r->image), spec, template);
}

struct a_set {
	const char *name, *image;
	int spec, actual, available;
	int desired, max;              /* annotations; desired -1: none */
};

static struct val set_of(struct arena *a, const struct a_set *s, size_t i)
{
	struct val set = tree(a, arena_printf(a,
		"{'metadata':{'name':'%s','namespace':'ns','uid':'%s','generation':1,'creationTimestamp':'2026-01-01T00:00:0%zuZ',"
		"'annotations':{'deployment.kubernetes.io/revision':'%zu'}},'spec':{'replicas':%d},'status':{'replicas':%d,"
		"'readyReplicas':%d,'availableReplicas':%d,'terminatingReplicas':0,'observedGeneration':1}}",
		s->name, s->name, i, i + 1, s->spec, s->actual, s->available, s->available).p);
	struct val notes = val_get(set, metadata, annotations);

	if (s->desired >= 0) {
		notes = val_put(a, notes, atom_make(a, STR("deployment.kubernetes.io/desired-replicas")), VAL_STR(arena_printf(a, "%d", s->desired)));
		notes = val_put(a, notes, atom_make(a, STR("deployment.kubernetes.io/max-replicas")), VAL_STR(arena_printf(a, "%d", s->max)));
	}
	set = val_with(a, set, notes, metadata, annotations);
	struct val template = val_with(a, template_of(a, s->image), tree(a, "{'app':'w','pod-template-hash':'x'}"), metadata, labels);
	return val_with(a, set, template, spec, template);
}

enum { SETS_MAX = 4 };

static struct val sets_of(struct arena *a, const struct a_set *sets)
{
	struct val_builder list = val_builder(a);

	for (size_t i = 0; i < SETS_MAX && sets[i].name; i++)
		val_add_item(&list, set_of(a, &sets[i], i));
	return val_end_list(&list);
}

static struct deployment_plan plan_of(struct arena *a, struct val d, struct val sets)
{
	struct deployment_plan plan;
	CHECK_INT(deployment_plan(a, &(struct deployment_seen){ .deployment = d, .sets = sets, .now_ns = INT64_C(1767225700) * NS_PER_S }, &plan, NULL), 0);
	return plan;
}

/* "w-1 4>3; +w-abc 1; -w-0": what is written to the sets. */
static str writes_text(struct arena *a, const struct deployment_plan *plan)
{
	str s = STR("");

	for (size_t i = 0; i < plan->n; i++) {
		const struct deployment_write *w = &plan->writes[i];
		str name = val_str(w->set, metadata, name);
		str one = w->verb == DEPLOYMENT_CREATE   ? arena_printf(a, "+%lld", (long long)w->to)
			  : w->verb == DEPLOYMENT_DELETE ? arena_printf(a, "-" STR_FMT, STR_ARG(name))
							 : arena_printf(a, STR_FMT " %lld>%lld", STR_ARG(name), (long long)w->from, (long long)w->to);
		s = s.n ? arena_printf(a, STR_FMT "; " STR_FMT, STR_ARG(s), STR_ARG(one)) : one;
	}
	return s;
}

TEST(deployment_rolling)
{
	static const struct {
		struct rollout r;
		struct a_set sets[SETS_MAX];
		const char *writes;
	} t[] = {
		/* The first one. */
		{ { NULL, "'25%'", "'25%'", 4, "2" }, { { 0 } }, "+4" },
		/* One more than asked for; the old one gives up one in the same step. */
		{ { NULL, "'25%'", "'25%'", 4, "2" }, { { "a", "1", 4, 4, 4, 4, 5 } }, "+1; a 4>3" },
		/* Scaled up first; down at another time. */
		{ { NULL, "'25%'", "'25%'", 4, "2" }, { { "a", "1", 3, 3, 3, 4, 5 }, { "b", "2", 1, 1, 0, 4, 5 } }, "b 1>2" },
		/* Nothing can be done until something becomes available. */
		{ { NULL, "'25%'", "'25%'", 4, "2" }, { { "a", "1", 3, 3, 3, 4, 5 }, { "b", "2", 2, 2, 0, 4, 5 } }, "" },
		{ { NULL, "'25%'", "'25%'", 4, "2" }, { { "a", "1", 3, 3, 3, 4, 5 }, { "b", "2", 2, 2, 1, 4, 5 } }, "a 3>2" },
		{ { NULL, "'25%'", "'25%'", 4, "2" }, { { "a", "1", 1, 1, 1, 4, 5 }, { "b", "2", 4, 4, 4, 4, 5 } }, "a 1>0" },
		{ { NULL, "'25%'", "'25%'", 4, "2" }, { { "a", "1", 0, 0, 0, 4, 5 }, { "b", "2", 4, 4, 4, 4, 5 } }, "" },
		/* No surge. */
		{ { NULL, "0", "1", 3, "2" }, { { "a", "1", 3, 3, 3, 3, 3 } }, "+0; a 3>2" },
		{ { NULL, "0", "1", 3, "2" }, { { "a", "1", 2, 2, 2, 3, 3 }, { "b", "2", 0, 0, 0, 3, 3 } }, "b 0>1" },
		/* Neither, by rounding: one may be missing. */
		{ { NULL, "'0%'", "'1%'", 1, "2" }, { { "a", "1", 1, 1, 1, 1, 1 } }, "+0; a 1>0" },
		/* Only surge: no old one goes before a new one is there. */
		{ { NULL, "1", "0", 2, "2" }, { { "a", "1", 2, 2, 2, 2, 3 } }, "+1" },
		{ { NULL, "1", "0", 2, "2" }, { { "a", "1", 2, 2, 2, 2, 3 }, { "b", "2", 1, 1, 1, 2, 3 } }, "a 2>1" },
		/* As the deployment was seen in Kubernetes: five, one image that cannot be had. */
		{ { NULL, "3", "2", 5, "2" }, { { "a", "1", 5, 5, 5, 5, 8 } }, "+3; a 5>3" },
		{ { NULL, "3", "2", 5, "2" }, { { "a", "1", 3, 3, 3, 5, 8 }, { "b", "2", 3, 3, 0, 5, 8 } }, "b 3>5" },
		/* Pods of old sets that are not available go first, the oldest set's before others. */
		{ { NULL, "1", "1", 4, "3" }, { { "a", "1", 2, 2, 2, 4, 5 }, { "b", "2", 2, 2, 0, 4, 5 }, { "c", "3", 1, 1, 0, 4, 5 } }, "b 2>1" },
		{ { NULL, "1", "1", 4, "3" }, { { "a", "1", 3, 3, 3, 4, 5 }, { "b", "2", 2, 2, 0, 4, 5 }, { "c", "3", 0, 0, 0, 4, 5 } }, "b 2>0" },
		{ { NULL, "3", "2", 10, "1" }, { { "a", "1", 8, 8, 7, 10, 13 }, { "b", "2", 5, 5, 0, 10, 13 } }, "a 8>8; b 5>1" },
		/* A set whose status lags behind does not make more pods go than may. */
		{ { NULL, "1", "1", 4, "2" }, { { "a", "1", 2, 4, 4, 4, 5 }, { "b", "2", 3, 3, 2, 4, 5 } }, "a 2>1" },
		/* Larger than the deployment. */
		{ { NULL, "1", "1", 2, "2" }, { { "b", "2", 3, 3, 3, 2, 3 } }, "b 3>2" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct deployment_plan plan = plan_of(&a, deployment_of(&a, &t[i].r), sets_of(&a, t[i].sets));
		CHECK_STR_ROW(i, writes_text(&a, &plan), t[i].writes);
	}
}

TEST(deployment_scaling)
{
	static const struct {
		struct rollout r;
		bool paused;
		struct a_set sets[SETS_MAX];
		const char *writes;
	} t[] = {
		{ { NULL, "1", "1", 5, "2" }, false, { { "a", "1", 0, 0, 0, 2, 3 }, { "b", "2", 2, 2, 2, 2, 3 } }, "b 2>5" },
		{ { NULL, "1", "1", 0, "2" }, false, { { "b", "2", 2, 2, 2, 2, 3 } }, "b 2>0" },
		/* In proportion: of 13 more (24 + 2 - 13) the larger gets more, what is left over goes to it. */
		{ { NULL, "2", "1", 24, "2" }, false, { { "a", "1", 9, 9, 9, 11, 13 }, { "b", "2", 4, 4, 0, 11, 13 } }, "a 9>18; b 4>8" },
		{ { NULL, "3", "1", 30, "2" }, false, { { "a", "1", 8, 8, 8, 10, 13 }, { "b", "2", 5, 5, 0, 10, 13 } }, "a 8>20; b 5>13" },
		{ { NULL, "3", "1", 5, "2" }, false, { { "a", "1", 8, 8, 8, 10, 13 }, { "b", "2", 5, 5, 0, 10, 13 } }, "a 8>5; b 5>3" },
		{ { NULL, "3", "1", 0, "2" }, false, { { "a", "1", 8, 8, 8, 10, 13 }, { "b", "2", 5, 5, 0, 10, 13 } }, "a 8>0; b 5>0" },
		{ { NULL, "3", "2", 15, "2" }, false, { { "a", "1", 3, 3, 3, 5, 8 }, { "b", "2", 5, 5, 0, 5, 8 } }, "b 5>11; a 3>7" },
		/* Paused: nothing is rolled, but sizes follow. */
		{ { NULL, "1", "1", 3, "2" }, true, { { "a", "1", 2, 2, 2, 2, 3 } }, "a 2>3" },
		{ { NULL, "1", "1", 3, "2" }, true, { { "a", "1", 3, 3, 3, 3, 4 } }, "" },
		{ { NULL, "1", "1", 3, "2" }, true, { { 0 } }, "" },
		/* One that has all it should: the others go. */
		{ { NULL, "1", "1", 3, "2" }, true, { { "a", "1", 1, 1, 1, 3, 4 }, { "b", "2", 3, 3, 3, 3, 4 } }, "a 1>0" },
		{ { "Recreate", "0", "0", 3, "2" }, false, { { "a", "1", 2, 2, 2, 2, 2 }, { "b", "2", 1, 1, 1, 2, 2 } }, "" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val d = deployment_of(&a, &t[i].r);
		if (t[i].paused)
			d = val_with(&a, d, val_of_bool(true), spec, paused);
		struct deployment_plan plan = plan_of(&a, d, sets_of(&a, t[i].sets));
		CHECK_STR_ROW(i, writes_text(&a, &plan), t[i].writes);
	}
}

TEST(deployment_recreate)
{
	const struct rollout r = { "Recreate", "0", "0", 2, "2" };
	const struct a_set running[SETS_MAX] = { { "a", "1", 2, 2, 2, 2, 2 } }, stopping[SETS_MAX] = { { "a", "1", 0, 1, 0, 2, 2 } },
			   stopped[SETS_MAX] = { { "a", "1", 0, 0, 0, 2, 2 } };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val d = deployment_of(&a, &r);
	const bool busy[] = { true };
	struct deployment_plan plan = plan_of(&a, d, sets_of(&a, running));

	CHECK_STR(writes_text(&a, &plan), "a 2>0");
	plan = plan_of(&a, d, sets_of(&a, stopping));
	CHECK_STR(writes_text(&a, &plan), "");
	/* Its pods are still there, whatever the status says. */
	CHECK_INT(deployment_plan(&a, &(struct deployment_seen){ .deployment = d, .sets = sets_of(&a, stopped), .busy = busy }, &plan, NULL), 0);
	CHECK_STR(writes_text(&a, &plan), "");
	plan = plan_of(&a, d, sets_of(&a, stopped));
	CHECK_STR(writes_text(&a, &plan), "+2");
}

TEST(deployment_new_set)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct rollout r = { NULL, "1", "0", 2, "2" };
	const struct a_set old[SETS_MAX] = { { "a", "0", 0, 0, 0, 2, 3 }, { "b", "1", 2, 2, 2, 2, 3 } };
	struct val d = val_with(&a, deployment_of(&a, &r), tree(&a, "{'cause':'me','kubectl.kubernetes.io/last-applied-configuration':'{}'}"), metadata, annotations);
	d = val_with(&a, d, tree(&a, "{'replicas':2,'updatedReplicas':2,'readyReplicas':2,'availableReplicas':2}"), status);
	struct deployment_plan plan = plan_of(&a, val_with(&a, d, val_of_int(7), spec, minReadySeconds), sets_of(&a, old));
	struct val set = plan.writes[0].set, notes = val_get(set, metadata, annotations);
	str hash = val_as_str(val_find(val_get(set, metadata, labels), STR("pod-template-hash")));

	CHECK_INT(plan.n, 1);
	CHECK(hash.n > 0);
	CHECK_STR(val_str(set, metadata, name), arena_printf(&a, "w-" STR_FMT, STR_ARG(hash)).p);
	CHECK(str_eq(hash, val_as_str(val_find(val_get(set, spec, selector, matchLabels), STR("pod-template-hash")))));
	CHECK(str_eq(hash, val_as_str(val_find(val_get(set, spec, template, metadata, labels), STR("pod-template-hash")))));
	CHECK_STR(val_as_str(val_find(notes, STR("deployment.kubernetes.io/revision"))), "3");
	CHECK_STR(val_as_str(val_find(notes, STR("deployment.kubernetes.io/desired-replicas"))), "2");
	CHECK_STR(val_as_str(val_find(notes, STR("deployment.kubernetes.io/max-replicas"))), "3");
	CHECK_STR(val_as_str(val_find(notes, STR("cause"))), "me");
	CHECK(!val_exists(val_find(notes, STR("kubectl.kubernetes.io/last-applied-configuration"))));
	CHECK_INT(val_int(set, spec, minReadySeconds), 7);
	CHECK_STR(val_str(val_at(val_get(set, metadata, ownerReferences), 0), kind), "Deployment");
	CHECK_STR(val_as_str(val_find(val_get(plan.told, metadata, annotations), STR("deployment.kubernetes.io/revision"))), "3");
	CHECK_STR(val_str(val_at(val_get(plan.told, status, conditions), 0), reason), "NewReplicaSetCreated");
}

/* Back to a template that there was: its set gets the next revision, and remembers those that it had. */
TEST(deployment_revision_history)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct rollout r = { NULL, "1", "0", 2, "0" };
	const struct a_set sets[SETS_MAX] = { { "a", "0", 0, 0, 0, 2, 3 }, { "b", "1", 2, 2, 2, 2, 3 } };
	struct deployment_plan plan = plan_of(&a, deployment_of(&a, &r), sets_of(&a, sets));
	struct val notes = val_get(plan.writes[0].set, metadata, annotations);

	CHECK_STR(writes_text(&a, &plan), "a 0>1");
	CHECK_STR(val_as_str(val_find(notes, STR("deployment.kubernetes.io/revision"))), "3");
	CHECK_STR(val_as_str(val_find(notes, STR("deployment.kubernetes.io/revision-history"))), "1");
}

TEST(deployment_history_limit)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct rollout r = { NULL, "1", "0", 1, "3" };
	const struct a_set sets[SETS_MAX] = { { "a", "0", 0, 0, 0, 1, 2 }, { "b", "1", 0, 0, 0, 1, 2 }, { "c", "2", 0, 1, 0, 1, 2 }, { "d", "3", 1, 1, 1, 1, 2 } };
	struct val d = val_with(&a, deployment_of(&a, &r), val_of_int(1), spec, revisionHistoryLimit);
	struct deployment_plan plan;

	plan = plan_of(&a, d, sets_of(&a, sets));
	CHECK_STR(writes_text(&a, &plan), ""); /* it is not complete yet */
	d = val_with(&a, d, tree(&a, "{'observedGeneration':1,'replicas':1,'updatedReplicas':1,'availableReplicas':1}"), status);
	plan = plan_of(&a, d, sets_of(&a, sets));
	CHECK_STR(writes_text(&a, &plan), "-a; -b");
	plan = plan_of(&a, val_with(&a, d, val_of_int(0), spec, revisionHistoryLimit), sets_of(&a, sets));
	CHECK_STR(writes_text(&a, &plan), "-a; -b"); /* c has a pod yet */
}

/* ---- what is told ---- */

static str conditions_text(struct arena *a, struct val d)
{
	str s = STR("");

	VAL_EACH(c, val_get(d, status, conditions))
		s = arena_printf(a, STR_FMT "%s" STR_FMT "=" STR_FMT " " STR_FMT, STR_ARG(s), s.n ? ", " : "", STR_ARG(val_str(*c, type)),
				 STR_ARG(val_str(*c, status)), STR_ARG(val_str(*c, reason)));
	return s;
}

#define PROGRESS(reason, at) "{'type':'Progressing','status':'True','reason':'" reason "','lastUpdateTime':'" at "','lastTransitionTime':'" at "'}"
#define AVAILABLE "{'type':'Available','status':'True','reason':'MinimumReplicasAvailable'}"

TEST(deployment_conditions)
{
	static const struct {
		const char *status;
		struct a_set sets[SETS_MAX];
		const char *conditions; /* NULL: nothing new */
		int64_t again_ms;
	} t[] = {
		{ "{}", { { "b", "2", 2, 0, 0, 2, 3 } }, "Progressing=True FoundNewReplicaSet, Available=False MinimumReplicasUnavailable", -1 },
		{ "{}", { { "b", "2", 2, 2, 0, 2, 3 } }, "Available=False MinimumReplicasUnavailable, Progressing=True ReplicaSetUpdated", -1 },
		{ "{'replicas':2,'updatedReplicas':2,'conditions':[" PROGRESS("ReplicaSetUpdated", "2026-01-01T00:00:00Z") "]}",
		  { { "b", "2", 2, 2, 2, 2, 3 } }, "Available=True MinimumReplicasAvailable, Progressing=True NewReplicaSetAvailable", -1 },
		/* It stands still: 100 seconds are over, 600 allowed. */
		{ "{'observedGeneration':1,'replicas':2,'updatedReplicas':2,'unavailableReplicas':1,'readyReplicas':1,'availableReplicas':1,"
		  "'terminatingReplicas':0,'conditions':[" PROGRESS("ReplicaSetUpdated", "2026-01-01T00:00:00Z") "," AVAILABLE "]}",
		  { { "b", "2", 2, 2, 1, 2, 3 } }, NULL, 501000 },
		{ "{'observedGeneration':1,'replicas':2,'updatedReplicas':2,'unavailableReplicas':1,'readyReplicas':1,'availableReplicas':1,"
		  "'terminatingReplicas':0,'conditions':[" PROGRESS("ReplicaSetUpdated", "2025-12-31T23:50:00Z") "," AVAILABLE "]}",
		  { { "b", "2", 2, 2, 1, 2, 3 } }, "Available=True MinimumReplicasAvailable, Progressing=False ProgressDeadlineExceeded", -1 },
		/* Complete once: pods that come and go later are no progress. */
		{ "{'replicas':2,'updatedReplicas':2,'conditions':[" PROGRESS("NewReplicaSetAvailable", "2025-12-31T00:00:00Z") "," AVAILABLE "]}",
		  { { "b", "2", 2, 2, 1, 2, 3 } }, "Progressing=True NewReplicaSetAvailable, Available=True MinimumReplicasAvailable", -1 },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct rollout r = { NULL, "1", "1", 2, "2" };

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val d = val_with(&a, deployment_of(&a, &r), tree(&a, t[i].status), status);
		d = val_with(&a, d, tree(&a, "{'deployment.kubernetes.io/revision':'1'}"), metadata, annotations);
		struct deployment_plan plan = plan_of(&a, d, sets_of(&a, t[i].sets));
		CHECK_ROW(i, val_exists(plan.told) == !!t[i].conditions);
		if (t[i].conditions)
			CHECK_STR_ROW(i, conditions_text(&a, plan.told), t[i].conditions);
		CHECK_ROW(i, plan.again_ms == t[i].again_ms);
	}
}

TEST(deployment_status_numbers)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct rollout r = { NULL, "1", "1", 4, "2" };
	const struct a_set sets[SETS_MAX] = { { "a", "1", 3, 3, 3, 4, 5 }, { "b", "2", 2, 2, 0, 4, 5 } };
	struct val status = val_get(plan_of(&a, deployment_of(&a, &r), sets_of(&a, sets)).told, status);

	CHECK_INT(val_int(status, observedGeneration), 1);
	CHECK_INT(val_int(status, replicas), 5);
	CHECK_INT(val_int(status, updatedReplicas), 2);
	CHECK_INT(val_int(status, readyReplicas), 3);
	CHECK_INT(val_int(status, availableReplicas), 3);
	CHECK_INT(val_int(status, unavailableReplicas), 2);
	CHECK(val_is(val_get(status, terminatingReplicas), VAL_INT));
}

TEST(deployment_pausing)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct rollout r = { NULL, "1", "1", 2, "2" };
	const struct a_set sets[SETS_MAX] = { { "b", "2", 2, 2, 2, 2, 3 } };
	struct val d = deployment_of(&a, &r), paused = val_with(&a, d, val_of_bool(true), spec, paused);
	struct deployment_plan plan = plan_of(&a, paused, sets_of(&a, sets));

	CHECK_STR(conditions_text(&a, plan.told), "Progressing=Unknown DeploymentPaused, Available=True MinimumReplicasAvailable");
	CHECK_STR(val_str(val_at(val_get(plan.told, status, conditions), 0), message), "Deployment is paused");
	d = val_with(&a, plan.told, VAL_EMPTY, spec, paused);
	plan = plan_of(&a, val_with(&a, d, val_of_int(3), metadata, generation), VAL_EMPTY_LIST);
	CHECK_STR(conditions_text(&a, plan.told), "Progressing=Unknown DeploymentResumed, Available=False MinimumReplicasUnavailable");
}

TEST(deployment_rollback)
{
	static const struct {
		const char *to, *reason, *image, *writes;
	} t[] = {
		{ "1", "DeploymentRollback", "0", "" },
		{ "0", "DeploymentRollback", "0", "" },
		{ "2", "DeploymentRollbackTemplateUnchanged", "1", "" },
		{ "9", "DeploymentRollbackRevisionNotFound", "1", "" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct rollout r = { NULL, "1", "0", 2, "1" };
	const struct a_set sets[SETS_MAX] = { { "a", "0", 0, 0, 0, 2, 3 }, { "b", "1", 2, 2, 2, 2, 3 } };

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val notes = val_put(&a, VAL_EMPTY_OBJECT, atom_make(&a, STR("deprecated.deployment.rollback.to")), VAL_STR(str_of(t[i].to)));
		struct deployment_plan plan = plan_of(&a, val_with(&a, deployment_of(&a, &r), notes, metadata, annotations), sets_of(&a, sets));
		struct val container = val_at(val_get(plan.changed, spec, template, spec, containers), 0);
		CHECK_STR_ROW(i, str_of(plan.reason), t[i].reason);
		CHECK_STR_ROW(i, val_str(container, image), t[i].image);
		CHECK_STR_ROW(i, writes_text(&a, &plan), t[i].writes);
		CHECK_ROW(i, !val_exists(val_find(val_get(plan.changed, metadata, annotations), STR("deprecated.deployment.rollback.to"))));
		CHECK_ROW(i, !val_exists(val_find(val_get(plan.changed, spec, template, metadata, labels), STR("pod-template-hash"))));
		CHECK_ROW(i, !val_exists(plan.told));
	}
}

TEST(deployment_failures)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct rollout r = { NULL, "1", "1", 2, "2" };
	const struct a_set one[SETS_MAX] = { { "b", "2", 2, 0, 0, 2, 3 } };
	struct val d = deployment_of(&a, &r), sets = sets_of(&a, one), set = val_at(sets, 0);
	struct val failure = tree(&a, "[{'type':'ReplicaFailure','status':'True','reason':'FailedCreate','message':'no room','lastTransitionTime':'T'}]");
	struct deployment_plan plan = plan_of(&a, d, LIST(&a, val_with(&a, set, failure, status, conditions)));
	struct val last = val_at(val_get(plan.told, status, conditions), 2);

	CHECK_STR(val_str(last, message), "no room");
	CHECK_STR(val_str(last, lastUpdateTime), "T");
	plan = plan_of(&a, plan.told, sets);
	CHECK_STR(conditions_text(&a, plan.told), "Progressing=True FoundNewReplicaSet, Available=False MinimumReplicasUnavailable");
	d = deployment_failed(&a, d, STR("w-1"), "quota", 0);
	CHECK_STR(conditions_text(&a, d), "Progressing=False ReplicaSetCreateError");
	CHECK_STR(val_str(val_at(val_get(d, status, conditions), 0), message), "Failed to create new replica set \"w-1\": quota");
	CHECK_INT(val_int(deployment_collided(&a, deployment_collided(&a, d)), status, collisionCount), 2);
}

TEST(deployment_selecting_all)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct rollout r = { NULL, "1", "1", 2, "2" };
	struct deployment_plan plan = plan_of(&a, val_with(&a, deployment_of(&a, &r), VAL_EMPTY_OBJECT, spec, selector), VAL_EMPTY_LIST);

	CHECK_STR(str_of(plan.reason), "SelectingAll");
	CHECK_INT(plan.n, 0);
	CHECK_INT(val_int(plan.told, status, observedGeneration), 1);
}

TEST(deployment_strategy_unknown)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct deployment_plan plan;
	struct err err = ERR_INIT;
	const struct rollout r = { "Magic", "1", "1", 2, "2" };

	CHECK_INT(deployment_plan(&a, &(struct deployment_seen){ .deployment = deployment_of(&a, &r), .sets = VAL_EMPTY_LIST }, &plan, &err), -ERR_INVALID);
	CHECK_STR(err_str(&err), "unexpected deployment strategy type: Magic");
}
