#include "cni/rules.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <stdlib.h>

#include "cni/nft.h"

enum { TRIES = 5 /* somebody else may delete what we are about to */ };

static const char table[] = "c8s_cni", host_ports[] = "hostports", hairpin[] = "hairpin", pods[] = "pods", masquerade[] = "masquerade";

static void multicast_rule(struct nft_batch *b, const char *chain, const char *net)
{
	struct inet_net multicast;

	(void)inet_net_parse(str_of(net), &multicast);
	nft_rule_begin(b, chain, NULL);
	nft_match_ip(b, NFT_TO, multicast, false);
	nft_return(b);
	nft_rule_end(b);
}

static void jump_rule(struct nft_batch *b, const char *chain, bool to_local, const char *to)
{
	nft_rule_begin(b, chain, NULL);
	if (to_local)
		nft_match_to_local(b);
	nft_jump(b, to);
	nft_rule_end(b);
}

/* The table with all that does not belong to somebody: made, or made right again. */
static void frame(struct nft_batch *b)
{
	static const char *const plain[] = { host_ports, hairpin, pods, masquerade };
	static const struct {
		const char *name;
		uint32_t hook;
		int32_t priority;
	} hooks[] = {
		{ "prerouting", NF_INET_PRE_ROUTING, NF_IP_PRI_NAT_DST },
		{ "output", NF_INET_LOCAL_OUT, NF_IP_PRI_NAT_DST },
		{ "postrouting", NF_INET_POST_ROUTING, NF_IP_PRI_NAT_SRC },
	};

	nft_table(b);
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		nft_chain(b, plain[i]);
	for (size_t i = 0; i < ARRAY_LEN(hooks); i++) {
		nft_nat_chain(b, hooks[i].name, hooks[i].hook, hooks[i].priority);
		nft_chain_flush(b, hooks[i].name);
	}
	jump_rule(b, "prerouting", true, host_ports);
	jump_rule(b, "output", true, host_ports);
	jump_rule(b, "postrouting", false, hairpin);
	multicast_rule(b, "postrouting", "224.0.0.0/4");
	multicast_rule(b, "postrouting", "ff00::/8");
	jump_rule(b, "postrouting", false, pods);
	jump_rule(b, "postrouting", false, masquerade);
}

static int comment_of(const struct rules_owner *o, char text[NFT_COMMENT_MAX + 1], struct err *err)
{
	int n = snprintf(text, NFT_COMMENT_MAX + 1, "%s %s %s", o->network, o->id, o->ifname);
	if (n < 0 || n > NFT_COMMENT_MAX)
		return err_set(err, ERR_INVALID, "the names of network and container together are longer than %d bytes",
			       NFT_COMMENT_MAX - 2 -
			       (int)strlen(o->ifname));
	return 0;
}

static bool of_kind(unsigned kinds, str chain)
{
	return (kinds & RULES_MASQUERADE && str_eq(chain, str_of(masquerade))) ||
	       (kinds & RULES_HOST_PORTS && (str_eq(chain, str_of(host_ports)) || str_eq(chain, str_of(hairpin))));
}

/*
 * One transaction: what `build` adds (with the frame), and without the rules that `goes` names. Tried again when one of
 * those was gone by then.
 */
struct change {
	bool (*goes)(const struct nft_rule *rule, const void *arg);
	void (*build)(struct nft_batch *b, const void *arg);  /* NULL: only remove */
	const void *arg;
};

static int change(const struct change *c, struct err *err)
{
	CLEANUP(netlink_close) struct netlink n = NETLINK_INIT;
	struct err e = ERR_INIT;
	int r = netlink_open(&n, NETLINK_NETFILTER, err);

	for (int i = 0; r == 0 && i < TRIES; i++) {
		CLEANUP(arena_done) struct arena arena = ARENA_INIT;
		CLEANUP(nft_batch_done) struct nft_batch b;
		struct nft_rule *rules;
		size_t n_rules;

		nft_batch_begin(&b, table);
		if ((r = nft_rules(&n, table, &arena, &rules, &n_rules, err)) < 0)
			return r;
		if (c->build)
			frame(&b);
		for (size_t k = 0; k < n_rules; k++)
			if (c->goes(&rules[k], c->arg))
				nft_rule_delete(&b, &rules[k]);
		if (c->build)
			c->build(&b, c->arg);
		r = nft_batch_commit(&b, &n, &e);
		if (r == 0)
			return 0;
		if (e.sys == ENOENT)
			r = 0;
	}
	if (err && e.code)
		*err = e;
	return r < 0 ? r : -ERR_NOT_FOUND;
}

/* What the functions below hand to their steps. */
struct owned {
	unsigned kinds;
	const char *comment;
	const struct inet_net *nets;
	const struct rules_ports *sets;
	size_t n;
};

