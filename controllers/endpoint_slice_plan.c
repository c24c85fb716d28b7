#include "controllers/endpoint_slice_plan.h"

#include "codec/atoms.h"
#include "controllers/labels.h"
#include "controllers/owner.h"
#include "controllers/pod_control.h"
#include "controllers/service_pods.h"
#include "controllers/slice_pack.h"
#include "machinery/ip.h"
#include "machinery/names.h"

/* ---- parts of a slice ---- */

static bool is_reserved(str key)
{
	return str_eq(key, STR(SLICE_SERVICE_NAME)) || str_eq(key, STR(SLICE_MANAGED_BY)) || str_eq(key, STR(HEADLESS_LABEL));
}

/* The service's, and our own. */
static struct val slice_labels(struct arena *a, struct val service)
{
	struct val_builder labels = val_builder(a);

	VAL_EACH_MEMBER(m, val_get(service, metadata, labels))
		if (!is_reserved(atom_str(m->key)))
			val_add_member(&labels, m->key, m->val);
	val_add_member(&labels, atom_make(a, STR(SLICE_MANAGED_BY)), VAL_LIT(ENDPOINT_SLICE_MANAGER));
	val_add_member(&labels, atom_make(a, STR(SLICE_SERVICE_NAME)), val_get(service, metadata, name));
	if (service_is_headless(service))
		val_add_member(&labels, atom_make(a, STR(HEADLESS_LABEL)), VAL_LIT(""));
	return val_end_object(&labels);
}

static struct val fresh_slice(struct arena *a, struct val service, const char *address_type)
{
	str name = val_str(service, metadata, name), prefix = arena_join(a, name, STR("-"));

	if (name_rule_subdomain(prefix, true, NULL))
		prefix = name;
	return OBJECT(a, F(metadata, OBJECT(a, F(generateName, VAL_STR(prefix)), F(namespace, val_get(service, metadata, namespace)),
					    F(labels, slice_labels(a, service)),
					    F(ownerReferences, LIST(a, owner_ref(a, service, "v1", "Service"))))),
		      F(addressType, val_of_str(str_of(address_type))));
}

static bool is_owned(struct val slice, struct val service)
{
	VAL_EACH(o, val_get(slice, metadata, ownerReferences))
		if (str_eq(val_str(*o, uid), val_str(service, metadata, uid)) && str_eq(val_str(*o, kind), STR("Service")) &&
		    str_eq(val_str(*o, apiVersion), STR("v1")))
			return true;
	return false;
}

/* ---- hints ---- */

struct dressing {
	struct val labels;
	bool zones, nodes;           /* which hints there shall be */
};

static struct val one_hint(struct arena *a, struct val name)
{
	return val_exists(name) ? LIST(a, OBJECT(a, F(name, name))) : VAL_EMPTY;
}

static struct val with_hints(struct arena *a, struct val endpoint, const struct dressing *d)
{
	struct val zones, nodes;

	if (!d->zones)
		return val_without(a, endpoint, hints);
	if (!val_bool(endpoint, conditions, ready))
		return endpoint;
	zones = one_hint(a, val_get(endpoint, zone));
	nodes = d->nodes ? one_hint(a, val_get(endpoint, nodeName)) : VAL_EMPTY;
	if (!val_exists(zones) && !val_exists(nodes))
		return val_without(a, endpoint, hints);
	return val_with(a, endpoint, OBJECT(a, F(forZones, zones), F(forNodes, nodes)), hints);
}

static struct val dress(struct arena *a, struct val slice, const void *arg)
{
	const struct dressing *d = arg;
	struct val_builder endpoints = val_builder(a);

	VAL_EACH(e, val_get(slice, endpoints))
		val_add_item(&endpoints, with_hints(a, *e, d));
	slice = val_with(a, slice, val_end_list(&endpoints), endpoints);
	return val_with(a, slice, d->labels, metadata, labels);
}

static struct dressing dressing_of(struct arena *a, struct val service)
{
	str d = val_str(service, spec, trafficDistribution);
	bool same_node = str_eq(d, STR("PreferSameNode"));

	return (struct dressing){ .labels = slice_labels(a, service), .nodes = same_node,
				  .zones = same_node || str_eq(d, STR("PreferClose")) || str_eq(d, STR("PreferSameZone")) };
}

/* ---- endpoints ---- */

static struct val pod_addresses(struct arena *a, struct val pod, int family)
{
	struct val_builder list = val_builder(a);
	char text[IP_TEXT_MAX];
	struct ip ip;

	VAL_EACH(p, val_get(pod, status, podIPs))
		if (ip_parse(val_str(*p, ip), &ip, NULL) && ip_is_v4(&ip) == (family == 4))
			val_add_item(&list, VAL_STR(arena_str(a, ip_format(&ip, text))));
	return val_end_list(&list);
}

