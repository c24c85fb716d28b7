/*
 * portmap: ports of the node that lead to the pod, in a chain behind a plugin that has given it addresses. The rules are nftables'
 * (rules.h), whichever backend the configuration names; the conditions of either can be given, as far as they are about addresses
 * and links.
 */
#include <netinet/in.h>
#include <stdio.h>

#include "cni/attach.h"
#include "cni/conntrack.h"
#include "cni/netns.h"
#include "codec/atoms.h"

enum { PORTS_MAX = 4096, CONDITIONS_MAX = 16 };

struct conf {
	bool snat, masquerade_all;
	struct rules_port *ports;
	size_t n_ports;
	struct rules_condition conditions[2][CONDITIONS_MAX];    /* IPv4, IPv6 */
	size_t n_conditions[2];
	struct attach_ip pods[2];                                /* family 0: none */
};

/* ---- conditions ---- */

/* What the words of a condition may be; in the order iptables has them ("!", "-d", "10.0.0.0/8") or nft's ("ip", "daddr", "!=", ...). */
static const struct {
	const char *word;
	bool source, link;
} subjects[] = {
	{ "-s", true, false }, { "--source", true, false }, { "--src", true, false }, { "saddr", true, false },
	{ "-d", false, false }, { "--destination", false, false }, { "--dst", false, false }, { "daddr", false, false },
	{ "-i", false, true }, { "--in-interface", false, true }, { "iifname", false, true },
};

static int set_object(struct plugin *p, struct rules_condition *c, str word, struct err *err)
{
	bool prefix = str_chr(word, '/') >= 0;

	if (c->link) {
		c->link = arena_str(p->arena, word).p;
		return 0;
	}
	if (prefix ? inet_net_parse(word, &c->net) : inet_parse(word, &c->net.ip)) {
		c->net = prefix ? c->net : inet_net_host(c->net.ip);
		return 0;
	}
	return plugin_fail(p, CNI_INVALID_CONFIG, err, "invalid address in a condition: " STR_FMT, STR_ARG(word));
}

/* One word; *expects says that the object of a condition is still to come. */
static int load_word(struct plugin *p, struct conf *c, bool six, str word, bool *expects, struct err *err)
{
	struct rules_condition *at = &c->conditions[six][c->n_conditions[six]];

	if (str_eq(word, STR("!")) || str_eq(word, STR("!="))) {
		at->not = true;
		return 0;
	}
	if (str_eq(word, STR("ip")) || str_eq(word, STR("ip6")) || str_eq(word, STR("==")))
		return 0;
	if (*expects) {
		*expects = false;
		c->n_conditions[six]++;
		return set_object(p, at, word, err);
	}
	for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
		if (!str_eq(word, str_of(subjects[i].word)))
			continue;
		if (c->n_conditions[six] == CONDITIONS_MAX)
			return plugin_fail(p, CNI_INVALID_CONFIG, err, "more than %d conditions", CONDITIONS_MAX);
		at->source = subjects[i].source;
		at->link = subjects[i].link ? "" : NULL;
		*expects = true;
		return 0;
	}
	return plugin_fail(p, CNI_UNSUPPORTED_FIELD, err, "conditions are about addresses and links (ip daddr, ip saddr, iifname; -d, -s, -i), not \"" STR_FMT "\"",
			   STR_ARG(word));
}

static int load_conditions(struct plugin *p, struct conf *c, bool six, struct err *err)
{
	struct val list = six ? val_get(p->config, conditionsV6) : val_get(p->config, conditionsV4);
	bool expects = false;
	int r = 0;

	VAL_EACH(v, list)
		if (val_as_str(*v).n && (r = load_word(p, c, six, val_as_str(*v), &expects, err)) < 0)
			return r;
	return expects ? plugin_fail(p, CNI_INVALID_CONFIG, err, "a condition has no end") : 0;
}

/* ---- configuration ---- */

