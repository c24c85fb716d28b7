/*
 * The status as a whole. It is made in two steps, as Kubernetes does: what the pod's containers and the kubelet's own decisions
 * amount to, and then what of it the API server may be told now. Others rely on the second: a pod whose phase is Succeeded or
 * Failed holds nothing of the node any more.
 */
#include "kubelet/pod_status.h"

#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/cri_config.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pod_status_priv.h"
#include "machinery/ip.h"

/* A status being made. */
struct making {
	struct arena *arena;
	const struct pod_view *v;
	struct val old;                  /* what was told */
	struct val init_statuses, statuses, ephemeral_statuses;
	str phase, reason, message;      /* as they will be in the end */
	str phase_for_conditions;
};

/* ---- phase ---- */

static void take_phase(struct making *m, str phase, str reason, str message)
{
	m->phase = phase;
	m->reason = reason;
	m->message = message;
}

static str either(str x, str y) { return x.n ? x : y; }

/*
 * Where the pod is headed, not yet whether that may be told. A pod never leaves Succeeded and Failed. The deadline counts in
 * conditions at once; what else ends a pod (eviction, shutdown) only with its end.
 */
static void decide_phase(struct making *m)
{
	const struct pod_view *v = m->v;
	struct val known = val_get(v->pod, status);
	str phase = pod_phase(v->pod, m->init_statuses, m->statuses, v->terminated, pod_has_made_container_now(v));

	if (!phase_is_terminal(phase) && phase_is_terminal(val_str(m->old, phase)))
		phase = val_str(m->old, phase);
	if (phase_is_terminal(val_str(known, phase)))
		phase = val_str(known, phase);
	if (str_eq(phase, val_str(m->old, phase)))
		take_phase(m, phase, either(val_str(m->old, reason), val_str(known, reason)),
			   either(val_str(m->old, message), val_str(known, message)));
	else
		take_phase(m, phase, STR_NONE, STR_NONE);
	m->phase_for_conditions = m->phase;
	if (v->fail_reason.n && !phase_is_terminal(val_str(known, phase))) {
		take_phase(m, STR("Failed"), v->fail_reason, v->fail_message);
		if (v->terminated || str_eq(v->fail_reason, STR("DeadlineExceeded")))
			m->phase_for_conditions = m->phase;
	}
}

/* Everything has ended: nothing is left open. */
static void finish(struct making *m)
{
	status_containers_finish(m->arena, m->v->pod, &m->init_statuses, &m->statuses);
	if (!phase_is_terminal(m->phase) && !pod_is_static(m->v->pod))
		take_phase(m, STR("Failed"), m->reason, m->message);
}

/* While anything may run, the phase that was told stays. */
static void hold_back(struct making *m)
{
	str told = val_str(m->old, phase);

	if (phase_is_terminal(m->phase) && !phase_is_terminal(told) && !phase_is_terminal(val_str(m->v->pod, status, phase)))
		take_phase(m, told.n ? told : STR("Pending"), val_str(m->old, reason), val_str(m->old, message));
}

/* ---- addresses ---- */

/* The first of a family among the sandbox's addresses, in canonical form; VAL_NONE: there is none. */
static struct val find_ip(struct arena *a, struct val network, bool v4)
{
	size_t n = val_len(val_get(network, additionalIps));
	char text[IP_TEXT_MAX];
	struct ip ip;

	for (size_t i = 0; i <= n; i++) {
		str s = i ? val_str(val_at(val_get(network, additionalIps), i - 1), ip) : val_str(network, ip);
		if (ip_parse(s, &ip, NULL) && ip_is_v4(&ip) == v4)
			return OBJECT(a, F(ip, VAL_STR(arena_str(a, ip_format(&ip, text)))));
	}
	return VAL_EMPTY;
}

/* Those that exist of two. */
static struct val list_of(struct arena *a, struct val x, struct val y)
{
	struct val_builder b = val_builder(a);

	if (val_exists(x))
		val_add_item(&b, x);
	if (val_exists(y))
		val_add_item(&b, y);
	return val_end_list(&b);
}

static struct val host_ips(struct arena *a, const struct pod_view *v)
{
	struct val v4 = v->host_address.n ? OBJECT(a, F(ip, VAL_STR(v->host_address))) : VAL_EMPTY;
	struct val v6 = v->host_address6.n ? OBJECT(a, F(ip, VAL_STR(v->host_address6))) : VAL_EMPTY;
	return list_of(a, v4, v6);
}

/* The node's family first. A pod without a sandbox that works keeps what it had. */
static struct val pod_ips(struct arena *a, const struct pod_view *v, struct val old)
{
	struct val newest = val_at(v->sandboxes, 0), network = val_get(newest, network);
	bool v4_first = v->host_address.n || !v->host_address6.n;

	if (pod_uses_host_network(v->pod))
		return host_ips(a, v);
	if (val_exists(newest) && sandbox_is_ready(newest))
		return list_of(a, find_ip(a, network, v4_first), find_ip(a, network, !v4_first));
	VAL_EACH(s, v->sandboxes)
		if (sandbox_is_ready(*s)) /* an older one: its addresses will be given up */
			return VAL_EMPTY;
	return val_get(old, podIPs);
}

/* ---- the whole ---- */

static struct val generation(const struct making *m)
{
	struct val now = val_get(m->v->pod, metadata, generation), was = val_get(m->old, observedGeneration);
	return val_as_int(was) > val_as_int(now) ? was : now;
}

static struct val start_time(const struct making *m)
{
	struct val was = val_get(m->old, startTime);
	return val_is_nil(was) ? status_time(m->arena, m->v->now_ns) : was;
}

