/* Services, endpoints, ingresses and network policies: mostly addresses that are not written as they should be. */
#include "apiserver/warnings_priv.h"

/* ---- Service ---- */

static void warn_headless(struct request *q, struct val spec)
{
	if (val_str(spec, loadBalancerIP).n)
		warnf(q, "spec.loadBalancerIP is ignored for headless services");
	if (val_len(val_get(spec, externalIPs)))
		warnf(q, "spec.externalIPs is ignored for headless services");
	if (!str_eq(val_str(spec, sessionAffinity), STR("None")))
		warnf(q, "spec.SessionAffinity is ignored for headless services");
}

static void warn_ips(struct request *q, const struct field_path *at, struct val list)
{
	size_t i = 0;
	VAL_EACH(ip, list)
		warn_ip(q, FIELD_INDEX(at, i++), val_as_str(*ip));
}

static void warn_cidrs(struct request *q, const struct field_path *at, struct val list)
{
	size_t i = 0;
	VAL_EACH(cidr, list)
		warn_cidr(q, FIELD_INDEX(at, i++), val_as_str(*cidr));
}

static void warn_external_name(struct request *q, struct val spec)
{
	bool external = str_eq(val_str(spec, type), STR("ExternalName"));
	if (external && val_len(val_get(spec, externalIPs)))
		warnf(q, "spec.externalIPs is ignored when spec.type is \"ExternalName\"");
	if (!external && val_str(spec, externalName).n)
		warnf(q, "spec.externalName is ignored when spec.type is not \"ExternalName\"");
}

static void warn_service(struct request *q)
{
	struct val spec = val_get(q->object, spec);
	const struct field_path *at = FIELD(NULL, "spec");
	str type = val_str(spec, type), ip = val_str(spec, clusterIP);
	bool external = str_eq(type, STR("ExternalName")), headless = str_eq(type, STR("ClusterIP")) && str_eq(ip, STR("None"));

	if (warn_has_annotation(val_get(q->object, metadata), STR("service.kubernetes.io/topology-aware-hints")))
		warnf(q, "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use "
			 "service.kubernetes.io/topology-mode instead");
	if (ip.n && !str_eq(ip, STR("None")))
		warn_ips(q, FIELD(at, "clusterIPs"), val_get(spec, clusterIPs));
	if (headless)
		warn_headless(q, spec);
	warn_ips(q, FIELD(at, "externalIPs"), val_get(spec, externalIPs));
	if (val_len(val_get(spec, externalIPs)) && !headless && !external)
		warnf(q, "spec.externalIPs is deprecated and may no longer be implemented in some clusters");
	if (val_str(spec, loadBalancerIP).n)
		warn_ip(q, FIELD(at, "loadBalancerIP"), val_str(spec, loadBalancerIP));
	warn_cidrs(q, FIELD(at, "loadBalancerSourceRanges"), val_get(spec, loadBalancerSourceRanges));
	warn_external_name(q, spec);
	if (str_eq(val_str(spec, trafficDistribution), STR("PreferClose")))
		warnf(q, "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
}

/* Of services and ingresses. */
static void warn_load_balancer(struct request *q)
{
	const struct field_path *at = FIELD(FIELD(FIELD(NULL, "status"), "loadBalancer"), "ingress");
	size_t i = 0;
	VAL_EACH(ingress, val_get(q->object, status, loadBalancer, ingress)) {
		str ip = val_str(*ingress, ip);
		if (ip.n)
			warn_ip(q, FIELD_INDEX(at, i), ip);
		i++;
	}
}

/* ---- Endpoints, EndpointSlice: those of the controllers are known to be good ---- */

static bool is_managed_by(const struct request *q, str label, str manager)
{
	return str_eq(val_as_str(val_find(val_get(q->object, metadata, labels), label)), manager);
}

static void warn_endpoint_addresses(struct request *q, const struct field_path *at, struct val addresses)
{
	size_t i = 0;
	VAL_EACH(a, addresses) {
		warn_ip(q, FIELD(FIELD_INDEX(at, i), "ip"), val_str(*a, ip));
		i++;
	}
}

static void warn_endpoints(struct request *q)
{
	size_t i = 0;
	if (is_managed_by(q, STR("endpoints.kubernetes.io/managed-by"), STR("endpoint-controller")))
		return;
	VAL_EACH(s, val_get(q->object, subsets)) {
		const struct field_path *at = FIELD_INDEX(FIELD(NULL, "subsets"), i++);
		warn_endpoint_addresses(q, FIELD(at, "addresses"), val_get(*s, addresses));
		warn_endpoint_addresses(q, FIELD(at, "notReadyAddresses"), val_get(*s, notReadyAddresses));
	}
}

static void slice_updated(struct request *q)
{
	str label = STR("endpointslice.kubernetes.io/managed-by");
	size_t i = 0;
	if (is_managed_by(q, label, STR("endpointslice-controller.k8s.io")) ||
	    is_managed_by(q, label, STR("endpointslicemirroring-controller.k8s.io")))
		return;
	VAL_EACH(e, val_get(q->object, endpoints))
		warn_ips(q, FIELD(FIELD_INDEX(FIELD(NULL, "endpoints"), i++), "addresses"), val_get(*e, addresses));
}

static void slice_created(struct request *q)
{
	if (str_eq(val_str(q->object, addressType), STR("FQDN")))
		warnf(q, "spec.addressType: FQDN endpoints are deprecated");
	slice_updated(q);
}

/* ---- Ingress, NetworkPolicy ---- */

static void ingress_created(struct request *q)
{
	if (warn_has_annotation(val_get(q->object, metadata), STR("kubernetes.io/ingress.class")) &&
	    !val_has(q->object, spec, ingressClassName))
		warnf(q,
		      "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead");
}

static void warn_rules(struct request *q, const struct field_path *at, const char *field, struct val rules, atom peers)
{
	size_t i = 0;
	VAL_EACH(rule, rules) {
		const struct field_path *here = FIELD_INDEX(FIELD_STR(at, str_of(field)), i++);
		size_t k = 0;
		VAL_EACH(peer, val_member(*rule, peers)) {
			const struct field_path *block = FIELD(FIELD_INDEX(FIELD_STR(here, atom_str(peers)), k++), "ipBlock");
			if (!val_has(*peer, ipBlock))
				continue;
			warn_cidr(q, FIELD(block, "cidr"), val_str(*peer, ipBlock, cidr));
			warn_cidrs(q, FIELD(block, "except"), val_get(*peer, ipBlock, except));
		}
	}
}

static void warn_policy(struct request *q)
{
	warn_rules(q, FIELD(NULL, "spec"), "ingress", val_get(q->object, spec, ingress), A_from);
	warn_rules(q, FIELD(NULL, "spec"), "egress", val_get(q->object, spec, egress), A_to);
}

static const struct warned_kind all[] = {
	{ STR_INIT(""), STR_INIT("Endpoints"), warn_endpoints, warn_endpoints, NULL },
	{ STR_INIT(""), STR_INIT("Service"), warn_service, warn_service, warn_load_balancer },
	{ STR_INIT("discovery.k8s.io"), STR_INIT("EndpointSlice"), slice_created, slice_updated, NULL },
	{ STR_INIT("networking.k8s.io"), STR_INIT("Ingress"), ingress_created, NULL, warn_load_balancer },
	{ STR_INIT("networking.k8s.io"), STR_INIT("NetworkPolicy"), warn_policy, warn_policy, NULL },
};

const struct warned_set warnings_network = { all, ARRAY_LEN(all) };
