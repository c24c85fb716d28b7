/*
 * The Service default/kubernetes: how pods reach the API. Its endpoints are the servers that are alive. On etcd each of them
 * keeps a key under /registry/masterleases/ that goes by itself when it is not renewed, as Kubernetes' servers do, so that ours
 * and theirs can serve one cluster; a server with a file of its own is always the only one.
 */
#include "apiserver/bootstrap_priv.h"
#include "apiserver/cache.h"
#include "apiserver/service_ip.h"
#include "base/fiber.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "machinery/ip.h"

#define LEASES "/registry/masterleases/"

enum { LEASE_TTL_S = 15, LEAVE_MS = 2000, SERVERS_MAX = 1000, VALUE_MAX = 1 << 16 };

/* ---- where this server is ---- */

/* False: nobody else could reach this server there. */
static bool advertised(const struct apiserver *s, char out[IP_TEXT_MAX])
{
	struct ip ip;
	return ip_parse(str_of(s->options.advertise_address), &ip, NULL) && ip_is_reachable(&ip) && ip_format(&ip, out).n;
}

static int port_of(const struct apiserver *s) { return s->port ? s->port : s->options.secure_port; }

/* ---- the Service ---- */

static struct val ready_condition(struct arena *a)
{
	return OBJECT(a, F(lastTransitionTime, bootstrap_now(a, false)),
		      F(message, VAL_LIT("Kubernetes default Service CIDR is ready")), F(status, VAL_LIT("True")),
		      F(type, VAL_LIT("Ready")));
}

static struct val cidrs_of(struct apiserver *s, struct arena *a)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < service_ip_n_ranges(s->allocators); i++) {
		char text[CIDR_TEXT_MAX];
		val_add_item(&b, val_of_str(arena_str(a, cidr_format(service_ip_range(s->allocators, i), text))));
	}
	return val_end_list(&b);
}

static struct val widen(struct arena *a, struct val live, void *arg)
{
	return val_with(a, live, *(struct val *)arg, spec, cidrs);
}

/* A cluster may be given its second family later; other changes of the flag are somebody's mistake. */
static int check_cidrs(const struct inprocess *w, struct arena *a, struct val live, struct err *err)
{
	struct val have = val_get(live, spec, cidrs), want = cidrs_of(w->server, a);
	if (val_equal(have, want))
		return 0;
	if (val_len(have) == 1 && val_len(want) == 2 && val_equal(val_at(have, 0), val_at(want, 0)))
		return inprocess_update(w, STR_NONE, STR("kubernetes"), widen, &want, err);
	log_warn("the default ServiceCIDR does not match --service-cluster-ip-range",
		 KV("flag", w->server->options.service_cluster_ip_range));
	return 0;
}

int service_make_cidr(struct apiserver *s, size_t i, struct err *err)
{
	(void)i;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct inprocess *w = INPROCESS(s, "networking.k8s.io", "servicecidrs");
	struct val live = bootstrap_find(s, &a, w->group, w->resource, STR("kubernetes"));
	struct val meta = OBJECT(&a, F(name, VAL_LIT("kubernetes"))), spec = OBJECT(&a, F(cidrs, cidrs_of(s, &a)));
	int r = val_exists(live) ? check_cidrs(w, &a, live, err) :
				   bootstrap_ensure(w, OBJECT(&a, F(metadata, meta), F(spec, spec)), err);
	if (r < 0 || !kinds_find(&s->kinds, w->group, w->resource))
		return r;
	VAL_EACH(c, val_get(live, status, conditions))
		if (str_eq(val_str(*c, type), STR("Ready")) && !str_eq(val_str(*c, status), STR("Unknown")))
			return 0; /* "False" is another's word */
	const struct inprocess status = { .server = s, .group = w->group, .resource = w->resource, .subresource = STR("status"),
					  .manager = STR("kubernetes-service-cidr-controller") };
	struct val patch = OBJECT(&a, F(metadata, meta), F(status, OBJECT(&a, F(conditions, LIST(&a, ready_condition(&a))))));
	return inprocess_apply(&status, patch, err);
}

