#include <linux/netlink.h>
#include <sys/stat.h>

#include "cni/link.h"
#include "cni/testing.h"

enum { NODES = 300, PROTOCOL = 200 };

#define OWN "192.0.2.1"

/* A machine with one link, whose neighbours are other nodes. */
struct machine {
	struct arena arena;
	struct folder folder;
	struct netlink n;
	struct link link;
	int home;
};

static void set_up(struct machine *m, enum link_switch up) { CHECK_INT(link_set(&m->n, m->link.index, &(struct link_change){ .up = up }, NULL), 0); }

static struct machine machine_make(void)
{
	struct machine m = { .n = NETLINK_INIT, .home = network_make() };
	struct inet_net own;

	m.folder = folder_make();
	CHECK_INT(netlink_open(&m.n, NETLINK_ROUTE, NULL), 0);
	CHECK_INT(link_add(&m.n, &(struct link_spec){ .name = "lan", .kind = "bridge" }, NULL), 0);
	CHECK_INT(link_get(&m.n, "lan", &m.link, NULL), 0);
	CHECK(inet_net_parse(STR(OWN "/24"), &own));
	CHECK_INT(addr_add(&m.n, m.link.index, own, false, NULL), 0);
	set_up(&m, LINK_ON);
	return m;
}

static void machine_remove(struct machine *m)
{
	netlink_close(&m->n);
	network_leave(m->home);
	folder_remove(&m->folder);
	arena_done(&m->arena);
}

/* "RANGE=NODE RANGE=NODE"; a range of ours has no node. */
static int sync_to(struct machine *m, const char *text, struct err *err)
{
	struct cni_route *routes = ARENA_ARRAY(&m->arena, struct cni_route, NODES + 1);
	str word, rest = str_of(text);
	size_t n = 0;

	for (; rest.n; n++) {
		(void)str_cut(rest, ' ', &word, &rest);
		(void)str_cut(word, '=', &routes[n].pod_cidr, &routes[n].node_address);
		routes[n].own = !routes[n].node_address.n;
		if (routes[n].own)
			routes[n].node_address = STR(OWN);
	}
	err_clear(err);
	return cni_routes_sync(m->folder.cni, OWN, routes, n, err);
}

/* What the kernel has, in the same form and in its order. */
static str ways(struct machine *m)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);
	struct route *routes;
	size_t n;

	CHECK_INT(route_list(&m->n, AF_INET, &m->arena, &routes, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		if (routes[i].protocol == PROTOCOL)
			buf_addf(&text, "%s" STR_FMT "=" STR_FMT, text.n ? " " : "", STR_ARG(inet_net_str(&m->arena, routes[i].dst)),
				 STR_ARG(inet_str(&m->arena, routes[i].gw)));
	return arena_str(&m->arena, buf_str(&text));
}

static off_t state_size(struct machine *m)
{
	struct stat st;
	return stat(path_in(&m->arena, &m->folder, "routes.json"), &st) == 0 ? st.st_size : 0;
}

/* So many nodes, each with a range. */
static const char *many(struct machine *m, unsigned n)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);

	for (unsigned i = 0; i < n; i++)
		buf_addf(&text, "%s10.%u.%u.0/24=192.0.2.%u", i ? " " : "", 1 + i / 256, i % 256, 2 + i % 250);
	return arena_str(&m->arena, buf_str(&text)).p;
}

TEST(routes_grow)
{
	static const unsigned counts[] = { 1, 2, 100, NODES, 3, 0 };
	struct machine m = machine_make();
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		CHECK_INT(sync_to(&m, many(&m, counts[i]), &err), 0);
		CHECK_STR_ROW(i, ways(&m), many(&m, counts[i]));
	}
	CHECK_INT(state_size(&m), 0);
	/* A failure that lasts: what is kept of old and new ones does not grow with every try. */
	CHECK_INT(sync_to(&m, many(&m, 2), &err), 0);
	set_up(&m, LINK_OFF);
	CHECK(sync_to(&m, many(&m, 4), &err) < 0);
	off_t once = state_size(&m);
	for (size_t i = 0; i < 3; i++)
		CHECK(sync_to(&m, many(&m, 4), &err) < 0);
	CHECK_INT(state_size(&m), once);
	set_up(&m, LINK_ON);
	CHECK_INT(sync_to(&m, many(&m, 4), &err), 0);
	CHECK_STR(ways(&m), many(&m, 4));
	machine_remove(&m);
}

