/*
 * Ways to the pods of other nodes. Routes have a protocol number of our own; which of them are this cluster's is kept in a file, as several
 * clusters may live on one machine: old and new ones are written before anything is changed, and the new ones alone afterwards.
 *
 * VXLAN: one device, which learns nothing. Hardware addresses follow from the nodes' addresses, so every node knows all
 * others' without asking: a route leads to a gateway on the device, a neighbour entry gives its hardware address, a forwarding
 * entry gives the node that has that.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/encoding.h"
#include "base/file.h"
#include "cni/cni_priv.h"
#include "cni/link.h"
#include "cni/rules.h"
#include "codec/atoms.h"
#include "codec/json.h"

enum { PROTOCOL = 200, VNI = 0xc85, PORT = 4789, OVERHEAD_V4 = 50, OVERHEAD_V6 = 70, PREFIX_MIN = 8 };

static const char device[] = "c8s-vxlan";

struct way {
	struct inet_net pods;
	struct inet node;
};

struct sync {
	struct netlink n;
	struct arena arena;
	struct addr own;              /* our address, with its link; index 0: nobody told us, and there are no ways */
	struct way *ways, *old;       /* both in order; no two ranges of ways overlap */
	size_t n_ways, n_old;
	struct inet *nodes;           /* the addresses of nodes whose ranges count, in order */
	size_t n_nodes;
	int vxlan;                    /* index; 0: there is none */
	struct route *there[2];       /* what the kernel has, by family */
	size_t n_there[2];
	int result;                   /* the first error; the others go on */
	struct err *err;
	struct err refusal;           /* the first range that a node cannot have; code 0: none */
};

static void sync_done(struct sync *s)
{
	netlink_close(&s->n);
	arena_done(&s->arena);
}

/* Keeps the first error. */
static void note(struct sync *s, int r, const struct err *e)
{
	if (r >= 0 || s->result < 0)
		return;
	s->result = r;
	if (s->err)
		*s->err = *e;
}

/* What makes no sense is not done; all the rest is. */
static void refuse(struct sync *s, const struct cni_route *route, const char *why)
{
	if (!s->refusal.code)
		(void)err_set(&s->refusal, ERR_INVALID, "pods " STR_FMT " of node " STR_FMT ": %s", STR_ARG(route->pod_cidr), STR_ARG(route->node_address), why);
}

static bool way_eq(const struct way *a, const struct way *b) { return inet_net_eq(a->pods, b->pods) && inet_eq(a->node, b->node); }

static int by_pods(const void *a, const void *b)
{
	const struct way *x = a, *y = b;
	int order = inet_cmp(x->pods.ip, y->pods.ip);
	return order ? order : (int)x->pods.prefix - (int)y->pods.prefix;
}

static int by_way(const void *a, const void *b)
{
	const struct way *x = a, *y = b;
	int order = by_pods(a, b);
	return order ? order : inet_cmp(x->node, y->node);
}

/* The wanted way to the pods, or NULL. */
static const struct way *find_way(const struct sync *s, struct inet_net pods)
{
	struct way key = { .pods = pods };
	return s->n_ways ? bsearch(&key, s->ways, s->n_ways, sizeof(*s->ways), by_pods) : NULL;
}

static bool way_parse(str pods, str node, struct way *ret)
{
	if (!inet_net_parse(pods, &ret->pods) || !inet_parse(node, &ret->node))
		return false;
	ret->pods.ip = inet_net_first(ret->pods);
	return true;
}

/* ---- what was there before ---- */

static str state_path(struct cni *c, struct arena *a) { return arena_printf(a, "%s/routes.json", c->cache_dir); }

static void load_state(struct cni *c, struct sync *s)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(16 << 20);
	struct val v;

	if (file_read(state_path(c, &s->arena).p, &text, NULL) < 0 ||
	    json_decode(&s->arena, arena_str(&s->arena, buf_str(&text)), &(struct json_decode_options){ 0 }, &v, NULL) < 0)
		return;
	s->old = ARENA_ARRAY(&s->arena, struct way, val_len(v) + 1);
	VAL_EACH(w, v)
		s->n_old += way_parse(val_str(*w, podCIDR), val_str(*w, nodeAddress), &s->old[s->n_old]);
	/* Each once: as long as something fails, new and old ones are written together at every try. */
	size_t kept = 0;
	if (s->n_old)
		qsort(s->old, s->n_old, sizeof(*s->old), by_way);
	for (size_t i = 0; i < s->n_old; i++)
		if (!kept || !way_eq(&s->old[kept - 1], &s->old[i]))
			s->old[kept++] = s->old[i];
	s->n_old = kept;
}

