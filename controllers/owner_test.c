#include "controllers/owner.h"
#include "controllers/plan_testing.h"

TEST(owner_of_an_object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val set = tree(&a, "{'metadata':{'name':'web','uid':'u1'}}");
	struct val pod = tree(&a, "{'metadata':{'ownerReferences':[{'uid':'u0'},{'uid':'u1','controller':true,'kind':'ReplicaSet'}]}}");
	struct val other = tree(&a, "{'metadata':{'ownerReferences':[{'uid':'u1','controller':false}]}}");

	CHECK_STR(tree_text(&a, owner_ref(&a, set, "apps/v1", "ReplicaSet")),
		  "{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'web','uid':'u1','controller':true,'blockOwnerDeletion':true}");
	CHECK_STR(val_str(owner_controller(pod), kind), "ReplicaSet");
	CHECK(owner_is(pod, set));
	CHECK(!owner_is(other, set));
	CHECK(!val_exists(owner_controller(other)));
	CHECK(!owner_is(tree(&a, "{'metadata':{}}"), tree(&a, "{'metadata':{}}")));
}

TEST(owner_patches)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = tree(&a, "{'metadata':{'name':'p','uid':'p1'}}");

	CHECK_STR(tree_text(&a, owner_adopt_patch(&a, pod, tree(&a, "{'uid':'u1'}"))), "{'metadata':{'ownerReferences':[{'uid':'u1'}],'uid':'p1'}}");
	CHECK_STR(tree_text(&a, owner_release_patch(&a, pod, STR("u1"))),
		  "{'metadata':{'ownerReferences':[{'$patch':'delete','uid':'u1'}],'uid':'p1'}}");
}
