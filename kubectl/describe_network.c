/* Ingresses, network policies, endpoint slices. */
#include <time.h>

#include "codec/types.h"
#include "kubectl/describe.h"
#include "machinery/selector.h"

/* ---- ingresses ---- */

/* (suspends) "web:80 (10.0.0.1:8080)" */
static str backend_of(struct ktl *k, str namespace, struct val backend)
{
	struct val service = val_get(backend, service), port = val_get(service, port), other = val_get(backend, resource), slices;
	struct ktl_info info = { .kind = ktl_kind_of_type(k, TYPE(core_v1, Service)), .namespace = namespace, .name = val_str(service, name) };
	str port_name = STR_NONE, number = val_int(port, number) ? ktl_plain(k, val_get(port, number)) : val_str(port, name);
	if (!val_exists(service)) {
		str group = val_str(other, apiGroup);
		return arena_printf(&k->arena, "APIGroup: " STR_FMT ", Kind: " STR_FMT ", Name: " STR_FMT, STR_ARG(ktl_or_none(group)), STR_ARG(val_str(other, kind)),
				    STR_ARG(val_str(other, name)));
	}
	str head = arena_printf(&k->arena, STR_FMT ":" STR_FMT, STR_ARG(info.name), STR_ARG(number));
	if (ktl_find_slices(k, namespace, info.name, &slices) < 0 || ktl_fetch(k, &info) < 0) {
		struct ktl_failure *f = k->failures;
		while (f->next)
			f = f->next;
		str why = f->text;
		ktl_forgive(k);
		return arena_printf(&k->arena, STR_FMT " (<error: " STR_FMT ">)", STR_ARG(head), STR_ARG(why));
	}
	VAL_EACH(p, val_get(info.object, spec, ports))
		if ((val_int(port, number) && val_int(port, number) == val_int(*p, port)) || (val_str(port, name).n && str_eq(val_str(port, name), val_str(*p, name))))
			port_name = val_str(*p, name);
	return arena_printf(&k->arena, STR_FMT " (" STR_FMT ")", STR_ARG(head), STR_ARG(ktl_endpoints(k, slices, port_name)));
}

static str addresses_of(struct ktl *k, struct val list)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	VAL_EACH(i, list) {
		str ip = val_str(*i, ip), host = val_str(*i, hostname);
		if (ip.n || host.n)
			buf_addf(&b, "%s" STR_FMT, b.n ? "," : "", STR_ARG(ip.n ? ip : host));
	}
	return arena_str(&k->arena, buf_str(&b));
}

int ktl_describe_ingress(struct ktl_page *p, struct val i)
{
	struct ktl *k = p->k;
	struct val spec = val_get(i, spec), tls = val_get(spec, tls);
	str namespace = val_str(i, metadata, namespace), fallback = STR("<default>");
	unsigned n = 0;
	if (val_has(spec, defaultBackend))
		fallback = backend_of(k, namespace, val_get(spec, defaultBackend));
	ktl_say(p, 0, "Name:\t" STR_FMT "\n", STR_ARG(val_str(i, metadata, name)));
	ktl_say_labels(p, "Labels", val_get(i, metadata, labels));
	ktl_say(p, 0, "Namespace:\t" STR_FMT "\n", STR_ARG(namespace));
	ktl_say(p, 0, "Address:\t" STR_FMT "\n", STR_ARG(addresses_of(k, val_get(i, status, loadBalancer, ingress))));
	ktl_say(p, 0, "Ingress Class:\t" STR_FMT "\n", STR_ARG(ktl_or_none(val_str(spec, ingressClassName))));
	ktl_say(p, 0, "Default backend:\t" STR_FMT "\n", STR_ARG(fallback));
	if (val_len(tls))
		ktl_say(p, 0, "TLS:\n");
	VAL_EACH(t, tls) {
		str secret = val_str(*t, secretName);
		ktl_say(p, 1, STR_FMT " " STR_FMT "\n", STR_ARG(secret.n ? arena_join(&k->arena, secret, STR(" terminates")) : STR("SNI routes")),
			STR_ARG(ktl_join(k, val_get(*t, hosts), ",")));
	}
	ktl_say(p, 0, "Rules:\n  Host\tPath\tBackends\n");
	ktl_say(p, 1, "----\t----\t--------\n");
	VAL_EACH(r, val_get(spec, rules)) {
		str host = val_str(*r, host);
		if (!val_has(*r, http))
			continue;
		n++;
		ktl_say(p, 1, STR_FMT "\t\n", STR_ARG(host.n ? host : STR("*")));
		VAL_EACH(path, val_get(*r, http, paths))
			ktl_say(p, 2, "\t" STR_FMT " \t" STR_FMT "\n", STR_ARG(val_str(*path, path)), STR_ARG(backend_of(k, namespace, val_get(*path, backend))));
	}
	if (!n)
		ktl_say(p, 1, "*\t*\t" STR_FMT "\n", STR_ARG(fallback));
	ktl_say_annotations(p, "Annotations", val_get(i, metadata, annotations));
	ktl_say_events(p, i, STR("Ingress"));
	return 0;
}

