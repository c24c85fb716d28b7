#include "scheduler/nodes.h"

#include "codec/atoms.h"
#include "scheduler/plugin_testing.h"

static str order_text(struct world *w)
{
	const uint32_t *order = nodes_order(&w->table);
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);

	for (uint32_t i = 0; i < w->table.n_alive; i++)
		buf_addf(&b, "%s" STR_FMT, i ? " " : "", STR_ARG(word_str(&w->table, w->table.name[order[i]])));
	return arena_str(&w->arena, buf_str(&b));
}

static void put_in_zone(struct world *w, const char *name, const char *zone)
{
	world_node(w, arena_printf(&w->arena, "{'metadata':{'name':'%s','labels':{'topology.kubernetes.io/zone':'%s'}}}", name, zone).p);
}

TEST(words_are_numbers_of_texts_as_long_as_they_are_held)
{
	struct nodes t;
	word a, b, empty;

	nodes_init(&t);
	CHECK_INT(word_find(&t, STR("a")), 0);
	a = word_make(&t, STR("a"));
	CHECK(a != 0);
	CHECK_INT(word_make(&t, STR("a")), a);
	b = word_make(&t, STR("b"));
	CHECK(b != a);
	empty = word_make(&t, STR(""));
	CHECK(empty != 0);
	CHECK_STR(word_str(&t, a), "a");
	CHECK_STR(word_str(&t, 0), "");
	word_drop(&t, 0);
	word_drop(&t, a);
	CHECK_INT(word_find(&t, STR("a")), a);
	word_drop(&t, a);
	CHECK_INT(word_find(&t, STR("a")), 0);
	/* Its number is used again. */
	CHECK_INT(word_make(&t, STR("c")), a);
	CHECK_INT(word_find(&t, STR("b")), b);
	nodes_done(&t);
}

TEST(nodes_are_examined_zone_by_zone_in_turn)
{
	struct world w;

	world_init(&w, NULL);
	CHECK_STR(order_text(&w), "");
	put_in_zone(&w, "a1", "a");
	put_in_zone(&w, "a2", "a");
	put_in_zone(&w, "a3", "a");
	put_in_zone(&w, "b1", "b");
	put_in_zone(&w, "c1", "c");
	put_in_zone(&w, "c2", "c");
	CHECK_STR(order_text(&w), "a1 b1 c1 a2 c2 a3");
	nodes_remove(&w.table, STR("b1"));
	nodes_remove(&w.table, STR("a2"));
	CHECK_STR(order_text(&w), "a1 c1 a3 c2");
	/* A node that moves goes to the end of its zone; one that stays keeps its place. */
	put_in_zone(&w, "a1", "c");
	put_in_zone(&w, "c1", "c");
	CHECK_STR(order_text(&w), "a3 c1 c2 a1");
	world_node(&w, "{'metadata':{'name':'x','labels':{'failure-domain.beta.kubernetes.io/zone':'a'}}}");
	world_node(&w, "{'metadata':{'name':'y'}}");
	CHECK_STR(order_text(&w), "a3 c1 y x c2 a1");
	world_done(&w);
}

TEST(nodes_order_has_each_node_once_however_they_come_and_go)
{
	struct world w;
	bool seen[200] = { false };

	world_init(&w, NULL);
	for (int i = 0; i < 200; i++)
		put_in_zone(&w, arena_printf(&w.arena, "n%d", i).p, arena_printf(&w.arena, "z%d", i % 7).p);
	for (int i = 0; i < 200; i += 3)
		nodes_remove(&w.table, arena_printf(&w.arena, "n%d", i));
	CHECK_INT(w.table.n_alive, 133);
	const uint32_t *order = nodes_order(&w.table);
	for (uint32_t i = 0; i < w.table.n_alive; i++) {
		int64_t k;
		CHECK(str_to_i64(str_skip(word_str(&w.table, w.table.name[order[i]]), 1), &k));
		CHECK(k % 3 != 0 && !seen[k]);
		seen[k] = true;
	}
	world_done(&w);
}

