#include "apiserver/service_ip.h"

#include "apiserver/bootstrap.h"
#include "apiserver/hooks.h"
#include "apiserver/inprocess.h"
#include "apiserver/read_fixture.h"
#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "machinery/testing.h"

/* A server with what every cluster has. */
static void begin(struct read_fixture *f, const char *ranges)
{
	struct err err = ERR_INIT;
	read_fixture_init(f);
	for (size_t i = 0; i < f->server.kinds.n_kinds; i++)
		f->server.kinds.kinds[i].hooks = hooks_of(&f->server.kinds.kinds[i]);
	f->server.options.service_cluster_ip_range = ranges;
	f->server.options.service_node_port_first = 30000;
	f->server.options.service_node_port_last = 30019;
	f->server.options.secure_port = 6443;
	f->server.options.advertise_address = "192.0.2.1";
	if (bootstrap_make(&f->server, &err) < 0)
		fail_msg("%s", err.msg);
}

static void end(struct read_fixture *f)
{
	service_ip_free(f->server.allocators);
	read_fixture_done(f);
}

static struct object *find(struct read_fixture *f, const char *group, const char *resource, const char *key)
{
	return cache_get(kinds_find(&f->server.kinds, str_of(group), str_of(resource)), str_of(key));
}

static int make_service(struct read_fixture *f, const char *name, const char *spec, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val v;
	str json = arena_printf(&a, "{'metadata':{'name':'%s','namespace':'default'},'spec':{%s}}", name, spec);
	CHECK_INT(json_decode(&a, testing_json(&a, json.p), &(struct json_decode_options){ 0 }, &v, NULL), 0);
	return inprocess_create(INPROCESS(&f->server, "", "services"), v, err);
}