int service_make_kubernetes(struct apiserver *s, size_t i, struct err *err)
{
	(void)i;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	if (!port_of(s))
		return 0; /* the kernel chooses it later */
	char text[IP_TEXT_MAX];
	struct ip first = service_ip_first(s->allocators);
	struct val port = OBJECT(&a, F(name, VAL_LIT("https")), F(protocol, VAL_LIT("TCP")), F(port, val_of_int(443)),
				 F(targetPort, val_of_int(port_of(s))));
	struct val labels = val_put(&a, VAL_EMPTY, atom_make(&a, STR("component")), VAL_LIT("apiserver"));
	labels = val_put(&a, labels, atom_make(&a, STR("provider")), VAL_LIT("kubernetes"));
	struct val spec = OBJECT(&a, F(ports, LIST(&a, port)), F(clusterIP, val_of_str(ip_format(&first, text))),
				 F(type, VAL_LIT("ClusterIP")), F(sessionAffinity, VAL_LIT("None")),
				 F(ipFamilyPolicy, VAL_LIT("SingleStack")));
	struct val meta = OBJECT(&a, F(name, VAL_LIT("kubernetes")), F(namespace, VAL_LIT("default")), F(labels, labels));
	return bootstrap_ensure(INPROCESS(s, "", "services"), OBJECT(&a, F(metadata, meta), F(spec, spec)), err);
}

/* ---- who is alive ---- */

static int lease_value(struct arena *a, str address, struct store_value **ret, struct err *err)
{
	struct val subset = OBJECT(a, F(addresses, LIST(a, OBJECT(a, F(ip, val_of_str(address))))));
	struct val lease = OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Endpoints")), F(metadata, VAL_EMPTY_OBJECT),
				  F(subsets, LIST(a, subset)));
	CLEANUP(buf_done) struct buf b = BUF_INIT(VALUE_MAX);
	int r = proto_encode_object(&b, lease, &type_core_v1_Endpoints, err);
	if (r < 0)
		return r;
	*ret = store_value_new(buf_str(&b));
	return 0;
}

static int renew(struct apiserver *s, struct arena *a, str address, struct err *err)
{
	struct store_value *value;
	int64_t revision;
	int r = lease_value(a, address, &value, err);
	if (r < 0)
		return r;
	r = store_put(s->store, arena_join(a, STR(LEASES), address), value, STORE_ANY, LEASE_TTL_S, &revision, NULL, err);
	store_value_unref(value);
	return r < 0 ? r : 0;
}

/* The addresses of all servers, in order, as EndpointAddresses. */
static int alive(struct apiserver *s, struct arena *a, str own, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(a);
	if (!s->options.store.endpoints) {
		*ret = LIST(a, OBJECT(a, F(ip, val_of_str(own))));
		return 0;
	}
	int r = renew(s, a, own, err);
	if (r < 0)
		return r;
	struct store_page page;
	const struct store_range range = { .from = STR(LEASES), .to = store_prefix_end(a, STR(LEASES)), .limit = SERVERS_MAX,
					   .keys_only = true };
	if ((r = store_range(s->store, &range, &page, err)) < 0)
		return r;
	for (size_t i = 0; i < page.n; i++) {
		struct ip ip;
		str text = arena_str(a, str_skip(page.kvs[i].key, sizeof LEASES - 1));
		if (ip_parse(text, &ip, NULL))
			val_add_item(&b, OBJECT(a, F(ip, val_of_str(text))));
	}
	store_page_done(&page);
	*ret = val_end_list(&b);
	return val_len(*ret) ? 0 : err_set(err, ERR_UNAVAILABLE, "no server is listed under " LEASES);
}

/* ---- its endpoints ---- */

struct endpoints {
	struct val addresses, ports;
	bool set_ports;
};

static bool same_addresses(struct val have, struct val want)
{
	if (val_len(have) != val_len(want))
		return false;
	VAL_EACH(w, want) {
		bool found = false;
		VAL_EACH(h, have)
			found |= str_eq(val_str(*h, ip), val_str(*w, ip));
		if (!found)
			return false;
	}
	return true;
}

static struct val change_endpoints(struct arena *a, struct val live, void *arg)
{
	static const str skip_mirror = STR_INIT("endpointslice.kubernetes.io/skip-mirror");
	const struct endpoints *want = arg;
	struct val subsets = val_get(live, subsets), first = val_at(subsets, 0), labels = val_get(live, metadata, labels);
	bool shaped = val_len(subsets) == 1;
	bool ports = shaped && (!want->set_ports || val_equal(val_get(first, ports), want->ports));
	bool skips = str_eq(val_as_str(val_find(labels, skip_mirror)), STR("true"));
	if (skips && ports && same_addresses(val_get(first, addresses), want->addresses))
		return VAL_EMPTY;
	if (!skips)
		labels = val_sorted(a, val_put(a, labels, atom_make(a, skip_mirror), VAL_LIT("true")));
	struct val subset = OBJECT(a, F(addresses, want->addresses), F(ports, ports ? val_get(first, ports) : want->ports));
	return val_put(a, val_with(a, live, labels, metadata, labels), A_subsets, LIST(a, subset));
}

