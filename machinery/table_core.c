#include "machinery/table_pod.h"

#include "base/buf.h"
#include "base/map.h"

enum { TEXT_MAX = 1 << 20 };

/* ---- PodTemplate, ReplicationController ---- */

static const struct column pod_template[] = {
	NAME,
	COLUMN("Containers", "string", 0, "Names of each container in the template.", NAMES(template, spec, containers)),
	COLUMN("Images", "string", 0, "Images referenced by each container in the template.", IMAGES(template, spec, containers)),
	COLUMN("Pod Labels", "string", 0, "Labels of pods made from the template", LABELS(template, metadata, labels)),
};

static const struct column replication_controller[] = {
	NAME,
	REPLICA_COUNTS,
	AGE,
	CONTAINERS(spec, template, spec, containers),
	CONTAINER_IMAGES(spec, template, spec, containers),
	COLUMN("Selector", "string", 1,
	       "Selector is a label query over pods that should match the Replicas count. If Selector "
	       "is empty, it is defaulted to the labels present on the Pod template. Label keys and "
	       "values that must match in order to be controlled by this replication controller, if "
	       "empty defaulted to labels on Pod template. More info: "
	       "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
	       LABELS(spec, selector)),
};

/* ---- Service, Endpoints ---- */

static struct val cluster_ip(const struct row *row)
{
	return val_of_str(cell_text_or(val_at(val_get(row->object, spec, clusterIPs), 0), STR("<none>")));
}

static struct val external_ip(const struct row *row)
{
	struct val spec = val_get(row->object, spec);
	str type = val_str(spec, type), ips = cell_join(row->arena, val_get(spec, externalIPs), 0, ",");

	if (str_eq(type, STR("ExternalName")))
		return val_of_str(val_str(spec, externalName));
	if (str_eq(type, STR("ClusterIP")) || str_eq(type, STR("NodePort")))
		return ips.n ? val_of_str(ips) : VAL_LIT("<none>");
	if (!str_eq(type, STR("LoadBalancer")))
		return VAL_LIT("<unknown>");
	str balancer = cell_load_balancer(row->arena, val_get(row->object, status, loadBalancer, ingress));
	if (ips.n && balancer.n)
		return cell_printf(row, STR_FMT "," STR_FMT, STR_ARG(balancer), STR_ARG(ips));
	return ips.n ? val_of_str(ips) : balancer.n ? val_of_str(balancer) : VAL_LIT("<pending>");
}

static struct val service_ports(const struct row *row)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	VAL_EACH(p, val_get(row->object, spec, ports)) {
		int64_t node_port = val_int(*p, nodePort);
		buf_addf(&b, "%s%lld", b.n ? "," : "", (long long)val_int(*p, port));
		if (node_port > 0)
			buf_addf(&b, ":%lld", (long long)node_port);
		buf_addf(&b, "/" STR_FMT, STR_ARG(val_str(*p, protocol)));
	}
	return b.n ? val_of_str(arena_str(row->arena, buf_str(&b))) : VAL_LIT("<none>");
}

