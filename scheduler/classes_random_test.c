/*
 * What a class of pods knows never changes what becomes of a pod: of two schedulers that live through the same random changes, one has classes
 * and the other has a filter that forbids them, so that it asks every node each time and takes pods off nodes for a while.
 */
#include <stdlib.h>

#include "base/fiber_test.h"
#include "client/fake_test.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/testing.h"
#include "scheduler/scheduler_priv.h"

enum { NODES = 220, PODS = 3500, STEPS = 2000, PHASE = 250, KINDS = 5, BUDGETS = 2, PREEMPTION = 4 };

struct twin {
	struct scheduler s;
	struct fake fake;
	struct profile profile;
	struct placed *pods[PODS];
	struct err err;
};

static uint64_t chance;

static unsigned below(unsigned n)
{
	chance = chance * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((chance >> 33) % n);
}

static enum verdict anything(struct cycle *c, void *state, uint32_t node)
{
	(void)c, (void)state, (void)node;
	return FIT;
}

static const struct plugin forbids_classes = { .name = "Forbids", .filter = anything };

/* few: nodes with victims that are enough. */
static void twin_begin(struct twin *w, bool classes, struct val few)
{
	static const struct plugin *const plugins[] = { &plugin_node_unschedulable, &plugin_taint_toleration, &plugin_node_affinity,
							&plugin_node_resources_fit, &plugin_default_preemption, &forbids_classes };
	struct profile *p = &w->profile;

	*w = (struct twin){ .err = ERR_INIT };
	*p = (struct profile){ .name = STR("default-scheduler"), .percentage = -1 };
	for (uint8_t i = 0; i < ARRAY_LEN(plugins) - classes; i++) {
		p->plugins[p->n++] = plugins[i];
		if (plugins[i]->pre_filter)
			p->order[POINT_PRE_FILTER][p->n_order[POINT_PRE_FILTER]++] = i;
		if (plugins[i]->pre_score)
			p->order[POINT_PRE_SCORE][p->n_order[POINT_PRE_SCORE]++] = i;
		if (plugins[i]->score)
			p->order[POINT_SCORE][p->n_order[POINT_SCORE]++] = i;
		p->weight[i] = 1;
		if (plugins[i]->filter)
			p->order[POINT_FILTER][p->n_order[POINT_FILTER]++] = i;
	}
	p->order[POINT_POST_FILTER][p->n_order[POINT_POST_FILTER]++] = PREEMPTION;
	CHECK_INT(plugin_default_preemption.configure(few, &p->config[PREEMPTION], &w->err), 0);
	fake_init(&w->fake);
	w->s.client = &w->fake.client;
	w->s.informers = informers_new(&w->fake.client);
	w->s.profiles = p;
	w->s.n_profiles = 1;
	w->s.dice[0] = w->s.dice[1] = 7;
	w->s.config = val_freeze(VAL_EMPTY_OBJECT);
	nodes_init(&w->s.nodes);
	nominations_init(&w->s.nominations, &w->s.nodes);
	fiber_group_init(&w->s.work);
}

static void pod_away(struct twin *w, size_t i)
{
	if (w->pods[i] && w->pods[i]->node != UINT32_MAX)
		nodes_unplace(&w->s.nodes, w->pods[i]);
	placed_free(TAKE(w->pods[i]));
}

static void twin_end(struct twin *w)
{
	fiber_group_done(&w->s.work);
	for (size_t i = 0; i < PODS; i++)
		pod_away(w, i);
	classes_done(&w->s.classes);
	nominations_done(&w->s.nominations);
	nodes_done(&w->s.nodes);
	informers_free(w->s.informers);
	plugin_default_preemption.config_free(w->profile.config[PREEMPTION]);
	fake_done(&w->fake);
	frozen_unref(w->s.config);
	free(w->s.found);
	free(w->s.scores);
	free(w->s.totals);
	free(w->s.verdicts);
}

/* ---- what happens ---- */

static struct frozen *node_object(struct arena *a, unsigned number)
{
	const char *taint = below(8) ? "" : "'taints':[{'key':'t','value':'v','effect':'NoSchedule'}],";
	return val_freeze(testing_typed(a, TYPE(core_v1, Node), arena_printf(a, "{'metadata':{'name':'n%u','labels':{'disk':'%s','topology.kubernetes.io/zone':"
		"'z%u'}},'spec':{%s'unschedulable':%s},'status':{'allocatable':{'cpu':'%u','memory':'%uGi','pods':'6'}}}", number, below(2) ? "fast" : "slow",
		number % 3, taint, below(12) ? "false" : "true", 1 + below(4), 1 + below(8)).p));
}