/* ---- network policies ---- */

static void say_peer(struct ktl_page *p, const char *word, struct val peer)
{
	struct arena *a = &p->k->arena;
	struct val pods = val_get(peer, podSelector), spaces = val_get(peer, namespaceSelector), block = val_get(peer, ipBlock);
	ktl_say(p, 2, "%s:\n", word);
	if (val_exists(spaces))
		ktl_say(p, 3, "NamespaceSelector: " STR_FMT "\n", STR_ARG(selector_display(a, spaces)));
	if (val_exists(pods))
		ktl_say(p, 3, "PodSelector: " STR_FMT "\n", STR_ARG(selector_display(a, pods)));
	if (val_exists(pods) || val_exists(spaces) || !val_exists(block))
		return;
	ktl_say(p, 3, "IPBlock:\n");
	ktl_say(p, 4, "CIDR: " STR_FMT "\n", STR_ARG(val_str(block, cidr)));
	ktl_say(p, 4, "Except: " STR_FMT "\n", STR_ARG(ktl_join(p->k, val_get(block, except), ", ")));
}

static void say_traffic(struct ktl_page *p, struct val rules, bool in)
{
	size_t n = 0;
	if (!val_len(rules))
		ktl_say(p, 2, "<none> (Selected pods are isolated for %s connectivity)\n", in ? "ingress" : "egress");
	VAL_EACH(r, rules) {
		struct val ports = val_get(*r, ports), peers = in ? val_get(*r, from) : val_get(*r, to);
		if (!val_len(ports))
			ktl_say(p, 2, "To Port: <any> (traffic allowed to all ports)\n");
		VAL_EACH(port, ports) {
			str protocol = val_str(*port, protocol), number = ktl_plain(p->k, val_get(*port, port));
			protocol = protocol.n ? protocol : STR("TCP");
			if (val_has(*port, endPort))
				ktl_say(p, 2, "To Port Range: " STR_FMT "-%lld/" STR_FMT "\n", STR_ARG(number), (long long)val_int(*port, endPort), STR_ARG(protocol));
			else
				ktl_say(p, 2, "To Port: " STR_FMT "/" STR_FMT "\n", STR_ARG(number), STR_ARG(protocol));
		}
		if (!val_len(peers))
			ktl_say(p, 2, in ? "From: <any> (traffic not restricted by source)\n" : "To: <any> (traffic not restricted by destination)\n");
		VAL_EACH(peer, peers)
			say_peer(p, in ? "From" : "To", *peer);
		if (++n < val_len(rules))
			ktl_say(p, 2, "----------\n");
	}
}

static bool has_type(struct val types, str name)
{
	VAL_EACH(t, types)
		if (str_eq(val_as_str(*t), name))
			return true;
	return false;
}

/* As Go prints a time. */
static str time_text(struct ktl *k, str text)
{
	struct timestamp t;
	char out[64];
	struct tm tm;
	if (time_parse(text, &t, NULL) < 0)
		return STR("0001-01-01 00:00:00 +0000 UTC");
	time_t seconds = (time_t)t.seconds;
	(void)localtime_r(&seconds, &tm);
	return arena_str(&k->arena, str_span(out, strftime(out, sizeof(out), "%Y-%m-%d %H:%M:%S %z %Z", &tm)));
}

