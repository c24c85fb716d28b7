/* The downward API: what a pod can learn about itself, as text. */
#include <math.h>

#include "base/buf.h"
#include "codec/atoms.h"
#include "kubelet/cri_config_priv.h"
#include "machinery/ip.h"
#include "machinery/names.h"
#include "machinery/resources.h"

enum { FIELD_TEXT_MAX = 4 << 20 };

/* ---- fields ---- */

/* metadata.labels['a']: the path before the subscript, and what is in it. */
static bool split_subscript(str path, str *ret_path, str *ret_key)
{
	ptrdiff_t open = str_find(path, STR("['"));

	if (!str_ends(path, STR("']")) || open <= 0 || (size_t)open + 4 > path.n)
		return false;
	*ret_path = str_head(path, (size_t)open);
	*ret_key = str_skip(str_head(path, path.n - 2), (size_t)open + 2);
	return true;
}

static int subscript_value(struct arena *a, struct val pod, str whole, str path, str key, str *ret, struct err *err)
{
	bool label = str_eq(path, STR("metadata.labels"));
	struct name_errors e;

	if (!label && !str_eq(path, STR("metadata.annotations")))
		return err_set(err, ERR_INVALID, "field label does not support subscript: " STR_FMT, STR_ARG(whole));
	if (name_check_label_key(label ? key : cri_config_lower(a, key), &e)) {
		str why = name_errors_join(a, &e, ";");
		return err_set(err, ERR_INVALID, "invalid key subscript in " STR_FMT ": " STR_FMT, STR_ARG(whole), STR_ARG(why));
	}
	*ret = val_as_str(val_find(label ? val_get(pod, metadata, labels) : val_get(pod, metadata, annotations), key));
	return 0;
}

/* key="value", a line each, sorted as typed trees have them. */
static str map_text(struct arena *a, struct val map)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FIELD_TEXT_MAX);

	VAL_EACH_MEMBER(m, map) {
		if (b.n)
			buf_addc(&b, '\n');
		buf_add(&b, atom_str(m->key));
		buf_addc(&b, '=');
		buf_add_quoted(&b, val_as_str(m->val));
	}
	return arena_str(a, buf_str(&b));
}

static str first_of_family(struct arena *a, struct val pod_ips, bool v4)
{
	char text[IP_TEXT_MAX];

	VAL_EACH(i, pod_ips) {
		struct ip ip;
		if (ip_parse(val_str(*i, ip), &ip, NULL) && ip_is_v4(&ip) == v4)
			return arena_str(a, ip_format(&ip, text));
	}
	return STR_NONE;
}

static str with_comma(struct arena *a, str x, str y)
{
	return !x.n ? y : !y.n ? x : arena_printf(a, STR_FMT "," STR_FMT, STR_ARG(x), STR_ARG(y));
}

/* The family of the node's first address comes first; one address of each. */
static str address_value(const struct kubelet_node *n, struct arena *a, struct val pod_ips, bool of_pod, bool all)
{
	bool v4 = n->address.n || !n->address6.n;
	str first = of_pod ? first_of_family(a, pod_ips, v4) : v4 ? n->address : n->address6;
	str second = of_pod ? first_of_family(a, pod_ips, !v4) : v4 ? n->address6 : STR_NONE;

	return all ? with_comma(a, first, second) : first.n ? first : second;
}

int pod_field_value(const struct kubelet_node *n, struct arena *a, struct val pod, struct val pod_ips, struct val selector, str *ret,
		    struct err *err)
{
	str version = val_str(selector, apiVersion), path = val_str(selector, fieldPath), base, key;

