/* networking, discovery. */
#include "machinery/table_priv.h"

static struct val ingress_hosts(const struct row *row)
{
	enum { SHOWN = 3 };
	struct val rules = val_get(row->object, spec, rules);
	str text = STR_NONE;
	size_t n = 0;
	bool more = false;

	VAL_EACH(rule, rules) {
		str host = val_str(*rule, host);
		more |= n == SHOWN;
		if (!more && host.n)
			text = n++ ? arena_printf(row->arena, STR_FMT "," STR_FMT, STR_ARG(text), STR_ARG(host)) : host;
	}
	if (n == 0)
		return VAL_LIT("*");
	/* The number is of rules, those without a host among them. */
	return more ? cell_printf(row, STR_FMT " + %u more...", STR_ARG(text), val_len(rules) - SHOWN) : val_of_str(text);
}

static struct val ingress_address(const struct row *row)
{
	return val_of_str(cell_load_balancer(row->arena, val_get(row->object, status, loadBalancer, ingress)));
}

static struct val ingress_ports(const struct row *row)
{
	return val_len(val_get(row->object, spec, tls)) ? VAL_LIT("80, 443") : VAL_LIT("80");
}

static const struct column ingress[] = {
	NAME,
	COLUMN("Class", "string", 0,
	       "The name of the IngressClass resource that should be used for additional configuration",
	       TEXT(spec, ingressClassName), OR("<none>")),
	COLUMN("Hosts", "string", 0,
	       "Hosts that incoming requests are matched against before the ingress rule",
	       CALL(ingress_hosts)),
	COLUMN("Address", "string", 0,
	       "Address is a list containing ingress points for the load-balancer",
	       CALL(ingress_address)),
	COLUMN("Ports", "string", 0, "Ports of TLS configurations that open", CALL(ingress_ports)),
	AGE,
};

static struct val ingress_class_name(const struct row *row)
{
	bool is_default = str_eq(cell_annotation(row, STR("ingressclass.kubernetes.io/is-default-class")), STR("true"));
	return cell_printf(row, STR_FMT "%s", STR_ARG(val_str(row->object, metadata, name)), is_default ? " (default)" : "");
}

static struct val ingress_class_parameters(const struct row *row)
{
	struct val p = val_get(row->object, spec, parameters);
	if (!val_exists(p))
		return VAL_LIT("<none>");
	return cell_printf(row, STR_FMT "%s" STR_FMT "/" STR_FMT, STR_ARG(val_str(p, kind)), val_has(p, apiGroup) ? "." : "",
			   STR_ARG(val_str(p, apiGroup)), STR_ARG(val_str(p, name)));
}

static const struct column ingress_class[] = {
	COLUMN_WITH_FORMAT("Name", "string", "name", 0, NAME_TEXT, CALL(ingress_class_name)),
	COLUMN("Controller", "string", 0, "Controller that serves the class", TEXT(spec, controller)),
	COLUMN("Parameters", "string", 0, "Object with more settings", CALL(ingress_class_parameters)),
	AGE,
};

static const struct column network_policy[] = {
	NAME,
	COLUMN("Pod-Selector", "string", 0,
	       "podSelector selects the pods to which this NetworkPolicy object applies. The array of "
	       "rules is applied to any pods selected by this field. An empty selector matches all "
	       "pods in the policy's namespace. Multiple network policies can select the same set of "
	       "pods. In this case, the ingress rules for each are combined additively. This field is "
	       "optional. If it is not specified, it defaults to an empty selector.",
	       SELECTOR(spec, podSelector), OR("<none>")),
	AGE,
};

static const struct column service_cidr[] = {
	NAME,
	COLUMN("CIDRs", "string", 0,
	       "CIDRs defines the IP blocks in CIDR notation (e.g. \"192.168.0.0/24\" or "
	       "\"2001:db8::/64\") from which to assign service cluster IPs. Max of two CIDRs is "
	       "allowed, one of each IP family. This field is immutable.",
	       JOINED(spec, cidrs)),
	AGE,
};