int ktl_describe_network_policy(struct ktl_page *p, struct val n)
{
	struct val spec = val_get(n, spec), pods = val_get(spec, podSelector), types = val_get(spec, policyTypes);
	bool some = val_len(val_get(pods, matchLabels)) || val_len(val_get(pods, matchExpressions));
	ktl_say_name(p, n);
	ktl_say(p, 0, "Created on:\t" STR_FMT "\n", STR_ARG(time_text(p->k, val_str(n, metadata, creationTimestamp))));
	ktl_say_labels(p, "Labels", val_get(n, metadata, labels));
	ktl_say_annotations(p, "Annotations", val_get(n, metadata, annotations));
	ktl_say(p, 0, "Spec:\n  PodSelector:     " STR_FMT "\n", STR_ARG(some ? selector_display(&p->k->arena, pods) :
		STR("<none> (Allowing the specific traffic to all pods in this namespace)")));
	if (has_type(types, STR("Ingress"))) {
		ktl_say(p, 1, "Allowing ingress traffic:\n");
		say_traffic(p, val_get(spec, ingress), true);
	} else {
		ktl_say(p, 1, "Not affecting ingress traffic\n");
	}
	if (has_type(types, STR("Egress"))) {
		ktl_say(p, 1, "Allowing egress traffic:\n");
		say_traffic(p, val_get(spec, egress), false);
	} else {
		ktl_say(p, 1, "Not affecting egress traffic\n");
	}
	ktl_say(p, 1, "Policy Types: " STR_FMT "\n", STR_ARG(ktl_or_none(ktl_join(p->k, types, ", "))));
	return 0;
}

/* ---- endpoint slices ---- */

static str or_unset(str s) { return s.n ? s : STR("<unset>"); }

static void say_endpoint(struct ktl_page *p, struct val e)
{
	struct val ready = val_get(e, conditions, ready);
	ktl_say(p, 1, "- Addresses:\t" STR_FMT "\n", STR_ARG(ktl_or_none(ktl_join(p->k, val_get(e, addresses), ", "))));
	ktl_say(p, 2, "Conditions:\n");
	ktl_say(p, 3, "Ready:\t%s\n", !val_exists(ready) ? "<unset>" : val_as_bool(ready) ? "true" : "false");
	ktl_say(p, 2, "Hostname:\t" STR_FMT "\n", STR_ARG(or_unset(val_str(e, hostname))));
	if (val_has(e, targetRef))
		ktl_say(p, 2, "TargetRef:\t" STR_FMT "/" STR_FMT "\n", STR_ARG(val_str(e, targetRef, kind)), STR_ARG(val_str(e, targetRef, name)));
	ktl_say(p, 2, "NodeName:\t" STR_FMT "\n", STR_ARG(or_unset(val_str(e, nodeName))));
	ktl_say(p, 2, "Zone:\t" STR_FMT "\n", STR_ARG(or_unset(val_str(e, zone))));
}

int ktl_describe_endpoint_slice(struct ktl_page *p, struct val s)
{
	struct val ports = val_get(s, ports), endpoints = val_get(s, endpoints);
	ktl_say_name(p, s);
	ktl_say_labels(p, "Labels", val_get(s, metadata, labels));
	ktl_say_annotations(p, "Annotations", val_get(s, metadata, annotations));
	ktl_say(p, 0, "AddressType:\t" STR_FMT "\n", STR_ARG(val_str(s, addressType)));
	ktl_say(p, 0, val_len(ports) ? "Ports:\n  Name\tPort\tProtocol\n  ----\t----\t--------\n" : "Ports: <unset>\n");
	VAL_EACH(port, ports)
		ktl_say(p, 1, STR_FMT "\t" STR_FMT "\t" STR_FMT "\n", STR_ARG(or_unset(val_str(*port, name))), STR_ARG(or_unset(ktl_plain(p->k, val_get(*port, port)))),
			STR_ARG(val_str(*port, protocol)));
	ktl_say(p, 0, val_len(endpoints) ? "Endpoints:\n" : "Endpoints: <none>\n");
	VAL_EACH(e, endpoints)
		say_endpoint(p, *e);
	ktl_say_events(p, s, STR("EndpointSlice"));
	return 0;
}
