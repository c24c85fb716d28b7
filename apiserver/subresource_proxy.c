/*
 * pods/proxy, services/proxy and nodes/proxy: whatever a pod, a service's pod or a kubelet serves by HTTP, for everybody who may
 * talk to this server. Bodies go both ways as they come. Links are not looked at, but redirects come back through the proxy.
 */
#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/kubelet_client.h"
#include "apiserver/meta.h"
#include "apiserver/pod.h"
#include "apiserver/relay.h"
#include "apiserver/stream_proxy.h"
#include "apiserver/subresource.h"
#include "base/fiber_io.h"
#include "base/mem.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "machinery/ip.h"
#include "net/http1.h"
#include "net/url.h"

enum { COPY_BYTES = 16 << 10 };

/* "name", "name:port" or "scheme:name:port". */
struct proxy_name {
	str scheme, name, port;
};

static bool split_name(str id, struct proxy_name *ret)
{
	str first, second, third, rest;
	*ret = (struct proxy_name){ .name = id };
	if (str_cut(id, ':', &first, &rest)) {
		bool three = str_cut(rest, ':', &second, &third);
		*ret = three ? (struct proxy_name){ first, second, third } : (struct proxy_name){ .name = first, .port = rest };
		if (str_chr(third, ':') >= 0)
			return false;
	}
	return ret->name.n && (!ret->scheme.n || str_eq(ret->scheme, STR("http")) || str_eq(ret->scheme, STR("https")));
}

static int bad_name(struct request *q, const char *what)
{
	return fail_bad_request(q, "invalid %s request \"" STR_FMT "\"", what, STR_ARG(q->name));
}

/* Nobody may use this server to reach what only it can reach. */
static bool is_allowed(str address)
{
	struct ip ip;
	return ip_parse(address, &ip, NULL) && ip_is_reachable(&ip);
}

/* Names of ports are not looked up; and nothing but a number may stand where a URL has its port. */
static bool is_port(str port)
{
	int64_t n;
	return str_to_i64(port, &n) && n > 0 && n < 65536;
}

static int unavailable(struct request *q, str text)
{
	return request_fail(q, ERR_UNAVAILABLE, VAL_EMPTY, STR_FMT, STR_ARG(text));
}

static int unknown_port(struct request *q, str port)
{
	return unavailable(q, arena_printf(q->arena,
					   "error trying to reach service: dial tcp: lookup tcp/" STR_FMT ": unknown port",
					   STR_ARG(port)));
}

static int not_allowed(struct request *q) { return fail_bad_request(q, "address not allowed"); }

static str base_url(struct request *q, str scheme, str host, str port)
{
	str authority = kubelet_authority(q->arena, host, port);
	return arena_printf(q->arena, STR_FMT "://" STR_FMT, STR_ARG(scheme.n ? scheme : STR("http")), STR_ARG(authority));
}

/* ---- whom to ask: *ret_base is scheme://host:port ---- */

static int locate_pod(struct request *q, str *ret_base, enum kubelet_trust *ret_trust, struct err *err)
{
	struct proxy_name id;
	struct object *pod;
	if (!split_name(q->name, &id))
		return bad_name(q, "pod");
	int r = pod_get(q, id.name, &pod, err);
	if (r < 0)
		return r;
	str address = val_str(val_at(val_get(pod->val, status, podIPs), 0), ip);
	address = address.n ? address : val_str(pod->val, status, podIP);
	struct val containers = val_get(pod->val, spec, containers);
	for (uint32_t i = 0; !id.port.n && i < val_len(containers); i++) {
		struct val port = val_at(val_get(containers.items[i], ports), 0);
		if (val_exists(port))
			id.port = arena_printf(q->arena, "%lld", (long long)val_int(port, containerPort));
	}
	if (!is_allowed(address))
		return not_allowed(q);
	if (id.port.n && !is_port(id.port))
		return unknown_port(q, id.port);
	*ret_base = base_url(q, id.scheme, address, id.port);
	*ret_trust = KUBELET_OTHERS;
	return 0;
}

/* An endpoint is only asked when it is a pod of this namespace. */
static bool is_pod_address(struct request *q, struct val address)
{
	struct kind *pods = kinds_find(&q->server->kinds, STR_NONE, STR("pods"));
	if (!str_eq(val_str(address, targetRef, namespace), q->namespace))
		return false;
	struct object *pod = cache_get(pods, meta_key(q->arena, pods, q->namespace, val_str(address, targetRef, name)));
	VAL_EACH(ip, val_get(pod ? pod->val : VAL_EMPTY, status, podIPs))
		if (str_eq(val_str(*ip, ip), val_str(address, ip)))
			return true;
	return false;
}

