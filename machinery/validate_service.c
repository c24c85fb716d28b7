/*
 * Services. What the API server fills in on the way (cluster IPs, node ports, the port of health checks) is there before
 * these rules are asked, so they do not require it.
 */
#include "codec/atoms.h"
#include "machinery/ip.h"
#include "machinery/validate_groups.h"

enum { AFFINITY_SECONDS_MAX = 86400 };

static bool is_type(struct val service, const char *type) { return str_eq(val_str(service, spec, type), str_of(type)); }

static bool is_headless(struct val service)
{
	struct val ips = val_get(service, spec, clusterIPs);
	return val_len(ips) == 1 && str_eq(val_as_str(val_at(ips, 0)), STR("None"));
}

static bool is_external(struct val service)
{
	return is_type(service, "LoadBalancer") || is_type(service, "NodePort") ||
	       (is_type(service, "ClusterIP") && val_len(val_get(service, spec, externalIPs)) > 0);
}

static bool has_health_check(struct val service)
{
	return is_type(service, "LoadBalancer") && str_eq(val_str(service, spec, externalTrafficPolicy), STR("Local"));
}

/* ---- addresses of the cluster ---- */

static void check_families(struct field_errors *e, const struct field_path *at, struct val families)
{
	static const str supported[] = { STR_INIT("IPv4"), STR_INIT("IPv6"), { NULL, 0 } };
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;

	VAL_EACH(family, families) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		check_one_of(e, item, val_as_str(*family), supported);
		if (!set_add(&seen, val_as_str(*family)))
			field_duplicate(e, item, *family);
	}
}

/* False when something is wrong that would make further complaints misleading. */
static bool check_cluster_ip_list(struct field_errors *e, const struct field_path *at, struct val ips, struct val old)
{
	bool good = true;
	size_t i = 0;

	VAL_EACH(ip, ips) {
		size_t before = e->n;
		if (i == 0 && str_eq(val_as_str(*ip), STR("None"))) {
			if (val_len(ips) > 1)
				field_invalid(e, at, ips, "'None' must be the first and only value");
		} else {
			check_legacy_ip(e, FIELD_INDEX(at, i), val_as_str(*ip), old);
		}
		good &= e->n == before;
		i++;
	}
	if (val_len(ips) > 2)
		field_invalid(e, at, ips, "may only hold up to 2 values");
	return good;
}

static bool is_v6(str text)
{
	struct ip ip;
	return ip_parse(text, &ip, NULL) && !ip_is_v4(&ip);
}

static void check_ips_and_families(struct field_errors *e, const struct field_path *at, struct val ips, struct val families)
{
	bool v4 = false, v6 = false;

	VAL_EACH(ip, ips) {
		v6 |= is_v6(val_as_str(*ip));
		v4 |= !is_v6(val_as_str(*ip));
	}
	if (val_len(ips) > 1 && (!v4 || !v6))
		field_invalid(e, at, ips, "may specify no more than one IP for each IP family");
	for (size_t i = 0; i < val_len(ips) && i < val_len(families); i++) {
		str ip = val_as_str(val_at(ips, i)), family = val_as_str(val_at(families, i));
		if (str_eq(ip, STR("None")))
			continue;
		if (str_eq(family, STR("IPv4")) && is_v6(ip))
			field_invalid(e, FIELD_INDEX(at, i), VAL_STR(ip),
				      "expected an IPv4 value as indicated by `ipFamilies[%zu]`", i);
		if (str_eq(family, STR("IPv6")) && !is_v6(ip))
			field_invalid(e, FIELD_INDEX(at, i), VAL_STR(ip),
				      "expected an IPv6 value as indicated by `ipFamilies[%zu]`", i);
	}
}

