#include "controllers/resource_claim_plan.h"

#include "controllers/plan_testing.h"

#define POD(name) "{'metadata':{'name':'" name "','namespace':'n','uid':'u'}}"
#define OWNER(name) "'ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'" name "','uid':'u','controller':true}]"
#define LONG "0123456789012345678901234567890123456789"

TEST(resource_claim_from_template)
{
	static const struct { const char *template, *pod, *entry, *want; } t[] = {
		{ "{'spec':{'spec':{'devices':{}}}}", POD("p"), "{'name':'gpu'}",
		  "{'metadata':{'generateName':'p-gpu-','namespace':'n','annotations':{'resource.kubernetes.io/pod-claim-name':'gpu'}," OWNER("p") "},'spec':{'devices':{}}}" },
		{ "{'spec':{'metadata':{'labels':{'a':'b'},'annotations':{'z':'y'}},'spec':{}}}", POD("p"), "{'name':'gpu'}",
		  "{'metadata':{'generateName':'p-gpu-','namespace':'n','labels':{'a':'b'},'annotations':{'resource.kubernetes.io/pod-claim-name':'gpu','z':'y'},"
		  OWNER("p") "},'spec':{}}" },
		/* Both names are cut. */
		{ "{'spec':{'spec':{}}}", POD(LONG), "{'name':'" LONG "'}",
		  "{'metadata':{'generateName':'012345678901234567890123456-012345678901234567890123456','namespace':'n','annotations':{'resource.kubernetes.io/"
		  "pod-claim-name':'" LONG "'}," OWNER(LONG) "},'spec':{}}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val claim = claim_from_template(&a, tree(&a, t[i].template), tree(&a, t[i].pod), tree(&a, t[i].entry));
		CHECK_STR_ROW(i, tree_text(&a, claim), t[i].want);
	}
}

TEST(resource_claim_pods_that_are_done)
{
	static const struct { const char *pod; bool done; } t[] = {
		{ "{}", false },
		{ "{'status':{'phase':'Running'}}", false },
		{ "{'status':{'phase':'Succeeded'}}", true },
		{ "{'status':{'phase':'Failed'}}", true },
		{ "{'metadata':{'deletionTimestamp':'x'},'spec':{'nodeName':'a'}}", false },
		{ "{'metadata':{'deletionTimestamp':'x'}}", true },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_ROW(i, pod_is_done(tree(&a, t[i].pod)) == t[i].done);
	}
}

#define LOCKED "'finalizers':['x','resource.kubernetes.io/delete-protection']"
#define USERS "'reservedFor':[{'uid':'1'},{'uid':'2'}]"

TEST(resource_claim_users)
{
	static const struct { const char *claim; bool keep[2]; const char *status; bool unlock, unused; } t[] = {
		{ "{'metadata':{" LOCKED "},'status':{'allocation':{}," USERS "}}", { true, true }, "", false, false },
		{ "{'metadata':{" LOCKED "},'status':{'allocation':{}," USERS "}}", { false, true }, "{'allocation':{},'reservedFor':[{'uid':'2'}]}", false, false },
		/* The last one gives the devices back. */
		{ "{'metadata':{" LOCKED "},'status':{'allocation':{}," USERS "}}", { false, false }, "{}", true, true },
		/* Somebody else has allocated it. */
		{ "{'metadata':{},'status':{'allocation':{}," USERS "}}", { false, false }, "{'allocation':{}}", false, true },
		/* Allocated though nobody uses it yet, or any more. */
		{ "{'metadata':{" LOCKED "},'status':{'allocation':{}}}", { false, false }, "", false, true },
		{ "{'metadata':{'deletionTimestamp':'x'," LOCKED "},'status':{'allocation':{}}}", { false, false }, "{}", true, true },
		{ "{'metadata':{'deletionTimestamp':'x'," LOCKED "},'status':{}}", { false, false }, "", true, true },
		{ "{'metadata':{'deletionTimestamp':'x'," LOCKED "},'status':{'allocation':{}," USERS "}}", { true, true }, "", false, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct claim_plan p = claim_plan_users(&a, tree(&a, t[i].claim), t[i].keep);
		CHECK_STR_ROW(i, val_exists(p.status) ? tree_text(&a, val_get(p.status, status)) : STR(""), t[i].status);
		CHECK_ROW(i, p.unlock == t[i].unlock);
		CHECK_ROW(i, p.unused == t[i].unused);
	}
}

TEST(resource_claim_left_over)
{
	static const struct { const char *claim, *pod; bool left_over; } t[] = {
		{ "{'metadata':{" OWNER("p") "}}", "{'metadata':{'uid':'u'}}", false },
		{ "{'metadata':{" OWNER("p") "}}", "{'metadata':{'uid':'u'},'status':{'phase':'Succeeded'}}", true },
		{ "{'metadata':{" OWNER("p") "}}", "{'metadata':{'uid':'other'}}", true },
		{ "{'metadata':{" OWNER("p") "}}", NULL, false }, /* not known yet, perhaps */
		{ "{'metadata':{}}", "{'metadata':{'uid':'u'},'status':{'phase':'Succeeded'}}", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_ROW(i, claim_is_left_over(tree(&a, t[i].claim), t[i].pod ? tree(&a, t[i].pod) : VAL_EMPTY) == t[i].left_over);
	}
}