TEST(nodes_show_what_the_object_says)
{
	struct world w;
	uint32_t i;

	world_init(&w, NULL);
	i = world_node(&w, "{'metadata':{'name':'n','labels':{'disk':'ssd','empty':''}},"
			   "'spec':{'unschedulable':true,'taints':[{'key':'k','value':'v','effect':'NoExecute'},{'key':'x','effect':'Sometimes'},"
			   "{'key':'k2','effect':'PreferNoSchedule'}]},"
			   "'status':{'allocatable':{'cpu':'1500m','memory':'1Ki','ephemeral-storage':'5','pods':'7','vendor.example/gpu':'2',"
			   "'hugepages-2Mi':'4Mi','services':'9'},"
			   "'images':[{'names':['img:1','img@sha256:1','img:1'],'sizeBytes':100}]}}");
	CHECK_INT(nodes_find(&w.table, STR("n")), i);
	CHECK_STR(word_str(&w.table, nodes_label(&w.table, i, word_find(&w.table, STR("disk")))), "ssd");
	CHECK(nodes_label(&w.table, i, word_find(&w.table, STR("empty"))) != 0);
	CHECK_INT(nodes_label(&w.table, i, word_find(&w.table, STR("n"))), 0);
	CHECK(w.table.unschedulable[i]);
	CHECK_INT(w.table.n_taints[i], 2);
	CHECK_INT(w.table.taints[i][0].effect, TAINT_NO_EXECUTE);
	CHECK_INT(w.table.taints[i][1].effect, TAINT_PREFER_NO_SCHEDULE);
	CHECK_INT(w.table.allocatable[i].v[RES_CPU], 1500);
	CHECK_INT(w.table.allocatable[i].v[RES_MEMORY], 1024);
	CHECK_INT(w.table.allocatable[i].v[RES_STORAGE], 5);
	CHECK_INT(w.table.allocatable[i].v[RES_PODS], 7);
	CHECK_INT(w.table.allocatable[i].v[nodes_resource_find(&w.table, STR("vendor.example/gpu"))], 2);
	CHECK_INT(w.table.allocatable[i].v[nodes_resource_find(&w.table, STR("hugepages-2Mi"))], 4 << 20);
	CHECK_INT(nodes_resource_find(&w.table, STR("services")), RES_MAX);
	CHECK_INT(w.table.n_node_images[i], 2);
	/* And what it says later. */
	uint64_t before = w.table.generation[i];
	CHECK_INT(world_node(&w, "{'metadata':{'name':'n'},'status':{'allocatable':{'cpu':'2'}}}"), i);
	CHECK(w.table.generation[i] > before);
	CHECK_INT(w.table.n_labels[i], 0);
	CHECK_INT(w.table.n_taints[i], 0);
	CHECK(!w.table.unschedulable[i]);
	CHECK_INT(w.table.allocatable[i].v[RES_CPU], 2000);
	CHECK_INT(w.table.allocatable[i].v[RES_MEMORY], 0);
	CHECK_INT(map_len(&w.table.images), 0);
	CHECK_INT(word_find(&w.table, STR("ssd")), 0);
	world_done(&w);
}

TEST(images_are_counted_by_node)
{
	static const char with[] = "{'metadata':{'name':'%s'},'status':{'images':[{'names':['i:1'],'sizeBytes':%d}]}}";
	struct world w;
	const struct image *image;

	world_init(&w, NULL);
	for (int round = 0; round < 2; round++) {
		world_node(&w, arena_printf(&w.arena, with, "a", 10).p);
		world_node(&w, arena_printf(&w.arena, with, "b", 20).p);
		image = map_get(&w.table.images, STR("i:1"));
		CHECK_INT(image->n_nodes, 2);
		CHECK_INT(image->size, 10);
		/* Another image of the node changes: it is counted again, once. */
		world_node(&w, "{'metadata':{'name':'b'},'status':{'images':[{'names':['i:1','j'],'sizeBytes':20}]}}");
		CHECK_INT(image->n_nodes, 2);
		nodes_remove(&w.table, STR("a"));
		CHECK_INT(image->n_nodes, 1);
		nodes_remove(&w.table, STR("b"));
		CHECK_INT(map_len(&w.table.images), 0);
	}
	world_done(&w);
}