/* Those on nodes are on their way already, so that preemption has nothing to do but to choose. */
static struct frozen *placed_object(struct arena *a, unsigned number, unsigned node)
{
	return val_freeze(testing_typed(a, TYPE(core_v1, Pod), arena_printf(a, "{'metadata':{'namespace':'s%u','name':'p%u','uid':'p%u','labels':{'app':'%s'},"
		"'deletionTimestamp':'2026-01-01T00:00:00Z'},'spec':{'priority':%u,'containers':[{'name':'c','resources':{'requests':{'cpu':'%um','memory':'%uMi'}}}]},'status':"
		"{'startTime':'2026-01-01T00:00:%02uZ'}}", node % 4, number, number, below(2) ? "a" : "b", 10 * below(4), 400 * (1 + below(4)), 200 * (1 + below(4)), below(60)).p));
}

/* Not in all namespaces, and the pods of a node are in the same one. */
static struct val budget_object(struct arena *a, unsigned number)
{
	return testing_typed(a, TYPE(policy_v1, PodDisruptionBudget), arena_printf(a, "{'metadata':{'namespace':'s%u','name':'b'},'spec':{'selector':"
		"{'matchLabels':{'app':'%s'}}},'status':{'disruptionsAllowed':%u}}", number, below(2) ? "a" : "b", below(3)).p);
}

#define ONLY_N3 "{'matchFields':[{'key':'metadata.name','operator':'In','values':['n3']}]}"

static struct frozen *asking_object(struct arena *a, unsigned kind, unsigned number)
{
	static const char *const more[KINDS] = {
		"'priority':15,", "'priority':25,'tolerations':[{'operator':'Exists'}],", "'priority':100,'nodeSelector':{'disk':'fast'},", "'priority':0,",
		"'priority':100,'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[" ONLY_N3 "]}}},",
	};
	return val_freeze(testing_typed(a, TYPE(core_v1, Pod), arena_printf(a, "{'metadata':{'namespace':'d','name':'a%u','uid':'a%u'},'spec':{%s'schedulerName':"
		"'default-scheduler','containers':[{'name':'c','resources':{'requests':{'cpu':'%um','memory':'500Mi'}}}]}}", number, number, more[kind],
		500 + 500 * kind).p));
}

static void node_away(struct twin *w, str name)
{
	uint32_t node = nodes_find(&w->s.nodes, name);
	if (node == UINT32_MAX)
		return;
	nominations_node_removed(&w->s.nominations, node);
	nodes_remove(&w->s.nodes, name);
}

static void node_here(struct twin *w, struct frozen *object)
{
	str name = val_str(object->val, metadata, name);
	bool known = nodes_find(&w->s.nodes, name) != UINT32_MAX;
	uint32_t node = nodes_put(&w->s.nodes, object);
	if (!known)
		nominations_node_added(&w->s.nominations, name, node);
}

/* In turn it becomes full, and empty again. */
static void change(struct twin *twins, struct arena *a, unsigned step)
{
	unsigned what = below(100), come = step / PHASE % 2 ? 12 : 85, pod = below(PODS), node = below(NODES);
	bool ends = below(3) == 0;
	str name = arena_printf(a, "n%u", node);
	CLEANUP(frozen_unrefp) struct frozen *object = what < 4 ? node_object(a, node) : what < 5 ? NULL : what < come ? placed_object(a, pod, node) :
						       asking_object(a, below(KINDS), below(20));

	for (struct twin *w = twins; w < twins + 2; w++) {
		uint32_t at = nodes_find(&w->s.nodes, name);
		if (what < 4)
			node_here(w, object);
		else if (what < 5)
			node_away(w, name);
		else if (what < come && at != UINT32_MAX) {
			pod_away(w, pod);
			w->pods[pod] = placed_new(&w->s.nodes, object);
			nodes_place(&w->s.nodes, w->pods[pod], at);
		} else if (what < 90)
			pod_away(w, pod);
		else
			nominations_set(&w->s.nominations, object, ends ? STR_NONE : name);
	}
}

/* ---- what becomes of a pod ---- */