/* containerd writes HostPort, as its own structures have it, and plugins in Go do not mind. */
static struct val member_of(struct val object, const char *name)
{
	VAL_EACH_MEMBER(m, object) {
		str key = atom_str(m->key);
		if (key.n == strlen(name) && strncasecmp(key.p, name, key.n) == 0)
			return m->val;
	}
	return VAL_EMPTY;
}

static int load_port(struct plugin *p, struct val v, struct rules_port *ret, struct err *err)
{
	static const struct {
		const char *name;
		uint8_t number;
	} protocols[] = { { "tcp", IPPROTO_TCP }, { "udp", IPPROTO_UDP }, { "sctp", IPPROTO_SCTP } };
	int64_t port = val_as_int(member_of(v, "containerPort")), host_port = val_as_int(member_of(v, "hostPort"));
	str protocol = val_as_str(member_of(v, "protocol")), ip = val_as_str(member_of(v, "hostIP"));

	*ret = (struct rules_port){ .port = (uint16_t)port, .host_port = (uint16_t)host_port };
	if (port < 1 || port > 65535)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "Invalid container port number: %lld", (long long)port);
	if (host_port < 1 || host_port > 65535)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "Invalid host port number: %lld", (long long)host_port);
	if (ip.n && !inet_parse(ip, &ret->host_ip))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "Invalid host IP: " STR_FMT, STR_ARG(ip));
	for (size_t i = 0; i < ARRAY_LEN(protocols); i++)
		if (protocol.n == strlen(protocols[i].name) && strncasecmp(protocol.p, protocols[i].name, protocol.n) == 0)
			ret->protocol = protocols[i].number;
	return ret->protocol ? 0 : plugin_fail(p, CNI_INVALID_CONFIG, err, "Invalid protocol: " STR_FMT, STR_ARG(protocol));
}

/* The first address of each family that the pod's interface has. */
static int load_pods(struct plugin *p, struct conf *c, struct err *err)
{
	struct val interfaces = val_get(p->prev, interfaces);
	struct attach_ip *ips;
	size_t n;
	int r = attach_ips(p, p->prev, &ips, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct attach_ip *pod = &c->pods[!inet_is_v4(ips[i].net.ip)];
		struct val index = val_get(val_at(val_get(p->prev, ips), i), interface);
		struct val of = val_at(interfaces, val_is(index, VAL_INT) && index.i >= 0 ? (size_t)index.i : SIZE_MAX);
		if (val_exists(of) && (!str_eq(val_str(of, name), str_of(p->ifname)) || !val_str(of, sandbox).n))
			continue;
		if (!inet_exists(pod->net.ip))
			*pod = ips[i];
	}
	return r;
}

static int load_ports(struct plugin *p, struct conf *c, struct err *err)
{
	struct val list = val_get(p->config, runtimeConfig, portMappings);
	int r;

	if (val_len(list) > PORTS_MAX)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "more than %d ports", PORTS_MAX);
	c->ports = ARENA_ARRAY(p->arena, struct rules_port, val_len(list) + 1);
	VAL_EACH(v, list)
		if ((r = load_port(p, *v, &c->ports[c->n_ports++], err)) < 0)
			return r;
	return 0;
}

static int check_backend(struct plugin *p, struct err *err)
{
	str backend = STR_NONE;
	int64_t bit;
	int r;

	if ((r = plugin_str(p, "backend", &backend, err)) < 0 || (r = plugin_refuse(p, "externalSetMarkChain", err)) < 0 ||
	    (r = plugin_int(p, "markMasqBit", 0, 31, &bit, err)) < 0)
		return r;
	if (backend.n && !str_eq(backend, STR("nftables")) && !str_eq(backend, STR("iptables")))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "unrecognized backend \"" STR_FMT "\"", STR_ARG(backend));
	return 0;
}

static int load(struct plugin *p, struct conf *c, struct err *err)
{
	int r;

	*c = (struct conf){ .snat = true };
	if ((r = plugin_bool(p, "snat", &c->snat, err)) < 0 || (r = plugin_bool(p, "masqAll", &c->masquerade_all, err)) < 0 ||
	    (r = check_backend(p, err)) < 0 || (r = load_conditions(p, c, false, err)) < 0 ||
	    (r = load_conditions(p, c, true, err)) < 0 ||
	    (r = load_ports(p, c, err)) < 0)
		return r;
	return val_exists(p->prev) ? load_pods(p, c, err) : 0;
}