TEST(pods_count_as_long_as_they_are_placed)
{
	static const char pod[] = "{'metadata':{'name':'p','namespace':'s','uid':'u','labels':{'z':'1','a':'2'},'deletionTimestamp':"
				  "'2024-01-01T00:00:00Z'},'spec':{'priority':5,'containers':[{'name':'c','resources':{'requests':{'cpu':'100m',"
				  "'vendor.example/gpu':'1'}},'ports':[{'containerPort':80,'hostPort':8080}]}]},'status':{'startTime':"
				  "'1970-01-01T00:00:02Z'}}";
	struct world w;
	struct placed *p, *q;
	uint32_t n;
	unsigned gpu;

	world_init(&w, NULL);
	n = world_node(&w, "{'metadata':{'name':'n'},'status':{'allocatable':{'vendor.example/gpu':'4'}}}");
	gpu = nodes_resource_find(&w.table, STR("vendor.example/gpu"));
	p = world_pod(&w, "n", pod);
	q = world_pod(&w, "n", "{'metadata':{'name':'q'},'spec':{'containers':[{'name':'c'}]}}");
	CHECK_INT(p->priority, 5);
	CHECK_INT(p->start_ns, 2000000000);
	CHECK(p->deleting && !q->deleting);
	CHECK_INT(q->start_ns, INT64_MAX);
	CHECK_STR(word_str(&w.table, labels_find(p->labels, p->n_labels, word_find(&w.table, STR("a")))), "2");
	CHECK_INT(w.table.n_pods[n], 2);
	CHECK_INT(w.table.requested[n].v[RES_PODS], 2);
	CHECK_INT(w.table.requested[n].v[RES_CPU], 100);
	CHECK_INT(w.table.requested[n].v[gpu], 1);
	CHECK_INT(w.table.nonzero_cpu[n], 200);
	CHECK_INT(w.table.nonzero_memory[n], 2 * 200 << 20);
	CHECK_INT(w.table.n_ports[n], 1);
	nodes_unplace(&w.table, p);
	CHECK_INT(p->node, UINT32_MAX);
	CHECK(w.table.n_pods[n] == 1 && w.table.pods[n][0] == q && q->at == 0);
	CHECK_INT(w.table.requested[n].v[RES_CPU], 0);
	CHECK_INT(w.table.requested[n].v[gpu], 0);
	CHECK_INT(w.table.nonzero_cpu[n], 100);
	CHECK_INT(w.table.n_ports[n], 0);
	nodes_place(&w.table, p, n);
	CHECK_INT(w.table.requested[n].v[RES_PODS], 2);
	world_done(&w);
}

TEST(pods_stay_when_their_node_goes_and_comes_back)
{
	struct world w;
	struct placed *p;
	uint32_t n;

	world_init(&w, NULL);
	n = world_node(&w, "{'metadata':{'name':'n'}}");
	p = world_pod(&w, "n", "{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]}}");
	nodes_remove(&w.table, STR("n"));
	CHECK_INT(nodes_find(&w.table, STR("n")), UINT32_MAX);
	CHECK_INT(w.table.n_alive, 0);
	/* Its index is not given to another one meanwhile. */
	CHECK(world_node(&w, "{'metadata':{'name':'m'}}") != n);
	CHECK_INT(world_node(&w, "{'metadata':{'name':'n'}}"), n);
	CHECK_INT(w.table.requested[n].v[RES_CPU], 1000);
	nodes_remove(&w.table, STR("n"));
	nodes_unplace(&w.table, p);
	CHECK_INT(world_node(&w, "{'metadata':{'name':'o'}}"), n);
	CHECK_INT(w.table.requested[n].v[RES_CPU], 0);
	CHECK_INT(w.table.n_pods[n], 0);
	world_done(&w);
}

TEST(resources_that_become_known_count_for_pods_that_are_there)
{
	static const char pod[] = "{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c','resources':{'requests':{'a.example/x':'3'}}}]}}";
	struct world w;
	struct placed *p, *later;
	uint32_t n;

	world_init(&w, NULL);
	n = world_node(&w, "{'metadata':{'name':'n'}}");
	p = world_pod(&w, "n", pod);
	later = world_placed(&w, pod);
	CHECK(p->unknown && later->unknown);
	CHECK_INT(w.table.n_resources, RES_FIXED);
	world_node(&w, "{'metadata':{'name':'m'},'status':{'allocatable':{'a.example/x':'5'}}}");
	CHECK(!p->unknown);
	CHECK_INT(w.table.requested[n].v[RES_FIXED], 3);
	nodes_place(&w.table, later, n);
	CHECK_INT(w.table.requested[n].v[RES_FIXED], 6);
	nodes_unplace(&w.table, p);
	nodes_unplace(&w.table, later);
	CHECK_INT(w.table.requested[n].v[RES_FIXED], 0);
	CHECK_INT(w.table.n_unknown, 0);
	world_done(&w);
}

