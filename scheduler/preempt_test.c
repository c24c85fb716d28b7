#include "scheduler/preempt.h"

#include "base/fiber_test.h"
#include "client/fake_test.h"
#include "codec/atoms.h"
#include "scheduler/plugin_testing.h"
#include "scheduler/scheduler_priv.h"

/* A filter that only counts cpu, and a state that must stay in step with the table. */
static enum verdict cpu_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	int64_t *balance = ARENA_NEW(c->arena, int64_t);
	*ret_state = balance;
	*ret_skip = false;
	return FIT;
}

static enum verdict cpu_without(struct cycle *c, void *state, uint32_t node, const struct res *gone)
{
	(void)state;
	if (c->nodes->requested[node].v[RES_CPU] - gone->v[RES_CPU] + c->placed->request.v[RES_CPU] <= c->nodes->allocatable[node].v[RES_CPU])
		return FIT;
	c->reason = STR("Insufficient cpu");
	return UNSCHEDULABLE;
}

static enum verdict cpu_filter(struct cycle *c, void *state, uint32_t node) { return cpu_without(c, state, node, &(struct res){ { 0 } }); }

static void cpu_add(struct cycle *c, void *state, const struct placed *p, uint32_t node)
{
	(void)c, (void)node;
	*(int64_t *)state += p->request.v[RES_CPU];
}

static void cpu_remove(struct cycle *c, void *state, const struct placed *p, uint32_t node)
{
	(void)c, (void)node;
	*(int64_t *)state -= p->request.v[RES_CPU];
}

static const struct plugin cpu_plugin = { .name = "Cpu", .pre_filter = cpu_pre_filter, .filter = cpu_filter,
					  .filter_without = cpu_without, .add_pod = cpu_add, .remove_pod = cpu_remove };

static void profile_of(struct profile *p)
{
	*p = (struct profile){ .plugins = { &cpu_plugin }, .n = 1 };
	p->n_order[POINT_PRE_FILTER] = p->n_order[POINT_FILTER] = 1;
}

/* "name priority cpu start [labels]": a pod as JSON. */
static const char *pod_json(struct world *w, const char *name, int priority, int cpu, const char *start, const char *app)
{
	return arena_printf(&w->arena, "{'metadata':{'namespace':'d','name':'%s','uid':'%s','labels':{'app':'%s'}},'spec':{'priority':%d,'containers':"
			    "[{'name':'c','resources':{'requests':{'cpu':'%dm'}}}]},'status':{'startTime':'2026-01-01T00:00:%sZ'}}", name, name, app,
			    priority, cpu, start).p;
}

struct victim_row {
	struct { const char *name; int priority, cpu; const char *start, *app; } pods[5];
	int cpu;
	const char *budgets[2];
	const char *want;             /* victims and violations, or why not */
};

#define BUDGET(app, allowed, more) \
	"{'metadata':{'namespace':'d','name':'b'},'spec':{'selector':{'matchLabels':{'app':'" app "'}}},'status':{'disruptionsAllowed':" #allowed more "}}"

static const struct victim_row victim_rows[] = {
	{ { { "a", 0, 500, "01", "x" } }, 800, { NULL }, "a, 0" },
	{ { { "a", 100, 500, "01", "x" } }, 800, { NULL }, "UNRESOLVABLE No preemption victims found for incoming pod" },
	{ { { "a", 200, 800, "01", "x" }, { "b", 0, 100, "01", "x" } }, 500, { NULL }, "UNSCHEDULABLE Insufficient cpu" },
	/* The most important ones stay. */
	{ { { "a", 1, 300, "01", "x" }, { "b", 2, 300, "01", "x" }, { "c", 3, 300, "01", "x" } }, 500, { NULL }, "b a, 0" },
	/* Of the same priority the oldest stay. */
	{ { { "a", 1, 300, "03", "x" }, { "b", 1, 300, "01", "x" }, { "c", 1, 300, "02", "x" } }, 300, { NULL }, "a, 0" },
	/* Small ones can come back after a large one could not. */
	{ { { "a", 5, 600, "01", "x" }, { "b", 1, 200, "01", "x" } }, 500, { NULL }, "a, 0" },
	/* Budgets: those who would violate one are let stay before more important ones. */
	{ { { "a", 1, 500, "01", "x" }, { "b", 2, 500, "01", "y" } }, 500, { BUDGET("x", 0, "") }, "b, 0" },
	{ { { "a", 1, 500, "01", "x" }, { "b", 2, 500, "01", "x" } }, 500, { BUDGET("x", 1, "") }, "b, 0" },
	{ { { "a", 1, 500, "01", "x" }, { "b", 2, 500, "01", "x" } }, 1000, { BUDGET("x", 1, "") }, "b a, 1" },
	{ { { "a", 1, 500, "01", "x" }, { "b", 2, 500, "01", "x" } }, 1000, { BUDGET("x", 0, "") }, "b a, 2" },
	/* One that the server has let go already costs nothing; a budget that selects everything is none. */
	{ { { "a", 1, 500, "01", "x" }, { "b", 2, 500, "01", "x" } }, 1000, { BUDGET("x", 0, ",'disruptedPods':{'a':'2026-01-01T00:00:00Z'}") }, "b a, 1" },
	{ { { "a", 1, 500, "01", "x" } }, 1000, { "{'metadata':{'namespace':'d'},'spec':{'selector':{}}}" }, "a, 0" },
	{ { { "a", 1, 500, "01", "x" } }, 1000, { "{'metadata':{'namespace':'other'},'spec':{'selector':{'matchLabels':{'app':'x'}}}}" }, "a, 0" },
};