static const struct column service[] = {
	NAME,
	COLUMN("Type", "string", 0,
	       "type determines how the Service is exposed. Defaults to ClusterIP. Valid options are "
	       "ExternalName, ClusterIP, NodePort, and LoadBalancer. \"ClusterIP\" allocates a "
	       "cluster-internal IP address for load-balancing to endpoints. Endpoints are determined "
	       "by the selector or if that is not specified, by manual construction of an Endpoints "
	       "object or EndpointSlice objects. If clusterIP is \"None\", no virtual IP is allocated "
	       "and the endpoints are published as a set of endpoints rather than a virtual IP. "
	       "\"NodePort\" builds on ClusterIP and allocates a port on every node which routes to "
	       "the same endpoints as the clusterIP. \"LoadBalancer\" builds on NodePort and creates "
	       "an external load-balancer (if supported in the current cloud) which routes to the "
	       "same endpoints as the clusterIP. \"ExternalName\" aliases this service to the "
	       "specified externalName. Several other fields do not apply to ExternalName services. "
	       "More info: "
	       "https://kubernetes.io/docs/concepts/services-networking/service/#publishing-services-service-types",
	       TEXT(spec, type)),
	COLUMN("Cluster-IP", "string", 0,
	       "clusterIP is the IP address of the service and is usually assigned randomly. If an "
	       "address is specified manually, is in-range (as per system configuration), and is not "
	       "in use, it will be allocated to the service; otherwise creation of the service will "
	       "fail. This field may not be changed through updates unless the type field is also "
	       "being changed to ExternalName (which requires this field to be blank) or the type "
	       "field is being changed from ExternalName (in which case this field may optionally be "
	       "specified, as describe above).  Valid values are \"None\", empty string (\"\"), or a "
	       "valid IP address. Setting this to \"None\" makes a \"headless service\" (no virtual "
	       "IP), which is useful when direct endpoint connections are preferred and proxying is "
	       "not required.  Only applies to types ClusterIP, NodePort, and LoadBalancer. If this "
	       "field is specified when creating a Service of type ExternalName, creation will fail. "
	       "This field will be wiped when updating a Service to type ExternalName. More info: "
	       "https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies",
	       CALL(cluster_ip)),
	COLUMN("External-IP", "string", 0,
	       "externalIPs is a list of IP addresses for which nodes in the cluster will also accept "
	       "traffic for this service.  These IPs are not managed by Kubernetes.  The user is "
	       "responsible for ensuring that traffic arrives at a node with this IP.  A common "
	       "example is external load-balancers that are not part of the Kubernetes system.",
	       CALL(external_ip)),
	COLUMN("Port(s)", "string", 0,
	       "The list of ports that are exposed by this service. More info: "
	       "https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies",
	       CALL(service_ports)),
	AGE,
	COLUMN("Selector", "string", 1,
	       "Route service traffic to pods with label keys and values matching this selector. If "
	       "empty or not present, the service is assumed to have an external process managing its "
	       "endpoints, which Kubernetes will not modify. Only applies to types ClusterIP, "
	       "NodePort, and LoadBalancer. Ignored if type is ExternalName. More info: "
	       "https://kubernetes.io/docs/concepts/services-networking/service/",
	       LABELS(spec, selector)),
};

static void add_addresses(struct cell_few *f, struct val addresses, int64_t port)
{
	size_t i = 0;
	for (; i < val_len(addresses) && !cell_few_is_full(f); i++) {
		str ip = val_str(val_at(addresses, i), ip);
		if (port >= 0)
			ip = arena_printf(f->arena, str_chr(ip, ':') >= 0 ? "[" STR_FMT "]:%lld" : STR_FMT ":%lld", STR_ARG(ip),
					  (long long)port);
		cell_few_add(f, ip);
	}
	/* There can be many addresses, times many ports: those that are not shown are not visited. */
	f->count += val_len(addresses) - i;
}

static struct val endpoint_addresses(const struct row *row)
{
	struct val subsets = val_get(row->object, subsets);
	struct cell_few f = { .arena = row->arena, .max = 3 };

	if (val_len(subsets) == 0)
		return VAL_LIT("<none>");
	VAL_EACH(s, subsets) {
		struct val ports = val_get(*s, ports), addresses = val_get(*s, addresses);
		if (val_len(ports) == 0)
			add_addresses(&f, addresses, -1);
		VAL_EACH(p, ports)
			add_addresses(&f, addresses, val_int(*p, port));
	}
	return val_of_str(cell_few_text(&f, STR_NONE));
}

static const struct column endpoints[] = {
	NAME,
	COLUMN("Endpoints", "string", 0,
	       "The set of all endpoints is the union of all subsets. Addresses are placed into "
	       "subsets according to the IPs they share. A single address with multiple ports, some "
	       "of which are ready and some of which are not (because they come from different "
	       "containers) will result in the address being displayed in different subsets for the "
	       "different ports. No address will appear in both Addresses and NotReadyAddresses in "
	       "the same subset. Sets of addresses and ports that comprise a service.",
	       CALL(endpoint_addresses)),
	AGE,
};

/* ---- Node ---- */

static struct val node_status(const struct row *row)
{
	const char *state = "Unknown";
	VAL_EACH(c, val_get(row->object, status, conditions))
		if (str_eq(val_str(*c, type), STR("Ready")))
			state = str_eq(val_str(*c, status), STR("True")) ? "Ready" : "NotReady";
	return cell_printf(row, "%s%s", state, val_bool(row->object, spec, unschedulable) ? ",SchedulingDisabled" : "");
}

