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