TEST(routes_refused)
{
	static const char good[] = "10.1.1.0/24=192.0.2.2 10.1.3.0/24=192.0.2.3";
	static const struct { const char *way, *why; } t[] = {
		{ "0.0.0.0/0=192.0.2.9", "the range is too large" },
		{ "10.0.0.0/7=192.0.2.9", "the range is too large" },
		{ "192.0.2.0/24=192.0.2.9", "the node itself is in the range" },
		/* Of nodes: ourselves, another one. */
		{ "192.0.2.0/30=192.0.2.9", "node 192.0.2.1 is in the range" },
		{ "192.0.2.3/32=192.0.2.9", "node 192.0.2.3 is in the range" },
		/* Of others' pods: all, some, more than those, ours. */
		{ "10.1.1.0/24=192.0.2.9", "node 192.0.2.2 has 10.1.1.0/24" },
		{ "10.1.1.128/25=192.0.2.9", "node 192.0.2.2 has 10.1.1.0/24" },
		{ "10.1.1.0/28=192.0.2.9", "node 192.0.2.2 has 10.1.1.0/24" },
		{ "10.1.2.0/23=192.0.2.9", "node 192.0.2.3 has 10.1.3.0/24" },
		{ "10.0.0.0/8=192.0.2.9", "node 192.0.2.1 has 10.1.0.0/24" },
		{ "10.1.0.64/26=192.0.2.9", "node 192.0.2.1 has 10.1.0.0/24" },
		{ "10.1.4.0/24=10.1.3.5", "the node's address is one of pods" },
		{ "10.1.4.0/24=2001:db8::1", "the node has no address of the family of ours" },
		{ "ten=192.0.2.9", "these are no addresses" },
	};
	struct machine m = machine_make();
	struct err err = ERR_INIT;

	CHECK_INT(sync_to(&m, arena_printf(&m.arena, "10.1.0.0/24 %s", good).p, &err), 0);
	off_t size = state_size(&m);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		/* First in the list: who has a range keeps it nevertheless. */
		CHECK_ROW(i, sync_to(&m, arena_printf(&m.arena, "%s %s 10.1.0.0/24", t[i].way, good).p, &err) == -ERR_INVALID);
		CHECK_ROW(i, str_ends(err_str(&err), str_of(t[i].why)));
		CHECK_STR_ROW(i, ways(&m), good);
		CHECK_ROW(i, state_size(&m) == size);
	}
	/* A refusal that lasts does not keep others from being forgotten. */
	CHECK_INT(sync_to(&m, "0.0.0.0/0=192.0.2.9 10.1.1.0/24=192.0.2.2", &err), -ERR_INVALID);
	CHECK_STR(ways(&m), "10.1.1.0/24=192.0.2.2");
	CHECK(state_size(&m) < size);
	machine_remove(&m);
}

/* Two nodes with one range. */
TEST(routes_first_come)
{
	struct machine m = machine_make();
	struct err err = ERR_INIT;

	/* Nobody has it yet: the first in the list. */
	CHECK_INT(sync_to(&m, "10.1.1.0/24=192.0.2.2 10.1.1.0/24=192.0.2.9 10.1.1.0/24=192.0.2.2", &err), -ERR_INVALID);
	CHECK_STR(err_str(&err), "pods 10.1.1.0/24 of node 192.0.2.9: node 192.0.2.2 has 10.1.1.0/24");
	CHECK_STR(ways(&m), "10.1.1.0/24=192.0.2.2");
	CHECK_INT(sync_to(&m, "10.1.1.0/24=192.0.2.9 10.1.1.0/24=192.0.2.2", &err), -ERR_INVALID);
	CHECK_STR(ways(&m), "10.1.1.0/24=192.0.2.2");
	/* Also for another process. */
	cni_free(m.folder.cni);
	m.folder.cni = cni_new(&(struct cni_options){ .conf_dir = m.folder.path, .cache_dir = m.folder.path, .bin_dirs = (const char *const[]){ NULL } });
	CHECK_INT(sync_to(&m, "10.1.1.0/24=192.0.2.9 10.1.1.0/24=192.0.2.2", &err), -ERR_INVALID);
	CHECK_STR(ways(&m), "10.1.1.0/24=192.0.2.2");
	/* When that node is gone, its range is free for others; a node that says our address has nothing of ours. */
	CHECK_INT(sync_to(&m, "10.1.1.0/24=192.0.2.9", &err), 0);
	CHECK_STR(ways(&m), "10.1.1.0/24=192.0.2.9");
	CHECK_INT(sync_to(&m, "10.1.1.0/24=" OWN " 10.1.1.0/24=192.0.2.9", &err), 0);
	CHECK_STR(ways(&m), "10.1.1.0/24=192.0.2.9");
	machine_remove(&m);
}
