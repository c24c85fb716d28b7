/* Nodes: what they are, how they are, and what runs there. */
#include <stdlib.h>

#include "codec/types.h"
#include "kubectl/describe.h"
#include "machinery/resources.h"

/* ---- parts ---- */

static int by_text(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

static str roles_of(struct ktl *k, struct val labels)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	str *roles = ARENA_ARRAY(&k->arena, str, val_len(labels) + 1), prefix = STR("node-role.kubernetes.io/");
	size_t n = 0;
	VAL_EACH_MEMBER(m, labels) {
		str key = atom_str(m->key), value = val_as_str(m->val);
		if (str_starts(key, prefix) && key.n > prefix.n)
			roles[n++] = str_skip(key, prefix.n);
		else if (str_eq(key, STR("kubernetes.io/role")) && value.n)
			roles[n++] = value;
	}
	qsort(roles, n, sizeof(*roles), by_text);
	for (size_t i = 0; i < n; i++)
		if (!i || !str_eq(roles[i], roles[i - 1]))
			buf_addf(&b, "%s" STR_FMT, i ? "," : "", STR_ARG(roles[i]));
	return arena_str(&k->arena, buf_str(&b));
}

static int by_effect(const void *x, const void *y)
{
	const struct val *a = x, *b = y;
	int r = str_cmp(val_str(*a, effect), val_str(*b, effect));
	return r ? r : str_cmp(val_str(*a, key), val_str(*b, key));
}

static void say_taints(struct ktl_page *p, struct val taints)
{
	bool first = true;
	ktl_say(p, 0, val_len(taints) ? "Taints:\t" : "Taints:\t<none>\n");
	VAL_EACH(t, ktl_sorted_list(p->k, taints, by_effect)) {
		str value = val_str(*t, value), effect = val_str(*t, effect);
		ktl_say(p, 0, "%s" STR_FMT "%s" STR_FMT "%s" STR_FMT "\n", first ? "" : "\t", STR_ARG(val_str(*t, key)), value.n ? "=" : "", STR_ARG(value),
			effect.n ? ":" : "", STR_ARG(effect));
		first = false;
	}
}

static void say_lease(struct ktl_page *p, str name)
{
	struct ktl *k = p->k;
	struct ktl_info lease = { .kind = ktl_kind_of_type(k, TYPE(coordination_v1, Lease)), .namespace = STR("kube-node-lease"), .name = name };
	if (ktl_fetch(k, &lease) < 0) {
		ktl_say(p, 0, "Lease:\tFailed to get lease: " STR_FMT "\n", STR_ARG(ktl_last_failure(k)->text));
		ktl_forgive(k);
		return;
	}
	struct val spec = val_get(lease.object, spec);
	str holder = val_str(spec, holderIdentity), acquired = val_str(spec, acquireTime), renewed = val_str(spec, renewTime);
	ktl_say(p, 0, "Lease:\n");
	ktl_say(p, 1, "HolderIdentity:\t" STR_FMT "\n", STR_ARG(holder.n ? holder : STR("<unset>")));
	ktl_say(p, 1, "AcquireTime:\t" STR_FMT "\n", STR_ARG(acquired.n ? ktl_date(k, acquired) : STR("<unset>")));
	ktl_say(p, 1, "RenewTime:\t" STR_FMT "\n", STR_ARG(renewed.n ? ktl_date(k, renewed) : STR("<unset>")));
}

static void say_amounts(struct ktl_page *p, const char *title, struct val map)
{
	if (val_len(map))
		ktl_say(p, 0, "%s:\n", title);
	VAL_EACH_MEMBER(m, map)
		ktl_say(p, 1, STR_FMT ":\t" STR_FMT "\n", STR_ARG(atom_str(m->key)), STR_ARG(ktl_plain(p->k, m->val)));
}

static void say_system(struct ktl_page *p, struct val info)
{
	static const struct { const char *title; atom field; } lines[] = {
		{ "Machine ID", A_machineID }, { "System UUID", A_systemUUID }, { "Boot ID", A_bootID }, { "Kernel Version", A_kernelVersion },
		{ "OS Image", A_osImage }, { "Operating System", A_operatingSystem }, { "Architecture", A_architecture },
		{ "Container Runtime Version", A_containerRuntimeVersion }, { "Kubelet Version", A_kubeletVersion },
	};
	ktl_say(p, 0, "System Info:\n");
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		ktl_say(p, 1, "%s:\t" STR_FMT "\n", lines[i].title, STR_ARG(val_as_str(val_member(info, lines[i].field))));
}

/* ---- what its pods ask for ---- */

