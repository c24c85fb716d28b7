#include "scheduler/cycle.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "scheduler/scheduler_priv.h"

/* ---- plugins that do as they are told by labels of nodes ---- */

static unsigned asked;

static enum verdict by_label(struct cycle *c, void *state, uint32_t node)
{
	word key = word_find(c->nodes, STR("full")), value = key ? nodes_label(c->nodes, node, key) : 0;

	(void)state;
	asked++;
	if (!value)
		return FIT;
	bool resolvable = str_eq(word_str(c->nodes, value), STR("yes"));
	c->reason = resolvable ? STR("Insufficient cpu\nInsufficient memory") : STR("node(s) were wrong");
	return resolvable ? UNSCHEDULABLE : UNRESOLVABLE;
}

/* One pod for each node. */
static enum verdict by_pods(struct cycle *c, void *state, uint32_t node)
{
	(void)state;
	c->reason = STR("Too many pods");
	return c->nodes->n_pods[node] ? UNSCHEDULABLE : FIT;
}

static enum verdict narrow_to_first(struct cycle *c, void **ret_state, bool *ret_skip)
{
	static uint32_t first;

	(void)ret_state, (void)ret_skip;
	first = nodes_find(c->nodes, STR("n0"));
	c->only = &first;
	c->n_only = 1;
	return FIT;
}

/* A node that is not there. */
static enum verdict narrow_to_none(struct cycle *c, void **ret_state, bool *ret_skip)
{
	static uint32_t none;

	(void)ret_state, (void)ret_skip;
	c->only = &none;
	c->n_only = 0;
	return FIT;
}

static enum verdict refuse_all(struct cycle *c, void **ret_state, bool *ret_skip)
{
	(void)ret_state, (void)ret_skip;
	c->reason = STR("persistentvolumeclaim \"nope\" not found");
	return UNRESOLVABLE;
}

static void by_name(struct cycle *c, void *state, const uint32_t *nodes, size_t n, int64_t *scores)
{
	(void)state;
	for (size_t i = 0; i < n; i++)
		scores[i] = str_eq(word_str(c->nodes, c->nodes->name[nodes[i]]), STR("n3")) ? 100 : 0;
}

static void all_equal(struct cycle *c, void *state, const uint32_t *nodes, size_t n, int64_t *scores)
{
	(void)c, (void)state, (void)nodes;
	for (size_t i = 0; i < n; i++)
		scores[i] = 50;
}

static enum verdict no_room(struct cycle *c, void *state, bool made, uint32_t *ret_node)
{
	(void)state, (void)made;
	*ret_node = NODE_NONE;
	c->reason = STR("preemption: no");
	return UNSCHEDULABLE;
}

static const struct plugin label = { .name = "Label", .filter = by_label }, pods = { .name = "Pods", .filter = by_pods },
	narrows = { .name = "Narrows", .pre_filter = narrow_to_first }, names_none = { .name = "NamesNone", .pre_filter = narrow_to_none }, refuses = { .name = "Refuses", .pre_filter = refuse_all },
	names = { .name = "Names", .score = by_name }, equal = { .name = "Equal", .score = all_equal },
	room = { .name = "Room", .post_filter = no_room };

/* ---- a scheduler of a table alone ---- */

struct world {
	struct scheduler s;
	struct profile p;
	struct arena arena;
	struct cycle c;
	struct frozen *pod;
};

static struct frozen *object(const struct type *type, const char *fmt, ...) PRINTF_LIKE(2, 3);
static struct frozen *object(const struct type *type, const char *fmt, ...)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val v = VAL_EMPTY;
	va_list ap;

	va_start(ap, fmt);
	str json = arena_vprintf(&a, fmt, ap);
	va_end(ap);
	CHECK_INT(json_decode(&a, json, &(struct json_decode_options){ .type = type }, &v, NULL), 0);
	return val_freeze(v);
}

static struct world *world_new(uint64_t seed)
{
	struct world *w = mem_zalloc(sizeof(*w));

	nodes_init(&w->s.nodes);
	nominations_init(&w->s.nominations, &w->s.nodes);
	w->s.config = object(TYPE(kubeschedulerconfig_v1, KubeSchedulerConfiguration), "{\"percentageOfNodesToScore\":0}");
	w->s.dice[0] = seed;
	w->s.dice[1] = seed + 1;
	w->p.percentage = -1;
	arena_init(&w->arena);
	return w;
}