/* ---- commands ---- */

/* Connections from 127.0.0.1 may leave the node by the link to the pod. */
static int route_localnet(struct inet pod, struct err *err)
{
	CLEANUP(netlink_close) struct netlink n = NETLINK_INIT;
	char setting[64];
	struct link l;
	int index, r = netlink_open(&n, NETLINK_ROUTE, err);

	if (r < 0)
		return r;
	if (route_link_to(&n, pod, &index, NULL) < 0 || link_get_index(&n, index, &l, NULL) < 0)
		return 0;
	(void)snprintf(setting, sizeof(setting), "net/ipv4/conf/%s/route_localnet", l.name);
	return sysctl_set(setting, "1", err);
}

static void forget_old(const struct conf *c, int family)
{
	struct err err = ERR_INIT;

	for (size_t i = 0; i < c->n_ports; i++)
		if (c->ports[i].protocol == IPPROTO_UDP && conntrack_forget(family, IPPROTO_UDP, c->ports[i].host_port, &err) < 0)
			fprintf(stderr, "portmap: ignoring: %s\n", err.msg);
}

static int add(struct plugin *p, struct val *ret, struct err *err)
{
	struct rules_owner owner = plugin_owner(p);
	struct rules_ports sets[2];
	struct conf c;
	size_t n = 0;
	int r = load(p, &c, err);

	if (r < 0)
		return r;
	if (!val_exists(p->prev))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "must be called as chained plugin");
	*ret = p->prev;
	for (size_t i = 0; i < 2; i++)
		if (inet_exists(c.pods[i].net.ip))
			sets[n++] = (struct rules_ports){ c.pods[i].net, c.ports, c.n_ports, c.conditions[i],
							  c.n_conditions[i], c.snat, c.masquerade_all };
	if (!c.n_ports || !n)
		return 0;
	if ((r = rules_host_ports(&owner, sets, n, err)) < 0)
		return err_wrap(err, r, "unable to set up nftables rules for port mappings");
	for (size_t i = 0; i < n; i++)
		forget_old(&c, sets[i].pod.ip.family);
	if (c.snat && inet_exists(c.pods[0].net.ip) && (r = route_localnet(c.pods[0].net.ip, err)) < 0) {
		(void)rules_remove(RULES_HOST_PORTS, &owner, NULL);
		return err_wrap(err, r, "unable to enable route_localnet");
	}
	return 0;
}

/* Also when the caller has forgotten which ports they were. */
static int del(struct plugin *p, struct err *err)
{
	struct rules_owner owner = plugin_owner(p);
	return rules_remove(RULES_HOST_PORTS, &owner, err);
}

static int check(struct plugin *p, struct err *err)
{
	struct rules_owner owner = plugin_owner(p);
	struct conf c;
	int want = 0, r = load(p, &c, err);

	if (r < 0)
		return r;
	if (!val_exists(p->prev))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "Required prevResult missing");
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < c.n_ports && inet_exists(c.pods[i].net.ip); k++)
			want += !inet_exists(c.ports[k].host_ip) || c.ports[k].host_ip.family == c.pods[i].net.ip.family;
	if (!want || (r = rules_count(RULES_HOST_PORTS, &owner, err)) < 0)
		return r;
	return r >= want ? 0 : err_set(err, ERR_NOT_FOUND, "missing hostport rules: there are %d of %d", r, want);
}

static int gc(struct plugin *p, struct err *err)
{
	struct rules_owner *valid;
	size_t n;
	int r = plugin_valid(p, &valid, &n, err);
	return r < 0 ? r : rules_collect(RULES_HOST_PORTS, p->network, valid, n, err);
}

const struct plugin_ops plugin_portmap = { "portmap", add, check, del, gc, NULL };
