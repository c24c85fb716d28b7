/*
 * What the server fills in or keeps for kinds besides pods and workloads when a request is executed, beyond what it does
 * for all kinds alike (see validate.h). Addresses and ports of Services are not allocated here, and who asks is not
 * known: the identity in a CertificateSigningRequest is only taken away.
 */
#include "base/clock.h"
#include "base/encoding.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "machinery/validate_groups.h"

static struct val now(struct arena *a)
{
	char text[TIME_TEXT_MAX];
	return VAL_STR(arena_str(a, time_format((struct timestamp){ clock_wall_ns() / NS_PER_S, 0 }, text)));
}

/* The metadata that a write to the status must not change. */
static struct val keep_meta(struct arena *a, struct val object, struct val old)
{
	static const uint16_t kept[] = { A_deletionTimestamp, A_generation, A_selfLink, A_labels, A_annotations,
					 A_finalizers, A_ownerReferences };
	struct val meta = val_get(object, metadata);
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		meta = val_put(a, meta, kept[i], val_member(val_get(old, metadata), kept[i]));
	return val_put(a, object, A_metadata, meta);
}

struct val prepare_status_only(struct arena *a, str subresource, struct val object, struct val old)
{
	return subresource.n ? keep_meta(a, object, old) : object;
}

struct val prepare_first_generation(struct arena *a, struct val object)
{
	return val_with(a, object, val_of_int(1), metadata, generation);
}

/* ---- core ---- */

struct val prepare_namespace(struct arena *a, struct val namespace)
{
	struct val finalizers = val_get(namespace, spec, finalizers);

	if (!list_has(finalizers, STR("kubernetes")))
		namespace = val_with(a, namespace, val_list_append(a, finalizers, VAL_LIT("kubernetes")), spec, finalizers);
	return val_put(a, namespace, A_status, OBJECT(a, F(phase, VAL_LIT("Active"))));
}

struct val prepare_namespace_update(struct arena *a, str subresource, struct val namespace, struct val old)
{
	if (subresource.n == 0)
		return val_with(a, namespace, val_get(old, spec, finalizers), spec, finalizers);
	if (str_eq(subresource, STR("finalize")))
		return val_put(a, namespace, A_status, val_get(old, status));
	return namespace;
}

/* Configuration of kubelets through the API is gone; it can stay where it is. */
struct val prepare_node(struct arena *a, struct val node)
{
	return val_without(a, val_without(a, node, spec, configSource), status, config);
}

struct val prepare_node_update(struct arena *a, str subresource, struct val node, struct val old)
{
	if (subresource.n == 0 && !val_has(old, spec, configSource))
		return val_without(a, node, spec, configSource);
	if (subresource.n && !val_has(old, status, config))
		return val_without(a, node, status, config);
	return node;
}

struct val prepare_limit_range(struct arena *a, struct val range)
{
	char name[UUID_TEXT + 1];

	if (val_str(range, metadata, name).n)
		return range;
	uuid_v4(name);
	return val_with(a, range, VAL_STR(arena_str(a, str_of(name))), metadata, name);
}

static struct val only_name(struct arena *a, struct val ref) { return OBJECT(a, F(name, val_get(ref, name))); }

/* Clients that know only clusterIP mean the first of clusterIPs; the other way round is an error. */
struct val prepare_service(struct arena *a, struct val service)
{
	struct val ip = val_get(service, spec, clusterIP);
	if (!val_as_str(ip).n || val_len(val_get(service, spec, clusterIPs)))
		return service;
	return val_with(a, service, LIST(a, ip), spec, clusterIPs);
}

struct val prepare_service_account(struct arena *a, struct val account)
{
	return default_within(a, account, A_secrets, only_name);
}

struct val prepare_service_account_update(struct arena *a, str subresource, struct val account, struct val old)
{
	(void)subresource, (void)old;
	return prepare_service_account(a, account);
}