static void add_ways(struct sync *s, struct val_builder *b, const struct way *ways, size_t n)
{
	for (size_t i = 0; i < n; i++)
		val_add_item(b, OBJECT(&s->arena, F(podCIDR, val_of_str(inet_net_str(&s->arena, ways[i].pods))),
				       F(nodeAddress, val_of_str(inet_str(&s->arena, ways[i].node)))));
}

static int save_state(struct cni *c, struct sync *s, bool with_old, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(16 << 20), was = BUF_INIT(16 << 20);
	struct val_builder list = val_builder(&s->arena);
	int r;

	add_ways(s, &list, s->ways, s->n_ways);
	if (with_old)
		add_ways(s, &list, s->old, s->n_old);
	if (!list.n) {
		(void)unlink(state_path(c, &s->arena).p);
		return 0;
	}
	if ((r = json_encode(&text, val_end_list(&list), &(struct json_encode_options){ 0 }, err)) < 0 ||
	    (r = file_make_dirs(c->cache_dir, 0700, err)) < 0)
		return r;
	if (file_read(state_path(c, &s->arena).p, &was, NULL) == 0 && str_eq(buf_str(&was), buf_str(&text)))
		return 0;
	return file_write(state_path(c, &s->arena).p, buf_str(&text), 0600, err);
}

static bool changed(const struct sync *s)
{
	if (s->n_old != s->n_ways)
		return true;
	for (size_t i = 0; i < s->n_ways; i++)
		if (!way_eq(&s->old[i], &s->ways[i]))
			return true;
	return false;
}

/* ---- what shall be ---- */

static bool is_direct(const struct sync *s, const struct way *w)
{
	return inet_net_has(s->own.net, w->node) && w->pods.ip.family == w->node.family && !inet_eq(w->node, s->own.net.ip);
}

/* Of the node's end of the tunnel. */
static void vxlan_mac(struct inet node, uint8_t ret[6])
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	ret[0] = 0x0e;
	ret[1] = 0xc9;
	memcpy(ret + 2, node.b, 4);
	if (inet_is_v4(node))
		return;
	for (size_t i = 0; i < sizeof(node.b); i++)
		hash = (hash ^ node.b[i]) * UINT64_C(0x100000001b3);
	memcpy(ret + 1, &hash, 5);
}

/* The link-local address that goes with a hardware address. */
static struct inet link_local(const uint8_t mac[6])
{
	return (struct inet){ AF_INET6, { 0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3],
					  mac[4], mac[5] } };
}

static struct route route_for(const struct sync *s, const struct way *w)
{
	struct route r = { .dst = w->pods, .gw = w->node, .index = s->own.index, .protocol = PROTOCOL };
	uint8_t mac[6];

	if (is_direct(s, w))
		return r;
	r.index = s->vxlan;
	r.onlink = true;
	/* The gateway must be of a family that the pods' packets can be sent to on the link. */
	if (!inet_is_v4(w->node) || !inet_is_v4(w->pods.ip)) {
		vxlan_mac(w->node, mac);
		r.gw = link_local(mac);
	}
	return r;
}

