/* A pod's network: what CNI is told, and what it answered with. */
#include <unistd.h>

#include "base/log.h"
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "runtime/sandbox.h"

/* Ports of the node that lead here. */
static struct val port_mappings(struct arena *a, struct val list)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(p, list) {
		str protocol = val_str(*p, protocol);
		if (val_int(*p, hostPort) <= 0)
			continue;
		val_add_item(&b, OBJECT(a, F(hostPort, val_get(*p, hostPort)), F(containerPort, val_get(*p, containerPort)),
					F(protocol, str_eq(protocol, STR("UDP"))  ? VAL_LIT("udp") :
						    str_eq(protocol, STR("SCTP")) ? VAL_LIT("sctp") :
										    VAL_LIT("tcp")),
					F(hostIP, val_get(*p, hostIp))));
	}
	return b.n ? val_end_list(&b) : VAL_EMPTY;
}

/* Bits per second, from an annotation; 0: none, or none that can be read. */
static int64_t rate(struct val annotations, str key)
{
	str text = val_as_str(val_find(annotations, key));
	struct quantity q;

	return text.n && quantity_parse(text, &q, NULL) == 0 ? MAX(quantity_value(q), INT64_C(0)) : 0;
}

static struct val bandwidth(struct arena *a, struct val annotations)
{
	int64_t in = rate(annotations, STR("kubernetes.io/ingress-bandwidth"));
	int64_t out = rate(annotations, STR("kubernetes.io/egress-bandwidth"));
	struct val burst = val_of_int(UINT32_MAX);

	if (!in && !out)
		return VAL_EMPTY;
	return OBJECT(a, F(ingressRate, in ? val_of_int(in) : VAL_EMPTY), F(ingressBurst, in ? burst : VAL_EMPTY),
		      F(egressRate, out ? val_of_int(out) : VAL_EMPTY), F(egressBurst, out ? burst : VAL_EMPTY));
}

static struct cni_pod pod_of(const struct sandbox *s, struct arena *a)
{
	struct val config = sandbox_cri(s);

	return (struct cni_pod){ .id = str_of(s->id), .netns = sandbox_netns(s, a), .namespace = val_str(config, metadata, namespace),
				 .name = val_str(config, metadata, name), .uid = val_str(config, metadata, uid),
				 .port_mappings = port_mappings(a, val_get(config, portMappings)),
				 .bandwidth = bandwidth(a, val_get(config, annotations)), .dns = val_get(config, dnsConfig),
				 .cgroup_path = str_of(sandbox_cgroup(s, a)) };
}

int sandbox_network_add(struct sandbox *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct cni_pod pod = pod_of(s, &a);
	struct val result;
	str address;
	int r = cni_add(s->runtime->cni, &pod, &a, &result, err);

	if (r < 0)
		return r;
	frozen_unref(s->network);
	s->network = val_freeze(result);
	if (sandbox_addresses(s, &address, 1) == 0)
		return err_set(err, ERR_INTERNAL, "failed to find network info for sandbox \"%s\"", s->id);
	return 0;
}

int sandbox_network_del(struct sandbox *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct cni_pod pod = pod_of(s, &a);

	if (!pod.netns)
		return 0;
	if (access(pod.netns, F_OK) < 0)
		pod.netns = NULL;
	int r = cni_del(s->runtime->cni, &pod, err);
	if (r < 0 && s->network)
		return r;
	if (r < 0)
		log_warn("ignoring that a network which was never complete cannot be undone", KV("sandbox", s->id), KV("err", err));
	return 0;
}