/* ---- services ---- */

static bool is_type(struct val service, const char *type) { return str_eq(val_str(service, spec, type), str_of(type)); }
static bool has_node_ports(struct val service) { return is_type(service, "NodePort") || is_type(service, "LoadBalancer"); }
static bool has_cluster_ip(struct val service) { return is_type(service, "ClusterIP") || has_node_ports(service); }

static bool has_health_check(struct val service)
{
	return is_type(service, "LoadBalancer") && str_eq(val_str(service, spec, externalTrafficPolicy), STR("Local"));
}

static bool is_external(struct val service)
{
	return has_node_ports(service) || (is_type(service, "ClusterIP") && val_len(val_get(service, spec, externalIPs)));
}

static str number_text(struct arena *a, int64_t number) { return arena_printf(a, "%lld", (long long)number); }

/* The node ports that are given, as texts in the arena. */
static void set_add_node_ports(struct arena *a, struct map *set, struct val ports)
{
	VAL_EACH(port, ports)
		if (val_int(*port, nodePort))
			set_add(set, number_text(a, val_int(*port, nodePort)));
}

/* Ports that were not given keep what ports of their name had, unless another port took it. */
static struct val keep_node_ports(struct arena *a, struct val ports, struct val old)
{
	CLEANUP(map_done) struct map taken = MAP_INIT, by_name = MAP_INIT;
	struct val_builder b = val_builder(a);

	set_add_node_ports(a, &taken, ports);
	VAL_EACH(port, old)
		map_put(&by_name, val_str(*port, name), (void *)port);
	VAL_EACH(port, ports) {
		const struct val *same = map_get(&by_name, val_str(*port, name));
		int64_t before = same && val_int(*port, nodePort) == 0 ? val_int(*same, nodePort) : 0;
		bool keeps = before && !set_has(&taken, number_text(a, before));
		val_add_item(&b, keeps ? val_with(a, *port, val_of_int(before), nodePort) : *port);
	}
	return val_len(ports) ? val_end_list(&b) : ports;
}

/* Values that the server allocated stay when a client leaves them out. */
static struct val keep_allocated(struct arena *a, struct val service, struct val old)
{
	if (has_cluster_ip(service) && has_cluster_ip(old)) {
		if (val_str(service, spec, clusterIP).n == 0)
			service = val_with(a, service, val_get(old, spec, clusterIP), spec, clusterIP);
		if (val_len(val_get(service, spec, clusterIPs)) == 0)
			service = val_with(a, service, val_get(old, spec, clusterIPs), spec, clusterIPs);
	}
	if (has_node_ports(service) && has_node_ports(old))
		service = val_with(a, service, keep_node_ports(a, val_get(service, spec, ports),
							       val_get(old, spec, ports)), spec, ports);
	if (has_health_check(service) && has_health_check(old) && val_int(service, spec, healthCheckNodePort) == 0)
		service = val_with(a, service, val_get(old, spec, healthCheckNodePort), spec, healthCheckNodePort);
	return service;
}

/* Clients that know only clusterIP change it alone. */
static struct val sync_cluster_ips(struct arena *a, struct val service, struct val old)
{
	str ip = val_str(service, spec, clusterIP), before = val_str(old, spec, clusterIP);
	bool same_list = val_equal(val_get(service, spec, clusterIPs), val_get(old, spec, clusterIPs));

	if (str_eq(ip, before) || !same_list)
		return service;
	return val_with(a, service, ip.n ? LIST(a, VAL_STR(ip)) : VAL_EMPTY, spec, clusterIPs);
}

static struct val without_node_port(struct arena *a, struct val port) { return val_without(a, port, nodePort); }

