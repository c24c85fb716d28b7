/* EndpointSlices. */
#include "codec/atoms.h"
#include "machinery/ip.h"
#include "machinery/validate_groups.h"

enum { TOPOLOGY_MAX = 16, ADDRESSES_MAX = 100, PORTS_MAX = 20000, ENDPOINTS_MAX = 1000, HINTS_MAX = 8 };

/* at: the list of addresses; some errors are said to be there instead of at the item. */
static void check_address(struct field_errors *e, const struct field_path *at, size_t i, str type, str address)
{
	const struct field_path *item = FIELD_INDEX(at, i);
	bool v4 = str_eq(type, STR("IPv4")), v6 = str_eq(type, STR("IPv6"));
	struct name_errors found = { 0 };
	size_t before = e->n;
	struct ip ip;

	if (str_eq(type, STR("FQDN"))) {
		if (check_given(e, item, address))
			check_name(e, item, address, name_check_fully_qualified_domain);
		return;
	}
	if (v4)
		check_legacy_ip(e, item, address, VAL_EMPTY);
	else if (v6 && ip_check(e->arena, address, &found))
		for (size_t j = 0; j < found.n; j++)
			field_invalid(e, item, VAL_STR(address), STR_FMT, STR_ARG(found.text[j]));
	if (e->n != before || (!v4 && !v6))
		return;
	if (ip_parse(address, &ip, NULL) && ip_is_v4(&ip) != v4)
		field_invalid(e, at, VAL_STR(address), "must be an %s address", v4 ? "IPv4" : "IPv6");
	check_endpoint_ip(e, item, address);
}

/* False when there are too many. */
static bool check_hint_list(struct field_errors *e, const struct field_path *at, struct val hints, name_check *check)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;

	if (val_len(hints) > HINTS_MAX) {
		field_too_many(e, at, val_len(hints), HINTS_MAX);
		return false;
	}
	VAL_EACH(hint, hints) {
		const struct field_path *item = FIELD(FIELD_INDEX(at, i++), "name");
		str name = val_str(*hint, name);
		if (!set_add(&seen, name))
			field_duplicate(e, item, VAL_STR(name));
		check_name(e, item, name, check);
	}
	return true;
}

static void check_endpoint(struct field_errors *e, const struct field_path *at, struct val endpoint, str type)
{
	static const str zone = STR_INIT("topology.kubernetes.io/zone");
	const struct field_path *at_addresses = FIELD(at, "addresses"), *at_topology = FIELD(at, "deprecatedTopology");
	struct val addresses = val_get(endpoint, addresses), topology = val_get(endpoint, deprecatedTopology);
	struct val hints = val_get(endpoint, hints);
	size_t i = 0;

	if (val_len(addresses) == 0)
		field_required(e, at_addresses, "must contain at least 1 address");
	else if (val_len(addresses) > ADDRESSES_MAX)
		field_too_many(e, at_addresses, val_len(addresses), ADDRESSES_MAX);
	VAL_EACH(address, addresses)
		check_address(e, at_addresses, i++, type, val_as_str(*address));
	if (val_has(endpoint, nodeName))
		check_name(e, FIELD(at, "nodeName"), val_str(endpoint, nodeName), name_check_dns1123_subdomain);
	if (val_len(topology) > TOPOLOGY_MAX)
		field_too_many(e, at_topology, val_len(topology), TOPOLOGY_MAX);
	check_labels(e, at_topology, topology);
	if (val_exists(val_find(topology, zone)))
		field_internal(e, FIELD_KEY(at_topology, zone), "reserved key was not removed in conversion");
	if (val_has(endpoint, hostname))
		check_name(e, FIELD(at, "hostname"), val_str(endpoint, hostname), name_check_dns1123_label);
	if (check_hint_list(e, FIELD(FIELD(at, "hints"), "forZones"), val_get(hints, forZones), name_check_label_value))
		check_hint_list(e, FIELD(FIELD(at, "hints"), "forNodes"), val_get(hints, forNodes),
				name_check_dns1123_subdomain);
}

static void check_endpoint_list(struct field_errors *e, struct val slice)
{
	const struct field_path *at = FIELD(NULL, "endpoints");
	struct val endpoints = val_get(slice, endpoints);
	size_t i = 0;

	if (val_len(endpoints) > ENDPOINTS_MAX) {
		field_too_many(e, at, val_len(endpoints), ENDPOINTS_MAX);
		return;
	}
	VAL_EACH(endpoint, endpoints)
		check_endpoint(e, FIELD_INDEX(at, i++), *endpoint, val_str(slice, addressType));
}

static void check_ports(struct field_errors *e, struct val ports)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	const struct field_path *at = FIELD(NULL, "ports");
	size_t i = 0;

	if (val_len(ports) > PORTS_MAX) {
		field_too_many(e, at, val_len(ports), PORTS_MAX);
		return;
	}
	VAL_EACH(port, ports) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str name = val_str(*port, name);
		if (name.n)
			check_name(e, FIELD(item, "name"), name, name_check_dns1123_label);
		if (!set_add(&names, name))
			field_duplicate(e, FIELD(item, "name"), VAL_STR(name));
		if (!val_has(*port, protocol))
			field_missing(e, FIELD(item, "protocol"));
		else
			check_one_of(e, FIELD(item, "protocol"), val_str(*port, protocol), protocol_names);
		if (val_has(*port, appProtocol))
			check_label_key(e, FIELD(item, "appProtocol"), val_str(*port, appProtocol));
	}
}

static void check_slice_head(struct field_errors *e, struct val slice)
{
	static const str types[] = { STR_INIT("FQDN"), STR_INIT("IPv4"), STR_INIT("IPv6"), { NULL, 0 } };
	check_meta(e, slice, true, name_rule_subdomain);
	check_required_one_of(e, FIELD(NULL, "addressType"), val_str(slice, addressType), types);
	check_ports(e, val_get(slice, ports));
}

void check_endpoint_slice(struct field_errors *e, struct val slice)
{
	check_slice_head(e, slice);
	check_endpoint_list(e, slice);
}

/* Endpoints that older servers accepted may stay. */
void check_endpoint_slice_update(struct field_errors *e, struct val slice, struct val old)
{
	check_slice_head(e, slice);
	if (!val_semantic_equal(TYPE(discovery_v1, Endpoint), val_get(slice, endpoints), val_get(old, endpoints)))
		check_endpoint_list(e, slice);
	check_immutable_str(e, FIELD(NULL, "addressType"), val_str(slice, addressType), val_str(old, addressType));
}