/* The slice that says the same as the Endpoints. */
static struct val slice_of(struct arena *a, struct val endpoints)
{
	struct val subset = val_at(val_get(endpoints, subsets), 0), addresses = val_get(subset, addresses);
	struct val_builder b = val_builder(a);
	struct ip ip;
	bool v6 = val_len(addresses) > 0;
	VAL_EACH(x, addresses)
		v6 &= ip_parse(val_str(*x, ip), &ip, NULL) && !ip_is_v4(&ip);
	VAL_EACH(x, addresses)
		if (ip_parse(val_str(*x, ip), &ip, NULL) && ip_is_v4(&ip) != v6)
			val_add_item(&b, OBJECT(a, F(addresses, LIST(a, val_get(*x, ip))),
						F(conditions, OBJECT(a, F(ready, val_of_bool(true))))));
	struct val labels = val_put(a, VAL_EMPTY, atom_make(a, STR("kubernetes.io/service-name")), VAL_LIT("kubernetes"));
	return OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_LIT("kubernetes")), F(namespace, VAL_LIT("default")),
					    F(labels, labels))),
		      F(addressType, v6 ? VAL_LIT("IPv6") : VAL_LIT("IPv4")), F(endpoints, val_end_list(&b)),
		      F(ports, val_get(subset, ports)));
}

static struct val change_slice(struct arena *a, struct val live, void *arg)
{
	struct val want = *(struct val *)arg;
	if (val_equal(val_get(live, endpoints), val_get(want, endpoints)) &&
	    val_equal(val_get(live, ports), val_get(want, ports)) &&
	    val_equal(val_get(live, metadata, labels), val_get(want, metadata, labels)))
		return VAL_EMPTY;
	live = val_with(a, live, val_get(want, metadata, labels), metadata, labels);
	return val_put(a, val_put(a, live, A_endpoints, val_get(want, endpoints)), A_ports, val_get(want, ports));
}

static int sync_slice(struct apiserver *s, struct arena *a, struct val endpoints, struct err *err)
{
	const struct inprocess *w = INPROCESS(s, "discovery.k8s.io", "endpointslices");
	struct val want = slice_of(a, endpoints), live = bootstrap_find(s, a, w->group, w->resource, STR("default/kubernetes"));
	if (val_exists(live) && !str_eq(val_str(live, addressType), val_str(want, addressType))) {
		int r = inprocess_delete(w, STR("default"), STR("kubernetes"), err);
		if (r < 0 && r != -ERR_NOT_FOUND)
			return r;
		live = VAL_EMPTY;
	}
	if (!val_exists(live))
		return bootstrap_ensure(w, want, err);
	if (!val_exists(change_slice(a, live, &want)))
		return 0;
	return inprocess_update(w, STR("default"), STR("kubernetes"), change_slice, &want, err);
}

int service_sync_endpoints(struct apiserver *s, bool first, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct inprocess *w = INPROCESS(s, "", "endpoints");
	char own[IP_TEXT_MAX];
	if (!port_of(s))
		return 0;
	if (!advertised(s, own)) {
		if (first)
			log_warn("no address is known that others could reach this server at; say --advertise-address");
		return 0;
	}
	struct endpoints want = { .set_ports = first };
	want.ports = LIST(&a, OBJECT(&a, F(name, VAL_LIT("https")), F(port, val_of_int(port_of(s))),
				     F(protocol, VAL_LIT("TCP"))));
	int r = alive(s, &a, str_of(own), &want.addresses, err);
	if (r < 0)
		return r;
	struct val live = bootstrap_find(s, &a, w->group, w->resource, STR("default/kubernetes"));
	struct val changed = val_exists(live) ? change_endpoints(&a, live, &want) : VAL_EMPTY;
	if (!val_exists(live)) {
		struct val meta = OBJECT(&a, F(name, VAL_LIT("kubernetes")), F(namespace, VAL_LIT("default")));
		changed = change_endpoints(&a, OBJECT(&a, F(metadata, meta)), &want);
		r = bootstrap_ensure(w, changed, err);
	} else if (val_exists(changed)) {
		r = inprocess_update(w, STR("default"), STR("kubernetes"), change_endpoints, &want, err);
	}
	return r < 0 ? r : sync_slice(s, &a, val_exists(changed) ? changed : live, err);
}

void service_leave(struct apiserver *s)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char own[IP_TEXT_MAX];
	int64_t revision;
	if (!s->options.store.endpoints || !advertised(s, own))
		return;
	SHIELD_SCOPE();
	DEADLINE_SCOPE(LEAVE_MS);
	(void)store_delete(s->store, arena_join(&a, STR(LEASES), str_of(own)), STORE_ANY, &revision, NULL, NULL);
}
