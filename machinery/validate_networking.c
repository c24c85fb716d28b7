/* Ingress, IngressClass, NetworkPolicy, IPAddress, ServiceCIDR and EndpointSlice. Services have a file of their own. */
#include "codec/atoms.h"
#include "machinery/ip.h"
#include "machinery/validate_groups.h"

/* ---- NetworkPolicy ---- */

static void check_policy_port(struct field_errors *e, const struct field_path *at, struct val rule)
{
	static const str protocols[] = { STR_INIT("TCP"), STR_INIT("UDP"), STR_INIT("SCTP"), { NULL, 0 } };
	struct val port = val_get(rule, port), end = val_get(rule, endPort);

	if (val_has(rule, protocol))
		check_one_of(e, FIELD(at, "protocol"), val_str(rule, protocol), protocols);
	if (!val_exists(port)) {
		if (val_exists(end))
			field_invalid(e, FIELD(at, "endPort"), end, "may not be specified when `port` is not specified");
	} else if (val_is(port, VAL_STRING)) {
		if (val_exists(end))
			field_invalid(e, FIELD(at, "endPort"), end, "may not be specified when `port` is non-numeric");
		check_name(e, FIELD(at, "port"), val_as_str(port), name_check_port_name);
	} else {
		check_port_number(e, FIELD(at, "port"), val_as_int(port));
		if (val_exists(end) && val_as_int(end) < val_as_int(port))
			field_invalid(e, FIELD(at, "endPort"), port, "must be greater than or equal to `port`");
		if (val_exists(end))
			check_port_number(e, FIELD(at, "endPort"), val_as_int(end));
	}
}

/* What the policy before an update had stays allowed. */
struct policy_before {
	struct val blocks; /* texts of all CIDRs */
	bool bad_selector;
};

static void check_ip_block(struct field_errors *e, const struct field_path *at, struct val block,
			   const struct policy_before *before)
{
	struct cidr whole, except;
	str text = val_str(block, cidr);
	size_t i = 0;

	if (!check_given(e, FIELD(at, "cidr"), text))
		return;
	check_legacy_cidr(e, FIELD(at, "cidr"), text, before->blocks);
	if (!cidr_parse(text, &whole, NULL))
		return;
	VAL_EACH(item, val_get(block, except)) {
		const struct field_path *at_item = FIELD_INDEX(FIELD(at, "except"), i++);
		check_legacy_cidr(e, at_item, val_as_str(*item), before->blocks);
		if (!cidr_parse(val_as_str(*item), &except, NULL))
			continue;
		struct ip first = cidr_network(&except);
		if (!cidr_contains(&whole, &first) || whole.bits >= except.bits)
			field_invalid(e, at_item, *item, "must be a strict subset of `cidr`");
	}
}

static void check_peer(struct field_errors *e, const struct field_path *at, struct val peer,
		       const struct policy_before *before)
{
	bool pods = val_has(peer, podSelector), namespaces = val_has(peer, namespaceSelector);
	bool block = val_has(peer, ipBlock);

	check_label_selector(e, FIELD(at, "podSelector"), val_get(peer, podSelector), before->bad_selector);
	check_label_selector(e, FIELD(at, "namespaceSelector"), val_get(peer, namespaceSelector), before->bad_selector);
	if (block)
		check_ip_block(e, FIELD(at, "ipBlock"), val_get(peer, ipBlock), before);
	if (!pods && !namespaces && !block)
		field_required(e, at, "must specify a peer");
	else if (block && (pods || namespaces))
		field_forbidden(e, at, "may not specify both ipBlock and another peer");
}

static void check_policy_rule(struct field_errors *e, const struct field_path *at, struct val rule, atom peers,
			      const struct policy_before *before)
{
	size_t i = 0;
	VAL_EACH(port, val_get(rule, ports))
		check_policy_port(e, FIELD_INDEX(FIELD(at, "ports"), i++), *port);
	i = 0;
	VAL_EACH(peer, val_member(rule, peers))
		check_peer(e, FIELD_INDEX(FIELD_STR(at, atom_str(peers)), i++), *peer, before);
}