static void add_nodes(struct world *w, int n, const char *labels)
{
	for (int i = 0; i < n; i++) {
		struct frozen *node = object(TYPE(core_v1, Node), "{\"metadata\":{\"name\":\"n%u\",\"labels\":{%s}}}", w->s.nodes.n_alive, labels);
		(void)nodes_put(&w->s.nodes, node);
		frozen_unref(node);
	}
}

static void add_plugin(struct world *w, const struct plugin *plugin)
{
	uint8_t i = (uint8_t)w->p.n++;
	struct { bool knows; enum point at; } points[] = {
		{ plugin->pre_filter, POINT_PRE_FILTER }, { plugin->filter, POINT_FILTER }, { plugin->post_filter, POINT_POST_FILTER },
		{ plugin->score, POINT_SCORE },
	};

	w->p.plugins[i] = plugin;
	w->p.weight[i] = 1;
	for (size_t k = 0; k < ARRAY_LEN(points); k++)
		if (points[k].knows)
			w->p.order[points[k].at][w->p.n_order[points[k].at]++] = i;
}

static struct cycle_result look(struct world *w, int priority)
{
	struct cycle_result r;

	if (w->pod) {
		placed_free(w->c.placed);
		frozen_unref(w->pod);
	}
	w->pod = object(TYPE(core_v1, Pod), "{\"metadata\":{\"name\":\"p\",\"uid\":\"p\"},\"spec\":{\"priority\":%d}}", priority);
	w->c = (struct cycle){ .scheduler = &w->s, .nodes = &w->s.nodes, .arena = &w->arena, .pod = w->pod->val };
	w->c.placed = placed_new(&w->s.nodes, w->pod);
	asked = 0;
	cycle_run(&w->c, &w->p, &r);
	return r;
}

static str name_of(struct world *w, uint32_t node) { return word_str(&w->s.nodes, w->s.nodes.name[node]); }

static void world_free(struct world *w)
{
	if (w->pod) {
		placed_free(w->c.placed);
		frozen_unref(w->pod);
	}
	classes_done(&w->s.classes);
	nominations_done(&w->s.nominations);
	nodes_done(&w->s.nodes);
	frozen_unref(w->s.config);
	free(w->s.found);
	free(w->s.scores);
	free(w->s.totals);
	free(w->s.verdicts);
	arena_done(&w->arena);
	free(w);
}

/* ---- tests ---- */