static bool has_same_node_ports(struct arena *a, struct val ports, struct val old)
{
	CLEANUP(map_done) struct map now = MAP_INIT, before = MAP_INIT;

	set_add_node_ports(a, &now, ports);
	set_add_node_ports(a, &before, old);
	VAL_EACH(port, ports)
		if (val_int(*port, nodePort) && !set_has(&before, number_text(a, val_int(*port, nodePort))))
			return false;
	return map_len(&now) == map_len(&before);
}

/* Takes a member away that the new type does not have, if the client did not touch it. */
static struct val drop_unchanged(struct arena *a, struct val spec, struct val old, atom name)
{
	return val_equal(val_member(spec, name), val_member(old, name)) ? val_put(a, spec, name, VAL_EMPTY) : spec;
}

static struct val drop_by_type(struct arena *a, struct val service, struct val old)
{
	struct val spec = val_get(service, spec), before = val_get(old, spec);

	if (has_cluster_ip(old) && !has_cluster_ip(service)) {
		if (val_equal(val_get(spec, clusterIPs), val_get(before, clusterIPs)))
			spec = val_without(a, val_without(a, spec, clusterIPs), clusterIP);
		spec = drop_unchanged(a, drop_unchanged(a, spec, before, A_ipFamilies), before, A_ipFamilyPolicy);
	}
	if (has_node_ports(old) && !has_node_ports(service) &&
	    has_same_node_ports(a, val_get(spec, ports), val_get(before, ports)))
		spec = default_within(a, spec, A_ports, without_node_port);
	if (has_health_check(old) && !has_health_check(service))
		spec = drop_unchanged(a, spec, before, A_healthCheckNodePort);
	if (is_type(old, "LoadBalancer") && !is_type(service, "LoadBalancer"))
		spec = drop_unchanged(a, drop_unchanged(a, spec, before, A_allocateLoadBalancerNodePorts), before,
				      A_loadBalancerClass);
	if (is_external(old) && !is_external(service))
		spec = drop_unchanged(a, spec, before, A_externalTrafficPolicy);
	if (!is_type(service, "LoadBalancer"))
		service = val_without(a, service, status, loadBalancer);
	return val_put(a, service, A_spec, spec);
}

struct val prepare_service_update(struct arena *a, str subresource, struct val service, struct val old)
{
	if (subresource.n)
		return service;
	service = sync_cluster_ips(a, keep_allocated(a, service, old), old);
	return drop_by_type(a, service, old);
}

/* ---- endpoints ---- */

static struct val without_topology(struct arena *a, struct val endpoint)
{
	return val_without(a, endpoint, deprecatedTopology);
}

/* The field of old versions is read-only now. */
struct val prepare_endpoint_slice(struct arena *a, struct val slice)
{
	return default_within(a, slice, A_endpoints, without_topology);
}

struct val prepare_endpoint_slice_update(struct arena *a, str subresource, struct val slice, struct val old)
{
	(void)subresource;
	if (!val_semantic_equal(TYPE(discovery_v1, Endpoint), val_get(slice, endpoints), val_get(old, endpoints)))
		slice = default_within(a, slice, A_endpoints, without_topology);
	if (!val_semantic_equal(NULL, val_get(slice, metadata, labels), val_get(old, metadata, labels)))
		slice = val_with(a, slice, val_of_int(val_int(old, metadata, generation) + 1), metadata, generation);
	return slice;
}

/* ---- storage ---- */

struct val prepare_volume(struct arena *a, struct val volume)
{
	return val_put(a, volume, A_status, OBJECT(a, F(phase, VAL_LIT("Pending")), F(lastPhaseTransitionTime, now(a))));
}

struct val prepare_volume_update(struct arena *a, str subresource, struct val volume, struct val old)
{
	struct val time = val_get(volume, status, lastPhaseTransitionTime);
	struct val before = val_get(old, status, lastPhaseTransitionTime);
	bool same_phase = str_eq(val_str(volume, status, phase), val_str(old, status, phase));