static void check_policy_spec(struct field_errors *e, struct val spec, const struct policy_before *before)
{
	static const str types[] = { STR_INIT("Ingress"), STR_INIT("Egress"), { NULL, 0 } };
	const struct field_path *at = FIELD(NULL, "spec");
	struct val given = val_get(spec, policyTypes);
	size_t i = 0;

	check_label_selector(e, FIELD(at, "podSelector"), val_get(spec, podSelector), before->bad_selector);
	VAL_EACH(rule, val_get(spec, ingress))
		check_policy_rule(e, FIELD_INDEX(FIELD(at, "ingress"), i++), *rule, A_from, before);
	i = 0;
	VAL_EACH(rule, val_get(spec, egress))
		check_policy_rule(e, FIELD_INDEX(FIELD(at, "egress"), i++), *rule, A_to, before);
	if (val_len(given) > 2) {
		field_invalid(e, FIELD(at, "policyTypes"), given, "may not specify more than two policyTypes");
		return;
	}
	i = 0;
	VAL_EACH(type, given)
		check_one_of(e, FIELD_INDEX(FIELD(at, "policyTypes"), i++), val_as_str(*type), types);
}

static void check_network_policy(struct field_errors *e, struct val policy)
{
	check_meta(e, policy, true, name_rule_subdomain);
	check_policy_spec(e, val_get(policy, spec), &(struct policy_before){ 0 });
}

static void add_blocks(struct val_builder *b, struct val rules, atom peers)
{
	VAL_EACH(rule, rules)
		VAL_EACH(peer, val_member(*rule, peers)) {
			if (val_has(*peer, ipBlock))
				val_add_item(b, VAL_STR(val_str(*peer, ipBlock, cidr)));
			VAL_EACH(except, val_get(*peer, ipBlock, except))
				val_add_item(b, *except);
		}
}

static void check_network_policy_update(struct field_errors *e, struct val policy, struct val old)
{
	struct field_errors of_old;
	struct val_builder blocks = val_builder(e->arena);

	field_errors_init(&of_old, e->arena);
	check_label_selector(&of_old, NULL, val_get(old, spec, podSelector), false);
	add_blocks(&blocks, val_get(old, spec, ingress), A_from);
	add_blocks(&blocks, val_get(old, spec, egress), A_to);
	check_meta_update(e, policy, old);
	check_policy_spec(e, val_get(policy, spec), &(struct policy_before){ val_end_list(&blocks), of_old.n > 0 });
}

/* ---- Ingress ---- */

static void check_typed_reference(struct field_errors *e, const struct field_path *at, struct val ref)
{
	if (val_has(ref, apiGroup))
		check_name(e, FIELD(at, "apiGroup"), val_str(ref, apiGroup), name_check_dns1123_subdomain);
	check_given_name(e, FIELD(at, "kind"), val_str(ref, kind), name_check_path_segment);
	check_given_name(e, FIELD(at, "name"), val_str(ref, name), name_check_path_segment);
}

static void check_backend_service(struct field_errors *e, const struct field_path *at, struct val service, bool strict_names)
{
	const struct field_path *at_service = FIELD(at, "service"), *at_port = FIELD(at_service, "port");
	str port = val_str(service, port, name);
	int64_t number = val_int(service, port, number);

	check_given_name(e, FIELD(at_service, "name"), val_str(service, name),
			 strict_names ? name_check_dns1035_label : name_check_dns1123_label);
	if (port.n && number)
		field_invalid(e, at, VAL_LIT(""), "cannot set both port name & port number");
	else if (port.n)
		check_name(e, FIELD(at_port, "name"), port, name_check_port_name);
	else if (number)
		check_port_number(e, FIELD(at_port, "number"), number);
	else
		field_required(e, at, "port name or number is required");
}