static void check_cluster_ips(struct field_errors *e, const struct field_path *at, struct val service, struct val old)
{
	static const str policies[] = { STR_INIT("PreferDualStack"), STR_INIT("RequireDualStack"),
					STR_INIT("SingleStack"), { NULL, 0 } };
	struct val spec = val_get(service, spec), ips = val_get(spec, clusterIPs), families = val_get(spec, ipFamilies);
	const struct field_path *at_ips = FIELD(at, "clusterIPs");
	str ip = val_str(spec, clusterIP);

	if (is_type(service, "ExternalName"))
		return;
	if (ip.n && val_len(ips) == 0)
		field_missing(e, at_ips);
	else if (ip.n && !str_eq(val_as_str(val_at(ips, 0)), ip))
		field_invalid(e, at_ips, ips, "first value must match `clusterIP`");
	else if (ip.n == 0 && val_len(ips))
		field_invalid(e, at_ips, ips, "must be empty when `clusterIP` is not specified");
	check_families(e, FIELD(at, "ipFamilies"), families);
	if (val_has(spec, ipFamilyPolicy))
		check_one_of(e, FIELD(at, "ipFamilyPolicy"), val_str(spec, ipFamilyPolicy), policies);
	if (check_cluster_ip_list(e, at_ips, ips, val_get(old, spec, clusterIPs)))
		check_ips_and_families(e, at_ips, ips, is_headless(service) ? VAL_EMPTY : families);
}

void validate_service_addresses(struct val service, struct val old, struct field_errors *errors)
{
	check_cluster_ips(errors, FIELD(NULL, "spec"), service, old);
}

/* ---- ports ---- */

static void check_port(struct field_errors *e, const struct field_path *at, struct val port, bool named, struct map *names)
{
	str name = val_str(port, name);

	if (named && name.n == 0) {
		field_missing(e, FIELD(at, "name"));
	} else if (name.n) {
		check_name(e, FIELD(at, "name"), name, name_check_dns1123_label);
		if (!set_add(names, name))
			field_duplicate(e, FIELD(at, "name"), VAL_STR(name));
	}
	check_port_number(e, FIELD(at, "port"), val_int(port, port));
	check_protocol(e, FIELD(at, "protocol"), val_str(port, protocol));
	check_port_or_name(e, FIELD(at, "targetPort"), val_get(port, targetPort));
	if (val_has(port, appProtocol))
		check_label_key(e, FIELD(at, "appProtocol"), val_str(port, appProtocol));
}

static void check_ports(struct field_errors *e, const struct field_path *at, struct val ports)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	size_t i = 0;
	VAL_EACH(port, ports)
		check_port(e, FIELD_INDEX(at, i++), *port, val_len(ports) > 1, &names);
}

static str port_key(struct arena *a, struct val port, int64_t number)
{
	return arena_printf(a, STR_FMT "/%lld", STR_ARG(val_str(port, protocol)), (long long)number);
}

static void check_unique_ports(struct field_errors *e, const struct field_path *at, struct val ports)
{
	CLEANUP(map_done) struct map node_ports = MAP_INIT, numbers = MAP_INIT;
	size_t i = 0;

	VAL_EACH(port, ports) {
		int64_t node_port = val_int(*port, nodePort);
		if (node_port && !set_add(&node_ports, port_key(e->arena, *port, node_port)))
			field_duplicate(e, FIELD(FIELD_INDEX(at, i), "nodePort"), val_of_int(node_port));
		i++;
	}
	i = 0;
	VAL_EACH(port, ports) {
		if (!set_add(&numbers, port_key(e->arena, *port, val_int(*port, port)))) {
			struct val shown = OBJECT(e->arena, F(protocol, val_get(*port, protocol)),
						  F(port, val_get(*port, port)));
			field_duplicate(e, FIELD_INDEX(at, i), internal_form(e->arena, TYPE(core_v1, ServicePort), shown));
		}
		i++;
	}
}

/* ---- load balancers ---- */

static struct val trimmed(struct arena *a, struct val texts)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(text, texts)
		val_add_item(&b, VAL_STR(str_trim(val_as_str(*text))));
	return val_end_list(&b);
}

