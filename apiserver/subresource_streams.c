/* pods/exec, pods/attach and pods/portforward: streams between a client and a container, by way of the pod's kubelet. */
#include "apiserver/apiserver.h"
#include "apiserver/kubelet_client.h"
#include "apiserver/pod.h"
#include "apiserver/stream_proxy.h"
#include "apiserver/subresource.h"
#include "codec/atoms.h"
#include "net/url.h"

static int node_of(struct request *q, struct val pod, struct kubelet_place *ret)
{
	str node = val_str(pod, spec, nodeName);
	if (!node.n)
		return fail_bad_request(q, "pod " STR_FMT " does not have a host assigned", STR_ARG(q->name));
	return kubelet_find(q, node, ret);
}

static struct translate_streams streams_of(const struct request *q)
{
	return (struct translate_streams){
		.in = request_query_bool(q, STR("stdin")),
		.out = request_query_bool(q, STR("stdout")),
		.err = request_query_bool(q, STR("stderr")),
		.tty = request_query_bool(q, STR("tty")),
	};
}

/* The query that kubelets know, in the order of names. */
static str stream_query(struct request *q, const struct translate_streams *want, bool exec)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4 << 20);
	for (size_t i = 0; exec && i < q->n_query; i++)
		if (str_eq(q->query[i].name, STR("command")))
			url_query_add(&b, q->query[i].name, q->query[i].value);
	if (want->err)
		url_query_add(&b, STR("error"), STR("1"));
	if (want->in)
		url_query_add(&b, STR("input"), STR("1"));
	if (want->out)
		url_query_add(&b, STR("output"), STR("1"));
	if (want->tty)
		url_query_add(&b, STR("tty"), STR("1"));
	return arena_str(q->arena, buf_str(&b));
}

static int upgrade_required(struct request *q)
{
	return fail_bad_request(q, "Upgrade request required");
}

/* A WebSocket is opened by GET, but what is done through it takes the permission to create. */
static int may_create(struct request *q, struct err *err)
{
	struct authz_attributes what = authz_of_request(q);
	struct err why = ERR_INIT;
	str reason;
	if (str_eq(what.verb, STR("create")))
		return 0;
	what.verb = STR("create");
	int decision = authz_decide(q->server, q->arena, &what, &reason, &why);
	if (decision == AUTHZ_ALLOW)
		return 0;
	if (why.code) {
		*err = why;
		return -(int)why.code;
	}
	return fail_forbidden(q, q->group, q->resource, q->name, STR_FMT, STR_ARG(reason));
}

static int container_streams(struct request *q, bool exec, struct err *err)
{
	struct object *pod;
	struct kubelet_place place;
	struct proxy_target target;
	str container = request_query(q, STR("container"));
	int r = may_create(q, err);
	if (r < 0 || (r = pod_get(q, q->name, &pod, err)) < 0 || (r = pod_container(q, pod->val, &container)) < 0 ||
	    (r = node_of(q, pod->val, &place)) < 0 ||
	    (r = kubelet_http(q->server, KUBELET_VERIFIED, &target.client, err)) < 0)
		return r;
	struct translate_streams want = streams_of(q);
	str query = stream_query(q, &want, exec);
	target.url = arena_printf(q->arena, "https://" STR_FMT "/%s/" STR_FMT "/" STR_FMT "/" STR_FMT "%s" STR_FMT,
				  STR_ARG(place.authority),
				  exec ? "exec" : "attach", STR_ARG(q->namespace), STR_ARG(q->name), STR_ARG(container),
				  query.n ? "?" : "", STR_ARG(query));
	if (translate_is_wanted(q) && !place.websockets)
		return translate_handle(q, &target, &want, err);
	return proxy_is_upgrade(q) ? proxy_upgrade(q, &target, err) : upgrade_required(q);
}

int exec_handle(struct request *q, struct err *err) { return container_streams(q, true, err); }
int attach_handle(struct request *q, struct err *err) { return container_streams(q, false, err); }

/* port=80,443 of ?ports=80&ports=443 */
static int port_query(struct request *q, str *ret)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	for (size_t i = 0; i < q->n_query; i++) {
		int64_t port;
		str text = q->query[i].value;
		if (!str_eq(q->query[i].name, STR("ports")))
			continue;
		if (!str_to_i64(text, &port) || port != (int32_t)port)
			return fail_bad_request(q, "strconv.ParseInt: parsing \"" STR_FMT "\": invalid syntax", STR_ARG(text));
		buf_addf(&b, "%s%lld", b.n ? "%2C" : "?port=", (long long)port);
	}
	*ret = arena_str(q->arena, buf_str(&b));
	return 0;
}

int portforward_handle(struct request *q, struct err *err)
{
	struct object *pod;
	struct kubelet_place place;
	struct proxy_target target;
	str query;
	int r = may_create(q, err);
	if (r < 0 || (r = pod_get(q, q->name, &pod, err)) < 0 || (r = port_query(q, &query)) < 0 ||
	    (r = node_of(q, pod->val, &place)) < 0 ||
	    (r = kubelet_http(q->server, KUBELET_VERIFIED, &target.client, err)) < 0)
		return r;
	target.url = arena_printf(q->arena, "https://" STR_FMT "/portForward/" STR_FMT "/" STR_FMT STR_FMT,
				  STR_ARG(place.authority), STR_ARG(q->namespace), STR_ARG(q->name), STR_ARG(query));
	if (proxy_is_tunnel(q) && !place.websockets)
		return proxy_tunnel(q, &target, err);
	return proxy_is_upgrade(q) ? proxy_upgrade(q, &target, err) : upgrade_required(q);
}