static void check_backend(struct field_errors *e, const struct field_path *at, struct val backend, bool strict_names)
{
	bool resource = val_has(backend, resource), service = val_has(backend, service);

	if (resource && service)
		field_invalid(e, at, VAL_LIT(""), "cannot set both resource and service backends");
	else if (resource)
		check_typed_reference(e, FIELD(at, "resource"), val_get(backend, resource));
	else if (service)
		check_backend_service(e, at, val_get(backend, service), strict_names);
	else
		field_invalid(e, at, VAL_LIT(""), "resource or service backend is required");
}

/* Paths that are compared must not have parts that servers see in different ways. */
static void check_plain_path(struct field_errors *e, const struct field_path *at, str path)
{
	static const str sequences[] = { STR_INIT("//"), STR_INIT("/./"), STR_INIT("/../"), STR_INIT("%2f"),
					 STR_INIT("%2F") };
	static const str ends[] = { STR_INIT("/.."), STR_INIT("/.") };

	if (!str_starts(path, STR("/")))
		field_invalid(e, at, VAL_STR(path), "must be an absolute path");
	for (size_t i = 0; i < ARRAY_LEN(sequences); i++)
		if (str_find(path, sequences[i]) >= 0)
			field_invalid(e, at, VAL_STR(path), "must not contain '" STR_FMT "'", STR_ARG(sequences[i]));
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (str_ends(path, ends[i]))
			field_invalid(e, at, VAL_STR(path), "cannot end with '" STR_FMT "'", STR_ARG(ends[i]));
}

static void check_http_path(struct field_errors *e, const struct field_path *at, struct val http, bool strict_names)
{
	static const str types[] = { STR_INIT("Exact"), STR_INIT("ImplementationSpecific"), STR_INIT("Prefix"),
				     { NULL, 0 } };
	str type = val_str(http, pathType), path = val_str(http, path);

	if (!val_has(http, pathType)) {
		field_required(e, FIELD(at, "pathType"), "pathType must be specified");
		return;
	}
	if (str_eq(type, STR("Exact")) || str_eq(type, STR("Prefix")))
		check_plain_path(e, FIELD(at, "path"), path);
	else if (!str_eq(type, STR("ImplementationSpecific")))
		field_not_supported(e, FIELD(at, "pathType"), VAL_STR(type), types);
	else if (path.n && !str_starts(path, STR("/")))
		field_invalid(e, FIELD(at, "path"), VAL_STR(path), "must be an absolute path");
	check_backend(e, FIELD(at, "backend"), val_get(http, backend), strict_names);
}

static void check_http_rule(struct field_errors *e, const struct field_path *at, struct val rule, bool strict_names)
{
	const struct field_path *at_paths = FIELD(FIELD(at, "http"), "paths");
	struct val paths = val_get(rule, http, paths);
	size_t i = 0;

	if (!val_has(rule, http))
		return;
	if (val_len(paths) == 0)
		field_missing(e, at_paths);
	VAL_EACH(path, paths)
		check_http_path(e, FIELD_INDEX(at_paths, i++), *path, strict_names);
}

static bool has_wildcard(str host) { return str_chr(host, '*') >= 0; }

static void check_host(struct field_errors *e, const struct field_path *at, str host)
{
	check_name(e, at, host, has_wildcard(host) ? name_check_wildcard_subdomain : name_check_dns1123_subdomain);
}

/* What older servers accepted stays allowed. */
struct ingress_before {
	bool bad_secret, bad_wildcard_rule;
};

static bool is_bad_wildcard_rule(struct arena *a, struct val rule)
{
	struct field_errors errors;
	field_errors_init(&errors, a);
	if (has_wildcard(val_str(rule, host)))
		check_http_rule(&errors, NULL, rule, true);
	return errors.n > 0;
}

static struct ingress_before ingress_before(struct arena *a, struct val old)
{
	struct ingress_before before = { 0 };
	VAL_EACH(tls, val_get(old, spec, tls)) {
		str name = val_str(*tls, secretName);
		before.bad_secret |= name.n && name_check_dns1123_subdomain(name, NULL);
	}
	VAL_EACH(rule, val_get(old, spec, rules))
		before.bad_wildcard_rule |= is_bad_wildcard_rule(a, *rule);
	return before;
}