/* One of the subset's addresses, from a random one on. */
static bool choose_address(struct request *q, struct val subset, str port_name, str *ret_host, str *ret_port)
{
	struct val addresses = val_get(subset, addresses);
	uint32_t n = val_len(addresses);
	VAL_EACH(port, val_get(subset, ports)) {
		if (!str_eq(val_str(*port, name), port_name))
			continue;
		uint32_t seed = n ? (uint32_t)random_below(n) : 0;
		for (uint32_t i = 0; i < n; i++) {
			struct val address = addresses.items[(seed + i) % n];
			if (!is_pod_address(q, address))
				continue;
			*ret_host = arena_str(q->arena, val_str(address, ip));
			*ret_port = arena_printf(q->arena, "%lld", (long long)val_int(*port, port));
			return true;
		}
	}
	return false;
}

/* The name of the service's port that has this number. */
static int port_name(struct request *q, const struct proxy_name *id, int64_t number, str *ret)
{
	struct kind *services = kinds_find(&q->server->kinds, STR_NONE, STR("services"));
	struct object *service = cache_get(services, meta_key(q->arena, services, q->namespace, id->name));
	if (!service)
		return fail_not_found(q, STR_NONE, STR("services"), id->name);
	VAL_EACH(port, val_get(service->val, spec, ports)) {
		if (val_int(*port, port) != number)
			continue;
		*ret = val_str(*port, name);
		return 0;
	}
	return unavailable(q, arena_printf(q->arena, "no service port %lld found for service \"" STR_FMT "\"",
					   (long long)number, STR_ARG(id->name)));
}

static int locate_service(struct request *q, str *ret_base, enum kubelet_trust *ret_trust, struct err *err)
{
	struct proxy_name id;
	int64_t number;
	if (!split_name(q->name, &id))
		return bad_name(q, "service");
	int r = cache_wait_current(q->server->cache, err);
	if (r == 0 && str_to_i64(id.port, &number))
		r = port_name(q, &id, number, &id.port);
	if (r < 0)
		return r;
	struct kind *kind = kinds_find(&q->server->kinds, STR_NONE, STR("endpoints"));
	struct object *endpoints = cache_get(kind, meta_key(q->arena, kind, q->namespace, id.name));
	if (!endpoints)
		return fail_not_found(q, STR_NONE, STR("services"), id.name);
	struct val subsets = val_get(endpoints->val, subsets);
	uint32_t n = val_len(subsets), seed = n ? (uint32_t)random_below(n) : 0;
	str host, port;
	for (uint32_t i = 0; i < n; i++) {
		if (!choose_address(q, subsets.items[(seed + i) % n], id.port, &host, &port))
			continue;
		*ret_base = base_url(q, id.scheme, host, port);
		*ret_trust = KUBELET_OTHERS;
		return 0;
	}
	return unavailable(q, arena_printf(q->arena, "no endpoints available for service \"" STR_FMT "\"",
					   STR_ARG(n ? q->name : id.name)));
}

/* Every address that the name has must be one that others can reach, too. */
static int check_host(struct request *q, str host)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	struct err why = ERR_INIT;
	str name = arena_str(q->arena, host);
	int r = fiber_getaddrinfo(name.p, NULL, &hints, &list, &why);
	if (r < 0)
		return r == -ERR_CANCELED ? r : fail_bad_request(q, STR_FMT, STR_ARG(err_str(&why)));
	bool allowed = list;
	for (struct addrinfo *a = list; a && allowed; a = a->ai_next) {
		char text[NI_MAXHOST];
		allowed = getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) == 0;
		allowed = allowed && is_allowed(str_of(text));
	}
	if (list)
		freeaddrinfo(list);
	return allowed ? 0 : not_allowed(q);
}

static int locate_node(struct request *q, str *ret_base, enum kubelet_trust *ret_trust, struct err *err)
{
	struct proxy_name id;
	struct kubelet_place place;
	if (!split_name(q->name, &id))
		return bad_name(q, "node");
	int r = cache_wait_current(q->server->cache, err);
	if (r < 0 || (r = kubelet_find(q, id.name, &place)) < 0 || (r = check_host(q, place.host)) < 0)
		return r;
	str port = arena_printf(q->arena, "%u", place.port);
	bool kubelet = !id.port.n || str_eq(id.port, port);
	if (!kubelet && !is_port(id.port))
		return unknown_port(q, id.port);
	*ret_base = kubelet ? base_url(q, STR("https"), place.host, port) : base_url(q, id.scheme, place.host, id.port);
	*ret_trust = kubelet ? KUBELET_VERIFIED : KUBELET_OTHERS;
	return 0;
}

/* ---- passing on ---- */

/* The path up to and with "/proxy", as it was sent. */
static str prefix_of(const struct request *q)
{
	return str_head(q->http->path, q->http->path.n - q->rest.n);
}