static str victims_text(struct world *w, enum verdict v, const struct cycle *c, const struct preempt_victims *found)
{
	static const char *const verdicts[] = { "FIT", "UNSCHEDULABLE", "UNRESOLVABLE", "FAILED" };
	str text = STR("");
	if (v != FIT)
		return arena_printf(&w->arena, "%s " STR_FMT, verdicts[v], STR_ARG(c->reason));
	for (size_t i = 0; i < found->n; i++)
		text = arena_printf(&w->arena, STR_FMT "%s" STR_FMT, STR_ARG(text), i ? " " : "", STR_ARG(word_str(&w->table, found->pods[i]->name)));
	return arena_printf(&w->arena, STR_FMT ", %u", STR_ARG(text), found->violations);
}

static void check_victims(size_t row, const struct victim_row *t)
{
	struct world w;
	struct profile profile;
	struct val budgets[2];
	size_t n_budgets = 0;
	world_init(&w, &cpu_plugin);
	profile_of(&profile);
	uint32_t node = world_node(&w, "{'metadata':{'name':'n'},'status':{'allocatable':{'cpu':'1','memory':'1Gi','pods':'10'}}}");
	for (size_t i = 0; i < 5 && t->pods[i].name; i++)
		(void)world_pod(&w, "n", pod_json(&w, t->pods[i].name, t->pods[i].priority, t->pods[i].cpu, t->pods[i].start, t->pods[i].app));
	for (; n_budgets < 2 && t->budgets[n_budgets]; n_budgets++)
		budgets[n_budgets] = world_object(&w, TYPE(policy_v1, PodDisruptionBudget), t->budgets[n_budgets]);
	struct cycle c = world_cycle(&w, pod_json(&w, "p", 100, t->cpu, "00", "p"));
	int plugin;
	uint64_t asked, narrowed;
	cycle_init(&c, &profile);
	CHECK_INT(cycle_pre_filter(&c, &profile, &plugin, &asked, &narrowed), FIT);
	struct preempt_search search = { .c = &c, .profile = &profile };
	struct preempt_victims found = { 0 };
	preempt_budgets(&search, budgets, n_budgets);
	int64_t before = w.table.requested[node].v[RES_CPU];
	uint32_t n_before = w.table.n_pods[node];
	/* By sums alone, and by taking pods off the node for a while. */
	CHECK_ROW(row, c.by_sums);
	CHECK_STR_ROW(row, victims_text(&w, preempt_dry_run(&search, node, &found), &c, &found), t->want);
	c.by_sums = false;
	CHECK_STR_ROW(row, victims_text(&w, preempt_dry_run(&search, node, &found), &c, &found), t->want);
	/* Nothing has changed. */
	CHECK_ROW(row, w.table.requested[node].v[RES_CPU] == before && w.table.n_pods[node] == n_before && *(int64_t *)c.state[0] == 0);
	world_done(&w);
}

TEST(preempt_victims_on_a_node)
{
	for (size_t i = 0; i < ARRAY_LEN(victim_rows); i++)
		check_victims(i, &victim_rows[i]);
}

