#include <linux/rtnetlink.h>

#include "base/test.h"
#include "cni/link.h"
#include "cni/netlink.h"
#include "cni/nft.h"

/* A message of all that a builder can do, byte by byte. */
TEST(netlink_message)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	static const unsigned char want[] = {
		48, 0, 0, 0, 16, 0, 1, 6, 0, 0, 0, 0, 0, 0, 0, 0,  /* RTM_NEWLINK, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL */
		7, 7, 7, 7,                                        /* its head */
		7, 0, 3, 0, 'l', 'o', 0, 0,                        /* a string, filled up to four */
		20, 0, 18, 0x80,                                   /* a nest */
		5, 0, 1, 0, 9, 0, 0, 0,                            /* one byte */
		8, 0, 2, 0, 0, 0, 1, 2,                            /* in network order */
	};

	netlink_begin(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, "\7\7\7\7", 4);
	netlink_put_str(&m, 3, "lo");
	size_t nest = netlink_nest(&m, 18);
	netlink_put_u8(&m, 1, 9);
	netlink_put_be32(&m, 2, 0x102);
	netlink_nest_end(&m, nest);
	CHECK_INT(m.buf.n, sizeof(want));
	assert_memory_equal(m.buf.p, want, sizeof(want));
}

TEST(netlink_too_long)
{
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	static char big[70000];
	struct netlink n = NETLINK_INIT;
	struct err err = ERR_INIT;

	netlink_begin(&m, RTM_NEWLINK, 0, "", 0);
	netlink_put(&m, 1, big, sizeof(big));
	CHECK_INT(netlink_do(&n, &m, &err), -ERR_TOO_LARGE);
}

TEST(netlink_attributes)
{
	/* Three bytes of one attribute, a string without its end, then one that claims more than there is. */
	static const unsigned char data[] __attribute__((aligned(4))) = { 7, 0, 1, 0, 'a', 'b', 'c', 0, 8, 0, 2, 0, 4, 0, 0,
									  0, 200, 0, 3, 0 };
	unsigned seen = 0;

	NETLINK_EACH(a, data, sizeof(data)) {
		seen |= 1U << netlink_attr_type(a);
		if (netlink_attr_type(a) == 1) {
			CHECK_STR(netlink_attr_str(a), "abc");
			CHECK_INT(netlink_attr_u32(a), 0);
		} else {
			CHECK_INT(netlink_attr_u32(a), 4);
		}
	}
	CHECK_INT(seen, 1 << 1 | 1 << 2);
}

/* Needs no rights: everybody may look. */
TEST(netlink_reads_links)
{
	CLEANUP(netlink_close) struct netlink n = NETLINK_INIT;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct link lo, none, *links;
	struct err err = ERR_INIT;
	size_t count;

	CHECK_INT(netlink_open(&n, NETLINK_ROUTE, &err), 0);
	CHECK_INT(link_get(&n, "lo", &lo, &err), 0);
	CHECK_STR(str_of(lo.name), "lo");
	CHECK_INT(link_list(&n, &a, &links, &count, &err), 0);
	CHECK(count >= 1 && lo.index > 0 && lo.flags & IFF_LOOPBACK);
	CHECK_INT(link_get(&n, "no-such-link", &none, &err), -ERR_NOT_FOUND);
	CHECK_STR(err_str(&err), "link \"no-such-link\" not found");
}

/* The networks of a set become intervals; the one that reaches to the last address has no end. */
TEST(netlink_set_intervals)
{
	CLEANUP(nft_batch_done) struct nft_batch one, two;
	struct inet_net some, all;

	CHECK(inet_net_parse(STR("10.0.0.0/8"), &some) && inet_net_parse(STR("255.255.255.0/24"), &all));
	nft_batch_begin(&one, "t");
	nft_set_add(&one, "s", &some, 1);
	nft_batch_begin(&two, "t");
	nft_set_add(&two, "s", &all, 1);
	CHECK(one.msg.buf.n > two.msg.buf.n);
	CHECK_INT(one.msg.n, 2);
	nft_set_add(&one, "s", NULL, 0);
	CHECK_INT(one.msg.n, 2);
}
