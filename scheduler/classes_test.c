#include "scheduler/classes.h"

#include "codec/atoms.h"
#include "scheduler/plugin_testing.h"

#define POD(name, cpu, more) \
	"{'metadata':{'namespace':'d','name':'" name "','uid':'" name "'},'spec':{" more "'containers':[{'name':'c','resources':{'requests':{'cpu':'" cpu "'}}}]}}"

static struct cycle asks(struct world *w, const char *pod)
{
	struct cycle c = world_cycle(w, pod);
	c.by_sums = true;
	c.nominated_to = NODE_NONE;
	return c;
}

TEST(classes_are_pods_that_ask_the_same)
{
	static const struct {
		const char *pod;
		bool same;
	} t[] = {
		{ POD("b", "100m", ""), true },
		{ POD("b", "101m", ""), false },
		{ POD("b", "100m", "'priority':7,"), false },
		{ POD("b", "100m", "'nodeSelector':{'a':'b'},"), false },
		{ POD("b", "100m", "'tolerations':[{'key':'a','operator':'Exists'}],"), false },
		{ POD("b", "100m", "'affinity':{'nodeAffinity':{}},"), false },
		{ POD("b", "100m", "'restartPolicy':'Never',"), true },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct world w;
		static struct classes all;
		static const struct profile *const p = NULL;
		world_init(&w, NULL);
		(void)world_node(&w, "{'metadata':{'name':'n'}}");
		struct cycle first = asks(&w, POD("a", "100m", "")), second = asks(&w, t[i].pod);
		CHECK_ROW(i, (classes_find(&all, &first, p) == classes_find(&all, &second, p)) == t[i].same);
		/* A filter that need not be asked for one of them would have to be for the other. */
		second.skip = 2;
		CHECK_ROW(i, classes_find(&all, &first, p) != classes_find(&all, &second, p));
		second.by_sums = false;
		CHECK_ROW(i, !classes_find(&all, &second, p));
		classes_done(&all);
		world_done(&w);
	}
}

TEST(classes_forget_what_has_changed)
{
	struct world w;
	static struct classes all;

	world_init(&w, NULL);
	uint32_t node = world_node(&w, "{'metadata':{'name':'n'}}");
	struct cycle c = asks(&w, POD("a", "100m", ""));
	struct pod_class *k = classes_find(&all, &c, NULL);
	CHECK(!class_answer(k, &c, node));
	c.reason = STR("Insufficient cpu");
	class_learn(k, &c, node, UNSCHEDULABLE, 3);
	const struct class_answer *known = class_answer(k, &c, node);
	CHECK(known && known->verdict == UNSCHEDULABLE && known->plugin == 3);
	CHECK_STR(class_reason(k, known), "Insufficient cpu");
	/* It is another matter for a pod that waits for this node. */
	c.nominated_to = node;
	CHECK(!class_answer(k, &c, node));
	c.nominated_to = NODE_NONE;

	struct placed *victim = world_pod(&w, "n", POD("v", "1", ""));
	CHECK(!class_answer(k, &c, node));
	class_learn_victims(k, &c, &(struct preempt_victims){ .node = node, .pods = &victim, .n = 1 });
	CHECK(class_victims(k, &c, node) && class_victims(k, &c, node)->pods[0] == victim);
	nodes_unplace(&w.table, victim);
	CHECK(!class_victims(k, &c, node));
	classes_done(&all);
	world_done(&w);
}