static void check_ranges_annotation(struct field_errors *e, struct val service, struct val old)
{
	static const str key = STR_INIT("service.beta.kubernetes.io/load-balancer-source-ranges");
	const struct field_path *at = FIELD_KEY(FIELD(FIELD(NULL, "metadata"), "annotations"), key);
	struct val value = val_find(val_get(service, metadata, annotations), key);
	str rest = str_trim(val_as_str(value)), block;

	if (!val_exists(value))
		return;
	if (!is_type(service, "LoadBalancer"))
		field_forbidden(e, at, "may only be used when `type` is 'LoadBalancer'");
	if (val_exists(old) && str_eq(val_as_str(val_find(val_get(old, metadata, annotations), key)), val_as_str(value)))
		return;
	for (bool more = rest.n > 0; more;) {
		more = str_cut(rest, ',', &block, &rest);
		check_legacy_cidr(e, at, str_trim(block), VAL_EMPTY);
	}
}

static void check_source_ranges(struct field_errors *e, struct val service, struct val old)
{
	const struct field_path *at = FIELD(FIELD(NULL, "spec"), "LoadBalancerSourceRanges");
	struct val ranges = val_get(service, spec, loadBalancerSourceRanges);
	struct val before = trimmed(e->arena, val_get(old, spec, loadBalancerSourceRanges));
	size_t i = 0;

	if (val_len(ranges) == 0) {
		check_ranges_annotation(e, service, old);
		return;
	}
	if (!is_type(service, "LoadBalancer"))
		field_forbidden(e, at, "may only be used when `type` is 'LoadBalancer'");
	VAL_EACH(range, ranges)
		check_legacy_cidr(e, FIELD_INDEX(at, i++), str_trim(val_as_str(*range)), before);
}

static void check_load_balancer_class(struct field_errors *e, struct val service, struct val old)
{
	const struct field_path *at = FIELD(FIELD(NULL, "spec"), "loadBalancerClass");
	struct val class = val_get(service, spec, loadBalancerClass);
	bool balances = is_type(service, "LoadBalancer");

	if (balances && is_type(old, "LoadBalancer") && !val_equal(class, val_get(old, spec, loadBalancerClass)))
		field_invalid(e, at, class, "may not change once set");
	if (balances && val_exists(class))
		check_label_key(e, at, val_as_str(class));
	else if (val_exists(class))
		field_forbidden(e, at, "may only be used when `type` is 'LoadBalancer'");
}

static void check_allocation(struct field_errors *e, struct val service)
{
	bool balances = is_type(service, "LoadBalancer"), given = val_has(service, spec, allocateLoadBalancerNodePorts);
	if (given && !balances)
		field_forbidden(e, FIELD(FIELD(NULL, "spec"), "allocateLoadBalancerNodePorts"),
				"may only be used when `type` is 'LoadBalancer'");
	if (!given && balances)
		field_missing(e, FIELD(NULL, "allocateLoadBalancerNodePorts"));
}

/* ---- traffic ---- */

static void check_affinity(struct field_errors *e, const struct field_path *at, struct val spec)
{
	static const str types[] = { STR_INIT("ClientIP"), STR_INIT("None"), { NULL, 0 } };
	const struct field_path *at_config = FIELD(at, "sessionAffinityConfig"), *at_client = FIELD(at_config, "clientIP");
	struct val config = val_get(spec, sessionAffinityConfig), timeout = val_get(config, clientIP, timeoutSeconds);
	str type = val_str(spec, sessionAffinity);

	check_required_one_of(e, FIELD(at, "sessionAffinity"), type, types);
	if (str_eq(type, STR("None")) && val_exists(config))
		field_forbidden(e, at_config, "must not be set when session affinity is None");
	if (!str_eq(type, STR("ClientIP")))
		return;
	if (!val_exists(config))
		field_required(e, at_config, "when session affinity type is ClientIP");
	else if (!val_has(config, clientIP))
		field_required(e, at_client, "when session affinity type is ClientIP");
	else if (!val_exists(timeout))
		field_required(e, FIELD(at_client, "timeoutSeconds"), "when session affinity type is ClientIP");
	else if (val_as_int(timeout) <= 0 || val_as_int(timeout) > AFFINITY_SECONDS_MAX)
		field_invalid(e, FIELD(at_client, "timeoutSeconds"), timeout, "must be greater than 0 and less than %d",
			      AFFINITY_SECONDS_MAX);
}

