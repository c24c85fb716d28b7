#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/test.h"
#include "cni/host_local.h"
#include "codec/atoms.h"

static int load(struct arena *a, struct plugin *p, const char *ipam, struct host_local *ret, struct err *err)
{
	*p = (struct plugin){ .arena = a, .command = "ADD", .id = "id", .ifname = "eth0", .netns = "", .args = "", .path = "" };
	str text = arena_printf(a, "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",%s}", ipam);
	for (char *c = (char *)(uintptr_t)text.p; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	int r = plugin_load(p, text, err);
	return r < 0 ? r : host_local_load(p, ret, err);
}

TEST(host_local_configuration)
{
	static const struct {
		const char *ipam, *text;  /* the sets, joined by spaces; or the error */
		bool fails;
	} rows[] = {
		{ "'ipam':{'subnet':'10.1.0.0/24'}", "10.1.0.1-10.1.0.254", false },
		{ "'ipam':{'subnet':'10.1.0.0/24','rangeStart':'10.1.0.10','rangeEnd':'10.1.0.20'}", "10.1.0.10-10.1.0.20", false },
		{ "'ipam':{'ranges':[[{'subnet':'10.1.0.0/24'},{'subnet':'10.2.0.0/24'}],[{'subnet':'fd01::/120'}]]}",
		  "10.1.0.1-10.1.0.254,10.2.0.1-10.2.0.254 fd01::1-fd01::ff", false },
		{ "'ipam':{'subnet':'10.1.0.0/24','ranges':[[{'subnet':'fd01::/120'}]]}",
		  "10.1.0.1-10.1.0.254 fd01::1-fd01::ff", false },
		{ "'ipam':{'subnet':'10.1.0.0/24'},'runtimeConfig':{'ipRanges':[[{'subnet':'10.9.0.0/24'}]]}",
		  "10.9.0.1-10.9.0.254 10.1.0.1-10.1.0.254", false },
		{ "'x':1", "IPAM config missing 'ipam' key", true },
		{ "'ipam':{}", "no IP ranges specified", true },
		{ "'ipam':{'ranges':[[]]}", "invalid range set 0: empty range set", true },
		{ "'ipam':{'subnet':'10.1.0.0/31'}", "invalid range set 0: Network 10.1.0.0/31 too small to allocate from", true },
		{ "'ipam':{'subnet':'10.1.0.5/24'}",
		  "invalid range set 0: Network has host bits set. For a subnet mask of length 24 the network address is 10.1.0.0", true },
		{ "'ipam':{'subnet':'10.1.0.0/24','rangeStart':'10.2.0.1'}",
		  "invalid range set 0: RangeStart 10.2.0.1 not in network 10.1.0.0/24", true },
		{ "'ipam':{'subnet':'10.1.0.0/24','rangeStart':'10.1.0.9','rangeEnd':'10.1.0.8'}",
		  "invalid range set 0: RangeEnd 10.1.0.8 not in network 10.1.0.0/24", true },
		{ "'ipam':{'subnet':'x'}", "invalid range set 0: invalid CIDR address: x", true },
		{ "'ipam':{'ranges':[[{'subnet':'10.1.0.0/24'},{'subnet':'fd01::/64'}]]}",
		  "invalid range set 0: mixed address families", true },
		{ "'ipam':{'ranges':[[{'subnet':'10.1.0.0/24'},{'subnet':'10.1.0.0/25'}]]}",
		  "invalid range set 0: subnets 10.1.0.1-10.1.0.254 and 10.1.0.1-10.1.0.126 overlap", true },
		{ "'ipam':{'ranges':[[{'subnet':'10.1.0.0/24'}],[{'subnet':'10.1.0.0/16'}]]}",
		  "range set 0 overlaps with 1", true },
		{ "'ipam':{'subnet':'10.1.0.0/24'},'runtimeConfig':{'ips':['x']}", "cannot understand ip: x", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct host_local h;
		struct plugin p;
		struct err err = ERR_INIT;
		int r = load(&a, &p, rows[i].ipam, &h, &err);
		CHECK_ROW(i, (r < 0) == rows[i].fails);
		str text = r < 0 ? err_str(&err) : host_range_set_text(&a, &h.sets[0]);
		for (size_t k = 1; r == 0 && k < h.n; k++)
			text = arena_printf(&a, STR_FMT " " STR_FMT, STR_ARG(text), STR_ARG(host_range_set_text(&a, &h.sets[k])));
		CHECK_STR_ROW(i, text, rows[i].text);
	}
}

/* ---- giving out ---- */

struct bed {
	struct arena arena;
	char folder[64];
	struct plugin p;
};

static void bed_make(struct bed *b)
{
	*b = (struct bed){ .folder = "/tmp/host-local-XXXXXX" };
	CHECK(mkdtemp(b->folder));
}

static const char *path_in(struct bed *b, const char *name) { return arena_printf(&b->arena, "%s/n/%s", b->folder, name).p; }

static void bed_remove(struct bed *b)
{
	static const char *const names[] = { "lock", "last_reserved_ip.0", "last_reserved_ip.1" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		(void)unlink(path_in(b, names[i]));
	CHECK_INT(rmdir(path_in(b, "")), 0);
	CHECK_INT(rmdir(b->folder), 0);
	arena_done(&b->arena);
}

/* The addresses that an ADD gets, joined by a comma; or the error. */
static str add(struct bed *b, const char *id, const char *more)
{
	struct host_local h;
	struct err err = ERR_INIT;
	struct val result;
	str text = STR_NONE;

	CHECK_INT(load(&b->arena, &b->p, arena_printf(&b->arena, "'ipam':{'dataDir':'%s',%s", b->folder, more).p, &h, &err), 0);
	b->p.id = id;
	if (plugin_host_local.add(&b->p, &result, &err) < 0)
		return arena_str(&b->arena, err_str(&err));
	VAL_EACH(ip, val_get(result, ips))
		text = arena_printf(&b->arena, STR_FMT "%s" STR_FMT, STR_ARG(text), text.n ? "," : "",
				    STR_ARG(val_str(*ip, address)));
	return text;
}

static int del(struct bed *b, const char *id)
{
	b->p.id = id;
	return plugin_host_local.del(&b->p, NULL);
}

static const char small[] = "'subnet':'10.1.0.0/29'}"; /* .1 is the gateway, .2 to .6 are given out */

TEST(host_local_round_robin)
{
	static const char *const want[] = { "10.1.0.2/29", "10.1.0.3/29", "10.1.0.4/29", "10.1.0.5/29", "10.1.0.6/29" };
	struct bed b;

	bed_make(&b);
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		CHECK_STR_ROW(i, add(&b, arena_printf(&b.arena, "c%zu", i).p, small), want[i]);
	CHECK_STR(add(&b, "late", small),
		  "failed to allocate for range 0: no IP addresses available in range set: 10.1.0.1-10.1.0.6");
	CHECK_INT(b.p.code, CNI_TRY_AGAIN_LATER);
	CHECK_INT(del(&b, "c1"), 0);
	CHECK_INT(del(&b, "c0"), 0);
	/* From the last one on and around. */
	CHECK_STR(add(&b, "d0", small), "10.1.0.2/29");
	CHECK_STR(add(&b, "d0", small), "failed to allocate for range 0: 10.1.0.2 has been allocated to d0, duplicate allocation is not allowed");
	CHECK_STR(add(&b, "d1", small), "10.1.0.3/29");
	CHECK_INT(plugin_host_local.check(&b.p, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		CHECK_INT(del(&b, arena_printf(&b.arena, "c%zu", i).p), 0);
	CHECK_INT(del(&b, "d0"), 0);
	CHECK_INT(del(&b, "d1"), 0);
	CHECK_INT(del(&b, "never"), 0);
	CHECK(plugin_host_local.check(&b.p, NULL) < 0);
	bed_remove(&b);
}

TEST(host_local_requested)
{
	static const char both[] = "'ranges':[[{'subnet':'10.1.0.0/24'}],[{'subnet':'fd01::/64'}]]}";
	struct bed b;

	bed_make(&b);
	CHECK_STR(add(&b, "a", "'subnet':'10.1.0.0/24'},'args':{'cni':{'ips':['10.1.0.77']}}"), "10.1.0.77/24");
	CHECK_STR(add(&b, "b", "'subnet':'10.1.0.0/24'},'runtimeConfig':{'ips':['10.1.0.77/24']}"),
		  "failed to allocate for range 0: requested IP address 10.1.0.77 is not available in range set 10.1.0.1-10.1.0.254");
	CHECK_STR(add(&b, "b", "'subnet':'10.1.0.0/24'},'runtimeConfig':{'ips':['10.1.0.1']}"),
		  "failed to allocate for range 0: requested ip 10.1.0.1 is subnet's gateway");
	/* What was taken for a call that fails is given back. */
	CHECK_STR(add(&b, "b", "'subnet':'10.1.0.0/24'},'runtimeConfig':{'ips':['10.9.0.1']}"),
		  "failed to allocate all requested IPs: 10.9.0.1");
	CHECK(plugin_host_local.check(&b.p, NULL) < 0);
	CHECK_STR(add(&b, "c", both), "10.1.0.79/24,fd01::2/64");
	CHECK_INT(del(&b, "a"), 0);
	CHECK_INT(del(&b, "c"), 0);
	bed_remove(&b);
}

TEST(host_local_leftovers)
{
	struct bed b;
	struct val config;

	bed_make(&b);
	CHECK_STR(add(&b, "a", small), "10.1.0.2/29");
	/* Of a crash of the reference plugin; of a crash of ours; of its first versions. */
	CHECK_INT(file_write(path_in(&b, "10.1.0.3"), STR(""), 0600, NULL), 0);
	CHECK_INT(file_write(path_in(&b, ".new"), STR("x\r\neth0"), 0600, NULL), 0);
	CHECK_INT(file_write(path_in(&b, "10.1.0.4"), STR("old"), 0600, NULL), 0);
	CHECK_STR(add(&b, "b", small), "10.1.0.3/29");
	CHECK_STR(add(&b, "c", small), "10.1.0.5/29");
	CHECK_INT(del(&b, "old"), 0);
	CHECK(access(path_in(&b, "10.1.0.4"), F_OK) < 0);
	CHECK(access(path_in(&b, ".new"), F_OK) < 0);
	/* GC: only b is valid. */
	config = val_with(&b.arena, b.p.config,
			  LIST(&b.arena, OBJECT(&b.arena, F(containerID, VAL_LIT("b")), F(ifname, VAL_LIT("eth0")))),
			  cni_dev_valid_attachments);
	b.p.config = config;
	CHECK_INT(plugin_host_local.gc(&b.p, NULL), 0);
	CHECK(access(path_in(&b, "10.1.0.2"), F_OK) < 0 && access(path_in(&b, "10.1.0.3"), F_OK) == 0 &&
	      access(path_in(&b, "10.1.0.5"), F_OK) < 0);
	/* Without a list nothing is removed. */
	b.p.config = val_without(&b.arena, config, cni_dev_valid_attachments);
	CHECK(plugin_host_local.gc(&b.p, NULL) < 0);
	CHECK_INT(del(&b, "b"), 0);
	bed_remove(&b);
}

TEST(host_local_resolv_conf)
{
	struct bed b;
	struct host_local h;
	struct val result;

	bed_make(&b);
	const char *conf = arena_printf(&b.arena, "%s/resolv", b.folder).p;
	CHECK_INT(file_write(conf, STR("# c\nnameserver 10.0.0.10\nsearch a.b  c.d\noptions ndots:5\ndomain x\nnameserver ::1\n;\nodd\n"), 0600, NULL), 0);
	CHECK_INT(load(&b.arena, &b.p, arena_printf(&b.arena, "'ipam':{'dataDir':'%s','resolvConf':'%s',%s", b.folder, conf,
						    small).p, &h, NULL), 0);
	CHECK_INT(plugin_host_local.add(&b.p, &result, NULL), 0);
	struct val dns = val_get(result, dns);
	CHECK_INT(val_len(val_get(dns, nameservers)), 2);
	CHECK_STR(val_as_str(val_at(val_get(dns, search), 1)), "c.d");
	CHECK_STR(val_as_str(val_at(val_get(dns, options), 0)), "ndots:5");
	CHECK_STR(val_str(dns, domain), "x");
	CHECK_INT(del(&b, "id"), 0);
	(void)unlink(conf);
	bed_remove(&b);
}
