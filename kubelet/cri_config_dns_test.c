#include <unistd.h>

#include "base/file.h"
#include "kubelet/cri_config_testing.h"

struct told {
	struct arena *arena;
	str text; /* "node MissingClusterDNS: ...\n" for each */
};

static void note(void *arg, struct val pod, bool warning, const char *reason, str message)
{
	struct told *t = arg;
	CHECK(warning);
	t->text = arena_printf(t->arena, STR_FMT "%s %s: " STR_FMT "\n", STR_ARG(t->text), val_exists(pod) ? "pod" : "node", reason,
			       STR_ARG(message));
}

/* What becomes of a resolv.conf for a pod of this spec; *ret_told are the events. */
static str dns_text(struct arena *a, struct kubelet_node n, const char *resolv_conf, const char *spec, str *ret_told)
{
	char path[] = "/tmp/c8s-resolv-XXXXXX";
	struct told told = { .arena = a };
	struct kubelet_hooks hooks = { .event = note, .arg = &told };
	struct err err = ERR_INIT;
	struct val dns = VAL_EMPTY;
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	CHECK_INT(file_replace(path, str_of(resolv_conf), 0600, &err), 0);
	n.hooks = &hooks;
	if (*resolv_conf)
		n.resolv_conf = str_of(path);
	int r = cri_config_dns(&n, a, testing_pod(a, spec, "", ""), &dns, &err);
	unlink(path);
	*ret_told = told.text;
	return testing_shown(a, r, dns, &err);
}

#define RESOLV "# nameserver 9.9.9.9\nnameserver 1.1.1.1\n nameserver\t2.2.2.2 x\nsearch a.example\nsearch b.example. . c.example\n" \
	       "options ndots:2 rotate\noptions ndots:3\n"
#define OWN_SEARCHES "'ns.svc.cluster.local','svc.cluster.local','cluster.local'"

TEST(dns_policies)
{
	static const struct {
		const char *spec, *servers, *want;
	} t[] = {
		{ "'dnsPolicy':'Default',", "['10.0.0.10']",
		  "{'servers':['1.1.1.1','2.2.2.2'],'searches':['b.example','c.example'],'options':['ndots:3','rotate']}" },
		{ "'dnsPolicy':'ClusterFirst',", "['10.0.0.10']",
		  "{'servers':['10.0.0.10'],'searches':[" OWN_SEARCHES ",'b.example','c.example'],'options':['ndots:5']}" },
		{ "'dnsPolicy':'ClusterFirst','hostNetwork':true,", "['10.0.0.10']",
		  "{'servers':['1.1.1.1','2.2.2.2'],'searches':['b.example','c.example'],'options':['ndots:3','rotate']}" },
		{ "'dnsPolicy':'ClusterFirstWithHostNet','hostNetwork':true,", "['10.0.0.10']",
		  "{'servers':['10.0.0.10'],'searches':[" OWN_SEARCHES ",'b.example','c.example'],'options':['ndots:5']}" },
		{ "'dnsPolicy':'None','dnsConfig':{'nameservers':['8.8.8.8'],'searches':['x'],'options':[{'name':'edns0'},{'name':'ndots','value':'1'}]},",
		  "['10.0.0.10']", "{'servers':['8.8.8.8'],'searches':['x'],'options':['edns0','ndots:1']}" },
		/* Wishes are added, and options replaced. */
		{ "'dnsPolicy':'ClusterFirst','dnsConfig':{'nameservers':['10.0.0.10','8.8.8.8'],'searches':['cluster.local','x'],"
		  "'options':[{'name':'ndots','value':'2'},{'name':'rotate'}]},", "['10.0.0.10']",
		  "{'servers':['10.0.0.10','8.8.8.8'],'searches':[" OWN_SEARCHES ",'b.example','c.example','x'],'options':['ndots:2','rotate']}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = testing_node();
		str told;
		n.cluster_dns = testing_typed(&a, NULL, t[i].servers);
		CHECK_STR_ROW(i, dns_text(&a, n, RESOLV, t[i].spec, &told), t[i].want);
		CHECK_STR_ROW(i, told, "");
	}
}

TEST(dns_without_cluster_servers_is_that_of_the_node)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str told;

	CHECK_STR(dns_text(&a, testing_node(), "nameserver 1.1.1.1\n", "'dnsPolicy':'ClusterFirst',", &told),
		  "{'servers':['1.1.1.1'],'searches':[],'options':[]}");
	CHECK_STR(told, "node MissingClusterDNS: kubelet does not have ClusterDNS IP configured and cannot create Pod using \"ClusterFirst\" policy. "
			"Falling back to \"Default\" policy.\n"
			"pod MissingClusterDNS: pod: \"p_ns(u1)\". kubelet does not have ClusterDNS IP configured and cannot create Pod using "
			"\"ClusterFirst\" policy. Falling back to \"Default\" policy.\n");
}