static struct val node_roles(const struct row *row)
{
	const str prefix = STR("node-role.kubernetes.io/");
	struct val labels = val_get(row->object, metadata, labels);
	str *roles = ARENA_ARRAY(row->arena, str, val_len(labels));
	size_t n = 0;

	VAL_EACH_MEMBER(m, labels) {
		str key = atom_str(m->key);
		str role = str_starts(key, prefix)		    ? str_skip(key, prefix.n) :
			   str_eq(key, STR("kubernetes.io/role")) ? val_as_str(m->val) :
								      STR_NONE;
		if (role.n)
			roles[n++] = role;
	}
	return n ? val_of_str(cell_sorted_set(row->arena, roles, n)) : VAL_LIT("<none>");
}

static struct val node_address(const struct row *row, str type)
{
	VAL_EACH(a, val_get(row->object, status, addresses))
		if (str_eq(val_str(*a, type), type))
			return val_of_str(val_str(*a, address));
	return VAL_LIT("<none>");
}

static struct val node_internal_ip(const struct row *row) { return node_address(row, STR("InternalIP")); }
static struct val node_external_ip(const struct row *row) { return node_address(row, STR("ExternalIP")); }

static struct val node_kernel(const struct row *row)
{
	struct val info = val_get(row->object, status, nodeInfo);
	str kernel = cell_text_or(val_get(info, kernelVersion), STR("<unknown>")), machine = val_str(info, architecture);
	return machine.n ? cell_printf(row, STR_FMT " (" STR_FMT ")", STR_ARG(kernel), STR_ARG(machine)) : val_of_str(kernel);
}

#define NODE_ADDRESSES                                                                          \
	"List of addresses reachable to the node. Queried from cloud provider, if available. "  \
	"More info: https://kubernetes.io/docs/reference/node/node-status/#addresses Note: "    \
	"This field is declared as mergeable, but the merge key is not sufficiently unique, "   \
	"which can cause data corruption when it is merged. Callers should instead use a "      \
	"full-replacement patch. See https://pr.k8s.io/79391 for an example. Consumers should " \
	"assume that addresses can change during the lifetime of a Node. However, there are "   \
	"some exceptions where this may not be possible, such as Pods that inherit a Node's "   \
	"address in its own status or consumers of the downward API (status.hostIP)."

static const struct column node[] = {
	NAME,
	COLUMN("Status", "string", 0, "The status of the node", CALL(node_status)),
	COLUMN("Roles", "string", 0, "The roles of the node", CALL(node_roles)),
	AGE,
	COLUMN("Version", "string", 0,
	       "Kubelet Version reported by the node.",
	       TEXT(status, nodeInfo, kubeletVersion)),
	COLUMN("Internal-IP", "string", 1, NODE_ADDRESSES, CALL(node_internal_ip)),
	COLUMN("External-IP", "string", 1, NODE_ADDRESSES, CALL(node_external_ip)),
	COLUMN("OS-Image", "string", 1,
	       "OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux 7 (wheezy)).",
	       TEXT(status, nodeInfo, osImage), OR("<unknown>")),
	COLUMN("Kernel-Version", "string", 1,
	       "Kernel Version reported by the node from 'uname -r' (e.g. 3.16.0-0.bpo.4-amd64).",
	       CALL(node_kernel)),
	COLUMN("Container-Runtime", "string", 1,
	       "ContainerRuntime Version reported by the node through runtime remote API (e.g. "
	       "containerd://1.4.2).",
	       TEXT(status, nodeInfo, containerRuntimeVersion), OR("<unknown>")),
};

/* ---- Event, in the form of either of its groups ---- */

static struct val event_field(const struct row *row, atom core, atom other)
{
	struct val v = val_member(row->object, core);
	return val_exists(v) ? v : val_member(row->object, other);
}

static str event_first_seen(const struct row *row)
{
	struct val first = event_field(row, A_firstTimestamp, A_deprecatedFirstTimestamp);
	return cell_since(row, val_is_nil(first) ? val_get(row->object, eventTime) : first);
}

static struct val first_seen(const struct row *row) { return val_of_str(event_first_seen(row)); }

