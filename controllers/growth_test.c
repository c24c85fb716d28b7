/* Memory of plans over input that a user can make large: it grows with the input, not with its square. */
#include "codec/atoms.h"
#include "controllers/namespace_plan.h"
#include "controllers/plan_testing.h"
#include "controllers/pv_binder_plan.h"
#include "controllers/replica_set_plan.h"
#include "controllers/slice_pack.h"

enum { MANY = 3000, EACH_MAX = 2000 }; /* bytes; a square would take more than ten times that */

static struct val texts(struct arena *a, const char *prefix)
{
	struct val_builder list = val_builder(a);

	for (int i = 0; i < MANY; i++)
		val_add_item(&list, VAL_STR(arena_printf(a, "%s%d", prefix, i)));
	return val_end_list(&list);
}

TEST(growth_namespace_finalizers)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT, work = ARENA_INIT;
	struct namespace_content content = { .arena = &work };
	struct val item = OBJECT(&a, F(metadata, OBJECT(&a, F(finalizers, texts(&a, "example.test/x")))));

	namespace_content_remains(&content, STR(""), STR("configmaps"), LIST(&a, item));
	struct val conditions = namespace_conditions(&work, VAL_EMPTY, &content);
	CHECK(val_len(conditions) > 0);
	CHECK(work.used < (size_t)MANY * EACH_MAX);
	VAL_EACH(c, conditions)
		CHECK(val_str(*c, message).n < 8000); /* the first hundred are told */
}

static struct val as_it_is(struct arena *a, struct val slice, const void *arg)
{
	(void)a;
	(void)arg;
	return slice;
}

TEST(growth_slice_ports)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT, work = ARENA_INIT;
	struct slice_pack p = { .arena = &work, .fresh = tree(&a, "{}"), .max = 100, .dress = as_it_is };
	struct val_builder ports = val_builder(&a);

	for (int i = 0; i < MANY; i++)
		val_add_item(&ports, OBJECT(&a, F(name, VAL_STR(arena_printf(&a, "port-%d", i))), F(port, val_of_int(i + 1)), F(protocol, VAL_LIT("TCP"))));
	slice_pack_want(&p, val_end_list(&ports), tree(&a, "{'addresses':['10.0.0.1']}"));
	slice_pack_finish(&p);
	CHECK_INT(val_len(p.create), 1);
	CHECK(work.used < (size_t)MANY * EACH_MAX);
}

TEST(growth_pods_waiting_for_a_claim)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT, work = ARENA_INIT;
	struct claim_plan plan = { 0 };
	struct claim_input in = { .claim = tree(&a, "{'metadata':{'name':'c','namespace':'n','uid':'u'},'spec':{'storageClassName':'s'}}"),
				  .class = tree(&a, "{'metadata':{'name':'s'},'provisioner':'p','volumeBindingMode':'WaitForFirstConsumer'}"),
				  .waiting_pods = texts(&a, "pod-with-a-name-") };

	claim_plan(&work, &in, &plan);
	CHECK_STR(str_of(plan.reason), "WaitForPodScheduled");
	CHECK(work.used < (size_t)MANY * EACH_MAX);
}

TEST(growth_pods_on_nodes)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT, work = ARENA_INIT;
	struct val_builder pods = val_builder(&a);

	for (int i = 0; i < MANY; i++)
		val_add_item(&pods, OBJECT(&a, F(metadata, OBJECT(&a, F(name, VAL_STR(arena_printf(&a, "p%d", i))))),
					   F(spec, OBJECT(&a, F(nodeName, VAL_STR(arena_printf(&a, "n%d", i)))))));
	struct val all = val_end_list(&pods);
	struct replica_set_plan plan = replica_set_plan(&work, tree(&a, "{'spec':{'replicas':10}}"), all, all, 0);
	CHECK_INT(val_len(plan.delete), 500);
	CHECK(work.used < (size_t)MANY * EACH_MAX);
}
