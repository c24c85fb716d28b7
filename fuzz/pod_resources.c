/* Requests of pod-resources: the first byte chooses the method. What is answered can be read. */
#include "codec/proto.h"
#include "codec/types.h"
#include "fuzz/fuzz.h"
#include "kubelet/devices_priv.h"

static struct val pods(void *arg, struct arena *a)
{
	(void)arg;
	struct val containers = LIST(a, OBJECT(a, F(name, VAL_LIT("c"))));
	return LIST(a, OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_LIT("p")), F(namespace, VAL_LIT("n")), F(uid, VAL_LIT("u1")))),
			      F(spec, OBJECT(a, F(containers, containers)))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct rpc *const methods[POD_RESOURCES_METHODS] = {
		&rpc_podresources_v1_PodResourcesLister_List, &rpc_podresources_v1alpha1_PodResourcesLister_List,
		&rpc_PodResourcesLister_GetAllocatableResources, &rpc_PodResourcesLister_Get,
	};
	struct arena a = ARENA_INIT;
	struct buf b = BUF_INIT(1 << 20);
	struct devices d = { .o = { .pods = pods } };
	struct val answer;

	devices_state_init(&d);
	(void)allocation_add(&d, STR("u1"), STR("c"), STR("example.org/x"), OBJECT(&a, F(name, LIST(&a, VAL_LIT("a")))), VAL_EMPTY_OBJECT);
	if (n) {
		size_t method = data[0] % POD_RESOURCES_METHODS;
		if (pod_resources_answer(&d, &a, method, str_span((const char *)data + 1, n - 1), &b, NULL) == 0)
			check(proto_decode(&a, buf_str(&b), methods[method]->response, &answer, NULL) == 0, "an answer can be read");
	}
	devices_state_done(&d);
	buf_done(&b);
	arena_done(&a);
	return 0;
}