static void check_ingress_rule(struct field_errors *e, const struct field_path *at, struct val rule,
			       const struct ingress_before *before)
{
	str host = val_str(rule, host);
	struct ip ip;

	if (host.n && ip_parse(host, &ip, NULL))
		field_invalid(e, FIELD(at, "host"), VAL_STR(host), "must be a DNS name, not an IP address");
	if (host.n)
		check_host(e, FIELD(at, "host"), host);
	if (!has_wildcard(host) || !before->bad_wildcard_rule)
		check_http_rule(e, at, rule, false);
}

static void check_tls(struct field_errors *e, const struct field_path *at, struct val tls,
		      const struct ingress_before *before)
{
	str secret = val_str(tls, secretName);
	size_t i = 0;

	VAL_EACH(host, val_get(tls, hosts))
		check_host(e, FIELD_INDEX(FIELD(at, "hosts"), i++), val_as_str(*host));
	if (secret.n && !before->bad_secret)
		check_name(e, FIELD(at, "secretName"), secret, name_check_dns1123_subdomain);
}

static void check_ingress_all(struct field_errors *e, struct val ingress, const struct ingress_before *before)
{
	const struct field_path *at = FIELD(NULL, "spec");
	struct val spec = val_get(ingress, spec), rules = val_get(spec, rules);
	size_t i = 0;

	check_meta(e, ingress, true, name_rule_subdomain);
	if (val_len(rules) == 0 && !val_has(spec, defaultBackend))
		field_invalid(e, at, rules, "either `defaultBackend` or `rules` must be specified");
	if (val_has(spec, defaultBackend))
		check_backend(e, FIELD(at, "defaultBackend"), val_get(spec, defaultBackend), false);
	VAL_EACH(rule, rules)
		check_ingress_rule(e, FIELD_INDEX(FIELD(at, "rules"), i++), *rule, before);
	i = 0;
	VAL_EACH(tls, val_get(spec, tls))
		check_tls(e, FIELD_INDEX(FIELD(at, "tls"), i++), *tls, before);
	if (val_has(spec, ingressClassName))
		check_name(e, FIELD(at, "ingressClassName"), val_str(spec, ingressClassName), name_check_dns1123_subdomain);
}

static void check_ingress(struct field_errors *e, struct val ingress)
{
	static const str key = STR_INIT("kubernetes.io/ingress.class");
	struct val annotation = val_find(val_get(ingress, metadata, annotations), key);
	struct val class = val_get(ingress, spec, ingressClassName);

	check_ingress_all(e, ingress, &(struct ingress_before){ 0 });
	if (val_exists(annotation) && val_exists(class) && !val_equal(annotation, class))
		field_invalid(e, FIELD_STR(FIELD(NULL, "annotations"), key), annotation,
			      "must match `ingressClassName` when both are specified");
}

static void check_ingress_update(struct field_errors *e, struct val ingress, struct val old)
{
	struct ingress_before before = ingress_before(e->arena, old);
	check_meta_update(e, ingress, old);
	check_ingress_all(e, ingress, &before);
}

static void check_ingress_status(struct field_errors *e, str subresource, struct val ingress, struct val old)
{
	const struct field_path *at = FIELD(FIELD(FIELD(NULL, "status"), "loadBalancer"), "ingress");
	struct val before = ingress_ips(e->arena, val_get(old, status, loadBalancer, ingress));
	size_t i = 0;

	(void)subresource;
	check_meta_update(e, ingress, old);
	VAL_EACH(point, val_get(ingress, status, loadBalancer, ingress)) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (val_str(*point, ip).n)
			check_legacy_ip(e, FIELD(item, "ip"), val_str(*point, ip), before);
		check_ingress_hostname(e, FIELD(item, "hostname"), val_str(*point, hostname));
	}
}

/* ---- IngressClass ---- */

enum { CONTROLLER_MAX = 250 };