TEST(dns_without_resolv_conf_is_the_pod_itself)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	str told;

	CHECK_STR(dns_text(&a, n, "", "'dnsPolicy':'Default',", &told), "{'servers':['127.0.0.1'],'searches':['.']}");
	n.address6 = STR("fd00::7");
	CHECK_STR(dns_text(&a, n, "", "'dnsPolicy':'Default',", &told), "{'servers':['127.0.0.1','::1'],'searches':['.']}");
	n.address = STR_NONE;
	CHECK_STR(dns_text(&a, n, "", "'dnsPolicy':'Default',", &told), "{'servers':['::1'],'searches':['.']}");
}

TEST(dns_bad_resolv_conf)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct err err = ERR_INIT;
	struct val dns;
	str told;

	CHECK_STR(dns_text(&a, n, "nameserver\nnameserver \n", "'dnsPolicy':'Default',", &told),
		  "! Encountered error while parsing resolv conf file. Error: nameserver list is empty ");
	n.resolv_conf = STR("/nonexistent/resolv.conf");
	CHECK_INT(cri_config_dns(&n, &a, testing_pod(&a, "'dnsPolicy':'None',", "", ""), &dns, &err), -ERR_NOT_FOUND);
	CHECK_STR(err_str(&err), "open /nonexistent/resolv.conf: no such file or directory");
}

TEST(dns_limits)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	str told, text;

	CHECK_STR(dns_text(&a, testing_node(), "nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4\n",
			   "'dnsPolicy':'Default',", &told),
		  "{'servers':['1.1.1.1','1.1.1.2','1.1.1.3'],'searches':[],'options':[]}");
	CHECK_STR(told, "pod DNSConfigForming: Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
			"1.1.1.1 1.1.1.2 1.1.1.3\n");

	/* One too long, one too many. */
	buf_addf(&b, "search x%0254d", 0);
	for (int i = 0; i < 32; i++)
		buf_addf(&b, " d%d", i);
	text = dns_text(&a, testing_node(), b.p, "'dnsPolicy':'Default',", &told);
	CHECK(str_find(text, STR("'d30'")) > 0);
	CHECK(str_find(text, STR("'d31'")) < 0);
	CHECK(str_find(text, STR("x0")) < 0);
	CHECK(str_starts(told, STR("pod DNSConfigForming: Search Line limits were exceeded, some search paths have been omitted, the applied search "
				   "line is: d0 d1 d2")));

	/* 10 of 250 are more than 2048 characters; 8 of them and what stands between are 2007. */
	buf_reset(&b);
	buf_add(&b, STR("search"));
	for (int i = 0; i < 10; i++)
		buf_addf(&b, " n%d%0248d", i, 0);
	text = dns_text(&a, testing_node(), b.p, "'dnsPolicy':'Default',", &told);
	CHECK(str_find(text, STR("'n70")) > 0);
	CHECK(str_find(text, STR("'n80")) < 0);
	CHECK(told.n > 0);
}