TEST(service_ip_ranges)
{
	static const struct {
		const char *ranges;
		int first_port, last_port, r;
		const char *first; /* of the first range */
		bool v4, v6;
	} t[] = {
		{ "10.0.0.0/24", 30000, 32767, 0, "10.0.0.1", true, false },
		{ "fd00::/108,10.0.0.0/16", 1, 1, 0, "fd00::1", true, true },
		{ "10.0.0.255/24", 30000, 32767, 0, "10.0.0.1", true, false },
		{ "10.0.0.0/24,10.1.0.0/24", 30000, 32767, -ERR_INVALID, NULL, false, false },
		{ "fd00::/48", 30000, 32767, -ERR_INVALID, NULL, false, false },
		{ "", 30000, 32767, -ERR_INVALID, NULL, false, false },
		{ "10.0.0.0/24", 200, 100, -ERR_INVALID, NULL, false, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct ip_allocators *al;
		char text[IP_TEXT_MAX];
		CHECK_INT(service_ip_new(t[i].ranges, t[i].first_port, t[i].last_port, &al, NULL), t[i].r);
		if (t[i].r < 0)
			continue;
		struct ip first = service_ip_first(al);
		CHECK_STR(ip_format(&first, text), t[i].first);
		CHECK_INT(service_ip_has_family(al, STR("IPv4")), t[i].v4);
		CHECK_INT(service_ip_has_family(al, STR("IPv6")), t[i].v6);
		service_ip_free(al);
	}
}

TEST(service_ports_choose_the_upper_part_first)
{
	uint8_t bits[13] = { 0 };
	struct port_map m = { .first = 30000, .last = 30099, .taken = bits };
	for (int i = 0; i < 84; i++) {
		int port = port_map_next(&m);
		CHECK(port >= 30016 && port <= 30099);
		port_map_put(&m, port, true);
	}
	for (int i = 0; i < 16; i++) {
		int port = port_map_next(&m);
		CHECK(port >= 30000 && port < 30016);
		port_map_put(&m, port, true);
	}
	CHECK_INT(port_map_next(&m), 0);
	port_map_put(&m, 30042, false);
	port_map_put(&m, 99, false);
	CHECK_INT(port_map_next(&m), 30042);
}

FIBER_TEST(service_addresses_are_given_out_once)
{
	struct read_fixture f;
	struct err err = ERR_INIT;
	begin(&f, "10.0.0.0/28");
	struct ip_owner o = { &f.server, STR("n"), STR("s"), false };
	struct ip ip, any;
	char text[IP_TEXT_MAX];
	CHECK(find(&f, "networking.k8s.io", "ipaddresses", "10.0.0.1")); /* of the Service kubernetes */
	CHECK(ip_parse(STR("10.0.0.5"), &ip, NULL));
	CHECK_INT(service_ip_take(&o, &ip, &err), 0);
	CHECK_INT(service_ip_take(&o, &ip, &err), -ERR_INVALID);
	CHECK_STR(err_str(&err), "provided IP is already allocated");
	for (int i = 0; i < 12; i++)
		CHECK_INT(service_ip_take_any(&o, STR("IPv4"), &any, &err), 0);
	CHECK_INT(service_ip_take_any(&o, STR("IPv4"), &any, &err), 1);
	CHECK_INT(service_ip_take_any(&o, STR("IPv6"), &any, &err), 1);
	CHECK_INT(service_ip_give_back(&f.server, &ip, &err), 0);
	CHECK_INT(service_ip_give_back(&f.server, &ip, &err), 0);
	CHECK_INT(service_ip_take_any(&o, STR("IPv4"), &any, &err), 0);
	CHECK_STR(ip_format(&any, text), "10.0.0.5");
	o.dry_run = true;
	CHECK_INT(service_ip_take_any(&o, STR("IPv4"), &any, &err), 0);
	CHECK_STR(ip_format(&any, text), "10.0.0.0");
	CHECK(ip_parse(STR("10.1.0.1"), &ip, NULL));
	CHECK_INT(service_ip_take(&o, &ip, &err), -ERR_INVALID);
	CHECK_STR(err_str(&err), "the provided IP (10.1.0.1) is not in the valid range. The range of valid IPs is 10.0.0.0/28");
	end(&f);
}

FIBER_TEST(services_that_fail_leave_nothing)
{
	struct read_fixture f;
	struct err err = ERR_INIT;
	begin(&f, "10.0.0.0/28");
	CHECK_INT(make_service(&f, "a", "'type':'NodePort','clusterIP':'10.0.0.5','ports':[{'port':80,'nodePort':30001}]", &err), 0);
	/* the address can be had, the port cannot */
	CHECK_INT(make_service(&f, "b", "'type':'NodePort','clusterIP':'10.0.0.6','ports':[{'port':80,'nodePort':30001}]", &err), -ERR_INVALID);
	CHECK(!find(&f, "networking.k8s.io", "ipaddresses", "10.0.0.6"));
	/* both can be had, but the Service is not valid */
	CHECK_INT(make_service(&f, "b", "'type':'NodePort','clusterIP':'10.0.0.6','ports':[{'port':0,'nodePort':30002}]", &err), -ERR_INVALID);
	CHECK(!find(&f, "networking.k8s.io", "ipaddresses", "10.0.0.6"));
	CHECK_INT(make_service(&f, "b", "'type':'NodePort','clusterIP':'10.0.0.6','ports':[{'port':80,'nodePort':30002}]", &err), 0);
	/* there is one of that name */
	CHECK_INT(make_service(&f, "b", "'type':'NodePort','clusterIP':'10.0.0.7','ports':[{'port':80,'nodePort':30003}]", &err), -ERR_ALREADY_EXISTS);
	CHECK(!find(&f, "networking.k8s.io", "ipaddresses", "10.0.0.7"));
	CHECK_INT(make_service(&f, "c", "'type':'NodePort','clusterIP':'10.0.0.7','ports':[{'port':80,'nodePort':30003}]", &err), 0);
	CHECK_INT(inprocess_delete(INPROCESS(&f.server, "", "services"), STR("default"), STR("c"), &err), 0);
	CHECK_INT(make_service(&f, "d", "'type':'NodePort','clusterIP':'10.0.0.7','ports':[{'port':80,'nodePort':30003}]", &err), 0);
	end(&f);
}

static int count_taken(struct port_map *m, void *arg)
{
	int *n = arg;
	*n = 0;
	for (int port = m->first; port <= m->last; port++)
		*n += port_map_has(m, port);
	return 0;
}

static int take_stray(struct port_map *m, void *arg)
{
	(void)arg;
	port_map_put(m, 30019, true);
	return 0;
}

FIBER_TEST(service_repair_makes_both_agree)
{
	struct read_fixture f;
	struct err err = ERR_INIT;
	int n;
	begin(&f, "10.0.0.0/28");
	CHECK_INT(make_service(&f, "a", "'type':'NodePort','clusterIP':'10.0.0.5','ports':[{'port':80,'nodePort':30001}]", &err), 0);
	/* what a crash can lose or leave */
	struct ip ip;
	CHECK(ip_parse(STR("10.0.0.5"), &ip, NULL));
	CHECK_INT(service_ip_give_back(&f.server, &ip, &err), 0);
	CHECK_INT(service_ports_change(&f.server, false, take_stray, NULL, &err), 0);
	CHECK_INT(service_repair(&f.server, &err), 0);
	struct object *o = find(&f, "networking.k8s.io", "ipaddresses", "10.0.0.5");
	CHECK(o);
	CHECK_STR(val_str(o->val, spec, parentRef, name), "a");
	for (int i = 0; i < 3; i++) { /* somebody may be about to use it */
		CHECK_INT(service_ports_change(&f.server, true, count_taken, &n, &err), 0);
		CHECK_INT(n, 2);
		CHECK_INT(service_repair(&f.server, &err), 0);
	}
	CHECK_INT(service_ports_change(&f.server, true, count_taken, &n, &err), 0);
	CHECK_INT(n, 1);
	int64_t revision;
	CHECK_INT(store_delete(f.server.store, STR("/registry/ranges/servicenodeports"), STORE_ANY, &revision, NULL, &err), 1);
	CHECK_INT(service_ports_change(&f.server, true, count_taken, &n, &err), 0);
	CHECK_INT(n, 1);
	end(&f);
}