	if (subresource.n == 0)
		return volume;
	if (same_phase && !val_exists(time))
		return val_with(a, volume, before, status, lastPhaseTransitionTime);
	if (!same_phase && (!val_exists(time) || val_equal(time, before)))
		return val_with(a, volume, now(a), status, lastPhaseTransitionTime);
	return volume;
}

static bool is_claim_or_snapshot(struct val source)
{
	str kind = val_str(source, kind), group = val_str(source, apiGroup);
	return (str_eq(kind, STR("PersistentVolumeClaim")) && group.n == 0) ||
	       (str_eq(kind, STR("VolumeSnapshot")) && str_eq(group, STR("snapshot.storage.k8s.io")));
}

/*
 * dataSource, which older clients write, and dataSourceRef say the same; of the old one, unknown kinds are ignored as
 * ever.
 */
static struct val sync_data_sources(struct arena *a, struct val spec, struct val old)
{
	struct val source, ref = val_get(spec, dataSourceRef);

	if (val_str(ref, namespace).n && !val_has(old, dataSourceRef)) {
		spec = val_without(a, spec, dataSourceRef);
		ref = VAL_EMPTY;
	}
	if (!val_has(old, dataSource) && !val_has(old, dataSourceRef) && !val_exists(ref) &&
	    !is_claim_or_snapshot(val_get(spec, dataSource)))
		spec = val_without(a, spec, dataSource);
	source = val_get(spec, dataSource);
	if (val_exists(source) && !val_exists(ref))
		return val_put(a, spec, A_dataSourceRef, source);
	if (val_exists(ref) && !val_exists(source) && val_str(ref, namespace).n == 0)
		return val_put(a, spec, A_dataSource, val_without(a, ref, namespace));
	return spec;
}

struct val prepare_claim(struct arena *a, struct val claim)
{
	claim = val_put(a, claim, A_spec, sync_data_sources(a, val_get(claim, spec), VAL_EMPTY));
	return val_put(a, claim, A_status, OBJECT(a, F(phase, VAL_LIT("Pending"))));
}

struct val prepare_claim_update(struct arena *a, str subresource, struct val claim, struct val old)
{
	if (subresource.n)
		return claim;
	return val_put(a, claim, A_spec, sync_data_sources(a, val_get(claim, spec), val_get(old, spec)));
}

/* Counts changes, but begins without a generation. */
struct val prepare_csi_driver_update(struct arena *a, str subresource, struct val driver, struct val old)
{
	(void)subresource;
	if (val_semantic_equal(TYPE(storage_v1, CSIDriverSpec), val_get(driver, spec), val_get(old, spec)))
		return driver;
	return val_with(a, driver, val_of_int(val_int(old, metadata, generation) + 1), metadata, generation);
}

/* ---- certificates ---- */

struct val prepare_csr(struct arena *a, struct val csr)
{
	static const uint16_t identity[] = { A_username, A_uid, A_groups, A_extra };
	struct val spec = val_get(csr, spec);
	for (size_t i = 0; i < ARRAY_LEN(identity); i++)
		spec = val_put(a, spec, identity[i], VAL_EMPTY);
	return val_put(a, csr, A_spec, spec);
}

static struct val last_transition(struct val old, struct val condition)
{
	VAL_EACH(c, val_get(old, status, conditions))
		if (val_has(*c, lastTransitionTime) && str_eq(val_str(*c, type), val_str(condition, type)) &&
		    str_eq(val_str(*c, status), val_str(condition, status)))
			return val_get(*c, lastTransitionTime);
	return VAL_EMPTY;
}

static struct val with_condition_times(struct arena *a, struct val csr, struct val old)
{
	struct val conditions = val_get(csr, status, conditions);
	struct val_builder b = val_builder(a);

	VAL_EACH(c, conditions) {
		struct val before = last_transition(old, *c), condition = default_member(a, *c, A_lastUpdateTime, now(a));
		val_add_item(&b, default_member(a, condition, A_lastTransitionTime, val_exists(before) ? before : now(a)));
	}
	return val_len(conditions) ? val_with(a, csr, val_end_list(&b), status, conditions) : csr;
}

