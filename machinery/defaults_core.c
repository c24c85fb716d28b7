/*
 * Defaults of the kinds of core/v1 besides pods, workloads, services and volumes, and where two forms of a field are
 * made one.
 */
#include "base/encoding.h"
#include "codec/atoms.h"
#include "machinery/validate_groups.h"

struct val default_within(struct arena *a, struct val object, atom key,
			  struct val (*defaults)(struct arena *a, struct val part))
{
	struct val part = val_member(object, key);
	if (val_is_nil(part))
		return object;
	return val_put(a, object, key, val_is(part, VAL_LIST) ? edit_items(a, part, defaults) : defaults(a, part));
}

struct val default_namespace(struct arena *a, struct val namespace)
{
	static const str label = STR_INIT("kubernetes.io/metadata.name");
	str name = val_str(namespace, metadata, name);

	if (name.n) {
		struct val labels = val_put(a, val_get(namespace, metadata, labels), atom_make(a, label), VAL_STR(name));
		namespace = val_with(a, namespace, labels, metadata, labels);
	}
	if (val_str(namespace, status, phase).n == 0)
		namespace = val_with(a, namespace, VAL_LIT("Active"), status, phase);
	return namespace;
}

/* stringData is only a way to write data: it wins there and is then gone. */
struct val default_secret(struct arena *a, struct val secret)
{
	struct val data = val_get(secret, data), texts = val_get(secret, stringData);

	VAL_EACH_MEMBER(m, texts) {
		str text = val_as_str(m->val);
		size_t n = base64_encoded_len(text.n);
		char *encoded = ARENA_ARRAY(a, char, n + 1);
		base64_encode(encoded, text);
		data = val_put(a, data, m->key, VAL_STR(str_span(encoded, n)));
	}
	if (val_len(texts))
		secret = val_with(a, val_without(a, secret, stringData), data, data);
	return default_member(a, secret, A_type, VAL_LIT("Opaque"));
}

/* Adds what only other has. */
static struct val merged(struct arena *a, struct val list, struct val other)
{
	VAL_EACH_MEMBER(m, other)
		list = default_member(a, list, m->key, m->val);
	return list;
}

static struct val default_limit_item(struct arena *a, struct val item)
{
	static const atom lists[] = { A_max, A_min, A_default, A_defaultRequest, A_maxLimitRequestRatio };

	if (str_eq(val_str(item, type), STR("Container"))) {
		struct val limits = merged(a, val_get(item, default), val_get(item, max));
		struct val requests = merged(a, merged(a, val_get(item, defaultRequest), limits), val_get(item, min));
		if (val_len(limits))
			item = val_with(a, item, limits, default);
		if (val_len(requests))
			item = val_with(a, item, requests, defaultRequest);
	}
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		item = default_within(a, item, lists[i], default_resource_list);
	return item;
}

static struct val default_limit_spec(struct arena *a, struct val spec)
{
	return default_within(a, spec, A_limits, default_limit_item);
}

struct val default_limit_range(struct arena *a, struct val range)
{
	return default_within(a, range, A_spec, default_limit_spec);
}

static struct val default_quota_lists(struct arena *a, struct val part)
{
	part = default_within(a, part, A_hard, default_resource_list);
	return default_within(a, part, A_used, default_resource_list);
}

struct val default_resource_quota(struct arena *a, struct val quota)
{
	quota = default_within(a, quota, A_spec, default_quota_lists);
	return default_within(a, quota, A_status, default_quota_lists);
}

static struct val default_node_status(struct arena *a, struct val status)
{
	if (val_has(status, capacity))
		status = default_member(a, status, A_allocatable, val_get(status, capacity));
	status = default_within(a, status, A_capacity, default_resource_list);
	return default_within(a, status, A_allocatable, default_resource_list);
}

/* podCIDR is the first of podCIDRs; clients that know only the old field win. */
static struct val default_node_spec(struct arena *a, struct val spec)
{
	str first = val_as_str(val_at(val_get(spec, podCIDRs), 0)), block = val_str(spec, podCIDR);

	if (block.n && !str_eq(block, first))
		return val_with(a, spec, LIST(a, VAL_STR(block)), podCIDRs);
	return first.n ? val_with(a, spec, VAL_STR(first), podCIDR) : spec;
}

struct val default_node(struct arena *a, struct val node)
{
	node = default_within(a, node, A_spec, default_node_spec);
	return default_within(a, node, A_status, default_node_status);
}

static struct val default_endpoint_port(struct arena *a, struct val port)
{
	return default_member(a, port, A_protocol, VAL_LIT("TCP"));
}

static struct val default_subset(struct arena *a, struct val subset)
{
	return default_within(a, subset, A_ports, default_endpoint_port);
}

struct val default_endpoints(struct arena *a, struct val endpoints)
{
	return default_within(a, endpoints, A_subsets, default_subset);
}