static struct val last_seen(const struct row *row)
{
	struct val series = val_get(row->object, series), last = event_field(row, A_lastTimestamp, A_deprecatedLastTimestamp);
	if (val_exists(series))
		return val_of_str(cell_since(row, val_get(series, lastObservedTime)));
	return val_of_str(val_is_nil(last) ? event_first_seen(row) : cell_since(row, last));
}

static struct val event_count(const struct row *row)
{
	struct val series = val_get(row->object, series);
	int64_t count = val_as_int(event_field(row, A_count, A_deprecatedCount));
	return val_of_int(val_exists(series) ? val_int(series, count) : count ? count : 1);
}

static struct val event_object(const struct row *row)
{
	struct val object = event_field(row, A_involvedObject, A_regarding);
	str name = val_str(object, name), kind = cell_lower(row->arena, val_str(object, kind));
	return name.n ? cell_printf(row, STR_FMT "/" STR_FMT, STR_ARG(kind), STR_ARG(name)) : val_of_str(kind);
}

static struct val event_subobject(const struct row *row)
{
	return val_of_str(val_str(event_field(row, A_involvedObject, A_regarding), fieldPath));
}

static struct val event_source(const struct row *row)
{
	struct val source = event_field(row, A_source, A_deprecatedSource);
	struct val reporter = event_field(row, A_reportingComponent, A_reportingController);
	str component = cell_text_or(val_get(source, component), val_as_str(reporter));
	str host = cell_text_or(val_get(source, host), val_str(row->object, reportingInstance));
	return host.n ? cell_printf(row, STR_FMT ", " STR_FMT, STR_ARG(component), STR_ARG(host)) : val_of_str(component);
}

static struct val event_message(const struct row *row) { return val_of_str(str_trim(val_as_str(event_field(row, A_message, A_note)))); }

static const struct column event[] = {
	COLUMN("Last Seen", "string", 0,
	       "The time at which the most recent occurrence of this event was recorded.",
	       CALL(last_seen)),
	COLUMN("Type", "string", 0,
	       "Type of this event (Normal, Warning), new types could be added in the future",
	       TEXT(type)),
	COLUMN("Reason", "string", 0,
	       "This should be a short, machine understandable string that gives the reason for the "
	       "transition into the object's current status.",
	       TEXT(reason)),
	COLUMN("Object", "string", 0, "The object that this event is about.", CALL(event_object)),
	COLUMN("Subobject", "string", 1,
	       "If referring to a piece of an object instead of an entire object, this string should "
	       "contain a valid JSON/Go field access statement, such as "
	       "desiredState.manifest.containers[2]. For example, if the object reference is to a "
	       "container within a pod, this would take on a value like: \"spec.containers{name}\" "
	       "(where \"name\" refers to the name of the container that triggered the event) or if "
	       "no container name is specified \"spec.containers[2]\" (container with index 2 in this "
	       "pod). This syntax is chosen only to have some well-defined way of referencing a part "
	       "of an object.",
	       CALL(event_subobject)),
	COLUMN("Source", "string", 1,
	       "The component reporting this event. Should be a short machine understandable string.",
	       CALL(event_source)),
	COLUMN("Message", "string", 0,
	       "A human-readable description of the status of this operation.",
	       CALL(event_message)),
	COLUMN("First Seen", "string", 1,
	       "The time at which the event was first recorded. (Time of server receipt is in "
	       "TypeMeta.)",
	       CALL(first_seen)),
	COLUMN("Count", "string", 1, "The number of times this event has occurred.", CALL(event_count)),
	COLUMN_WITH_FORMAT("Name", "string", "name", 1, NAME_TEXT, TEXT(metadata, name)),
};

/* ---- ResourceQuota ---- */

/* "name: used/hard" of all resources of one side: limits, or the others. */
static struct val quota(const struct row *row, bool limits)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	CLEANUP(map_done) struct map used = MAP_INIT;

	VAL_EACH_MEMBER(m, val_get(row->object, status, used))
		map_put(&used, atom_str(m->key), (void *)&m->val);
	VAL_EACH_MEMBER(m, val_get(row->object, status, hard)) {
		str name = atom_str(m->key);
		if (str_starts(name, STR("limits.")) != limits)
			continue;
		const struct val *is = map_get(&used, name);
		buf_addf(&b, "%s" STR_FMT ": " STR_FMT "/" STR_FMT, b.n ? ", " : "", STR_ARG(name),
			 STR_ARG(cell_text_or(is ? *is : VAL_EMPTY, STR("0"))), STR_ARG(val_as_str(m->val)));
	}
	return val_of_str(arena_str(row->arena, buf_str(&b)));
}

