/* Services and where they lead. */
#include "codec/types.h"
#include "kubectl/describe.h"
#include "machinery/selector.h"

str ktl_endpoints(struct ktl *k, struct val slices, str port_name)
{
	enum { SHOWN = 3 };
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	unsigned n = 0;
	if (!val_len(slices))
		return STR("<none>");
	VAL_EACH(slice, slices) {
		struct val ports = val_get(*slice, ports);
		for (size_t i = 0; i < MAX(val_len(ports), 1u); i++) {
			struct val port = val_at(ports, i);
			if (val_exists(port) && !str_eq(val_str(port, name), port_name))
				continue;
			VAL_EACH(e, val_get(*slice, endpoints)) {
				struct val ready = val_get(*e, conditions, ready);
				str address = val_as_str(val_at(val_get(*e, addresses), 0));
				bool six = str_chr(address, ':') >= 0;
				if ((val_exists(ready) && !val_as_bool(ready)) || n++ >= SHOWN)
					continue;
				buf_addf(&b, "%s%s" STR_FMT "%s", b.n ? "," : "", val_exists(port) && six ? "[" : "", STR_ARG(address), val_exists(port) && six ? "]" : "");
				if (val_exists(port))
					buf_addf(&b, ":%lld", (long long)val_int(port, port));
			}
		}
	}
	if (n > SHOWN)
		buf_addf(&b, " + %u more...", n - SHOWN);
	return arena_str(&k->arena, buf_str(&b));
}

int ktl_find_slices(struct ktl *k, str namespace, str service, struct val *ret)
{
	str selector = arena_join(&k->arena, STR("kubernetes.io/service-name="), service);
	return ktl_list(k, ktl_kind_of_type(k, TYPE(discovery_v1, EndpointSlice)), namespace, selector, STR_NONE, ret);
}

static void say_port(struct ktl_page *p, struct val port, struct val slices)
{
	str name = val_str(port, name), protocol = val_str(port, protocol);
	str shown = name.n ? name : STR("<unset>");
	ktl_say(p, 0, "Port:\t" STR_FMT "\t%lld/" STR_FMT "\n", STR_ARG(shown), (long long)val_int(port, port), STR_ARG(protocol));
	ktl_say(p, 0, "TargetPort:\t" STR_FMT "/" STR_FMT "\n", STR_ARG(ktl_plain(p->k, val_get(port, targetPort))), STR_ARG(protocol));
	if (val_str(port, appProtocol).n)
		ktl_say(p, 0, "AppProtocol:\t" STR_FMT "\n", STR_ARG(val_str(port, appProtocol)));
	if (val_int(port, nodePort))
		ktl_say(p, 0, "NodePort:\t" STR_FMT "\t%lld/" STR_FMT "\n", STR_ARG(shown), (long long)val_int(port, nodePort), STR_ARG(protocol));
	ktl_say(p, 0, "Endpoints:\t" STR_FMT "\n", STR_ARG(ktl_endpoints(p->k, slices, name)));
}

static void say_text(struct ktl_page *p, const char *title, str text)
{
	if (text.n)
		ktl_say(p, 0, "%s:\t" STR_FMT "\n", title, STR_ARG(text));
}

static str ingress_of(struct ktl *k, struct val list)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	VAL_EACH(i, list) {
		str ip = val_str(*i, ip), mode = val_str(*i, ipMode);
		buf_addf(&b, "%s" STR_FMT, b.n ? ", " : "", STR_ARG(ip.n ? ip : val_str(*i, hostname)));
		if (ip.n && mode.n)
			buf_addf(&b, " (" STR_FMT ")", STR_ARG(mode));
	}
	return arena_str(&k->arena, buf_str(&b));
}

static void say_addresses(struct ktl_page *p, struct val spec, struct val status)
{
	struct ktl *k = p->k;
	say_text(p, "IP Family Policy", val_str(spec, ipFamilyPolicy));
	ktl_say(p, 0, "IP Families:\t" STR_FMT "\n", STR_ARG(ktl_or_none(ktl_join(k, val_get(spec, ipFamilies), ","))));
	ktl_say(p, 0, "IP:\t" STR_FMT "\n", STR_ARG(val_str(spec, clusterIP)));
	ktl_say(p, 0, "IPs:\t" STR_FMT "\n", STR_ARG(ktl_or_none(ktl_join(k, val_get(spec, clusterIPs), ","))));
	say_text(p, "External IPs", ktl_join(k, val_get(spec, externalIPs), ","));
	say_text(p, "Desired LoadBalancer IP", val_str(spec, loadBalancerIP));
	say_text(p, "External Name", val_str(spec, externalName));
	say_text(p, "LoadBalancer Ingress", ingress_of(k, val_get(status, loadBalancer, ingress)));
}

int ktl_describe_service(struct ktl_page *p, struct val s)
{
	struct ktl *k = p->k;
	struct val spec = val_get(s, spec), slices = VAL_EMPTY;
	if (ktl_find_slices(k, val_str(s, metadata, namespace), val_str(s, metadata, name), &slices) < 0)
		ktl_forgive(k);
	ktl_say_name(p, s);
	ktl_say_labels(p, "Labels", val_get(s, metadata, labels));
	ktl_say_annotations(p, "Annotations", val_get(s, metadata, annotations));
	ktl_say(p, 0, "Selector:\t" STR_FMT "\n", STR_ARG(labels_display(&k->arena, val_get(spec, selector))));
	ktl_say(p, 0, "Type:\t" STR_FMT "\n", STR_ARG(val_str(spec, type)));
	say_addresses(p, spec, val_get(s, status));
	VAL_EACH(port, val_get(spec, ports))
		say_port(p, *port, slices);
	ktl_say(p, 0, "Session Affinity:\t" STR_FMT "\n", STR_ARG(val_str(spec, sessionAffinity)));
	say_text(p, "External Traffic Policy", val_str(spec, externalTrafficPolicy));
	say_text(p, "Internal Traffic Policy", val_str(spec, internalTrafficPolicy));
	if (val_int(spec, healthCheckNodePort))
		ktl_say(p, 0, "HealthCheck NodePort:\t%lld\n", (long long)val_int(spec, healthCheckNodePort));
	say_text(p, "LoadBalancer Source Ranges", ktl_join(k, val_get(spec, loadBalancerSourceRanges), ","));
	say_text(p, "Traffic Distribution", val_str(spec, trafficDistribution));
	ktl_say_events(p, s, STR("Service"));
	return 0;
}