struct val prepare_csr_update(struct arena *a, str subresource, struct val csr, struct val old)
{
	csr = val_put(a, csr, A_spec, val_get(old, spec));
	if (subresource.n == 0)
		return csr;
	csr = with_condition_times(a, csr, old);
	if (str_eq(subresource, STR("approval")))
		csr = val_put(a, csr, A_status, val_put(a, val_get(old, status), A_conditions,
							val_get(csr, status, conditions)));
	return csr;
}

/* ---- flow control: a write to the status keeps all metadata ---- */

struct val prepare_flow_update(struct arena *a, str subresource, struct val object, struct val old)
{
	if (subresource.n == 0)
		return object;
	struct val fields = val_get(object, metadata, managedFields), version = val_get(object, metadata, resourceVersion);
	struct val meta = val_put(a, val_put(a, val_get(old, metadata), A_managedFields, fields), A_resourceVersion,
				  version);
	return val_put(a, object, A_metadata, meta);
}

/* ---- extensions ---- */

/* The version that is stored now is one that was stored once. */
static struct val with_stored_version(struct arena *a, struct val crd)
{
	struct val stored = val_get(crd, status, storedVersions);
	VAL_EACH(version, val_get(crd, spec, versions)) {
		if (!val_bool(*version, storage))
			continue;
		if (list_has(stored, val_str(*version, name)))
			break;
		return val_with(a, crd, val_list_append(a, stored, val_get(*version, name)), status, storedVersions);
	}
	return crd;
}

struct val prepare_crd(struct arena *a, struct val crd) { return with_stored_version(a, val_without(a, crd, status)); }

struct val prepare_crd_update(struct arena *a, str subresource, struct val crd, struct val old)
{
	(void)old;
	return subresource.n ? crd : with_stored_version(a, crd);
}

struct val prepare_api_service(struct arena *a, struct val service)
{
	if (val_has(service, spec, service))
		return service;
	struct val available = OBJECT(a, F(type, VAL_LIT("Available")), F(status, VAL_LIT("True")),
				      F(lastTransitionTime, now(a)), F(reason, VAL_LIT("Local")),
				      F(message, VAL_LIT("Local APIServices are always available")));
	return val_put(a, service, A_status, OBJECT(a, F(conditions, LIST(a, available))));
}

static str device_key(struct arena *a, struct val device)
{
	return arena_printf(a, STR_FMT "\n" STR_FMT "\n" STR_FMT "\n" STR_FMT, STR_ARG(val_str(device, driver)),
			    STR_ARG(val_str(device, pool)), STR_ARG(val_str(device, device)),
			    STR_ARG(val_str(device, shareID)));
}

static void set_add_devices(struct arena *a, struct map *set, struct val claim)
{
	VAL_EACH(result, val_get(claim, status, allocation, devices, results))
		set_add(set, device_key(a, *result));
}

/* What drivers said about devices goes when the devices are given back. */
struct val prepare_resource_claim_update(struct arena *a, str subresource, struct val claim, struct val old)
{
	struct val devices = val_get(claim, status, devices);
	CLEANUP(map_done) struct map before = MAP_INIT, now = MAP_INIT;
	struct val_builder b = val_builder(a);
	size_t kept = 0;

	if (subresource.n == 0)
		return claim;
	set_add_devices(a, &before, old);
	set_add_devices(a, &now, claim);
	VAL_EACH(device, devices) {
		str key = device_key(a, *device);
		if (!set_has(&before, key) || set_has(&now, key)) {
			val_add_item(&b, *device);
			kept++;
		}
	}
	if (kept != val_len(devices))
		claim = val_with(a, claim, kept ? val_end_list(&b) : VAL_EMPTY, status, devices);
	return keep_meta(a, claim, old);
}
