#include "kubelet/devices_testing.h"

static str ask(struct kubelet_test *k, const struct rpc *rpc, const char *json)
{
	return test_ask(&k->arena, test_path(k, "pod-resources/kubelet.sock"), rpc, json);
}

FIBER_TEST(pod_resources_tells_who_has_what)
{
	struct kubelet_test k;
	struct plugin_test p = { .list = "{'devices':[{'ID':'a','health':'Healthy','topology':{'nodes':[{},{'ID':1}]}},"
					 "{'ID':'b','health':'Healthy'},{'ID':'c','health':'Unhealthy'}]}" };
	struct err err = ERR_INIT;

	kubelet_test_init(&k);
	plugin_test_register(&p, &k, "v.com/x");
	struct val pod = tree(&k.arena, TYPE(core_v1, Pod),
			      "{'metadata':{'name':'p','namespace':'ns','uid':'u'},'spec':{'initContainers':[{'name':'i'},"
			      "{'name':'side','restartPolicy':'Always','resources':{'limits':{'v.com/x':'1'}}}],'containers':[{'name':'c',"
			      "'resources':{'limits':{'v.com/x':'1'}}},{'name':'plain'}]}}");
	k.pods = LIST(&k.arena, pod);
	CHECK_INT(devices_allocate(k.devices, pod, &err), 0);

	const char *entry = "{'name':'p','namespace':'ns','containers':[{'name':'side','devices':["
			    "{'resourceName':'v.com/x','deviceIds':['a'],'topology':{'nodes':[{}]}},"
			    "{'resourceName':'v.com/x','deviceIds':['a'],'topology':{'nodes':[{'ID':1}]}}]},"
			    "{'name':'c','devices':[{'resourceName':'v.com/x','deviceIds':['b']}]},{'name':'plain'}]}";
	CHECK_STR(ask(&k, &rpc_podresources_v1_PodResourcesLister_List, "{}"), arena_printf(&k.arena, "{'podResources':[%s]}", entry).p);
	CHECK_STR(ask(&k, &rpc_PodResourcesLister_Get, "{'podName':'p','podNamespace':'ns'}"),
		  arena_printf(&k.arena, "{'podResources':%s}", entry).p);
	CHECK_STR(ask(&k, &rpc_PodResourcesLister_Get, "{'podName':'q','podNamespace':'ns'}"),
		  "rpc error: code = Unknown desc = pod q in namespace ns not found");
	CHECK_STR(ask(&k, &rpc_podresources_v1alpha1_PodResourcesLister_List, "{}"),
		  "{'podResources':[{'name':'p','namespace':'ns','containers':[{'name':'c','devices':[{'resourceName':'v.com/x',"
		  "'deviceIds':['b']}]},{'name':'plain'}]}]}");
	CHECK_STR(ask(&k, &rpc_PodResourcesLister_GetAllocatableResources, "{}"),
		  "{'devices':[{'resourceName':'v.com/x','deviceIds':['a'],'topology':{'nodes':[{}]}},"
		  "{'resourceName':'v.com/x','deviceIds':['a'],'topology':{'nodes':[{'ID':1}]}},"
		  "{'resourceName':'v.com/x','deviceIds':['b']}]}");
	k.pods = VAL_EMPTY_LIST;
	CHECK_STR(ask(&k, &rpc_podresources_v1_PodResourcesLister_List, "{}"), "{}");
	CHECK(list_empty(&k.devices->allocations));
	plugin_test_stop(&p);
	kubelet_test_done(&k);
}

FIBER_TEST(pod_resources_has_a_rate)
{
	CLEANUP(grpc_channel_freep) struct grpc_channel *c = NULL;
	struct kubelet_test k;
	struct err err = ERR_INIT;
	unsigned n = 0;
	struct val answer;
	int r = 0;

	kubelet_test_init(&k);
	CHECK_INT(plugin_open(str_of(test_path(&k, "pod-resources/kubelet.sock")), &c, &err), 0);
	k.devices->rate.tokens = 3;
	while (n < 100 && r == 0) {
		k.devices->rate.at_ns = clock_now_ns(); /* so that hardly anything is added meanwhile */
		r = plugin_ask(c, &rpc_podresources_v1_PodResourcesLister_List, &k.arena, VAL_EMPTY_OBJECT, 10000, &answer, &err);
		n += r == 0;
	}
	CHECK(n >= 3 && n < 50);
	CHECK_STR(err_str(&err), "rpc error: code = ResourceExhausted desc = rejected by rate limit");
	grpc_channel_free(TAKE(c));
	kubelet_test_done(&k);
}