static struct val pod_endpoint(struct arena *a, struct val service, struct val pod, struct val node, struct val addresses)
{
	bool serving = pod_is_ready(pod), terminating = val_has(pod, metadata, deletionTimestamp);
	bool ready = val_bool(service, spec, publishNotReadyAddresses) || (serving && !terminating);
	str zone = label_of(node, STR("topology.kubernetes.io/zone"));

	return OBJECT(a, F(addresses, addresses),
		      F(conditions, OBJECT(a, F(ready, val_of_bool(ready)), F(serving, val_of_bool(serving)),
					   F(terminating, val_of_bool(terminating)))),
		      F(hostname, pod_has_hostname(pod, service) ? val_get(pod, spec, hostname) : VAL_EMPTY),
		      F(targetRef, OBJECT(a, F(kind, VAL_LIT("Pod")), F(namespace, val_get(pod, metadata, namespace)),
					  F(name, val_get(pod, metadata, name)), F(uid, val_get(pod, metadata, uid)))),
		      F(nodeName, val_str(pod, spec, nodeName).n ? val_get(pod, spec, nodeName) : VAL_EMPTY),
		      F(zone, zone.n ? VAL_STR(zone) : VAL_EMPTY));
}

static struct val pod_ports(struct arena *a, struct val service, struct val pod)
{
	struct val_builder list = val_builder(a);

	VAL_EACH(p, val_get(service, spec, ports)) {
		int64_t number = pod_service_port(pod, *p);
		if (number)
			val_add_item(&list, OBJECT(a, F(name, VAL_STR(val_str(*p, name))), F(protocol, val_get(*p, protocol)),
						   F(port, val_of_int(number)), F(appProtocol, val_get(*p, appProtocol))));
	}
	return val_end_list(&list);
}

static void want_pods(struct slice_pack *pack, const struct endpoint_slice_input *in, int family, struct endpoint_slice_plan *ret)
{
	VAL_EACH(pod, in->pods) {
		if (!pod_has_endpoint(*pod, true))
			continue;
		struct val ports = pod_ports(pack->arena, in->service, *pod), node = in->node(in->arg, val_str(*pod, spec, nodeName));
		struct val addresses = pod_addresses(pack->arena, *pod, family);

		slice_pack_want(pack, ports, VAL_EMPTY);
		if (!val_exists(node) && !val_bool(in->service, spec, publishNotReadyAddresses)) {
			ret->lost_pod = val_str(*pod, metadata, name);
			ret->lost_node = val_str(*pod, spec, nodeName);
		} else if (val_len(addresses)) {
			slice_pack_want(pack, ports, pod_endpoint(pack->arena, in->service, *pod, node, addresses));
		}
	}
}

/* ---- the plan ---- */

static bool has_family(struct val service, const char *family)
{
	struct val families = val_get(service, spec, ipFamilies);
	struct ip ip;

	VAL_EACH(f, families)
		if (str_eq(val_as_str(*f), str_of(family)))
			return true;
	if (val_len(families))
		return false;
	if (!ip_parse(val_str(service, spec, clusterIP), &ip, NULL))
		return true; /* headless, and nobody has said which */
	return ip_is_v4(&ip) == (family[3] == '4');
}

static void add_all(struct val_builder *to, struct val list)
{
	VAL_EACH(s, list)
		val_add_item(to, *s);
}

void endpoint_slice_plan(struct arena *a, const struct endpoint_slice_input *in, struct endpoint_slice_plan *ret)
{
	static const struct { const char *name; int family; } types[] = { { "IPv4", 4 }, { "IPv6", 6 } };
	struct val_builder create = val_builder(a), update = val_builder(a), gone = val_builder(a);
	struct dressing dressing = dressing_of(a, in->service);

	*ret = (struct endpoint_slice_plan){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct slice_pack pack = { .arena = a, .fresh = fresh_slice(a, in->service, types[i].name), .max = in->max, .keep_one = true,
					   .dress = dress, .arg = &dressing, .stamp = true,
					   .trigger = in->trigger.n ? VAL_STR(in->trigger) : VAL_EMPTY };
		bool wanted = has_family(in->service, types[i].name);

		VAL_EACH(s, in->slices) {
			if (!str_eq(val_str(*s, addressType), str_of(types[i].name)))
				continue;
			if (wanted && is_owned(*s, in->service))
				slice_pack_found(&pack, *s);
			else
				val_add_item(&gone, *s);
		}
		if (!wanted)
			continue;
		want_pods(&pack, in, types[i].family, ret);
		slice_pack_finish(&pack);
		if (!val_has(in->service, metadata, deletionTimestamp))
			add_all(&create, pack.create);
		add_all(&update, pack.update);
		add_all(&gone, pack.gone);
	}
	ret->create = val_end_list(&create);
	ret->update = val_end_list(&update);
	ret->gone = val_end_list(&gone);
}