static void check_traffic(struct field_errors *e, const struct field_path *at, struct val service)
{
	static const str policies[] = { STR_INIT("Cluster"), STR_INIT("Local"), { NULL, 0 } };
	static const str distributions[] = { STR_INIT("PreferClose"), STR_INIT("PreferSameZone"),
					     STR_INIT("PreferSameNode"), { NULL, 0 } };
	struct val spec = val_get(service, spec), internal = val_get(spec, internalTrafficPolicy);
	str external = val_str(spec, externalTrafficPolicy);
	int64_t port = val_int(spec, healthCheckNodePort);

	if (is_external(service))
		check_required_one_of(e, FIELD(at, "externalTrafficPolicy"), external, policies);
	else if (external.n)
		field_invalid(e, FIELD(at, "externalTrafficPolicy"), VAL_STR(external),
			      "may only be set for externally-accessible services");
	if (port && has_health_check(service))
		check_port_number(e, FIELD(at, "healthCheckNodePort"), port);
	else if (port)
		field_invalid(e, FIELD(at, "healthCheckNodePort"), val_of_int(port),
			      "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
	if (val_exists(internal))
		check_one_of(e, FIELD(at, "internalTrafficPolicy"), val_as_str(internal), policies);
	else if (is_type(service, "ClusterIP") || is_type(service, "NodePort") || is_type(service, "LoadBalancer"))
		field_missing(e, FIELD(at, "internalTrafficPolicy"));
	if (val_has(spec, trafficDistribution))
		check_one_of(e, FIELD(at, "trafficDistribution"), val_str(spec, trafficDistribution), distributions);
}

/* ---- Service ---- */

static void check_topology_annotations(struct field_errors *e, struct val service)
{
	static const str mode = STR_INIT("service.kubernetes.io/topology-mode");
	static const str hints = STR_INIT("service.kubernetes.io/topology-aware-hints");
	struct val annotations = val_get(service, metadata, annotations);
	struct val now = val_find(annotations, mode), before = val_find(annotations, hints);

	if (val_exists(now) && val_exists(before) && !val_equal(now, before))
		field_invalid(e, FIELD_KEY(FIELD(FIELD(NULL, "metadata"), "annotations"), mode), now,
			      "must match annotations[" STR_FMT "] when both are specified", STR_ARG(hints));
}

static void check_external_name(struct field_errors *e, const struct field_path *at, struct val spec)
{
	static const char text[] = "may not be set for ExternalName services";
	str name = val_str(spec, externalName);

	if (val_len(val_get(spec, clusterIPs)))
		field_forbidden(e, FIELD(at, "clusterIPs"), text);
	if (val_len(val_get(spec, ipFamilies)))
		field_forbidden(e, FIELD(at, "ipFamilies"), text);
	if (val_has(spec, ipFamilyPolicy))
		field_forbidden(e, FIELD(at, "ipFamilyPolicy"), text);
	if (str_ends(name, STR(".")))
		name.n--;
	check_given_name(e, FIELD(at, "externalName"), name, name_check_dns1123_subdomain);
}

static void check_type(struct field_errors *e, const struct field_path *at, struct val service)
{
	struct val spec = val_get(service, spec);
	str type = val_str(spec, type);

	if (val_len(val_get(spec, ports)) == 0 && !is_headless(service) && !is_type(service, "ExternalName"))
		field_missing(e, FIELD(at, "ports"));
	if (is_headless(service) && (is_type(service, "LoadBalancer") || is_type(service, "NodePort")))
		field_invalid(e, FIELD_INDEX(FIELD(at, "clusterIPs"), 0), VAL_LIT("None"),
			      "may not be set to 'None' for " STR_FMT " services", STR_ARG(type));
	if (is_type(service, "ExternalName"))
		check_external_name(e, at, spec);
}

static void check_external_ips(struct field_errors *e, const struct field_path *at, struct val ips, struct val old)
{
	size_t i = 0;
	VAL_EACH(ip, ips) {
		size_t before = e->n;
		check_legacy_ip(e, FIELD_INDEX(at, i), val_as_str(*ip), old);
		if (e->n == before)
			check_endpoint_ip(e, FIELD_INDEX(at, i), val_as_str(*ip));
		i++;
	}
}

/* old: the service before an update, else VAL_NONE; what it had stays allowed. */
static void check_service_spec(struct field_errors *e, struct val service, struct val old)
{
	static const str types[] = { STR_INIT("ClusterIP"), STR_INIT("ExternalName"), STR_INIT("LoadBalancer"),
				     STR_INIT("NodePort"), { NULL, 0 } };
	const struct field_path *at = FIELD(NULL, "spec"), *at_ports = FIELD(at, "ports");
	struct val spec = val_get(service, spec), ports = val_get(spec, ports);
	size_t i = 0;

	check_topology_annotations(e, service);
	check_type(e, at, service);
	check_ports(e, at_ports, ports);
	check_labels(e, FIELD(at, "selector"), val_get(spec, selector));
	check_affinity(e, at, spec);
	check_cluster_ips(e, at, service, old);
	check_external_ips(e, FIELD(at, "externalIPs"), val_get(spec, externalIPs), val_get(old, spec, externalIPs));
	check_required_one_of(e, FIELD(at, "type"), val_str(spec, type), types);
	if (is_type(service, "ClusterIP"))
		VAL_EACH(port, ports) {
			if (val_int(*port, nodePort))
				field_forbidden(e, FIELD(FIELD_INDEX(at_ports, i), "nodePort"),
						"may not be used when `type` is 'ClusterIP'");
			i++;
		}
	check_unique_ports(e, at_ports, ports);
	check_source_ranges(e, service, old);
	check_allocation(e, service);
	check_load_balancer_class(e, service, VAL_EMPTY);
	check_traffic(e, at, service);
}

void check_service(struct field_errors *e, struct val service)
{
	check_meta(e, service, true, name_rule_label);
	check_service_spec(e, service, VAL_EMPTY);
}

/* ---- changes: a second address or family may come and go, the first stays ---- */

static void check_release(struct field_errors *e, struct val service, const char *what)
{
	struct val policy = val_get(service, spec, ipFamilyPolicy);
	if (!str_eq(val_as_str(policy), STR("SingleStack")))
		field_invalid(e, FIELD(FIELD(NULL, "spec"), "ipFamilyPolicy"), policy,
			      "must be set to 'SingleStack' when releasing the secondary %s", what);
}

static void check_ips_change(struct field_errors *e, struct val service, struct val now, struct val before)
{
	const struct field_path *at = FIELD(FIELD(NULL, "spec"), "clusterIPs");
	bool same_first = val_equal(val_at(now, 0), val_at(before, 0));

	if (val_len(now) == val_len(before)) {
		for (size_t i = 0; i < val_len(now); i++)
			if (!val_equal(val_at(now, i), val_at(before, i)))
				field_invalid(e, FIELD_INDEX(at, i), now, "may not change once set");
		return;
	}
	if (val_len(now) == 0)
		field_invalid(e, FIELD_INDEX(at, 0), now, "primary clusterIP can not be unset");
	else if (val_len(before) && !same_first)
		field_invalid(e, FIELD_INDEX(at, 0), now, "may not change once set");
	if (val_len(now) < val_len(before) && val_len(now) == 1)
		check_release(e, service, "clusterIP");
}

static void check_families_change(struct field_errors *e, struct val service, struct val now, struct val before)
{
	const struct field_path *at = FIELD_INDEX(FIELD(FIELD(NULL, "spec"), "ipFamilies"), 0);
	struct val ips = val_get(service, spec, clusterIPs);

	if (val_len(now) == val_len(before)) {
		for (size_t i = 0; i < val_len(now); i++)
			if (!val_equal(val_at(now, i), val_at(before, i)))
				field_invalid(e, at, now, "may not change once set");
		return;
	}
	if (val_len(now) < val_len(before) && val_len(ips) == 0)
		field_invalid(e, at, now, "primary ipFamily can not be unset");
	if (val_len(now) && val_len(before) && !val_equal(val_at(now, 0), val_at(before, 0)))
		field_invalid(e, at, ips, "may not change once set");
	if (val_len(now) < val_len(before) && val_len(now) == 1)
		check_release(e, service, "ipFamily");
}

void check_service_update(struct field_errors *e, struct val service, struct val old)
{
	bool headless = is_headless(service), was_headless = is_headless(old);

	check_meta_update(e, service, old);
	if (!is_type(service, "ExternalName") && !is_type(old, "ExternalName")) {
		if (!headless || !was_headless)
			check_ips_change(e, service, val_get(service, spec, clusterIPs), val_get(old, spec, clusterIPs));
		if (!headless && !was_headless)
			check_families_change(e, service, val_get(service, spec, ipFamilies),
					      val_get(old, spec, ipFamilies));
	}
	check_load_balancer_class(e, service, old);
	if (has_health_check(service) && has_health_check(old) &&
	    val_int(service, spec, healthCheckNodePort) != val_int(old, spec, healthCheckNodePort))
		field_forbidden(e, FIELD(FIELD(NULL, "spec"), "healthCheckNodePort"), "field is immutable");
	check_service_spec(e, service, old);
}

/* ---- status ---- */

struct val ingress_ips(struct arena *a, struct val points)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(point, points)
		if (val_str(*point, ip).n)
			val_add_item(&b, val_get(*point, ip));
	return val_end_list(&b);
}