static struct val parent_ref(const struct row *row)
{
	struct val ref = val_get(row->object, spec, parentRef);
	str namespace = val_str(ref, namespace);
	if (!val_exists(ref))
		return VAL_LIT("<none>");
	str resource = cell_qualified(row->arena, val_str(ref, resource), val_str(ref, group));
	return cell_printf(row, STR_FMT "%s" STR_FMT "/" STR_FMT, STR_ARG(cell_lower(row->arena, resource)), namespace.n ? "/" : "",
			   STR_ARG(namespace), STR_ARG(val_str(ref, name)));
}

/* Kubernetes' rows have an age that its columns do not mention. */
static const struct column ip_address[] = {
	NAME,
	COLUMN("ParentRef", "string", 0,
	       "ParentRef references the resource that an IPAddress is attached to. An IPAddress must "
	       "reference a parent object.",
	       CALL(parent_ref)),
	COLUMN("Age", "string", 0, "", SINCE(metadata, creationTimestamp), UNLISTED),
};

static struct val slice_ports(const struct row *row)
{
	struct cell_few f = { .arena = row->arena, .max = 3 };
	VAL_EACH(p, val_get(row->object, ports)) {
		struct val port = val_get(*p, port), name = val_get(*p, name);
		if (val_exists(port))
			cell_few_add(&f, arena_printf(row->arena, "%lld", (long long)val_as_int(port)));
		else
			cell_few_add(&f, val_exists(name) ? val_as_str(name) : STR("*"));
	}
	return val_of_str(cell_few_text(&f, STR("<unset>")));
}

static struct val slice_endpoints(const struct row *row)
{
	struct cell_few f = { .arena = row->arena, .max = 3 };
	VAL_EACH(e, val_get(row->object, endpoints))
		VAL_EACH(address, val_get(*e, addresses))
			cell_few_add(&f, val_as_str(*address));
	return val_of_str(cell_few_text(&f, STR("<unset>")));
}

static const struct column endpoint_slice[] = {
	NAME,
	COLUMN("AddressType", "string", 0,
	       "addressType specifies the type of address carried by this EndpointSlice. All "
	       "addresses in this slice must be the same type. This field is immutable after "
	       "creation. The following address types are currently supported: * IPv4: Represents an "
	       "IPv4 Address. * IPv6: Represents an IPv6 Address. * FQDN: Represents a Fully "
	       "Qualified Domain Name. (Deprecated) The EndpointSlice controller only generates, and "
	       "kube-proxy only processes, slices of addressType \"IPv4\" and \"IPv6\". No semantics "
	       "are defined for the \"FQDN\" type.",
	       TEXT(addressType)),
	COLUMN("Ports", "string", 0,
	       "ports specifies the list of network ports exposed by each endpoint in this slice. "
	       "Each port must have a unique name. Each slice may include a maximum of 100 ports. "
	       "Services always have at least 1 port, so EndpointSlices generated by the "
	       "EndpointSlice controller will likewise always have at least 1 port. EndpointSlices "
	       "used for other purposes may have an empty ports list.",
	       CALL(slice_ports)),
	COLUMN("Endpoints", "string", 0,
	       "endpoints is a list of unique endpoints in this slice. Each slice may include a "
	       "maximum of 1000 endpoints.",
	       CALL(slice_endpoints)),
	AGE,
};

static const struct table tables_network_all[] = {
	TABLE("networking.k8s.io", "Ingress", ingress),
	TABLE("networking.k8s.io", "IngressClass", ingress_class),
	TABLE("networking.k8s.io", "NetworkPolicy", network_policy),
	TABLE("networking.k8s.io", "ServiceCIDR", service_cidr),
	TABLE("networking.k8s.io", "IPAddress", ip_address),
	TABLE("discovery.k8s.io", "EndpointSlice", endpoint_slice),
};

TABLE_SET(tables_network);