static str victims_text(struct cycle *c, const struct preempt_victims *v)
{
	str text = arena_printf(c->arena, STR_FMT ", %u:", STR_ARG(word_str(c->nodes, c->nodes->name[v->node])), v->violations);

	for (size_t i = 0; i < v->n; i++)
		text = arena_printf(c->arena, STR_FMT " " STR_FMT, STR_ARG(text), STR_ARG(word_str(c->nodes, v->pods[i]->name)));
	return text;
}

/* Who would go if there were these budgets, and without. */
static str search_text(struct twin *w, struct cycle *c, const struct val *budgets, size_t n_budgets)
{
	struct preempt_search search = { .c = c, .profile = &w->profile, .class = c->class };
	struct preempt_found f;
	uint32_t n;
	const uint64_t *stuck = preempt_stuck(c, &n);

	preempt_budgets(&search, budgets, n_budgets);
	preempt_look(&search, stuck, n, preempt_enough(n, 5, 5), &f);
	return f.n ? victims_text(c, f.best) : preempt_why_none(&search, &f, n);
}

static str outcome(struct twin *w, struct arena *a, struct frozen *pod, bool scores, const struct val *budgets)
{
	uint8_t n_scores = w->profile.n_order[POINT_SCORE];
	struct cycle c = { .scheduler = &w->s, .nodes = &w->s.nodes, .arena = a, .pod = pod->val, .placed = placed_new(&w->s.nodes, pod) };
	struct cycle_result r;
	str victims = STR(""), spared = STR("");

	if (!scores) /* then the first node that fits is enough */
		w->profile.n_order[POINT_SCORE] = 0;
	cycle_run(&c, &w->profile, &r);
	w->profile.n_order[POINT_SCORE] = n_scores;
	if (r.outcome == CYCLE_REFUSED) {
		spared = search_text(w, &c, budgets, BUDGETS);
		victims = search_text(w, &c, NULL, 0);
	}
	str node = r.outcome == CYCLE_FOUND ? word_str(&w->s.nodes, w->s.nodes.name[r.node]) : STR("");
	placed_free(c.placed);
	return arena_printf(a, "%d " STR_FMT " of %u/%u, " STR_FMT " %llx, %d " STR_FMT " (" STR_FMT ") (" STR_FMT "), next %u", r.outcome, STR_ARG(node), r.feasible,
			    r.evaluated, STR_ARG(r.message), (unsigned long long)r.refused_by, r.nomination, STR_ARG(r.nominated), STR_ARG(victims), STR_ARG(spared),
			    w->s.next_start);
}

/* Some are in between that are told nothing: the table remembers so many changes and no more. */
static unsigned changes_before(unsigned step) { return step % PHASE ? below(4) : NODES_CHANGES; }

FIBER_TEST(classes_change_nothing)
{
	static struct twin twins[2]; /* frames are small */
	static unsigned seen[3];

	CLEANUP(arena_done) struct arena all = ARENA_INIT;
	struct val few = testing_tree(&all, "{'minCandidateNodesPercentage':5,'minCandidateNodesAbsolute':5}");

	chance = 1;
	for (unsigned i = 0; i < 2; i++)
		twin_begin(&twins[i], i == 0, few);
	for (unsigned step = 0; step < STEPS; step++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		for (unsigned n = changes_before(step); n; n--) {
			CLEANUP(arena_done) struct arena own = ARENA_INIT;
			change(twins, &own, step);
		}
		unsigned kind = below(step % 5 ? KINDS - 1 : KINDS), number = below(20);
		CLEANUP(frozen_unrefp) struct frozen *pod = asking_object(&a, kind, number);
		struct val budgets[BUDGETS];
		for (unsigned i = 0; i < BUDGETS; i++)
			budgets[i] = budget_object(&a, i);
		str with = outcome(&twins[0], &a, pod, step % 2, budgets), without = outcome(&twins[1], &a, pod, step % 2, budgets);
		CHECK_STR_ROW(step, with, arena_str(&a, without).p);
		seen[str_find(with, STR("preemption:")) >= 0 ? 0 : str_starts(with, STR("0")) ? 1 : 2]++;
	}
	/* Pods that find nothing, a node, victims. */
	CHECK(seen[0] > STEPS / 100 && seen[1] > STEPS / 100 && seen[2] > STEPS / 100);
	twin_end(&twins[0]);
	twin_end(&twins[1]);
}