struct amounts {
	struct val requests, limits; /* maps, sorted */
};

static struct val add_maps(struct arena *a, struct val x, struct val y)
{
	VAL_EACH_MEMBER(m, y) {
		char text[QUANTITY_TEXT_MAX];
		struct val old = val_member(x, m->key);
		struct quantity sum = val_exists(old) ? quantity_add(quantity_of(old), quantity_of(m->val)) : quantity_of(m->val);
		x = val_put(a, x, m->key, VAL_STR(arena_str(a, quantity_format(sum, text))));
	}
	return val_sorted(a, x);
}

/* Of a pod as a whole, where it says so; of its containers together, with what a pod costs itself. */
static struct amounts amounts_of(struct ktl *k, struct val pod)
{
	struct arena *a = &k->arena;
	struct val spec = val_get(pod, spec), overhead = val_get(spec, overhead);
	struct amounts s = { pod_container_resources(a, spec, A_requests), pod_container_resources(a, spec, A_limits) };
	VAL_EACH_MEMBER(m, val_get(spec, resources, requests))
		s.requests = val_put(a, s.requests, m->key, m->val);
	VAL_EACH_MEMBER(m, val_get(spec, resources, limits))
		s.limits = val_put(a, s.limits, m->key, m->val);
	if (val_len(overhead)) {
		s.requests = add_maps(a, s.requests, overhead);
		VAL_EACH_MEMBER(m, overhead)
			if (val_exists(val_member(s.limits, m->key)))
				s.limits = add_maps(a, s.limits, OBJECT(a, { m->key, m->val }));
	}
	return s;
}

/* "250m (12%)" */
static str share(struct ktl *k, struct val map, struct val allocatable, str name)
{
	char text[QUANTITY_TEXT_MAX];
	bool milli = str_eq(name, STR("cpu"));
	struct quantity q = quantity_of(val_find(map, name)), all = quantity_of(val_find(allocatable, name));
	int64_t part = milli ? quantity_milli(q) : quantity_value(q), whole = milli ? quantity_milli(all) : quantity_value(all);
	str shown = quantity_format(q, text);
	return arena_printf(&k->arena, STR_FMT " (%lld%%)", STR_ARG(shown), whole ? (long long)((double)part / (double)whole * 100) : 0LL);
}

static void say_pods(struct ktl_page *p, struct val pods, struct val allocatable, struct amounts *total)
{
	struct ktl *k = p->k;
	ktl_say(p, 0, "Non-terminated Pods:\t(%u in total)\n", val_len(pods));
	ktl_say(p, 1, "Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge\n");
	ktl_say(p, 1, "---------\t----\t\t------------\t----------\t---------------\t-------------\t---\n");
	VAL_EACH(pod, pods) {
		struct amounts s = amounts_of(k, *pod);
		ktl_say(p, 1, STR_FMT "\t" STR_FMT "\t\t" STR_FMT "\t" STR_FMT "\t" STR_FMT "\t" STR_FMT "\t" STR_FMT "\n",
			STR_ARG(val_str(*pod, metadata, namespace)), STR_ARG(val_str(*pod, metadata, name)),
			STR_ARG(share(k, s.requests, allocatable, STR("cpu"))), STR_ARG(share(k, s.limits, allocatable, STR("cpu"))),
			STR_ARG(share(k, s.requests, allocatable, STR("memory"))), STR_ARG(share(k, s.limits, allocatable, STR("memory"))),
			STR_ARG(ktl_age(k, val_str(*pod, metadata, creationTimestamp))));
		total->requests = add_maps(&k->arena, total->requests, s.requests);
		total->limits = add_maps(&k->arena, total->limits, s.limits);
	}
}

static void say_total(struct ktl_page *p, const struct amounts *total, struct val allocatable)
{
	static const char *const always[] = { "cpu", "memory", "ephemeral-storage" };
	struct ktl *k = p->k;
	ktl_say(p, 0, "Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)\n");
	ktl_say(p, 1, "Resource\tRequests\tLimits\n");
	ktl_say(p, 1, "--------\t--------\t------\n");
	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		ktl_say(p, 1, "%s\t" STR_FMT "\t" STR_FMT "\n", always[i], STR_ARG(share(k, total->requests, allocatable, str_of(always[i]))),
			STR_ARG(share(k, total->limits, allocatable, str_of(always[i]))));
	VAL_EACH_MEMBER(m, allocatable) {
		str name = atom_str(m->key);
		if (resource_is_huge_page(name))
			ktl_say(p, 1, STR_FMT "\t" STR_FMT "\t" STR_FMT "\n", STR_ARG(name), STR_ARG(share(k, total->requests, allocatable, name)),
				STR_ARG(share(k, total->limits, allocatable, name)));
	}
	VAL_EACH_MEMBER(m, allocatable) {
		str name = atom_str(m->key), requests = val_as_str(val_member(total->requests, m->key)), limits = val_as_str(val_member(total->limits, m->key));
		if (!resource_is_of_containers(name) && !resource_is_huge_page(name) && !str_eq(name, STR("pods")))
			ktl_say(p, 1, STR_FMT "\t" STR_FMT "\t" STR_FMT "\n", STR_ARG(name), STR_ARG(requests.n ? requests : STR("0")),
				STR_ARG(limits.n ? limits : STR("0")));
	}
}