static struct val typed(struct arena *a, struct val status)
{
	struct val ret;
	/* It can fail only when the view holds what is no pod: then it is as useful as it gets. */
	return val_canonical(a, status, TYPE(core_v1, PodStatus), NULL, &ret, NULL) < 0 ? status : ret;
}

/* A pod that the node did not take. */
static struct val status_rejected(struct making *m)
{
	struct arena *a = m->arena;
	const struct pod_view *v = m->v;
	str message = arena_join(a, STR("Pod was rejected: "), v->fail_message);

	return OBJECT(a, F(observedGeneration, generation(m)), F(phase, VAL_LIT("Failed")),
		      F(conditions, status_conditions_of_others(a, v)), F(message, VAL_STR(message)),
		      F(reason, VAL_STR(v->fail_reason)), F(startTime, start_time(m)),
		      F(qosClass, VAL_STR(pod_qos(v->pod))));
}

static struct val conditions(struct making *m)
{
	struct condition_input in = { .v = m->v, .init_statuses = m->init_statuses, .statuses = m->statuses,
				      .phase = m->phase_for_conditions, .ended = m->v->terminated };
	struct val list;

	/* Nothing is ready in a pod that has ended, whatever its containers say. */
	if (phase_is_terminal(m->phase) && !phase_is_terminal(in.phase)) {
		list = status_conditions(m->arena, &in);
		if (!str_eq(val_str(status_condition(list, STR("Ready")), status), STR("True")) &&
		    !str_eq(val_str(status_condition(list, STR("ContainersReady")), status), STR("True")))
			return list;
		in.phase = m->phase;
	}
	return status_conditions(m->arena, &in);
}

static struct val assemble(struct making *m)
{
	struct arena *a = m->arena;
	const struct pod_view *v = m->v;
	struct val known = val_get(v->pod, status), hosts = host_ips(a, v), pods = pod_ips(a, v, m->old);

	return OBJECT(a, F(observedGeneration, generation(m)), F(phase, VAL_STR(m->phase)), F(conditions, conditions(m)),
		      F(message, status_text(m->message)), F(reason, status_text(m->reason)),
		      F(hostIP, val_get(val_at(hosts, 0), ip)), F(hostIPs, hosts), F(podIP, val_get(val_at(pods, 0), ip)),
		      F(podIPs, pods), F(startTime, start_time(m)), F(initContainerStatuses, m->init_statuses),
		      F(containerStatuses, m->statuses), F(qosClass, VAL_STR(pod_qos(v->pod))),
		      F(ephemeralContainerStatuses, m->ephemeral_statuses),
		      F(resourceClaimStatuses, val_get(known, resourceClaimStatuses)),
		      F(extendedResourceClaimStatus, val_get(known, extendedResourceClaimStatus)),
		      F(allocatedResources, status_pod_allocated(a, v)), F(resources, status_pod_resources(a, v)),
		      F(nodeAllocatableResourceClaimStatuses, val_get(known, nodeAllocatableResourceClaimStatuses)));
}

/* Containers and where the phase is headed. */
static struct making begin(struct arena *a, const struct pod_view *v)
{
	struct making m = { .arena = a, .v = v, .old = pod_view_status(v) };

	m.statuses = status_containers(a, v, A_containers);
	m.init_statuses = status_containers(a, v, A_initContainers);
	m.ephemeral_statuses = status_containers(a, v, A_ephemeralContainers);
	decide_phase(&m);
	return m;
}

struct val pod_status_make(struct arena *a, const struct pod_view *v)
{
	struct making m;

	if (v->rejected) {
		m = (struct making){ .arena = a, .v = v, .old = pod_view_status(v) };
		return typed(a, status_rejected(&m));
	}
	/* The end is told once: what has ended is not looked at again. */
	if (v->terminated && phase_is_terminal(val_str(v->status, phase)))
		return v->status;
	m = begin(a, v);
	if (v->terminated)
		finish(&m);
	else
		hold_back(&m);
	return typed(a, assemble(&m));
}

struct val pod_status_ready_to_start(struct arena *a, const struct pod_view *v)
{
	struct val old = pod_view_status(v);

	return val_put(a, old, A_conditions, status_conditions_ready_to_start(a, v, val_get(old, conditions)));
}

bool pod_has_ended(struct arena *a, const struct pod_view *v) { return v->rejected || phase_is_terminal(begin(a, v).phase); }

/* ---- comparing ---- */

/* Every condition that is ours (or may be) in x is in y, with the same content. */
static bool conditions_within(struct val x, struct val y)
{
	VAL_EACH(c, x) {
		str type = val_str(*c, type);
		struct val other;
		if (!condition_is_ours(type) && !str_eq(type, STR("DisruptionTarget")))
			continue;
		other = status_condition(y, type);
		if (!val_exists(other) || !str_eq(val_str(*c, status), val_str(other, status)) ||
		    !str_eq(val_str(*c, reason), val_str(other, reason)) || !str_eq(val_str(*c, message), val_str(other, message)))
			return false;
	}
	return true;
}

/* Conditions are compared apart; claims are nothing that the kubelet decides. */
static bool is_compared(atom member)
{
	return member != A_conditions && member != A_resourceClaimStatuses && member != A_extendedResourceClaimStatus &&
	       member != A_nodeAllocatableResourceClaimStatuses;
}

static bool members_within(struct val x, struct val y)
{
	VAL_EACH_MEMBER(m, x)
		if (is_compared(m->key) && !val_equal(m->val, val_member(y, m->key)))
			return false;
	return true;
}

bool pod_status_equal(struct val a, struct val b)
{
	struct val x = val_get(a, conditions), y = val_get(b, conditions);
	return conditions_within(x, y) && conditions_within(y, x) && members_within(a, b) && members_within(b, a);
}