	if (!str_eq(version, STR("v1")))
		return err_set(err, ERR_INVALID, "unsupported pod version: " STR_FMT, STR_ARG(version));
	if (split_subscript(path, &base, &key))
		return subscript_value(a, pod, path, base, key, ret, err);
	if (str_eq(path, STR("metadata.annotations")))
		*ret = map_text(a, val_get(pod, metadata, annotations));
	else if (str_eq(path, STR("metadata.labels")))
		*ret = map_text(a, val_get(pod, metadata, labels));
	else if (str_eq(path, STR("metadata.name")))
		*ret = val_str(pod, metadata, name);
	else if (str_eq(path, STR("metadata.namespace")))
		*ret = val_str(pod, metadata, namespace);
	else if (str_eq(path, STR("metadata.uid")))
		*ret = val_str(pod, metadata, uid);
	else if (str_eq(path, STR("spec.nodeName")) || str_eq(path, STR("spec.host")))
		*ret = val_str(pod, spec, nodeName);
	else if (str_eq(path, STR("spec.serviceAccountName")))
		*ret = val_str(pod, spec, serviceAccountName);
	else if (str_eq(path, STR("status.hostIP")) || str_eq(path, STR("status.hostIPs")))
		*ret = address_value(n, a, pod_ips, false, str_ends(path, STR("s")));
	else if (str_eq(path, STR("status.podIP")) || str_eq(path, STR("status.podIPs")))
		*ret = address_value(n, a, pod_ips, true, str_ends(path, STR("s")));
	else if (str_eq(path, STR("spec.restartPolicy")) || str_eq(path, STR("spec.schedulerName")) || str_eq(path, STR("status.phase")))
		return err_set(err, ERR_INVALID, "unsupported fieldPath: " STR_FMT, STR_ARG(path));
	else
		return err_set(err, ERR_INVALID, "field label not supported: " STR_FMT, STR_ARG(path));
	return 0;
}

/* ---- resources ---- */

/* Rounded up to whole divisors. */
static str divided(struct arena *a, struct quantity q, struct quantity divisor, bool milli)
{
	double x = (double)(milli ? quantity_milli(q) : quantity_value(q));
	double y = (double)(milli ? quantity_milli(divisor) : quantity_value(divisor));
	double whole = ceil(x / y);

	return arena_printf(a, "%lld", whole >= 0x1p63 ? (long long)INT64_MAX : whole < -0x1p63 ? (long long)INT64_MIN : (long long)whole);
}

static bool is_default_of_node(str name)
{
	return str_eq(name, STR("cpu")) || str_eq(name, STR("memory")) || str_eq(name, STR("ephemeral-storage"));
}

/* What a limit that is not given, or is 0, counts as: the pod's, or all that the node has for pods. */
static struct quantity limit_default(const struct kubelet_node *n, struct val pod, str name)
{
	struct val of_node = val_find(n->allocatable, name);
	struct quantity of_pod = resource_is_pod_level(name) ? quantity_of(val_find(val_get(pod, spec, resources, limits), name)) :
							       (struct quantity){ 0 };

	if (of_pod.nanos)
		return of_pod;
	if (val_exists(of_node))
		return quantity_of(of_node);
	if (str_eq(name, STR("cpu")))
		return quantity_of_milli(n->cpus_milli, QUANTITY_DECIMAL_SI);
	return quantity_of_int(str_eq(name, STR("memory")) ? n->memory_bytes : 0, QUANTITY_BINARY_SI);
}

/* The container that a selector names; *ret_defaults: whether the node's amounts are its limits, which init containers do not get. */
static bool find_container(struct val pod, str name, struct val *ret, bool *ret_defaults)
{
	const struct val lists[2] = { val_get(pod, spec, containers), val_get(pod, spec, initContainers) };

	for (int i = 0; i < 2; i++)
		VAL_EACH(c, lists[i])
			if (str_eq(val_str(*c, name), name)) {
				*ret = *c;
				*ret_defaults = i == 0;
				return true;
			}
	return false;
}

int container_resource_value(const struct kubelet_node *n, struct arena *a, struct val pod, struct val container, struct val selector,
			     str *ret, struct err *err)
{
	str whole = val_str(selector, resource), other = val_str(selector, containerName), which, name;
	struct quantity divisor = quantity_of(val_get(selector, divisor)), q;
	bool defaults = true;

	if (other.n && !find_container(pod, other, &container, &defaults))
		return err_set(err, ERR_NOT_FOUND, "container " STR_FMT " not found", STR_ARG(other));
	bool split = str_cut(whole, '.', &which, &name), limit = str_eq(which, STR("limits"));
	if (!split || (!limit && !str_eq(which, STR("requests"))) || (!is_default_of_node(name) && !resource_is_huge_page(name)))
		return err_set(err, ERR_INVALID, "unsupported container resource : " STR_FMT, STR_ARG(whole));
	if (!divisor.nanos)
		divisor = quantity_of_int(1, QUANTITY_DECIMAL_SI);
	q = quantity_of(val_find(limit ? val_get(container, resources, limits) : val_get(container, resources, requests), name));
	if (limit && !q.nanos && defaults && is_default_of_node(name))
		q = limit_default(n, pod, name);
	*ret = divided(a, q, divisor, str_eq(name, STR("cpu")));
	return 0;
}