static int find_own(struct sync *s, const char *own_address, struct err *err)
{
	struct addr *addrs;
	struct inet own;
	size_t n;
	int r;

	if (!own_address || !inet_parse(str_of(own_address), &own))
		return err_set(err, ERR_BAD_REQUEST, "\"%s\" is not an address", own_address ? own_address : "");
	if ((r = addr_list(&s->n, 0, &s->arena, &addrs, &n, err)) < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (inet_eq(addrs[i].net.ip, own))
			s->own = addrs[i];
	return s->own.index ? 0 : err_set(err, ERR_NOT_FOUND, "no link has this node's address %s", own_address);
}

/* ---- who has which range ---- */

static int by_address(const void *a, const void *b) { return inet_cmp(*(const struct inet *)a, *(const struct inet *)b); }

/* How many of a list in order come before the key. */
static size_t place_of(const void *key, const void *list, size_t n, size_t size, int (*cmp)(const void *, const void *))
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (cmp((const char *)list + middle * size, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The list has room. */
static void insert(void *list, size_t *n, size_t size, size_t at, const void *item)
{
	char *p = (char *)list + at * size;

	memmove(p + size, p, (*n - at) * size);
	memcpy(p, item, size);
	++*n;
}

static void add_node(struct sync *s, struct inet node)
{
	size_t at = place_of(&node, s->nodes, s->n_nodes, sizeof(node), by_address);

	if (at == s->n_nodes || !inet_eq(s->nodes[at], node))
		insert(s->nodes, &s->n_nodes, sizeof(node), at, &node);
}

/* Whose range has something of this one; NULL: it is free. As no two overlap, only those beside its place can. */
static const struct way *overlapping(const struct sync *s, const struct way *w, size_t *ret_at)
{
	size_t at = *ret_at = place_of(w, s->ways, s->n_ways, sizeof(*w), by_pods);

	if (at < s->n_ways && inet_net_has(w->pods, s->ways[at].pods.ip))
		return &s->ways[at];
	return at && inet_net_has(s->ways[at - 1].pods, w->pods.ip) ? &s->ways[at - 1] : NULL;
}

/*
 * Why the range cannot be that node's; NULL: it can. One of half of the world, or with nodes in it, would take traffic that is none of pods, and a node in a
 * range of pods could not be reached.
 */
static const char *wrong_with(struct sync *s, const struct way *w, const struct way *other)
{
	struct way host = { .pods = inet_net_host(w->node) };
	size_t at = place_of(&w->pods.ip, s->nodes, s->n_nodes, sizeof(*s->nodes), by_address), unused;

	if (w->pods.prefix < PREFIX_MIN)
		return "the range is too large";
	if (inet_net_has(w->pods, w->node))
		return "the node itself is in the range";
	if (other)
		return arena_printf(&s->arena, "node " STR_FMT " has " STR_FMT, STR_ARG(inet_str(&s->arena, other->node)), STR_ARG(inet_net_str(&s->arena, other->pods))).p;
	if (at < s->n_nodes && inet_net_has(w->pods, s->nodes[at]))
		return arena_printf(&s->arena, "node " STR_FMT " is in the range", STR_ARG(inet_str(&s->arena, s->nodes[at]))).p;
	return overlapping(s, &host, &unused) ? "the node's address is one of pods" : NULL;
}

/*
 * A node says itself which pods it has, so it might name another one's: who comes first keeps what it has. First is this node, then who had
 * the range at the last time, then who is named first.
 */
enum claim { CLAIM_OWN, CLAIM_KEPT, CLAIM_NEW, CLAIM_NONE };

static enum claim claim_of(struct sync *s, const struct way *w, const struct cni_route *route)
{
	if (route->own)
		return CLAIM_OWN;
	if (inet_eq(w->node, s->own.net.ip))
		return CLAIM_NONE; /* this node under another name; or one that is not reached by any way */
	if (w->node.family != s->own.net.ip.family)
		return refuse(s, route, "the node has no address of the family of ours"), CLAIM_NONE;
	return s->n_old && bsearch(w, s->old, s->n_old, sizeof(*w), by_way) ? CLAIM_KEPT : CLAIM_NEW;
}

static void claim(struct sync *s, const struct way *w, const struct cni_route *route)
{
	size_t at;
	const struct way *other = overlapping(s, w, &at);
	bool twice = other && way_eq(other, w);
	const char *wrong = twice || route->own ? NULL : wrong_with(s, w, other);

	if (wrong)
		refuse(s, route, wrong);
	if (wrong || other)
		return;
	insert(s->ways, &s->n_ways, sizeof(*w), at, w);
	add_node(s, w->node);
}

/* Our own pods need no way. */
static void leave_out_own(struct sync *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n_ways; i++)
		if (!inet_eq(s->ways[i].node, s->own.net.ip))
			s->ways[kept++] = s->ways[i];
	s->n_ways = kept;
}

static void load_ways(struct sync *s, const struct cni_route *routes, size_t n)
{
	struct way *all = ARENA_ARRAY(&s->arena, struct way, n + 1);
	enum claim *kinds = ARENA_ARRAY(&s->arena, enum claim, n + 1);

	s->ways = ARENA_ARRAY(&s->arena, struct way, n + 1);
	s->nodes = ARENA_ARRAY(&s->arena, struct inet, n + 1);
	add_node(s, s->own.net.ip);
	for (size_t i = 0; i < n; i++) {
		bool parsed = way_parse(routes[i].pod_cidr, routes[i].node_address, &all[i]);
		if (!parsed)
			refuse(s, &routes[i], "these are no addresses");
		kinds[i] = parsed ? claim_of(s, &all[i], &routes[i]) : CLAIM_NONE;
	}
	for (enum claim kind = CLAIM_OWN; kind < CLAIM_NONE; kind++)
		for (size_t i = 0; i < n; i++)
			if (kinds[i] == kind)
				claim(s, &all[i], &routes[i]);
	leave_out_own(s);
}

/* ---- the device ---- */

static bool needs_vxlan(const struct sync *s)
{
	for (size_t i = 0; i < s->n_ways; i++)
		if (!is_direct(s, &s->ways[i]))
			return true;
	return false;
}

static int ensure_vxlan(struct sync *s, struct err *err)
{
	uint8_t mac[6];
	struct link l, under;
	bool wanted = needs_vxlan(s);
	int r = link_get(&s->n, device, &l, err);

	if (r < 0 && r != -ERR_NOT_FOUND)
		return r;
	vxlan_mac(s->own.net.ip, mac);
	bool there = r == 0, right = there && str_eq(str_of(l.kind), STR("vxlan")) && (!s->own.index || memcmp(l.mac, mac, sizeof(mac)) == 0);
	s->vxlan = right ? l.index : 0;
	if (!wanted)
		return 0;
	if ((r = link_get_index(&s->n, s->own.index, &under, err)) < 0)
		return r;
	struct link_spec spec = { .name = device, .kind = "vxlan", .vni = VNI, .port = PORT, .local = s->own.net.ip, .mac = mac,
				  .mtu = under.mtu - (inet_is_v4(s->own.net.ip) ? OVERHEAD_V4 : OVERHEAD_V6) };
	/* The link below may have changed since; and who made this one may have been killed before it was up. */
	if (right)
		return l.mtu == spec.mtu && l.flags & IFF_UP ?
			       0 : link_set(&s->n, l.index, &(struct link_change){ .up = LINK_ON, .mtu = spec.mtu }, err);
	/* Our address was another one. */
	if (there && (r = link_del(&s->n, l.index, err)) < 0)
		return r;
	if ((r = link_add(&s->n, &spec, err)) < 0 || (r = link_get(&s->n, device, &l, err)) < 0 ||
	    (r = link_set(&s->n, l.index, &(struct link_change){ .up = LINK_ON }, err)) < 0)
		return r;
	s->vxlan = l.index;
	return 0;
}

/* The entries of a node. */
static void neighbours(const struct sync *s, struct inet node, struct neigh ret[3])
{
	struct neigh base = { .index = s->vxlan };

	vxlan_mac(node, base.mac);
	for (size_t i = 0; i < 3; i++)
		ret[i] = base;
	ret[0].ip = node;
	ret[0].fdb = true;
	ret[1].ip = node;
	ret[2].ip = link_local(base.mac);
}

static int set_neighbours(struct sync *s, struct inet node, struct err *err)
{
	struct neigh list[3];
	int r = 0;

	neighbours(s, node, list);
	for (size_t i = 0; i < 3 && r == 0; i++)
		r = neigh_set(&s->n, &list[i], err);
	return r;
}

/* ---- routes ---- */

static int by_dst(const void *a, const void *b)
{
	const struct route *x = a, *y = b;
	int order = inet_cmp(x->dst.ip, y->dst.ip);
	return order ? order : (int)x->dst.prefix - (int)y->dst.prefix;
}

/* The routes of our protocol number, in order. */
static int load_there(struct sync *s, struct err *err)
{
	for (size_t six = 0; six < 2; six++) {
		size_t n, kept = 0;
		int r = route_list(&s->n, six ? AF_INET6 : AF_INET, &s->arena, &s->there[six], &n, err);
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++)
			if (s->there[six][i].protocol == PROTOCOL)
				s->there[six][kept++] = s->there[six][i];
		s->n_there[six] = kept;
		if (kept)
			qsort(s->there[six], kept, sizeof(struct route), by_dst);
	}
	return 0;
}

static const struct route *find_there(const struct sync *s, struct inet_net dst)
{
	size_t six = !inet_is_v4(dst.ip);
	struct route key = { .dst = dst };
	return s->n_there[six] ? bsearch(&key, s->there[six], s->n_there[six], sizeof(key), by_dst) : NULL;
}

static void add_missing(struct sync *s)
{
	struct err e = ERR_INIT;

	for (size_t i = 0; i < s->n_ways; i++) {
		const struct way *w = &s->ways[i];
		if (!is_direct(s, w) && !s->vxlan)
			continue; /* there was an error about that */
		struct route want = route_for(s, w);
		const struct route *there = find_there(s, want.dst);
		if (there && there->index == want.index && inet_eq(there->gw, want.gw))
			continue; /* and its neighbours, which come before it */
		int r = is_direct(s, w) ? 0 : set_neighbours(s, w->node, &e);
		note(s, r < 0 ? r : route_add(&s->n, &want, ROUTE_REPLACE, &e), &e);
	}
}

static bool has_node(const struct sync *s, struct inet node)
{
	for (size_t i = 0; i < s->n_ways; i++)
		if (inet_eq(s->ways[i].node, node) && !is_direct(s, &s->ways[i]))
			return true;
	return false;
}

static void remove_old(struct sync *s)
{
	struct err e = ERR_INIT;

	for (size_t i = 0; i < s->n_old; i++) {
		const struct way *w = &s->old[i], *now = find_way(s, w->pods);
		const struct route *there = find_there(s, w->pods);
		struct neigh list[3];
		if (now && way_eq(now, w))
			continue;
		/* A route that leads elsewhere now was replaced above. */
		int r = !now && there ? route_del(&s->n, there, &e) : 0;
		if (r < 0 && e.sys != ESRCH)
			note(s, r, &e);
		neighbours(s, w->node, list);
		for (size_t k = 0; s->vxlan && !has_node(s, w->node) && k < 3; k++)
			note(s, neigh_del(&s->n, &list[k], &e), &e);
	}
}

/* The device goes with the last route over it, whosever that was. */
static void remove_vxlan(struct sync *s)
{
	struct err e = ERR_INIT;

	if (!s->vxlan || needs_vxlan(s) || !s->n_old)
		return;
	int r = load_there(s, &e);
	note(s, r, &e);
	for (size_t six = 0; six < 2; six++)
		for (size_t i = 0; i < s->n_there[six]; i++)
			if (r < 0 || s->there[six][i].index == s->vxlan)
				return;
	note(s, link_del(&s->n, s->vxlan, &e), &e);
}

/* They are named after the file that knows of them: it is there also when the network's configuration is not yet, or not any more. */
static int set_rules(struct cni *c, struct sync *s, struct err *err)
{
	struct inet_net *pods = ARENA_ARRAY(&s->arena, struct inet_net, s->n_ways + 1);
	char hex[SHA256_HEX + 1];

	for (size_t i = 0; i < s->n_ways; i++)
		pods[i] = s->ways[i].pods;
	sha256_hex(str_of(c->cache_dir), hex);
	return rules_pods(arena_printf(&s->arena, "routes-%.8s", hex).p, pods, s->n_ways, err);
}

static bool has_others(const struct cni_route *routes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!routes[i].own)
			return true;
	return false;
}