static bool is_owned(const struct nft_rule *rule, const void *arg)
{
	const struct owned *o = arg;
	return of_kind(o->kinds, rule->chain) && str_eq(rule->comment, str_of(o->comment));
}

/* ---- masquerade ---- */

static void build_masquerade(struct nft_batch *b, const void *arg)
{
	const struct owned *o = arg;

	for (size_t i = 0; i < o->n; i++) {
		nft_rule_begin(b, masquerade, o->comment);
		nft_match_ip(b, NFT_FROM, inet_net_host(o->nets[i].ip), false);
		nft_match_ip(b, NFT_TO, o->nets[i], true);
		nft_masquerade(b);
		nft_rule_end(b);
	}
}

int rules_masquerade(const struct rules_owner *owner, const struct inet_net *nets, size_t n, struct err *err)
{
	char comment[NFT_COMMENT_MAX + 1];
	struct owned o = { RULES_MASQUERADE, comment, nets, NULL, n };
	int r = comment_of(owner, comment, err);
	return r < 0 ? r : change(&(struct change){ is_owned, build_masquerade, &o }, err);
}

/* ---- host ports ---- */

static void match_conditions(struct nft_batch *b, const struct rules_ports *s)
{
	for (size_t i = 0; i < s->n_conditions; i++) {
		const struct rules_condition *c = &s->conditions[i];
		if (c->link)
			nft_match_link(b, c->link, c->not);
		else
			nft_match_ip(b, c->source ? NFT_FROM : NFT_TO, c->net, c->not);
	}
}

static void host_port_rule(struct nft_batch *b, const char *comment, const struct rules_ports *s, const struct rules_port *p)
{
	nft_rule_begin(b, host_ports, comment);
	nft_match_family(b, s->pod.ip.family);
	match_conditions(b, s);
	if (inet_exists(p->host_ip) && !inet_is_zero(p->host_ip))
		nft_match_ip(b, NFT_TO, inet_net_host(p->host_ip), false);
	nft_match_protocol(b, p->protocol);
	nft_match_to_port(b, p->host_port);
	nft_dnat(b, s->pod.ip, p->port);
	nft_rule_end(b);
}

/*
 * The pod itself and its neighbours on the bridge would be answered directly, without the way back through the
 * translation; and an answer to 127.0.0.1 would never leave the pod.
 */
static void hairpin_rule(struct nft_batch *b, const char *comment, const struct rules_ports *s, const struct rules_port *p,
			 struct inet_net from)
{
	nft_rule_begin(b, hairpin, comment);
	nft_match_ip(b, NFT_FROM, from, false);
	nft_match_ip(b, NFT_TO, inet_net_host(s->pod.ip), false);
	nft_match_protocol(b, p->protocol);
	nft_match_original_port(b, p->host_port);
	nft_masquerade(b);
	nft_rule_end(b);
}

static void build_host_ports(struct nft_batch *b, const void *arg)
{
	const struct owned *o = arg;
	const struct inet_net localhost = { { AF_INET, { 127 } }, 8 };

	for (size_t i = 0; i < o->n; i++) {
		const struct rules_ports *s = &o->sets[i];
		struct inet_net from = s->pod;
		from.prefix = s->masquerade_all ? 0 : from.prefix;
		for (size_t k = 0; k < s->n; k++) {
			const struct rules_port *p = &s->ports[k];
			if (inet_exists(p->host_ip) && p->host_ip.family != s->pod.ip.family)
				continue;
			host_port_rule(b, o->comment, s, p);
			if (!s->snat)
				continue;
			hairpin_rule(b, o->comment, s, p, from);
			if (inet_is_v4(s->pod.ip) && !s->masquerade_all)
				hairpin_rule(b, o->comment, s, p, localhost);
		}
	}
}

int rules_host_ports(const struct rules_owner *owner, const struct rules_ports *sets, size_t n, struct err *err)
{
	char comment[NFT_COMMENT_MAX + 1];
	struct owned o = { RULES_HOST_PORTS, comment, NULL, sets, n };
	int r = comment_of(owner, comment, err);
	return r < 0 ? r : change(&(struct change){ is_owned, build_host_ports, &o }, err);
}

/* ---- pods of other nodes ---- */

struct pods {
	const char *network, *set[2];
	struct inet_net *nets[2];
	size_t n[2];
};

static const int families[2] = { AF_INET, AF_INET6 };

static bool is_pods(const struct nft_rule *rule, const void *arg)
{
	const struct pods *p = arg;
	return str_eq(rule->chain, str_of(pods)) && str_eq(rule->comment, str_of(p->network));
}

