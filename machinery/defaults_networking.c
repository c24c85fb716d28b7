/* Defaults of Services and of the networking and discovery groups. */
#include "codec/atoms.h"
#include "machinery/validate_groups.h"

enum { AFFINITY_SECONDS = 10800 };

static struct val default_service_port(struct arena *a, struct val port)
{
	port = default_member(a, port, A_protocol, VAL_LIT("TCP"));
	if (val_is_zero(val_get(port, targetPort)))
		port = val_with(a, port, val_of_int(val_int(port, port)), targetPort);
	return port;
}

static struct val default_affinity(struct arena *a, struct val spec)
{
	str affinity = val_str(spec, sessionAffinity);
	if (str_eq(affinity, STR("None")))
		return val_without(a, spec, sessionAffinityConfig);
	if (str_eq(affinity, STR("ClientIP")) && !val_has(spec, sessionAffinityConfig, clientIP, timeoutSeconds))
		return val_with(a, spec, val_of_int(AFFINITY_SECONDS), sessionAffinityConfig, clientIP, timeoutSeconds);
	return spec;
}

static struct val default_service_spec(struct arena *a, struct val spec)
{
	static const str internal[] = { STR_INIT("ClusterIP"), STR_INIT("NodePort"), STR_INIT("LoadBalancer"), { NULL, 0 } };

	spec = default_affinity(a, default_member(a, spec, A_sessionAffinity, VAL_LIT("None")));
	spec = default_member(a, spec, A_type, VAL_LIT("ClusterIP"));
	spec = default_within(a, spec, A_ports, default_service_port);
	str type = val_str(spec, type);
	bool balances = str_eq(type, STR("LoadBalancer"));
	if (balances || str_eq(type, STR("NodePort")) ||
	    (str_eq(type, STR("ClusterIP")) && val_len(val_get(spec, externalIPs))))
		spec = default_member(a, spec, A_externalTrafficPolicy, VAL_LIT("Cluster"));
	if (str_in(type, internal))
		spec = default_member(a, spec, A_internalTrafficPolicy, VAL_LIT("Cluster"));
	if (balances)
		spec = default_member(a, spec, A_allocateLoadBalancerNodePorts, val_of_bool(true));
	return spec;
}

static struct val default_ingress_point(struct arena *a, struct val point)
{
	return val_str(point, ip).n ? default_member(a, point, A_ipMode, VAL_LIT("VIP")) : point;
}

struct val default_service(struct arena *a, struct val service)
{
	struct val points = val_get(service, status, loadBalancer, ingress);

	service = val_with(a, service, default_service_spec(a, val_get(service, spec)), spec);
	if (val_len(points) && str_eq(val_str(service, spec, type), STR("LoadBalancer")))
		service = val_with(a, service, edit_items(a, points, default_ingress_point), status, loadBalancer, ingress);
	return service;
}

static struct val default_slice_port(struct arena *a, struct val port)
{
	port = default_member(a, port, A_name, VAL_LIT(""));
	return default_member(a, port, A_protocol, VAL_LIT("TCP"));
}

struct val default_endpoint_slice(struct arena *a, struct val slice)
{
	return default_within(a, slice, A_ports, default_slice_port);
}

struct val default_ingress_class(struct arena *a, struct val class)
{
	if (val_has(class, spec, parameters) && !val_has(class, spec, parameters, scope))
		class = val_with(a, class, VAL_LIT("Cluster"), spec, parameters, scope);
	return class;
}

static struct val default_policy_port(struct arena *a, struct val port)
{
	return default_member(a, port, A_protocol, VAL_LIT("TCP"));
}

static struct val default_policy_rule(struct arena *a, struct val rule)
{
	return default_within(a, rule, A_ports, default_policy_port);
}

static struct val default_policy_spec(struct arena *a, struct val spec)
{
	spec = default_within(a, spec, A_ingress, default_policy_rule);
	spec = default_within(a, spec, A_egress, default_policy_rule);
	if (val_len(val_get(spec, policyTypes)))
		return spec;
	struct val types = LIST(a, VAL_LIT("Ingress"));
	if (val_len(val_get(spec, egress)))
		types = val_list_append(a, types, VAL_LIT("Egress"));
	return val_with(a, spec, types, policyTypes);
}

struct val default_network_policy(struct arena *a, struct val policy)
{
	return val_with(a, policy, default_policy_spec(a, val_get(policy, spec)), spec);
}