int cni_routes_sync(struct cni *c, const char *own_address, const struct cni_route *routes, size_t n, struct err *err)
{
	CLEANUP(sync_done) struct sync s = { .n = NETLINK_INIT, .err = err };
	struct err e = ERR_INIT;
	int r;

	load_state(c, &s);
	if (!s.n_old && !has_others(routes, n))
		return 0; /* a cluster of one node */
	if ((r = netlink_open(&s.n, NETLINK_ROUTE, err)) < 0 || ((n || own_address) && (r = find_own(&s, own_address, err)) < 0))
		return r;
	load_ways(&s, routes, n);
	if (changed(&s) && (r = save_state(c, &s, true, err)) < 0)
		return r;
	/* The file may be older than the kernel's state: a machine that was started again has no rules. */
	if (changed(&s) || !c->routes_known) {
		note(&s, r = set_rules(c, &s, &e), &e);
		c->routes_known = r == 0;
	}
	note(&s, ensure_vxlan(&s, &e), &e);
	if ((r = load_there(&s, err)) < 0)
		return r;
	add_missing(&s);
	remove_old(&s);
	remove_vxlan(&s);
	if (s.result == 0 && changed(&s))
		note(&s, save_state(c, &s, false, &e), &e);
	if (s.result < 0 || !s.refusal.code)
		return s.result;
	if (err)
		*err = s.refusal;
	return -ERR_INVALID;
}