static int say_allocated(struct ktl_page *p, struct val node)
{
	struct ktl *k = p->k;
	struct val pods, allocatable = val_get(node, status, allocatable);
	struct amounts total = { VAL_EMPTY_OBJECT, VAL_EMPTY_OBJECT };
	str fields = arena_printf(&k->arena, "spec.nodeName=" STR_FMT ",status.phase!=Failed,status.phase!=Succeeded", STR_ARG(val_str(node, metadata, name)));
	if (ktl_list(k, ktl_kind_of_type(k, TYPE(core_v1, Pod)), STR_NONE, STR_NONE, fields, &pods) < 0) {
		if (!ktl_failed_because(k, "Forbidden"))
			return -1;
		ktl_forgive(k);
		ktl_say(p, 0, "Pods:\tnot authorized\n");
		return 0;
	}
	if (!val_len(allocatable))
		allocatable = val_get(node, status, capacity);
	say_pods(p, pods, allocatable, &total);
	say_total(p, &total, allocatable);
	return 0;
}

/* Controllers name a node by its UID, kubelets by its name. */
static void say_events(struct ktl_page *p, struct val node)
{
	struct val list, more;
	if (!p->events)
		return;
	list = ktl_find_events(p->k, node, STR("Node"), val_str(node, metadata, uid));
	more = ktl_find_events(p->k, node, STR("Node"), val_str(node, metadata, name));
	VAL_EACH(e, more)
		list = val_list_append(&p->k->arena, list, *e);
	ktl_say_event_list(p, list);
}

int ktl_describe_node(struct ktl_page *p, struct val node)
{
	struct val status = val_get(node, status), spec = val_get(node, spec);
	ktl_say(p, 0, "Name:\t" STR_FMT "\n", STR_ARG(val_str(node, metadata, name)));
	ktl_say(p, 0, "Roles:\t" STR_FMT "\n", STR_ARG(ktl_or_none(roles_of(p->k, val_get(node, metadata, labels)))));
	ktl_say_labels(p, "Labels", val_get(node, metadata, labels));
	ktl_say_annotations(p, "Annotations", val_get(node, metadata, annotations));
	ktl_say(p, 0, "CreationTimestamp:\t" STR_FMT "\n", STR_ARG(ktl_date(p->k, val_str(node, metadata, creationTimestamp))));
	say_taints(p, val_get(spec, taints));
	ktl_say(p, 0, "Unschedulable:\t%s\n", val_bool(spec, unschedulable) ? "true" : "false");
	say_lease(p, val_str(node, metadata, name));
	ktl_say_conditions(p, val_get(status, conditions), "LastHeartbeatTime", A_lastHeartbeatTime);
	ktl_say(p, 0, "Addresses:\n");
	VAL_EACH(a, val_get(status, addresses))
		ktl_say(p, 1, STR_FMT ":\t" STR_FMT "\n", STR_ARG(val_str(*a, type)), STR_ARG(val_str(*a, address)));
	say_amounts(p, "Capacity", val_get(status, capacity));
	say_amounts(p, "Allocatable", val_get(status, allocatable));
	say_system(p, val_get(status, nodeInfo));
	if (val_str(spec, podCIDR).n)
		ktl_say(p, 0, "PodCIDR:\t" STR_FMT "\n", STR_ARG(val_str(spec, podCIDR)));
	if (val_len(val_get(spec, podCIDRs)))
		ktl_say(p, 0, "PodCIDRs:\t" STR_FMT "\n", STR_ARG(ktl_join(p->k, val_get(spec, podCIDRs), ",")));
	if (val_str(spec, providerID).n)
		ktl_say(p, 0, "ProviderID:\t" STR_FMT "\n", STR_ARG(val_str(spec, providerID)));
	if (say_allocated(p, node) < 0)
		return -1;
	say_events(p, node);
	return 0;
}
