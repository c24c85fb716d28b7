/* What feature gates change besides devices (devices_sharing_test.c). */
#include "base/clock.h"
#include "codec/atoms.h"
#include "scheduler/counters.h"
#include "scheduler/plugin_testing.h"
#include "scheduler/requests.h"
#include "scheduler/scheduler_priv.h"

#define WHOLE "{'metadata':{'name':'p','uid':'p'},'spec':{'resources':{'requests':{'cpu':'2'}},'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]}}"

TEST(gates_pods_as_a_whole)
{
	struct world w;
	struct pod_request q;
	world_init(&w, &plugin_node_resources_fit);
	struct val pod = world_object(&w, TYPE(core_v1, Pod), WHOLE);
	pod_request(&w.table, pod, 0, &q);
	CHECK_INT(q.amount.v[RES_CPU], 2000);
	pod = world_object(&w, TYPE(core_v1, Pod), "{'metadata':{'name':'p','uid':'p'},'spec':{'resources':{'requests':{'cpu':'2'}},'containers':[{'name':'c'}]},"
			   "'status':{'resources':{'requests':{'cpu':'3'}}}}");
	pod_request(&w.table, pod, 0, &q);
	CHECK_INT(q.amount.v[RES_CPU], 3000);
	w.table.no_pod_level_resize = true;
	pod_request(&w.table, pod, 0, &q);
	CHECK_INT(q.amount.v[RES_CPU], 2000);
	pod = world_object(&w, TYPE(core_v1, Pod), WHOLE);
	w.table.no_pod_level = true;
	pod_request(&w.table, pod, 0, &q);
	CHECK_INT(q.amount.v[RES_CPU], 1000);
	world_done(&w);
}

TEST(gates_features_of_nodes)
{
	static const struct { const char *gates; bool skip; } t[] = {
		{ "{}", false }, { "{'NodeDeclaredFeatures':false}", true }, { "{'AllBeta':false}", true },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct world w;
		void *own;
		bool skip;
		world_init(&w, &plugin_node_declared_features);
		CLEANUP(frozen_unrefp) struct frozen *gates = val_freeze(testing_tree(&w.arena, t[i].gates));
		struct scheduler *s = ARENA_NEW(&w.arena, struct scheduler);
		s->gates = gates;
		struct cycle c = world_cycle(&w, "{'metadata':{'name':'p'},'spec':{'hostNetwork':true,'hostUsers':false,'containers':[]}}");
		c.scheduler = s;
		CHECK_INT(w.plugin->pre_filter(&c, &own, &skip), FIT);
		CHECK_ROW(i, skip == t[i].skip);
		world_done(&w);
	}
}

TEST(gates_labels_of_spreading)
{
	static const char pod[] = "{'metadata':{'name':'p','namespace':'x','labels':{'app':'web','v':'1'}},'spec':{'topologySpreadConstraints':[{'maxSkew':1,"
		"'topologyKey':'host','whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{'app':'web'}},'matchLabelKeys':['v']}]}}";
	static const struct { const char *gates, *want; } t[] = {
		{ "{}", "a: FIT, b: FIT" },
		{ "{'MatchLabelKeysInPodTopologySpread':false}", "a: UNSCHEDULABLE node(s) didn't match pod topology spread constraints, b: FIT" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct world w;
		world_init(&w, &plugin_pod_topology_spread);
		(void)counters_new(&w.table);
		CLEANUP(frozen_unrefp) struct frozen *gates = val_freeze(testing_tree(&w.arena, t[i].gates));
		w.scheduler = ARENA_NEW(&w.arena, struct scheduler);
		w.scheduler->gates = gates;
		(void)world_node(&w, "{'metadata':{'name':'a','labels':{'host':'a'}}}");
		(void)world_node(&w, "{'metadata':{'name':'b','labels':{'host':'b'}}}");
		(void)world_pod(&w, "a", "{'metadata':{'name':'q','namespace':'x','labels':{'app':'web','v':'2'}}}");
		CHECK_STR_ROW(i, world_filter(&w, pod), t[i].want);
		world_done(&w);
	}
}

static bool always(void *arg, struct queued *q, unsigned event, struct val old, struct val new)
{
	(void)arg, (void)q, (void)event, (void)old, (void)new;
	return true;
}

/* Whether a pod that is to wait for a while is taken when there is no other. */
TEST(gates_backoff)
{
	for (int waits = 0; waits < 2; waits++) {
		struct world w;
		clock_virtual_set(100 * NS_PER_S, 1000 * NS_PER_S);
		world_init(&w, &plugin_node_resources_fit);
		struct sched_queue *q = sched_queue_new(&(struct sched_queue_options){ .backoff_first_ms = 1000, .backoff_max_ms = 10000, .helps = always,
			.waits_out_backoff = waits });
		CLEANUP(frozen_unrefp) struct frozen *pod = val_freeze(world_object(&w, TYPE(core_v1, Pod), WHOLE));
		sched_queue_put(q, pod);
		sched_queue_refused(q, sched_queue_try(q), 1);
		sched_queue_event(q, EV_NODE_ADD, VAL_EMPTY, VAL_EMPTY);
		CHECK_INT(sched_queue_length(q, "backoff"), 1);
		struct queued *next = sched_queue_try(q);
		CHECK_ROW(waits, (next == NULL) == waits);
		if (next)
			sched_queue_done(q, next);
		sched_queue_free(q);
		world_done(&w);
		clock_virtual_off();
	}
}