static struct val quota_requests(const struct row *row) { return quota(row, false); }
static struct val quota_limits(const struct row *row) { return quota(row, true); }

static const struct column resource_quota[] = {
	NAME,
	COLUMN("Request", "string", 0,
	       "Request represents a minimum amount of cpu/memory that a container may consume.",
	       CALL(quota_requests)),
	COLUMN("Limit", "string", 0,
	       "Limits control the maximum amount of cpu/memory that a container may use independent "
	       "of contention on the node.",
	       CALL(quota_limits)),
	AGE,
};

/* ---- small ones ---- */

static const struct column namespace[] = { NAME, COLUMN("Status", "string", 0, "The status of the namespace", TEXT(status, phase)), AGE };

static const struct column secret[] = {
	NAME,
	COLUMN("Type", "string", 0,
	       "Used to facilitate programmatic handling of secret data. More info: "
	       "https://kubernetes.io/docs/concepts/configuration/secret/#secret-types",
	       TEXT(type)),
	COLUMN("Data", "string", 0,
	       "Data contains the secret data. Each key must consist of alphanumeric characters, '-', "
	       "'_' or '.'. The serialized form of the secret data is a base64 encoded string, "
	       "representing the arbitrary (possibly non-string) data value here. Described in "
	       "https://tools.ietf.org/html/rfc4648#section-4",
	       COUNT(data)),
	AGE,
};

static const struct column service_account[] = { NAME, AGE };

static struct val config_map_data(const struct row *row)
{
	return val_of_int((int64_t)val_len(val_get(row->object, data)) + val_len(val_get(row->object, binaryData)));
}

static const struct column config_map[] = {
	NAME,
	COLUMN("Data", "string", 0,
	       "Data contains the configuration data. Each key must consist of alphanumeric "
	       "characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the "
	       "BinaryData field. The keys stored in Data must not overlap with the keys in the "
	       "BinaryData field, this is enforced during validation process.",
	       CALL(config_map_data)),
	AGE,
};

static struct val component_condition(const struct row *row)
{
	return cell_condition(val_get(row->object, conditions), STR("Healthy"));
}

static struct val component_status(const struct row *row)
{
	struct val c = component_condition(row);
	if (!val_exists(c))
		return VAL_LIT("Unknown");
	return str_eq(val_str(c, status), STR("True")) ? VAL_LIT("Healthy") : VAL_LIT("Unhealthy");
}

static struct val component_message(const struct row *row) { return val_of_str(val_str(component_condition(row), message)); }
static struct val component_error(const struct row *row) { return val_of_str(val_str(component_condition(row), error)); }

static const struct column component[] = {
	NAME,
	COLUMN("Status", "string", 0, "Whether the component is healthy", CALL(component_status)),
	COLUMN("Message", "string", 0, "What the component says", CALL(component_message)),
	COLUMN("Error", "string", 0, "What went wrong", CALL(component_error)),
};

static const struct column status[] = {
	COLUMN("Status", "string", 0, "Success or Failure", TEXT(status)),
	COLUMN("Reason", "string", 0, "Why, in a word", TEXT(reason)),
	COLUMN("Message", "string", 0, "Why, in a sentence", TEXT(message)),
};

static const struct table tables_core_all[] = {
	{ .group = STR_INIT(""), .kind = STR_INIT("Pod"), .columns = pod_columns, .n = POD_COLUMNS, .prepare = pod_prepare,
	  .conditions = pod_conditions },
	TABLE("", "PodTemplate", pod_template),
	TABLE("", "ReplicationController", replication_controller),
	TABLE("", "Service", service),
	TABLE("", "Endpoints", endpoints),
	TABLE("", "Node", node),
	TABLE("", "Event", event),
	TABLE("events.k8s.io", "Event", event),
	TABLE("", "Namespace", namespace),
	TABLE("", "Secret", secret),
	TABLE("", "ServiceAccount", service_account),
	TABLE("", "ComponentStatus", component),
	TABLE("", "ConfigMap", config_map),
	TABLE("", "ResourceQuota", resource_quota),
	TABLE("", "Status", status),
};

TABLE_SET(tables_core);