TEST(preempt_choice)
{
	/* Two candidates: priorities and starts of victims, violations; which one. */
	static const struct {
		struct { unsigned violations; size_t n; int32_t priority[3]; int64_t start[3]; } v[2];
		size_t want;
	} t[] = {
		{ { { 1, 1, { 0 }, { 0 } }, { 0, 3, { 9, 9, 9 }, { 0 } } }, 1 },
		{ { { 0, 1, { 9 }, { 0 } }, { 0, 3, { 8, 8, 8 }, { 0 } } }, 1 },
		{ { { 0, 2, { 9, 8 }, { 0 } }, { 0, 2, { 9, 7 }, { 0 } } }, 1 },
		{ { { 0, 2, { -5, -5 }, { 0 } }, { 0, 1, { -5 }, { 0 } } }, 1 },
		{ { { 0, 1, { 9 }, { 5 } }, { 0, 1, { 9 }, { 6 } } }, 1 },
		{ { { 0, 2, { 9, 9 }, { 7, 3 } }, { 0, 2, { 9, 9 }, { 4, 4 } } }, 1 },
		{ { { 0, 2, { 9, 1 }, { 7, 3 } }, { 0, 2, { 9, 1 }, { 6, 9 } } }, 0 },
		{ { { 0, 1, { 9 }, { INT64_MAX } }, { 0, 1, { 9 }, { 6 } } }, 0 },
		{ { { 0, 1, { 9 }, { 6 } }, { 0, 1, { 9 }, { 6 } } }, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct placed pods[2][3] = { 0 };
		struct placed *list[2][3];
		struct preempt_victims v[2];
		for (size_t k = 0; k < 2; k++) {
			for (size_t j = 0; j < 3; j++) {
				pods[k][j].priority = t[i].v[k].priority[j];
				pods[k][j].start_ns = t[i].v[k].start[j];
				list[k][j] = &pods[k][j];
			}
			v[k] = (struct preempt_victims){ .pods = list[k], .n = t[i].v[k].n, .violations = t[i].v[k].violations };
			preempt_weigh(&v[k]);
		}
		CHECK_ROW(i, preempt_choose(v, 2) == t[i].want);
	}
}

TEST(preempt_number_of_nodes)
{
	CHECK_INT(preempt_enough(50, 10, 100), 50);
	CHECK_INT(preempt_enough(500, 10, 100), 100);
	CHECK_INT(preempt_enough(5000, 10, 100), 500);
	CHECK_INT(preempt_enough(7, 0, 1), 1);
}

TEST(preempt_condition)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct type *type = TYPE(core_v1, Pod);
	struct val pod = testing_typed(&a, type, "{'metadata':{'name':'v','generation':3}}");
	CHECK_STR(testing_text(&a, preempt_patch(&a, pod, STR("default-scheduler"), 0)),
		  "{'status':{'conditions':[{'type':'DisruptionTarget','observedGeneration':3,'status':'True','lastTransitionTime':"
		  "'1970-01-01T00:00:00Z','reason':'PreemptionByScheduler','message':'default-scheduler: preempting to accommodate a higher priority pod'}]}}");
	CHECK(!pod_goes_by_preemption(pod));
	pod = testing_typed(&a, type, "{'metadata':{'name':'v','deletionTimestamp':'2026-01-01T00:00:00Z'},'status':{'conditions':[{'type':'DisruptionTarget',"
			    "'status':'True','reason':'PreemptionByScheduler','message':'s: preempting to accommodate a higher priority pod'}]}}");
	CHECK(pod_goes_by_preemption(pod));
	CHECK(!val_exists(preempt_patch(&a, pod, STR("s"), 0)));
}

/* ---- the plugin ---- */

enum { AT_PREEMPTION, AT_CPU };

/* A scheduler of which only that is there what preemption needs. */
struct preempt_world {
	struct scheduler s;
	struct fake fake;
	struct profile profile;
	struct arena arena;
	struct placed *pods[8];
	size_t n_pods;
	uint8_t verdicts[8];
	struct err err;
};

static void preempt_begin(struct preempt_world *w)
{
	*w = (struct preempt_world){ .err = ERR_INIT };
	fake_clock(0);
	fake_init(&w->fake);
	w->profile = (struct profile){ .name = STR("default-scheduler"), .plugins = { &plugin_default_preemption, &cpu_plugin }, .n = 2 };
	w->profile.n_order[POINT_PRE_FILTER] = w->profile.n_order[POINT_FILTER] = 1;
	w->profile.order[POINT_PRE_FILTER][0] = w->profile.order[POINT_FILTER][0] = AT_CPU;
	CHECK_INT(plugin_default_preemption.configure(VAL_EMPTY, &w->profile.config[AT_PREEMPTION], &w->err), 0);
	w->s.client = &w->fake.client;
	w->s.informers = informers_new(&w->fake.client);
	w->s.profiles = &w->profile;
	w->s.n_profiles = 1;
	w->s.dice[0] = 1;
	nodes_init(&w->s.nodes);
	nominations_init(&w->s.nominations, &w->s.nodes);
	fiber_group_init(&w->s.work);
	fiber_cond_init(&w->s.less_work, "less work");
}

