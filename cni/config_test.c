#include <linux/netlink.h>

#include "cni/link.h"
#include "cni/testing.h"
#include "codec/atoms.h"

TEST(config_parse)
{
	static const struct {
		const char *text, *error;  /* NULL: fine */
		bool single;
	} rows[] = {
		{ "{\"name\":\"n\",\"plugins\":[{\"type\":\"bridge\"}]}", NULL, false },
		{ "{\"name\":\"n\",\"disableCheck\":\"TRUE\",\"plugins\":[{\"type\":\"bridge\"}]}", NULL, false },
		{ "{\"name\":\"n\",\"type\":\"bridge\"}", NULL, true },
		{ "{\"plugins\":[]}", "error parsing configuration list: no name", false },
		{ "{\"name\":1}", "error parsing configuration list: invalid name type", false },
		{ "{\"name\":\"n\",\"cniVersion\":1}", "error parsing configuration list: invalid cniVersion type", false },
		{ "{\"name\":\"n\"}", "error parsing configuration list: no 'plugins' key", false },
		{ "{\"name\":\"n\",\"plugins\":{}}", "error parsing configuration list: invalid 'plugins' type", false },
		{ "{\"name\":\"n\",\"plugins\":[]}", "error parsing configuration list: no plugins in list", false },
		{ "{\"name\":\"n\",\"disableGC\":\"x\",\"plugins\":[{\"type\":\"t\"}]}",
		  "error parsing configuration list: invalid value for disableGC", false },
		{ "{\"name\":\"n\",\"plugins\":[{\"type\":\"t\"},{}]}",
		  "failed to parse plugin config 1: error parsing configuration: missing 'type'", false },
		{ "{\"name\":\"n\"}", "error parsing configuration: missing 'type'", true },
		{ "{\"name\":\"a/b\",\"type\":\"t\"}", "invalid characters found in network name; a/b", true },
		{ "[]", "error parsing configuration list: it is not an object", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct cni_config net;
		struct err err = ERR_INIT;
		int r = cni_config_parse(&a, str_of(rows[i].text), rows[i].single, &net, &err);
		CHECK_ROW(i, (r == 0) == !rows[i].error);
		if (r < 0)
			CHECK_STR_ROW(i, err_str(&err), rows[i].error);
		else
			CHECK_STR_ROW(i, val_str(val_at(net.plugins, 0), type), "bridge");
	}
}

TEST(config_first_by_name)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct folder f = folder_make();
	struct cni_config net;
	struct err err = ERR_INIT;

	CHECK_INT(cni_config_load(f.path, &a, &net, &err), -ERR_NOT_FOUND);
	CHECK(str_starts(err_str(&err), STR("no network config found in ")));
	CHECK_INT(cni_config_load("/no/such/folder", &a, &net, &err), -ERR_NOT_FOUND);
	write_in(&f, "20.conflist", "{\"name\":\"twenty\",\"plugins\":[{\"type\":\"t\"}]}");
	write_in(&f, "10.conf", "{\"name\":\"ten\",\"cniVersion\":\"0.4.0\",\"type\":\"t\"}");
	write_in(&f, "05.txt", "not looked at");
	CHECK_INT(cni_config_load(f.path, &a, &net, &err), 0);
	CHECK_STR(net.name, "ten");
	CHECK_STR(net.version, "0.4.0");
	write_in(&f, "10.conf", "{");
	CHECK_INT(cni_config_load(f.path, &a, &net, &err), -ERR_INVALID);
	CHECK(str_starts(err_str(&err), STR("failed to load CNI config file ")));
	folder_remove(&f);
}

TEST(config_of_our_own)
{
	static const char *const one[] = { "10.1.0.0/24", "fd01::/64", NULL }, *const other[] = { "10.2.0.0/24", NULL };
	static const char *const bad[] = { "10.1.0.0", NULL }, *const none[] = { NULL };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct folder f = folder_make();
	struct err err = ERR_INIT;
	str first, second;

	CHECK_INT(cni_write_default(f.cni, bad, &err), -ERR_INVALID);
	CHECK_INT(cni_write_default(f.cni, none, &err), -ERR_INVALID);
	CHECK_INT(cni_write_default(f.cni, one, &err), 0);
	CHECK_INT(cni_network(f.cni, &a, &first, &err), 0);
	CHECK_INT(cni_write_default(f.cni, other, &err), 0);
	CHECK_INT(cni_network(f.cni, &a, &second, &err), 0);
	CHECK(!str_eq(first, second) && first.n < 16);
	/* One of somebody else stays. */
	write_in(&f, "05-theirs.conf", "{\"name\":\"theirs\",\"type\":\"t\"}");
	CHECK_INT(cni_write_default(f.cni, one, &err), 0);
	CHECK_INT(cni_network(f.cni, &a, &second, &err), 0);
	CHECK_STR(second, "theirs");
	folder_remove(&f);
}

