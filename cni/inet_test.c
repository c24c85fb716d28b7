#include "base/test.h"
#include "cni/inet.h"

TEST(inet_parse_and_text)
{
	static const struct {
		const char *in, *out;  /* NULL: refused */
	} rows[] = {
		{ "10.1.2.3", "10.1.2.3" }, { "::1", "::1" }, { "fd00:0:0:1::2", "fd00:0:0:1::2" },
		{ "::ffff:10.1.2.3", "10.1.2.3" },
		{ "FD00::A", "fd00::a" }, { "", NULL }, { "10.1.2", NULL }, { "10.1.2.256", NULL }, { "1::2::3", NULL },
		{ "10.1.2.3 ", NULL },
		{ "fe80::1%eth0", NULL }, { "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[INET_TEXT];
		struct inet ip;
		CHECK_ROW(i, inet_parse(str_of(rows[i].in), &ip) == (rows[i].out != NULL));
		if (rows[i].out)
			CHECK_STR_ROW(i, str_of(inet_text(ip, text)), rows[i].out);
	}
}

TEST(inet_net_arithmetic)
{
	static const struct {
		const char *net, *first, *last, *mask;
	} rows[] = {
		{ "10.1.2.3/24", "10.1.2.0", "10.1.2.255", "255.255.255.0" },
		{ "10.1.2.3/32", "10.1.2.3", "10.1.2.3", "255.255.255.255" },
		{ "10.1.2.3/0", "0.0.0.0", "255.255.255.255", "0.0.0.0" },
		{ "10.1.2.3/9", "10.0.0.0", "10.127.255.255", "255.128.0.0" },
		{ "fd00::1:2/112", "fd00::1:0", "fd00::1:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[INET_TEXT];
		struct inet_net net;
		CHECK_ROW(i, inet_net_parse(str_of(rows[i].net), &net));
		CHECK_STR_ROW(i, str_of(inet_text(inet_net_first(net), text)), rows[i].first);
		CHECK_STR_ROW(i, str_of(inet_text(inet_net_last(net), text)), rows[i].last);
		CHECK_STR_ROW(i, str_of(inet_text(inet_net_mask(net), text)), rows[i].mask);
		CHECK_STR_ROW(i, str_of(inet_net_text(net, text)), rows[i].net);
	}
	struct inet_net net;
	CHECK(!inet_net_parse(STR("10.0.0.0/33"), &net) && !inet_net_parse(STR("10.0.0.0"), &net) &&
	      !inet_net_parse(STR("::/129"), &net));
	CHECK(!inet_net_parse(STR("10.0.0.0/-1"), &net) && !inet_net_parse(STR("10.0.0.0/"), &net));
}

TEST(inet_neighbours)
{
	static const struct {
		const char *a, *next;
	} rows[] = {
		{ "10.0.0.255", "10.0.1.0" }, { "255.255.255.255", "0.0.0.0" }, { "fd00::ffff", "fd00::1:0" }, { "::", "::1" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[INET_TEXT];
		struct inet ip;
		CHECK_ROW(i, inet_parse(str_of(rows[i].a), &ip));
		CHECK_STR_ROW(i, str_of(inet_text(inet_next(ip), text)), rows[i].next);
		CHECK_ROW(i, inet_eq(inet_prev(inet_next(ip)), ip));
	}
	struct inet_net net = { 0 };
	struct inet inside = { 0 }, outside = { 0 }, six = { 0 };
	CHECK(inet_net_parse(STR("10.0.0.9/24"), &net) && inet_parse(STR("10.0.0.200"), &inside) &&
	      inet_parse(STR("10.0.1.0"), &outside) &&
	      inet_parse(STR("::a00:1"), &six));
	CHECK(inet_net_has(net, inside) && !inet_net_has(net, outside) && !inet_net_has(net, six));
}

TEST(inet_mac)
{
	char text[MAC_TEXT];
	uint8_t mac[6];

	CHECK(mac_parse(STR("0a:58:0A:01:02:ff"), mac));
	CHECK_STR(str_of(mac_text(mac, text)), "0a:58:0a:01:02:ff");
	CHECK(!mac_parse(STR("0a:58:0a:01:02"), mac) && !mac_parse(STR("0a-58-0a-01-02-ff"), mac) &&
	      !mac_parse(STR("0a:58:0a:01:02:fg"), mac));
}