static void preempt_end(struct preempt_world *w)
{
	fiber_group_done(&w->s.work);
	for (size_t i = 0; i < w->n_pods; i++) {
		if (w->pods[i]->node != UINT32_MAX)
			nodes_unplace(&w->s.nodes, w->pods[i]);
		placed_free(w->pods[i]);
	}
	nominations_done(&w->s.nominations);
	nodes_done(&w->s.nodes);
	informers_free(w->s.informers);
	plugin_default_preemption.config_free(w->profile.config[AT_PREEMPTION]);
	fake_done(&w->fake);
	arena_done(&w->arena);
	clock_virtual_off();
}

static struct placed *preempt_pod(struct preempt_world *w, const char *node, const char *name, int priority, int cpu, const char *more)
{
	const char *quoted = arena_printf(&w->arena, "{'metadata':{'namespace':'d','name':'%s','uid':'u-%s'},'spec':{'schedulerName':'default-scheduler',"
					  "'priority':%d%s,'containers':[{'name':'c','resources':{'requests':{'cpu':'%dm'}}}]}}", name, name, priority,
					  more, cpu).p;
	struct val pod = testing_typed(&w->arena, TYPE(core_v1, Pod), quoted);
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	CHECK_INT(client_create(&w->fake.client, TYPE(core_v1, Pod), pod, NULL, &answer, &w->err), 0);
	struct placed *p = w->pods[w->n_pods++] = placed_new(&w->s.nodes, answer);
	if (node)
		nodes_place(&w->s.nodes, p, nodes_find(&w->s.nodes, str_of(node)));
	return p;
}

static void preempt_nodes(struct preempt_world *w)
{
	for (const char *const *name = (const char *const[]){ "a", "b", "c", NULL }; *name; name++) {
		struct val node = testing_typed(&w->arena, TYPE(core_v1, Node), arena_printf(&w->arena, "{'metadata':{'name':'%s'},'status':{'allocatable':"
											     "{'cpu':'1','pods':'10'}}}", *name).p);
		CLEANUP(frozen_unrefp) struct frozen *f = val_freeze(node);
		(void)nodes_put(&w->s.nodes, f);
	}
}

static struct cycle preempt_cycle(struct preempt_world *w, struct placed *p)
{
	struct cycle c = { .scheduler = &w->s, .nodes = &w->s.nodes, .arena = &w->arena, .pod = p->pod->val, .placed = p, .config = w->profile.config,
			   .verdicts = w->verdicts };
	int plugin;
	uint64_t asked, narrowed;
	cycle_init(&c, &w->profile);
	CHECK_INT(cycle_pre_filter(&c, &w->profile, &plugin, &asked, &narrowed), FIT);
	c.at = AT_PREEMPTION;
	return c;
}

static bool asks_preemption(void *arg, struct val pod)
{
	struct preempt_world *w = arg;
	struct cycle c = { .scheduler = &w->s, .arena = &w->arena, .pod = pod, .config = w->profile.config, .at = AT_PREEMPTION };
	return plugin_default_preemption.pre_enqueue(&c) == FIT;
}