TEST(config_cache)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct folder f = folder_make();
	struct cni_config net;
	struct cni_cached got, *list;
	struct err err = ERR_INIT;
	size_t n;
	struct val result = OBJECT(&a, F(cniVersion, VAL_LIT("1.0.0")));
	struct cni_call call = { STR("id-1"), STR("/ns"), STR("eth0"), STR("K=V;K2=V2"), OBJECT(&a, F(mac, VAL_LIT("x"))) };

	CHECK_INT(cni_config_parse(&a, STR("{\"name\":\"n\",\"plugins\":[{\"type\":\"t\"}]}"), false, &net, &err), 0);
	CHECK_INT(cni_cache_put(f.cni, &net, &call, VAL_EMPTY, &err), 0);
	CHECK_INT(cni_cache_get(f.cni, &a, STR("n"), STR("id-1"), STR("eth0"), &got, &err), 0);
	CHECK(!val_exists(got.result) && got.ours);
	CHECK_INT(cni_cache_put(f.cni, &net, &call, result, &err), 0);
	CHECK_INT(cni_cache_get(f.cni, &a, STR("n"), STR("id-1"), STR("eth0"), &got, &err), 0);
	CHECK(val_equal(got.result, result) && val_equal(got.call.capabilities, call.capabilities) && str_eq(got.config, net.text));
	CHECK_STR(got.call.args, "K=V;K2=V2");
	CHECK_STR(got.call.netns, "/ns");
	/* An id that is part of another one is not that one. */
	CHECK_INT(cni_cache_list(f.cni, &a, STR("1"), &list, &n, &err), 0);
	CHECK_INT(n, 0);
	write_in(&f, "results/n-id-2-eth0", "{\"half\":");
	CHECK_INT(cni_cache_list(f.cni, &a, STR_NONE, &list, &n, &err), 0);
	CHECK_INT(n, 1);
	CHECK_STR(list[0].call.id, "id-1");
	cni_cache_remove(f.cni, STR("n"), &call);
	CHECK_INT(cni_cache_get(f.cni, &a, STR("n"), STR("id-1"), STR("eth0"), &got, &err), -ERR_NOT_FOUND);
	folder_remove(&f);
}

/* A configuration that nobody can read any more does not keep what was made by it. */
TEST(config_remove_damaged)
{
	static const char *const cidrs[] = { "10.1.0.0/24", NULL };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(netlink_close) struct netlink n = NETLINK_INIT;
	int home = network_make();
	struct folder f = folder_make();
	struct err err = ERR_INIT;
	struct link l;
	str name;

	CHECK_INT(netlink_open(&n, NETLINK_ROUTE, &err), 0);
	CHECK_INT(cni_write_default(f.cni, cidrs, &err), 0);
	CHECK_INT(cni_network(f.cni, &a, &name, &err), 0);
	const char *now = arena_str(&a, name).p, *before = "c8s-before", *theirs = "theirs";
	/* Addresses were given out in the network of now, and in one that the node had before. */
	for (size_t i = 0; i < 2; i++)
		CHECK_INT(file_make_dirs(path_in(&a, &f, arena_printf(&a, "networks/%s", i ? before : now).p), 0700, &err), 0);
	for (size_t i = 0; i < 3; i++)
		CHECK_INT(link_add(&n, &(struct link_spec){ .name = (const char *[]){ now, before, theirs }[i], .kind = "bridge" }, &err), 0);
	write_in(&f, "10-c8s.conflist", "{\"name\":");
	CHECK_INT(cni_remove_default(f.cni, &err), 0);
	CHECK_INT(link_get(&n, now, &l, NULL), -ERR_NOT_FOUND);
	CHECK_INT(link_get(&n, before, &l, NULL), -ERR_NOT_FOUND);
	CHECK_INT(link_get(&n, theirs, &l, NULL), 0);
	folder_remove(&f);
	network_leave(home);
}