static void check_class_parameters(struct field_errors *e, const struct field_path *at, struct val parameters)
{
	static const str scopes[] = { STR_INIT("Cluster"), STR_INIT("Namespace"), { NULL, 0 } };
	struct val namespace = val_get(parameters, namespace);
	str scope = val_str(parameters, scope);

	if (!val_exists(parameters))
		return;
	check_typed_reference(e, at, parameters);
	if (!val_has(parameters, scope))
		field_missing(e, FIELD(at, "scope"));
	else if (!str_in(scope, scopes))
		field_not_supported(e, FIELD(at, "scope"), VAL_STR(scope), scopes);
	else if (str_eq(scope, STR("Namespace")) && !val_exists(namespace))
		field_required(e, FIELD(at, "namespace"), "`parameters.scope` is set to 'Namespace'");
	else if (str_eq(scope, STR("Namespace")))
		check_name(e, FIELD(at, "namespace"), val_as_str(namespace), name_check_dns1123_label);
	else if (val_exists(namespace))
		field_forbidden(e, FIELD(at, "namespace"), "`parameters.scope` is set to 'Cluster'");
}

static void check_ingress_class(struct field_errors *e, struct val class)
{
	const struct field_path *at = FIELD(NULL, "spec");
	str controller = val_str(class, spec, controller);

	check_meta(e, class, false, name_rule_subdomain);
	if (controller.n > CONTROLLER_MAX)
		field_too_long(e, FIELD(at, "controller"), CONTROLLER_MAX);
	check_domain_prefixed_path(e, FIELD(at, "controller"), controller);
	check_class_parameters(e, FIELD(at, "parameters"), val_get(class, spec, parameters));
}

static void check_ingress_class_update(struct field_errors *e, struct val class, struct val old)
{
	check_meta_update(e, class, old);
	check_immutable_str(e, FIELD(FIELD(NULL, "spec"), "controller"), val_str(class, spec, controller),
			    val_str(old, spec, controller));
	check_ingress_class(e, class);
}

/* ---- IPAddress and ServiceCIDR ---- */

/* Names are addresses; their check needs an arena for its texts and so is not a rule of names.h. */
static size_t accept_name(str name, bool prefix, struct name_errors *ret)
{
	(void)name, (void)prefix, (void)ret;
	return 0;
}

static void check_address_name(struct field_errors *e, const struct field_path *at, str name)
{
	struct name_errors found;
	if (name.n && ip_check(e->arena, name, &found))
		for (size_t i = 0; i < found.n; i++)
			field_invalid(e, at, VAL_STR(name), STR_FMT, STR_ARG(found.text[i]));
}

static void check_ip_address(struct field_errors *e, struct val address)
{
	const struct field_path *meta = FIELD(NULL, "metadata"), *at = FIELD(FIELD(NULL, "spec"), "parentRef");
	struct val parent = val_get(address, spec, parentRef);

	check_address_name(e, FIELD(meta, "generateName"), val_str(address, metadata, generateName));
	check_address_name(e, FIELD(meta, "name"), val_str(address, metadata, name));
	check_meta(e, address, false, accept_name);
	if (!val_exists(parent)) {
		field_missing(e, at);
		return;
	}
	if (val_str(parent, group).n)
		check_name(e, FIELD(at, "group"), val_str(parent, group), name_check_dns1123_subdomain);
	check_given_name(e, FIELD(at, "resource"), val_str(parent, resource), name_check_path_segment);
	check_given_name(e, FIELD(at, "name"), val_str(parent, name), name_check_path_segment);
	if (val_str(parent, namespace).n)
		check_name(e, FIELD(at, "namespace"), val_str(parent, namespace), name_check_path_segment);
}

static void check_ip_address_update(struct field_errors *e, struct val address, struct val old)
{
	check_ip_address(e, address);
	check_meta_update(e, address, old);
	check_immutable(e, FIELD(FIELD(NULL, "spec"), "parentRef"), TYPE(networking_v1, ParentReference),
			val_get(address, spec, parentRef), val_get(old, spec, parentRef));
}