TEST(resources_beyond_the_table_are_not_known)
{
	struct world w;

	world_init(&w, NULL);
	for (int i = RES_FIXED; i < RES_MAX; i++)
		CHECK_INT(nodes_resource(&w.table, arena_printf(&w.arena, "a.example/r%d", i)), i);
	CHECK_INT(nodes_resource(&w.table, STR("a.example/more")), RES_MAX);
	CHECK_INT(nodes_resource(&w.table, STR("a.example/r9")), 9);
	CHECK_INT(nodes_resource(&w.table, STR("memory")), RES_MEMORY);
	CHECK(world_placed(&w, "{'spec':{'containers':[{'name':'c','resources':{'requests':{'a.example/more':'1'}}}]}}")->unknown);
	world_done(&w);
}

TEST(words_of_pods_and_nodes_leave_with_them)
{
	struct world w;
	size_t words;

	world_init(&w, NULL);
	words = map_len(&w.table.words);
	for (int i = 0; i < 3; i++) {
		struct placed *p;
		uint32_t n = world_node(&w, "{'metadata':{'name':'n','labels':{'l':'v','topology.kubernetes.io/region':'r'}},'spec':{'taints':[{'key':'t',"
					    "'value':'w','effect':'NoSchedule'}]},'status':{'images':[{'names':['i'],'sizeBytes':1}]}}");
		p = world_placed(&w, "{'metadata':{'name':'p','namespace':'s','uid':'u','labels':{'l':'v2'}},'spec':{'containers':[{'name':'c','ports':"
				     "[{'containerPort':1,'hostPort':1,'hostIP':'10.0.0.1'}]}]}}");
		nodes_place(&w.table, p, n);
		nodes_remove(&w.table, STR("n"));
		nodes_unplace(&w.table, p);
		placed_free(w.pods[--w.n_pods]);
		CHECK_INT(map_len(&w.table.words), words);
	}
	world_done(&w);
}

/* ---- the sums, against counting again ---- */

static void check_sums(struct world *w, unsigned row)
{
	for (uint32_t i = 0; i < w->table.n; i++) {
		struct res sum = { 0 };
		int64_t cpu = 0, ports = 0;
		for (uint32_t k = 0; k < w->table.n_pods[i]; k++) {
			const struct placed *p = w->table.pods[i][k];
			CHECK_ROW(row, p->node == i && p->at == k);
			for (unsigned r = 0; r < RES_MAX; r++)
				sum.v[r] += p->request.v[r];
			cpu += p->nonzero_cpu;
			ports += p->n_ports;
		}
		CHECK_ROW(row, memcmp(&sum, &w->table.requested[i], sizeof(sum)) == 0);
		CHECK_ROW(row, cpu == w->table.nonzero_cpu[i] && ports == w->table.n_ports[i]);
	}
}

TEST(sums_are_those_of_the_pods_that_are_there)
{
	struct world w;
	uint64_t seed = 3;

	world_init(&w, NULL);
	for (unsigned i = 0; i < 40; i++)
		world_placed(&w, arena_printf(&w.arena, "{'metadata':{'name':'p%u'},'spec':{'containers':[{'name':'c','resources':{'requests':{'%s':'%u',"
					      "'v.example/r%u':'%u'}},'ports':[{'containerPort':1,'hostPort':%u}]}]}}", i, i % 3 ? "cpu" : "memory", i, i % 5,
					      i % 7, 1 + i % 4).p);
	for (unsigned step = 0; step < 2000; step++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		unsigned which = (unsigned)(seed >> 33) % 40, node = (unsigned)(seed >> 45) % 6, what = (unsigned)(seed >> 56) % 8;
		str name = arena_printf(&w.arena, "n%u", node);
		uint32_t at = nodes_find(&w.table, name);
		struct placed *p = w.pods[which];
		if (what == 0)
			nodes_remove(&w.table, name);
		else if (what == 1)
			world_node(&w, arena_printf(&w.arena, "{'metadata':{'name':'n%u'},'status':{'allocatable':{'v.example/r%u':'1'}}}", node, which % 5).p);
		else if (p->node != UINT32_MAX)
			nodes_unplace(&w.table, p);
		else if (at != UINT32_MAX)
			nodes_place(&w.table, p, at);
		check_sums(&w, step);
	}
	CHECK_INT(w.table.n_resources, RES_FIXED + 5);
	world_done(&w);
}
