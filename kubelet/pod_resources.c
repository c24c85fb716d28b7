/* pod-resources: what monitors ask which devices the containers of this node have. */
#include "base/clock.h"
#include "base/log.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "kubelet/devices_priv.h"
#include "machinery/resources.h"
#include "net/grpc_server.h"

/* As Kubernetes: so many requests a second, and so many at once. */
enum { RATE = 100, BURST = 10, REQUEST_MAX = 64 << 10, ANSWER_MAX = 16 << 20 };

static struct val device_entry(struct arena *a, str resource, struct val id, struct val node)
{
	struct val topology = val_exists(node) ? OBJECT(a, F(nodes, LIST(a, node))) : VAL_EMPTY;

	return OBJECT(a, F(resourceName, VAL_STR(resource)), F(deviceIds, LIST(a, id)), F(topology, topology));
}

/* A NUMA node as messages have it; protobuf leaves a 0 out. */
static struct val node_of(struct arena *a, int64_t id) { return OBJECT(a, F(ID, id ? val_of_int(id) : VAL_EMPTY)); }

static struct val container_devices(struct devices *d, struct arena *a, str uid, str container)
{
	struct val_builder b = val_builder(a);

	LIST_EACH(struct allocation, x, &d->allocations, link) {
		if (!str_eq(x->pod, uid) || !str_eq(x->container, container) || !val_exists(x->response))
			continue;
		VAL_EACH_MEMBER(m, x->devices) {
			int64_t node = -1;
			(void)str_to_i64(atom_str(m->key), &node);
			VAL_EACH(id, m->val)
				val_add_item(&b, device_entry(a, x->resource, *id, node == -1 ? VAL_EMPTY : node_of(a, node)));
		}
	}
	return val_end_list(&b);
}

static struct val container_entry(struct devices *d, struct arena *a, struct val pod, struct val container)
{
	str name = val_str(container, name);

	return OBJECT(a, F(name, VAL_STR(name)), F(devices, container_devices(d, a, val_str(pod, metadata, uid), name)));
}

static struct val pod_entry(struct devices *d, struct arena *a, struct val pod, bool sidecars)
{
	struct val_builder b = val_builder(a);

	if (sidecars)
		VAL_EACH(c, val_get(pod, spec, initContainers))
			if (container_is_sidecar(*c))
				val_add_item(&b, container_entry(d, a, pod, *c));
	VAL_EACH(c, val_get(pod, spec, containers))
		val_add_item(&b, container_entry(d, a, pod, *c));
	return OBJECT(a, F(name, val_get(pod, metadata, name)), F(namespace, val_get(pod, metadata, namespace)),
		      F(containers, val_end_list(&b)));
}

static struct val list_pods(struct devices *d, struct arena *a, bool sidecars)
{
	struct val_builder b = val_builder(a);

	allocations_collect(d);
	VAL_EACH(pod, d->o.pods(d->o.arg, a))
		val_add_item(&b, pod_entry(d, a, *pod, sidecars));
	return OBJECT(a, F(podResources, val_end_list(&b)));
}

static int list(struct devices *d, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	(void)request;
	(void)err;
	*ret = list_pods(d, a, true);
	return 0;
}

/* That older version knows only of containers, and nothing of NUMA nodes, which its messages leave out. */
static int list_old(struct devices *d, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	(void)request;
	(void)err;
	*ret = list_pods(d, a, false);
	return 0;
}

static int get_allocatable(struct devices *d, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(a);

	(void)request;
	(void)err;
	LIST_EACH(struct offer, r, &d->offers, link) {
		if (!r->listed || !r->told)
			continue;
		VAL_EACH(device, r->told->val) {
			struct val id = val_get(*device, ID), topology = val_get(*device, topology);
			if (!offer_has(r, device, val_as_str(id)) || !offer_is_healthy(r, *device))
				continue;
			VAL_EACH(node, val_get(topology, nodes))
				val_add_item(&b, device_entry(a, r->name, id, *node));
			if (!val_exists(topology))
				val_add_item(&b, device_entry(a, r->name, id, VAL_EMPTY));
		}
	}
	*ret = OBJECT(a, F(devices, val_end_list(&b)));
	return 0;
}

static int get(struct devices *d, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	str name = val_str(request, podName), namespace = val_str(request, podNamespace);

	VAL_EACH(pod, d->o.pods(d->o.arg, a)) {
		if (!str_eq(val_str(*pod, metadata, name), name) || !str_eq(val_str(*pod, metadata, namespace), namespace))
			continue;
		*ret = OBJECT(a, F(podResources, pod_entry(d, a, *pod, true)));
		return 0;
	}
	return err_set(err, ERR_INTERNAL, "pod " STR_FMT " in namespace " STR_FMT " not found", STR_ARG(name), STR_ARG(namespace));
}

struct method {
	const struct rpc *rpc;
	int (*answer)(struct devices *d, struct arena *a, struct val request, struct val *ret, struct err *err);
};

static const struct method methods[POD_RESOURCES_METHODS] = {
	{ &rpc_podresources_v1_PodResourcesLister_List, list },
	{ &rpc_podresources_v1alpha1_PodResourcesLister_List, list_old },
	{ &rpc_PodResourcesLister_GetAllocatableResources, get_allocatable },
	{ &rpc_PodResourcesLister_Get, get },
};

static bool rate_allows(struct devices *d)
{
	int64_t now = clock_now_ns();
	double tokens = d->rate.tokens + (double)(now - d->rate.at_ns) / (double)NS_PER_S * RATE;

	d->rate.tokens = MIN(tokens, (double)BURST);
	d->rate.at_ns = now;
	if (d->rate.tokens < 1)
		return false;
	d->rate.tokens--;
	return true;
}

int pod_resources_answer(struct devices *d, struct arena *a, size_t method, str request, struct buf *ret, struct err *err)
{
	const struct method *m = &methods[method];
	struct val asked, answer;
	int r = proto_decode(a, request, m->rpc->request, &asked, err);

	if (r < 0 || (r = m->answer(d, a, asked, &answer, err)) < 0)
		return r;
	return proto_encode(ret, answer, m->rpc->response, err);
}

/* (suspends) */
static int handle(struct grpc_server_call *call, str bytes, void *arg, struct err *err)
{
	struct devices *d = arg;
	const struct method *m = grpc_call_method(call)->user;
	CLEANUP(buf_done) struct buf b = BUF_INIT(ANSWER_MAX);

	if (!rate_allows(d))
		return err_set(err, ERR_TOO_MANY_REQUESTS, "rejected by rate limit");
	int r = pod_resources_answer(d, grpc_call_arena(call), (size_t)(m - methods), bytes, &b, err);
	return r < 0 ? r : grpc_reply(call, buf_str(&b), err);
}

struct grpc_server *pod_resources_server(struct devices *d)
{
	static struct grpc_method table[ARRAY_LEN(methods)]; /* the server keeps it */
	struct grpc_server_options o = { .methods = table, .n_methods = ARRAY_LEN(table), .arg = d, .max_message = REQUEST_MAX };

	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		table[i] = (struct grpc_method){ methods[i].rpc->path, handle, false, &methods[i] };
	d->rate.tokens = BURST;
	d->rate.at_ns = clock_now_ns();
	return grpc_server_new(&o);
}
