#include "controllers/endpoint_slice_mirroring_plan.h"

#include "codec/atoms.h"
#include "controllers/labels.h"
#include "controllers/plan_testing.h"

#define ENDPOINTS(subsets) "{'metadata':{'name':'s','namespace':'ns','uid':'u0','annotations':{'endpoints.kubernetes.io/last-change-trigger-time':'x','a':'b'}},'subsets':" subsets "}"

TEST(mirror_wanted)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	CHECK(mirror_wanted(tree(&a, "{}")));
	CHECK(!mirror_wanted(tree(&a, "{'metadata':{'labels':{'endpointslice.kubernetes.io/skip-mirror':'true'}}}")));
	CHECK(!mirror_wanted(tree(&a, "{'metadata':{'annotations':{'control-plane.alpha.kubernetes.io/leader':'{}'}}}")));
}

TEST(mirror_slices)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val endpoints = tree(&a, ENDPOINTS("[{'addresses':[{'ip':'10.1.1.1'},{'ip':'fd00::1'},{'ip':'none'}],'notReadyAddresses':[{'ip':'10.1.1.3'}],"
						  "'ports':[{'name':'http','port':8080,'protocol':'TCP'}]}]"));
	struct mirror_plan plan;

	mirror_plan(&a, endpoints, VAL_EMPTY_LIST, MIRROR_MAX, &plan);
	CHECK_INT(plan.n_invalid, 1);
	CHECK_INT(plan.n_skipped, 1);
	CHECK_INT(val_len(plan.create), 2);
	struct val v4 = val_at(plan.create, 0);
	CHECK_STR(tree_text(&a, val_get(v4, endpoints)), "[{'addresses':['10.1.1.1'],'conditions':{'ready':true}},{'addresses':['10.1.1.3'],'conditions':{'ready':false}}]");
	CHECK_STR(tree_text(&a, val_get(v4, metadata, annotations)), "{'a':'b'}");
	CHECK_STR(label_of(v4, STR(SLICE_MANAGED_BY)), MIRROR_MANAGER);
	CHECK_STR(val_str(val_at(val_get(v4, metadata, ownerReferences), 0), kind), "Endpoints");

	/* Another port: the slice that there is becomes the one that is wanted; the other family is gone. */
	struct val slices = LIST(&a, val_with(&a, v4, VAL_LIT("s-1"), metadata, name), val_with(&a, val_at(plan.create, 1), VAL_LIT("s-2"), metadata, name));
	mirror_plan(&a, tree(&a, ENDPOINTS("[{'addresses':[{'ip':'10.1.1.9'}],'ports':[{'name':'http','port':9090,'protocol':'TCP'}]}]")), slices, MIRROR_MAX, &plan);
	CHECK_INT(val_len(plan.create), 0);
	CHECK_INT(val_len(plan.update), 1);
	CHECK_STR(val_str(val_at(plan.update, 0), metadata, name), "s-1");
	CHECK_INT(val_len(plan.gone), 1);
	CHECK_STR(val_str(val_at(plan.gone, 0), metadata, name), "s-2");

	mirror_plan(&a, endpoints, slices, MIRROR_MAX, &plan); /* as it is */
	CHECK_INT(val_len(plan.create) + val_len(plan.update) + val_len(plan.gone), 0);
	mirror_plan(&a, endpoints, slices, 1, &plan);
	CHECK_INT(plan.n_skipped, 3);
}
