#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/test.h"
#include "cni/cni_priv.h"
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

/* A folder for one test. */
struct folder {
	char path[64];
	struct cni *cni;
};

static struct folder folder_make(void)
{
	struct folder f = { .path = "/tmp/cni-test-XXXXXX" };
	CHECK(mkdtemp(f.path));
	f.cni = cni_new(&(struct cni_options){ .conf_dir = f.path, .cache_dir = f.path,
					       .bin_dirs = (const char *const[]){ "/none", NULL } });
	return f;
}

static const char *path_in(struct arena *a, const struct folder *f, const char *name)
{
	return arena_printf(a, "%s/%s", f->path, name).p;
}

static void write_in(const struct folder *f, const char *name, const char *text)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CHECK_INT(file_write(path_in(&a, f, name), str_of(text), 0644, NULL), 0);
}

static void remove_in(const struct folder *f, const char *name)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	(void)unlink(path_in(&a, f, name));
}

static void folder_remove(struct folder *f)
{
	cni_free(f->cni);
	CHECK_INT(rmdir(f->path), 0);
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
	remove_in(&f, "20.conflist");
	remove_in(&f, "10.conf");
	remove_in(&f, "05.txt");
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
	remove_in(&f, "05-theirs.conf");
	remove_in(&f, "10-c8s.conflist");
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
	remove_in(&f, "results/n-id-2-eth0");
	CHECK_INT(rmdir(path_in(&a, &f, "results")), 0);
	folder_remove(&f);
}