TEST(cycle_how_many_nodes_are_enough)
{
	static const struct { uint32_t n; int percentage; uint32_t enough; } t[] = {
		{ 0, 0, 0 }, { 99, 0, 99 }, { 99, 10, 99 }, { 100, 0, 100 }, { 1000, 0, 420 }, { 5000, 0, 500 }, { 6000, 0, 300 }, { 100000, 0, 5000 },
		{ 1000, 40, 400 }, { 1000, 5, 100 }, { 1000, 100, 1000 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, nodes_to_find(t[i].n, t[i].percentage) == t[i].enough);
}

TEST(cycle_takes_the_best_node)
{
	struct world *w = world_new(1);

	add_nodes(w, 10, "");
	add_plugin(w, &label);
	add_plugin(w, &names);
	struct cycle_result r = look(w, 0);
	CHECK_INT(r.outcome, CYCLE_FOUND);
	CHECK_STR(name_of(w, r.node), "n3");
	CHECK_INT(r.feasible, 10);
	world_free(w);
}

TEST(cycle_says_why_nothing_fits)
{
	struct world *w = world_new(1);

	add_nodes(w, 1, "\"full\":\"yes\"");
	add_nodes(w, 2, "\"full\":\"wrong\"");
	add_plugin(w, &label);
	add_plugin(w, &room);
	struct cycle_result r = look(w, 0);
	CHECK_INT(r.outcome, CYCLE_REFUSED);
	CHECK(r.unschedulable);
	CHECK_STR(r.message, "0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 2 node(s) were wrong. preemption: no");
	CHECK_INT(r.refused_by, 1);
	CHECK_INT(r.nomination, NOMINATION_SET);
	CHECK_INT(w->c.verdicts[nodes_find(&w->s.nodes, STR("n0"))], UNSCHEDULABLE);
	CHECK_INT(w->c.verdicts[nodes_find(&w->s.nodes, STR("n2"))], UNRESOLVABLE);
	world_free(w);
}

TEST(cycle_without_nodes_is_tried_again)
{
	struct world *w = world_new(1);
	struct cycle_result r = look(w, 0);

	CHECK_INT(r.outcome, CYCLE_ERROR);
	CHECK(r.unschedulable);
	CHECK_STR(r.message, "no nodes available to schedule pods");
	world_free(w);
}

TEST(cycle_pre_filter_refuses_or_narrows)
{
	struct world *w = world_new(1);

	add_nodes(w, 1, "\"full\":\"yes\"");
	add_nodes(w, 2, "");
	add_plugin(w, &label);
	add_plugin(w, &narrows);
	struct cycle_result r = look(w, 0);
	CHECK_STR(r.message, "0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 2 node(s) didn't satisfy plugin(s) [Narrows].");
	CHECK_INT(r.refused_by, 3);
	CHECK_INT(asked, 1);
	add_plugin(w, &refuses);
	r = look(w, 0);
	CHECK_STR(r.message, "0/3 nodes are available: persistentvolumeclaim \"nope\" not found.");
	CHECK_INT(r.refused_by, 4);
	CHECK_INT(asked, 0);
	world_free(w);
}

TEST(cycle_pre_filter_names_a_node_that_is_not_there)
{
	struct world *w = world_new(1);

	add_nodes(w, 3, "");
	add_plugin(w, &label);
	add_plugin(w, &names_none);
	CHECK_STR(look(w, 0).message, "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NamesNone].");
	CHECK_INT(asked, 0);
	/* Those after it are asked, and what they say comes first. */
	add_plugin(w, &refuses);
	CHECK_STR(look(w, 0).message, "0/3 nodes are available: persistentvolumeclaim \"nope\" not found.");
	world_free(w);
}

TEST(cycle_stops_when_enough_nodes_fit_and_goes_on_from_there)
{
	struct world *w = world_new(1);

	add_nodes(w, 1000, "");
	add_plugin(w, &label);
	add_plugin(w, &equal);
	(void)look(w, 0);
	CHECK_INT(asked, 420);
	CHECK_INT(w->s.next_start, 420);
	(void)look(w, 0);
	(void)look(w, 0);
	CHECK_INT(w->s.next_start, 260);
	world_free(w);
}

TEST(cycle_chooses_between_equal_nodes_by_its_seed)
{
	uint32_t chosen[2][20];
	bool differ = false;

	for (int run = 0; run < 2; run++) {
		struct world *w = world_new(42);
		add_nodes(w, 10, "");
		add_plugin(w, &equal);
		add_plugin(w, &label);
		for (int i = 0; i < 20; i++) {
			chosen[run][i] = look(w, 0).node;
			differ |= chosen[run][i] != chosen[run][0];
		}
		world_free(w);
	}
	CHECK(memcmp(chosen[0], chosen[1], sizeof(chosen[0])) == 0);
	CHECK(differ);
}

TEST(cycle_leaves_room_for_nominated_pods)
{
	struct world *w = world_new(1);
	struct frozen *other = object(TYPE(core_v1, Pod), "{\"metadata\":{\"name\":\"o\",\"uid\":\"o\"},\"spec\":{\"priority\":5}}");

	add_nodes(w, 1, "");
	add_plugin(w, &pods);
	nominations_set(&w->s.nominations, other, STR("n0"));
	CHECK_INT(look(w, 5).outcome, CYCLE_REFUSED);
	CHECK_INT(look(w, 6).outcome, CYCLE_FOUND);
	CHECK_INT(w->s.nodes.n_pods[0], 0);
	nominations_remove(&w->s.nominations, STR("o"));
	CHECK_INT(look(w, 5).outcome, CYCLE_FOUND);
	frozen_unref(other);
	world_free(w);
}

TEST(nominations_follow_nodes)
{
	struct world *w = world_new(1);
	struct frozen *pod = object(TYPE(core_v1, Pod), "{\"metadata\":{\"name\":\"o\",\"uid\":\"o\"}}");

	nominations_set(&w->s.nominations, pod, STR("n0"));
	add_nodes(w, 1, "");
	CHECK(!nominations_at(&w->s.nominations, 0));
	nominations_node_added(&w->s.nominations, STR("n0"), nodes_find(&w->s.nodes, STR("n0")));
	CHECK(nominations_at(&w->s.nominations, nodes_find(&w->s.nodes, STR("n0"))));
	/* A change of something else keeps it. */
	nominations_update(&w->s.nominations, pod, pod);
	CHECK_STR(nominations_of(&w->s.nominations, STR("o")), "n0");
	nominations_node_removed(&w->s.nominations, nodes_find(&w->s.nodes, STR("n0")));
	CHECK(!nominations_at(&w->s.nominations, nodes_find(&w->s.nodes, STR("n0"))));
	frozen_unref(pod);
	world_free(w);
}