static void build_pods(struct nft_batch *b, const void *arg)
{
	const struct pods *p = arg;

	for (size_t i = 0; i < 2; i++) {
		nft_set(b, p->set[i], families[i]);
		if (!p->n[i]) {
			nft_set_delete(b, p->set[i]);
			continue;
		}
		nft_set_flush(b, p->set[i]);
		nft_set_add(b, p->set[i], p->nets[i], p->n[i]);
		nft_rule_begin(b, pods, p->network);
		nft_match_set(b, NFT_TO, p->set[i], families[i]);
		nft_accept(b);
		nft_rule_end(b);
	}
}

static int by_place(const void *a, const void *b)
{
	const struct inet_net *x = a, *y = b;
	int order = inet_cmp(inet_net_first(*x), inet_net_first(*y));
	return order ? order : (int)x->prefix - (int)y->prefix;
}

/* Those of one family in order, without those that lie in another: two networks overlap only so. */
static size_t sort_nets(struct inet_net *ret, const struct inet_net *nets, size_t n, int family)
{
	size_t kept = 0, found = 0;

	for (size_t i = 0; i < n; i++)
		if (nets[i].ip.family == family)
			ret[found++] = nets[i];
	if (found)
		qsort(ret, found, sizeof(*ret), by_place);
	for (size_t i = 0; i < found; i++)
		if (!kept || !inet_net_has(ret[kept - 1], ret[i].ip))
			ret[kept++] = ret[i];
	return kept;
}

int rules_pods(const char *network, const struct inet_net *nets, size_t n, struct err *err)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	struct pods p = { .network = network };

	if (strlen(network) > NFT_COMMENT_MAX - 10)
		return err_set(err, ERR_INVALID, "the name of the network is longer than %d bytes", NFT_COMMENT_MAX - 10);
	for (size_t i = 0; i < 2; i++) {
		p.set[i] = arena_printf(&arena, "pods%d_%s", i ? 6 : 4, network).p;
		p.nets[i] = ARENA_ARRAY(&arena, struct inet_net, n + 1);
		p.n[i] = sort_nets(p.nets[i], nets, n, families[i]);
	}
	return change(&(struct change){ is_pods, build_pods, &p }, err);
}

/* ---- looking and removing ---- */

int rules_count(enum rules_kind kind, const struct rules_owner *owner, struct err *err)
{
	CLEANUP(netlink_close) struct netlink n = NETLINK_INIT;
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	char comment[NFT_COMMENT_MAX + 1];
	const char *chain = kind == RULES_MASQUERADE ? masquerade : host_ports;
	struct nft_rule *rules;
	size_t n_rules;
	int r, count = 0;

	if ((r = comment_of(owner, comment, err)) < 0 || (r = netlink_open(&n, NETLINK_NETFILTER, err)) < 0 ||
	    (r = nft_rules(&n, table, &arena, &rules, &n_rules, err)) < 0)
		return r;
	for (size_t i = 0; i < n_rules; i++)
		count += str_eq(rules[i].chain, str_of(chain)) && str_eq(rules[i].comment, str_of(comment));
	return count;
}

int rules_remove(unsigned kinds, const struct rules_owner *owner, struct err *err)
{
	char comment[NFT_COMMENT_MAX + 1];
	struct owned o = { kinds, comment, NULL, NULL, 0 };

	if (comment_of(owner, comment, NULL) < 0)
		return 0; /* it could not have been added */
	return change(&(struct change){ is_owned, NULL, &o }, err);
}

struct valid {
	unsigned kinds;
	const char *network;
	const struct rules_owner *owners;
	size_t n;
};

static bool is_invalid(const struct nft_rule *rule, const void *arg)
{
	const struct valid *v = arg;
	str network, rest, id, ifname;

	if (!of_kind(v->kinds, rule->chain) || !str_cut(rule->comment, ' ', &network, &rest) || !str_cut(rest, ' ', &id, &ifname) ||
	    !str_eq(network, str_of(v->network)))
		return false;
	for (size_t i = 0; i < v->n; i++)
		if (str_eq(id, str_of(v->owners[i].id)) && str_eq(ifname, str_of(v->owners[i].ifname)))
			return false;
	return true;
}

int rules_collect(unsigned kinds, const char *network, const struct rules_owner *valid, size_t n, struct err *err)
{
	struct valid v = { kinds, network, valid, n };
	return change(&(struct change){ is_invalid, NULL, &v }, err);
}

int rules_remove_empty(struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(netlink_close) struct netlink n = NETLINK_INIT;
	struct nft_rule *rules;
	CLEANUP(nft_batch_done) struct nft_batch b;
	size_t n_rules;
	int r;

	nft_batch_begin(&b, table);
	if ((r = netlink_open(&n, NETLINK_NETFILTER, err)) < 0 || (r = nft_rules(&n, table, &a, &rules, &n_rules, err)) < 0 || n_rules)
		return r;
	nft_table(&b); /* so that there is one to remove */
	nft_table_delete(&b);
	return nft_batch_commit(&b, &n, err);
}