void check_ingress_hostname(struct field_errors *e, const struct field_path *at, str hostname)
{
	struct ip ip;
	if (hostname.n == 0)
		return;
	check_name(e, at, hostname, name_check_dns1123_subdomain);
	if (ip_parse(hostname, &ip, NULL))
		field_invalid(e, at, VAL_STR(hostname), "must be a DNS name, not an IP address");
}

void check_service_status(struct field_errors *e, str subresource, struct val service, struct val old)
{
	static const str modes[] = { STR_INIT("Proxy"), STR_INIT("VIP"), { NULL, 0 } };
	const struct field_path *at = FIELD(FIELD(FIELD(NULL, "status"), "loadBalancer"), "ingress");
	struct val points = val_get(service, status, loadBalancer, ingress);
	struct val before = ingress_ips(e->arena, val_get(old, status, loadBalancer, ingress));
	size_t i = 0;

	(void)subresource;
	check_meta_update(e, service, old);
	if (!is_type(service, "LoadBalancer") && val_len(points)) {
		field_forbidden(e, at, "may only be used when `spec.type` is 'LoadBalancer'");
		return;
	}
	VAL_EACH(point, points) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str ip = val_str(*point, ip);
		struct val mode = val_get(*point, ipMode);
		if (ip.n)
			check_legacy_ip(e, FIELD(item, "ip"), ip, before);
		if (ip.n && !val_exists(mode))
			field_required(e, FIELD(item, "ipMode"), "must be specified when `ip` is set");
		else if (ip.n == 0 && val_exists(mode))
			field_forbidden(e, FIELD(item, "ipMode"), "may not be specified when `ip` is not set");
		else if (val_exists(mode))
			check_one_of(e, FIELD(item, "ipMode"), val_as_str(mode), modes);
		check_ingress_hostname(e, FIELD(item, "hostname"), val_str(*point, hostname));
	}
}