static void check_blocks(struct field_errors *e, const struct field_path *at, struct val spec)
{
	struct val blocks = val_get(spec, cidrs);
	struct name_errors found;
	struct cidr first, second;
	size_t i = 0;

	if (val_len(blocks) == 0) {
		field_required(e, at, "at least one CIDR required");
		return;
	}
	if (val_len(blocks) > 2) {
		field_invalid(e, at, internal_form(e->arena, TYPE(networking_v1, ServiceCIDRSpec), spec),
			      "may only hold up to 2 values");
		return;
	}
	VAL_EACH(block, blocks) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (cidr_check(e->arena, val_as_str(*block), &found))
			for (size_t j = 0; j < found.n; j++)
				field_invalid(e, item, *block, STR_FMT, STR_ARG(found.text[j]));
	}
	if (val_len(blocks) == 2 && cidr_parse(val_as_str(val_at(blocks, 0)), &first, NULL) &&
	    cidr_parse(val_as_str(val_at(blocks, 1)), &second, NULL) && ip_is_v4(&first.ip) == ip_is_v4(&second.ip))
		field_invalid(e, at, blocks,
			      "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64");
}

static void check_service_cidr(struct field_errors *e, struct val range)
{
	check_meta(e, range, false, name_rule_subdomain);
	check_blocks(e, FIELD(FIELD(NULL, "spec"), "cidrs"), val_get(range, spec));
}

static void check_service_cidr_update(struct field_errors *e, struct val range, struct val old)
{
	const struct field_path *at = FIELD(FIELD(NULL, "spec"), "cidrs");
	struct val now = val_get(range, spec, cidrs), before = val_get(old, spec, cidrs);
	bool grows = val_len(before) == 1 && val_len(now) == 2;

	check_meta_update(e, range, old);
	if (!grows && val_len(now) != val_len(before)) {
		field_invalid(e, at, now, "field is immutable");
		return;
	}
	for (size_t i = 0; i < val_len(before); i++)
		check_immutable(e, FIELD_INDEX(at, i), NULL, val_at(now, i), val_at(before, i));
	if (grows)
		check_blocks(e, at, val_get(range, spec));
}

static void check_service_cidr_status(struct field_errors *e, str subresource, struct val range, struct val old)
{
	(void)subresource;
	check_meta_update(e, range, old);
}

const struct kind_rules rules_networking[] = {
	{ TYPE(core_v1, Service), name_rule_label, KIND_OWN_META, .defaults = default_service, .check = check_service,
	  .check_update = check_service_update, .check_subresource = check_service_status,
	  .prepare = prepare_service, .prepare_update = prepare_service_update },
	{ TYPE(discovery_v1, EndpointSlice), name_rule_subdomain, KIND_OWN_META | KIND_GENERATION,
	  .defaults = default_endpoint_slice,
	  .check = check_endpoint_slice, .check_update = check_endpoint_slice_update, .prepare = prepare_endpoint_slice,
	  .prepare_update = prepare_endpoint_slice_update },
	{ TYPE(networking_v1, Ingress), name_rule_subdomain, KIND_OWN_META | KIND_GENERATION, .check = check_ingress,
	  .check_update = check_ingress_update, .check_subresource = check_ingress_status },
	{ TYPE(networking_v1, IngressClass), name_rule_subdomain, KIND_OWN_META | KIND_GENERATION,
	  .defaults = default_ingress_class, .check = check_ingress_class, .check_update = check_ingress_class_update },
	{ TYPE(networking_v1, NetworkPolicy), name_rule_subdomain, KIND_OWN_META | KIND_GENERATION,
	  .defaults = default_network_policy,
	  .check = check_network_policy, .check_update = check_network_policy_update },
	{ TYPE(networking_v1, IPAddress), .flags = KIND_OWN_META, .check = check_ip_address,
	  .check_update = check_ip_address_update },
	{ TYPE(networking_v1, ServiceCIDR), name_rule_subdomain, KIND_OWN_META, .check = check_service_cidr,
	  .check_update = check_service_cidr_update, .check_subresource = check_service_cidr_status,
	  .prepare_update = prepare_status_only },
	{ 0 },
};