/* A redirect to the backend's own paths comes back through the proxy. */
static str rewritten(struct request *q, str base, str location)
{
	str prefix = prefix_of(q), tail = location;
	struct url url;
	if (url_parse(q->arena, location, &url, NULL) == 0 && url.authority.n) {
		str backend = str_skip(base, (size_t)str_find(base, STR("://")) + 3);
		if (!str_eq(url.authority, backend) && !str_eq(url.authority, q->http->authority))
			return location;
		tail = str_skip(location, (size_t)(url.authority.p + url.authority.n - location.p));
		if (!tail.n || tail.p[0] != '/')
			tail = arena_join(q->arena, STR("/"), tail);
	} else if (!location.n || location.p[0] != '/' || str_starts(location, STR("//"))) {
		return location; /* relative to where it came from, or another host */
	}
	return str_starts(tail, prefix) ? tail : arena_join(q->arena, prefix, tail);
}

static bool is_cors(str name) { return str_starts(name, STR("access-control-")); }

static void pass_back(struct request *q, str base, struct http_call *call, const struct http1_head *head)
{
	size_t all, n = 0;
	struct http_header *headers = proxy_response_headers(q, head, 1, &all);
	for (size_t i = 0; i < all; i++) {
		if (is_cors(headers[i].name))
			continue;
		headers[n] = headers[i];
		if (str_eq(headers[n].name, STR("location")))
			headers[n].value = rewritten(q, base, headers[n].value);
		n++;
	}
	if (!http_header_find(headers, n, STR("cache-control")).n)
		headers[n++] = (struct http_header){ STR("cache-control"), STR("no-cache, private") };
	answer_sent(q, head->status);
	if (str_eq(q->method, STR("HEAD")))
		http_answer(q->http, head->status, headers, n, STR_NONE);
	else
		relay_body(q->http, head->status, headers, n, call, head->content_length);
}

struct upload {
	struct http_exchange *from;
	struct http_call *to;
};

/* The client's body. What goes wrong with it shows in the backend's answer, or in that there is none. */
static int upload(void *arg)
{
	struct upload *u = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(COPY_BYTES);
	ssize_t n;
	while ((n = http_read(u->from, room, COPY_BYTES, NULL)) > 0)
		if (http_call_write(u->to, str_span(room, (size_t)n), NULL) < 0)
			return 0;
	if (n == 0)
		(void)http_call_write_end(u->to, NULL);
	else
		http_call_abort(u->to);
	return 0;
}

static int unreachable(struct request *q, const struct err *why)
{
	return unavailable(q, arena_join(q->arena, STR("error trying to reach service: "), proxy_reason(why)));
}

static int pass_on(struct request *q, const struct proxy_target *target, str base)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	struct http_exchange *x = q->http;
	struct upload u = { .from = x }; /* before the group, whose fiber uses it to its last moment */
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	const struct http1_head *head;
	struct err why = ERR_INIT;
	size_t n;
	bool body = x->content_length != 0;
	struct http_header *headers = proxy_request_headers(q, false, 1, &n);
	headers[n++] = (struct http_header){ STR("x-forwarded-uri"), x->path };
	struct http_request req = { .method = q->method, .url = target->url, .headers = headers, .n_headers = n,
				    .streamed = body,
				    .content_length = x->content_length };
	int r = http_call_open(target->client, &req, &call, &why);
	u.to = call;
	if (r == 0 && body)
		r = fiber_group_spawn(&group, upload, &u, &why, "proxy upload");
	if (r == 0)
		r = http_call_head(call, &head, &why);
	if (r < 0)
		return r == -ERR_CANCELED ? r : unreachable(q, &why);
	pass_back(q, base, call, head);
	return 0;
}

static int redirect_to_slash(struct request *q)
{
	str query = q->http->query;
	struct http_header location = { STR("location"), arena_printf(q->arena, STR_FMT "/%s" STR_FMT, STR_ARG(q->http->path),
								      query.n ? "?" : "", STR_ARG(query)) };
	answer_sent(q, 301);
	http_answer(q->http, 301, &location, 1, STR_NONE);
	return 0;
}

int proxy_handle(struct request *q, struct err *err)
{
	str base = STR_NONE;
	enum kubelet_trust trust = KUBELET_VERIFIED;
	struct proxy_target target;
	int r;
	if (str_eq(q->resource, STR("pods")))
		r = locate_pod(q, &base, &trust, err);
	else if (str_eq(q->resource, STR("services")))
		r = locate_service(q, &base, &trust, err);
	else
		r = locate_node(q, &base, &trust, err);
	if (r < 0 || (r = kubelet_http(q->server, trust, &target.client, err)) < 0)
		return r;
	str query = q->http->query, path = q->rest.n ? q->rest : STR("/");
	target.url = arena_printf(q->arena, STR_FMT STR_FMT "%s" STR_FMT, STR_ARG(base), STR_ARG(path), query.n ? "?" : "",
				  STR_ARG(query));
	if (proxy_is_upgrade(q))
		return proxy_upgrade(q, &target, err);
	if (!q->rest.n && (str_eq(q->method, STR("GET")) || str_eq(q->method, STR("HEAD"))))
		return redirect_to_slash(q);
	return pass_on(q, &target, base);
}