/* Whoever has changed is looked at again, however much else happened meanwhile. */
TEST(classes_look_again_at_what_has_changed)
{
	static const struct { bool others, node; } t[] = { { false, false }, { true, false }, { false, true } };

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct world w;
		static struct classes all;
		world_init(&w, NULL);
		uint32_t node = world_node(&w, "{'metadata':{'name':'n'}}"), other = world_node(&w, "{'metadata':{'name':'o'}}");
		struct cycle c = asks(&w, POD("a", "100m", ""));
		struct pod_class *k = classes_find(&all, &c, NULL);
		for (uint32_t at = 0; at < 2; at++) {
			c.reason = STR("Insufficient cpu");
			CHECK_ROW(i, class_learn(k, &c, at, UNSCHEDULABLE, 3));
			c.reason = STR("nobody");
			CHECK_ROW(i, class_learn_victims(k, &c, &(struct preempt_victims){ .node = at }));
		}
		CHECK_ROW(i, !bits_has(k->open, w.table.place[node]) && !bits_has(k->offers, w.table.place[node]));
		CHECK_ROW(i, bits_count(k->stuck, 2) == 2 && k->n_reasons == 2 && k->reasons[0].n == 2 && k->reasons[1].n == 2);
		(void)world_pod(&w, "n", POD("v", "1", ""));
		for (int changes = 0; t[i].others && changes < NODES_CHANGES; changes++)
			nodes_touch(&w.table, other);
		if (t[i].node)
			(void)world_node(&w, "{'metadata':{'name':'m'}}");
		CHECK_ROW(i, classes_find(&all, &c, NULL) == k);
		CHECK_ROW(i, bits_has(k->open, w.table.place[node]) && bits_has(k->offers, w.table.place[node]) && !bits_has(k->stuck, w.table.place[node]));
		unsigned left = t[i].others ? 0 : 1;
		CHECK_ROW(i, k->reasons[0].n == left && k->reasons[1].n == left && bits_has(k->open, w.table.place[other]) == !left);
		/* The node that the pod waits for. */
		c.nominated_to = other;
		CHECK_ROW(i, classes_find(&all, &c, NULL) == k && bits_has(k->open, w.table.place[other]) && !k->reasons[0].n);
		CHECK_ROW(i, !class_learn(k, &c, other, UNSCHEDULABLE, 3));
		classes_done(&all);
		world_done(&w);
	}
}

/* What is known of one node is kept while the next is learned, also when the table has grown since. */
TEST(classes_victims_stay_while_others_are_learned)
{
	struct world w;
	static struct classes all;

	world_init(&w, NULL);
	uint32_t node = world_node(&w, "{'metadata':{'name':'n'}}"), other = node;
	struct placed *victim = world_pod(&w, "n", POD("v", "1", ""));
	struct cycle c = asks(&w, POD("a", "100m", ""));
	struct pod_class *k = classes_find(&all, &c, NULL);
	CHECK(class_learn_victims(k, &c, &(struct preempt_victims){ .node = node, .pods = &victim, .n = 1 }));
	for (uint32_t before = k->room, i = 0; w.table.cap < 64 * before; i++)
		other = world_node(&w, arena_printf(&w.arena, "{'metadata':{'name':'m%u'}}", i).p);
	CHECK(classes_find(&all, &c, NULL) == k);
	const struct preempt_victims *kept = class_victims(k, &c, node);
	CHECK(kept);
	CHECK(class_learn_victims(k, &c, &(struct preempt_victims){ .node = other, .pods = &victim, .n = 1 }));
	CHECK(class_victims(k, &c, node) == kept && kept->pods[0] == victim);
	classes_done(&all);
	world_done(&w);
}

/* The ones that were asked for last stay. */
TEST(classes_are_few)
{
	struct world w;
	static struct classes all;

	world_init(&w, NULL);
	uint32_t node = world_node(&w, "{'metadata':{'name':'n'}}");
	struct cycle first = asks(&w, POD("a", "100m", ""));
	class_learn(classes_find(&all, &first, NULL), &first, node, FIT, -1);
	for (int i = 0; i < 2 * CLASSES_MAX; i++) {
		struct cycle other = asks(&w, arena_printf(&w.arena, POD("b", "%dm", ""), i + 1).p);
		(void)classes_find(&all, &other, NULL);
		CHECK(i < CLASSES_MAX - 1 ? class_answer(classes_find(&all, &first, NULL), &first, node) != NULL : true);
	}
	for (int i = 0; i < CLASSES_MAX; i++) {
		struct cycle other = asks(&w, arena_printf(&w.arena, POD("b", "%dm", ""), i + 50).p);
		(void)classes_find(&all, &other, NULL);
	}
	CHECK(!class_answer(classes_find(&all, &first, NULL), &first, node));
	classes_done(&all);
	world_done(&w);
}