FIBER_TEST(preemption_deletes_victims)
{
	static struct preempt_world w; /* frames are small */
	uint32_t node = UINT32_MAX;
	preempt_begin(&w);
	preempt_nodes(&w);
	(void)preempt_pod(&w, "a", "x", 5, 900, "");
	(void)preempt_pod(&w, "b", "y", 1, 600, "");
	(void)preempt_pod(&w, "b", "z", 1, 300, "");
	(void)preempt_pod(&w, "c", "k", 200, 900, "");
	struct cycle c = preempt_cycle(&w, preempt_pod(&w, NULL, "p", 100, 1000, ""));
	memset(w.verdicts, UNSCHEDULABLE, sizeof(w.verdicts));
	(void)fake_log(&w.fake, &w.arena);
	CHECK_INT(plugin_default_preemption.post_filter(&c, NULL, false, &node), FIT);
	CHECK_STR(word_str(&w.s.nodes, w.s.nodes.name[node]), "b");
	CHECK_STR(c.reason, "");
	/* As long as it goes on the pod stays out of the queue. */
	w.s.queue = sched_queue_new(&(struct sched_queue_options){ .may_enter = asks_preemption, .arg = &w });
	sched_queue_put(w.s.queue, c.placed->pod);
	CHECK_INT(sched_queue_length(w.s.queue, "gated"), 1);
	c.at = AT_PREEMPTION;
	CHECK_INT(plugin_default_preemption.pre_enqueue(&c), UNRESOLVABLE);
	CHECK_STR(c.reason, "waiting for the preemption for this pod to be finished");
	fiber_settle();
	CHECK_STR(fake_log(&w.fake, &w.arena), "patch /api/v1/namespaces/d/pods/y/status\ndelete /api/v1/namespaces/d/pods/y\n"
		  "patch /api/v1/namespaces/d/pods/z/status\ndelete /api/v1/namespaces/d/pods/z\n");
	CHECK_INT(plugin_default_preemption.pre_enqueue(&c), FIT);
	CHECK_INT(sched_queue_length(w.s.queue, "active"), 1);
	sched_queue_free(w.s.queue);
	preempt_end(&w);
}

/* However it ends, the pod is not held back any longer. */
FIBER_TEST(preemption_that_fails_lets_the_pod_try_again)
{
	static struct preempt_world w; /* frames are small */
	uint32_t node = UINT32_MAX;
	preempt_begin(&w);
	preempt_nodes(&w);
	(void)preempt_pod(&w, "a", "x", 5, 900, "");
	struct cycle c = preempt_cycle(&w, preempt_pod(&w, NULL, "p", 100, 1000, ""));
	memset(w.verdicts, UNSCHEDULABLE, sizeof(w.verdicts));
	w.s.queue = sched_queue_new(&(struct sched_queue_options){ .may_enter = asks_preemption, .arg = &w });
	w.fake.fail = ERR_FORBIDDEN;
	CHECK_INT(plugin_default_preemption.post_filter(&c, NULL, false, &node), FIT);
	sched_queue_put(w.s.queue, c.placed->pod);
	CHECK_INT(sched_queue_length(w.s.queue, "gated"), 1);
	fiber_settle();
	CHECK_INT(sched_queue_length(w.s.queue, "active"), 1);
	sched_queue_free(w.s.queue);
	preempt_end(&w);
}

FIBER_TEST(preemption_says_why_not)
{
	static struct preempt_world w; /* frames are small */
	uint32_t node = UINT32_MAX;
	preempt_begin(&w);
	preempt_nodes(&w);
	(void)preempt_pod(&w, "a", "x", 5, 900, "");
	(void)preempt_pod(&w, "b", "y", 200, 900, "");
	struct cycle c = preempt_cycle(&w, preempt_pod(&w, NULL, "p", 100, 1000, ""));
	memset(w.verdicts, UNSCHEDULABLE, sizeof(w.verdicts));
	w.verdicts[0] = UNRESOLVABLE; /* a could be emptied, but that would not help */
	w.verdicts[2] = UNRESOLVABLE;
	CHECK_INT(plugin_default_preemption.post_filter(&c, NULL, false, &node), UNSCHEDULABLE);
	CHECK_STR(c.reason, "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.");
	CHECK(c.unnominate && node == UINT32_MAX);
	struct cycle never = preempt_cycle(&w, preempt_pod(&w, NULL, "n", 100, 1000, ",'preemptionPolicy':'Never'"));
	CHECK_INT(plugin_default_preemption.post_filter(&never, NULL, false, &node), UNSCHEDULABLE);
	CHECK_STR(never.reason, "preemption: not eligible due to preemptionPolicy=Never.");
	CHECK(!never.unnominate);
	preempt_end(&w);
}

TEST(preemption_arguments)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static const struct { const char *args, *error; } t[] = {
		{ "{'minCandidateNodesPercentage':101}", "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]" },
		{ "{'minCandidateNodesAbsolute':-1}", "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)" },
		{ "{'minCandidateNodesPercentage':0,'minCandidateNodesAbsolute':0}", "[minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
		  "minCandidateNodesAbsolute, minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage]" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		void *config = NULL;
		CHECK_ROW(i, plugin_default_preemption.configure(testing_tree(&a, t[i].args), &config, &err) < 0);
		CHECK_STR_ROW(i, err_str(&err), t[i].error);
	}
}
